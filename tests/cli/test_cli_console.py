"""The program's two mouths, and what becomes of errors."""

import io
import json
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.cli.console import counted, say, say_json, tell
from kite_memory.cli.main import app, main
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
    assert steering(spoken(say, text)) == []


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"])))
def test_plain_words_are_said_as_they_are(text: str) -> None:
    assert spoken(say, text) == text + "\n"


@given(JSON)
def test_json_keeps_every_character_and_steers_nothing(value: Any) -> None:
    text = spoken(say_json, value)

    assert json.loads(text) == value
    assert steering(text) == []


@pytest.mark.parametrize(("number", "said"), [(0, "0 notes"), (1, "1 note"), (2, "2 notes"), (21_091, "21,091 notes")])
def test_things_are_counted_as_people_count(number: int, said: str) -> None:
    assert counted(number, "note") == said


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_is_not_there_is_not_spoken_to(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sys, name, None)

    say("x")
    tell("x")
    say_json({})


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
        "hint: this is a bug of ours; run the command again with --debug and report what it prints",
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
