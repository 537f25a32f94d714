import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.sources.common.outcomes import CheckVerdict, error_lines, verdict_of_tests

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
    "ruff with the places below": ("ruff check | head -2", "F401 [*] `os` unused\n --> pear.py:1:8", "All checks passed!"),
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
    "mise's tasks": (
        "mise run lint | tail -9",
        "[lint:go] pear.go:3:2: unused (errcheck)\n[lint:go] 1 issues:",
        "[lint:go] 0 issues.",
    ),
    "mise's word alone": ("mise run lint | tail -1", "[lint:gomod] ERROR task failed", "[lint:go] 0 issues."),
    "turbo": ("turbo run test", "pear:test: Tests  1 failed | 3 passed (4)", "@orchard/pear:test: Tests  4 passed (4)"),
    "pnpm's workspaces": ("pnpm -r test", "packages/pear test: 1 failing", ". test: 3 passing (4ms)"),
    "nx": ("nx run-many -t test", "1 failing", "3 passing (4ms)"),
    "npm's workspaces": ("npm run -w pear test", "# tests 2\n# fail 1", "# tests 2\n# fail 0"),
    "concurrently": ("npm test", "[0] 1 failing", "[0] 3 passing (4ms)"),
    "go in JSON": (
        "go test -json ./...",
        '{"Action":"fail","Package":"orchard/plum","Test":"TestPlum","Elapsed":0.1}\n{"Action":"fail","Package":"orchard/plum"}',
        '{"Action":"output","Package":"orchard/pear","Output":"ok  \\torchard/pear\\t0.1s\\n"}\n{"Action":"pass","Package":"orch',
    ),
    "gotestsum": ("gotestsum", "=== FAIL: plum TestPlum (0.00s)\nDONE 5 tests, 1 failure in 0.5s", "DONE 5 tests in 0.5s"),
    "go vet": ("go vet ./... | head && golangci-lint run", "vet: pear.go:1:2: undefined: plum", "0 issues."),
    "go that imports in a ring": ("go build ./... && golangci-lint run", "imports orchard: import cycle not allowed", "0 issues."),
    "go tests that do not compile": ("go test . | head", "# orchard\npear_test.go:3:2: undefined: plum", "ok  \torchard\t0.1s"),
    "pytest that breaks": (
        "pytest",
        'INTERNALERROR> Traceback:\nINTERNALERROR>   File "pear.py"\nINTERNALERROR> KeyError: 1',
        "1 passed in 0.1s",
    ),
    "pytest that finds no conftest": (
        "pytest -q",
        "ImportError while loading conftest '/orchard/conftest.py'.",
        "1 passed in 0.1s",
    ),
    "pytest that covers too little": (
        "pytest --cov",
        "TOTAL  9  5  44%\nFAIL Required test coverage of 80% not reached. Total coverage: 44.00%\n3 passed in 0.1s",
        "3 passed in 0.1s\nTOTAL  9  1  89%\nRequired test coverage of 80% reached. Total coverage: 89.00%",
    ),
    "JUnitCore": ("java org.junit.runner.JUnitCore Pear", "FAILURES!!!\nTests run: 3,  Failures: 1", "OK (3 tests)"),
    "gradle's build": ("./gradlew build", "PearTest > ripens() FAILED\nBUILD FAILED in 2s", "BUILD SUCCESSFUL in 2s"),
    "maven's package": (
        "mvn package",
        "[ERROR] Pear.java:[3,5] ';' expected\n[INFO] BUILD FAILURE",
        "[INFO] Tests run: 3, Failures: 0",
    ),
    "TAP that gives up": ("prove t", "ok 1\nBail out!  no tree", "ok 1"),
    "tape": ("node test.js && npm test", "# tests 2\n# pass  1\n# fail  1", "# tests 2\n# pass  2"),
    "ruff format": ("ruff format --check", "Would reformat: pear.py\n1 file would be reformatted", "3 files already formatted"),
    "black": (
        "black --check .",
        "would reformat pear.py\n\nOh no!\n1 file would be reformatted.",
        "3 files would be left unchanged.",
    ),
    "prettier": (
        "npx prettier --check .",
        "[warn] src/pear.ts\n[warn] Code style issues found in the above file. Run Prettier with --write to fix.",
        "Checking formatting...\nAll matched files use Prettier code style!",
    ),
    "MSVC": ("msbuild pear.sln", "pear.cpp(3): error C2065: 'plum'", "Build succeeded."),
    "MSVC's linker": ("msbuild pear.sln", "pear.obj : error LNK2019: unresolved external symbol ripen", "Build succeeded."),
    "dotnet's new words": ("dotnet build", "Build failed with 1 error(s) in 2.0s", "Build succeeded in 2.0s"),
    "dotnet's tests": (
        "dotnet test",
        "Test summary: total: 3, failed: 1, succeeded: 2",
        "Test summary: total: 3, failed: 0, succeeded: 3",
    ),
    "jest's threshold": (
        "npx jest --coverage",
        'Tests: 3 passed, 3 total\nJest: "global" coverage threshold for lines (80%) not met: 44%',
        "Tests: 3 passed, 3 total",
    ),
    "jest that finds no test": ("npx jest", "No tests found, exiting with code 1", "Tests: 1 passed, 1 total"),
    "vitest's threshold": (
        "npx vitest run --coverage",
        "Tests  4 passed (4)\nERROR: Coverage for lines (44%) does not meet global threshold (80%)",
        "Tests  4 passed (4)",
    ),
    "nextest that stops early": (
        "cargo nextest run",
        "Summary [ 0.5s] 2/3 tests run: 1 passed, 1 timed out, 0 skipped",
        "Summary [ 0.5s] 3 tests run: 3 passed",
    ),
    "cargo's last line": (
        "cargo test | tail -1",
        "error: test failed, to rerun pass `--lib`",
        "test result: ok. 2 passed; 0 failed",
    ),
    "a syntax error of rustc": (
        "cargo check | head -3",
        "error: expected `;`\n --> src/pear.rs:3:5",
        "Finished `dev` profile target(s) in 0.1s",
    ),
    "ExUnit's doctests": ("mix test", "2 doctests, 3 tests, 1 failure", "2 doctests, 3 tests, 0 failures"),
    "phpunit that dies": ("phpunit", "PHP Fatal error:  Uncaught Error: plum", "OK (3 tests, 4 assertions)"),
    "swift's new tests": (
        "swift test",
        "Executed 0 tests, with 0 failures (0 unexpected)\n✘ Test run with 3 tests failed after 0.1 seconds with 1 issue.",
        "✔ Test run with 3 tests passed after 0.1 seconds.",
    ),
    "bun that breaks between tests": ("bun test", " 2 pass\n 0 fail\n 1 error", " 2 pass\n 0 fail"),
    "node that cancels": ("node --test", "ℹ pass 1\nℹ fail 0\nℹ cancelled 1", "ℹ pass 1\nℹ fail 0\nℹ cancelled 0"),
    "deno that does not check": ("deno test", "error: Type checking failed.", "ok | 2 passed | 0 failed (3ms)"),
    "playwright beside its tests": (
        "npx playwright test",
        "  1 error was not a part of any test, see above for details\n  2 passed (3.1s)",
        "  2 passed (3.1s)",
    ),
    "GoogleTest": ("ctest -V", "[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:", "[  PASSED  ] 3 tests."),
    "tsc's options": ("npx tsc -b", "error TS5083: Cannot read file 'tsconfig.json'.", "Found 0 errors."),
    "tsc that watches": ("npx tsc -w", "[10:00:00 AM] Found 1 error. Watching.", "[10:00:00 AM] Found 0 errors. Watching."),
    "pyright's lines": (
        "pyright | head",
        "/orchard/pear.py:3:5 - error: unknown (reportAny)",
        "0 errors, 0 warnings, 0 informations",
    ),
    "eslint, compact": ("eslint -f compact .", "/pear.js: line 3, col 5, Error - 'plum' (no-undef)\n\n1 problem", "1 problem"),
    "eslint, JSON": ("eslint -f json .; ruff check", '[{"filePath":"/pear.js","errorCount":2}]', "All checks passed!"),
    "eslint without a configuration": ("eslint .", "Oops! Something went wrong! :(", "✖ 1 problem (0 errors, 1 warning)"),
    "javac's sum": ("javac Pear.java | tail -1", "1 error", "0 errors"),
    "gcc in colours": ("gcc pear.c; ruff check", "pear.c:3:5: \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[K'plum'", "All checks passed!"),
    "make, of what does not say so": ("make -C pear check | tail -1", "make: *** [Makefile:3: check] Error 2", "3 passed in 0.1s"),
}


@pytest.mark.parametrize("runner", RUNS)
def test_a_run_that_failed_is_distinguished_from_one_that_passed(runner: str) -> None:
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
        ("cat README.md", "===== 1 failed, 2 passed in 0.12s ====="),
        ("sed -n 1,9p tests/pear.md", "===== 1 failed, 2 passed in 0.12s ====="),
        ("grep -rn pytest docs", "FAILED tests/test_pear.py::test_plum"),
        ("cat .github/eslint.yml | head", "3:5  error  is what it prints"),
        ("git commit -m 'Mend go test'", "ok 3 files"),
        ("pytest > pytest.log; echo ok done", "ok done"),
        ("mvn package -DskipTests", "[INFO] BUILD SUCCESS"),
        ("go build ./... && git rebase main", "error: could not apply 0123abc... graft"),
        ("go build -o graft . && ./graft", "error: no such tree\nFile Pear.md, 3 errors of old"),
        ("make deploy", "error: no gate\nmake: *** [Makefile:3: deploy] Error 1"),
        ("ld pear.o && make", "/usr/bin/ld: warning: libplum.so not found"),
        ("golangci-lint version --format x", "The command is terminated due to an error: unknown flag"),
        ("npm run build", "ARM64 build complete"),
        ("npm run lint", "ES2022 is what it is written in"),
        ("git -C pear --no-pager show HEAD:docs/testing.md", "Ran 3 tests in 0.1s\n\nOK"),
        ("git log -p -3 | head -40", "===== 1 failed, 2 passed in 0.12s ====="),
        ("go test -json ./...", '{"Action":"output","Output":' + "[" * 20_000),
        ("go test -json ./...", '{"Action":"output","Output":"FAIL \\ud83d\\n"}'),
    ],
)
def test_what_ran_no_tests_has_no_verdict(command: str, output: str) -> None:
    assert verdict_of_tests(command, output) is None


def test_a_runner_behind_an_unknown_command_is_known_by_its_output() -> None:
    assert verdict_of_tests("./ci.sh", "building\n=== 2 passed in 0.12s ===") == CheckVerdict(
        status="ok", summary="=== 2 passed in 0.12s ==="
    )


def test_which_went_wrong_is_reported() -> None:
    compiler = verdict_of_tests("gcc -c pear.c", "pear.c: In function 'ripen':\npear.c:3:5: error: 'plum' undeclared\n")
    tests = verdict_of_tests("cargo test", "test pear ... ok\ntest plum ... FAILED\ntest result: FAILED. 1 passed; 1 failed")

    assert compiler == CheckVerdict(status="failed", summary="pear.c:3:5: error: 'plum' undeclared")
    assert tests == CheckVerdict(status="failed", summary="test plum ... FAILED\ntest result: FAILED. 1 passed; 1 failed")


def test_where_tests_ran_too_theirs_is_the_verdict() -> None:
    verdict = verdict_of_tests("ruff check . && pytest -q", "All checks passed!\n1 failed, 2 passed in 0.12s")

    assert verdict == CheckVerdict(status="failed", summary="1 failed, 2 passed in 0.12s")


def test_where_the_tests_passed_a_checker_s_failure_is_the_verdict() -> None:
    verdict = verdict_of_tests(
        "go test ./... | tail -3 && golangci-lint run | tail -3",
        "ok  \torchard/pear\t0.1s\npear.go:3:2: unused (errcheck)\n1 issues:",
    )

    assert verdict == CheckVerdict(status="failed", summary="pear.go:3:2: unused (errcheck)\n1 issues:\nok  \torchard/pear\t0.1s")


@pytest.mark.parametrize("command", ["cat test.log", "tail -3 /tmp/tests", "git push", ""])
def test_what_tests_wrote_to_a_log_or_from_a_hook_is_theirs(command: str) -> None:
    verdict = verdict_of_tests(command, "=== 1 failed in 0.12s ===")

    assert verdict is not None and verdict.status == "failed"


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/ld: pear.c:(.text+0x5): undefined reference to `ripen'",
        "pear.c:(.text+0x5): undefined reference to `ripen'",
        "/usr/bin/ld: cannot find -lplum: No such file or directory",
        "ld: symbol(s) not found for architecture arm64",
        "Undefined symbols for architecture arm64:",
        "ld.lld: error: undefined symbol: ripen",
        "collect2: error: ld returned 1 exit status",
        "clang: error: linker command failed with exit code 1",
        "plum.o: multiple definition of `ripen'",
    ],
)
@pytest.mark.parametrize("command", ["gcc pear.c", "make", "cmake --build .", "make test"])
def test_what_a_linker_says_is_a_failure(command: str, line: str) -> None:
    assert verdict_of_tests(command, f"linking\n{line}") == CheckVerdict(status="failed", summary=line)


def test_colours_do_not_hide_a_summary() -> None:
    verdict = verdict_of_tests("npx jest", "\x1b[1mTests:\x1b[22m       \x1b[31m1 failed\x1b[39m, 1 total")

    assert verdict == CheckVerdict(status="failed", summary="Tests:       1 failed, 1 total")


def test_many_passing_packages_are_counted_and_failing_ones_named() -> None:
    output = "\n".join(f"ok  \torchard/p{number}\t0.1s" for number in range(40)) + "\nFAIL\torchard/plum\t0.2s"

    assert verdict_of_tests("go test ./...", output) == CheckVerdict(
        status="failed", summary="FAIL\torchard/plum\t0.2s\nok, 40 packages"
    )


def test_failing_lines_come_first_however_many_pass() -> None:
    output = "\n".join(["ok  \torchard/pear\t0.1s", *(f"--- FAIL: Test{number} (0.00s)" for number in range(50)), "FAIL"])

    verdict = verdict_of_tests("go test", output)

    assert verdict is not None
    assert verdict.summary.startswith("--- FAIL: Test0 (0.00s)\n")
    assert verdict.summary.count("\n") < 10


@pytest.mark.parametrize(
    ("output", "expected"),
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
def test_the_telling_lines_of_a_failure(output: str, expected: str) -> None:
    assert error_lines(output) == expected


def test_the_same_line_is_reported_once_and_few_are_reported() -> None:
    output = "Error: dry\n" * 50 + "\n".join(f"Error: branch {number}" for number in range(50))

    lines = error_lines(output).splitlines()

    assert lines[0] == "Error: dry"
    assert lines[-1] == "Error: branch 49"
    assert len(lines) == 6


@given(st.text(alphabet="=1 passed,in.0s\nErrofatl:okFAI\t-", max_size=400))
def test_any_output_is_survived(output: str) -> None:
    verdict_of_tests("pytest", output)
    assert len(error_lines(output)) <= 6 * 301


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
        "a/",
        "a > ",
        "[a] ",
        "a:a: ",
        '{"Action":"',
        "ld: ",
    ],
)
def test_a_hostile_output_takes_no_longer_than_it_is_long(piece: str) -> None:
    verdict_of_tests(piece * 20_000, piece * 200_000)
    verdict_of_tests("pytest", (piece * 20 + "\n") * 20_000)
    verdict_of_tests("eslint && pytest", (piece * 20 + "\n") * 20_000)
    error_lines(piece * 200_000)


def test_what_is_private_is_in_no_telling_line() -> None:
    output = "setting up\n<private>\nerror: the willow story is for nobody\n</private>\nerror: cannot go on"

    assert error_lines(output) == "error: cannot go on"


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("go test -bench=. -run='^$' ./...", "BenchmarkGraft-8   1000   1042 ns/op\nPASS\nok  \torchard/graft\t1.204s"),
        ("go test ./graft -run NONE -bench Graft -benchmem", "BenchmarkGraft-8   1000   1042 ns/op\nPASS\nok  \torchard\t1.2s"),
        (
            "cargo bench",
            "test result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
            "test result: ok. 0 passed; 0 failed; 0 ignored; 3 measured; 0 filtered out; finished in 2.10s",
        ),
    ],
)
def test_a_run_of_benchmarks_alone_says_nothing_of_the_tests(command: str, output: str) -> None:
    assert verdict_of_tests(command, output) is None


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("go test -bench=. ./...", "BenchmarkGraft-8   1000   1042 ns/op\nPASS\nok  \torchard/graft\t1.204s"),
        ("go test ./... && go test -run '^$' -bench .", "ok  \torchard/graft\t1.204s\nPASS\nok  \torchard\t2.0s"),
        ("cargo test", "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"),
    ],
)
def test_tests_beside_benchmarks_have_passed(command: str, output: str) -> None:
    verdict = verdict_of_tests(command, output)

    assert verdict is not None
    assert verdict.status == "ok"


def test_a_vet_of_windows_finds_what_is_wrong() -> None:
    verdict = verdict_of_tests("go vet ./...", "# orchard\nvet.exe: .\\graft.go:3:5: undefined: quince")

    assert verdict is not None
    assert verdict.status == "failed"
    assert "undefined: quince" in verdict.summary
