"""Results and errors as agents get them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.errors import KiteError
from kite_memory.mcp_server.server import bounded, refusal, text_of
from kite_memory.text.quoting import safe_json
from kite_memory.tools.declarations import result_of
from kite_memory.tools.store import Conflict, StoreUnavailable, Unsure

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=40,
)


@given(result=st.dictionaries(st.text(max_size=8), JSON, max_size=6), longest=st.integers(50, 400))
def test_no_result_is_longer_than_it_may_be(result: dict[str, object], longest: int) -> None:
    short = bounded(result, longest)

    assert len(safe_json({name: value for name, value in short.items() if name != "cut"})) <= longest
    assert short == result or "cut" in short


@given(result=st.dictionaries(st.text(max_size=8), JSON, max_size=6))
def test_a_short_result_is_left_as_it_is(result: dict[str, object]) -> None:
    assert bounded(result, 1_000_000) == result


def test_a_long_list_loses_its_end_and_a_long_text_too() -> None:
    hits = bounded({"hits": [{"id": number, "snippet": "x" * 100} for number in range(500)], "query": "tea"}, 20_000)
    text = bounded({"text": "word " * 100_000, "id": "7"}, 20_000)

    assert [hit["id"] for hit in hits["hits"]] == list(range(len(hits["hits"])))
    assert 60 < len(hits["hits"]) < 200 and hits["query"] == "tea"
    assert text["text"].startswith("word word") and "more characters" in text["text"]
    assert 15_000 < len(text["text"]) <= 20_000 and text["id"] == "7"


def test_the_text_is_the_tools_own_or_else_all_of_it() -> None:
    assert text_of({"text": "# Tea", "id": "7"}) == "# Tea"
    assert json.loads(text_of({"version": 3, "key": "é"})) == {"version": 3, "key": "é"}


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (Conflict("somebody wrote", version=4, hint="look"), "conflict", "expected_version 4"),
        (StoreUnavailable("gone", hint="wait"), "unavailable", "nothing was written; try again"),
        (Unsure("lost", hint="look"), "unsure", "written whole, or not at all"),
        (KiteError("else", hint="this way"), "failed", "hint: this way"),
    ],
)
def test_an_error_says_what_to_do(error: KiteError, kind: str, said: str) -> None:
    words, result = refusal(error)

    assert words.startswith(f"error: {error}") and said in words
    assert result["error"]["kind"] == kind
    assert result["error"].get("version") == (4 if kind == "conflict" else None)
    with pytest.raises(type(error)):  # on the other side of a socket, too
        result_of(result)
    assert ("nothing was written" in words) is (kind == "unavailable")
