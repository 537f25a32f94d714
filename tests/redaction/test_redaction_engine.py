"""Events as they pass the door, and the shapes of text that a terminal makes."""

import base64
from dataclasses import replace

import pytest

from kite_memory.extensions.contract.extractor_contract import event
from kite_memory.model.event import EventType
from kite_memory.redaction import drop_private, redact, redact_event, redaction_engine
from kite_memory.redaction.chance import Span
from kite_memory.redaction.redaction_engine import mark

TOKEN = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6"


def test_an_event_without_secrets_is_the_same_object() -> None:
    result = event(1, "Prune the pear tree in March.", command="git status")

    assert redact_event(result) is result


def test_text_command_and_path_are_redacted() -> None:
    changed = replace(
        event(1, f"It is {TOKEN}.", EventType.TOOL_CALL, command=f"curl -H 'Authorization: token {TOKEN}' https://api.example"),
        path=f"/home/ada/{TOKEN}.txt",
    )

    out = redact_event(changed)

    assert TOKEN not in out.text + out.command + out.path
    assert out == replace(changed, text=out.text, command=out.command, path=out.path)


@pytest.mark.parametrize(
    "text",
    [
        f"It is {TOKEN}.",
        f"It is {TOKEN[:9]}\u200b{TOKEN[9:]}, \x1b[31msaid\x1b[0m the gardener.",
        "<private>I am moving</private> plums and pears",
        "<\uff50rivate>I am moving</private> plums \u2013 and pears",
        "<pri\u200bvate>I am moving</private> plums",
        "<pri\x00vate>I am moving</pri\x00vate> plums",
        "Prune the pear tree – in March.",
    ],
)
def test_what_is_let_through_does_not_depend_on_what_was_known_before(text: str) -> None:
    known: dict[str, str] = {}

    redacted = [redact_event(event(number, text, command=text), known) for number in (1, 2)]

    assert {part for each in redacted for part in (each.text, each.command)} == {redact(drop_private(text))}


@pytest.mark.parametrize("type", [EventType.USER_MESSAGE, EventType.ASSISTANT_MESSAGE, EventType.TOOL_RESULT])
def test_private_words_are_dropped_no_matter_who_repeats_them(type: EventType) -> None:
    result = event(1, "You said: <private>I am moving to Oslo</private> plant pears.", type)

    assert redact_event(result).text == "You said:  plant pears."


def test_a_message_that_is_all_private_is_empty() -> None:
    assert redact_event(event(1, "<private>nothing for you")).text == ""


def test_colours_and_invisible_characters_go() -> None:
    assert redact("\x1b[1;32mgreen\x1b[0m \x1b]8;;https://a.example\x07link\x1b]8;;\x07 pe\u200bar") == "green link pear"


def test_a_terminal_string_that_never_ends_takes_no_text_with_it() -> None:
    assert redact("\x1b]plums and pears") == "plums and pears"


def test_joiners_that_mean_something_stay() -> None:
    text = "👩‍👩‍👧 می‌خواهم ⚠️ 1️⃣"

    assert redact(text) == text


def test_a_mark_is_left_alone_and_what_stands_beside_it_is_not() -> None:
    text = f"PASSWORD={mark('password')} TOKEN={TOKEN}"

    assert redact(text) == f"PASSWORD={mark('password')} TOKEN={mark('github-token')}"


def test_nothing_hides_in_a_mark_of_no_kind() -> None:
    disguised = "md-" + "a1b2c3d4e5f6g7h8i9j0k1"

    assert disguised not in redact(f"[redacted:{disguised}]")


def test_a_secret_within_base_64_within_base_64_takes_the_whole() -> None:
    inner = base64.b64encode(f"token={TOKEN}".encode())
    outer = base64.b64encode(b"config: " + inner).decode()

    assert redact(f"echo {outer} | base64 -d") == f"echo {mark('github-token')} | base64 -d"


def test_a_token_in_hexadecimal_digits_goes() -> None:
    assert redact(f"xxd: {TOKEN.encode().hex()}") == f"xxd: {mark('github-token')}"


@pytest.mark.parametrize("edge", ["", "x", "_", "\\n", "[31m", "=", "(", "é", "/", '"'])
def test_a_token_is_found_whatever_stands_before_it(edge: str) -> None:
    assert redact(f"{edge}{TOKEN} ") == f"{edge}{mark('github-token')} "


@pytest.mark.parametrize("edge", ["x", "_more", "-1", ".", ",", ")", "\\n", "[0m", '"', "é"])
def test_no_tail_of_a_token_is_left(edge: str) -> None:
    out = redact(f"see {TOKEN}{edge} there")

    assert out.startswith(f"see {mark('github-token')}")
    assert TOKEN[-6:] not in out


@pytest.mark.parametrize("cut", range(1, len(TOKEN)))
@pytest.mark.parametrize("wrap", ["\n", "\\\n", "\n    ", "\\n", " \n", "\r\n", " │\n│ ", "\n> ", "\n   12→", "\n# "])
def test_a_token_wrapped_anywhere_is_one_token(cut: int, wrap: str) -> None:
    assert redact(f'use "{TOKEN[:cut]}{wrap}{TOKEN[cut:]}" here') == f'use "{mark("github-token")}" here'


@pytest.mark.parametrize("text", ["gh\np_ripe pears", "the sk-\nant colony", "TOKEN=\nPEARS=ripe", "a1b2c3d\ne4f5a6b plum"])
def test_lines_that_only_meet_are_not_one_token(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("word", ["ok", "done", "user", "pears are ripe", "Harvest", "harvested"])
def test_the_word_after_a_secret_at_the_end_of_a_line_stays(word: str) -> None:
    assert redact(f"PASSWORD=q7Rk2vXz9LmP4tWs\n{word}") == f"PASSWORD={mark('password')}\n{word}"


def test_the_command_after_a_token_at_the_end_of_a_line_stays() -> None:
    assert redact(f"export GITHUB_TOKEN={TOKEN}\nfruitctl sync") == f"export GITHUB_TOKEN={mark('github-token')}\nfruitctl sync"


def test_a_text_without_a_secret_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "The walnut press is oiled before the first harvest of the year."
    searched: list[bytes] = []

    def find(raw: bytes, places: list[tuple[int, int]], *, of: int) -> list[Span]:
        searched.append(raw)
        return []

    monkeypatch.setattr(redaction_engine, "find", find)

    assert redact(text) == redact(text) == text
    assert searched == [text.encode()]


def test_a_text_with_a_secret_is_searched_each_time() -> None:
    text = f"The press asks for {TOKEN} each time."

    assert redact(text) == redact(text) != text
