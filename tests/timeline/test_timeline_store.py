"""The timeline: what is committed stays, once, with the position that covers it."""

import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kite_memory.errors import StateDamaged, StateNewer
from kite_memory.model.event import Event, EventType, EvidenceReference, Role, Session, Where
from kite_memory.model.link import Edge, EdgeKind
from kite_memory.model.look import Cursor, Look, Problem
from kite_memory.timeline.store import Timeline

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
SESSION = Session(id="s1", provider="claude-code", started=START, project="orchard", cwd="/home/ada/orchard", branch="main")


def event(number: int, *, type: EventType = EventType.USER_MESSAGE, role: Role = "user", parent: str = "") -> Event:
    return Event(
        id=f"{number:08x}-0000-4000-8000-000000000000",
        session="s1",
        provider="claude-code",
        ordinal=number,
        at=START + timedelta(seconds=number),
        role=role,
        type=type,
        text=f"event {number}",
        where=Where(file="/t/s1.jsonl", start=number * 100, end=number * 100 + 99),
        parent=parent,
    )


def look(*events: Event, position: int = 100, session: Session | None = SESSION, problems: tuple[Problem, ...] = ()) -> Look:
    cursor = Cursor(position=position, size=position, mtime_ns=1, identity="i", carry="c")
    return Look(path="/t/s1.jsonl", session=session, events=events, problems=problems, cursor=cursor)


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    store = Timeline(tmp_path / "timeline.sqlite")
    yield store
    store.close()


def test_an_event_comes_back_as_it_was(timeline: Timeline) -> None:
    whole = replace(event(1), tool="Bash", command="make test", path="/a/b", status="failed", parent="p", call="toolu_1")

    timeline.commit([look(whole)], "claude-code")

    assert timeline.events("claude-code", "s1") == [whole]


def test_an_event_known_already_is_taken_once_even_from_another_file(timeline: Timeline) -> None:
    timeline.commit([look(event(1), event(2))], "claude-code")
    fork = Session(id="s2", provider="claude-code", started=START)
    copied = [replace(event(number), session="s2", where=Where(file="/t/s2.jsonl", start=0, end=1)) for number in (1, 2, 3)]

    added = timeline.commit([replace(look(*copied, session=fork), path="/t/s2.jsonl")], "claude-code")

    assert added == 1
    assert [e.id for e in timeline.events("claude-code", "s2")] == [event(3).id]
    assert len(timeline.events("claude-code", "s1")) == 2


def test_a_session_told_anew_goes_on_where_it_was(timeline: Timeline) -> None:
    timeline.commit([look(event(5), event(6))], "claude-code")
    rewritten = [replace(event(number), ordinal=number - 100) for number in (101, 102)]

    timeline.commit([look(*rewritten)], "claude-code")

    events = timeline.events("claude-code", "s1")
    assert [e.id for e in events] == [event(number).id for number in (5, 6, 101, 102)]
    assert [e.ordinal for e in events] == [5, 6, 7, 8]
    (state,) = timeline.session_states()
    assert state.last_ordinal == 8


def test_position_and_events_are_committed_together_or_not_at_all(timeline: Timeline) -> None:
    timeline.commit([look(event(1), position=100)], "claude-code")
    impossible = replace(event(2), text=object())  # type: ignore[arg-type]  # what SQLite refuses to store

    with pytest.raises(sqlite3.Error):
        timeline.commit([look(event(3), impossible, position=200)], "claude-code")

    cursor = timeline.cursor("/t/s1.jsonl")
    assert cursor is not None
    assert cursor.position == 100
    assert [e.ordinal for e in timeline.events("claude-code", "s1")] == [1]


def test_edges_follow_from_order_and_parents(timeline: Timeline) -> None:
    said = event(1, type=EventType.ASSISTANT_MESSAGE, role="assistant")
    call = event(2, type=EventType.TOOL_CALL, role="assistant", parent=said.id)
    result = event(3, type=EventType.TOOL_RESULT, role="tool", parent=call.id)

    timeline.commit([look(said, call, result)], "claude-code")

    assert set(timeline.edges("claude-code", "s1")) == {
        Edge(kind=EdgeKind.NEXT, source=said.id, target=call.id),
        Edge(kind=EdgeKind.NEXT, source=call.id, target=result.id),
        Edge(kind=EdgeKind.CALLS, source=said.id, target=call.id),
        Edge(kind=EdgeKind.RETURNS, source=call.id, target=result.id),
    }


def test_evidence_leads_to_every_event_of_its_line(timeline: Timeline) -> None:
    line, derived = event(7), replace(event(7), id=event(7).id + ":1", type=EventType.ERROR)
    timeline.commit([look(line, derived, event(8))], "claude-code")

    found = timeline.evidence(EvidenceReference(provider="claude-code", session="s1", event="00000007"))

    assert [e.id for e in found] == [line.id, derived.id]


def test_a_session_learns_its_title_later_and_keeps_its_project(timeline: Timeline) -> None:
    timeline.commit([look(event(1))], "claude-code")

    timeline.commit([look(event(2), session=replace(SESSION, title="Pruning", project="elsewhere"))], "claude-code")

    session = timeline.session("claude-code", "s1")
    assert session == replace(SESSION, title="Pruning")


def test_problems_are_counted_by_reason(timeline: Timeline) -> None:
    torn = Problem(file="/t/s1.jsonl", position=5, reason="not JSON")

    timeline.commit([look(problems=(torn, replace(torn, position=9)))], "claude-code")

    (counted,) = timeline.problems()
    assert (counted.reason, counted.count, counted.first_position) == ("not JSON", 2, 5)
    assert timeline.counts()[0].problems == 2


def test_quiet_since_is_the_earlier_of_event_and_commit(tmp_path: Path) -> None:
    wrong_clock = Timeline(tmp_path / "t.sqlite", clock=lambda: START.timestamp() - 3600)

    wrong_clock.commit([look(event(1))], "claude-code")

    (state,) = wrong_clock.session_states()
    assert state.quiet_since == START.timestamp() - 3600
    wrong_clock.close()


def test_a_newer_file_is_refused_and_a_damaged_one_named(tmp_path: Path) -> None:
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"not a database, but long enough to have a header " * 10)

    with pytest.raises(StateNewer, match="newer"):
        Timeline(newer)
    with pytest.raises(StateDamaged, match="cannot be read"):
        Timeline(damaged)


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    Timeline(tmp_path / "state" / "t.sqlite").close()

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}

    assert set(modes.values()) == {0o600}
