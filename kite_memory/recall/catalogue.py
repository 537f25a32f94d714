"""SQLite catalogue of the vault's notes: the columns to filter by, the notes to show, and the words for FTS5.

It holds nothing that cannot be rebuilt from the vault. What a search has to know of every note at once is returned as arrays
(`Columns`), so that no note's text is held in memory.
"""

import hashlib
import json
import sqlite3
import threading
import unicodedata
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kite_memory.model.note import Entry, Note, NoteKind, NoteStatus, Scope
from kite_memory.recall import lexical
from kite_memory.recall.prose import CHARACTERS_PER_NOTE, passages, searchable
from kite_memory.recall.vector_file import Keys, key_of
from kite_memory.system import sqlite
from kite_memory.system.private_files import make_folder, make_private_file
from kite_memory.text.quoting import mended

_SCHEMA = """
CREATE TABLE note (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    digest BLOB NOT NULL,
    name TEXT NOT NULL,
    stem TEXT NOT NULL,
    kind INTEGER NOT NULL,
    status INTEGER NOT NULL,
    scope INTEGER NOT NULL,
    project INTEGER NOT NULL,
    created REAL NOT NULL,
    expires REAL,
    importance INTEGER NOT NULL,
    branch INTEGER NOT NULL,
    session INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX note_by_number ON note(number, kind, status, scope, project, created, expires, importance, branch, session);
CREATE INDEX note_by_name ON note(name);
CREATE INDEX note_by_stem ON note(stem);
CREATE TABLE project (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE passage (note INTEGER, number INTEGER, key INTEGER NOT NULL, PRIMARY KEY (note, number)) WITHOUT ROWID;
CREATE INDEX passage_by_key ON passage(key);
CREATE TABLE replacement (note INTEGER NOT NULL, other TEXT NOT NULL, stem TEXT NOT NULL, newer INTEGER NOT NULL);
CREATE INDEX replacement_by_note ON replacement(note);
CREATE TABLE passed_over (path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE gone (generation INTEGER NOT NULL, note INTEGER NOT NULL);
CREATE INDEX gone_by_generation ON gone(generation);
CREATE TABLE generation (catalogue TEXT NOT NULL, number INTEGER NOT NULL);
INSERT INTO generation VALUES (hex(randomblob(8)), 0);
"""
"""The index ``note_by_number`` covers everything that a search has to know of every note, so the notes themselves need not be read.
"""

KINDS = tuple(NoteKind)
STATUSES = tuple(NoteStatus)
SCOPES = tuple(Scope)
_FIELDS = tuple(field.name for field in fields(Note))
_TIMES = ("created", "updated", "valid_from", "valid_until", "expires", "drifted")
_MAKING = 2
"""Increase this when the same note would be catalogued differently."""
_VERSION = zlib.crc32("\n".join((_SCHEMA, lexical.SCHEMA, *_FIELDS, str(_MAKING))).encode()) >> 1
"""Never 0 in practice, which is the version of an empty file."""

_CODES = [("kind", "i1"), ("status", "i1"), ("scope", "i1"), ("project", "<i4")]
_BOUNDS = [("branch", "<i8"), ("session", "<i8")]
NOTE = np.dtype([("number", "<i8"), *_CODES, ("created", "<f8"), ("expires", "<f8"), ("importance", "i1"), *_BOUNDS])
PASSAGE = np.dtype([("note", "<i8"), ("key", "<i8")])

Numbers = npt.NDArray[np.int64]
Table = npt.NDArray[np.void]
Pairs = npt.NDArray[np.int64]
"""Two columns of row numbers: an old note, and a note that replaces it."""
Generation = tuple[str, int]
"""A catalogue's identity, and a number that increases with each change."""
Mask = npt.NDArray[np.bool_]
_REMEMBERED = 1000
"""Number of generations for which removed notes are remembered; a reader further behind rereads everything."""
Written = Literal["added", "changed", "the same"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleNotes:
    """The notes that a reader may see: those of these scopes and projects; ``None`` for any.

    A note of no project is bounded by its scope alone, unless that scope is project or session. An entity's page collects from
    every project, so bounds on projects exclude it.
    """

    scopes: frozenset[Scope] | None = None
    projects: frozenset[str] | None = None

    @property
    def whole(self) -> bool:
        return self.scopes is None and self.projects is None


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Arrays over all notes and their passages, ordered by note number. Kind, status and scope are positions in `KINDS`, `STATUSES`
    and `SCOPES`.

    Every note has at least one passage; those of row ``i`` begin at ``first_passage[i]``.
    """

    generation: Generation
    notes: Table
    passages: Table
    first_passage: Numbers
    replaced: Pairs

    def __len__(self) -> int:
        return len(self.notes)

    def next_expiry(self, now: float) -> float:
        """Return the Unix time at which the next note expires; infinite if none will."""
        expires = self.notes["expires"]
        return float(np.min(expires[expires > now], initial=np.inf))

    def within(self, project: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the notes of one project and of those that belong to none."""
        return np.asarray((self.notes["project"] == project) | self._of_none)

    def holding(self, *, project: int | None, none: int, branch: str, session: str) -> Mask:
        """Return a mask of the notes that apply to work in this project, on this branch and in this session.

        Without a project or on an unknown branch, those of all do; ``none`` is the number of no project.
        """
        notes = self.notes
        mask = (notes["scope"] != SCOPES.index(Scope.SESSION)) | (notes["session"] == _code(session))
        if branch:
            mask &= (notes["branch"] == _code("")) | (notes["branch"] == _code(branch))
        if project is not None:
            mask &= (notes["scope"] != SCOPES.index(Scope.PROJECT)) | np.isin(notes["project"], [project, none])
        return np.asarray(mask)

    def seen(self, visible: VisibleNotes, projects: Collection[int], none: int) -> Mask:
        """Return a mask of the notes in ``visible``. ``projects`` are the numbers of the projects it names, ``none`` is the number
        of no project.
        """
        mask = self.notes["kind"] != KINDS.index(NoteKind.ENTITY)
        if visible.scopes is not None:
            mask &= np.isin(self.notes["scope"], [SCOPES.index(scope) for scope in visible.scopes])
        if visible.projects is not None:
            mask &= np.isin(self.notes["project"], list(projects)) | ((self.notes["project"] == none) & self._of_none)
        return np.asarray(mask)

    def narrowed(self, rows: Mask) -> "Columns":
        """Return the columns of these rows only, as if there were no other notes."""
        passages = self.passages[self.passages_of(rows)]
        notes = self.notes[rows]
        moved = np.cumsum(rows) - 1
        return Columns(
            generation=self.generation,
            notes=notes,
            passages=passages,
            first_passage=np.searchsorted(passages["note"], notes["number"]),
            replaced=moved[self.replaced[rows[self.replaced].all(axis=1)]],
        )

    @cached_property
    def _of_none(self) -> Mask:
        return ~np.isin(self.notes["scope"], [SCOPES.index(Scope.PROJECT), SCOPES.index(Scope.SESSION)])

    def passages_of(self, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Turn a mask of notes into a mask of their passages."""
        return np.repeat(rows, np.diff(self.first_passage, append=len(self.passages)))

    def rows_of(self, numbers: Numbers) -> Numbers:
        """Return the rows of notes by their numbers; -1 for a number that is absent."""
        return _rows_of(self.notes["number"], numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedPassage:
    key: int
    note: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Differences between a listing of the vault and the catalogue: files to read, and paths that are gone."""

    to_read: tuple[Entry, ...]
    gone: tuple[str, ...]


class OtherVersion(sqlite3.DatabaseError):
    """Raised for an intact catalogue of a format that this version does not read."""


class Catalogue:
    """SQLite catalogue with one writing and one reading connection, each behind its own lock. Other processes may use the same
    file.

    SQLite's errors are not caught here: `Index` handles them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reading = threading.RLock()
        self._writing = threading.RLock()
        self._opening = threading.Lock()
        self._connections: _Connections | None = None
        self._left: list[_Connections] = []
        self._closed = False

    def close(self) -> None:
        """Close for good. Later calls raise `sqlite3.OperationalError`."""
        with self._writing, self._reading:
            self._closed = True
            self._disconnect()

    def _disconnect(self) -> None:
        with self._opening:
            for connections in (*self._left, self._connections):
                if connections is not None:
                    connections.reader.close()
                    connections.writer.close()
            self._connections = None
            self._left = []

    def destroy(self) -> None:
        """Delete the catalogue's files. The next use begins with an empty catalogue."""
        with self._writing, self._reading:
            self._disconnect()
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the reading connection inside one transaction, so that all reads see the same state."""
        with self._reading:
            reader = self._opened().reader
            reader.execute("BEGIN")
            try:
                yield reader
            finally:
                if reader.in_transaction:
                    reader.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the writing connection inside one transaction: all writes take effect or none. A change increases the
        generation.
        """
        with self._writing:
            writer = self._opened().writer
            writer.execute("BEGIN IMMEDIATE")
            before = writer.total_changes
            try:
                yield writer
                if writer.total_changes > before:
                    writer.execute("UPDATE generation SET number = number + 1")
                    writer.execute("DELETE FROM gone WHERE generation <= (SELECT number FROM generation) - ?", (_REMEMBERED,))
                writer.execute("COMMIT")
            finally:
                if writer.in_transaction:
                    writer.execute("ROLLBACK")

    def purge(self) -> bool:
        """Erase the words of removed notes from the word index and the file. Takes a second if there are many notes.

        Returns ``False`` while another process reads the file.
        """
        with self.writing() as writer:
            lexical.purge(writer)
        with self._writing:
            return sqlite.purge(self._opened().writer)

    def generation(self) -> Generation:
        with self.reading() as connection:
            return _generation(connection)

    def columns(self, before: Columns | None = None) -> Columns:
        """Return the current columns. With ``before``, read only notes added since: a changed note gets a new, higher number."""
        with self.reading() as connection:
            generation = _generation(connection)
            if before is not None and not (
                before.generation[0] == generation[0] and generation[1] - _REMEMBERED < before.generation[1] <= generation[1]
            ):
                before = None
            gone = _gone_since(connection, before.generation) if before is not None else _no_numbers()
            last = int(before.notes["number"][-1]) if before is not None and len(before) else 0
            rows = connection.execute(
                "SELECT number, kind, status, scope, project, created, coalesce(expires, 9e999), importance, branch, session"
                " FROM note WHERE number > ? ORDER BY number",
                (last,),
            )
            notes = np.array(rows.fetchall(), NOTE)
            rows = connection.execute("SELECT note, key FROM passage WHERE note > ? ORDER BY note, number", (last,))
            parts = np.array(rows.fetchall(), PASSAGE)
            if before is not None:
                notes = np.concatenate([_without(before.notes, "number", gone), notes])
                parts = np.concatenate([_without(before.passages, "note", gone), parts])
            muted = notes["number"][notes["status"] == STATUSES.index(NoteStatus.MUTED)]
            replaced = np.array([*_replaced(connection), *_copies(connection, muted)], np.int64).reshape(-1, 2)
        pairs = _rows_of(notes["number"], replaced)
        return Columns(
            generation=generation,
            notes=notes,
            passages=parts,
            first_passage=np.searchsorted(parts["note"], notes["number"]),
            replaced=pairs[(pairs[:, 0] >= 0) & (pairs[:, 1] >= 0) & (pairs[:, 0] != pairs[:, 1])],
        )

    def compare(self, listing: Iterable[Entry]) -> Differences:
        """Return which files to read and which are gone, comparing size and modification time only."""
        self._opened()
        with closing(_connected(self._path)) as connection:  # a separate connection: walking a large vault must not block others
            connection.execute("CREATE TEMP TABLE listing (path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER) WITHOUT ROWID")
            connection.execute("BEGIN")
            connection.executemany(
                "INSERT OR REPLACE INTO listing VALUES (?, ?, ?)", ((entry.path, entry.size, entry.mtime_ns) for entry in listing)
            )
            connection.execute("COMMIT")
            connection.execute(
                "CREATE TEMP VIEW known AS SELECT path, size, mtime_ns FROM main.note"
                " UNION ALL SELECT path, size, mtime_ns FROM main.passed_over"
            )
            to_read = connection.execute("SELECT * FROM listing EXCEPT SELECT * FROM known ORDER BY path").fetchall()
            gone = connection.execute("SELECT path FROM known WHERE path NOT IN (SELECT path FROM listing)").fetchall()
        return Differences(
            to_read=tuple(Entry(path=path, size=size, mtime_ns=mtime_ns) for path, size, mtime_ns in to_read),
            gone=tuple(path for (path,) in gone),
        )

    @staticmethod
    def put(writer: sqlite3.Connection, note: Note, entry: Entry, said: str = "") -> Written:
        """Add a note or replace it. ``writer`` is the connection that `writing` yields, here and below."""
        writer.execute("DELETE FROM passed_over WHERE path = ?", (entry.path,))
        note = replace(note, body=note.body[:CHARACTERS_PER_NOTE])
        document = _encoded(note)
        digest = hashlib.blake2b(document.encode(), digest_size=16).digest()
        known = writer.execute("SELECT number, digest FROM note WHERE path = ?", (entry.path,)).fetchone()
        if known and known[1] == digest:
            writer.execute("UPDATE note SET size = ?, mtime_ns = ? WHERE number = ?", (entry.size, entry.mtime_ns, known[0]))
            return "the same"
        if known:
            _remove(writer, known[0])
        number = writer.execute(
            "INSERT INTO note(path, size, mtime_ns, digest, name, stem, kind, status, scope, project, created, expires, importance,"
            " branch, session, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
            (
                entry.path,
                entry.size,
                entry.mtime_ns,
                digest,
                mended(note.id or entry.path),
                _stem(entry.path),
                KINDS.index(note.kind),
                STATUSES.index(note.status),
                SCOPES.index(note.scope),
                _project_number(writer, mended(note.project)),
                _seconds(note.created),
                _seconds(note.expires) if note.expires else None,
                max(1, min(note.importance, 3)),
                _code(note.branch),
                _code(note.session),
                document,
            ),
        ).fetchone()[0]
        lexical.add(writer, number, searchable(note, said))
        writer.executemany(
            "INSERT INTO passage VALUES (?, ?, ?)", [(number, place, key_of(text)) for place, text in enumerate(passages(note))]
        )
        replaced = [(number, *_reference(old), False) for old in note.supersedes]
        replaced.append((number, *_reference(note.superseded_by), True))
        writer.executemany("INSERT INTO replacement VALUES (?, ?, ?, ?)", [row for row in replaced if row[1]])
        return "changed" if known else "added"

    @staticmethod
    def remove(writer: sqlite3.Connection, path: str) -> bool:
        writer.execute("DELETE FROM passed_over WHERE path = ?", (path,))
        known = writer.execute("SELECT number FROM note WHERE path = ?", (path,)).fetchone()
        if known:
            _remove(writer, known[0])
        return known is not None

    @staticmethod
    def pass_over(writer: sqlite3.Connection, entry: Entry) -> bool:
        """Record that this file is not a note, so it is not read again until it changes. Return whether a note was removed."""
        removed = Catalogue.remove(writer, entry.path)
        writer.execute("INSERT INTO passed_over VALUES (?, ?, ?)", (entry.path, entry.size, entry.mtime_ns))
        return removed

    def keys_of(self, paths: Collection[str]) -> Keys:
        query = "SELECT key FROM passage JOIN note ON passage.note = note.number WHERE path = ?"
        with self.reading() as connection:
            return np.array([key for path in paths for (key,) in connection.execute(query, (path,))], np.int64)

    def passages(self, keys: Collection[int]) -> list[IndexedPassage]:
        """Return the passages for these keys, omitting keys that no longer exist."""
        query = "SELECT passage.number, name, document FROM passage JOIN note ON passage.note = note.number WHERE key = ? LIMIT 1"
        with self.reading() as connection:
            rows = [(key, *row) for key in keys for row in connection.execute(query, (key,))]
        return [IndexedPassage(key=key, note=name, text=passages(_decoded(document))[place]) for key, place, name, document in rows]

    def notes(self, numbers: Collection[int]) -> dict[int, Note]:
        query = "SELECT document FROM note WHERE number = ?"
        with self.reading() as connection:
            rows = [(number, *row) for number in numbers for row in connection.execute(query, (number,))]
        return {number: _decoded(document) for number, document in rows}

    def project_number(self, project: str) -> int:
        """Return a project's number; -1 for a project without notes."""
        with self.reading() as connection:
            row = connection.execute("SELECT number FROM project WHERE name = ?", (mended(project),)).fetchone()
            return int(row[0]) if row else -1

    def _opened(self) -> "_Connections":
        """Return connections to the current file, reconnecting if another process has replaced it."""
        with self._opening:
            if self._closed:
                raise sqlite3.OperationalError("it is closed")
            if self._connections is not None and _identity(self._path) != self._connections.file:
                self._left.append(self._connections)  # they may still be in use
                self._connections = None
            if self._connections is None:
                try:
                    make_folder(self._path.parent)
                    make_private_file(self._path)
                except OSError as error:
                    raise sqlite3.OperationalError(f"{error.strerror}: {error.filename}") from error
                writer = _connected(self._path)
                try:
                    _create_tables(writer)
                    self._connections = _Connections(reader=_connected(self._path), writer=writer, file=_identity(self._path))
                except sqlite3.Error:
                    writer.close()
                    raise
            return self._connections


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connections:
    reader: sqlite3.Connection
    writer: sqlite3.Connection
    file: tuple[int, int] | None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite.connect(path, timeout=10.0)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty file. Raise `OtherVersion` for a file of another version, older or newer."""
    with sqlite.transaction(connection):
        version = sqlite.version_of(connection)
        if version == 0:
            for statement in (_SCHEMA + lexical.SCHEMA).split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            raise OtherVersion("written by another version")


def _generation(connection: sqlite3.Connection) -> Generation:
    catalogue, number = connection.execute("SELECT catalogue, number FROM generation").fetchone()
    return str(catalogue), int(number)


def _gone_since(connection: sqlite3.Connection, generation: Generation) -> Numbers:
    """Return the numbers of notes removed or changed since, and of some that were added and removed meanwhile."""
    rows = connection.execute("SELECT note FROM gone WHERE generation > ?", (generation[1],)).fetchall()
    return np.array(rows, np.int64).reshape(-1)


def _without(table: Table, field: str, gone: Numbers) -> Table:
    return table[~np.isin(table[field], gone)] if len(gone) else table


def _no_numbers() -> Numbers:
    return np.zeros(0, np.int64)


def _rows_of(held: Numbers, wanted: Numbers) -> Numbers:
    if not len(held):
        return np.full(wanted.shape, -1, np.int64)
    rows = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    return np.where(held[rows] == wanted, rows, -1)


def _replaced(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """Return pairs of numbers: an old note and the note that replaces it. A reference may be an id or a file name, as links are."""
    return connection.execute(
        "SELECT CASE newer WHEN 0 THEN named.number ELSE said.note END, CASE newer WHEN 0 THEN said.note ELSE named.number END"
        " FROM replacement AS said JOIN note AS named ON named.name = said.other OR named.stem = said.stem"
        " ORDER BY 1, 2"
    ).fetchall()


def _copies(connection: sqlite3.Connection, muted: Numbers) -> list[tuple[int, int]]:
    """Return pairs of numbers: a copy of a muted note, with the same id, and the muted note. Muting applies to the content, so to
    every copy.
    """
    query = (
        "SELECT copy.number, note.number FROM note JOIN note AS copy ON copy.name = note.name"
        " WHERE note.number = ? AND copy.number <> note.number"
    )
    return [pair for number in muted.tolist() for pair in connection.execute(query, (number,))]


def _remove(connection: sqlite3.Connection, number: int) -> None:
    lexical.remove(connection, number)
    connection.execute("INSERT INTO gone SELECT number + 1, ? FROM generation", (number,))
    connection.execute("DELETE FROM note WHERE number = ?", (number,))
    connection.execute("DELETE FROM passage WHERE note = ?", (number,))
    connection.execute("DELETE FROM replacement WHERE note = ?", (number,))


def _project_number(connection: sqlite3.Connection, project: str) -> int:
    connection.execute("INSERT OR IGNORE INTO project(name) VALUES (?)", (project,))
    return int(connection.execute("SELECT number FROM project WHERE name = ?", (project,)).fetchone()[0])


def _reference(text: str) -> tuple[str, str]:
    """Return the target of a wikilink, path or id, as written and as a file's `_stem`."""
    inner = text.strip().removeprefix("[[").removesuffix("]]")
    target = inner.partition("|")[0].partition("#")[0].strip()
    return mended(target.rpartition("/")[2].removesuffix(".md")), _stem(target)


def _stem(path: str) -> str:
    """Return a form of the file name that is equal for names that some file system treats as the same. SQLite's own ``lower``
    covers only ASCII.
    """
    stem = path.rpartition("/")[2].removesuffix(".md")
    return mended(unicodedata.normalize("NFC", unicodedata.normalize("NFC", stem).casefold()))


def _code(name: str) -> int:
    """Return a number that stands for a branch or a session; 0 for none."""
    return key_of(name) if name else 0


def _seconds(at: datetime) -> float:
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _encoded(note: Note) -> str:
    values: dict[str, Any] = {name: getattr(note, name) for name in _FIELDS}
    for name in _TIMES:
        values[name] = values[name].isoformat() if values[name] else None
    return json.dumps(values, separators=(",", ":"))


@lru_cache(maxsize=256)
def _decoded(document: str) -> Note:
    held: dict[str, Any] = json.loads(document)
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in held.items()}
    for name in _TIMES:
        values[name] = datetime.fromisoformat(values[name]) if values[name] else None
    values["kind"] = NoteKind(values["kind"])
    values["scope"] = Scope(values["scope"])
    values["status"] = NoteStatus(values["status"])
    return Note(**values)


def no_columns() -> Columns:
    return Columns(
        generation=("", 0),
        notes=np.zeros(0, NOTE),
        passages=np.zeros(0, PASSAGE),
        first_passage=np.zeros(0, np.int64),
        replaced=np.zeros((0, 2), np.int64),
    )
