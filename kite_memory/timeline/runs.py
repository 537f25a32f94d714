"""Commands, how they ended, and which later success resolves a failure."""

import posixpath
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Literal

from kite_memory.model.event import Event, EventType
from kite_memory.text import lazy_regex
from kite_memory.text.error_signature import first_failure, signatures
from kite_memory.text.shell import LOOKERS, Ending, Invocation, ending, invocations

Outcome = Literal["ok", "failed", "unknown"]

LOOKS = LOOKERS | {"cmp", "kill", "pkill", "sed", "touch"}
"""Programs that only look at something, or whose exit code 1 means «no»."""

_PREPARING = "add branch check-ignore diff fetch log ls-files ls-remote remote rev-parse show status"
_CHANGES = frozenset({"git add", "git branch", "git fetch", "git remote"})
PREPARES = frozenset(f"git {word}" for word in _PREPARING.split(" "))
"""Preparatory commands that a line may begin with, whatever it is for."""
_CHECK = lazy_regex(
    r"(?:^|[ :_-])(?:tests?|e2e|check|ci|verify|lint|vet|typecheck|type-check|build|compile|clippy|pytest|mypy|pyright|ruff"
    r"|flake8|pylint|eslint|biome|tsc|jest|vitest|mocha|tox|nox|rspec|phpunit|ctest|golangci-lint|shellcheck)(?:$|[ :_-])"
)
_BUILD = lazy_regex(r"(?:^|[ :_-])(?:build|compile|vet|check|gofmt|tsc)(?:$|[ :_-])")
_COMPILE = lazy_regex(r"(?:^|[ :_-])(?:build|compile)(?:$|[ :_-])")
_ONLY_CHECKS = lazy_regex(
    r"(?:^|[ :_-])(?:tsc|eslint|biome|ruff|d?mypy|(?:based)?pyright|flake8|pylint|golangci-lint|cargo check|clippy|rustc|gcc|g\+\+"
    r"|clang(?:\+\+)?|javac|kotlinc|swiftc|lint|type-?check|build|compile|vet)(?:$|[ :])"
)
"""Checks of a program's text only, not of its behaviour."""
_SAYS_IT_FAILED = lazy_regex(
    r"(?<!\b0 )\b(?:BUILD )?FAIL(?:ED|URES?)?\b(?!\W{1,3}0\b)"
    r"|(?i:\b(?:exit|status|code|rc)(?: code| status)?\s?[:=]+ ?(?!2\d\d\b)[1-9]\d{0,2}\b)"
)
_CUT = lazy_regex(r"\|\s*head(?:\s+-(?:n\s?)?(\d{1,6}))?\s*\Z")
_RAN_NO_TEST = lazy_regex(
    r"\[no tests? (?:to run|files)\]|^test result: ok\. 0 passed|^(?:testing: warning: no tests to run|running 0 tests)$"
    r"|^=* ?(?:\d+ (?:deselected|skipped|warnings?)(?:, )?)+ in |^DONE 0 tests|^0 (?:passing|examples, 0 failures)"
    r"|^No tests executed!|^Executed 0 tests|^[#ℹ] (?:tests|pass) +0$|^0 pass$|^ok \| 0 passed|^Ran 0 tests"
    r"|^\d+ files? (?:would be left unchanged|already formatted)|^All matched files use Prettier"
    r"|^Checked \d+ files?|^Build succeeded"
)
_NOT_ONE_FAILED = lazy_regex(r"\s*(?:PASS|OK|0 fail|[#ℹ] (?:fail|cancelled) +0)?\s*")
_ALL_PASSED = lazy_regex(
    r"^(?:\W{0,6}0 fail(?:ed|ures?)?\b|(?:=+|\s{0,4}Tests:?) {1,4}\d{1,6} passed\b(?!.{0,80}fail)).{0,200}$", re.MULTILINE
)
_COUNTS_ERRORS = lazy_regex(r"^\W{0,4}(?:[A-Z][\w ]{0,20}: ?|Found )?[1-9]\d{0,4} errors?\b(?! fixed)", re.MULTILINE)
"""A program that counts errors in the output of another may exit with success."""
_JOINS = lazy_regex(r"[;&|\n]")
_KINDS_IN_WORDS = {
    "lint": lazy_regex(r"\blint", re.IGNORECASE),
    "tests": lazy_regex(r"\btests?\b|\bCI\b", re.IGNORECASE),
    "build": lazy_regex(r"\bbuild|\bcompil", re.IGNORECASE),
    "types": lazy_regex(r"\btype-?(?:check| error)", re.IGNORECASE),
}
_COUNTS_PASSED = lazy_regex(r"\b[1-9]\d{0,6} pass(?:ed|ing)?\b")
_COUNTS_FAILED = lazy_regex(r"\b[1-9]\d{0,6} fail|\bFAIL|passed, \d{1,6} errors?\b|\berrors? in \d|✗|✘")
_OF_A_CHECKER = lazy_regex(
    r"(?:vet: )?\S{1,250}(?::\d+:|\(\d+[,)])|\d+:\d+\s+[Ee]rror\b|Found \d+ |\d+ issues?\b|✖ \d+ problem|error(?:\[|: (?!test ))"
    r"|level=error |[Ww]ould reformat|(?:\[\S{1,80}\] )?ERROR task failed|make(?:\[\d+\])?: "
)
"""The beginning of a failure that is not from tests; those of tests are reported first."""
_RUNS_A_FILE = frozenset({"bash", "bun", "deno run", "go run", "java", "node", "perl", "php", "python", "ruby", "sh", "tsx", "zsh"})
"""The purpose depends on the file: one script that runs is no evidence about another."""
_ASKS_ABOUT_ITSELF = frozenset({"--version", "--help", "--dry-run", "--collect-only", "--no-run"})
_COMMIT = lazy_regex(
    r"^\[(?P<branch>detached HEAD|[^\]\s]{1,200})(?: \([\w -]{1,20}\))? (?P<hash>[0-9a-f]{7,40})\] (?P<subject>.{1,300})$",
    re.MULTILINE,
)
_SWITCHED = lazy_regex(r"^(?:Switched to (?:a new )?branch|Already on) '(?P<branch>[^'\n]{1,200})'", re.MULTILINE)
_HEAD_IS = lazy_regex(r"^(?:On branch (\S{1,200})$|[^\n]{0,60}\(HEAD -> ([^,)\n]{1,200})[,)])", re.MULTILINE)
_WAITS_FOR = lazy_regex(r"(?:session_id|shell_?[iI]d|bash_id|task_id): (\S{2,64})")
_NAME = 80
_ANSWERS_LATER = frozenset({"write_stdin", "BashOutput", "TaskOutput", "read_bash"})
"""Tools whose results are what a command printed that went on in the background."""
_STASHED = lazy_regex(
    r"\bgit stash(?: (?:push|save|-)[^;&\n]{0,200})?\s*(?:&&|;|\n)(?=.{0,600}\bgit stash (?:pop|apply))", re.DOTALL
)
_SELECTS = lazy_regex(
    r"\s(?:-run|-k|-t|--(?:testNamePattern|test-name-pattern|grep|filter|tests))[\s=]+"
    r"(?:'([^'\n]{1,400})'|\"([^\"\n]{1,400})\"|([^\s'\"|;&]{1,200}))"
)
"""Options that select some of the tests by name."""
_MEASURES = lazy_regex(r"(?:^|[ :_./-])bench(?:es|marks?|marking)?(?:$|[ :_.-])")
_KINDS = (
    ("tests", lazy_regex(r"(?:^|[ :_-])(?:tests?|e2e|pytest|jest|vitest|mocha|tox|nox|rspec|phpunit|ctest)(?:$|[ :_-])")),
    ("types", lazy_regex(r"(?:^|[ :_-])(?:tsc|d?mypy|(?:based)?pyright|type-?check|vet)(?:$|[ :_-])")),
    ("lint", lazy_regex(r"(?:^|[ :_-])(?:lint|eslint|biome|ruff|flake8|pylint|golangci-lint|clippy|shellcheck)(?:$|[ :_-])")),
    ("build", lazy_regex(r"(?:^|[ :_-])(?:build|compile)(?:$|[ :_-])")),
)
_FAMILIES = {
    program: family
    for family, programs in {
        "go": "go golangci-lint gofmt staticcheck",
        "js": "npm npx pnpm yarn bun bunx node deno jest vitest mocha tsc eslint biome",
        "python": "python python3 pytest tox nox uv poetry hatch pdm mypy pyright ruff flake8 pylint",
        "rust": "cargo rustc",
        "any": "make just task mise invoke rake tests",
    }.items()
    for program in programs.split(" ")
}
_NO_PLACE = lazy_regex(r"[\s|$*^()=]|://")
_SHAPES_OUTPUT = lazy_regex(r"(?:\s+2>&1)?\s*\|\s*(?:head|tail|grep|egrep|rg|tee|cat|sed|awk|wc|sort|uniq)\b.*\Z", re.DOTALL)
_GOES_THERE = lazy_regex(r"\A\s*cd\s+\S{1,400}\s*&&\s*")
_WRONG_CALL = lazy_regex(
    r"\b(?:unrecogni[sz]ed|unknown|no such|invalid) (?:sub-?command|command|task|script)\b|command not found"
    r"|\bunexpected argument\b|[Mm]issing script:|Script not found|No version is set for",
    re.IGNORECASE,
)
_EXITED = lazy_regex(r"\bexit(?:ed)?(?: with)?(?: code| status):? [1-9]\d{0,2}\b|^make(?:\[\d+\])?: \*\*\* ", re.MULTILINE)
_SILENCE = timedelta(hours=3)
_AT_THE_END = 400
_HEAD = 4_000
_END = 2_000
"""Characters read at either end of a text that should show how a command ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One call of a shell.

    ``event`` is the event that shows best how it ended, ``place`` its index in the events. ``tested`` is the outcome of its tests,
    where any were reported. ``said`` is its output about tests or its failure. ``purposes`` are what it was for, without steps that
    only look or prepare. ``where`` are the files and folders it was about, empty if it was about everything. ``only`` are the names
    of the tests it selected. It ran in ``folder``, in the checkout at ``root``.
    """

    command: str
    purposes: frozenset[str]
    outcome: Outcome
    event: Event
    place: int
    where: frozenset[str] = frozenset()
    tested: Outcome = "unknown"
    said: str = ""
    only: frozenset[str] = frozenset()
    root: str = ""
    folder: str = ""

    @property
    def is_check(self) -> bool:
        return self.tested != "unknown" or bool(_checks(self.purposes))

    @property
    def was_called_wrongly(self) -> bool:
        """Whether a program of the line was not there, or did not understand how it was called."""
        return self.outcome == "failed" and _WRONG_CALL.search(self.said) is not None

    @property
    def failed_elsewhere(self) -> bool:
        """Whether its tests passed, and no other check was in its line."""
        return self.tested == "ok" and not any(_ONLY_CHECKS.search(purpose) for purpose in _checks(self.purposes))

    @property
    def only_builds(self) -> bool:
        """Whether it only builds. A test run proves that as well."""
        return self.tested == "unknown" and all(_BUILD.search(purpose) for purpose in self.purposes)

    @property
    def is_narrow(self) -> bool:
        """Whether it covered a part: some files, folders or names of tests. The whole of another checkout is not a part."""
        return bool(self.only) or self.folder != self.root or any(place != self.root for place in self.where)

    @property
    def measures(self) -> bool:
        """Whether it was a benchmark."""
        return any(_MEASURES.search(purpose) for purpose in self.purposes) or " -bench" in self.command

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its checks."""
        of_purposes = frozenset(kind for purpose in _checks(self.purposes) if (kind := _kind(purpose)))
        return of_purposes | {"tests"} if self.tested != "unknown" else of_purposes

    @property
    def signature(self) -> str:
        """The signature of the first failure in its output; empty if the output only shows that it failed."""
        return next(iter(signatures(self.said, limit=3)), "")  # with more than three, the last two come from the end of the text

    @property
    def failure(self) -> str:
        """The first failure in its output, as printed."""
        return first_failure(self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    event: Event
    place: int
    hash: str
    subject: str
    branch: str = ""


@dataclass(slots=True)
class _RunParts:
    command: str = ""
    result: Event | None = None
    tests: Event | None = None
    error: Event | None = None
    place: int = 0


def runs(events: Sequence[Event], cwd: str = "") -> list[Run]:
    """Return the runs in the order in which they ended; a call is one run, whatever number of events it has.

    ``cwd`` is the folder that commands run in, unless they change it.
    """
    parts_of: dict[str, _RunParts] = {}
    for place, event in enumerate(events):
        key = event.call or event.parent or event.id
        match event.type:
            case EventType.COMMAND:
                parts_of.setdefault(key, _RunParts()).command = event.command
            case EventType.TOOL_RESULT if key in parts_of:
                parts_of[key].result = event
            case EventType.TEST_RESULT:
                parts = parts_of.setdefault(key, _RunParts())
                if parts.tests is None or event.status == "failed":
                    parts.tests = event
                parts.command = parts.command or event.command
            case EventType.ERROR if key in parts_of or event.command:
                parts = parts_of.setdefault(key, _RunParts())
                parts.error = event
                parts.command = parts.command or event.command
            case _:
                continue
        parts_of[key].place = place
    found = [run for parts in parts_of.values() if (run := _run(parts, cwd)) is not None]
    return sorted(found, key=lambda run: run.place)


def _run(parts: _RunParts, cwd: str) -> Run | None:
    event = parts.tests or parts.error or parts.result
    if event is None:
        return None
    tested: Outcome = "unknown"
    purposes = purposes_of(parts.command)
    checks = _checks(purposes)
    if parts.tests is not None and not (checks and all(_ONLY_CHECKS.search(purpose) for purpose in checks)):
        tested = "failed" if parts.tests.status == "failed" else "ok"
        if tested == "failed" and tests_went_well(parts.tests.text, checks):
            tested = "ok" if passed_of(parts.tests.text) else "unknown"
        if tested == "ok" and (_is_cut(parts) or _ran_no_test(parts.tests.text)):
            tested = "unknown"
    results = [each for each in (parts.tests, parts.error, parts.result) if each is not None]
    if any(each.status == "failed" for each in results):
        outcome: Outcome = "failed"
    elif any(each.status in ("denied", "interrupted") for each in results):
        outcome = "unknown"
    else:
        outcome = "ok" if any(each.status == "ok" for each in results) else "unknown"
    if outcome == "ok" and parts.tests is None and not went_well(parts.command, event.text):
        outcome = "unknown"
    if outcome == "ok" and parts.tests is None and checks and _COUNTS_ERRORS.search(event.text[-_END:] + event.text[:_END]):
        outcome = "unknown"
    may_hide = tested == "ok" and len(checks) > 1 and _ending(parts.command) != "reported"
    if outcome == "ok" and may_hide and any(_EXITED.search(each.text[-_AT_THE_END:]) for each in results):
        outcome = "failed"
    if event.status != "failed" and outcome == "failed":
        event = next((each for each in results if each.status == "failed"), event)
    root, folder = _gone_to(parts.command, cwd)
    return Run(
        command=parts.command,
        purposes=purposes or (frozenset({"tests"}) if parts.tests is not None else frozenset()),
        outcome=outcome,
        event=event,
        place=parts.place,
        where=_where(parts.command, cwd),
        only=_picked(parts.command),
        root=root,
        folder=folder,
        tested=tested,
        said="\n".join(failing_part(each.text) for each in results) if outcome == "failed" else event.text[:_HEAD],
    )


def failing_part(text: str) -> str:
    """Return the beginning of the text, or of what follows the last tests that all passed if the failure stands there.

    What passing tests print may look like a failure: they provoke errors.
    """
    passed = [found.end() for found in _ALL_PASSED.finditer(text)]
    rest = _whole_lines(text[passed[-1] :]) if passed else ""
    return rest if first_failure(rest) else _whole_lines(text)


def _whole_lines(text: str) -> str:
    head = text[:_HEAD]
    return head if len(text) <= _HEAD or "\n" not in head else head[: head.rindex("\n")]


def _ran_no_test(summary: str) -> bool:
    """Return whether all that passed is that there was nothing to do, or something that is no test."""
    lines = [line for line in summary.splitlines() if not _NOT_ONE_FAILED.fullmatch(line)]
    return bool(lines) and all(_RAN_NO_TEST.search(line) for line in lines)


def tests_went_well(summary: str, purposes: frozenset[str]) -> bool:
    """Return whether, in a line that failed, the failure is that of a text checker and not of the tests."""
    is_checker = any(_ONLY_CHECKS.search(purpose) for purpose in purposes)
    return is_checker and (_OF_A_CHECKER.match(summary) is not None or bool(passed_of(summary)))


def passed_of(summary: str) -> str:
    """Return the count of tests that passed; empty if a summary has none, or if some failed."""
    passed = _COUNTS_PASSED.search(summary)
    return passed.group() if passed is not None and _COUNTS_FAILED.search(summary) is None else ""


def _is_cut(parts: _RunParts) -> bool:
    """Return whether the output about tests may have been cut off."""
    cut = _CUT.search(parts.command)
    return cut is not None and parts.result is not None and parts.result.text.count("\n") + 1 >= int(cut[1] or 10)


def only_looks(command: str) -> bool:
    return all(each.program in LOOKS or each.purpose in PREPARES - _CHANGES for each in _invoked(command))


def purposes_of(command: str) -> frozenset[str]:
    """Return what a command line is for, without programs that only look, prepare, or report on themselves."""
    doing = (each for each in _invoked(command) if each.program not in LOOKS and _ASKS_ABOUT_ITSELF.isdisjoint(each.flags))
    return frozenset(map(_purpose, doing)) - PREPARES


def _purpose(invocation: Invocation) -> str:
    file = posixpath.basename(next(iter(invocation.words[invocation.depth :]), ""))
    inline = not {"-c", "-e", "--eval"}.isdisjoint(invocation.flags)
    return f"{invocation.purpose} {file}" if file and not inline and invocation.purpose in _RUNS_A_FILE else invocation.purpose


def went_well(command: str, said: str) -> bool:
    """Return whether the programs of a line that exited with success succeeded themselves, which a pipe or a «;» hides."""
    match _ending(command):
        case "reported":
            return True
        case "hidden" if _checks(purposes_of(command)):
            return False
        case _:
            ends = said if len(said) <= 2 * _END else f"{said[:_END]}\n{said[-_END:]}"
            return not (_SAYS_IT_FAILED.search(ends) or signatures(ends, limit=1))


def _checks(purposes: frozenset[str]) -> frozenset[str]:
    return frozenset(each for each in purposes if _CHECK.search(each) and not each.endswith((" version", " help")))


@lru_cache(maxsize=2048)
def _ending(command: str) -> Ending:
    return ending(command)


@lru_cache(maxsize=2048)
def _invoked(command: str) -> tuple[Invocation, ...]:
    return invocations(command)


def open_failures(done: Sequence[Run]) -> list[Run]:
    """Return the failures that no later run resolved, the last occurrence of each, latest first.

    A command that was tried again and failed again counts as one failure.
    """
    found: list[Run] = []
    for at in range(len(done) - 1, -1, -1):
        run = done[at]
        if run.outcome != "failed" or not run.purposes:
            continue
        same = (later for later in found if not later.was_called_wrongly or run.was_called_wrongly)
        if any(_is_the_same(run, later) for later in same) or _tried_without_its_wrapper(run, done[at + 1 :]):
            continue
        if run.was_called_wrongly and _called_rightly(run, done[at + 1 :]):
            continue
        if not _is_made_up_for(run, done[at + 1 :]):
            found.append(run)
    return found


def _tried_without_its_wrapper(run: Run, afterwards: Sequence[Run]) -> bool:
    """Return whether the same command was run later without the program in front of it, whose failure it then was."""
    wrapper, _, rest = bare(run.command).partition(" ")
    if "=" in wrapper or " " not in rest or _JOINS.search(rest):
        return False
    return any(" " in (tried := bare(each.command)) and f" {rest}".endswith(f" {tried}") for each in afterwards)


def _called_rightly(run: Run, afterwards: Sequence[Run]) -> bool:
    """Return whether a line with all the words of one that its program did not understand went well."""
    words = set(bare(run.command).split())
    return any(later.outcome == "ok" and words <= set(bare(later.command).split()) for later in afterwards)


def _is_made_up_for(run: Run, afterwards: Sequence[Run]) -> bool:
    missing = needed(run.purposes, tests=run.tested == "failed")
    if run.tested == "ok":
        missing = frozenset(purpose for purpose in missing if _ONLY_CHECKS.search(purpose)) or missing
    if "git commit" in missing and _COMMIT.search(run.said):
        missing -= {"git commit"}
    for later in afterwards:
        if later.outcome != "ok":
            continue
        if makes_up(later, run):
            missing -= later.purposes
        elif is_wider(later, run):
            missing = frozenset(purpose for purpose in missing if _kind(purpose) not in later.kinds | _BUILT_BY_TESTS)
        else:
            continue
        if not missing:  # usually reached early; a session may hold thousands of runs
            return True
    return False


def needed(purposes: frozenset[str], *, tests: bool) -> frozenset[str]:
    """Return the purposes that must succeed to resolve a failed line: its checks if it has any, else all.

    If ``tests`` failed, only those. Compiling is left out where something else is checked, since a check or test includes it.
    """
    checks = _checks(purposes)
    testing = frozenset(purpose for purpose in checks if not _ONLY_CHECKS.search(purpose))
    if tests and testing:
        return testing
    return frozenset(purpose for purpose in checks if not _COMPILE.search(purpose)) or checks or purposes


def _is_the_same(run: Run, later: Run) -> bool:
    same = bool(run.purposes & later.purposes) and run.is_check == later.is_check
    return same and (_covers(run, later) or _covers(later, run))


def makes_up(later: Run, failed: Run) -> bool:
    """Return whether the success of ``later`` shows that what ``failed`` did works now.

    For a check, as much must have been checked: one package's tests are no evidence about another's.
    """
    return bool(later.purposes & failed.purposes) and (not failed.is_check or _covers(later, failed))


def is_wider(later: Run, failed: Run) -> bool:
    """Return whether ``later`` checked everything, under whatever name, and so also what ``failed`` checked.

    This holds only among tools of one language, or where one of the two ran through a task runner, which may be of any language.
    """
    if not (failed.is_check and failed.is_narrow | failed.only_builds | (failed.kinds < later.kinds)):
        return False
    if later.is_narrow or "tests" not in later.kinds or later.tested != "ok" or later.measures:
        return False
    families = {_FAMILIES.get(purpose.partition(" ")[0], "") for run in (later, failed) for purpose in _checks(run.purposes)}
    return "" not in families and len(families - {"any"}) <= 1


_BUILT_BY_TESTS = frozenset({"build"})


def _kind(purpose: str) -> str:
    return next((kind for kind, pattern in _KINDS if pattern.search(purpose)), "")


def reaches(later: str, failed: str) -> bool:
    """Return whether a command line, run in the folder of the failed one, checks all that the failed one checked.

    If the failed one was no check, the answer is true.
    """
    return not _checks(purposes_of(failed)) or _reaches(
        _where(later, _HERE), _picked(later), _where(failed, _HERE), _picked(failed)
    )


_HERE = "/here"


def _covers(wider: Run, narrower: Run) -> bool:
    return _reaches(wider.where, wider.only, narrower.where, narrower.only)


def _reaches(around: frozenset[str], selected: frozenset[str], places: frozenset[str], names: frozenset[str]) -> bool:
    if selected and not (names and all(any(name.startswith(each) for each in selected) for name in names)):
        return False
    return not around or (bool(places) and all(any(_within(place, each) for each in around) for place in places))


def _within(place: str, around: str) -> bool:
    return place == around or around in ("", "/") or place.startswith((f"{around}/", f"{around}:"))


def _where(command: str, cwd: str) -> frozenset[str]:
    folder = cwd
    found: set[str] = set()
    for invocation in _invoked(command):
        if invocation.program == "cd":
            folder = posixpath.join(folder, *invocation.words[:1])
        elif invocation.program not in LOOKS:
            for word in invocation.words[invocation.depth :]:
                if ("/" in word or word == "." or word.rpartition(".")[0]) and not _NO_PLACE.search(word):
                    found.add(posixpath.normpath(posixpath.join(folder, word.removesuffix("...") or ".")))
    return frozenset() if cwd and cwd.rstrip("/") in found else frozenset(found)


def _picked(command: str) -> frozenset[str]:
    found = (name for groups in _SELECTS.findall(command[:_HEAD]) for name in "".join(groups).split("|"))
    return frozenset(bare for name in found if (bare := name.strip("^$(). *")))


def _gone_to(command: str, cwd: str) -> tuple[str, str]:
    """Return the root of what a line is about, the session's folder or another checkout, and the folder it ends up in."""
    root = folder = posixpath.normpath(cwd) if cwd else ""
    for invocation in _invoked(command):
        if invocation.program == "cd":
            folder = posixpath.normpath(posixpath.join(folder, *invocation.words[:1]))
    inside = folder.startswith(f"{root}/") and "worktree" not in folder
    return (root if inside else folder), folder


def bare(command: str) -> str:
    """Return the command without the change of folder and without filters of its output."""
    command = _GOES_THERE.sub("", command[:_HEAD])
    pipe = command.find("|")
    if pipe >= 0 and (shaped := _SHAPES_OUTPUT.search(command, max(0, pipe - 8))) and "&&" not in shaped.group():
        command = command[: shaped.start()]
    return command.strip().removesuffix("2>&1").rstrip()


def commits(events: Sequence[Event]) -> list[Commit]:
    """Return the commits that git reported, in order, also where a later part of the line failed."""
    by_git = {event.call or event.id for event in events if event.type is EventType.COMMAND and "git" in event.command}
    return [
        Commit(event=event, place=place, hash=found["hash"], subject=found["subject"].strip(), branch=found["branch"])
        for place, event in enumerate(events)
        if event.type is EventType.TOOL_RESULT and event.status in ("", "ok", "failed") and _may_be_of(event, by_git)
        for found in _COMMIT.finditer(event.text[:_HEAD])
    ]


def last_branch(events: Sequence[Event]) -> str:
    """Return the branch that git named last when switching or committing.

    Empty if a long silence came after it: an agent that was started again has then recorded its branch itself.
    """
    git_calls = frozenset(event.call or event.id for event in events if event.type is EventType.COMMAND and "git" in event.command)
    after: Event | None = None
    for event in reversed(events):
        if after is not None and after.at - event.at > _SILENCE:
            return ""
        after = event
        if event.type is EventType.TOOL_RESULT and _may_be_of(event, git_calls):
            named = [found for pattern in (_COMMIT, _SWITCHED, _HEAD_IS) for found in pattern.finditer(event.text[:_HEAD])]
            if named:
                last = next(filter(None, max(named, key=lambda found: found.start()).groups()), "")
                return "" if last == "detached HEAD" else str(last)
    return ""


def _may_be_of(result: Event, calls: Collection[str]) -> bool:
    """Return whether a result is of one of the calls, or may be: a command that went on in the background."""
    return (result.call or result.parent) in calls or (bool(calls) and result.tool in _ANSWERS_LATER)


def of_stashed_work(run: Run) -> bool:
    """Return whether the work was put away while it ran: it shows what was so before."""
    return _STASHED.search(run.command[:_HEAD]) is not None


def kinds_in(words: str) -> frozenset[str]:
    """Return the kinds of checks that a sentence names."""
    return frozenset(kind for kind, pattern in _KINDS_IN_WORDS.items() if pattern.search(words))


def started_by(call: Event, events: Sequence[Event]) -> Event | None:
    """Return the command that went on in the background, and which a call waits for.

    It is the one whose result names the process, or the last one not seen to end before the first call that waits for it.
    """
    waits = _WAITS_FOR.match(call.text)
    if waits is None:
        return None
    name = re.compile(rf"(?<![\w-]){re.escape(waits[1])}(?![\w-])")
    results = {event.call: event for event in events if event.type is EventType.TOOL_RESULT and event.call}
    before = next((at for at, each in enumerate(events) if each.type is EventType.TOOL_CALL and name.search(each.text[:_NAME])), 0)
    ran = [event for event in reversed(events[:before]) if event.type is EventType.COMMAND and event.call in results]
    named = (event for event in ran if name.search(results[event.call].text[:_HEAD]))
    return next(named, next((event for event in ran if results[event.call].status == ""), None))
