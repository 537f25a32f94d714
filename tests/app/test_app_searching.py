"""What a search asks for, shown by its prefixes."""

import pytest

from kite_memory.app.searching import SearchedFor, searched_for
from kite_memory.model.event import EventType
from kite_memory.model.note import NoteKind


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("why postgres", SearchedFor(words="why postgres")),
        ("decision: postgres", SearchedFor(words="postgres", kinds=frozenset({NoteKind.DECISION}))),
        ("Error:refused test: pool", SearchedFor(words="refused pool", types=frozenset({EventType.ERROR, EventType.TEST_RESULT}))),
        ("tool:Bash pool", SearchedFor(words="pool", tool="Bash")),
        ("tool: Bash pool", SearchedFor(words="pool", tool="Bash")),
        ("file:src/pool.py resume:", SearchedFor(words="", file="src/pool.py", types=frozenset({EventType.RESUME_POINT}))),
        ("session: 5e55 file:", SearchedFor(words="", session="5e55")),
        ("file: error: refused", SearchedFor(words="", file="refused", types=frozenset({EventType.ERROR}))),
        ("TypeError: x", SearchedFor(words="TypeError: x")),
    ],
)
def test_prefixes_say_what_is_asked_for(query: str, asked: SearchedFor) -> None:
    assert searched_for(query) == asked


@pytest.mark.parametrize(
    ("query", "notes", "events"),
    [
        ("pool", True, True),
        ("insight: pool", True, False),
        ("decision: pool", True, True),
        ("error: pool", False, True),
        ("fact: error: pool", True, True),
        ("decision: session:5e55 pool", False, True),
        ("decision: tool:Bash", False, True),
        ("fact: session:5e55 pool", False, False),
    ],
)
def test_a_prefix_says_whether_notes_or_events_are_the_answer(query: str, notes: bool, events: bool) -> None:
    asked = searched_for(query)

    assert (asked.notes, asked.events) == (notes, events)


def test_what_was_decided_is_an_event_too() -> None:
    assert searched_for("decision: error: pool").event_types == {EventType.DECISION, EventType.ERROR}
