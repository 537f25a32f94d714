"""Commands and how they ended, and which later success makes up for a failure."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Literal

from kite_memory.model.event import Event, EventType
from kite_memory.text.error_signature import first_failure, signatures
from kite_memory.text.shell import Ending, Invocation, ending, invocations

Outcome = Literal["ok", "failed", "unknown"]

_LOOK = """
awk basename cat cd cmp column cut date diff dirname du echo egrep env export expr false fgrep file find fold grep head id jq kill
less ls md5 md5sum more nl paste pgrep pkill printf ps pwd readlink realpath rg sed seq set sha256sum shasum sleep sort stat tail
tee test time touch tr tree true type uname uniq wc which xargs yes yq
"""
LOOKS = frozenset(_LOOK.split())
"""Programs that only look, or that end with 1 to say «no»."""

_PREPARING = "add branch check-ignore diff fetch log ls-files ls-remote remote rev-parse show status"
PREPARES = frozenset(f"git {word}" for word in _PREPARING.split(" "))
"""What a line may begin with, whatever it is for."""
_CHECK = re.compile(
    r"(?:^|[ :_-])(?:tests?|e2e|check|ci|verify|lint|vet|typecheck|type-check|build|compile|clippy|pytest|mypy|pyright|ruff"
    r"|flake8|pylint|eslint|biome|tsc|jest|vitest|mocha|tox|nox|rspec|phpunit|ctest|golangci-lint|shellcheck)(?:$|[ :_-])"
)
_BUILD = re.compile(r"(?:^|[ :_-])(?:build|compile|vet|check|gofmt|tsc)(?:$|[ :_-])")
_COMPILE = re.compile(r"(?:^|[ :_-])(?:build|compile)(?:$|[ :_-])")
_ONLY_CHECKS = re.compile(
    r"(?:^|[ :_-])(?:tsc|eslint|biome|ruff|d?mypy|(?:based)?pyright|flake8|pylint|golangci-lint|cargo check|clippy|rustc|gcc|g\+\+"
    r"|clang(?:\+\+)?|javac|kotlinc|swiftc|lint|type-?check|build|compile|vet)(?:$|[ :])"
)
"""What says of a program's text that it is well, and nothing of what the program does."""
_SAYS_IT_FAILED = re.compile(
    r"(?<!\b0 )\b(?:BUILD )?FAIL(?:ED|URES?)?\b(?!\W{1,3}0\b)"
    r"|(?i:\b(?:exit|status|code|rc)(?: code| status)?\s?[:=]+ ?(?!2\d\d\b)[1-9]\d{0,2}\b)"
)
_CUT = re.compile(r"\|\s*head(?:\s+-(?:n\s?)?(\d{1,6}))?\s*\Z")
_RAN_NO_TEST = re.compile(
    r"\[no tests? (?:to run|files)\]|^test result: ok\. 0 passed|^(?:testing: warning: no tests to run|running 0 tests)$"
    r"|^=* ?(?:\d+ (?:deselected|skipped|warnings?)(?:, )?)+ in |^DONE 0 tests|^0 (?:passing|examples, 0 failures)"
    r"|^No tests executed!|^Executed 0 tests|^[#ℹ] (?:tests|pass) +0$|^0 pass$|^ok \| 0 passed|^Ran 0 tests"
    r"|^\d+ files? (?:would be left unchanged|already formatted)|^All matched files use Prettier"
    r"|^Checked \d+ files?|^Build succeeded"
)
_NOT_ONE_FAILED = re.compile(r"\s*(?:PASS|OK|0 fail|[#ℹ] (?:fail|cancelled) +0)?\s*")
_OF_A_CHECKER = re.compile(
    r"(?:vet: )?\S{1,250}(?::\d+:|\(\d+[,)])|\d+:\d+\s+[Ee]rror\b|Found \d+ |\d+ issues?\b|✖ \d+ problem|error(?:\[|: (?!test ))"
    r"|level=error |[Ww]ould reformat|(?:\[\S{1,80}\] )?ERROR task failed|make(?:\[\d+\])?: "
)
"""What a failure begins with that is none of tests, for those are told first."""
_RUNS_A_FILE = frozenset({"bash", "bun", "deno run", "go run", "java", "node", "perl", "php", "python", "ruby", "sh", "tsx", "zsh"})
"""What it is for is the file's to say: one script that runs tells nothing of another."""
_ASKS_ABOUT_ITSELF = frozenset({"--version", "--help", "--dry-run", "--collect-only", "--no-run"})
_COMMIT = re.compile(
    r"^\[(?P<branch>detached HEAD|[^\]\s]{1,200})(?: \([\w -]{1,20}\))? (?P<hash>[0-9a-f]{7,40})\] (?P<subject>.{1,300})$",
    re.MULTILINE,
)
_SWITCHED = re.compile(r"^(?:Switched to (?:a new )?branch|Already on) '(?P<branch>[^'\n]{1,200})'", re.MULTILINE)
_SELECTS = re.compile(
    r"\s(?:-run|-k|-t|--(?:testNamePattern|test-name-pattern|grep|filter|tests))[\s=]+"
    r"(?:'([^'\n]{1,400})'|\"([^\"\n]{1,400})\"|([^\s'\"|;&]{1,200}))"
)
"""What picks some of the tests by their names."""
_MEASURES = re.compile(r"(?:^|[ :_./-])bench(?:es|marks?|marking)?(?:$|[ :_.-])")
_KINDS = (
    ("tests", re.compile(r"(?:^|[ :_-])(?:tests?|e2e|pytest|jest|vitest|mocha|tox|nox|rspec|phpunit|ctest)(?:$|[ :_-])")),
    ("types", re.compile(r"(?:^|[ :_-])(?:tsc|d?mypy|(?:based)?pyright|type-?check|vet)(?:$|[ :_-])")),
    ("lint", re.compile(r"(?:^|[ :_-])(?:lint|eslint|biome|ruff|flake8|pylint|golangci-lint|clippy|shellcheck)(?:$|[ :_-])")),
    ("build", re.compile(r"(?:^|[ :_-])(?:build|compile)(?:$|[ :_-])")),
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
_NO_PLACE = re.compile(r"[\s|$*^()=]|://")
_SHAPES_OUTPUT = re.compile(r"(?:\s+2>&1)?\s*\|\s*(?:head|tail|grep|egrep|rg|tee|cat|sed|awk|wc|sort|uniq)\b.*\Z", re.DOTALL)
_GOES_THERE = re.compile(r"\A\s*cd\s+\S{1,400}\s*&&\s*")
_SILENCE = timedelta(hours=3)
_HEAD = 4_000
_END = 2_000
"""Of a text that should say how a command ended, so much at either end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One call of a shell. ``event`` is the one that tells best how it ended; ``place`` is where it stands among the events.

    ``tested`` says what its tests came to, where it ran any that were told of; ``said`` is what it said of its tests or its
    failure. ``purposes`` has what it was for, without what only looks or prepares; ``where`` has the files and folders it was
    about, and nothing where it was about everything; ``only`` has the names of the tests that it picked. It was run in
    ``folder``, of the checkout at ``root``.
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
    def only_builds(self) -> bool:
        """Whether tests that run tell as much."""
        return self.tested == "unknown" and all(_BUILD.search(purpose) for purpose in self.purposes)

    @property
    def is_narrow(self) -> bool:
        """Whether it was about a part: some files, folders or names of tests. Another checkout, whole, is not a part."""
        return bool(self.only) or self.folder != self.root or any(place != self.root for place in self.where)

    @property
    def measures(self) -> bool:
        """Whether it was run for its times."""
        return any(_MEASURES.search(purpose) for purpose in self.purposes) or " -bench" in self.command

    @property
    def kinds(self) -> frozenset[str]:
        """Of checks, by what they look at."""
        told = frozenset(kind for purpose in _checks(self.purposes) if (kind := _kind(purpose)))
        return told | {"tests"} if self.tested != "unknown" else told

    @property
    def signature(self) -> str:
        """The first failure that it tells of; empty where it says no more than that it failed."""
        return next(iter(signatures(self.said, limit=3)), "")  # of more than that, two are its last

    @property
    def failure(self) -> str:
        """As `signature`, in the words that were printed."""
        return first_failure(self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    event: Event
    place: int
    hash: str
    subject: str
    branch: str = ""


@dataclass(slots=True)
class _Telling:
    command: str = ""
    result: Event | None = None
    tests: Event | None = None
    error: Event | None = None
    place: int = 0


def runs(events: Sequence[Event], cwd: str = "") -> list[Run]:
    """In the order in which they ended. A call is one run, whatever number of events tell of it.

    ``cwd`` is the folder that commands are run in, unless they change it.
    """
    telling: dict[str, _Telling] = {}
    for place, event in enumerate(events):
        key = event.call or event.parent or event.id
        match event.type:
            case EventType.COMMAND:
                telling.setdefault(key, _Telling()).command = event.command
            case EventType.TOOL_RESULT if key in telling:
                telling[key].result = event
            case EventType.TEST_RESULT:
                told = telling.setdefault(key, _Telling())
                if told.tests is None or event.status == "failed":
                    told.tests = event
                told.command = told.command or event.command
            case EventType.ERROR if key in telling or event.command:
                told = telling.setdefault(key, _Telling())
                told.error = event
                told.command = told.command or event.command
            case _:
                continue
        telling[key].place = place
    found = [run for told in telling.values() if (run := _run(told, cwd)) is not None]
    return sorted(found, key=lambda run: run.place)


def _run(told: _Telling, cwd: str) -> Run | None:
    event = told.tests or told.error or told.result
    if event is None:
        return None
    tested: Outcome = "unknown"
    purposes = purposes_of(told.command)
    checks = _checks(purposes)
    if told.tests is not None and not (checks and all(_ONLY_CHECKS.search(purpose) for purpose in checks)):
        tested = "failed" if told.tests.status == "failed" else "ok"
        if tested == "failed" and tests_went_well(told.tests.text, checks):
            tested = "unknown"
        if tested == "ok" and (_is_cut(told) or _ran_no_test(told.tests.text)):
            tested = "unknown"
    results = [each for each in (told.tests, told.error, told.result) if each is not None]
    if any(each.status == "failed" for each in results):
        outcome: Outcome = "failed"
    elif any(each.status in ("denied", "interrupted") for each in results):
        outcome = "unknown"
    else:
        outcome = "ok" if any(each.status == "ok" for each in results) else "unknown"
    if outcome == "ok" and told.tests is None and not went_well(told.command, event.text):
        outcome = "unknown"
    if event.status != "failed" and outcome == "failed":
        event = next(each for each in results if each.status == "failed")
    root, folder = _gone_to(told.command, cwd)
    return Run(
        command=told.command,
        purposes=purposes or (frozenset({"tests"}) if told.tests is not None else frozenset()),
        outcome=outcome,
        event=event,
        place=told.place,
        where=_where(told.command, cwd),
        only=_picked(told.command),
        root=root,
        folder=folder,
        tested=tested,
        said="\n".join(each.text[:_HEAD] for each in results) if outcome == "failed" else event.text[:_HEAD],
    )


def _ran_no_test(summary: str) -> bool:
    """Whether all that passed is that there was nothing to do, or what is no test."""
    lines = [line for line in summary.splitlines() if not _NOT_ONE_FAILED.fullmatch(line)]
    return bool(lines) and all(_RAN_NO_TEST.search(line) for line in lines)


def tests_went_well(summary: str, purposes: frozenset[str]) -> bool:
    """Whether, of a line that failed, it was what checks the text beside the tests."""
    return any(_ONLY_CHECKS.search(purpose) for purpose in purposes) and _OF_A_CHECKER.match(summary) is not None


def _is_cut(told: _Telling) -> bool:
    """Whether what was said of tests may have gone on."""
    cut = _CUT.search(told.command)
    return cut is not None and told.result is not None and told.result.text.count("\n") + 1 >= int(cut[1] or 10)


def purposes_of(command: str) -> frozenset[str]:
    """What a line is for, without what only looks, prepares, or asks a program about itself."""
    doing = (each for each in _invoked(command) if each.program not in LOOKS and _ASKS_ABOUT_ITSELF.isdisjoint(each.flags))
    return frozenset(map(_purpose, doing)) - PREPARES


def _purpose(invocation: Invocation) -> str:
    file = posixpath.basename(next(iter(invocation.words[invocation.depth :]), ""))
    inline = not {"-c", "-e", "--eval"}.isdisjoint(invocation.flags)
    return f"{invocation.purpose} {file}" if file and not inline and invocation.purpose in _RUNS_A_FILE else invocation.purpose


def went_well(command: str, said: str) -> bool:
    """Whether the programs of a line that ended well did so too, which a pipe or a «;» hides."""
    match _ending(command):
        case "told":
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
    """Failures that no later run made up for, the last of each, the latest first.

    What was tried again and failed again is one failure.
    """
    found: list[Run] = []
    for at in range(len(done) - 1, -1, -1):
        run = done[at]
        if run.outcome != "failed" or not run.purposes:
            continue
        if any(_is_the_same(run, later) for later in found):
            continue
        if not _is_made_up_for(run, done[at + 1 :]):
            found.append(run)
    return found


def _is_made_up_for(run: Run, afterwards: Sequence[Run]) -> bool:
    missing = needed(run.purposes, tests=run.tested == "failed")
    for later in afterwards:
        if later.outcome != "ok":
            continue
        if makes_up(later, run):
            missing -= later.purposes
        elif is_wider(later, run):
            missing = frozenset(purpose for purpose in missing if _kind(purpose) not in later.kinds | _BUILT_BY_TESTS)
        else:
            continue
        if not missing:  # soon, as a rule, and a session may hold thousands of runs
            return True
    return False


def needed(purposes: frozenset[str], *, tests: bool) -> frozenset[str]:
    """What has to go well before a line that failed is made up for: all of it that checks, else all of it.

    Where ``tests`` failed those alone; and to check or test anything, it has to be built.
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
    """Whether the success of ``later`` says that what ``failed`` did works now.

    Of a check, that as much was checked: a package's tests say nothing about another's.
    """
    return bool(later.purposes & failed.purposes) and (not failed.is_check or _covers(later, failed))


def is_wider(later: Run, failed: Run) -> bool:
    """Whether ``later`` checked all there is, by whatever name, and so what ``failed`` checked, too.

    Only of one language's tools, or where one of them is called through a task runner, which may be anybody's.
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
    """Whether a command line, run where another failed, checks all that the other checked; of what is no check nothing is asked."""
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
    """The root of what a line is about, which is where the session ran or another checkout, and the folder it ends up in."""
    root = folder = posixpath.normpath(cwd) if cwd else ""
    for invocation in _invoked(command):
        if invocation.program == "cd":
            folder = posixpath.normpath(posixpath.join(folder, *invocation.words[:1]))
    inside = folder.startswith(f"{root}/") and "worktree" not in folder
    return (root if inside else folder), folder


def bare(command: str) -> str:
    """The command without where it is run and what shortens its output."""
    command = _GOES_THERE.sub("", command[:_HEAD])
    pipe = command.find("|")
    if pipe >= 0 and (shaped := _SHAPES_OUTPUT.search(command, max(0, pipe - 8))) and "&&" not in shaped.group():
        command = command[: shaped.start()]
    return command.strip().removesuffix("2>&1").rstrip()


def commits(events: Sequence[Event]) -> list[Commit]:
    """What git said it had committed, in order; also where the line went on to something that failed."""
    by_git = {event.call or event.id for event in events if event.type is EventType.COMMAND and "git" in event.command}
    return [
        Commit(event=event, place=place, hash=found["hash"], subject=found["subject"].strip(), branch=found["branch"])
        for place, event in enumerate(events)
        if event.type is EventType.TOOL_RESULT and event.status in ("", "ok", "failed") and (event.call or event.parent) in by_git
        for found in _COMMIT.finditer(event.text[:_HEAD])
    ]


def last_branch(events: Sequence[Event]) -> str:
    """What git named last, in switching or in committing; empty where a long silence came after it, for then an agent that
    was started again has noted its branch itself.
    """
    told = frozenset(event.call or event.id for event in events if event.type is EventType.COMMAND and "git" in event.command)
    after: Event | None = None
    for event in reversed(events):
        if after is not None and after.at - event.at > _SILENCE:
            return ""
        after = event
        if event.type is EventType.TOOL_RESULT and (event.call or event.parent) in told:
            named = [found for pattern in (_COMMIT, _SWITCHED) for found in pattern.finditer(event.text[:_HEAD])]
            if named:
                last = max(named, key=lambda found: found.start())["branch"]
                return "" if last == "detached HEAD" else str(last)
    return ""
