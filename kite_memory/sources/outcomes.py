"""What a command's output says: which tests and checks passed, and which lines tell why something failed."""

import re
from dataclasses import dataclass
from typing import Literal

_WINDOW_HEAD = 8_000
_WINDOW_TAIL = 24_000
_LINE = 300
_SUMMARY_LINES = 10
_TELLING_LINES = 6

_TEST_COMMAND = re.compile(
    r"""\b(?:
    pytest|py\.test|unittest|manage\.py\ +test|nose2|tox|nox|gotestsum|ginkgo|go\ +test
    |jest|vitest|mocha|ava|jasmine|karma|playwright\ +test|cypress\ +run|node\ +--test|deno\ +test
    |(?:npm|pnpm|yarn|bun)\ +(?:run\ +)?(?:t|test[\w:-]*)
    |cargo\ +(?:\+\w+\ +)?(?:test|nextest|t)
    |rspec|minitest|rake\ +(?:test|spec)|phpunit|pest|ctest|dotnet\ +test|swift\ +test|mix\ +test|zig\ +build\ +test
    |prove|xcodebuild\ [^\n|;&]{0,200}?\btest
    |bazel\ +test|flutter\ +test|dart\ +test|sbt\ +test|bats|busted|lein\ +test|stack\ +test|cabal\ +test
    |(?:gradlew?|mvnw?)\ [^\n|;&]{0,120}?\b(?:test|check|verify)\w*
    |(?:make|just|mise|task|invoke|hatch|uv|poetry|pdm)\ [^\n|;&]{0,60}?\b(?:test|check)[\w:-]*
    )(?![\w-])""",
    re.VERBOSE,
)

_SUMMARY = re.compile(
    r"""(?:
    =+\ .*\b(?:passed|failed|errors?|skipped|deselected|no\ tests\ ran)\b.*\ in\ [\d.:]+.*             # pytest
    |(?:\d+\ (?:(?:subtests\ )?(?:passed|failed|skipped)|errors?|xfailed|xpassed|deselected|rerun|warnings?)    # pytest -q
    (?:,\ )?)+\ in\ [\d.]+.*
    |no\ tests\ ran\ in\ [\d.]+.*
    |(?:FAILED|ERROR)\ \S+(?:::\S.*|\.py\b.*)                                # pytest's short summary
    |(?:ok|FAIL|---\ FAIL:|panic:)\s+\S.*|FAIL|PASS                           # go, TAP
    |not\ ok\b.*|Result:\ (?:PASS|FAIL)|All\ tests\ successful\.               # TAP, prove
    |test\ result:\ .*|Summary\ \[.*\]\ \d+\ tests?\ run:.*|test\ \S.*\ \.\.\.\ FAILED         # cargo, nextest
    |error(?:\[E\d{4}\]:|:\ could\ not\ compile)\ .*
    |(?:Tests|Test\ Suites|Test\ Files|Suites):?\s+\d+\ .*|Errors\s+\d+\ errors?|●\ .+\ ›\ .+  # jest, vitest
    |Ran\ \d+\ tests?\ in\ .*|OK(?:\ \(.*\)|,\ but\ .*)?|FAILED\ \(.*\)       # unittest, phpunit
    |\d+\ (?:passing|failing|pending)\b.*                                     # mocha
    |\d+\ (?:examples?|tests?|runs),\ \d+\ .*                                 # rspec, ExUnit, minitest
    |(?:\[(?:INFO|WARNING|ERROR)\]\ )?(?:Tests\ run:\ \d+,.*|BUILD\ (?:SUCCESS|FAILURE))   # maven
    |\[\ +\d+\ tests\ (?:successful|failed)\ +\]                             # JUnit's console
    |Tests:\ \d+,\ Assertions:\ .*                                           # phpunit
    |(?:Passed|Failed)!\s+-\ .*                                               # dotnet
    |\d+%\ tests\ passed.*                                                    # ctest
    |\#\ (?:tests|pass|fail)\ \d+                                             # node --test
    |ℹ\ (?:tests|pass|fail)\ \d+
    |\d+\ (?:pass|fail)                                                       # bun
    |\d+\ (?:passed|failed|flaky|skipped)(?:\ \(.*\))?                        # playwright
    |(?:ok|FAILED)\ \|\ .*                                                    # deno
    |Executed\ \d+\ tests?,\ with\ .*                                         # swift
    |BUILD\ (?:SUCCESSFUL|FAILED)\b.*|\d+\ tests?\ completed\b.*              # gradle
    )""",
    re.VERBOSE,
)
_UNMISTAKABLE = re.compile(
    r"^(?:=+ .{0,200}\b(?:passed|failed|errors?)\b.{0,200} in [\d.:]+|test result: (?:ok|FAILED)\."
    r"|(?:Tests|Test Suites): .{0,200}\btotal|\[ +\d+ tests (?:successful|failed) +\]$|\[(?:INFO|ERROR)\] Tests run: \d+,"
    r"|ok  ?\t\S{1,200}\t(?:[\d.]+s|\(cached\))|FAIL\t\S{1,200}\t[\d.]+s$|Ran \d+ tests? in )",
    re.MULTILINE,
)
"""What nothing but a test runner prints; enough without a command that says test."""

_FAILING = re.compile(
    r"\b[1-9]\d* (?:(?:subtests )?failed|failing|failures?|errors?|fail)\b|^\s*(?:FAIL|FAILED|ERROR|--- FAIL|panic)\b"
    r"|test result: FAILED|Failed!"
    r"|\b(?:Failures|Errors|Failed): *[1-9]|^\s*[#ℹ] fail [1-9]|BUILD FAIL(?:ED|URE)|\bno tests ran\b|^\s*(?!100)\d+% tests passed"
    r"|\b[1-9]\d* tests? failed|^not ok\b(?!.*# ?(?i:todo|skip)\b)|^Result: FAIL|could not compile|^error\[E|\.\.\. FAILED$|^● "
)
_GO_PACKAGE = re.compile(r"ok\s+\S+\s+(?:[\d.]+s|\(cached\))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``summary`` holds the runner's own lines."""

    status: Literal["ok", "failed"]
    summary: str


def verdict_of_tests(command: str, output: str) -> Verdict | None:
    """What the tests said, or else what a checker or compiler did, if ``command`` ran any and ``output`` shows it."""
    window = _window(output)
    return _of_tests(command, window) or _of_checks(command, window)


def _of_tests(command: str, window: str) -> Verdict | None:
    if not _TEST_COMMAND.search(command[:4000]) and not _UNMISTAKABLE.search(window):
        return None
    found = [line for line in _lines(window) if _SUMMARY.fullmatch(line)]
    if not found:
        return None
    failing = [line for line in found if _FAILING.search(line)]
    passed = [line for line in found if line not in failing]
    packages = [line for line in passed if _GO_PACKAGE.match(line)]
    if len(packages) > 3:
        passed = [line for line in passed if line not in packages] + [f"ok, {len(packages)} packages"]
    lines = [*failing[: _SUMMARY_LINES - 2], *passed[-2 if failing else -_SUMMARY_LINES :]]
    return Verdict(status="failed" if failing else "ok", summary="\n".join(lines))


_CHECK_COMMAND = re.compile(
    r"""\b(?:
    (?:vue-)?tsc|eslint|biome\ +(?:check|lint|ci)|ruff\ +check|d?mypy|(?:based)?pyright|flake8|pylint|golangci-lint
    |cargo\ +(?:\+\w+\ +)?(?:check|build|clippy)|rustc|go\ +(?:build|vet)|gcc|g\+\+|clang(?:\+\+)?|javac|kotlinc|swiftc
    |(?:swift|dotnet)\ +build
    |(?:npm|pnpm|yarn|bun)\ +(?:run\ +)?(?:lint|type-?check|build|compile)[\w:-]*
    |(?:make|just|mise|task|hatch|uv|poetry|pdm)\ [^\n|;&]{0,60}?\b(?:lint|type-?check|build|compile)[\w:-]*
    )(?![\w-])""",
    re.VERBOSE,
)
_CHECKED = re.compile(
    r"""(?:
    Success:\ no\ issues\ found\ in\ \d+\ source\ files?|Found\ \d+\ errors?\b.*|All\ checks\ passed!   # mypy, ruff, tsc
    |✖\ \d+\ problems?\ \(.*\)|\d+\ errors?,\ \d+\ warnings?\b.*|\d+\ issues?[.:].*             # eslint, pyright, golangci-lint
    |error:\ (?:could\ not\ compile|aborting\ due\ to)\ .*|Finished\ .*\ target\(s\)\ in\ .*        # cargo
    |Checked\ \d+\ files?\ in\ .*|Build\ succeeded\.|Build\ FAILED\.                           # biome, dotnet
    )""",
    re.VERBOSE,
)
_WRONG = re.compile(
    r"""(?:
    \S{1,250}\(\d+,\d+\):\ error\ .*|\S{1,250}:\d+:\d+\ -\ error\ .*        # tsc, dotnet
    |\S{1,250}:\d+(?::\d+)?:\ (?:fatal\ )?error:\ .*|\S{1,250}\.go:\d+:\d+:\ .*   # mypy, gcc, clang, javac, go
    |\S{1,250}:\d+:\d+:\ [A-Z]{1,4}\d{2,4}:?\ .*|[A-Z]{1,4}\d{2,4}\ (?:\[\*\]\ )?\S.*   # flake8, pylint, ruff
    |\d+:\d+\s+error\s+.*|error(?:\[E\d{4}\])?:\ .*                          # eslint, rustc
    )""",
    re.VERBOSE,
)
_CHECK_FAILED = re.compile(
    r"Found [1-9]\d* errors?\b(?!.*\b0 remaining)|✖ .*\([1-9]\d* errors?|[1-9]\d* errors?, |[1-9]\d* issues?|error: |Build FAILED"
)


def _of_checks(command: str, window: str) -> Verdict | None:
    """What was found wrong, with the words in which the checker sums it up. One that says nothing at all has no verdict."""
    if not _CHECK_COMMAND.search(command[:4000]):
        return None
    lines = _lines(window)
    told = [line for line in lines if _CHECKED.fullmatch(line)]
    wrong = list(dict.fromkeys(line for line in lines if _WRONG.fullmatch(line) and line not in told))
    if wrong or any(_CHECK_FAILED.match(line) for line in told):
        return Verdict(status="failed", summary="\n".join([*wrong[: _SUMMARY_LINES - 2], *told[-2:]]))
    return Verdict(status="ok", summary="\n".join(told[-_SUMMARY_LINES:])) if told else None


_WRAPPED = re.compile(
    r"ERROR task failed|exit(?:ed with)?(?: code| status)|Command failed with|ELIFECYCLE|^make(?:\[\d+\])?: \*\*\*"
)
"""What only says that something below failed."""
_STRONG = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt)\b(?::|$)|\b(?:error|fatal|panic)(?:\[\w+\])?:|^E\s{2,}\S"
    r"|^--- FAIL|^FAILED\b|\bERROR\b|\bFATAL\b|^npm ERR!|^thread '.*' panicked|^FAIL\s|^[\w./\\@+-]+\.\w+:\d+(?::\d+)?:\s",
)
_WEAK = re.compile(
    r"(?i)\b(?:error|exception|failed|failure|cannot|can't|could ?n[o']t|unable to|undefined|not found|no such|denied"
    r"|refused|unexpected|invalid|missing|timed? ?out|unknown|mismatch|conflict|unrecogni[sz]ed|not allowed|is not|does not)\b"
)
_EXIT_CODE = re.compile(r"\A(?:Error: )?Exit code \d+\s*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def telling_lines(output: str) -> str:
    """The few lines of a failure that one would search for when meeting it again."""
    lines = _lines(_window(_EXIT_CODE.sub("", output, count=1)))
    telling = [line for line in lines if not _WRAPPED.search(line)] or lines
    chosen = [line for line in telling if _STRONG.search(line)] or [line for line in telling if _WEAK.search(line)] or telling[:2]
    distinct = list(dict.fromkeys(chosen))
    if len(distinct) > _TELLING_LINES:
        distinct = [*distinct[: _TELLING_LINES - 2], *distinct[-2:]]
    return "\n".join(distinct)


def _window(output: str) -> str:
    """Both ends of it, without colours: patterns run over a bounded text only."""
    if len(output) > _WINDOW_HEAD + _WINDOW_TAIL:
        output = f"{output[:_WINDOW_HEAD]}\n{output[-_WINDOW_TAIL:]}"
    return _COLOUR.sub("", output) if "\x1b" in output else output


def _lines(window: str) -> list[str]:
    return [stripped[:_LINE] for line in window.splitlines() if (stripped := line.strip())]
