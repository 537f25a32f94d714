"""Which tests `make test` leaves to `make test-all`: whole folders, and the functions listed in `slow.txt`.

To make the list again from a run of everything: ``make slow-tests``.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")

SLOW_FOLDERS = ("tests/goals/", "tests/e2e/", "tests/crash/")
ALWAYS_FAST = (
    "tests/e2e/test_e2e_claude_code.py::test_a_decision_of_one_session_is_known_in_the_next",
    "tests/e2e/test_e2e_write_through.py::test_what_is_said_to_be_kept_is_known_to_the_next_prompt",
    "tests/app/test_app_pipeline.py::test_what_was_said_becomes_a_note_that_the_next_prompt_is_given",
    "tests/test_architecture.py",
)
"""The tests that prove the main job run each time, however long they take."""
BUDGET_SECONDS = 130.0
"""What all tests that are not slow may take together, on one core."""

_listed = frozenset(LIST.read_text(encoding="utf-8").split()) if LIST.exists() else frozenset()
_files_listed = frozenset(nodeid.partition("::")[0] for nodeid in _listed)


def is_slow(nodeid: str) -> bool:
    """Parameters of a test do not count: a function is slow as a whole."""
    if nodeid.startswith(ALWAYS_FAST):
        return False
    return nodeid.startswith(SLOW_FOLDERS) or nodeid.partition("[")[0] in _listed


def has_fast_tests(path: Path) -> bool:
    """False only for a file of a slow folder in which no test always runs."""
    name = _name(path)
    return not name.startswith(SLOW_FOLDERS) or any(each.startswith(name) for each in ALWAYS_FAST)


def has_slow_tests(path: Path) -> bool:
    name = _name(path)
    return name.startswith(SLOW_FOLDERS) or name in _files_listed


def _name(path: Path) -> str:
    return path.relative_to(LIST.parent.parent).as_posix()


def seconds_by_function(report: Path) -> Mapping[str, float]:
    """From a JUnit report of pytest's, the time of each test function with all its parameters."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).getroot().iterfind(".//testcase[@classname]"):
        file, _, classes = case.attrib["classname"].partition(".Test")
        path = file.replace(".", "/") + ".py"
        name = case.attrib["name"].partition("[")[0]
        nodeid = "::".join([path, *(["Test" + classes.replace(".", "::")] if classes else []), name])
        seconds[nodeid] += float(case.attrib["time"])
    return seconds


def slow_functions(seconds: Mapping[str, float], budget: float) -> list[str]:
    """The slowest functions outside the slow folders, as few as leave the others within ``budget`` seconds."""
    counted = {
        nodeid: each
        for nodeid, each in seconds.items()
        if not nodeid.startswith(SLOW_FOLDERS) and not nodeid.startswith(ALWAYS_FAST)
    }
    left = sum(counted.values())
    slow: list[str] = []
    for nodeid in sorted(counted, key=counted.__getitem__, reverse=True):
        if left <= budget:
            break
        slow.append(nodeid)
        left -= counted[nodeid]
    return sorted(slow)


if __name__ == "__main__":
    LIST.write_text("\n".join(slow_functions(seconds_by_function(Path(sys.argv[1])), BUDGET_SECONDS)) + "\n", encoding="utf-8")
