"""Documents that are written anew as a whole."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kite_memory.extensions.contract.extractor_contract import SESSION, event
from kite_memory.model.event import Cursor, Event, Problem, ReadResult, Where
from kite_memory.sources.common.documents import ParsedDocument, ReturnedState, only_changed, read_document, read_rewritten

TEXTS = st.lists(st.text("ab", max_size=2), max_size=300)


def events_of(texts: Sequence[str]) -> list[Event]:
    return [replace(event(at, text), where=Where(file="d", start=at, end=at)) for at, text in enumerate(texts)]


def parsed_document(document: Any, note: str) -> ParsedDocument:
    problems = [Problem(file="d", position=at, reason="odd") for at, text in enumerate(document) if text == "odd"]
    events = events_of(document)
    return ParsedDocument(session=SESSION, messages=len(document), events=events, problems=problems, note=note + "+")


def look(path: Path, document: str, cursor: Cursor | None = None, *, limit: int = 1 << 20) -> ReadResult:
    path.write_text(document, encoding="utf-8")
    return read_rewritten(path, cursor, within=path.parent, limit=limit, parse=parsed_document)


@given(TEXTS, TEXTS)
def test_what_is_reported_for_two_versions_is_all_that_the_second_says(before: list[str], after: list[str]) -> None:
    first, known = only_changed(events_of(before), ReturnedState())

    second, _ = only_changed(events_of(after), ReturnedState.from_carry(known.to_carry()))

    held = {event.id: event for event in (*first, *second)}
    assert [held[event.id] for event in events_of(after)] == events_of(after)


@given(TEXTS, st.text("ab", max_size=2))
def test_a_message_more_is_all_that_is_reported_again(texts: list[str], more: str) -> None:
    _, known = only_changed(events_of(texts), ReturnedState())

    second, _ = only_changed(events_of([*texts, more]), ReturnedState.from_carry(known.to_carry()))

    assert list(second) == events_of([*texts, more])[-1:]


def test_what_is_known_stays_small(tmp_path: Path) -> None:
    cursor = look(tmp_path / "d.json", json.dumps([str(number) for number in range(5_000)])).cursor

    assert len(cursor.carry) < 4_000


def test_a_problem_is_reported_once_however_often_the_document_is_written(tmp_path: Path) -> None:
    first = look(tmp_path / "d.json", '["odd"]')

    second = look(tmp_path / "d.json", '["odd","fine","odd"]', first.cursor)

    assert [[problem.position for problem in each.problems] for each in (first, second)] == [[0], [2]]


def test_a_note_is_handed_from_version_to_version(tmp_path: Path) -> None:
    first = look(tmp_path / "d.json", '["a"]')
    second = look(tmp_path / "d.json", '["a","b"]', first.cursor)

    assert [ReturnedState.from_carry(each.cursor.carry).note for each in (first, second)] == ["+", "++"]


def test_a_text_that_was_cut_amid_a_character_is_read(tmp_path: Path) -> None:
    (result,) = look(tmp_path / "d.json", '["pear \\ud83c"]').events

    assert result.text == "pear \ufffd"


def test_a_document_too_large_is_looked_at_again_when_it_is_another(tmp_path: Path) -> None:
    large = look(tmp_path / "d.json", '["aaaaaaaaaaaaaaaa"]', limit=10)
    smaller = look(tmp_path / "d.json", '["a"]', large.cursor, limit=10)

    assert (large.events, [problem.reason for problem in large.problems]) == ((), ["document too large"])
    assert large.cursor.size == 20
    assert [event.text for event in smaller.events] == ["a"]


def test_a_document_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_bytes(b'\xef\xbb\xbf{"messages": []}')

    assert read_document(path, within=tmp_path).value == {"messages": []}
