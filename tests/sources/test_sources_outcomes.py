import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.sources.outcomes import Verdict, telling_lines, verdict_of_tests

RUNS = {
    "pytest": ("python -m pytest -x", "..F\n===== 1 failed, 2 passed in 0.12s =====", "===== 1 passed in 0.12s ====="),
    "pytest subtests": ("pytest -q", "1 failed, 2 subtests failed in 0.12s", "3 passed, 2 subtests passed in 0.12s"),
    "pytest subtests alone": ("pytest -q", "2 passed, 1 subtests failed, 1 rerun in 0.12s", "3 passed, 1 rerun in 0.12s"),
    "pytest quiet": ("uv run pytest -q", "1 failed, 2 passed in 0.12s", "2 passed, 1 warning in 0.12s"),
    "unittest": ("python -m unittest", "Ran 3 tests in 0.001s\n\nFAILED (failures=1)", "Ran 3 tests in 0.001s\n\nOK"),
    "go": ("go test ./...", "ok  \torchard/pear\t0.1s\nFAIL\torchard/plum\t0.2s\nFAIL", "ok  \torchard/pear\t0.1s"),
    "go verbose": ("go test -v ./pear", "--- FAIL: TestPear (0.00s)\nFAIL", "--- PASS: TestPear\nPASS\nok  \torchard/pear\t0.1s"),
    "jest": (
        "npx jest",
        "Test Suites: 1 failed, 2 total\nTests:       1 failed, 3 passed, 4 total",
        "Tests:       4 passed, 4 total",
    ),
    "vitest": ("pnpm vitest run", " Test Files  1 failed (1)\n      Tests  1 failed | 3 passed (4)", "      Tests  4 passed (4)"),
    "npm": ("npm test", "Tests: 2 failed, 2 total", "Tests: 2 passed, 2 total"),
    "mocha": ("npx mocha", "  3 passing (4ms)\n  1 failing", "  3 passing (4ms)"),
    "node": ("node --test", "# tests 2\n# pass 1\n# fail 1", "# tests 2\n# pass 2\n# fail 0"),
    "cargo": (
        "cargo test --all",
        "test result: FAILED. 1 passed; 1 failed; 0 ignored",
        "test result: ok. 2 passed; 0 failed; 0 ignored",
    ),
    "rspec": ("bundle exec rspec", "3 examples, 1 failure", "3 examples, 0 failures"),
    "phpunit": ("vendor/bin/phpunit", "Tests: 3, Assertions: 4, Failures: 1.", "OK (3 tests, 4 assertions)"),
    "maven": ("mvn -q test", "Tests run: 3, Failures: 1, Errors: 0", "Tests run: 3, Failures: 0, Errors: 0"),
    "gradle": ("./gradlew test", "BUILD FAILED in 2s", "BUILD SUCCESSFUL in 2s"),
    "dotnet": ("dotnet test", "Failed!  - Failed:     1, Passed:     2", "Passed!  - Failed:     0, Passed:     3"),
    "ctest": ("ctest", "67% tests passed, 1 tests failed out of 3", "100% tests passed, 0 tests failed out of 3"),
    "deno": ("deno test", "FAILED | 1 passed | 1 failed (3ms)", "ok | 2 passed | 0 failed (3ms)"),
    "bun": ("bun test", " 1 pass\n 1 fail", " 2 pass\n 0 fail"),
    "playwright": ("npx playwright test", "  1 failed\n  2 passed (3.1s)", "  3 passed (3.1s)"),
    "swift": ("swift test", "Executed 3 tests, with 1 failure (0 unexpected)", "Executed 3 tests, with 0 failures (0 unexpected)"),
    "exunit": ("mix test", "3 tests, 1 failure", "3 tests, 0 failures"),
    "make": ("make test", "1 failed, 2 passed in 0.12s", "3 passed in 0.12s"),
    "cargo that does not compile": (
        "cargo test",
        "error[E0308]: mismatched types\nerror: could not compile `orchard` (lib test) due to 1 previous error",
        "test result: ok. 2 passed; 0 failed; 0 ignored",
    ),
    "nextest": (
        "cargo nextest run",
        "     Summary [   0.5s] 3 tests run: 2 passed, 1 failed, 0 skipped",
        "     Summary [   0.5s] 3 tests run: 3 passed, 0 skipped",
    ),
    "TAP": ("bats t", "1..2\nok 1 pear\nnot ok 2 plum", "1..2\nok 1 pear\nnot ok 2 plum # TODO ripen"),
    "prove": ("prove -r t", "t/pear.t .. ok\nt/plum.t .. Failed 1/2 subtests\nResult: FAIL", "All tests successful.\nResult: PASS"),
    "maven's log": (
        "mvn test",
        "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE",
        "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS",
    ),
    "JUnit's console": (
        "java -jar junit.jar execute",
        "[         2 tests successful      ]\n[         1 tests failed          ]",
        "[         3 tests successful      ]\n[         0 tests failed          ]",
    ),
    "vitest with an error outside of its tests": ("npx vitest run", "Tests  4 passed (4)\n Errors  1 error", "Tests  4 passed (4)"),
    "pytest that cannot collect": (
        "pytest",
        "ERROR tests/test_pear.py - ImportError\n=== 1 error in 0.1s ===",
        "=== 1 passed in 0.1s ===",
    ),
    "mypy": (
        "mypy .",
        "pear.py:3: error: Incompatible types\nFound 1 error in 1 file (checked 3 source files)",
        "Success: no issues found in 3 source files",
    ),
    "ruff": ("ruff check --fix", "pear.py:1:1: F401 `os` unused\nFound 1 error.", "Found 3 errors (3 fixed, 0 remaining)."),
    "tsc": ("npx tsc --noEmit", "src/pear.ts(3,5): error TS2322: Type 'plum'", "Found 0 errors. Watching for file changes."),
    "eslint": ("npx eslint src", "  3:5  error  'pear' is not defined  no-undef", "✖ 1 problem (0 errors, 1 warning)"),
    "pyright": ("pyright", "0 errors, 0 warnings\n1 error, 0 warnings, 0 informations", "0 errors, 0 warnings, 0 informations"),
    "rustc": (
        "cargo build",
        "error[E0308]: mismatched types\nerror: could not compile `orchard`",
        "    Finished `dev` profile target(s) in 0.1s",
    ),
    "npm lint": ("npm run lint", "✖ 3 problems (2 errors, 1 warning)", "✖ 1 problem (0 errors, 1 warning)"),
    "mise": ("mise run test:unit", "FAIL\torchard/plum\t0.2s", "ok  \torchard/pear\t(cached)"),
}


@pytest.mark.parametrize("runner", RUNS)
def test_a_run_that_failed_is_told_from_one_that_passed(runner: str) -> None:
    command, failing, passing = RUNS[runner]

    failed, passed = verdict_of_tests(command, failing), verdict_of_tests(command, passing)

    assert failed is not None and passed is not None
    assert (failed.status, passed.status) == ("failed", "ok")
    assert failed.summary and passed.summary


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git status", "nothing to commit"),
        ("cat notes.md", "ok then\nPASS the salt\n3 passed"),
        ("pytest --version", "pytest 9.2.0"),
        ("pytest -q > log.txt", ""),
        ("ls tests", "test_pear.py"),
        ("echo latest", "1 fail"),
        ("ruff format .", "3 files left unchanged"),
        ("go build ./...", ""),
        ("apt-get install gcc", "Setting up gcc"),
        ("cat lint.log", "Found 3 errors in 1 file"),
    ],
)
def test_what_ran_no_tests_has_no_verdict(command: str, output: str) -> None:
    assert verdict_of_tests(command, output) is None


def test_a_runner_behind_an_unknown_command_is_known_by_its_output() -> None:
    assert verdict_of_tests("./ci.sh", "building\n=== 2 passed in 0.12s ===") == Verdict(
        status="ok", summary="=== 2 passed in 0.12s ==="
    )


def test_which_went_wrong_is_told() -> None:
    compiler = verdict_of_tests("gcc -c pear.c", "pear.c: In function 'ripen':\npear.c:3:5: error: 'plum' undeclared\n")
    tests = verdict_of_tests("cargo test", "test pear ... ok\ntest plum ... FAILED\ntest result: FAILED. 1 passed; 1 failed")

    assert compiler == Verdict(status="failed", summary="pear.c:3:5: error: 'plum' undeclared")
    assert tests == Verdict(status="failed", summary="test plum ... FAILED\ntest result: FAILED. 1 passed; 1 failed")


def test_where_tests_ran_too_theirs_is_the_verdict() -> None:
    verdict = verdict_of_tests("ruff check . && pytest -q", "All checks passed!\n1 failed, 2 passed in 0.12s")

    assert verdict == Verdict(status="failed", summary="1 failed, 2 passed in 0.12s")


def test_colours_do_not_hide_a_summary() -> None:
    verdict = verdict_of_tests("npx jest", "\x1b[1mTests:\x1b[22m       \x1b[31m1 failed\x1b[39m, 1 total")

    assert verdict == Verdict(status="failed", summary="Tests:       1 failed, 1 total")


def test_many_passing_packages_are_counted_and_failing_ones_named() -> None:
    output = "\n".join(f"ok  \torchard/p{number}\t0.1s" for number in range(40)) + "\nFAIL\torchard/plum\t0.2s"

    assert verdict_of_tests("go test ./...", output) == Verdict(
        status="failed", summary="FAIL\torchard/plum\t0.2s\nok, 40 packages"
    )


def test_failing_lines_come_first_however_many_pass() -> None:
    output = "\n".join(["ok  \torchard/pear\t0.1s", *(f"--- FAIL: Test{number} (0.00s)" for number in range(50)), "FAIL"])

    verdict = verdict_of_tests("go test", output)

    assert verdict is not None
    assert verdict.summary.startswith("--- FAIL: Test0 (0.00s)\n")
    assert verdict.summary.count("\n") < 10


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("Exit code 128\nfatal: not a git repository", "fatal: not a git repository"),
        (
            'Exit code 1\nTraceback (most recent call last):\n  File "pear.py", line 3\nValueError: not ripe',
            "ValueError: not ripe",
        ),
        ("Exit code 1\nbuilding\npear.go:3:2: undefined: plum\nmake: *** [all] Error 1", "pear.go:3:2: undefined: plum"),
        ("Exit code 1\nerror[E0308]: mismatched types", "error[E0308]: mismatched types"),
        ("Exit code 2\nls: cannot access 'pear'", "ls: cannot access 'pear'"),
        ("Exit code 1\n\nfirst\nsecond\nthird", "first\nsecond"),
        ("Exit code 1", ""),
        ("File does not exist.", "File does not exist."),
    ],
)
def test_the_telling_lines_of_a_failure(output: str, told: str) -> None:
    assert telling_lines(output) == told


def test_the_same_line_is_told_once_and_few_are_told() -> None:
    output = "Error: dry\n" * 50 + "\n".join(f"Error: branch {number}" for number in range(50))

    lines = telling_lines(output).splitlines()

    assert lines[0] == "Error: dry"
    assert lines[-1] == "Error: branch 49"
    assert len(lines) == 6


@given(st.text(alphabet="=1 passed,in.0s\nErrofatl:okFAI\t-", max_size=400))
def test_any_output_is_survived(output: str) -> None:
    verdict_of_tests("pytest", output)
    assert len(telling_lines(output)) <= 6 * 301


@pytest.mark.parametrize(
    "piece",
    [
        "= passed in ",
        "1 passed, ",
        "Tests: 1 ",
        "ok\t",
        "make ",
        "gradle ",
        "a.b:1:",
        "w.",
        "FAIL ",
        "cargo + ",
        "error",
        "\x1b[",
        "ruff check ",
        "a:1:",
        "not ok ",
        "[ ",
    ],
)
def test_a_hostile_output_takes_no_longer_than_it_is_long(piece: str) -> None:
    verdict_of_tests(piece * 20_000, piece * 200_000)
    verdict_of_tests("pytest", (piece * 20 + "\n") * 20_000)
    verdict_of_tests("eslint", (piece * 20 + "\n") * 20_000)
    telling_lines(piece * 200_000)
