"""Signatures: the same failure has the same one, and prose has none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.text.error_signature import normal, reported, signatures

FAILURES = [
    # Python, pytest
    ("psycopg.OperationalError: connection refused", "OperationalError: connection refused"),
    ("ModuleNotFoundError: No module named 'yaml'", "ModuleNotFoundError: No module named 'yaml'"),
    (
        "FAILED tests/garden/test_pear.py::test_prune[3] - AssertionError: assert 4 == 5",
        "FAILED test_pear.py::test_prune[<n>] - AssertionError: assert <n> == <n>",
    ),
    ("E   orchard.errors.GateLocked: no", ""),
    ("E   orchard.errors.GateError: no key for gate 7", "GateError: no key for gate <n>"),
    # Go
    (
        "panic: runtime error: index out of range [5] with length 3",
        "panic: runtime error: index out of range [<n>] with length <n>",
    ),
    ("orchard/pear/tree.go:12:3: undefined: Graft", "undefined: Graft"),
    ("    tree_test.go:40: wanted 3 pears, got 4", "wanted <n> pears, got <n>"),
    ("--- FAIL: TestPrune (0.05s)", "--- FAIL: TestPrune"),
    ("vet: orchard/pear/tree_test.go:26:34: not enough arguments in call to Graft", "not enough arguments in call to Graft"),
    ("[lint:go] orchard/tree.go:12:3: SA4006: this pear is never used", "SA4006: this pear is never used"),
    ("[lint] mise ERROR error parsing config file: ~/orchard/mise.toml", "mise: error parsing config file: mise.toml"),
    # node, TypeScript
    ("  ● pears › are ripe", "FAIL: pears › are ripe"),
    (" FAIL  src/tree.test.ts > pears > are ripe", "FAIL: tree.test.ts > pears > are ripe"),
    (
        "TypeError: Cannot read properties of undefined (reading 'pears')",
        "TypeError: Cannot read properties of undefined (reading 'pears')",
    ),
    (
        "src/tree.ts(12,5): error TS2345: Argument of type 'string' is not assignable",
        "error TS2345: Argument of type 'string' is not assignable",
    ),
    (
        "src/tree.ts:12:5 - error TS2345: Argument of type 'string' is not assignable",
        "error TS2345: Argument of type 'string' is not assignable",
    ),
    ("  12:3  error  'pear' is never used  no-unused-vars", "'pear' is never used no-unused-vars"),
    # Rust, C, C++, Java, Kotlin
    ("test orchard::tests::prunes ... FAILED", "FAIL: orchard::tests::prunes"),
    (
        "thread 'main' panicked at src/main.rs:10:5:\nassertion `left == right` failed",
        "panicked: assertion 'left == right' failed",
    ),
    ("F401 [*] `pear` imported but unused\n --> tree.py:1:8", "F401 [*] 'pear' imported but unused"),
    ("fatal: Authentication failed", "fatal: Authentication failed"),
    ("error[E0382]: borrow of moved value: `pear`", "error[E0382]: borrow of moved value: 'pear'"),
    ("thread 'main' panicked at src/main.rs:10:5:\nno pear is ripe", "panicked: no pear is ripe"),
    ("thread 'main' panicked at 'no pear is ripe', src/main.rs:10:5", "panicked: no pear is ripe"),
    ("tree.c:12:5: error: expected ';' before 'return'", "error: expected ';' before 'return'"),
    ("/usr/bin/ld: tree.o: undefined reference to `graft'", "undefined reference to 'graft'"),
    ("Tree.java:12: error: cannot find symbol", "error: cannot find symbol"),
    ('Exception in thread "main" java.lang.IllegalStateException: no ladder', "IllegalStateException: no ladder"),
    ("Caused by: org.orchard.LadderException: too short by 20 cm", "LadderException: too short by <n> cm"),
    ("e: file:///home/ada/orchard/Tree.kt:12:3 Unresolved reference: graft", "Unresolved reference: graft"),
    # shells
    ("bash: line 3: graft: command not found", "graft: command not found"),
    ("zsh: command not found: graft", "graft: command not found"),
    ("sh: 1: graft: not found", "graft: command not found"),
    ("cat: /home/ada/orchard/gate.toml: No such file or directory", "cat: gate.toml: No such file or directory"),
    ("./prune.sh: Permission denied", "prune.sh: Permission denied"),
    ("(eval):1: no matches found: --pears=*.ripe", "no matches found: --pears=*.ripe"),
    # git
    ("fatal: bad object 0f3a9c2b7d41e6a8b5c4d3e2f1a0b9c8d7e6f5a4", "fatal: bad object <hex>"),
    (" ! [rejected]        main -> main (non-fast-forward)", "[rejected] (non-fast-forward)"),
    ("error: failed to push some refs to 'git.example.org:ada/orchard.git'", "error: failed to push some refs to '<url>'"),
    ("fatal: protocol error: bad line length character: Welc", "fatal: protocol error: bad line length character: Welc"),
    ("CONFLICT (content): Merge conflict in orchard/tree.py", "CONFLICT (content)"),
    # network, databases
    ("Error: connect ECONNREFUSED 127.0.0.1:5432", "error: connect ECONNREFUSED <addr>"),
    (
        "curl: (7) Failed to connect to localhost port 8080 after 3 ms",
        "curl: (7) Failed to connect to localhost port <n> after <n>",
    ),
    (
        "dial tcp: lookup depot.example.org on 10.0.0.2:53: no such host",
        "dial tcp: lookup depot.example.org on <addr>: no such host",
    ),
    ("gh: Not Found (HTTP 404)", "HTTP 404 Not Found"),
    ("HTTP/1.1 503 Service Unavailable", "HTTP 503 Service Unavailable"),
    ("sqlite3.OperationalError: database is locked", "OperationalError: database is locked"),
    ("Error: SQLITE_BUSY: database is locked", "error: SQLITE_BUSY: database is locked"),
    ("the process exited with code 137", "exit code 137"),
    # npm, pip, cargo, docker
    ("npm ERR! code ERESOLVE", "npm: code ERESOLVE"),
    ('npm error Missing script: "prune"', "npm: Missing script: 'prune'"),
    (
        "ERROR: Could not find a version that satisfies the requirement pear==1.2.3",
        "error: Could not find a version that satisfies the requirement pear==<n>",
    ),
    ("error: could not find `Cargo.toml` in `/home/ada/orchard`", "error: could not find 'Cargo.toml' in 'orchard'"),
    ("docker: Error response from daemon: pull access denied for pear", "docker: pull access denied for pear"),
    # logs
    (
        'time=2026-03-01T09:00:00Z level=ERROR msg="push failed" err="dial tcp 10.0.0.1:443: i/o timeout" attempt=3',
        "push failed: dial tcp <addr>: i/o timeout",
    ),
    ('{"level":"error","ts":1234,"msg":"gate stuck","error":"timeout"}', "gate stuck: timeout"),
    ("2026-03-01 12:00:00,123 ERROR gate.lock - the bolt is stuck", "gate.lock - the bolt is stuck"),
]


@pytest.mark.parametrize(("line", "signature"), FAILURES)
def test_what_a_tool_says_of_a_failure_is_its_signature(line: str, signature: str) -> None:
    found = signatures(f"compiling 3 of 7\n{line}\n")

    assert found == ((signature,) if signature else ())


@pytest.mark.parametrize(
    "prose",
    [
        "There was an error in the gate, and the test failed because permission was denied.",
        "We handle errors: first the timeout, then ECONNREFUSED.",
        'Error handling lives in errors.py. If you see "command not found", install it.',
        "- ValueError is raised when there are no pears",
        "The fatal flaw of exceptions: they are slow.",
        "I mended the error by adding a test. Status: failed tests are green now.",
        "TypeError and KeyError are both caught.",
        "See what HTTP 404 means in the manual.",
        "Note: permission denied errors happen when the file is not yours.",
        "How do I set the log level to error?",
        "errors.go:12: if err != nil {",
        'const error = new Error("no pears")',
        '  raise ValueError("no pears")',
        '    "error": "pears",',
        "0 errors, 3 warnings",
        "12 passed, 0 failed in 0.4s",
        "unexpected behaviour in the timeout code; unknown option what to do",
        "Process finished with exit code 1",
        "make: *** [Makefile:12: test] Error 2",
        "npm ERR! A complete log of this run can be found in: /home/ada/.npm/_logs/x.log",
        "error: Process completed with exit code 1.",
        "tree.c:12:5: note: in expansion of macro",
        "KeyError",
        "not ok 3 - prunes # TODO a ladder",
        "error: test failed, to rerun pass `--lib`",
        "ERROR tests/test_tree.py",
        "tree.go:12:3: too many errors",
        "mise ERROR task failed",
        "mise ERROR Run with --verbose or MISE_VERBOSE=1 for more information",
        "[WARN] src/tree.ts:12:3: pears are out of season",
        "F401 says that a pear is imported but unused",
    ],
)
def test_prose_and_what_only_says_that_something_failed_have_none(prose: str) -> None:
    assert signatures(prose) == ()


def test_a_bare_exception_is_one_in_a_traceback() -> None:
    text = 'Traceback (most recent call last):\n  File "/home/ada/tree.py", line 3, in prune\nKeyboardInterrupt\n'

    assert signatures(text) == ("KeyboardInterrupt",)


def test_colours_and_frames_do_not_hide_a_failure() -> None:
    assert signatures("\x1b[31m│ Error: gate is stuck\x1b[0m") == ("error: gate is stuck",)


def test_of_many_failures_the_first_and_the_last_two_are_reported() -> None:
    names = [f"{letter}{letter}" for letter in "abcdefghijklmnopqrst"]
    text = "\n".join(f"error: unable to prune {name}" for name in names)

    found = signatures(text, limit=5)

    assert [one.rpartition(" ")[2] for one in found] == ["aa", "bb", "cc", "ss", "tt"]


number = st.integers(0, 10**6).map(str)
part = st.from_regex(r"[a-z]{1,12}", fullmatch=True)
folder = st.lists(part, min_size=2, max_size=6).map(lambda parts: "/" + "/".join(parts))
clock = st.datetimes().map(lambda at: f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}Z")
digest = st.from_regex(r"[0-9a-f]{39}", fullmatch=True).map(lambda tail: f"{tail}a1"[-40:])
uuid = st.uuids().map(str)


@given(st.tuples(number, folder, clock, uuid, digest), st.tuples(number, folder, clock, uuid, digest))
def test_numbers_paths_times_and_hashes_make_no_difference(
    one: tuple[str, str, str, str, str], other: tuple[str, str, str, str, str]
) -> None:
    def answer_to(count: str, place: str, at: str, run: str, commit: str) -> str:
        return (
            f"{place}/tree.go:{count}:{count[:3]}: undefined: Graft\n"
            f"error: run {run} of commit {commit} at {at} took {count} ms in {place}/gate.toml\n"
            f"cat: {place}/gate.toml: No such file or directory\n"
            f"/tmp/kmem-{run}/x.py:{count}: error: no pear\n"
        )

    assert signatures(answer_to(*one)) == signatures(answer_to(*other))


@given(st.text(max_size=2_000))
def test_any_text_has_bounded_signatures(text: str) -> None:
    found = signatures(text)

    assert len(found) <= 8
    assert all(0 < len(one) <= 160 and "\n" not in one for one in found)


NOISE = """error:_|panic:_|E___|--- FAIL:_|:_|/|\\|'|"|`|<|>|a.b|x.go:1:2:_|level=error msg=|0x|9|ff|é|{|[|( |} |] |,"""
noise = st.lists(
    st.sampled_from([*NOISE.replace("_", " ").split("|"), "\n", "\r", "\x1b[31m", "\ud800"]) | st.text(max_size=8), max_size=60
).map("".join)


@given(noise)
def test_no_text_is_refused_and_no_long_token_is_kept(text: str) -> None:
    for one in signatures(text):
        assert all(len(token) <= 64 for token in one.split())


@given(st.from_regex(r"[A-Za-z0-9_+/=-]{24,80}", fullmatch=True).filter(lambda token: len(re.findall(r"\d", token)) >= 3))
def test_what_is_drawn_by_chance_is_not_kept(token: str) -> None:
    (signature,) = signatures(f"error: the key {token} was refused by the gate")

    assert token not in signature


@pytest.mark.parametrize("signature", [signature for _, signature in FAILURES if signature])
def test_a_signature_is_normal_already(signature: str) -> None:
    assert normal(signature) == signature


def test_a_megabyte_of_failures_that_all_differ_is_answered_from_its_ends() -> None:
    text = "".join(f"error: pear {number} of tree {'a.' * 40}{number} at 12:00:{number % 60:02} fell\n" for number in range(12_000))

    assert len(signatures(text)) <= 8


@pytest.mark.parametrize("unit", ["1-", "1--", "11:-", "1 ", "[1] ", "1|"])
def test_lines_that_might_all_begin_with_a_time_are_read_in_time(unit: str) -> None:
    """Tried in every way, each of these lines alone would take a fifth of a second."""
    text = "".join(f"{number}{unit * 250}error\n" for number in range(4_000))

    assert len(signatures(text)) <= 8


@pytest.mark.parametrize(
    ("prompt", "failure"),
    [
        ("make lint is still failing", "make lint is still failing"),
        ("why is lint failing on the build?", "why is lint failing on the build?"),
        ("Nice. The pears are not rendered correctly.", "The pears are not rendered correctly."),
        ("okay, there's a merge conflict", "okay, there's a merge conflict"),
        ("i don't see the button", "i don't see the button"),
        ("any idea?\n\n❯ go run ./pump\npump.go:3:1: undefined: valve", "pump.go:3:1: undefined: valve"),
        ("Das geht nicht mehr", "Das geht nicht mehr"),
        ("run that - the author doesn't match up", "run that - the author doesn't match up"),
        ("I suspect we have a bug in the lookup", "I suspect we have a bug in the lookup"),
        ("The list shows the wrong gardener", "The list shows the wrong gardener"),
        ("it shows the row instead of the tree", "it shows the row instead of the tree"),
        (f"why do I get {'so ' * 120}denied by the gate (it errored)", f"…{'so ' * 49}denied by the gate (it errored)"),
    ],
)
def test_a_failure_that_a_person_reports(prompt: str, failure: str) -> None:
    found = reported(prompt)

    assert found is not None
    assert found.text == failure


@pytest.mark.parametrize(
    "prompt",
    [
        "Water the pears",
        "what happens if the pump fails?",
        "the pump should stop when a valve is broken",
        "does it fail locally?",
        "each gate opens or fails on its own",
        "add a test that fails",
        "can you do it without breaks",
        "use a tree instead of a row",
        "log a bug for the lookup",
        "we have a summary, and beside it errors and costs",
    ],
)
def test_what_a_person_only_supposes_is_no_failure(prompt: str) -> None:
    assert reported(prompt) is None


@pytest.mark.parametrize("sign", ["❯", "$", "ada@orchard pump %", "ada@orchard:~/pump$"])
def test_the_command_that_a_person_ran_is_known(sign: str) -> None:
    found = reported(f"{sign} go run ./pump \\\n  --all\nerror: no pressure")

    assert found is not None
    assert (found.text, found.command) == ("error: no pressure", "go run ./pump --all")
