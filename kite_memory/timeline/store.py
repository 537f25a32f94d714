"""Store of sessions, events and read positions in one SQLite file; events and positions are committed together."""

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kite_memory.model.event import (
    Cursor,
    Edge,
    EdgeKind,
    Event,
    EvidenceReference,
    RedactedResult,
    Session,
    evidence_reference,
)
from kite_memory.model.hit import Fix
from kite_memory.system import sqlite
from kite_memory.timeline import cards, conversations, passages, search, writing
from kite_memory.timeline.conversations import CardQuery, Meaning, Talk
from kite_memory.timeline.fixes import find, fix_of, sign_backlog
from kite_memory.timeline.rows import (
    SELECT_EVENT,
    SELECT_EVENT_FIRST,
    SELECT_LAST_ORDINALS,
    SELECT_STATE,
    SELECT_STATE_PAGE,
    CountedProblem,
    EventTally,
    SessionState,
    Since,
    SourceCount,
    changes_since,
    counts_by_agent,
    cursor_of,
    event_of,
    problems_by_agent,
    session_of,
    state_of,
    tallies_by_agent,
)
from kite_memory.timeline.schema import connect, file_of, not_written
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.summaries import Overview, Work, overviews, sub_sessions, works
from kite_memory.timeline.writing import take


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHit:
    """An event found by a search.

    ``score`` is from 0 to 1. ``snippet`` is a part of one line of the event. ``near`` is true where the event holds too few of the
    query's words to count as an answer.
    """

    event: Event
    session: Session
    score: float
    snippet: str
    near: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CardHit:
    """A turn found by a search: the ``prompt``, and the ``answer`` that closed it.

    ``telling`` is whichever of the two holds more of the query's words. ``later`` is the prompt of a later conversation about the
    same matter. ``bm25`` is the raw score, ``meaning`` a cosine, and ``covered`` the share, weighted by rarity, of the query's
    words that the card holds.
    """

    prompt: Event
    answer: Event
    telling: Event
    session: Session
    score: float
    snippet: str
    bm25: float
    meaning: float
    covered: float
    later: Event | None = None


class Timeline:
    """The store of sessions and events, safe to use from several threads.

    Writes are serialized by a lock on the write connection. Readers share a connection of their own and never wait for the writer.
    After `commit` returns, a line cannot be lost even if the agent deletes its transcript; before that, nothing of the batch is
    visible. Opening raises `StateDamaged` or `StateNewer`.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._writer = connect(path)
        self._gone = path.with_suffix(".let-go")
        writing.reload_forgotten(self._writer, self._gone)
        self._reader = connect(path)
        self._reader.execute("PRAGMA query_only = ON")
        self._vectors: conversations.VectorSnapshot | None = None
        self._nearness: tuple[object, conversations.Nearness | None] = (None, None)
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()

    def close(self) -> None:
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()

    def commit(self, read_results: Iterable[RedactedResult], provider: str) -> int:
        """Write the read results in one transaction, all or nothing, and return the number of new events.

        An event whose id is already stored, from whatever file, stays as first seen, unless the read result amends and the event
        belongs to the same session. If another line of the same file has the same id and a different content, both are kept.
        """
        with self._write_lock, _transaction(self._writer) as database:
            added = sum(take(database, read_result, provider, self._clock()) for read_result in read_results)
            sign_backlog(database)
            search.index_backlog(database)
            conversations.find_backlog(database)
            return added

    def cursor(self, path: str) -> Cursor | None:
        row = self._one("SELECT position, size, mtime_ns, identity, carry FROM files WHERE path = ?", (path,))
        return None if row is None else cursor_of(row)

    def looked_at(self, paths: Sequence[str] | None = None) -> dict[str, tuple[int, int]]:
        """Return ``{path: (size, mtime_ns)}`` of every file, or of ``paths``, as of the last read of each."""
        rows = (
            self._all("SELECT path, size, mtime_ns FROM files")
            if paths is None
            else self._all(
                "SELECT f.path, f.size, f.mtime_ns FROM json_each(?) AS asked JOIN files AS f ON f.path = asked.value",
                (json.dumps(paths),),
            )
        )
        return {path: (size, mtime_ns) for path, size, mtime_ns in rows}

    def folders(self, project: str | None = None) -> list[str]:
        """Return every folder that a session ran in, of one project if ``project`` is given."""
        wanted, values = ("", ()) if project is None else (" AND project = ?", (project,))
        return [cwd for (cwd,) in self._all(f"SELECT DISTINCT cwd FROM sessions WHERE cwd != ''{wanted} ORDER BY cwd", values)]  # noqa: S608 - ours

    def session_states(self) -> list[SessionState]:
        return [state for page in self.session_pages() for state in page]

    def session_pages(self, size: int = 1_000) -> Iterator[list[SessionState]]:
        """Yield all session states in pages of at most ``size``, in the order in which the sessions were first seen."""
        last = 0
        while rows := self._all(SELECT_STATE_PAGE, (last, size)):
            last = rows[-1][-1]
            yield [state_of(row) for row in rows]

    def last_ordinals(self) -> dict[tuple[str, str], int]:
        """Return ``{(provider, session): ordinal}``: the last event of each session, -1 for one without events."""
        return {(provider, id): last for provider, id, last in self._all(SELECT_LAST_ORDINALS)}

    def session_state(self, provider: str, session: str) -> SessionState | None:
        row = self._one(SELECT_STATE + " WHERE provider = ? AND id = ?", (provider, session))
        return None if row is None else state_of(row)

    def states_of(self, sessions: Sequence[tuple[str, str]]) -> list[SessionState]:
        """Return the states of the sessions that exist, with one query. ``sessions`` are pairs of provider and session id."""
        return [
            state_of(row)
            for row in self._all(
                "SELECT s.provider, s.id, project, cwd, branch, started, s.parent, title, last_ordinal, last_at, committed_at"
                " FROM json_each(?) AS wanted CROSS JOIN sessions AS s"
                " WHERE s.provider = wanted.value ->> 0 AND s.id = wanted.value ->> 1 ORDER BY wanted.key",
                (json.dumps(sessions),),
            )
        ]

    def session(self, provider: str, session: str) -> Session | None:
        row = self._one(
            "SELECT provider, id, project, cwd, branch, started, parent, title FROM sessions WHERE provider = ? AND id = ?",
            (provider, session),
        )
        return None if row is None else session_of(row)

    def last_session(self, project: str | None, *, besides: str = "", among: Collection[str] | None = None) -> Session | None:
        """Return the most recently active session with a user message that was not forgotten, or ``None``.

        Without ``project``, sessions of any project count, or of those in ``among``. ``besides`` is the id of a session to leave
        out.
        """
        of_one = "project = ?" if project is not None else "? IS NULL"
        allowed = None if among is None else json.dumps(sorted(among))
        row = self._one(
            f"SELECT provider, id, project, cwd, branch, started, parent, title FROM sessions AS s WHERE {of_one} AND id != ?"  # noqa: S608 - ours
            " AND (? IS NULL OR project IN (SELECT value FROM json_each(?)))"
            " AND EXISTS (SELECT 1 FROM events AS e WHERE e.session = s.key AND e.type = 'user_message'"
            " AND e.id NOT IN (SELECT event FROM let_go)) ORDER BY last_at DESC LIMIT 1",
            (project, besides, allowed, allowed),
        )
        return None if row is None else session_of(row)

    def last_prompt(self, provider: str, session: str) -> Event | None:
        row = self._one(
            SELECT_EVENT + " WHERE s.provider = ? AND s.id = ? AND e.type = 'user_message'"
            " ORDER BY e.ordinal DESC, e.seq DESC LIMIT 1",
            (provider, session),
        )
        return None if row is None else event_of(row)

    def recent_prompts(self, limit: int, sessions: int = 50) -> list[str]:
        """Return the beginnings of user messages of the sessions worked in last."""
        rows = self._all(
            "SELECT substr(e.text, 1, 600) FROM (SELECT key FROM sessions ORDER BY last_at DESC LIMIT ?) AS r"
            " CROSS JOIN events AS e ON e.session = r.key AND e.type = 'user_message'"
            " AND e.id NOT IN (SELECT event FROM let_go) LIMIT ?",
            (sessions, limit),
        )
        return [text for (text,) in rows]

    def spoken(self, provider: str, session: str, most: int = 10) -> int:
        """Return the number of user messages in the session, counted up to ``most``."""
        row = self._one(
            "SELECT count(*) FROM (SELECT 1 FROM events AS e JOIN sessions AS s ON e.session = s.key"
            " WHERE s.provider = ? AND s.id = ? AND e.type = 'user_message' LIMIT ?)",
            (provider, session, most),
        )
        return int(row[0]) if row else 0

    def sessions_named(self, prefix: str, limit: int = 10) -> list[Session]:
        """Return sessions whose id begins with ``prefix``: an exact match first, then the newest."""
        return [
            session_of(row)
            for row in self._all(
                "SELECT provider, id, project, cwd, branch, started, parent, title FROM sessions"
                " WHERE substr(id, 1, ?) = ? ORDER BY id = ? DESC, last_at DESC LIMIT ?",
                (len(prefix), prefix, prefix, limit),
            )
        ]

    def events(self, provider: str, session: str, *, after: int = -1, limit: int = 1_000_000) -> list[Event]:
        """Return the session's events past ordinal ``after``, in the order of their source."""
        return [
            event_of(row)
            for row in self._all(
                SELECT_EVENT + " WHERE s.provider = ? AND s.id = ? AND e.ordinal > ? ORDER BY e.ordinal, e.seq LIMIT ?",
                (provider, session, after, limit),
            )
        ]

    def ordinals(self, events: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
        """Map each triple of provider, session and event id to the event's ordinal; omit events that the session does not have."""
        found = self._all(
            "SELECT wanted.key, e.ordinal FROM json_each(?) AS wanted CROSS JOIN events AS e ON e.id = wanted.value ->> 2"
            " CROSS JOIN sessions AS s ON s.key = e.session WHERE s.provider = wanted.value ->> 0 AND s.id = wanted.value ->> 1",
            (json.dumps(events),),
        )
        return {events[place]: ordinal for place, ordinal in found}

    def holding(self, stretches: Sequence[tuple[str, str, int, int]]) -> list[tuple[str, str, int, int]]:
        """Return those ranges in which the session has an event. A range is provider, session, first and last ordinal."""
        held = self._all(
            "SELECT stretch.key FROM json_each(?) AS stretch"
            " JOIN sessions AS s ON s.provider = stretch.value ->> 0 AND s.id = stretch.value ->> 1"
            " WHERE EXISTS (SELECT 1 FROM events AS e WHERE e.session = s.key"
            " AND e.ordinal BETWEEN stretch.value ->> 2 AND stretch.value ->> 3) ORDER BY stretch.key",
            (json.dumps(stretches),),
        )
        return [stretches[place] for (place,) in held]

    def last_events(self, provider: str, session: str, limit: int, *, before: int | None = None) -> list[Event]:
        """Return the session's last events, oldest first; with ``before``, only those with a smaller ordinal."""
        earlier = "" if before is None else " AND e.ordinal < ?"
        rows = self._all(
            SELECT_EVENT + f" WHERE s.provider = ? AND s.id = ?{earlier} ORDER BY e.ordinal DESC, e.seq DESC LIMIT ?",
            (provider, session, *(() if before is None else (before,)), limit),
        )
        return [event_of(row) for row in reversed(rows)]

    def of_tools(self, provider: str, session: str, tools: Collection[str], *, among: int) -> list[Event]:
        """Return calls and results of the named ``tools`` among the session's last events, oldest first."""
        rows = self._all(
            f"SELECT * FROM ({SELECT_EVENT} WHERE s.provider = ? AND s.id = ? ORDER BY e.ordinal DESC, e.seq DESC LIMIT ?)"  # noqa: S608 - ours
            f" WHERE tool IN ({', '.join('?' * len(tools))})",
            (provider, session, among, *sorted(tools)),
        )
        return [event_of(row) for row in reversed(rows)]

    def last_sessions(self, project: str, limit: int) -> list[Session]:
        """Return the project's latest sessions, newest first.

        Commits are left out, and so are sub-agents: child sessions without a user message.
        """
        rows = self._all(
            f"{SELECT_STATE} AS s WHERE project = ? AND provider != 'git' AND (parent = '' OR EXISTS ("  # noqa: S608 - ours
            " SELECT 1 FROM events AS e WHERE e.session = s.key AND e.type = 'user_message')) ORDER BY last_at DESC LIMIT ?",
            (project, limit),
        )
        return [state_of(row).session for row in rows]

    def evidence(self, reference: EvidenceReference) -> list[Event]:
        """Return the events that a reference names, all read from one line; empty if the timeline does not hold them.

        A forked transcript's copy of a line is stored under the first session that showed it, so the session need not match. Where
        lines of several sessions begin alike, that of the named session comes first; the session may be given by a prefix.
        """
        prefix = reference.event
        return [
            event_of(row)
            for row in self._all(
                SELECT_EVENT_FIRST + " WHERE e.id >= ? AND e.id < ? AND s.provider = ?"
                " ORDER BY s.id = ? DESC, SUBSTR(s.id, 1, ?) = ? DESC, e.ordinal LIMIT 20",
                (prefix, prefix + "\U0010ffff", reference.provider, reference.session, len(reference.session), reference.session),
            )
        ]

    def line(self, reference: EvidenceReference) -> list[Event]:
        """Return the events of `evidence` that were certainly read from the referenced line."""
        found = self.evidence(reference)
        return [event for event in found if writing.line_of(event.id) == writing.line_of(found[0].id)]

    def forget_events(self, events: Sequence[writing.LineRef], *, blank: bool = False) -> None:
        """Mark events as forgotten, as `tombstones.forget_events` does.

        With ``blank``, their words are also erased from the file, which takes seconds for a large one.
        """
        writing.write_down(self._gone, events, blank=blank)
        if not blank:
            with self._write_lock, _transaction(self._writer) as database:
                writing.forget_events(database, events, blank=False)
            return
        with self._write_lock, writing.purging(self._writer), _transaction(self._writer) as database:
            writing.forget_events(database, events, blank=True)

    def forgotten(self) -> list[tuple[writing.ForgottenLine, bool]]:
        """Return the forgotten lines, each with whether its words are erased."""
        found: dict[str, tuple[writing.ForgottenLine, bool]] = {}
        for id, provider, session, blank in writing.written_down(self._gone):
            erased = bool(blank) or (id in found and found[id][1])
            found[id] = (writing.ForgottenLine(id=id, provider=provider, session=session), erased)
        return list(found.values())

    def identity(self) -> str:
        """Return what distinguishes this timeline from one that was made anew, whose rows have other numbers."""
        row = self._one("SELECT HEX(key) FROM passage_key")
        return "" if row is None else hashlib.sha256(row[0].encode()).hexdigest()[:16]

    def changes(self, since: Since, limit: int) -> tuple[list[Event], Since]:
        """See `exchange.changes`."""
        return changes_since(self._all, since, limit)

    def purge(self) -> bool:
        """Do what `sqlite.purge` does on the write connection. Raises `StateNotWritten`."""
        with self._write_lock:
            try:
                return sqlite.purge(self._writer)
            except sqlite3.OperationalError as error:
                raise not_written(error, file_of(self._writer)) from error

    def citation(self, event: str) -> str:
        """Return the evidence reference by which notes name the event; empty if there is no such event."""
        found = self._all(
            "SELECT s.provider, s.id FROM events AS e JOIN sessions AS s ON s.key = e.session WHERE e.id = ?", (event,)
        )
        return evidence_reference(found[0][0], found[0][1], event) if found else ""

    def offered(self, events: Sequence[Event]) -> list[Event]:
        """Return the events without those that were forgotten."""
        return writing.offered(self._all, events)

    def provenance(self, project: str) -> passages.PassageLookup:
        """Return a lookup of who first said a text in the sessions of ``project``."""
        return passages.PassageLookup(rows=self._all, project=project)

    def search(self, query: EventQuery, meaning: Meaning | None = None) -> tuple[EventHit, ...]:
        """Return hits, best first, and the newest first among equals.

        With ``meaning``, bundles with a similar embedding are found too. The read lock is held for one query at a time.
        """
        now = datetime.fromtimestamp(self._clock(), UTC)
        query = replace(query, text=search.corrected(self._all, query.text))
        most = conversations.NEAREST_OF_SOME if query.narrow else conversations.NEAREST
        meant = near.best(most) if (near := self._near(query.text, meaning)) else {}
        if not (found := search.find(self._all, query, now, meant)):
            return ()
        events = self._events([each.event for each in found])
        sessions: dict[tuple[str, str], Session] = {}
        hits: list[EventHit] = []
        for each in found:
            if (event := events.get(each.event)) is None:
                continue
            key = (event.provider, event.session)
            if key not in sessions and (session := self.session(*key)) is not None:
                sessions[key] = session
            hits.append(EventHit(event=event, session=sessions[key], score=each.score, snippet=each.snippet, near=each.near))
        return tuple(hits)

    def cards(self, query: CardQuery, meaning: Meaning | None = None) -> tuple[CardHit, ...]:
        """Return the cards that `conversations.rank` finds, with their events."""
        query = replace(query, text=search.corrected(self._all, query.text))
        ranked = conversations.rank(self._all, query, self._near(query.text, meaning))
        events = self._events([row for each in ranked for row in (each.match.prompt, each.match.answer, each.later)])
        stems = search.stems_of(query.text)
        hits: list[CardHit] = []
        for each in ranked:
            prompt, answer = events.get(each.match.prompt), events.get(each.match.answer)
            session = self.session(prompt.provider, prompt.session) if prompt is not None else None
            if prompt is None or answer is None or session is None:
                continue
            telling = max(answer, prompt, key=lambda event: search.share_held(event.text, stems))
            hits.append(
                CardHit(
                    prompt=prompt,
                    answer=answer,
                    telling=telling,
                    session=session,
                    score=each.score,
                    snippet=search.snippet(telling.text, stems),
                    bm25=each.match.bm25,
                    meaning=each.meaning,
                    covered=each.covered,
                    later=events.get(each.later),
                )
            )
        return tuple(hits)

    def talk(self, prompt: str, room: int = conversations.ROOM) -> Talk | None:
        """Return a summary of the conversation that holds the card of this prompt id; ``None`` if there is no such card."""
        card = self._one(
            "SELECT c.prompt, c.session FROM events AS e JOIN cards AS c ON c.prompt = e.seq WHERE e.id = ?", (prompt,)
        )
        return conversations.talk(self._all, card[0], card[1], room) if card is not None else None

    def turn(self, prompt: str) -> list[Event]:
        """Return the prompt and the answer of the card of this prompt id."""
        card = self._one("SELECT c.prompt, c.answer FROM events AS e JOIN cards AS c ON c.prompt = e.seq WHERE e.id = ?", (prompt,))
        events = self._events(list(dict.fromkeys(card))) if card is not None else {}
        return sorted(events.values(), key=lambda event: event.ordinal)

    def conversation(self, prompt: str) -> list[Event]:
        """Return the events said in that conversation, oldest first; of a long session, those of the card's turn and the next."""
        return self._said(prompt, lambda talk: talk.whole)

    def closing(self, prompt: str) -> list[Event]:
        """Return the events said at the end of that conversation, oldest first."""
        return self._said(prompt, lambda talk: talk.closing)

    def _said(self, prompt: str, which: Callable[[Talk], tuple[int, ...]]) -> list[Event]:
        talk = self.talk(prompt)
        events = self._events(which(talk)) if talk is not None else {}
        return sorted(events.values(), key=lambda event: event.ordinal)

    def bar(self, project: str) -> float | None:
        """Return the least score of an opening about an earlier conversation, as `conversations.bar` last computed it."""
        row = self._one("SELECT bar FROM card_projects WHERE name = ?", (project,))
        return None if row is None else row[0]

    def card_prompt(self, citation: str) -> Event | None:
        """Return the prompt of the card whose prompt or answer the citation names."""
        reference = EvidenceReference.parse(citation)
        for event in self.evidence(reference) if reference is not None else []:
            row = self._one(
                "SELECT c.prompt FROM events AS e JOIN cards AS c ON c.session = e.session AND e.seq IN (c.prompt, c.answer)"
                " WHERE e.id = ?",
                (event.id,),
            )
            if row is not None:
                return self._events([row[0]]).get(row[0])
        return None

    def _near(self, text: str, meaning: Meaning | None) -> conversations.Nearness | None:
        """Return how close bundles are to ``text``. Cached, since cards and events are searched for the same text."""
        if meaning is None:
            return None
        self._vectors = vectors = conversations.read(self._all, self._vectors)
        if vectors is None:
            return None
        asked = text, meaning.space, vectors.state
        known, near = self._nearness
        if known != asked:
            near = conversations.near(vectors, meaning, text)
            self._nearness = asked, near
        return near

    def _events(self, numbers: Sequence[int]) -> dict[int, Event]:
        marks = ",".join("?" * len(numbers))
        query = SELECT_EVENT_FIRST.replace(" FROM ", ", e.seq FROM ", 1) + f" WHERE e.seq IN ({marks})"
        return {row[-1]: event_of(row) for row in self._all(query, numbers)}

    def embed_bundles(self, meaning: Meaning, limit: int = 16, *, per_day: int = conversations.PER_DAY) -> int:
        """Embed some of the bundles that wait for a vector. Return how many were handled, 0 if there is nothing to do now."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        with self._write_lock, _transaction(self._writer) as database:
            conversations.enter(database, meaning.space)
        texts = {event: conversations.text_of(self._all, event) for event in conversations.ripe(self._all, now, limit, per_day)}
        if not texts:
            return 0
        vectors = meaning.of_texts(list(texts.values()))
        with self._write_lock, _transaction(self._writer) as database:
            return conversations.keep(database, texts, vectors, now)

    def make_cards(self, limit: int = 40) -> int:
        """Make cards as `cards.make` does, and refresh the bars of projects that grew."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        with self._write_lock, _transaction(self._writer) as database:
            looked_at = cards.make(database, now, limit)
            conversations.keep_bars(database)
            return looked_at

    def unsearched(self) -> int:
        """Return how many events of an earlier schema are not indexed yet. Every commit indexes some of them."""
        return sum(below for (below,) in self._all("SELECT below - 1 FROM unsearched"))

    def fix(self, *, project: str, session: str, signatures: Sequence[str], command: str) -> Fix | None:
        """See `model.fix.Fixes.fix`."""
        return find(self._all, project=project, session=session, signatures=signatures, command=command)

    def fix_of(self, event: Event) -> Fix | None:
        """Return how this failure went away in its session, if it did so soon after."""
        row = self._one("SELECT seq FROM events WHERE id = ?", (event.id,))
        return fix_of(self._all, row[0]) if row is not None else None

    def overviews(self, *, project: str = "", limit: int = 50) -> list[Overview]:
        """See `summaries.overviews`."""
        return overviews(self._all, project=project, limit=limit)

    def session_count(self, *, project: str = "") -> int:
        """Return the number of sessions without commits, of one project if ``project`` is given."""
        ((count,),) = self._all("SELECT COUNT(*) FROM sessions WHERE ? IN ('', project) AND provider != 'git'", (project,))
        return int(count)

    def works(self, *, project: str = "", limit: int = 500) -> list[Work]:
        """See `summaries.works`."""
        return works(self._all, project=project, limit=limit)

    def sub_sessions(self, provider: str, session: str, limit: int = 100) -> list[Session]:
        """See `summaries.sub_sessions`."""
        return sub_sessions(self._all, provider, session, limit)

    def edges(self, provider: str, session: str) -> list[Edge]:
        known = self._one("SELECT key FROM sessions WHERE provider = ? AND id = ?", (provider, session))
        rows = self._all("SELECT kind, source, target FROM edges WHERE session = ?", known) if known else []
        return [Edge(kind=EdgeKind(kind), source=source, target=target) for kind, source, target in rows]

    def tallies(self) -> list[EventTally]:
        """See `counting.tallies`."""
        return tallies_by_agent(self._all)

    def counts(self) -> list[SourceCount]:
        """See `counting.counts`."""
        return counts_by_agent(self._all)

    def problems(self, limit: int = 100, *, file: str = "") -> list[CountedProblem]:
        """See `counting.problems`."""
        return problems_by_agent(self._all, limit, file)

    def damage(self) -> list[str]:
        """Return SQLite's integrity errors, or how the forgotten events here and in their file disagree; empty if all is well."""
        found = [line for (line,) in self._all("PRAGMA integrity_check(20)") if line != "ok"]
        return found or writing.out_of_step(self._all, self._gone)

    def _all(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._read_lock:
            return self._reader.execute(query, values).fetchall()

    def _one(self, query: str, values: Sequence[object] = ()) -> tuple[Any, ...] | None:
        with self._read_lock:
            row = self._reader.execute(query, values).fetchone()
        return None if row is None else tuple(row)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        with sqlite.transaction(connection):
            yield connection
    except sqlite3.OperationalError as error:
        raise not_written(error, file_of(connection)) from error
