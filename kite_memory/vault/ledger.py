"""What we know of the vault beside what it says itself: which bodies are ours, what its owner deleted, what is half done.

Not derived data: notes can be read again, but not who wrote them, nor that one was thrown away. A rebuild leaves it alone.
"""

import contextlib
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from kite_memory.errors import KiteError, StateDamaged, StateNewer, VaultReadOnly
from kite_memory.model.event import EvidenceReference
from kite_memory.model.look import Problem
from kite_memory.model.note import Note
from kite_memory.model.scope import Scope
from kite_memory.vault.files import Stamp
from kite_memory.vault.notefile import Unreadable
from kite_memory.vault.wording import body_key, entity_key, stem_key, title_key

VERSION = 1

_TABLES = (
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

_COLUMNS = "path, id, twin, kind, title, project, status, size, mtime_ns, problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A file as it was when last looked at. ``twin``: a copy of a note whose id belongs to an older file."""

    path: str
    id: str
    twin: bool
    kind: str
    title: str
    project: str
    status: str
    size: int
    mtime_ns: int
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What was about to be done to the vault when this was committed."""

    id: str
    doing: Literal["create", "forget"]
    path: str
    temporary: str
    title: str
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A file that was opened: its note, or why there is none to be had. ``known`` is what was known of it before."""

    path: str
    stamp: Stamp
    note: Note | Unreadable
    id: str
    twin: bool
    known: Known | None = None

    def as_known(self) -> Known:
        """Of a file that cannot be read any more, everything that was known stays known."""
        return Known(
            path=self.path,
            id=self.id,
            twin=self.twin,
            kind=self.known.kind if self.known else "",
            title=self.known.title if self.known else PurePosixPath(self.path).stem,
            project=self.known.project if self.known else "",
            status=self.known.status if self.known else "",
            size=self.stamp.size,
            mtime_ns=self.stamp.mtime_ns,
            problem=self.note.reason if isinstance(self.note, Unreadable) else "",
        )


def link_key(target: str) -> str:
    """What a link's target and the file it leads to have in common."""
    return stem_key(target.rpartition("/")[2].removesuffix(".md"))


def keyed(scope: Scope, project: str, key: str) -> str:
    """What a key is unique within."""
    return "\0".join((scope.value, project, key))


class Ledger:
    """Thread-safe; many processes may have it open. Changes are made inside `changing`."""

    def __init__(self, path: Path, *, step: Callable[[str], None] = lambda doing: None) -> None:
        self._path = path
        self._step = step
        self._lock = threading.RLock()
        self._depth = 0
        _make_private(path)
        self._database = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        try:
            with self._failing_as_ours():
                self._open()
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _open(self) -> None:
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")  # an intent must outlive a power cut
        self._database.execute("PRAGMA foreign_keys = ON")
        with self.changing():
            version = self._run("PRAGMA user_version")[0][0]
            if version > VERSION:
                raise StateNewer(f"{self._path} was written by a newer Kite Memory", hint="update kite-memory")
            if version == 0:
                for table in _TABLES:
                    self._run(table)
                self._run(f"PRAGMA user_version = {VERSION}")

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """One transaction; nested ones are part of the outermost."""
        with self._lock, self._failing_as_ours():
            outermost = not self._depth
            if outermost:
                self._database.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
                if outermost:
                    self._step("commit")
                    self._database.execute("COMMIT")
            except BaseException:
                if outermost and self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def see(self, note: Note, stamp: Stamp, *, id: str, twin: bool = False) -> None:
        """This is what stands at ``note.path`` now. ``id`` may be known where the file has lost it."""
        known = Known(
            path=note.path,
            id=id,
            twin=twin,
            kind=note.kind.value,
            title=note.title,
            project=note.project,
            status=note.status.value,
            size=stamp.size,
            mtime_ns=stamp.mtime_ns,
        )
        with self.changing():
            self.put(known, body_key(note.body))
            self._name(
                note.path,
                alias=map(title_key, note.aliases),
                entity=map(entity_key, note.entities),
                link=map(link_key, (*note.links, *note.supersedes, note.superseded_by)),
                key=(keyed(note.scope, note.project, note.key),) if note.key else (),
                session=(f"{found.provider}:{found.session}" for text in note.evidence if (found := EvidenceReference.parse(text))),
            )

    def put(self, known: Known, body: str = "") -> None:
        said = (known.path, known.id, known.twin, known.kind, known.title, known.project, known.status)
        with self.changing():
            self._run(
                "INSERT INTO files (path, id, twin, kind, title, project, status, size, mtime_ns, problem,"
                " title_key, stem_key, body_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (path) DO UPDATE SET id = excluded.id, twin = excluded.twin, kind = excluded.kind,"
                " title = excluded.title, title_key = excluded.title_key, body_key = excluded.body_key, project = excluded.project,"
                " status = excluded.status, size = excluded.size, mtime_ns = excluded.mtime_ns, problem = excluded.problem",
                *(*said, known.size, known.mtime_ns, known.problem, title_key(known.title), link_key(known.path), body),
            )

    def _name(self, path: str, **names: Iterable[str]) -> None:
        file = self._run("SELECT key FROM files WHERE path = ?", path)[0][0]
        self._run("DELETE FROM names WHERE file = ?", file)
        rows = {(file, role, name) for role, group in names.items() for name in group if name}
        self._run_each("INSERT INTO names (file, role, name) VALUES (?, ?, ?)", rows)

    def rewrite(self, forgotten: Iterable[str], seen: Iterable[Sight], originals: Iterable[str]) -> None:
        """Bring the files up to date in one go: ids may have changed places among them.

        ``originals`` were copies so far, and what they are copies of is gone.
        """
        with self.changing():
            self._run_each("DELETE FROM files WHERE path = ?", [(path,) for path in forgotten])
            self._run_each("UPDATE files SET twin = 0 WHERE path = ?", [(path,) for path in originals])
            for sight in seen:
                if isinstance(sight.note, Note):
                    self.see(sight.note, sight.stamp, id=sight.id, twin=sight.twin)
                else:
                    self.put(sight.as_known())

    def drop(self, path: str) -> None:
        with self.changing():
            self._run("DELETE FROM files WHERE path = ?", path)

    def at(self, path: str) -> Known | None:
        return self._one("path = ?", path)

    def by_id(self, id: str) -> Known | None:
        """The file that an id belongs to, copies aside."""
        return self._one("id = ? AND id <> '' AND twin = 0", id)

    def by_stem(self, stem: str) -> Known | None:
        return self._one("stem_key = ?", stem_key(stem))

    def all_by_stem(self, stem: str) -> list[Known]:
        return self._all("stem_key = ?", stem_key(stem))

    def by_title(self, title: str) -> list[Known]:
        return self._all("title_key = ?", title_key(title))

    def by_body(self, key: str) -> list[Known]:
        return self._all("body_key = ? AND body_key <> ''", key)

    def named(self, role: Literal["alias", "entity", "key", "link", "session"], name: str) -> list[Known]:
        return self._all("key IN (SELECT file FROM names WHERE role = ? AND name = ?)", role, name)

    def dead_ends(self) -> list[str]:
        """Targets of links, as `link_key` writes them, that no file has."""
        rows = self._run(
            "SELECT DISTINCT name FROM names WHERE role = 'link' AND name NOT IN (SELECT stem_key FROM files) ORDER BY name"
        )
        return [name for (name,) in rows]

    def titles_of(self, known: Known) -> tuple[str, ...]:
        """Its title and the names it also goes by, as `wording.title_key` writes them."""
        rows = self._run(
            "SELECT name FROM names JOIN files ON key = file WHERE role = 'alias' AND path = ? ORDER BY name", known.path
        )
        return (title_key(known.title), *(name for (name,) in rows))

    def starting_with(self, prefix: str) -> list[Known]:
        """Files whose id or name begins so; at most ten."""
        text, end = stem_key(prefix), stem_key(prefix) + "\U0010ffff"
        upper = prefix.upper()
        return self._all(
            "(stem_key >= ? AND stem_key < ?) OR (title_key >= ? AND title_key < ?) OR (id >= ? AND id < ? AND twin = 0)",
            *(text, end, title_key(prefix), title_key(prefix) + "\U0010ffff", upper, upper + "\U0010ffff"),
            limit=10,
        )

    def is_empty(self) -> bool:
        return not self._run("SELECT 1 FROM files LIMIT 1") and not self._run("SELECT 1 FROM template LIMIT 1")

    def landmarks(self) -> list[str]:
        """Some paths of which at least one is there, if the vault is."""
        rows = self._run("SELECT path FROM template UNION ALL SELECT path FROM (SELECT path FROM files ORDER BY key DESC LIMIT 50)")
        return [path for (path,) in rows]

    def everything(self) -> list[Known]:
        return self._all("1")

    def stems_like(self, stem: str) -> frozenset[str]:
        """The taken names that begin with this one."""
        key = stem_key(stem)
        rows = self._run("SELECT stem_key FROM files WHERE stem_key >= ? AND stem_key < ?", key, key + "\U0010ffff")
        return frozenset(name for (name,) in rows)

    def titles(self) -> list[str]:
        return [title for (title,) in self._run("SELECT DISTINCT title FROM files LIMIT 5000")]

    def wrote(self, id: str, digest: str) -> None:
        """A body that we are about to write, or wrote. Told before, so that no crash makes our own note look like a person's."""
        with self.changing():
            self._run("INSERT OR IGNORE INTO bodies (id, digest) VALUES (?, ?)", id, digest)

    def is_ours(self, id: str, digest: str) -> bool:
        return bool(id and self._run("SELECT 1 FROM bodies WHERE id = ? AND digest = ?", id, digest))

    def absorb(self, draft: str, note: str) -> None:
        with self.changing():
            self._run("INSERT OR REPLACE INTO absorbed (draft, note) VALUES (?, ?)", draft, note)

    def absorbed_by(self, draft: str) -> str:
        found = self._run("SELECT note FROM absorbed WHERE draft = ?", draft)
        return str(found[0][0]) if found else ""

    def bury(self, id: str, titles: Iterable[str], project: str, *, at: datetime, because: str) -> None:
        """Never again: neither this id, nor a note of one of these titles in this project."""
        with self.changing():
            self._run("DELETE FROM tombstones WHERE id = ?", id)
            self._run("INSERT INTO tombstones (id, at, because) VALUES (?, ?, ?)", id, at.isoformat(), because)
            rows = {(title_key(title), project, id) for title in titles if title}
            self._run_each("INSERT INTO buried_titles (title_key, project, id) VALUES (?, ?, ?)", rows)

    def lift(self, id: str) -> None:
        """Its owner has put the note back."""
        with self.changing():
            self._run("DELETE FROM tombstones WHERE id = ?", id)

    def lift_title(self, title: str, project: str) -> None:
        """Its owner asks for it again."""
        with self.changing():
            self._run("DELETE FROM buried_titles WHERE title_key = ? AND project = ?", title_key(title), project)

    def is_buried(self, id: str) -> bool:
        return bool(self._run("SELECT 1 FROM tombstones WHERE id = ?", id))

    def is_title_buried(self, title: str, project: str) -> bool:
        return bool(self._run("SELECT 1 FROM buried_titles WHERE title_key = ? AND project = ?", title_key(title), project))

    def intend(self, intent: Intent) -> None:
        with self.changing():
            self._run(
                "INSERT OR REPLACE INTO intents (id, doing, path, temporary, title, project) VALUES (?, ?, ?, ?, ?, ?)",
                *(intent.id, intent.doing, intent.path, intent.temporary, intent.title, intent.project),
            )

    def done(self, id: str) -> None:
        with self.changing():
            self._run("DELETE FROM intents WHERE id = ?", id)

    def intents(self) -> list[Intent]:
        rows = self._run("SELECT id, doing, path, temporary, title, project FROM intents ORDER BY id")
        return [
            Intent(id=id, doing=doing, path=path, temporary=temporary, title=title, project=project)
            for id, doing, path, temporary, title, project in rows
        ]

    def mute(self, id: str, status: str) -> None:
        with self.changing():
            self._run("INSERT OR REPLACE INTO unmuted (id, status) VALUES (?, ?)", id, status)

    def status_before_mute(self, id: str) -> str:
        found = self._run("SELECT status FROM unmuted WHERE id = ?", id)
        return str(found[0][0]) if found else ""

    def gave(self, path: str) -> bool:
        """Whether this file of the template was laid out before: if it is gone now, its owner did not want it."""
        return bool(self._run("SELECT 1 FROM template WHERE path = ?", path))

    def give(self, path: str) -> None:
        with self.changing():
            self._run("INSERT OR IGNORE INTO template (path) VALUES (?)", path)

    def forget_layout(self) -> None:
        """The vault was thrown away: the next one is laid out like a new one."""
        with self.changing():
            self._run("DELETE FROM template")
            self._run("DELETE FROM settings WHERE name = 'laid out'")

    def setting(self, name: str) -> str:
        found = self._run("SELECT value FROM settings WHERE name = ?", name)
        return str(found[0][0]) if found else ""

    def set(self, name: str, value: str) -> None:
        with self.changing():
            self._run("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", name, value)

    def set_problems(self, problems: Iterable[Problem]) -> None:
        with self.changing():
            self._run("DELETE FROM problems")
            rows = {(problem.file, problem.reason) for problem in problems}
            self._run_each("INSERT INTO problems (path, reason) VALUES (?, ?)", rows)

    def problems(self) -> list[Problem]:
        rows = self._run(
            "SELECT path, reason FROM problems UNION SELECT path, problem FROM files WHERE problem <> '' ORDER BY path, reason"
        )
        return [Problem(file=path, position=0, reason=reason) for path, reason in rows]

    def _one(self, where: str, *values: object) -> Known | None:
        found = self._all(where, *values, limit=1)
        return found[0] if found else None

    def _all(self, where: str, *values: object, limit: int = -1) -> list[Known]:
        """Originals before copies, then by path."""
        rows = self._run(f"SELECT {_COLUMNS} FROM files WHERE {where} ORDER BY twin, path LIMIT ?", *values, limit)  # noqa: S608 - `where` is ours
        return [
            Known(
                path=path,
                id=id,
                twin=bool(twin),
                kind=kind,
                title=title,
                project=project,
                status=status,
                size=size,
                mtime_ns=mtime_ns,
                problem=problem,
            )
            for path, id, twin, kind, title, project, status, size, mtime_ns, problem in rows
        ]

    def _run(self, statement: str, *values: object) -> list[Any]:
        with self._lock, self._failing_as_ours():
            return self._database.execute(statement, values).fetchall()

    def _run_each(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with self._lock, self._failing_as_ours():
            self._database.executemany(statement, rows)

    @contextlib.contextmanager
    def _failing_as_ours(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise _in_our_words(error, self._path) from error
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise
            raise StateDamaged(
                f"the vault's ledger at {self._path} cannot be read: {error}",
                hint="move it away: notes are then taken for yours, and what lies in the vault's .trash stays deleted",
            ) from error


def _in_our_words(error: sqlite3.OperationalError, path: Path) -> KiteError:
    match error.sqlite_errorcode & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return KiteError(f"another process keeps {path} busy", hint="try again; see `kmem status`")
        case sqlite3.SQLITE_FULL:
            return VaultReadOnly(f"no space left on the disk of {path}", hint="free some space; nothing is lost meanwhile")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_PERM:
            return VaultReadOnly(f"cannot write to {path}: {error}", hint=f"see who owns it: ls -l {path.parent}")
        case _:
            return StateDamaged(f"the vault's ledger at {path} is not as it should be: {error}", hint="run `kmem doctor`")


def _make_private(path: Path) -> None:
    try:
        for folder in reversed([folder for folder in path.parents if not folder.exists()]):
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if sys.platform != "win32":
            os.fchmod(handle, 0o600)
        os.close(handle)
    except OSError as error:
        raise VaultReadOnly(f"cannot write to {path}: {error.strerror}", hint=f"see who owns it: ls -ld {path.parent}") from error
