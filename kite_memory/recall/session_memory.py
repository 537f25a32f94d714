"""What each session has been shown, and what each prompt was given and why."""

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kite_memory.errors import StateDamaged, StateNewer
from kite_memory.recall.files import private_file, private_folder

_VERSION = 1
_SCHEMA = """
CREATE TABLE shown (session TEXT NOT NULL, note TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (session, note)) WITHOUT ROWID;
CREATE INDEX shown_by_time ON shown(at);
CREATE TABLE prompt (
    number INTEGER PRIMARY KEY, at REAL NOT NULL, session TEXT NOT NULL, project TEXT NOT NULL, head TEXT NOT NULL,
    reason TEXT NOT NULL, given TEXT NOT NULL
);
CREATE INDEX prompt_by_time ON prompt(at);
"""
_KEPT = timedelta(days=30)
_HEAD_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A note's id (or path, where it has none) and the score it was shown with."""

    note: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """One prompt and what it was given. ``head`` is the redacted beginning of the prompt."""

    at: datetime
    session: str
    project: str
    head: str
    reason: str
    given: tuple[Given, ...] = ()


class SessionMemory:
    """Survives restarts; forgets after thirty days. A damaged file is begun anew: at worst a note is shown a second time.

    Raises `StateNewer` for a newer version's, `StateDamaged` where not even a new one can be made.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        private_folder(path.parent)
        private_file(path)
        try:
            self._connection = _opened(path)
        except sqlite3.OperationalError as error:
            raise StateDamaged(f"the memory of what was shown cannot be used: {error}", hint=f"look at {path}") from error
        except sqlite3.DatabaseError:
            self._connection = _begun_anew(path)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def shown(self, session: str) -> frozenset[str]:
        with self._lock:
            rows = self._connection.execute("SELECT note FROM shown WHERE session = ?", (_storable(session),))
            return frozenset(note for (note,) in rows)

    def claim(self, session: str, notes: Sequence[str], at: datetime) -> bool:
        """Take the notes for this session: all, or none where another prompt was quicker with one of them."""
        with self._changing() as connection:
            rows = [(_storable(session), _storable(note), at.timestamp()) for note in notes]
            taken = connection.executemany("INSERT OR IGNORE INTO shown VALUES (?, ?, ?)", rows).rowcount
            if taken < len(notes):
                connection.execute("ROLLBACK")
            return taken == len(notes)

    def record(self, occasion: Occasion) -> None:
        with self._changing() as connection:
            connection.execute(
                "INSERT INTO prompt(at, session, project, head, reason, given) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    occasion.at.timestamp(),
                    _storable(occasion.session),
                    _storable(occasion.project),
                    _storable(occasion.head[:_HEAD_LENGTH]),
                    _storable(occasion.reason),
                    json.dumps([[given.note, given.score] for given in occasion.given]),
                ),
            )

    def last(self, count: int) -> tuple[Occasion, ...]:
        """The latest first."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT at, session, project, head, reason, given FROM prompt ORDER BY number DESC LIMIT ?", (count,)
            ).fetchall()
        return tuple(
            Occasion(
                at=datetime.fromtimestamp(at, UTC),
                session=session,
                project=project,
                head=head,
                reason=reason,
                given=tuple(Given(note=note, score=score) for note, score in json.loads(given)),
            )
            for at, session, project, head, reason, given in rows
        )

    def forget_session(self, session: str) -> None:
        """After a compaction nothing that was shown is in the agent's context any more."""
        with self._changing() as connection:
            connection.execute("DELETE FROM shown WHERE session = ?", (_storable(session),))

    def prune(self, now: datetime) -> None:
        before = (now - _KEPT).timestamp()
        with self._changing() as connection:
            connection.execute("DELETE FROM shown WHERE at < ?", (before,))
            connection.execute("DELETE FROM prompt WHERE at < ?", (before,))

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                if self._connection.in_transaction:
                    self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")


def _opened(path: Path) -> sqlite3.Connection:
    # A prompt waits for this: another process that holds the file longer than that costs the injection, not the wait.
    connection = sqlite3.connect(path, timeout=0.25, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise StateNewer(f"{path} was written by a newer version", hint="use that version, or remove the file")
        if version == 0:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
    except (sqlite3.Error, StateNewer):
        connection.close()
        raise
    return connection


def _begun_anew(path: Path) -> sqlite3.Connection:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    private_file(path)
    try:
        return _opened(path)
    except sqlite3.Error as error:
        raise StateDamaged(f"the memory of what was shown cannot be begun anew: {error}", hint=f"look at {path}") from error


def _storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
