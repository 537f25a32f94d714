"""No query of the timeline reads every event: half a year's are hundreds of thousands."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from kite_memory.extensions.contract.extractor_contract import SESSION, START, event
from kite_memory.model.event import (
    Cursor,
    EventType,
    EvidenceReference,
    ReadResult,
    RedactedResult,
    Session,
    Status,
    evidence_reference,
)
from kite_memory.timeline.conversations import CardQuery, Meaning
from kite_memory.timeline.rows import Since
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import Timeline

FAILED = "E       ConnectionRefusedError: could not connect to the ledger database"
MEANING = Meaning(
    space="test",
    of_texts=lambda texts: np.full((len(texts), 4), 0.5, np.float32),
    of_question=lambda text: np.full(4, 0.5, np.float32),
)
NOW = (START + timedelta(days=2)).timestamp()


def _look(events: int, *, session: Session = SESSION) -> RedactedResult:
    kinds: list[tuple[str, EventType, str, Status]] = [
        ("please mend the ledger", EventType.USER_MESSAGE, "", ""),
        ("make test", EventType.COMMAND, "make test", ""),
        (FAILED, EventType.ERROR, "make test", "failed"),
        ("we keep one pool for each worker, it survives a restart", EventType.DECISION, "", ""),
    ]
    listed = []
    for number in range(events):
        text, type, command, status = kinds[number % len(kinds)]
        listed.append(event(number, text, type, session=session, command=command, status=status))
    cursor = Cursor(position=1, size=1, mtime_ns=1, identity="i", carry="")
    return RedactedResult(
        ReadResult(path=f"/transcripts/{session.id}.jsonl", session=session, events=tuple(listed), problems=(), cursor=cursor)
    )


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    store = Timeline(tmp_path / "timeline.sqlite", clock=lambda: NOW)
    store.commit([_look(60)], SESSION.provider)
    yield store
    store.close()


def _every_method(timeline: Timeline) -> dict[str, Callable[[], object]]:
    """Each public method of the timeline but `close`, with arguments that lead it past its first query."""
    provider, session, project = SESSION.provider, SESSION.id, SESSION.project
    first = event(0)
    reference = EvidenceReference.parse(evidence_reference(provider, session, first.id))
    assert reference is not None
    signature = "ConnectionRefusedError: could not connect to the ledger database"
    return {
        "commit": lambda: timeline.commit([_look(70), replace(_look(70), amends=True)], provider),
        "cursor": lambda: timeline.cursor(f"/transcripts/{session}.jsonl"),
        "looked_at": timeline.looked_at,
        "folders": timeline.folders,
        "session_states": timeline.session_states,
        "recent_prompts": lambda: timeline.recent_prompts(100),
        "last_ordinals": timeline.last_ordinals,
        "session_state": lambda: timeline.session_state(provider, session),
        "session": lambda: timeline.session(provider, session),
        "last_session": lambda: (
            timeline.last_session(project, besides="another"),
            timeline.last_session(None),
            timeline.last_session(None, among=[project]),
        ),
        "last_prompt": lambda: timeline.last_prompt(provider, session),
        "spoken": lambda: timeline.spoken(provider, session),
        "sessions_named": lambda: timeline.sessions_named(session[:8]),
        "events": lambda: timeline.events(provider, session, after=3, limit=5),
        "holding": lambda: timeline.holding([(provider, session, 0, 5)]),
        "last_events": lambda: (
            timeline.last_events(provider, session, 5),
            timeline.last_events(provider, session, 5, before=9),
        ),
        "of_tools": lambda: timeline.of_tools(provider, session, ("TodoWrite",), among=50),
        "last_sessions": lambda: timeline.last_sessions(project, 3),
        "evidence": lambda: timeline.evidence(reference),
        "line": lambda: timeline.line(reference),
        "forget_events": lambda: [timeline.forget_events([event(number)], blank=bool(number)) for number in range(2)],  # type: ignore[func-returns-value]
        "offered": lambda: timeline.offered([first]),
        "search": lambda: (
            timeline.search(EventQuery(text="ledger database"), MEANING),
            timeline.search(EventQuery(text=FAILED, project=project, session=session[:8], file="ledger.py", tool="Bash"), MEANING),
            timeline.search(EventQuery(types=frozenset({EventType.ERROR}), since=START)),
        ),
        "embed_bundles": lambda: timeline.embed_bundles(MEANING),
        "make_cards": timeline.make_cards,
        "cards": lambda: (
            timeline.cards(CardQuery(text="mend the ledger database", project=project, session=session[:8], since=START), MEANING),
            timeline.cards(CardQuery(text="mend the ledger", within=project)),
        ),
        "talk": lambda: timeline.talk(first.id),
        "card_prompt": lambda: timeline.card_prompt(evidence_reference(provider, session, first.id)),
        "turn": lambda: timeline.turn(first.id),
        "conversation": lambda: timeline.conversation(first.id),
        "closing": lambda: timeline.closing(first.id),
        "bar": lambda: timeline.bar(project),
        "unsearched": timeline.unsearched,
        "fix": lambda: timeline.fix(project=project, session="another", signatures=[signature], command="make test"),
        "fix_of": lambda: timeline.fix_of(first),
        "overviews": lambda: (timeline.overviews(), timeline.overviews(project=project)),
        "session_count": lambda: timeline.session_count(project=project),
        "works": lambda: (timeline.works(), timeline.works(project=project)),
        "sub_sessions": lambda: timeline.sub_sessions(provider, session),
        "edges": lambda: timeline.edges(provider, session),
        "counts": timeline.counts,
        "tallies": timeline.tallies,
        "ordinals": lambda: timeline.ordinals([(provider, session, first.id)]),
        "states_of": lambda: timeline.states_of([(provider, session)]),
        "session_pages": lambda: list(timeline.session_pages()),
        "problems": timeline.problems,
        "damage": timeline.damage,
        "purge": timeline.purge,
        "forgotten": timeline.forgotten,
        "identity": timeline.identity,
        "changes": lambda: timeline.changes(Since(), 10),
        "citation": lambda: timeline.citation(first.id),
        "provenance": lambda: timeline.provenance(project).traces([FAILED]),
    }


def test_every_public_method_is_among_those_whose_queries_are_explained(timeline: Timeline) -> None:
    public = {name for name, member in vars(Timeline).items() if callable(member) and not name.startswith("_")}

    assert set(_every_method(timeline)) == public - {"close"}


def test_no_query_scans_every_event(timeline: Timeline, tmp_path: Path) -> None:
    asked: list[str] = []
    named: dict[str, str] = {}
    for connection in (timeline._reader, timeline._writer):
        connection.set_trace_callback(asked.append)
    for method, run in _every_method(timeline).items():
        run()
        named |= {statement: method for statement in asked if not statement.startswith("--")}  # which is a trigger's
        asked.clear()

    with closing(sqlite3.connect(tmp_path / "timeline.sqlite")) as database:
        scans = [scan for statement, method in named.items() for scan in _scans(database, statement, method)]
    assert len(named) > 60
    assert not scans, "\n".join(scans)


def _scans(database: sqlite3.Connection, statement: str, method: str) -> Iterator[str]:
    """Steps that read every event: one by one, or session by session of all of a provider's."""
    if not statement.lstrip().upper().startswith(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")):
        return
    views = " ".join(sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE type = 'view'"))
    of_events = {"events", *re.findall(r"\bevents AS (\w+)", f"{views} {statement}")}
    of_sessions = {"sessions", *re.findall(r"\bsessions AS (\w+)", f"{views} {statement}")}
    many_sessions: set[int] = set()
    for _, loop, _, step in database.execute(f"EXPLAIN QUERY PLAN {statement}"):
        if (found := re.match(r"(SCAN|SEARCH) (\w+)(.*)", step)) is None:
            continue
        how, table, by = found.groups()
        if table in of_sessions and not re.search(r"rowid=\?|provider=\? AND id=\?", by):
            many_sessions.add(loop)
        elif table in of_events and (how == "SCAN" or ("(session=?)" in by and loop in many_sessions)):
            yield f"{method}: {step}: {' '.join(statement.split())[:300]}"


def test_finding_a_notes_evidence_costs_the_same_whatever_else_there_is(timeline: Timeline) -> None:
    reference = EvidenceReference.parse(evidence_reference(SESSION.provider, SESSION.id, event(0).id))
    assert reference is not None

    def steps() -> int:
        counted = 0

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        timeline._reader.set_progress_handler(count, 1)
        assert timeline.evidence(reference) == [event(0, "please mend the ledger")]
        timeline._reader.set_progress_handler(None, 1)
        return counted

    with_few = steps()
    timeline.commit([_look(600)], SESSION.provider)
    assert steps() <= with_few * 1.1
