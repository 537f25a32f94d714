"""Outbox: the state of every chunk in one SQLite file, each step committed before the next.

A chunk goes ``waiting -> asked -> answered -> written``, or ends as ``refused`` or ``nothing``, is ``divided`` into two others, or
is set ``aside`` until a person retries it. An answer is stored before anything uses it, and the budget is reserved before a call is
made, so a crash repeats at most the call in flight.
"""

import hashlib
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kite_memory.distill.budget import BATCH_TABLES, BatchLedger, Budget, CallLedger, add_spending, spending_of
from kite_memory.distill.condense import Span
from kite_memory.distill.extractor import Usage
from kite_memory.distill.parse_answer import from_json, to_json
from kite_memory.errors import StateDamaged
from kite_memory.model.note import Record
from kite_memory.system import sqlite

MOST_UNKNOWN = 3
"""Calls about one chunk with an unknown outcome, after which it is set aside."""

_LONGEST_WAIT = 2 * 3600.0
"""Seconds. A chunk is never delayed longer: a later time may have been stored while the clock was wrong."""

ChunkState = Literal["waiting", "asked", "answered", "written", "refused", "nothing", "divided", "aside"]

_TABLES = (
    """
    CREATE TABLE sessions (
        provider TEXT NOT NULL, id TEXT NOT NULL, chunked_to INTEGER NOT NULL, PRIMARY KEY (provider, id)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE chunks (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        provider TEXT NOT NULL,
        session TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        state TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        not_before REAL NOT NULL DEFAULT 0,
        reserved REAL NOT NULL DEFAULT 0,
        asked_on TEXT NOT NULL DEFAULT '',
        extractor TEXT NOT NULL DEFAULT '',
        record BLOB,
        reason TEXT NOT NULL DEFAULT ''
    )
    """,
    "CREATE INDEX chunks_by_state ON chunks (state, not_before)",
    """
    CREATE TABLE spending (
        day TEXT PRIMARY KEY,
        calls INTEGER NOT NULL DEFAULT 0,
        tokens_in INTEGER NOT NULL DEFAULT 0,
        tokens_out INTEGER NOT NULL DEFAULT 0,
        dollars REAL NOT NULL DEFAULT 0
    ) WITHOUT ROWID
    """,
    "CREATE TABLE refusals (reason TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID",
)
_SINCE_2 = """
    CREATE TABLE judge_spending (
        day TEXT PRIMARY KEY,
        calls INTEGER NOT NULL DEFAULT 0,
        tokens_in INTEGER NOT NULL DEFAULT 0,
        tokens_out INTEGER NOT NULL DEFAULT 0,
        dollars REAL NOT NULL DEFAULT 0
    ) WITHOUT ROWID
"""
"""The part of `spending` that went to judges."""
_SINCE_3 = (
    """
    CREATE TABLE purpose_spending (
        day TEXT NOT NULL,
        purpose TEXT NOT NULL,
        calls INTEGER NOT NULL DEFAULT 0,
        tokens_in INTEGER NOT NULL DEFAULT 0,
        tokens_out INTEGER NOT NULL DEFAULT 0,
        dollars REAL NOT NULL DEFAULT 0,
        PRIMARY KEY (day, purpose)
    ) WITHOUT ROWID
    """,
    "INSERT INTO purpose_spending SELECT day, 'judge', calls, tokens_in, tokens_out, dollars FROM judge_spending",
    "DROP TABLE judge_spending",
    "ALTER TABLE chunks ADD COLUMN unknown INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE chunks ADD COLUMN first_event TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE chunks ADD COLUMN last_event TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sessions ADD COLUMN event TEXT NOT NULL DEFAULT ''",
)
"""`spending` by `Purpose`; how many calls about a chunk had an unknown outcome; ids of events."""

_MIGRATIONS = {1: _TABLES, 2: (_SINCE_2,), 3: _SINCE_3, 4: BATCH_TABLES}

_CHUNKED_TO = (
    "INSERT INTO sessions (provider, id, chunked_to, event) VALUES (?, ?, ?, ?) ON CONFLICT (provider, id) DO UPDATE SET"
    " event = IIF(excluded.chunked_to >= chunked_to, excluded.event, event), chunked_to = MAX(chunked_to, excluded.chunked_to)"
)

_FIRST_OF_SESSIONS = (
    "SELECT id, provider, session, first, last, attempts FROM chunks AS c WHERE state = 'waiting' AND not_before <= ?"
    " AND NOT EXISTS (SELECT 1 FROM chunks AS e WHERE e.provider = c.provider AND e.session = c.session"
    " AND e.state IN ('waiting', 'asked') AND e.seq < c.seq)"
)

_GAPS = """
    WITH ends AS (
        SELECT provider, session, first, last FROM chunks
        UNION ALL SELECT provider, id, chunked_to + 1, chunked_to + 1 FROM sessions
    ), gaps AS (
        SELECT provider, session, first, COALESCE(MAX(last) OVER (
            PARTITION BY provider, session ORDER BY first, last ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), -1) AS before FROM ends
    )
    SELECT provider, session, before + 1, first - 1 FROM gaps WHERE first > before + 1 ORDER BY provider, session, first
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunked:
    """How far a session has been divided into chunks. ``event`` may be empty, since earlier versions did not store it."""

    ordinal: int
    event: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingChunk:
    id: str
    provider: str
    session: str
    first: int
    last: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOff:
    """The next chunk is delayed. ``until`` is Unix time."""

    until: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredChunk:
    id: str
    provider: str
    session: str
    first: int
    last: int
    extractor: str
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkEntry:
    """A chunk and its state, for display. ``not_before`` is Unix time; ``refused_items`` says what the quality gate refused, and
    why.
    """

    id: str
    first: int
    last: int
    state: ChunkState
    attempts: int
    not_before: float
    extractor: str
    reason: str
    refused_items: str


class FormedChunks:
    """Which events are in chunks. ``transaction`` and ``rows`` are the outbox's own."""

    def __init__(
        self, transaction: Callable[[], AbstractContextManager[sqlite3.Connection]], rows: Callable[..., list[Any]]
    ) -> None:
        self._transaction = transaction
        self._rows = rows

    def chunked_to(self, sessions: Collection[tuple[str, str]] | None = None) -> dict[tuple[str, str], int]:
        """Return ``{(provider, session): ordinal}``: the last event of each session, or of each of these, that is in a chunk."""
        if sessions is None:
            rows = self._rows("SELECT provider, id, chunked_to FROM sessions")
            return {(provider, session): ordinal for provider, session, ordinal in rows}
        return {key: cursor.ordinal for key, cursor in self.cursors(sessions).items()}

    def cursors(self, sessions: Collection[tuple[str, str]] | None = None) -> dict[tuple[str, str], Chunked]:
        """Return what `chunked_to` does, with the id of that event if known."""
        rows = (
            self._rows("SELECT provider, id, chunked_to, event FROM sessions")
            if sessions is None
            else self._rows(
                "SELECT s.provider, s.id, s.chunked_to, s.event FROM json_each(?) AS asked"
                " JOIN sessions AS s ON s.provider = asked.value ->> 0 AND s.id = asked.value ->> 1",
                (json.dumps(list(sessions)),),
            )
        )
        return {(provider, session): Chunked(ordinal=ordinal, event=event) for provider, session, ordinal, event in rows}

    def places(self, provider: str, session: str) -> list[tuple[str, str, str]]:
        """Return a session's unfinished chunks: the id of each, and of its first and last event."""
        return self._rows(
            "SELECT id, first_event, last_event FROM chunks WHERE provider = ? AND session = ? AND first_event != ''"
            " AND state IN ('waiting', 'asked', 'answered', 'aside')",
            (provider, session),
        )

    def renumber(self, provider: str, session: str, ordinal: int, chunks: Mapping[str, tuple[int, int]]) -> None:
        """Update the cursor of a session and its chunks' first and last ordinals after the timeline has renumbered its events."""
        with self._transaction() as database:
            database.execute("UPDATE sessions SET chunked_to = ? WHERE provider = ? AND id = ?", (ordinal, provider, session))
            database.executemany(
                "UPDATE chunks SET first = ?, last = ? WHERE id = ?", [(first, last, id) for id, (first, last) in chunks.items()]
            )

    def add(self, spans: Sequence[Span], *, nothing: Iterable[str] = ()) -> None:
        """Store finished chunks and move their sessions' cursors, in one transaction. ``nothing`` names chunks not worth a call."""
        skipped = set(nothing)
        with self._transaction() as database:
            for span in spans:
                database.execute(
                    "INSERT INTO chunks (id, provider, session, first, last, state, first_event, last_event)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                    " ON CONFLICT (id) DO UPDATE SET first = excluded.first, last = excluded.last",  # a timeline read again
                    (
                        span.id,
                        span.provider,
                        span.session,
                        span.first,
                        span.last,
                        "nothing" if span.id in skipped else "waiting",
                        span.first_event,
                        span.last_event,
                    ),
                )
                database.execute(_CHUNKED_TO, (span.provider, span.session, span.last, span.last_event))

    def skip(self, provider: str, session: str, ordinal: int, *, event: str = "") -> None:
        """Move a session's cursor past events that will not be sent; ``event`` is the last one's id."""
        with self._transaction() as database:
            database.execute(_CHUNKED_TO, (provider, session, ordinal, event))

    def of_session(self, provider: str, session: str) -> list[ChunkEntry]:
        """Return the chunks of a session, in order."""
        found: list[ChunkEntry] = []
        for name, first, last, state, attempts, not_before, extractor, reason in self._rows(
            "SELECT id, first, last, state, attempts, not_before, extractor, reason FROM chunks"
            " WHERE provider = ? AND session = ? ORDER BY first, last",
            (provider, session),
        ):
            refused = reason.removeprefix(_REFUSED_ITEMS) if reason.startswith(_REFUSED_ITEMS) else ""
            said = state in ("waiting", "refused", "aside") and not refused  # a delay's reason outlives the delay
            found.append(
                ChunkEntry(
                    id=name,
                    first=first,
                    last=last,
                    state=state,
                    attempts=attempts,
                    not_before=not_before,
                    extractor=extractor,
                    reason=reason if said else "",
                    refused_items=refused,
                )
            )
        return found

    def gaps(self) -> list[tuple[str, str, int, int]]:
        """Return ``(provider, session, first, last)``: ordinals before a session's cursor that no chunk contains.

        Either there are no events with these ordinals, or they were skipped.
        """
        return self._rows(_GAPS)


class Outbox:
    """Outbox of chunks. Thread-safe. The holder of the daemon's lock calls `recover` first; other processes must not."""

    def __init__(self, path: Path) -> None:
        self.batches = BatchLedger(self._transaction, self._all)
        self.calls = CallLedger(self._transaction, self._all)
        self.formed = FormedChunks(self._transaction, self._all)
        self._lock = threading.Lock()
        self._path = path
        self._named = f"the outbox at {path}"
        repair = "move it away: finished chunks are then distilled anew"
        self._database = sqlite.open_private(  # an answer was paid for: a power cut must not lose it
            path, _MIGRATIONS, named=self._named, repair=repair, synchronous="FULL"
        )

    def recover(self) -> None:
        """Return chunks that a crash left ``asked`` to ``waiting``, except those in batches. The amount reserved for them stays
        spent, since it may have been.
        """
        with self._transaction() as database:
            database.execute("UPDATE chunks SET state = 'waiting', reserved = 0, asked_on = '' WHERE state = 'asked' AND batch = 0")

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def next_waiting(self, now: float, *, without: Collection[str] = (), alone: bool = False) -> WaitingChunk | PutOff | None:
        """Return a chunk to send now; or until when the first one is delayed, and why; or ``None`` if none is waiting.

        With ``alone``, chunks that are to go in a batch are left out.
        """
        row = self._one(
            "SELECT id, provider, session, first, last, attempts, not_before, reason FROM chunks WHERE state = 'waiting'"
            " AND id NOT IN (SELECT value FROM json_each(?)) AND NOT (by_batch AND ?)"
            " ORDER BY not_before > ?, IIF(not_before > ?, not_before, seq) LIMIT 1",
            (json.dumps(list(without)), alone, now, now),
        )
        if row is None:
            return None
        if now < row[6] <= now + _LONGEST_WAIT:
            return PutOff(until=float(row[6]), reason=row[7])
        return _waiting(row)

    def all_waiting(self) -> list[WaitingChunk]:
        rows = self._all("SELECT id, provider, session, first, last, attempts FROM chunks WHERE state = 'waiting' ORDER BY seq")
        return [_waiting(row) for row in rows]

    def beside(
        self, chunk: WaitingChunk, now: float, *, without: Collection[str] = (), alone: bool = False, limit: int = 40
    ) -> list[WaitingChunk]:
        """Return the first waiting chunk of each other session, in order. ``alone`` is that of `next_waiting`."""
        rows = self._all(
            _FIRST_OF_SESSIONS  # noqa: S608 - ours
            + " AND NOT (provider = ? AND session = ?) AND id NOT IN (SELECT value FROM json_each(?))"
            " AND NOT (by_batch AND ?) ORDER BY seq LIMIT ?",
            (now, chunk.provider, chunk.session, json.dumps(list(without)), alone, limit),
        )
        return [_waiting(row) for row in rows]

    def for_batches(self, now: float) -> list[WaitingChunk]:
        """Return the first waiting chunk of each session, if it is to go in a batch, in order."""
        return [_waiting(row) for row in self._all(f"{_FIRST_OF_SESSIONS} AND by_batch ORDER BY seq LIMIT 500", (now,))]

    def in_batch(self, batch: int) -> list[WaitingChunk]:
        """Return the chunks of a batch without an outcome; others may have been erased from since they were sent."""
        query = "SELECT id, provider, session, first, last, attempts FROM chunks WHERE state = 'asked' AND batch = ?"
        return [_waiting(row) for row in self._all(query, (batch,))]

    def reserve(self, chunk: str, estimate: Usage, budget: Budget, *, day: str, beside: Sequence[str] = ()) -> bool:
        """Book a call before it is made. Return ``False``, with nothing changed, if the day's budget does not allow it.

        A call that costs nothing needs no booking and is never refused. The call also covers the chunks ``beside``.
        """
        with self._transaction() as database:
            if estimate != Usage():
                spent = spending_of(database.execute("SELECT * FROM spending WHERE day = ?", (day,)).fetchone())
                if spent.calls + 1 > budget.calls or spent.dollars + estimate.dollars > budget.dollars:
                    return False
                add_spending(database, day, calls=1, usage=Usage(dollars=estimate.dollars))
            database.execute(
                "UPDATE chunks SET state = 'asked', batch = 0, reserved = ?, asked_on = ?, attempts = attempts + 1 WHERE id = ?",
                (estimate.dollars, day, chunk),
            )
            database.executemany(
                "UPDATE chunks SET state = 'asked', batch = 0, asked_on = ?, attempts = attempts + 1 WHERE id = ?",
                [(day, each) for each in beside],
            )
            return True

    def answer(self, chunk: str, record: Record, usage: Usage, *, extractor: str, refused_items: Iterable[str] = ()) -> None:
        refused = list(refused_items)
        with self._transaction() as database:
            self._settle(database, chunk, usage)
            database.execute(  # a chunk erased from during its call is sent again without the erased part
                "UPDATE chunks SET state = ?, record = ?, extractor = ?, reason = ? WHERE id = ? AND state = 'asked'",
                ("answered" if record.items() else "nothing", to_json(record), extractor, _refusals(refused), chunk),
            )
            database.execute(  # the service works again: retry once, in case it caused the failure
                "UPDATE chunks SET state = 'waiting', not_before = 0 WHERE state = 'aside' AND unknown = ?", (MOST_UNKNOWN,)
            )
            for reason in refused:
                database.execute(
                    "INSERT INTO refusals VALUES (?, 1) ON CONFLICT (reason) DO UPDATE SET count = count + 1", (reason,)
                )

    def put_off(self, chunk: str, usage: Usage | None, *, not_before: float, reason: str) -> None:
        """Delay a chunk. With ``usage`` of ``None`` the cost of the call is unknown, and the amount booked for it stays spent.

        After `MOST_UNKNOWN` of those the chunk is set aside instead; the next answer to another chunk returns it once.
        """
        with self._transaction() as database:
            if usage is not None:
                self._settle(database, chunk, usage)
            database.execute(
                "UPDATE chunks SET state = IIF(unknown + ?1 >= ?2 AND ?1, 'aside', 'waiting'), unknown = unknown + ?1,"
                " not_before = ?3, reason = ?4, reserved = 0, asked_on = '' WHERE id = ?5",
                (usage is None, MOST_UNKNOWN, not_before, reason, chunk),
            )

    def set_aside(self, chunk: str, *, reason: str) -> None:
        """Set a waiting chunk aside until `retry`."""
        with self._transaction() as database:
            database.execute("UPDATE chunks SET state = 'aside', reason = ? WHERE id = ? AND state = 'waiting'", (reason, chunk))

    def aside(self) -> dict[str, int]:
        """Return how many chunks are set aside, by reason."""
        return dict(
            self._all("SELECT reason, COUNT(*) FROM chunks WHERE state = 'aside' GROUP BY reason ORDER BY COUNT(*) DESC, reason")
        )

    def retry(self) -> int:
        """Return every chunk that was set aside to ``waiting``, as if it had never been sent. Return how many."""
        with self._transaction() as database:
            found = database.execute(
                "UPDATE chunks SET state = 'waiting', not_before = 0, attempts = 0, unknown = 0, reason = '' WHERE state = 'aside'"
            )
            return found.rowcount

    def divide(self, waiting: WaitingChunk, at: int) -> None:
        """Replace a chunk by two: up to before ordinal ``at``, and from there on."""
        with self._transaction() as database:
            for first, last in ((waiting.first, at - 1), (at, waiting.last)):
                name = hashlib.sha256(f"{waiting.id}\0{first}\0{last}".encode()).hexdigest()[:32]
                database.execute(
                    "INSERT OR IGNORE INTO chunks (id, provider, session, first, last, state) VALUES (?, ?, ?, ?, ?, 'waiting')",
                    (name, waiting.provider, waiting.session, first, last),
                )
            database.execute("UPDATE chunks SET state = 'divided' WHERE id = ?", (waiting.id,))

    def refuse(self, chunk: str, usage: Usage, *, reason: str) -> None:
        with self._transaction() as database:
            self._settle(database, chunk, usage)
            database.execute("UPDATE chunks SET state = 'refused', reason = ? WHERE id = ?", (reason, chunk))

    def answered(self, limit: int = 50, *, without: Collection[str] = ()) -> list[AnsweredChunk]:
        """Return answers whose notes are not written yet, oldest first. An unreadable one is marked ``refused`` and kept as
        it is.
        """
        found: list[AnsweredChunk] = []
        for name, provider, session, first, last, extractor, record in self._all(
            "SELECT id, provider, session, first, last, extractor, record FROM chunks"
            " WHERE state = 'answered' AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?",
            (json.dumps(list(without)), limit),
        ):
            try:
                answer = from_json(record)
            except StateDamaged as error:
                self.refuse(name, Usage(), reason=str(error))
                continue
            found.append(
                AnsweredChunk(
                    id=name, provider=provider, session=session, first=first, last=last, extractor=extractor, record=answer
                )
            )
        return found

    def drop_answers(self, events: Iterable[tuple[str, str, int]]) -> None:
        """Delete stored and pending answers about these events: provider, session and ordinal.

        Any sentence of an answer may hold their words, so no notes are made from it. The chunk is sent again, without the events.
        """
        with self._transaction() as database:
            database.executemany(
                "UPDATE chunks SET record = NULL, state = IIF(state IN ('answered', 'asked'), 'waiting', state)"
                " WHERE provider = ? AND session = ? AND first <= ? AND last >= ? AND (record IS NOT NULL OR state = 'asked')",
                [(provider, session, ordinal, ordinal) for provider, session, ordinal in events],
            )

    def purge(self) -> bool:
        """Erase deleted data from the file, as `sqlite.rewrite` does."""
        with self._using() as database:
            return sqlite.rewrite(database)

    def written(self, chunk: str) -> None:
        with self._transaction() as database:
            database.execute("UPDATE chunks SET state = 'written', record = NULL WHERE id = ?", (chunk,))

    def states(self) -> dict[ChunkState, int]:
        return dict(self._all("SELECT state, COUNT(*) FROM chunks GROUP BY state"))

    def refusals(self) -> dict[str, int]:
        """Return how often the quality gate refused an item, by reason."""
        return dict(self._all("SELECT reason, count FROM refusals ORDER BY count DESC"))

    def _settle(self, database: sqlite3.Connection, chunk: str, usage: Usage) -> None:
        """Replace the reservation by the call's actual cost, on the day it was booked."""
        row = database.execute("SELECT reserved, asked_on FROM chunks WHERE id = ?", (chunk,)).fetchone()
        if row is None or not row[1]:
            return
        reserved, day = row
        if reserved or usage != Usage():
            corrected = Usage(tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, dollars=usage.dollars - reserved)
            add_spending(database, day, calls=0, usage=corrected)
        database.execute("UPDATE chunks SET reserved = 0, asked_on = '' WHERE id = ?", (chunk,))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._using() as connection, sqlite.transaction(connection) as database:
            yield database

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock, sqlite.raising_not_written(self._path, named=self._named):
            yield self._database

    def _all(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        with self._using() as database:
            return database.execute(query, values).fetchall()

    def _one(self, query: str, values: Sequence[object] = ()) -> Any:
        with self._using() as database:
            return database.execute(query, values).fetchone()


def _waiting(row: Any) -> WaitingChunk:
    return WaitingChunk(id=row[0], provider=row[1], session=row[2], first=row[3], last=row[4], attempts=row[5])


_REFUSED_ITEMS = "refused items: "
"""Prefix, in the column `reason`, of the items that the quality gate refused."""


def _refusals(reasons: Sequence[str]) -> str:
    if not reasons:
        return ""
    return _REFUSED_ITEMS + ", ".join(f"{count} {reason}" for reason, count in Counter(reasons).most_common())
