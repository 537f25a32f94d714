"""Bundles: events that tell something, found by what they mean together with what stands around them."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Session, Status, Where
from kite_memory.timeline import schema
from kite_memory.timeline.conversations import ConversationEmbedder
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import Timeline
from tests.fakes.clock import UnixClock

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
SESSION = Session(id="5e550001-orchard", provider="claude-code", started=START, project="orchard", cwd="/home/ada/orchard")
Vectors = npt.NDArray[np.float32]

SUBJECTS = (("water", "sluice", "flood", "pump"), ("money", "invoice", "price"), ("night", "lamp", "dark"))
"""Words that mean the same to the embedder of these tests."""


class Embedder:
    """Knows a few subjects, and writes down what it was given."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def texts(self, texts: Sequence[str]) -> Vectors:
        self.read += texts
        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), len(SUBJECTS))

    def question(self, text: str) -> Vectors:
        return self._vector(text)

    def _vector(self, text: str) -> Vectors:
        heard = np.array([sum(text.lower().count(word) for word in words) for words in SUBJECTS], np.float32)
        length = float(np.linalg.norm(heard))
        return heard / np.float32(length) if length else heard


@pytest.fixture
def embedder() -> Embedder:
    return Embedder()


@pytest.fixture
def meaning(embedder: Embedder) -> ConversationEmbedder:
    return ConversationEmbedder(space="subjects-3", of_texts=embedder.texts, of_question=embedder.question)


@pytest.fixture
def clock() -> UnixClock:
    return UnixClock(START + timedelta(hours=1))


@pytest.fixture
def timeline(tmp_path: Path, clock: UnixClock) -> Iterator[Timeline]:
    with closing(Timeline(tmp_path / "timeline.sqlite", clock=clock)) as store:
        yield store


def event_of(
    number: int, type: EventType, text: str, *, status: Status = "", command: str = "", path: str = "", call: str = ""
) -> Event:
    return Event(
        id=f"{number:08x}-{SESSION.id}",
        session=SESSION.id,
        provider=SESSION.provider,
        ordinal=number,
        at=START + timedelta(minutes=number),
        role="assistant",
        type=type,
        text=text,
        where=Where(file="/t/a.jsonl", start=number, end=number + 1),
        status=status,
        command=command,
        path=path,
        call=call,
    )


def keep(timeline: Timeline, *events: Event, amends: bool = False) -> None:
    cursor = Cursor(position=len(events), size=1, mtime_ns=1)
    look = ReadResult(path="/t/a.jsonl", session=SESSION, events=events, problems=(), cursor=cursor, amends=amends)
    timeline.commit([RedactedResult(look)], SESSION.provider)


FLOOD = event_of(3, EventType.DECISION, "We raise the bank by a hand's breadth, and open the sluice before it rains.")


def test_an_event_whose_session_is_forgotten_meanwhile_is_left_out(timeline: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(timeline, FLOOD)
    assert [hit.event for hit in timeline.search.find(EventQuery(text="bank"))] == [FLOOD]

    monkeypatch.setattr(timeline.sessions, "get", lambda provider, session: None)

    assert timeline.search.find(EventQuery(text="bank")) == ()


def test_what_means_the_same_is_found_without_a_common_word(
    timeline: Timeline, clock: UnixClock, meaning: ConversationEmbedder
) -> None:
    keep(timeline, FLOOD, event_of(4, EventType.ASSISTANT_MESSAGE, "The invoice is on the table, and so is its price."))
    clock.now += timedelta(hours=1)
    before = timeline.search.find(EventQuery(text="flood"), meaning)

    embedded = timeline.vectors.embed(meaning)

    assert (before, embedded) == ((), 1)
    assert [hit.event for hit in timeline.search.find(EventQuery(text="flood"), meaning)] == [FLOOD]
    assert [hit.event for hit in timeline.search.find(EventQuery(text="flood", by_words=False), meaning)] == [FLOOD]
    assert timeline.search.find(EventQuery(text="flood")) == ()
    assert timeline.search.find(EventQuery(text="flood", project="mycelia"), meaning) == ()
    assert timeline.search.find(EventQuery(text="price", by_words=False), meaning) == ()


def test_only_what_shows_something_gets_a_vector(
    timeline: Timeline, clock: UnixClock, meaning: ConversationEmbedder, embedder: Embedder
) -> None:
    keep(
        timeline,
        event_of(1, EventType.USER_MESSAGE, "Every raw message stays without a vector of its own, whatever it says."),
        event_of(
            2, EventType.TOOL_RESULT, "error: the output of a call stays without one, since its error has it", status="failed"
        ),
        event_of(3, EventType.TEST_RESULT, "12 passed, and nothing more is to be said of this run", status="ok"),
        event_of(4, EventType.ERROR, "File has not been read yet. Read it first before writing.", status="failed", path="/a/b"),
        event_of(5, EventType.RESUME_POINT, "Summary: the bank is raised, the sluice is not yet opened."),
        event_of(6, EventType.ERROR, "error: the sluice cannot be opened from outside", status="failed", command="sluice open"),
    )
    clock.now += timedelta(hours=1)

    timeline.vectors.embed(meaning)

    assert [text.splitlines()[0][:20] for text in embedder.read] == ["error: the sluice ca", "Summary: the bank is"]


def test_a_decision_is_read_with_what_was_said_before_it(
    timeline: Timeline, clock: UnixClock, meaning: ConversationEmbedder, embedder: Embedder
) -> None:
    keep(
        timeline,
        event_of(1, EventType.USER_MESSAGE, "Will the bank hold?"),
        event_of(2, EventType.ASSISTANT_MESSAGE, "Not in spring."),
        FLOOD,
    )
    clock.now += timedelta(hours=1)

    timeline.vectors.embed(meaning)

    assert embedder.read == [f"{FLOOD.text}\nNot in spring.\nWill the bank hold?"]


def test_a_failure_is_read_with_what_made_it_go_away(
    timeline: Timeline, clock: UnixClock, meaning: ConversationEmbedder, embedder: Embedder
) -> None:
    keep(
        timeline,
        event_of(
            1, EventType.ERROR, "error: the depot at the gate is closed to you", status="failed", command="make deploy", call="a"
        ),
        event_of(2, EventType.COMMAND, "depot login ada", command="depot login ada", call="b"),
        event_of(3, EventType.TOOL_RESULT, "welcome", status="ok", call="b"),
        event_of(4, EventType.COMMAND, "make deploy", command="make deploy", call="c"),
        event_of(5, EventType.TOOL_RESULT, "done", status="ok", call="c"),
    )
    clock.now += timedelta(hours=1)

    timeline.vectors.embed(meaning)

    assert embedder.read == [
        "error: the depot at the gate is closed to you\nmake deploy\nIt went away with: make deploy\ndepot login ada"
    ]


def test_a_session_that_goes_on_waits(timeline: Timeline, clock: UnixClock, meaning: ConversationEmbedder) -> None:
    keep(timeline, replace(FLOOD, at=clock.now))

    at_once = timeline.vectors.embed(meaning)
    clock.now += timedelta(minutes=11)

    assert at_once == 0
    assert timeline.vectors.embed(meaning) == 1
    assert timeline.vectors.embed(meaning) == 0


def test_a_bundle_that_is_amended_is_embedded_anew(timeline: Timeline, clock: UnixClock, meaning: ConversationEmbedder) -> None:
    keep(timeline, FLOOD, amends=True)
    clock.now += timedelta(hours=1)
    timeline.vectors.embed(meaning)

    keep(timeline, replace(FLOOD, text="We buy the lamp, so that nobody falls into the ditch."), amends=True)
    between = timeline.search.find(EventQuery(text="flood"), meaning)
    clock.now += timedelta(hours=1)
    again = timeline.vectors.embed(meaning)

    assert (between, again) == ((), 1)
    assert len(timeline.search.find(EventQuery(text="dark"), meaning)) == 1


def test_a_bundle_that_changes_while_it_is_embedded_keeps_no_old_vector(
    timeline: Timeline, clock: UnixClock, embedder: Embedder
) -> None:
    keep(timeline, FLOOD, amends=True)
    clock.now += timedelta(hours=1)

    def amended_meanwhile(texts: Sequence[str]) -> Vectors:
        keep(timeline, replace(FLOOD, text="We buy the lamp, so that nobody falls into the ditch."), amends=True)
        return embedder.texts(texts)

    slow = ConversationEmbedder(space="subjects-3", of_texts=amended_meanwhile, of_question=embedder.question)

    assert timeline.vectors.embed(slow) == 0
    assert timeline.search.find(EventQuery(text="flood"), slow) == ()


def test_vectors_of_another_space_are_made_anew(timeline: Timeline, clock: UnixClock, meaning: ConversationEmbedder) -> None:
    keep(timeline, FLOOD)
    clock.now += timedelta(hours=1)
    timeline.vectors.embed(meaning)
    other = replace(meaning, space="subjects-4")

    before = timeline.search.find(EventQuery(text="flood"), other)
    embedded = timeline.vectors.embed(other)

    assert (before, embedded) == ((), 1)
    assert len(timeline.search.find(EventQuery(text="flood"), other)) == 1
    assert timeline.search.find(EventQuery(text="flood"), meaning) == ()


def test_a_day_has_room_for_so_many(timeline: Timeline, clock: UnixClock, meaning: ConversationEmbedder) -> None:
    keep(timeline, *(replace(FLOOD, id=f"{number:08x}-x", ordinal=number) for number in range(5)))
    clock.now += timedelta(hours=1)
    today = [timeline.vectors.embed(meaning, 2, per_day=3) for _ in range(3)]
    clock.now += timedelta(days=1)

    tomorrow = timeline.vectors.embed(meaning, 9, per_day=3)

    assert today == [2, 1, 0]
    assert tomorrow == 2


def test_bundles_of_an_earlier_schema_are_found_with_the_next_commit(
    tmp_path: Path, clock: UnixClock, meaning: ConversationEmbedder
) -> None:
    path, earlier = tmp_path / "now.sqlite", tmp_path / "earlier.sqlite"
    with closing(Timeline(path, clock=clock)) as timeline:
        keep(timeline, FLOOD)
    with closing(sqlite3.connect(earlier)) as database, database:
        for number in range(1, 4):
            for statement in schema.MIGRATIONS[number]:
                database.execute(statement)
        database.execute("ATTACH ? AS now", (str(path),))
        for table in ("sessions", "files", "events"):
            database.execute(f"INSERT INTO main.{table} SELECT * FROM now.{table}")
        database.execute("PRAGMA user_version = 3")
    with closing(Timeline(earlier, clock=clock)) as timeline:
        keep(timeline, event_of(9, EventType.USER_MESSAGE, "Good morning."))
        clock.now += timedelta(hours=1)

        assert timeline.vectors.embed(meaning) == 1
