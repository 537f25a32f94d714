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
from kite_memory.timeline.conversations import CardQuery, ConversationEmbedder
from kite_memory.timeline.rows import Since
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import Timeline

FAILED = "E       ConnectionRefusedError: could not connect to the ledger database"
MEANING = ConversationEmbedder(
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
    """Each public method of the timeline and its parts but `close`, with arguments that lead it past its first query."""
    provider, session, project = SESSION.provider, SESSION.id, SESSION.project
    first = event(0)
    reference = EvidenceReference.parse(evidence_reference(provider, session, first.id))
    assert reference is not None
    signature = "ConnectionRefusedError: could not connect to the ledger database"
    return {
        "commit": lambda: timeline.commit([_look(70), replace(_look(70), amends=True)], provider),
        "files.cursor": lambda: timeline.files.cursor(f"/transcripts/{session}.jsonl"),
        "files.looked_at": timeline.files.looked_at,
        "sessions.folders": timeline.sessions.folders,
        "sessions.states": timeline.sessions.states,
        "events.recent_prompts": lambda: timeline.events.recent_prompts(100),
        "events.prompts_between": lambda: timeline.events.prompts_between(SESSION.provider, SESSION.id, START, START),
        "sessions.during": lambda: timeline.sessions.during("orchard", START, START, 8),
        "sessions.latest_projects": lambda: timeline.sessions.latest_projects(8),
        "sessions.last_ordinals": timeline.sessions.last_ordinals,
        "sessions.state": lambda: timeline.sessions.state(provider, session),
        "sessions.get": lambda: timeline.sessions.get(provider, session),
        "sessions.last": lambda: (
            timeline.sessions.last(project, besides="another"),
            timeline.sessions.last(None),
            timeline.sessions.last(None, among=[project]),
        ),
        "events.last_prompt": lambda: timeline.events.last_prompt(provider, session),
        "events.spoken": lambda: timeline.events.spoken(provider, session),
        "sessions.named": lambda: timeline.sessions.named(session[:8]),
        "events.of_session": lambda: timeline.events.of_session(provider, session, after=3, limit=5),
        "events.holding": lambda: timeline.events.holding([(provider, session, 0, 5)]),
        "events.last": lambda: (
            timeline.events.last(provider, session, 5),
            timeline.events.last(provider, session, 5, before=9),
        ),
        "events.of_tools": lambda: timeline.events.of_tools(provider, session, ("TodoWrite",), among=50),
        "sessions.latest": lambda: timeline.sessions.latest(project, 3),
        "events.evidence": lambda: timeline.events.evidence(reference),
        "events.line": lambda: timeline.events.line(reference),
        "forgotten.add": lambda: [timeline.forgotten.add([event(number)], blank=bool(number)) for number in range(2)],  # type: ignore[func-returns-value]
        "events.offered": lambda: timeline.events.offered([first]),
        "search.find": lambda: (
            timeline.search.find(EventQuery(text="ledger database"), MEANING),
            timeline.search.find(
                EventQuery(text=FAILED, project=project, session=session[:8], file="ledger.py", tool="Bash"), MEANING
            ),
            timeline.search.find(EventQuery(types=frozenset({EventType.ERROR}), since=START)),
        ),
        "vectors.embed": lambda: timeline.vectors.embed(MEANING),
        "vectors.near": lambda: timeline.vectors.near("ledger", MEANING),
        "cards.rebuild": timeline.cards.rebuild,
        "cards.find": lambda: (
            timeline.cards.find(
                CardQuery(text="mend the ledger database", project=project, session=session[:8], since=START), MEANING
            ),
            timeline.cards.find(CardQuery(text="mend the ledger", within=project)),
        ),
        "cards.vectors": lambda: timeline.cards.vectors([first.id], "space"),
        "cards.talk": lambda: timeline.cards.talk(first.id),
        "cards.prompts_called": lambda: timeline.cards.prompts_called(first.id[:8]),
        "cards.prompt_of": lambda: timeline.cards.prompt_of(evidence_reference(provider, session, first.id)),
        "cards.turn": lambda: timeline.cards.turn(first.id),
        "cards.conversation": lambda: timeline.cards.conversation(first.id),
        "cards.opening_threshold": lambda: timeline.cards.opening_threshold(project),
        "search.unsearched": timeline.search.unsearched,
        "fixes.fix": lambda: timeline.fixes.fix(project=project, session="another", signatures=[signature], command="make test"),
        "fixes.fix_of": lambda: timeline.fixes.fix_of(first),
        "sessions.overviews": lambda: (timeline.sessions.overviews(), timeline.sessions.overviews(project=project)),
        "sessions.count": lambda: timeline.sessions.count(project=project),
        "sessions.works": lambda: (timeline.sessions.works(), timeline.sessions.works(project=project)),
        "sessions.sub_sessions": lambda: timeline.sessions.sub_sessions(provider, session),
        "events.edges": lambda: timeline.events.edges(provider, session),
        "files.counts": timeline.files.counts,
        "files.tallies": timeline.files.tallies,
        "events.ordinals": lambda: timeline.events.ordinals([(provider, session, first.id)]),
        "sessions.states_of": lambda: timeline.sessions.states_of([(provider, session)]),
        "sessions.pages": lambda: list(timeline.sessions.pages()),
        "files.problems": timeline.files.problems,
        "damage": timeline.damage,
        "forgotten.purge": timeline.forgotten.purge,
        "forgotten.lines": timeline.forgotten.lines,
        "identity": timeline.identity,
        "events.changed_since": lambda: timeline.events.changed_since(Since(), 10),
        "events.numbered": lambda: timeline.events.numbered([1, 2]),
        "forgotten.mismatches": timeline.forgotten.mismatches,
        "events.citation": lambda: timeline.events.citation(first.id),
        "provenance": lambda: timeline.provenance(project).traces([FAILED]),
    }


def test_every_public_method_is_among_those_whose_queries_are_explained(timeline: Timeline) -> None:
    parts = {f"{name}.": part for name, part in vars(timeline).items() if not name.startswith("_")} | {"": timeline}
    public = {
        f"{part}{name}"
        for part, owner in parts.items()
        for name, member in vars(type(owner)).items()
        if callable(member) and not name.startswith("_")
    }

    assert set(_every_method(timeline)) == public - {"close"}


def test_no_query_scans_every_event(timeline: Timeline, tmp_path: Path) -> None:
    asked: list[str] = []
    named: dict[str, str] = {}
    for connection in (timeline._database._reader, timeline._database.writer):
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

        timeline._database._reader.set_progress_handler(count, 1)
        assert timeline.events.evidence(reference) == [event(0, "please mend the ledger")]
        timeline._database._reader.set_progress_handler(None, 1)
        return counted

    with_few = steps()
    timeline.commit([_look(600)], SESSION.provider)
    assert steps() <= with_few * 1.1
