"""The program's two mouths, and what becomes of errors."""

import io
import json
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.cli.console import print_data, print_json, print_message, speak_any_encoding
from kite_memory.cli.main import app, main
from kite_memory.cli.memory import editor_words
from kite_memory.cli.results import print_found, with_short_home
from kite_memory.errors import KiteError, UsageError

STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def spoken(speak: Callable[[Any], None], what: object) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        speak(what)
    return out.getvalue()


def steering(text: str) -> list[str]:
    return [char for char in text if unicodedata.category(char) in STEERING and char not in "\n\t"]


@given(st.text())
def test_no_text_steers_the_terminal(text: str) -> None:
    assert steering(spoken(print_data, text)) == []


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"])))
def test_plain_words_are_said_as_they_are(text: str) -> None:
    assert spoken(print_data, text) == text + "\n"


@given(JSON)
def test_json_keeps_every_character_and_steers_nothing(value: Any) -> None:
    text = spoken(print_json, value)

    assert json.loads(text) == value
    assert steering(text) == []


@given(JSON)
def test_json_keeps_every_character_in_an_encoding_that_lacks_it(value: Any) -> None:
    out = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(out, encoding="cp1252", errors="replace", newline="\n")) as stream:
        print_json(value)
        stream.flush()

    assert json.loads(out.getvalue().decode("cp1252")) == value


@pytest.mark.parametrize(("chosen", "encoding"), [("", "utf-8"), ("cp1252", "cp1252")])
def test_a_pipe_of_windows_is_written_in_utf_8_unless_one_has_chosen(
    monkeypatch: pytest.MonkeyPatch, chosen: str, encoding: str
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("PYTHONIOENCODING", chosen) if chosen else monkeypatch.delenv("PYTHONIOENCODING", raising=False)

    speak_any_encoding()

    assert (out.encoding, out.errors) == (encoding, "replace")


def _hit(title: str, tier: str) -> dict[str, Any]:
    found = {"kind": "fact", "title": title, "snippet": "", "project": "", "status": "accepted", "created": "2026-03-02T09:00:00Z"}
    return {**found, "path": f"{title}.md", "id": title, "score": 0.0, "why": "", "rank": 1, "tier": tier}


@pytest.mark.parametrize(
    ("tiers", "printed", "remark"),
    [
        (("nearest",), ["nearest"], "no close match; nearest:\n"),
        (("note", "nearest"), ["note"], ""),
    ],
)
def test_what_is_merely_near_is_printed_only_if_nothing_else_is_found_and_is_said_to_be(
    tiers: tuple[str, ...], printed: list[str], remark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_found({"query": "sluice", "hits": [_hit(tier, tier) for tier in tiers], "events": []}, explain=False, limit=5)

    out, err = capsys.readouterr()
    assert [line.split()[-1] for line in out.splitlines()] == [f"{each}.md" for each in printed]
    assert err == remark


def test_a_home_folder_is_shortened_only_where_a_path_begins_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")

    assert with_short_home("read /home/ada/pear.py (/home/ada/x)") == "read ~/pear.py (~/x)"
    assert with_short_home("/mnt/home/ada/pear.py /home/adam/x") == "/mnt/home/ada/pear.py /home/adam/x"


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_is_not_there_is_not_spoken_to(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sys, name, None)

    print_data("x")
    print_message("x")
    print_json({})


@pytest.fixture
def crash() -> Iterator[Callable[[Exception], None]]:
    """A command that ends with the exception it is given."""
    chosen: list[Exception] = []

    @app.command("crash", hidden=True)
    def crash() -> None:
        raise chosen[0]

    yield chosen.append
    app.registered_commands.pop()


def test_a_bug_is_ours_and_says_so(crash: Callable[[Exception], None], capsys: pytest.CaptureFixture[str]) -> None:
    crash(ZeroDivisionError("by zero"))

    assert main(["crash"]) == 70

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "error: ZeroDivisionError: by zero",
        "hint: this is a bug in kmem; run the command again with --debug and report what it prints",
    ]


def test_an_error_of_the_machine_is_no_bug(crash: Callable[[Exception], None], capsys: pytest.CaptureFixture[str]) -> None:
    crash(PermissionError(13, "Permission denied", "/somewhere"))

    code = main(["crash"])

    assert code == 1
    assert capsys.readouterr().err.startswith("error: /somewhere: Permission denied\nhint: ")


def test_an_error_without_a_hint_has_none(crash: Callable[[Exception], None], capsys: pytest.CaptureFixture[str]) -> None:
    crash(KiteError("the well is dry"))

    assert main(["crash"]) == 1
    assert capsys.readouterr().err == "error: the well is dry\n"


@pytest.mark.parametrize("arguments", [["--debug", "crash"], ["crash", "--debug"]])
@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError("the well is where?"), 2), (ZeroDivisionError(), 70), (PermissionError(13, "Permission denied"), 1)],
)
def test_debug_shows_where_it_comes_from(
    crash: Callable[[Exception], None], capsys: pytest.CaptureFixture[str], arguments: list[str], error: Exception, code: int
) -> None:
    crash(error)

    assert main(arguments) == code

    traced, _, said = capsys.readouterr().err.partition("\nerror: ")
    assert traced.startswith("Traceback (most recent call last):\n") and type(error).__name__ in traced
    assert said != ""


def test_behind_two_dashes_debug_is_a_word_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edit", "--", "--debug", "x"]) == 2
    assert "unexpected extra argument" in capsys.readouterr().err


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short enough", "short enough"),
        ("a message that goes over the end of the line", "a message that goes\n  over the end of\n  the line"),
        ("  fact  a title that goes on", "  fact  a title that\n        goes on"),
        ("see /a/path/longer-than-the-line", "see\n  /a/path/longer-than-the-line"),
        ("one\n\ntwo", "one\n\ntwo"),
    ],
)
def test_a_message_is_wrapped_between_words(text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys, "stderr", screen := Screen())

    print_message(text)

    assert screen.getvalue() == shown + "\n"


def test_a_message_that_goes_into_a_file_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys, "stderr", file := io.StringIO())

    print_message("a message that goes over the end of the line")

    assert file.getvalue() == "a message that goes over the end of the line\n"


@pytest.mark.parametrize(
    ("columns", "opened_by"), [(80, "ABC123"), (140, "decisions/a-long-name-of-a-note-for-the-job-queue-mar26.md")]
)
def test_on_a_narrow_terminal_a_result_ends_with_the_notes_short_id(
    columns: int, opened_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = {
        "rank": 1,
        "kind": "decision",
        "created": "2026-03-02T09:00:00Z",
        "title": "PostgreSQL instead of SQLite for the job queue",
        "snippet": "",
        "project": "",
        "status": "accepted",
        "path": "decisions/a-long-name-of-a-note-for-the-job-queue-mar26.md",
        "id": "01JD8000000000000000ABC123",
    }
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", screen := Screen())

    print_found({"query": "queue", "hits": [hit], "events": []}, explain=False, limit=1)

    line = screen.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "").rstrip("\n")
    assert "PostgreSQL instead of SQLite for the job" in line
    assert line.endswith(f"  {opened_by}") and len(line) <= columns


@pytest.mark.parametrize(
    ("editor", "words"),
    [
        (r"C:\Tools\ed.exe", [r"C:\Tools\ed.exe"]),
        (r"C:\Tools\ed.exe --wait", [r"C:\Tools\ed.exe", "--wait"]),
        (r'"C:\Program Files\ed.exe" --wait "two words"', [r"C:\Program Files\ed.exe", "--wait", "two words"]),
        ("ed -p", ["ed", "-p"]),
    ],
)
def test_an_editor_for_windows_may_be_named_by_its_path(editor: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    assert editor_words(editor, windows=True) == words


def test_an_editor_s_path_needs_no_quotes_on_windows(tmp_path: Path) -> None:
    editor = tmp_path / "O'Brien's editor"
    editor.touch()

    assert editor_words(str(editor), windows=True) == [str(editor)]
