"""Results in a command's output: which tests and checks passed, and which lines explain a failure."""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import orjson

from kite_memory.redaction import drop_private
from kite_memory.redaction.cutting import beginning, ends
from kite_memory.text import lazy_regex
from kite_memory.text.shell import acting, purposes

_WINDOW_HEAD = 8_000
_WINDOW_TAIL = 24_000
_LINE = 300
_SUMMARY_LINES = 10
_TELLING_LINES = 6
_COMMAND = 4_000
_WHOLE = 200
"""A longer command may have been stored only in part."""

_TEST_COMMAND = lazy_regex(
    r"""\b(?:
    pytest|py\.test|unittest|(?:manage\.py|rails)\ +test|nose2|tox|nox|gotestsum|ginkgo|go\ +test|JUnitCore
    |jest|vitest|mocha|ava|jasmine|karma|playwright\ +test|cypress\ +run|node\ +--test|deno\ +test
    |(?:npm|pnpm|yarn|bun)\ +t|(?:npm|pnpm|yarn|bun|turbo|nx|lerna|moon|deno\ +task|composer)\ [^\n|;&]{0,80}?\btest[\w:-]*
    |cargo\ +(?:\+\w+\ +)?(?:test|nextest|t)
    |rspec|minitest|rake\ +(?:test|spec)|phpunit|pest|ctest|dotnet\ +test|swift\ +test|mix\ +test|zig\ +build\ +test
    |prove|xcodebuild\ [^\n|;&]{0,200}?\btest
    |bazel\ +test|flutter\ +test|dart\ +test|sbt\ +test|bats|busted|lein\ +test|stack\ +test|cabal\ +test
    |(?:gradlew?|mvnw?)\ [^\n|;&]{0,120}?\b(?:test|check|verify)\w*|gradlew?\ [^\n|;&]{0,120}?\bbuild
    |(?:make|just|mise|task|invoke|hatch|uv|poetry|pdm)\ [^\n|;&]{0,60}?\b(?:test|check)[\w:-]*
    )(?![\w-])""",
    re.VERBOSE,
)

_SUMMARY = lazy_regex(
    r"""(?:
    =+\ .*\b(?:passed|failed|errors?|skipped|deselected|no\ tests\ ran)\b.*\ in\ [\d.:]+.*             # pytest
    |(?:\d+\ (?:(?:subtests\ )?(?:passed|failed|skipped)|errors?|xfailed|xpassed|deselected|rerun|warnings?)    # pytest -q
    (?:,\ )?)+\ in\ [\d.]+.*
    |no\ tests\ ran\ in\ [\d.]+.*
    |(?:FAILED|ERROR)\ \S+(?:::\S.*|\.py\b.*)                                # pytest's short summary
    |INTERNALERROR>\ \S.*|ImportError\ while\ loading\ conftest\ .*|ERROR:\ (?:usage|file\ or\ directory\ not\ found|Coverage)\b.*
    |ok\s+(?:\d+\b.*|-\ .*|\S+\s+(?:[\d.]+s|\(cached\)).*)|(?:FAIL|---\ FAIL:|panic:)\s+\S.*|FAIL|PASS     # go, TAP
    |DONE\ \d+\ tests?\b.*|===\ FAIL:\ \S.*                                   # gotestsum
    |not\ ok\b.*|Bail\ out!.*|Result:\ (?:PASS|FAIL)|All\ tests\ successful\.    # TAP, prove
    |test\ result:\ .*|Summary\ \[.*\]\ [\d/]+\ tests?\ run:.*|test\ \S.*\ \.\.\.\ FAILED      # cargo, nextest
    |error(?:\[E\d{4}\]:|:\ (?:could\ not\ compile|test\ (?:run\ )?failed\b))\ ?.*
    |(?:Tests|Test\ Suites|Test\ Files|Suites):?\s+\d+\ .*|Errors\s+\d+\ errors?|●\ .+\ ›\ .+  # jest, vitest
    |●\ Test\ suite\ failed\ to\ run|No\ tests?\ (?:files?\ )?found,\ exiting\ with\ code\ 1
    |Jest:\ .*\ threshold\ .*\ not\ met.*|ERROR:\ Coverage\ for\ .*
    |Ran\ \d+\ tests?\ in\ .*|OK(?:\ \(.*\)|,\ but\ .*)?|FAILED\ \(.*\)       # unittest, phpunit, JUnitCore
    |(?:FAIL|ERROR):\ test\w*\ \(.*\)
    |\d+\ (?:passing|failing|pending)\b.*                                     # mocha
    |(?:\d+\ (?:doctests?|propert(?:y|ies)),\ )*\d+\ (?:examples?|specs?|tests?|runs),\ \d+\ .*  # rspec, ExUnit, minitest
    |rspec\ \./\S+\ \#\ .*
    |(?:\[(?:INFO|WARNING|ERROR)\]\ )?(?:Tests\ run:\ \d+,.*|BUILD\ (?:SUCCESS|FAILURE))   # maven
    |\[\ +\d+\ tests\ (?:successful|failed)\ +\]                             # JUnit's console
    |Tests:\ \d+,\ Assertions:\ .*|No\ tests\ executed!|PHP\ (?:Fatal|Parse)\ error:\ .*    # phpunit
    |(?:Passed|Failed)!\s+-\ .*|Test\ summary:\ total:\ .*|Test\ Run\ (?:Successful|Failed)\.  # dotnet
    |Failed\ \S.*\ \[[<\d].*\]
    |\d+%\ tests\ passed.*|\[\ \ (?:PASSED|FAILED)\ \ \]\ \d+\ tests?\b.*      # ctest, GoogleTest
    |[\#ℹ]\ (?:tests|pass|fail|cancelled)\ +\d+                               # node --test, tape
    |\d+\ (?:pass|fail)|[1-9]\d*\ errors?|\(fail\)\ .+                         # bun
    |\d+\ (?:passed|failed|flaky|skipped|interrupted|did\ not\ run)(?:\ \(.*\))?    # playwright
    |\d+\ errors?\ (?:was|were)\ not\ a\ part\ of\ any\ test.*
    |(?:ok|FAILED)\ \|\ .*|error:\ (?:Test\ failed|Type\ checking\ failed|No\ test\ modules\ found).*    # deno
    |Executed\ \d+\ tests?,\ with\ .*|\S\ Test\ run\ with\ \d+\ tests?\ .*      # swift
    |BUILD\ (?:SUCCESSFUL|FAILED)\b.*|\d+\ tests?\ completed\b.*|\S.*\ >\ \S.*\ FAILED      # gradle
    )""",
    re.VERBOSE,
)
_UNMISTAKABLE = lazy_regex(
    r"^(?:=+ .{0,200}\b(?:passed|failed|errors?)\b.{0,200} in [\d.:]+|test result: (?:ok|FAILED)\."
    r"|(?:Tests|Test Suites): .{0,200}\btotal|\[ +\d+ tests (?:successful|failed) +\]$|\[(?:INFO|ERROR)\] Tests run: \d+,"
    r"|ok  ?\t\S{1,200}\t(?:[\d.]+s|\(cached\))|FAIL\t\S{1,200}\t[\d.]+s$|Ran \d+ tests? in )",
    re.MULTILINE,
)
"""Output that only a test runner prints; sufficient even if the command is not a test command."""

_FAILING = lazy_regex(
    r"\b[1-9]\d* (?:(?:subtests |exec |tests? )?failed|failing|failures?|errors?|fail|timed out|interrupted)\b"
    r"|^(?:FAIL|FAILED|ERROR|--- FAIL|=== FAIL|panic|ImportError|rspec|PHP|error)\b"
    r"|^(?:INTERNALERROR>|Bail out!|Jest:|\(fail\)|Failed!|● )|^(?:Failed|Test Run Failed\.|Result: FAIL|\[  FAILED)"
    r"|test result: FAILED|\bTest run with .* failed after|\.\.\. FAILED$| > .* FAILED$|\bno tests ran\b|^No tests? .* code 1$"
    r"|\b(?:Failures|Errors|[Ff]ailed): *[1-9]|^[#ℹ] (?:fail|cancelled) +[1-9]|BUILD FAIL(?:ED|URE)|^(?!100)\d+% tests passed"
    r"|^not ok\b(?!.*# ?(?i:todo|skip)\b)"
)
_LOG = lazy_regex(r"\.(?:log|out|err|txt)\b|/tmp/|\boutput\b|\bresults?\b")
_GO_PACKAGE = lazy_regex(r"ok\s+\S+\s+(?:[\d.]+s|\(cached\))")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckVerdict:
    """Result of tests or checks. ``summary`` holds lines of the runner's output."""

    status: Literal["ok", "failed"]
    summary: str


def verdict_of_tests(command: str, output: str) -> CheckVerdict | None:
    """Return the result of tests, checkers or compilers, if ``command`` ran any and ``output`` shows it."""
    window = _window(output)
    ran = _ran(command[:_COMMAND])
    testing = bool(_TEST_COMMAND.search(ran))
    tests = _of_tests(window, ran) if testing or (_UNMISTAKABLE.search(window) and not _only_shows(command)) else None
    if tests is not None and tests.status == "failed":
        return tests
    checks = _of_checks(ran, window, testing=testing, reported=tests is not None)
    if tests is None or checks is None or checks.status == "ok":
        return tests or checks
    return CheckVerdict(status="failed", summary="\n".join([checks.summary, *tests.summary.splitlines()[-2:]]))


@lru_cache(maxsize=256)
def _ran(command: str) -> str:
    """Return the programs of a line that may test or check, without arguments of «grep» or of a commit message."""
    if not any(pattern.search(command) for pattern in (_TEST_COMMAND, _CHECK_COMMAND, _BUILD_COMMAND)):
        return ""
    return "\n".join(each for each in acting(command) if not each.startswith(("git ", "gh ")))


_SHOWS = frozenset({"git blame", "git diff", "git grep", "git log", "git show"})


def _only_shows(command: str) -> bool:
    """Return whether the command only reads files that are no log of a run."""
    if not 0 < len(command) < _WHOLE or _LOG.search(command):
        return False
    return all((doing := purposes(each)) and doing <= _SHOWS for each in acting(command))


_BENCHMARKS_ALONE = lazy_regex(
    r"(?m)^(?=[^|;&\n]*\bgo +test\b)(?=[^|;&\n]*\s-(?:test\.)?bench[= ])"
    r"(?=[^|;&\n]*\s-(?:test\.)?run[= ]*['\"]?(?:\^\$|\^?#|(?i:none|xxx+|nothing|nomatch)\b))[^|;&\n]*$"
)
"""Go's benchmarks with a pattern that matches no test's name."""
_NO_TESTS = lazy_regex(r"test result: ok\. 0 passed; 0 failed; \d+ ignored; (\d+) measured;.*")
"""Cargo's summary of a run of benchmarks."""


def _only_measured(command: str, passed: list[str]) -> bool:
    """Return whether benchmarks ran but no tests."""
    others, benchmarks = _BENCHMARKS_ALONE.subn("", command)
    if benchmarks and not _TEST_COMMAND.search(others):
        return True
    measured = [_NO_TESTS.fullmatch(line) for line in passed]
    return all(measured) and any(found and found[1] != "0" for found in measured)


def _of_tests(window: str, command: str) -> CheckVerdict | None:
    found = [line for line in _said(window) if _SUMMARY.fullmatch(line)]
    if not found:
        return None
    failing = [line for line in found if _FAILING.search(line)]
    passed = [line for line in found if not _FAILING.search(line)]
    if not failing and _only_measured(command, passed):
        return None
    packages = [line for line in passed if _GO_PACKAGE.match(line)]
    if len(packages) > 3:
        passed = [line for line in passed if not _GO_PACKAGE.match(line)] + [f"ok, {len(packages)} packages"]
    lines = [*failing[: _SUMMARY_LINES - 2], *passed[-2 if failing else -_SUMMARY_LINES :]]
    return CheckVerdict(status="failed" if failing else "ok", summary="\n".join(lines))


_CHECK_COMMAND = lazy_regex(
    r"""\b(?:
    (?:vue-)?tsc|eslint|biome\ +(?:check|lint|ci)|ruff\ +(?:check|format)|black|prettier|d?mypy|(?:based)?pyright|flake8|pylint
    |golangci-lint\ +run|staticcheck|cargo\ +(?:\+\w+\ +)?(?:check|build|clippy|fmt)|rustc|go\ +(?:build|vet)
    |cc|gcc|[cg]\+\+|clang(?:\+\+)?|cl(?:\.exe)?|msbuild|javac|kotlinc|swiftc|(?:swift|dotnet)\ +build|deno\ +(?:lint|check|fmt)
    |(?:npm|pnpm|yarn|bun|turbo|nx|lerna|moon|deno\ +task|composer|make|just|mise|task|hatch|uv|poetry|pdm)\ [^\n|;&]{0,80}?
    \b(?:lint|type-?check|build|compile|format)[\w:-]*
    |(?:gradlew?|mvnw?)\ [^\n|;&]{0,120}?\b(?:assemble|compile|package|install|deploy)\w*
    )(?![\w-])""",
    re.VERBOSE,
)
_BUILD_COMMAND = lazy_regex(r"\b(?:make|cmake|ninja|meson)(?![\w-])")
"""Commands that may build or do anything else: only a compiler's message about a place counts."""
_CHECKED = lazy_regex(
    r"""(?:
    Success:\ no\ issues\ found\ in\ \d+\ source\ files?|All\ checks\ passed!         # mypy, ruff
    |Found\ \d+\ (?:errors?|problems?|warnings?\ and\ \d+\ errors?)\b.*       # tsc, mypy, ruff, deno, oxlint
    |\d+\ files?\ would\ be\ (?:reformatted|left)\b.*|\d+\ files?\ already\b.*   # black, ruff format
    |All\ matched\ files\ use\ Prettier\ code\ style!                        # prettier
    |✖\ \d+\ problems?\ \(.*\)|\d+\ problems?|\d+\ errors?,\ \d+\ warnings?\b.*|\d+\ issues?[.:].*    # eslint, pyright, golangci
    |(?:\d+\ warnings?\ and\ )?\d+\ errors?(?:\ generated\.)?                # clang, javac
    |error:\ (?:could\ not\ compile|aborting\ due\ to)\ .*|Finished\ .*\ target\(s\)\ in\ .*        # cargo
    |Checked\ \d+\ files?\b.*|Build\ (?:succeeded|FAILED|failed)\b.*          # biome, deno, dotnet
    )""",
    re.VERBOSE,
)
_MISBUILT = lazy_regex(
    r"""(?:
    \S{1,250}\(\d+(?:,\d+){0,3}\)\s?:\ (?:fatal\ )?error\ .*|\S{1,250}:\d+:\d+\ -\ error\b.*   # tsc, dotnet, MSVC; pyright
    |\S{1,250}:\d+(?::\d+)?:\ (?:fatal\ )?error:\ .*                         # mypy, gcc, clang, javac
    |(?:vet(?:\.exe)?:\ )?\S{1,250}\.go:\d+:\d+:\ .*|.*:\ import\ cycle\ not\ allowed\b.*       # go
    |.{1,250}:\ (?:undefined\ reference\ to|multiple\ definition\ of)\ .*|Undefined\ symbols\ for\ architecture\ .*      # linkers
    |(?:\S{0,250}/)?ld(?:\.\w+)?:\ (?!.*\bwarning:).*(?:cannot\ find|undefined|duplicate|not\ found|failed)\b.*
    |\S{1,250}\ :\ (?:fatal\ )?error\ LNK\d+:\ .*
    |(?:\S{0,250}/)?(?:cc1|collect2|g?cc|[cg]\+\+|clang(?:\+\+)?|(?:rust-|ld\.)?lld|ld|mold):\ (?:fatal\ )?error:\ .*
    |\[ERROR\]\ .{1,250}:\[\d+,\d+\]\ .*|>\ Task\ \S+\ FAILED|(?:\[\w+\]\ )?BUILD\ FAIL(?:ED|URE)\b.*       # maven, gradle
    )""",
    re.VERBOSE,
)
_WRONG = lazy_regex(
    r"""(?:
    \S{1,250}:\d+:\d+:\ (?:[A-Z]{1,4}\d{2,4}:?\ .*|.*\ \[Error/\S+\])      # flake8, pylint, ruff
    |\d+:\d+\s+[eE]rror:?\s+.*|\S{1,250}:\ line\ \d+,\ col\ \d+,\ Error\ -\ .*  # eslint
    |Oops!\ Something\ went\ wrong!\ :\(|ESLint\ (?:found\ too\ many\ warnings|couldn't\ find)\b.*
    |error(?:\[E\d{4}\]|\ TS\d{4,5}):\ .*                                    # rustc, tsc
    |error:\ (?:linking\ with|failed\ to\ (?:parse|load|select|resolve|run\ custom\ build)|no\ such\ command)\ .*    # cargo
    |[Ww]ould\ reformat:?\ \S.*|Code\ style\ issues?\ .*found\ in\ .*|Error\ occurred\ when\ checking\ code\ style\ .*
    |Diff\ in\ \S.*:\d+:?|error:\ Found\ \d+\ not\ formatted\ files?\b.*      # cargo fmt, deno fmt
    |level=error\ msg=.*|The\ command\ is\ terminated\ due\ to\ an\ error:\ .*  # golangci-lint
    )""",
    re.VERBOSE,
)
_PLACED = lazy_regex(r"error: |[A-Z]{1,4}\d{2,4} (?:\[\*\] )?\S")
"""Errors of rustc or ruff whose place is on the next line."""
_TASK_FAILED = lazy_regex(
    r"(?:\[\S{1,80}\] )?ERROR task failed|make(?:\[\d+\])?: \*\*\* .* Error \d+"
    r"|(?:ELIFECYCLE\s+|error )Command failed with exit code \d+\.?|ELIFECYCLE\s+Test failed\b.*|npm (?:ERR!|error) code ELIFECYCLE"
)
"""States only that a part failed; used if nothing else gives a cause."""
_CHECK_FAILED = lazy_regex(
    r"Found (?:\d+ warnings? and )?[1-9]\d* (?:errors?|problems?)\b(?!.*\b0 remaining)|✖ .*\([1-9]\d* errors?|[1-9]\d* errors?\b"
    r"|\d+ warnings? and [1-9]|[1-9]\d* issues?|\d+ files? would be reformatted|error: |Build (?:FAILED|failed)"
)
_JSON_COUNT = lazy_regex(r'"errorCount": ?[1-9]\d*')


def _of_checks(ran: str, window: str, *, testing: bool, reported: bool) -> CheckVerdict | None:
    """Return what a checker found wrong, with its summary; ``None`` if it printed nothing.

    For a command that is ``testing``, it is what kept the tests from running, unless their result was ``reported``.
    """
    checking = bool(_CHECK_COMMAND.search(ran))
    patterns = [_TASK_FAILED] if checking or testing else []
    if checking or (not reported and (testing or _BUILD_COMMAND.search(ran))):
        patterns.append(_MISBUILT)
    if not patterns:
        return None
    lines = _said(window)
    summed = []
    if checking:
        patterns.append(_WRONG)
        summed = [line for line in lines if _CHECKED.fullmatch(line)]
    wrong = [
        line
        for line, after in pairwise([*lines, ""])
        if any(pattern.fullmatch(line) for pattern in patterns) or (checking and after.startswith("--> ") and _PLACED.match(line))
    ]
    if checking:
        wrong.extend(_JSON_COUNT.findall(window))
    distinct = [line for line in dict.fromkeys(wrong) if line not in summed]
    if distinct or any(_CHECK_FAILED.match(line) for line in summed):
        causes = [line for line in distinct if not _TASK_FAILED.fullmatch(line)] or distinct
        return CheckVerdict(status="failed", summary="\n".join([*causes[: _SUMMARY_LINES - 2], *summed[-2:]]))
    return CheckVerdict(status="ok", summary="\n".join(summed[-_SUMMARY_LINES:])) if summed else None


_WRAPPED = lazy_regex(
    r"ERROR task failed|exit(?:ed with)?(?: code| status)|Command failed with|ELIFECYCLE|^make(?:\[\d+\])?: \*\*\*"
)
"""States only that something below it failed."""
_STRONG = lazy_regex(
    r"^(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt)\b(?::|$)|\b(?:error|fatal|panic)(?:\[\w+\])?:|^E\s{2,}\S"
    r"|^--- FAIL|^FAILED\b|\bERROR\b|\bFATAL\b|^npm ERR!|^thread '.*' panicked|^FAIL\s|^[\w./\\@+-]+\.\w+:\d+(?::\d+)?:\s",
)
_WEAK = lazy_regex(
    r"(?i)\b(?:error|exception|failed|failure|cannot|can't|could ?n[o']t|unable to|undefined|not found|no such|denied"
    r"|refused|unexpected|invalid|missing|timed? ?out|unknown|mismatch|conflict|unrecogni[sz]ed|not allowed|is not|does not)\b"
)
_EXIT_CODE = lazy_regex(r"\A(?:Error: )?Exit code \d+\s*")
_COLOUR = lazy_regex(r"\x1b\[[0-9;?]{0,40}[A-Za-z]")


def error_lines(output: str) -> str:
    """Return the few lines of a failure that are worth searching for when it occurs again."""
    lines = _lines(_window(_EXIT_CODE.sub("", output, count=1)))
    telling = [line for line in lines if not _WRAPPED.search(line)] or lines
    chosen = [line for line in telling if _STRONG.search(line)] or [line for line in telling if _WEAK.search(line)] or telling[:2]
    distinct = list(dict.fromkeys(chosen))
    if len(distinct) > _TELLING_LINES:
        distinct = [*distinct[: _TELLING_LINES - 2], *distinct[-2:]]
    return "\n".join(distinct)


def _window(output: str) -> str:
    """Return both ends of the output, without colours and private parts, so that patterns run over a bounded text only."""
    output = drop_private(output)
    if len(output) > _WINDOW_HEAD + _WINDOW_TAIL:
        output = "\n".join(ends(output, _WINDOW_HEAD, _WINDOW_TAIL))
    return _COLOUR.sub("", output) if "\x1b" in output else output


def _lines(window: str) -> list[str]:
    return [beginning(stripped, _LINE) for line in window.splitlines() if (stripped := line.strip())]


def _said(window: str) -> list[str]:
    """Return the lines without the prefixes of a task runner."""
    return [beginning(said, _LINE) for line in window.splitlines() if (said := _bare(line.strip()))]


_WHOSE = lazy_regex(
    r"(?:\[(?:[a-z0-9@][\w:./@-]{0,60}|[\d:]{7,8}\ [AP]M)\](?!\ ERROR\ task\ failed)|@?[\w./-]{1,80}[:#][a-z][\w:-]{0,40}:"
    r"|(?:\.|[\w.@-]{1,60}/\S{1,60})\ (?:test|lint|build|check|type-?check)[\w:-]{0,40}:)\ +"
)
"""Prefix that a task runner adds to each line: mise and concurrently, turbo, pnpm; also the time before a compiler's line."""


def _bare(line: str) -> str:
    if line.startswith('{"') and '"Action":"' in line:
        return _of_go(line)
    return line[whose.end() :] if (whose := _WHOSE.match(line)) else line


def _of_go(line: str) -> str:
    """Return the line that «go test» would print without «-json»."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:  # cut off, or not written by go
        return ""
    match row:
        case {"Action": "output" | "build-output", "Output": str(text)}:
            return text.strip()
        case {"Action": "fail", "Package": str(package), "Test": str(test)}:
            return f"--- FAIL: {test} {package}"
        case {"Action": "fail", "Package": str(package)}:
            return f"FAIL\t{package}"
        case _:
            return ""
