"""A memory's value and the body of its note."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.tools.argument_parsing import body_of, fits, value_of
from kite_memory.tools.store import JsonValue
from kite_memory.vault.wording import text_block

TEXTS = st.text() | st.sampled_from(
    [
        "",
        " ",
        "```",
        "```json\n1\n```",
        "```json\n1\n```\n\nmore",
        "[[link]]",
        "![[x]]",
        "<% tp %>",
        "a\0b",
        "\u200bhidden",
        "---\nid: 1\n---",
    ]
)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def same(one: JsonValue, other: JsonValue) -> bool:
    """Also of the same type: 1 is neither 1.0 nor true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@given(VALUES)
def test_every_value_comes_back_from_the_body_of_its_note(value: JsonValue) -> None:
    body = body_of(value)

    assert text_block(body) == body
    assert same(value_of(body), value)


@given(VALUES, VALUES, st.sampled_from(["", "A remark.", "## More\n\n```json\n2\n```"]))
def test_what_a_person_wrote_below_a_value_stays(before: JsonValue, value: JsonValue, remark: str) -> None:
    old = body_of({"was": before}) + (f"\n\n{remark}" if remark else "")

    new = body_of(value, old)

    assert same(value_of(new), value)
    assert new.endswith(remark)


def test_plain_text_is_itself_and_all_else_stands_in_a_fence() -> None:
    assert body_of("The port is 80.") == "The port is 80."
    assert body_of({"port": 80}) == '```json\n{"port": 80}\n```'
    assert body_of("80") == "80"
    assert value_of("80") == "80"


@pytest.mark.parametrize("text", ["see [[the plan]]", "![map](https://example.com/m.png)", "```dataview\nLIST\n```", "<% tp.x %>"])
def test_text_that_would_do_something_in_a_vault_lies_still_in_a_fence(text: str) -> None:
    body = body_of(text)

    assert body.startswith("```json\n")
    assert "<%" not in body
    assert value_of(body) == text


def test_a_persons_own_text_stays_as_they_typed_it() -> None:
    assert body_of("see [[the plan]]", tamed=False) == "see [[the plan]]"


@pytest.mark.parametrize(
    "body", ["```json\n{broken\n```", "```json\nNaN\n```", "```json\n1\n", "``` json\n1\n```", "```json\n" + "[" * 5000 + "\n```"]
)
def test_what_is_no_json_any_more_is_text_as_it_stands(body: str) -> None:
    assert value_of(body) == body


@pytest.mark.parametrize(
    ("pattern", "key", "fitting"),
    [
        ("a.b", "a.b", True),
        ("a.b", "axb", False),
        ("a.*", "a.b.c", True),
        ("a.*", "a", False),
        ("*", "", True),
        ("**", "anything", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("*.port", "project.db.port", True),
        ("p*t*port", "project.port", True),
        ("[a-z]*", "b", False),
        ("*a*a*a*a*a*a*a*a*a*b", "a" * 200, False),
    ],
)
def test_stars_are_any_characters_and_question_marks_are_one(pattern: str, key: str, fitting: bool) -> None:
    assert fits(pattern, key) is fitting
