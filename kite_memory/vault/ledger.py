"""What we know of the vault beside what it says itself: which bodies are ours, what its owner deleted, what is half done.

Not derived data: notes can be read again, but not who wrote them, nor that one was thrown away. A rebuild leaves it alone.
"""

import contextlib
import json
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from kite_memory.errors import KiteError, StateDamaged, StateNewer, VaultReadOnly
from kite_memory.model.event import EvidenceReference
from kite_memory.model.look import Problem
from kite_memory.model.note import Note
from kite_memory.system import sqlite
from kite_memory.vault.files import Stamp
from kite_memory.vault.notefile import Unreadable
from kite_memory.vault.split import asks
from kite_memory.vault.wording import body_key, digest, entity_key, stem_key, title_key

VERSION = 7

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
"""Keys with all that tells two of them apart, and what their notes said before; see `Ledger._move_keys`."""

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
"""Which note replaces which, or surely does not; ``replacing`` until the older one says so itself."""

_VERSION_4 = (
    "ALTER TABLE files ADD COLUMN asks INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX files_that_wait ON files (path) WHERE status = 'proposed' OR asks",
    "UPDATE files SET size = -1, mtime_ns = -1 WHERE status = 'accepted' AND id <> ''",
)
"""Whether a note asks its owner something. The next comparison reads again which of those known do."""

_VERSION_5 = (
    "ALTER TABLE files ADD COLUMN branch TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX files_of_branches ON files (path) WHERE branch <> ''",
    "UPDATE files SET size = -1, mtime_ns = -1 WHERE kind IN ('decision', 'fact') AND id <> ''",
)
"""Which notes hold on a branch alone. The next comparison reads again which of those known do."""
_VERSION_6 = ("CREATE TABLE drift (file INTEGER PRIMARY KEY REFERENCES files (key) ON DELETE CASCADE, since TEXT NOT NULL)",)
"""Since when code that a note rests on is another; kept here, so that a checkout does not rewrite notes."""


_MIGRATIONS: Mapping[int, tuple[str, ...]] = {
    1: _VERSION_1,
    2: _VERSION_2,
    3: _VERSION_3,
    4: _VERSION_4,
    5: _VERSION_5,
    6: _VERSION_6,
    7: ("CREATE INDEX files_by_time ON files (mtime_ns, path)",),
}

_COLUMNS = "path, id, twin, kind, title, project, status, size, mtime_ns, problem"
_FILE_COLUMNS = ", ".join(f"f.{name}" for name in _COLUMNS.split(", "))
_FEW_KEYS = 500
_AT_ONCE = 500
_VERSIONS = 100
_VERSION_CHARACTERS = 2_000_000
"""Of all versions of one note together; the newest is kept whatever its size."""


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


def place_digest(scope: str, project: str, session: str, key: str) -> str:
    """What a key is unique within, told to nobody: it is kept when the key is forgotten."""
    return digest("\0".join((scope, project, session, key)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """A file with a key, as it was when last looked at. ``expires`` is ISO 8601, or empty."""

    key: str
    scope: str
    project: str
    session: str
    tags: tuple[str, ...]
    expires: str
    known: Known


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What a keyed note said from ``at`` on. ``by`` is empty where nobody told: mostly a person in an editor."""

    version: int
    at: datetime
    by: str
    body: str


class Ledger:
    """Thread-safe; many processes may have it open. Changes are made inside `changing`."""

    def __init__(self, path: Path, *, step: Callable[[str], None] = lambda doing: None) -> None:
        self._path = path
        self._step = step
        self._lock = threading.RLock()
        self._depth = 0
        _make_private(path)
        self._database = sqlite.connect(path, timeout=30.0)
        try:
            with self._failing_as_ours():
                self._open()
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def purge(self) -> bool:
        """As `own_sqlite.purge`."""
        with self._lock, self._failing_as_ours():
            return sqlite.purge(self._database)

    def _open(self) -> None:
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")  # an intent must outlive a power cut
        self._database.execute("PRAGMA foreign_keys = ON")
        with self.changing():
            version = self._run("PRAGMA user_version")[0][0]
            if version > VERSION:
                raise StateNewer(f"{self._path} was written by a newer Kite Memory", hint="update kite-memory")
            for missing in range(version + 1, VERSION + 1):
                for statement in _MIGRATIONS[missing]:
                    self._run(statement)
            if version == 1:
                self._move_keys()
            if 0 < version < 7:
                self._hide_buried_titles()
            self._run(f"PRAGMA user_version = {VERSION}")

    def _move_keys(self) -> None:
        """Version 1 had them among the names, without their session, tags and end: the next comparison reads these again."""
        for file, name in self._run("SELECT file, name FROM names WHERE role = 'key'"):
            scope, project, key = name.split("\0", 2)
            self._run("INSERT OR IGNORE INTO keys VALUES (?, ?, ?, ?, '', '[]', '')", file, key, scope, project)
            self._run("UPDATE files SET size = -1, mtime_ns = -1 WHERE key = ?", file)
        self._run("DELETE FROM names WHERE role = 'key'")

    def _hide_buried_titles(self) -> None:
        """Version 4 had them as they read."""
        for (title,) in self._run("SELECT DISTINCT title_key FROM buried_titles"):
            self._run("UPDATE buried_titles SET title_key = ? WHERE title_key = ?", digest(title), title)

    @contextlib.contextmanager
    def changing(self, *, lasting: bool = True) -> Iterator[None]:
        """One transaction; nested ones are part of the outermost.

        One that need not be ``lasting`` may be undone by a power cut, until the next one that is: for what a comparison of
        the vault would find out again. It spares a wait for the disk.
        """
        with self._lock, self._failing_as_ours():
            outermost = not self._depth
            if outermost:
                self._database.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
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

    def see(self, note: Note, stamp: Stamp, *, id: str, twin: bool = False, by: str = "") -> None:
        """This is what stands at ``note.path`` now, and who wrote it. ``id`` may be known where the file has lost it."""
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
            self._run("UPDATE files SET asks = ?, branch = ? WHERE path = ?", asks(note), note.branch, note.path)
            self._name(
                note.path,
                alias=map(title_key, note.aliases),
                entity=map(entity_key, note.entities),
                link=map(link_key, (*note.links, *note.supersedes, note.superseded_by, *note.conflicts)),
                session=(f"{found.provider}:{found.session}" for text in note.evidence if (found := EvidenceReference.parse(text))),
            )
            self._key(note, id or note.path, twin=twin, by=by)

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

    def _key(self, note: Note, name: str, *, twin: bool, by: str) -> None:
        """What the key says now is a version, if it is not the last one's words."""
        if not note.key:
            self._run("DELETE FROM keys WHERE file = (SELECT key FROM files WHERE path = ?)", note.path)
            return
        expires = note.expires.astimezone(UTC).isoformat() if note.expires else ""
        place = (note.scope.value, note.project, note.session)
        self._run(
            "INSERT OR REPLACE INTO keys SELECT key, ?, ?, ?, ?, ?, ? FROM files WHERE path = ?",
            *(note.key, *place, json.dumps(note.tags), expires, note.path),
        )
        if twin:
            return
        last = self.wording(name)
        if last is not None and last.body == note.body and last.version > self.over(note.key, *place):
            return
        version = max(last.version if last else 0, self.last_version(note.key, *place)) + 1
        self._run(
            "INSERT INTO versions (id, version, at, by, body) VALUES (?, ?, ?, ?, ?)",
            *(name, version, note.updated.isoformat(), by, note.body),
        )
        self._run("DELETE FROM versions WHERE id = ? AND version <= ?", name, self._oldest_kept(name, version))

    def _oldest_kept(self, name: str, newest: int) -> int:
        """Versions up to this one make room: so many are kept, and of large ones fewer."""
        room = _VERSION_CHARACTERS
        rows = self._run("SELECT version, length(body) FROM versions WHERE id = ? ORDER BY version DESC", name)
        for count, (version, length) in enumerate(rows):
            room -= length
            if version != newest and (count >= _VERSIONS or room < 0):
                return int(version)
        return 0

    def wording(self, name: str) -> Wording | None:
        """The newest of a note, by its id, or its path where it has none."""
        return next(iter(self.wordings(name, limit=1)), None)

    def last_wordings(self, names: Sequence[str]) -> dict[str, Wording]:
        """The newest of each of these notes."""
        found: dict[str, Wording] = {}
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            rows = self._run(
                "SELECT id, version, at, by, body FROM versions AS v"  # noqa: S608 - question marks alone
                f" WHERE id IN ({', '.join('?' * len(some))}) AND version = (SELECT max(version) FROM versions WHERE id = v.id)",
                *some,
            )
            found |= {
                id: Wording(version=version, at=datetime.fromisoformat(at), by=by, body=body) for id, version, at, by, body in rows
            }
        return found

    def wordings(self, name: str, *, limit: int = -1) -> list[Wording]:
        """Newest first."""
        rows = self._run("SELECT version, at, by, body FROM versions WHERE id = ? ORDER BY version DESC LIMIT ?", name, limit)
        return [Wording(version=version, at=datetime.fromisoformat(at), by=by, body=body) for version, at, by, body in rows]

    def keyed(self, key: str, scope: str, project: str, session: str) -> list[Known]:
        """Who has this key in this place; no copies, and nothing that was turned down."""
        return self._all(
            "status <> 'rejected' AND twin = 0"
            " AND key IN (SELECT file FROM keys WHERE key = ? AND scope = ? AND project = ? AND session = ?)",
            *(key, scope, project, session),
        )

    def called(self, key: str) -> list[Keyed]:
        """Who has this key in whatever place."""
        return self._keys("k.key = ?", key)

    def keys(self, prefix: str, *, after: tuple[str, str], limit: int) -> list[Keyed]:
        """Those that begin so, in the order of keys and paths, behind ``after``."""
        return self._keys("k.key >= ? AND k.key < ? AND (k.key, path) > (?, ?)", prefix, prefix + "\U0010ffff", *after, limit=limit)

    def newest_keys(self, prefix: str, *, project: str, session: str, before: tuple[int, str] | None, limit: int) -> list[Keyed]:
        """Those that begin so, of this project or none and this session or none (empty: of any), the newest files first.

        Where many begin so the files are walked from the newest on, else these few are sorted.
        """
        ends = (prefix, prefix + "\U0010ffff")
        few = self._run("SELECT count(*) FROM (SELECT 1 FROM keys WHERE key >= ? AND key < ? LIMIT ?)", *ends, _FEW_KEYS + 1)
        walked = "files AS f INDEXED BY files_by_time CROSS JOIN keys AS k"
        source = "keys AS k CROSS JOIN files AS f" if few[0][0] <= _FEW_KEYS else walked
        return self._keys(
            "k.key >= ? AND k.key < ? AND (? = '' OR k.project IN ('', ?)) AND (? = '' OR session IN ('', ?))"
            " AND (mtime_ns, path) < (?, ?)",
            *(*ends, project, project, session, session, *(before or (1 << 62, ""))),
            limit=limit,
            source=f"{source} ON f.key = k.file",
            order="mtime_ns DESC, path DESC",
        )

    def _keys(
        self,
        where: str,
        *values: object,
        limit: int = -1,
        source: str = "keys AS k JOIN files AS f ON f.key = k.file",
        order: str = "k.key, path",
    ) -> list[Keyed]:
        rows = self._run(
            f"SELECT k.key, scope, k.project, session, tags, expires, {_FILE_COLUMNS}"  # noqa: S608 - all but the values is ours
            f" FROM {source} WHERE {where} AND status <> 'rejected' AND twin = 0 ORDER BY {order} LIMIT ?",
            *(*values, limit),
        )
        return [
            Keyed(
                key=key,
                scope=scope,
                project=project,
                session=session,
                tags=tuple(json.loads(tags)),
                expires=expires,
                known=_known(file),
            )
            for key, scope, project, session, tags, expires, *file in rows
        ]

    def key_count(self, now: datetime) -> int:
        """Not those that have expired."""
        counted = self._run(
            "SELECT count(*) FROM keys AS k JOIN files AS f ON f.key = k.file"
            " WHERE twin = 0 AND status <> 'rejected' AND (expires = '' OR expires > ?)",
            now.astimezone(UTC).isoformat(),
        )
        return int(counted[0][0])

    def last_version(self, key: str, *place: str) -> int:
        """Of whatever has the key in this place, or had it before; 0 where nothing had."""
        scope, project, session = place
        found = self._run(
            "SELECT MAX(version) FROM (SELECT version FROM last_versions WHERE place = ? UNION ALL SELECT version FROM versions"
            " WHERE id IN (SELECT IIF(id = '', path, id) FROM keys AS k JOIN files AS f ON f.key = k.file"
            " WHERE k.key = ? AND scope = ? AND k.project = ? AND session = ?))",
            *(place_digest(scope, project, session, key), key, *place),
        )
        return int(found[0][0] or 0)

    def over(self, key: str, *place: str) -> int:
        """The last version of what the key once said in this place and says no longer; 0 for none."""
        scope, project, session = place
        found = self._run("SELECT version FROM last_versions WHERE place = ?", place_digest(scope, project, session, key))
        return int(found[0][0]) if found else 0

    def begin_anew(self, name: str, place: str) -> None:
        """What a key said so far is over, though still known; the next version has a number that was never there."""
        last = self.wording(name)
        if last is not None:
            with self.changing():
                self._run(
                    "INSERT INTO last_versions (place, version) VALUES (?, ?)"
                    " ON CONFLICT (place) DO UPDATE SET version = max(version, excluded.version)",
                    *(place, last.version),
                )

    def rewrite(self, forgotten: Iterable[str], seen: Sequence[Sight], originals: Iterable[str]) -> None:
        """Bring the files up to date in one go: ids may have changed places among them.

        ``originals`` were copies so far, and what they are copies of is gone.
        """
        with self.changing():
            gone = set(forgotten)
            self._run_each("DELETE FROM files WHERE path = ?", [(path,) for path in gone])
            self._run_each("DELETE FROM versions WHERE id = ?", [(path,) for path in gone - {sight.path for sight in seen}])
            self._run_each("UPDATE files SET twin = 0 WHERE path = ?", [(path,) for path in originals])
            for sight in seen:
                if isinstance(sight.note, Note):
                    self.see(sight.note, sight.stamp, id=sight.id, twin=sight.twin)
                else:
                    self.put(sight.as_known())

    def drift(self, path: str) -> datetime | None:
        """Since when code that the note at ``path`` rests on is another."""
        rows = self._run("SELECT since FROM drift JOIN files ON files.key = drift.file WHERE path = ?", path)
        return datetime.fromisoformat(rows[0][0]) if rows else None

    def mark_drift(self, path: str, since: datetime | None) -> None:
        with self.changing():
            self._run("DELETE FROM drift WHERE file = (SELECT key FROM files WHERE path = ?)", path)
            if since is not None:
                self._run("INSERT INTO drift SELECT key, ? FROM files WHERE path = ?", since.isoformat(), path)

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

    def named(self, role: Literal["alias", "entity", "link", "session"], name: str) -> list[Known]:
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

    def ending_with(self, ends: str) -> list[Known]:
        """Files whose id ends so; at most ten."""
        return self._all("SUBSTR(id, ?) = ? AND twin = 0", -len(ends), ends, limit=10)

    def has_project(self, project: str) -> bool:
        return bool(self._run("SELECT 1 FROM files WHERE project = ? LIMIT 1", project))

    def is_empty(self) -> bool:
        return not self._run("SELECT 1 FROM files LIMIT 1") and not self._run("SELECT 1 FROM template LIMIT 1")

    def landmarks(self) -> list[str]:
        """Some paths of which at least one is there, if the vault is."""
        rows = self._run("SELECT path FROM template UNION ALL SELECT path FROM (SELECT path FROM files ORDER BY key DESC LIMIT 50)")
        return [path for (path,) in rows]

    def sample(self, most: int) -> list[str]:
        """Paths of notes from all over the vault, the oldest to the newest, quick to find however many there are."""
        rows = self._run(
            "WITH RECURSIVE steps (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM steps WHERE n + 1 < ?)"
            " SELECT path FROM files WHERE twin = 0 AND key IN (SELECT"
            " (SELECT min(key) FROM files WHERE key > n * (SELECT max(key) FROM files) / ?) FROM steps)",
            *(most, most),
        )
        return [path for (path,) in rows]

    def everything(self) -> list[Known]:
        return self._all("1")

    def waiting(self) -> list[Known]:
        """Those that are proposed, or accepted and ask something; copies and what cannot be read aside."""
        return self._all("(status = 'proposed' OR asks) AND status IN ('proposed', 'accepted') AND twin = 0 AND problem = ''")

    def on_branches(self) -> list[Known]:
        """Those that hold on a branch alone; copies and what cannot be read aside."""
        return self._all("branch <> '' AND status <> 'rejected' AND twin = 0 AND problem = ''")

    def to_review(self) -> list[Known]:
        """Those that wait, without pages of entities that some other note that waits speaks of: they go with that one."""
        waits = "(status = 'proposed' OR asks) AND status IN ('proposed', 'accepted') AND twin = 0 AND problem = ''"
        spoken_of = f"SELECT name FROM names JOIN files ON key = file WHERE role = 'link' AND kind <> 'entity' AND {waits}"  # noqa: S608
        return self._all(f"{waits} AND NOT (kind = 'entity' AND stem_key IN ({spoken_of}))")

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

    def disown(self, id: str) -> None:
        """No body of this note is ours."""
        with self.changing():
            self._run("DELETE FROM bodies WHERE id = ?", id)

    def is_ours(self, id: str, digest: str) -> bool:
        return bool(id and self._run("SELECT 1 FROM bodies WHERE id = ? AND digest = ?", id, digest))

    def absorb(self, draft: str, note: str) -> None:
        with self.changing():
            self._run("INSERT OR REPLACE INTO absorbed (draft, note) VALUES (?, ?)", draft, note)

    def absorbed_by(self, draft: str) -> str:
        found = self._run("SELECT note FROM absorbed WHERE draft = ?", draft)
        return str(found[0][0]) if found else ""

    def rule(self, newer: str, older: str, ruling: Literal["replacing", "replaces", "neither"]) -> None:
        with self.changing():
            self._run("INSERT OR REPLACE INTO rulings (newer, older, ruling) VALUES (?, ?, ?)", newer, older, ruling)

    def settled(self, ids: Iterable[str]) -> frozenset[tuple[str, str]]:
        """The pairs of these notes that were decided, the newer first."""
        found: set[tuple[str, str]] = set()
        for id in ids:
            found.update(self._run("SELECT newer, older FROM rulings WHERE newer = ? OR older = ?", id, id))
        return frozenset(found)

    def all_settled(self) -> frozenset[tuple[str, str]]:
        return frozenset(map(tuple, self._run("SELECT newer, older FROM rulings")))

    def replacements(self) -> list[tuple[str, str, bool]]:
        """Ids of newer and older notes of which the older does not say, as of the last look, that it is replaced.

        Whether it did before: then its owner has taken that back.
        """
        rows = self._run(
            "SELECT newer, older, ruling = 'replaces' FROM rulings JOIN files ON files.id = older AND twin = 0"
            " WHERE ruling <> 'neither' AND status NOT IN ('superseded', 'rejected', 'muted', 'archived') AND kind <> ''"
            " ORDER BY newer, older"
        )
        return [(newer, older, bool(said)) for newer, older, said in rows]

    def bury(self, id: str, titles: Iterable[str], project: str, *, at: datetime, because: str) -> None:
        """Never again: neither this id, nor a note of one of these titles in this project."""
        with self.changing():
            self._forget_wordings(id)
            self._run("DELETE FROM tombstones WHERE id = ?", id)
            self._run("INSERT INTO tombstones (id, at, because) VALUES (?, ?, ?)", id, at.isoformat(), because)
            rows = {(_buried(title), project, id) for title in titles if title}
            self._run_each("INSERT INTO buried_titles (title_key, project, id) VALUES (?, ?, ?)", rows)

    def _forget_wordings(self, name: str) -> None:
        rows = self._run(
            "SELECT scope, k.project, session, k.key FROM keys AS k JOIN files AS f ON f.key = k.file"
            " WHERE IIF(id = '', 'path:' || path, id) = ? AND twin = 0",
            name,
        )
        name = name.removeprefix("path:")
        for scope, project, session, key in rows:
            self.begin_anew(name, place_digest(scope, project, session, key))
        self._run("DELETE FROM versions WHERE id = ?", name)

    def lift(self, id: str) -> None:
        """Its owner has put the note back."""
        with self.changing():
            self._run("DELETE FROM tombstones WHERE id = ?", id)

    def lift_title(self, title: str, project: str) -> None:
        """Its owner asks for it again."""
        with self.changing():
            self._run("DELETE FROM buried_titles WHERE title_key = ? AND project = ?", _buried(title), project)

    def is_buried(self, id: str) -> bool:
        return bool(self._run("SELECT 1 FROM tombstones WHERE id = ?", id))

    def is_title_buried(self, title: str, project: str) -> bool:
        return bool(self._run("SELECT 1 FROM buried_titles WHERE title_key = ? AND project = ?", _buried(title), project))

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
        return list(map(_known, rows))

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


def _buried(title: str) -> str:
    """A title that is not to be made again, readable by nobody."""
    return digest(title_key(title))


def _known(row: Sequence[Any]) -> Known:
    path, id, twin, kind, title, project, status, size, mtime_ns, problem = row
    return Known(
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


def _in_our_words(error: sqlite3.OperationalError, path: Path) -> KiteError:
    # A text that is no UTF-8 any more is Python's own finding, without a code.
    match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:
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
