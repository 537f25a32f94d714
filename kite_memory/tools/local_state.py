"""What is kept beside the vault: who made a memory and how often it was read, and what AIs had in hand.

If it is deleted, memories have nobody's name and were never read, and saved states are gone; nothing else.
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from kite_memory.errors import KiteError, StateDamaged, StateNewer, StateNotWritten
from kite_memory.system import sqlite
from kite_memory.system.private_files import make_private_folder
from kite_memory.tools.store import JsonValue, State, Todo

VERSION = 2

_VERSION_1 = (
    """
    CREATE TABLE memories (
        id TEXT PRIMARY KEY,
        created_by TEXT NOT NULL DEFAULT '',
        accessed TEXT NOT NULL DEFAULT '',
        reads INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE states (
        ai TEXT NOT NULL,
        session TEXT NOT NULL,
        project TEXT NOT NULL,
        todos TEXT NOT NULL,
        working_notes TEXT NOT NULL,
        context_summary TEXT NOT NULL,
        saved TEXT NOT NULL,
        transferred_from TEXT NOT NULL,
        transferred_at TEXT NOT NULL,
        PRIMARY KEY (ai, session, project)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX states_by_time ON states (saved)",
)
_VERSION_2 = ("ALTER TABLE memories ADD COLUMN context TEXT NOT NULL DEFAULT ''",)
MIGRATIONS = {1: _VERSION_1, 2: _VERSION_2}

_AT_ONCE = 500
_TOGETHER = 64
"""Reads that are counted in one transaction, or those of a few seconds: a crash forgets so many at most."""
_SECONDS = 5.0
_STATES_KEPT = 5_000
"""Of a project, so that who may write to one displaces nothing of another's. The newest, whatever a clock says of their age:
one that was far ahead for an hour must cost nothing."""
_COLUMNS = "ai, session, project, todos, working_notes, context_summary, saved, transferred_from, transferred_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    created_by: str = ""
    accessed: datetime | None = None
    count: int = 0
    context: Mapping[str, JsonValue] = field(default_factory=dict)


class LocalState:
    """Thread-safe; other processes may have it open as well. A damaged file is laid aside. Raises `StateNewer` on opening."""

    def __init__(self, path: Path, *, seconds: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._seconds = seconds
        self._lock = threading.RLock()
        self._read: dict[str, tuple[int, datetime]] = {}
        self._flushed = seconds()
        try:
            self._database = self._opened()
        except StateDamaged:  # no reason to keep the vault shut: it is laid aside, for whoever can mend it
            for suffix in ("", "-wal", "-shm"):
                damaged = path.with_name(path.name + suffix)
                if damaged.exists():
                    damaged.replace(path.with_name(f"{path.name}.damaged{suffix}"))
            self._database = self._opened()

    def _opened(self) -> sqlite3.Connection:
        try:
            make_private_folder(self._path.parent)
            self._path.touch(mode=0o600)
            self._database = sqlite.connect(self._path, timeout=30.0)
        except (OSError, sqlite3.OperationalError) as error:
            hint = f"see who owns it, and whether its disk is full: ls -la {self._path.parent}"
            raise StateNotWritten(f"{self._path} may not be opened or written: {error}", hint=hint) from error
        try:
            with self._failing_as_ours():
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = NORMAL")
                self._migrate()
        except BaseException:
            self._database.close()
            raise
        return self._database

    def _migrate(self) -> None:
        with self._changing() as database:
            (found,) = database.execute("PRAGMA user_version").fetchone()
            if found > VERSION:
                raise StateNewer(f"{self._path} was written by a newer Kite Memory", hint="update kite-memory")
            for version in range(found + 1, VERSION + 1):
                for statement in MIGRATIONS[version]:
                    database.execute(statement)
            database.execute(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        with self._lock:
            try:
                self._flush()
            except KiteError:
                pass  # counts of some reads; the disk is full or gone, which others tell
            self._database.close()

    def purge(self) -> bool:
        """As `own_sqlite.rewrite`."""
        with self._lock, self._failing_as_ours():
            return sqlite.rewrite(self._database)

    def made(self, id: str, by: str) -> None:
        """A memory of this id is new, or new again."""
        with self._lock:
            self._read.pop(id, None)
            with self._changing() as database:
                database.execute("INSERT OR REPLACE INTO memories (id, created_by) VALUES (?, ?)", (id, by))

    def describe(self, id: str, context: Mapping[str, JsonValue]) -> None:
        """What was said beside its value when it was last written."""
        told = json.dumps(context) if context else ""
        with self._lock, self._failing_as_ours():
            row = self._database.execute("SELECT context FROM memories WHERE id = ?", (id,)).fetchone()
            if (row[0] if row else "") == told:
                return
            with self._changing() as database:
                database.execute(
                    "INSERT INTO memories (id, context) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET context = excluded.context",
                    (id, told),
                )

    def forgot(self, id: str) -> None:
        with self._lock:
            self._read.pop(id, None)
            with self._changing() as database:
                database.execute("DELETE FROM memories WHERE id = ?", (id,))

    def touch(self, ids: Collection[str], at: datetime) -> None:
        """They were read. Written down now and then."""
        with self._lock:
            for id in ids:
                self._read[id] = (self._read.get(id, (0, at))[0] + 1, at)
            if len(self._read) >= _TOGETHER or self._seconds() - self._flushed >= _SECONDS:
                try:
                    self._flush()
                except KiteError:
                    self._read.clear()  # who cannot write still reads; nothing piles up meanwhile

    def reads(self, ids: Sequence[str]) -> dict[str, Reads]:
        """Those that are not written down yet among them."""
        found: dict[str, Reads] = {}
        with self._lock, self._failing_as_ours():
            rows: dict[str, tuple[str, str, int, str]] = {}
            for start in range(0, len(ids), _AT_ONCE):
                some = ids[start : start + _AT_ONCE]
                marks = ", ".join("?" * len(some))
                query = f"SELECT id, created_by, accessed, reads, context FROM memories WHERE id IN ({marks})"  # noqa: S608 - marks alone
                told = self._database.execute(query, some)
                rows |= {id: tuple(rest) for id, *rest in told}
            for id in ids:
                by, accessed, count, context = rows.get(id, ("", "", 0, ""))
                more, at = self._read.get(id, (0, None))
                found[id] = Reads(
                    created_by=by,
                    accessed=at or _moment(accessed),
                    count=count + more,
                    context=json.loads(context) if context else {},
                )
        return found

    def _flush(self) -> None:
        with self._lock:
            rows = [(id, at.isoformat(), count) for id, (count, at) in self._read.items()]
            if rows:
                with self._changing() as database:
                    database.executemany(
                        "INSERT INTO memories (id, accessed, reads) VALUES (?, ?, ?)"
                        " ON CONFLICT (id) DO UPDATE SET accessed = excluded.accessed, reads = reads + excluded.reads",
                        rows,
                    )
            self._read.clear()
            self._flushed = self._seconds()

    def save(self, state: State, *, only: Collection[str] | None = None) -> State:
        """In place of what the same AI saved for the same session and project, or of these fields alone; what is there then."""
        with self._changing() as database:
            if only is not None:
                before = database.execute(
                    f"SELECT {_COLUMNS} FROM states WHERE ai = ? AND session = ? AND project = ?",  # noqa: S608 - ours
                    (state.ai, state.session, state.project),
                ).fetchone()
                state = _state(before).amended(state, only) if before else state
            database.execute(
                f"INSERT OR REPLACE INTO states ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - ours
                (
                    state.ai,
                    state.session,
                    state.project,
                    json.dumps([todo.packed() for todo in state.todos]),
                    state.working_notes,
                    state.context_summary,
                    state.saved.astimezone(UTC).isoformat(),
                    state.transferred_from,
                    state.transferred_at.astimezone(UTC).isoformat() if state.transferred_at else "",
                ),
            )
            database.execute(
                "DELETE FROM states WHERE project = ?"
                " AND saved < (SELECT saved FROM states WHERE project = ? ORDER BY saved DESC LIMIT 1 OFFSET ?)",
                (state.project, state.project, _STATES_KEPT - 1),
            )
            return state

    def states(self, *, ai: str, session: str, project: str) -> Iterator[State]:
        """Newest first; empty arguments leave all."""
        with self._lock, self._failing_as_ours():
            rows = self._database.execute(
                f"SELECT {_COLUMNS} FROM states WHERE (? IN ('', ai)) AND (? IN ('', session)) AND (? IN ('', project))"  # noqa: S608 - ours
                " ORDER BY saved DESC, ai, session, project",
                (ai, session, project),
            ).fetchall()
        return map(_state, rows)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._failing_as_ours():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            finally:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")

    @contextmanager
    def _failing_as_ours(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StateNotWritten(
                f"{self._path} cannot be used: {error}", hint="nothing was changed; try again in a moment"
            ) from error
        except sqlite3.DatabaseError as error:
            raise StateDamaged(
                f"{self._path} is damaged: {error}", hint="`kmem down`, then `kmem up`: it is laid aside, and begun anew"
            ) from error


def _state(row: Sequence[Any]) -> State:
    ai, session, project, todos, notes, summary, saved, transferred_from, transferred_at = row
    return State(
        ai=ai,
        session=session,
        project=project,
        todos=tuple(map(Todo.unpacked, json.loads(todos))),
        working_notes=notes,
        context_summary=summary,
        saved=datetime.fromisoformat(saved),
        transferred_from=transferred_from,
        transferred_at=_moment(transferred_at),
    )


def _moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
