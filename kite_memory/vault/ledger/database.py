"""The ledger's database file: its tables, their migrations, and the values that it returns."""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Literal, NamedTuple

from kite_memory.errors import KiteError, StateDamaged, VaultReadOnly
from kite_memory.model.note import Note, Scope
from kite_memory.system import sqlite
from kite_memory.system.private_files import PRIVATE, make_folder, make_private_file
from kite_memory.system.sqlite import Migrations
from kite_memory.vault.files import Stamp
from kite_memory.vault.notefile import UnreadableNote
from kite_memory.vault.wording import digest, stem_key

VERSION = 8

_VERSION_1 = (
    """
    CREATE TABLE files (
        key INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        id TEXT NOT NULL,
        twin INTEGER NOT NULL,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        title_key TEXT NOT NULL,
        stem_key TEXT NOT NULL,
        body_key TEXT NOT NULL,
        project TEXT NOT NULL,
        status TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        problem TEXT NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX files_by_id ON files (id) WHERE id <> '' AND twin = 0",
    "CREATE INDEX files_by_title ON files (title_key)",
    "CREATE INDEX files_by_stem ON files (stem_key)",
    "CREATE INDEX files_by_body ON files (body_key)",
    # what a file is called, speaks of, links to and rests on
    """
    CREATE TABLE names (
        file INTEGER NOT NULL REFERENCES files (key) ON DELETE CASCADE,
        role TEXT NOT NULL CHECK (role IN ('alias', 'entity', 'key', 'link', 'session')),
        name TEXT NOT NULL,
        PRIMARY KEY (role, name, file)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX names_by_file ON names (file)",
    "CREATE TABLE bodies (id TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (id, digest)) WITHOUT ROWID",
    "CREATE TABLE absorbed (draft TEXT PRIMARY KEY, note TEXT NOT NULL) WITHOUT ROWID",
    "CREATE INDEX absorbed_by_note ON absorbed (note)",
    "CREATE TABLE tombstones (id TEXT PRIMARY KEY, at TEXT NOT NULL, because TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE buried_titles (
        title_key TEXT NOT NULL,
        project TEXT NOT NULL,
        id TEXT NOT NULL REFERENCES tombstones (id) ON DELETE CASCADE,
        PRIMARY KEY (title_key, project, id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX buried_titles_by_id ON buried_titles (id)",
    """
    CREATE TABLE intents (
        id TEXT PRIMARY KEY,
        doing TEXT NOT NULL CHECK (doing IN ('create', 'forget')),
        path TEXT NOT NULL,
        temporary TEXT NOT NULL,
        title TEXT NOT NULL,
        project TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE TABLE unmuted (id TEXT PRIMARY KEY, status TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE template (path TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE problems (path TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (path, reason)) WITHOUT ROWID",
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)

_VERSION_2 = (
    """
    CREATE TABLE keys (
        file INTEGER PRIMARY KEY REFERENCES files (key) ON DELETE CASCADE,
        key TEXT NOT NULL,
        scope TEXT NOT NULL,
        project TEXT NOT NULL,
        session TEXT NOT NULL,
        tags TEXT NOT NULL,
        expires TEXT NOT NULL
    )
    """,
    "CREATE INDEX keys_by_key ON keys (key)",
    """
    CREATE TABLE versions (
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        at TEXT NOT NULL,
        by TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (id, version)
    ) WITHOUT ROWID
    """,
    "CREATE TABLE last_versions (place TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID",
)
"""Keys with all that distinguishes two of them, and the versions of their notes; see `_move_keys`."""

_VERSION_3 = (
    """
    CREATE TABLE rulings (
        newer TEXT NOT NULL,
        older TEXT NOT NULL,
        ruling TEXT NOT NULL CHECK (ruling IN ('replacing', 'replaces', 'neither')),
        PRIMARY KEY (newer, older)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX rulings_by_older ON rulings (older)",
)
"""Which note replaces which, or is ruled not to; ``replacing`` until the older one is marked."""

_VERSION_4 = (
    "ALTER TABLE files ADD COLUMN asks INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX files_that_wait ON files (path) WHERE status = 'proposed' OR asks",
    "UPDATE files SET size = -1, mtime_ns = -1 WHERE status = 'accepted' AND id <> ''",
)
"""Whether a note has an open question for its owner. The next comparison reads known notes again to find out."""

_VERSION_5 = (
    "ALTER TABLE files ADD COLUMN branch TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX files_of_branches ON files (path) WHERE branch <> ''",
    "UPDATE files SET size = -1, mtime_ns = -1 WHERE kind IN ('decision', 'fact') AND id <> ''",
)
"""Which notes hold only on a branch. The next comparison reads known notes again to find out."""
_VERSION_6 = ("CREATE TABLE drift (file INTEGER PRIMARY KEY REFERENCES files (key) ON DELETE CASCADE, since TEXT NOT NULL)",)
"""Since when code that a note rests on has changed; kept here, so that a checkout does not rewrite notes."""


def _move_keys(connection: sqlite3.Connection) -> None:
    """Move keys out of the names, where version 1 had them without session, tags and expiry.

    The next comparison reads these files again.
    """
    for file, name in connection.execute("SELECT file, name FROM names WHERE role = 'key'").fetchall():
        scope, project, key = name.split("\0", 2)
        connection.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?, ?, '', '[]', '')", (file, key, scope, project))
        connection.execute("UPDATE files SET size = -1, mtime_ns = -1 WHERE key = ?", (file,))
    connection.execute("DELETE FROM names WHERE role = 'key'")


def _hide_buried_titles(connection: sqlite3.Connection) -> None:
    """Replace titles, which version 4 stored as plain text, by their digests."""
    for (title,) in connection.execute("SELECT DISTINCT title_key FROM buried_titles").fetchall():
        connection.execute("UPDATE buried_titles SET title_key = ? WHERE title_key = ?", (digest(title), title))


MIGRATIONS: Migrations = {
    1: _VERSION_1,
    2: (*_VERSION_2, _move_keys),
    3: _VERSION_3,
    4: _VERSION_4,
    5: _VERSION_5,
    6: _VERSION_6,
    7: ("CREATE INDEX files_by_time ON files (mtime_ns, path)", _hide_buried_titles),
    8: ("UPDATE files SET size = -1, mtime_ns = -1 WHERE body_key <> ''",),  # the key of a body counts signs: it is made again
}


class LedgerDatabase:
    """Connection to the ledger's database.

    Thread-safe; many processes may have it open. Changes are made inside `changing`.
    """

    def __init__(self, path: Path, *, step: Callable[[str], None] = lambda doing: None) -> None:
        self._path = path
        self._step = step
        self._lock = threading.RLock()
        self._depth = 0
        self._lasting = True
        self._failing_as_ours = _FailingAsOurs(path)
        _make_private(path)
        with self._failing_as_ours:  # an intent must outlive a power cut
            self._connection = sqlite.open_store(path, MIGRATIONS, named=str(path), synchronous="FULL")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def purge(self) -> bool:
        """See `sqlite.rewrite`."""
        with self._lock, self._failing_as_ours:
            return sqlite.rewrite(self._connection)

    @contextlib.contextmanager
    def changing(self, *, lasting: bool = True) -> Iterator[None]:
        """Open a transaction; nested ones are part of the outermost.

        One that need not be ``lasting`` may be undone by a power cut, until the next one that is: for what a comparison of the
        vault would find again. It saves a wait for the disk.
        """
        with self._lock, self._failing_as_ours:
            outermost = not self._depth
            if outermost:
                if lasting is not self._lasting:
                    self._connection.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
                    self._lasting = lasting
                self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
                if outermost:
                    self._step("commit")
                    self._connection.execute("COMMIT")
            except BaseException:
                if outermost and self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def run(self, statement: str, *values: object) -> list[Any]:
        with self._lock, self._failing_as_ours:
            return self._connection.execute(statement, values).fetchall()

    def run_each(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with self._lock, self._failing_as_ours:
            self._connection.executemany(statement, rows)


class _FailingAsOurs:
    """Raises SQLite's errors as ours. A class, since a statement takes little longer than a generator's start and end."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, sqlite3.OperationalError):
            raise _as_state_error(error, self._path) from error
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise StateDamaged(
                f"the vault's ledger at {self._path} cannot be read: {error}",
                hint="move it away: notes are then taken for yours, and what is in the vault's .trash stays deleted",
            ) from error


def _as_state_error(error: sqlite3.OperationalError, path: Path) -> KiteError:
    # Python itself raises for text that is not UTF-8, without an error code.
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return KiteError(f"another process keeps {path} busy", hint="try again; see `kmem status`")
        case sqlite3.SQLITE_FULL:
            return VaultReadOnly(f"no space left on the disk of {path}", hint="free some space; nothing is lost meanwhile")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_PERM:
            return VaultReadOnly(f"cannot write to {path}: {error}", hint=f"see who owns it: ls -l {path.parent}")
        case _:
            return StateDamaged(f"the vault's ledger at {path} is damaged: {error}", hint="run `kmem doctor`")


def _make_private(path: Path) -> None:
    try:
        make_folder(path.parent)
        make_private_file(path)
        path.chmod(PRIVATE)
    except OSError as error:
        raise VaultReadOnly(f"cannot write to {path}: {error.strerror}", hint=f"see who owns it: ls -ld {path.parent}") from error


class KnownFile(NamedTuple):
    """A file as of the last comparison. ``duplicate``: a copy of a note whose id belongs to an older file.

    A plain tuple, since a query may return one for every note of the vault.
    """

    path: str
    id: str
    duplicate: bool
    kind: str
    title: str
    project: str
    status: str
    size: int
    mtime_ns: int
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A change of the vault that was about to be made when this was committed."""

    id: str
    doing: Literal["create", "forget"]
    path: str
    temporary: str
    title: str
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """A file that was opened: its note, or why it has none. ``known`` is what was known of it before."""

    path: str
    stamp: Stamp
    note: Note | UnreadableNote
    id: str
    duplicate: bool
    known: KnownFile | None = None

    def as_known(self) -> KnownFile:
        """Return the row of a file. Of one that cannot be read any more, everything that was known is kept."""
        return KnownFile(
            path=self.path,
            id=self.id,
            duplicate=self.duplicate,
            kind=self.known.kind if self.known else "",
            title=self.known.title if self.known else PurePosixPath(self.path).stem,
            project=self.known.project if self.known else "",
            status=self.known.status if self.known else "",
            size=self.stamp.size,
            mtime_ns=self.stamp.mtime_ns,
            problem=self.note.reason if isinstance(self.note, UnreadableNote) else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlace:
    """A key with the scope, project and session within which it is unique."""

    key: str
    scope: Scope
    project: str = ""
    session: str = ""

    @classmethod
    def of(cls, note: Note) -> "KeyPlace":
        return cls(key=note.key, scope=note.scope, project=note.project, session=note.session)

    @property
    def columns(self) -> tuple[str, str, str, str]:
        return self.key, self.scope.value, self.project, self.session

    @property
    def digest(self) -> str:
        """Digest that is kept when the key itself is forgotten."""
        return digest("\0".join((self.scope.value, self.project, self.session, self.key)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """A file with a key, as of the last comparison. ``expires`` is ISO 8601, or empty."""

    key: str
    scope: str
    project: str
    session: str
    tags: tuple[str, ...]
    expires: str
    known: KnownFile

    @property
    def place(self) -> KeyPlace:
        return KeyPlace(key=self.key, scope=Scope(self.scope), project=self.project, session=self.session)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The text of a keyed note from ``at`` on. ``by`` is empty where it is unknown: mostly a person in an editor."""

    version: int
    at: datetime
    by: str
    body: str


def link_key(target: str) -> str:
    """Return a key that is equal for a link's target and the file it leads to."""
    return stem_key(target.rpartition("/")[2].removesuffix(".md"))


_COLUMNS = "path, id, twin, kind, title, project, status, size, mtime_ns, problem"
FILE_COLUMNS = ", ".join(f"f.{name}" for name in _COLUMNS.split(", "))
"""Of the table ``files AS f``, as `known` reads them."""


def known_where(database: LedgerDatabase, where: str, *values: object, limit: int = -1) -> list[KnownFile]:
    """Return the rows that match, originals before copies, then by path."""
    rows = database.run(f"SELECT {_COLUMNS} FROM files WHERE {where} ORDER BY twin, path LIMIT ?", *values, limit)  # noqa: S608 - `where` is ours
    return list(map(known, rows))


def known(row: Sequence[Any]) -> KnownFile:
    path, id, duplicate, kind, title, project, status, size, mtime_ns, problem = row
    return KnownFile(path, id, duplicate != 0, kind, title, project, status, size, mtime_ns, problem)
