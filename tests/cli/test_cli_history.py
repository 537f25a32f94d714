"""Looking back: colours and the walk-about only where a person watches, and a long session whole."""

import sys
from collections.abc import Iterator

import pytest

from tests.cli.transcript import in_this_process
from tests.e2e.kmem import Machine
from tests.fakes.work import FIRST, SECOND, leave_work
from tests.sources.transcript import Transcript

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are elsewhere")


@pytest.fixture
def worked_in(machine: Machine) -> Iterator[Machine]:
    leave_work(machine.home / ".claude", machine.home / "orchard")
    assert in_this_process(machine, ["backfill"], cwd=machine.home).code == 0
    machine.environment = {"COLUMNS": "120", "LINES": "30"}
    yield machine


def test_on_a_terminal_it_can_be_walked_about_in_and_left(worked_in: Machine) -> None:
    from tests.cli.terminal import at_a_terminal

    shown = at_a_terminal(worked_in, ["timeline"], typed=[("Go on with the sweeper", b"q")])

    assert shown.code == 0
    assert "Traceback" not in shown.screen


def test_plain_is_coloured_on_a_terminal_and_nowhere_else(worked_in: Machine) -> None:
    from tests.cli.terminal import at_a_terminal

    watched = at_a_terminal(worked_in, ["timeline", FIRST, "--plain"])
    unwatched = in_this_process(worked_in, ["timeline", FIRST, "--plain"], cwd=worked_in.home)

    assert watched.code == unwatched.code == 0
    assert watched.coloured
    assert "\x1b" not in unwatched.out
    assert "Let the sweeper take back claims" in watched.screen


def test_json_is_json_on_a_terminal_too(worked_in: Machine) -> None:
    from tests.cli.terminal import at_a_terminal

    shown = at_a_terminal(worked_in, ["timeline", "--json"])

    assert shown.code == 0
    assert not shown.coloured
    assert SECOND in shown.screen


@pytest.mark.parametrize("daemon", [False, True])
def test_a_long_session_is_told_whole(machine: Machine, daemon: bool) -> None:
    told = Transcript(FIRST, cwd=str(machine.home / "orchard"))
    for number in range(1_200):
        told.user(f"Water tree {number}: " + f"it is dry {number} " * 190)
        told.assistant(f"Watered tree {number}.")
    folder = machine.home / ".claude/projects/-orchard"
    folder.mkdir(parents=True)
    (folder / f"{FIRST}.jsonl").write_bytes(told.bytes)
    assert in_this_process(machine, ["backfill", "--no-distill"], cwd=machine.home).code == 0
    if daemon:
        assert machine.kmem("up", "--no-hooks").code == 0

    whole = in_this_process(machine, ["timeline", FIRST, "--json"], cwd=machine.home).json()

    said = [event["text"].partition(":")[0] for event in whole["events"]]
    assert said == [text for number in range(1_200) for text in (f"Water tree {number}", f"Watered tree {number}.")]
    edges = [(edge["from"], edge["to"]) for edge in whole["edges"] if edge["kind"] == "next"]
    assert edges == [(one["id"], other["id"]) for one, other in zip(whole["events"], whole["events"][1:], strict=False)]
    assert "next" not in whole
