"""Whose request it is that cannot be read: distinguished from what stands outermost in it, however long and wild the rest."""

import json
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.mcp_server.stdio import Envelope
from tests.counts import examples

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("id"), inner, max_size=4),
    max_leaves=20,
)
CUTS = st.lists(st.integers(0, 200))
IDS = st.integers(-(1 << 53), 1 << 53) | st.text(st.characters(categories=["L", "N", "P"]), max_size=40)


def in_pieces(text: bytes, cuts: list[int]) -> Envelope:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    envelope = Envelope()
    for start, end in pairwise(places):
        envelope.feed(text[start:end])
    return envelope


@settings(max_examples=examples(300))
@given(
    id=IDS,
    params=ANYTHING,
    method=st.text(max_size=20),
    at=st.integers(0, 2),
    spelled_out=st.booleans(),
    cuts=st.lists(st.integers(0, 100_000), max_size=6),
)
def test_the_id_is_found_whatever_stands_beside_it(
    id: int | str, params: object, method: str, at: int, spelled_out: bool, cuts: list[int]
) -> None:
    members: list[tuple[str, object]] = [("method", method), ("params", {"value": params})]
    members.insert(at, ("id", id))
    text = json.dumps(dict(members), ensure_ascii=spelled_out).encode("utf-8", "replace")

    assert in_pieces(text, cuts).id() == id


@settings(max_examples=examples(300))
@given(
    text=st.binary(max_size=200) | st.text(alphabet='{}[]":,\\\\id5', max_size=60).map(str.encode),
    cuts=st.lists(st.integers(0, 200)),
)
def test_whatever_comes_it_is_an_id_or_none(text: bytes, cuts: list[int]) -> None:
    name = in_pieces(text, cuts).id()

    assert name is None or type(name) in (int, str)
    assert name == Envelope(text).id()


def test_of_a_message_of_any_length_little_is_kept() -> None:
    envelope = Envelope(b'{"id": 5, "method": "' + b"x" * 3_000_000)
    for _ in range(20):
        envelope.feed(b"y" * 1_000_000)
    envelope.feed(b'", "params": {"value": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}}")

    assert envelope.id() == 5
    assert len(envelope._kept) < 2_000


def test_a_name_that_is_longer_than_any_names_nothing() -> None:
    assert Envelope(b'{"id": "%s"}' % (b"x" * 2_000)).id() is None
    assert Envelope(b'{"id": 1, "%s": 2}' % (b"x" * 2_000)).id() is None
