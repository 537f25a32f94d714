"""The ledger as a whole, and the files of the vault as of the last comparison: their names, links and evidence."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from kite_memory.model.event import EvidenceReference, Problem
from kite_memory.model.note import Note
from kite_memory.vault.files import Stamp
from kite_memory.vault.ledger.database import Intent, KnownFile, LedgerDatabase, OpenedFile, known_where, link_key
from kite_memory.vault.ledger.keys import Bodies, KeyRows, Relations, Tombstones
from kite_memory.vault.wording import body_key, entity_key, stem_key, title_key

_READABLE = "twin = 0 AND problem = ''"
_WAITS = "(status = 'proposed' OR asks) AND status IN ('proposed', 'accepted') AND twin = 0 AND problem = ''"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOfNotes:
    """What is listed: notes of this kind, project and status, where given, changed since this time in nanoseconds.

    Notes of a status in ``past``, or whose path begins as ``archives``, no longer hold.
    """

    kind: str = ""
    project: str = ""
    status: str = ""
    since: float = 0.0
    past: Collection[str] = ()
    archives: str = ""


class NotePages:
    """Lists of the notes, page by page."""

    def __init__(self, database: LedgerDatabase, notes: "NoteRows") -> None:
        self._database = database
        self._notes = notes

    def page(self, asked: PageOfNotes, start: int, limit: int) -> tuple[list[KnownFile], int]:
        """Return a page of the notes that match, those changed last first and those that no longer hold after them, and how many
        match.
        """
        where = f"{_READABLE} AND ? IN ('', kind) AND ? IN ('', project) AND ? IN ('', status) AND mtime_ns >= ?"
        values = asked.kind, asked.project, asked.status, asked.since
        ((total,),) = self._database.run(f"SELECT COUNT(*) FROM files WHERE {where}", *values)  # noqa: S608 - ours
        paths = self._database.run(
            f"SELECT path FROM files WHERE {where} ORDER BY status IN (SELECT value FROM json_each(?))"  # noqa: S608 - ours
            " OR SUBSTR(path, 1, LENGTH(?)) = ?, mtime_ns DESC, path LIMIT ? OFFSET ?",
            *(*values, json.dumps(list(asked.past)), asked.archives, asked.archives, limit, start),
        )
        return [known for (path,) in paths if (known := self._notes.at(path)) is not None], total

    def counts(self, column: Literal["kind", "project", "status"]) -> list[tuple[str, int]]:
        """Return how many notes have each value, sorted by it; no copies and nothing unreadable."""
        return self._database.run(
            f"SELECT {column}, COUNT(*) FROM files WHERE {_READABLE} GROUP BY {column} ORDER BY {column}"  # noqa: S608 - ours
        )


class LinkRows:
    """Where the links of the notes lead."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def linked_by(self, path: str) -> list[KnownFile]:
        """Return the files that a file's links lead to by their names."""
        return known_where(
            self._database,
            "stem_key IN (SELECT name FROM names JOIN files AS f ON f.key = names.file WHERE role = 'link' AND f.path = ?)",
            path,
        )

    def most_linked(self, limit: int) -> list[tuple[str, int]]:
        """Return the names that most links lead to, as `link_key` writes them, and how many files link to each."""
        return self._database.run(
            "SELECT name, COUNT(*) AS links FROM names WHERE role = 'link' AND name IN (SELECT stem_key FROM files)"
            " GROUP BY name ORDER BY links DESC, name LIMIT ?",
            limit,
        )

    def broken_targets(self) -> list[str]:
        """Return the targets of links, as `link_key` writes them, that no file has."""
        rows = self._database.run(
            "SELECT DISTINCT name FROM names WHERE role = 'link' AND name NOT IN (SELECT stem_key FROM files) ORDER BY name"
        )
        return [name for (name,) in rows]


class ProblemRows:
    """What could not be read or was left alone."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def replace(self, problems: Iterable[Problem]) -> None:
        rows = {(problem.file, problem.reason) for problem in problems}
        if rows == set(self._database.run("SELECT path, reason FROM problems")):
            return
        with self._database.changing():
            self._database.run("DELETE FROM problems")
            self._database.run_each("INSERT INTO problems (path, reason) VALUES (?, ?)", rows)

    def all(self) -> list[Problem]:
        rows = self._database.run(
            "SELECT path, reason FROM problems UNION SELECT path, problem FROM files WHERE problem <> '' ORDER BY path, reason"
        )
        return [Problem(file=path, position=0, reason=reason) for path, reason in rows]


class NoteRows:
    """Every file that was read. Derived from the vault, except for ids that a file has lost and drift."""

    def __init__(self, database: LedgerDatabase, keys: KeyRows) -> None:
        self._database = database
        self._keys = keys

    def see(self, note: Note, stamp: Stamp, *, id: str, duplicate: bool = False, by: str = "") -> None:
        """Record what is at ``note.path`` now, and who wrote it. ``id`` may be known where the file has lost it."""
        known = KnownFile(
            path=note.path,
            id=id,
            duplicate=duplicate,
            kind=note.kind.value,
            title=note.title,
            project=note.project,
            status=note.status.value,
            size=stamp.size,
            mtime_ns=stamp.mtime_ns,
        )
        with self._database.changing():
            self.put(known, body_key(note.body))
            self._database.run("UPDATE files SET asks = ?, branch = ? WHERE path = ?", note.is_asked_about, note.branch, note.path)
            self._name(
                note.path,
                alias=map(title_key, note.aliases),
                entity=map(entity_key, note.entities),
                link=map(link_key, (*note.links, *note.supersedes, note.superseded_by, *note.conflicts)),
                session=(f"{found.provider}:{found.session}" for text in note.evidence if (found := EvidenceReference.parse(text))),
            )
            self._keys.see(note, id or note.path, duplicate=duplicate, by=by)

    def put(self, known: KnownFile, body: str = "") -> None:
        said = (known.path, known.id, known.duplicate, known.kind, known.title, known.project, known.status)
        with self._database.changing():
            self._database.run(
                "INSERT INTO files (path, id, twin, kind, title, project, status, size, mtime_ns, problem,"
                " title_key, stem_key, body_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (path) DO UPDATE SET id = excluded.id, twin = excluded.twin, kind = excluded.kind,"
                " title = excluded.title, title_key = excluded.title_key, body_key = excluded.body_key, project = excluded.project,"
                " status = excluded.status, size = excluded.size, mtime_ns = excluded.mtime_ns, problem = excluded.problem",
                *(*said, known.size, known.mtime_ns, known.problem, title_key(known.title), link_key(known.path), body),
            )

    def _name(self, path: str, **names: Iterable[str]) -> None:
        file = self._database.run("SELECT key FROM files WHERE path = ?", path)[0][0]
        self._database.run("DELETE FROM names WHERE file = ?", file)
        rows = {(file, role, name) for role, group in names.items() for name in group if name}
        self._database.run_each("INSERT INTO names (file, role, name) VALUES (?, ?, ?)", rows)

    def rewrite(self, forgotten: Iterable[str], seen: Sequence[OpenedFile], originals: Iterable[str]) -> None:
        """Update the files in one transaction: ids may have been exchanged among them.

        ``originals`` were copies so far, and what they are copies of is gone.
        """
        with self._database.changing():
            gone = set(forgotten)
            self._database.run_each("DELETE FROM files WHERE path = ?", [(path,) for path in gone])
            self._database.run_each(
                "DELETE FROM versions WHERE id = ?", [(path,) for path in gone - {sight.path for sight in seen}]
            )
            self._database.run_each("UPDATE files SET twin = 0 WHERE path = ?", [(path,) for path in originals])
            for sight in seen:
                if isinstance(sight.note, Note):
                    self.see(sight.note, sight.stamp, id=sight.id, duplicate=sight.duplicate)
                else:
                    self.put(sight.as_known())

    def drift(self, path: str) -> datetime | None:
        """Return since when code that the note at ``path`` rests on has changed."""
        rows = self._database.run("SELECT since FROM drift JOIN files ON files.key = drift.file WHERE path = ?", path)
        return datetime.fromisoformat(rows[0][0]) if rows else None

    def mark_drift(self, path: str, since: datetime | None) -> None:
        with self._database.changing():
            self._database.run("DELETE FROM drift WHERE file = (SELECT key FROM files WHERE path = ?)", path)
            if since is not None:
                self._database.run("INSERT INTO drift SELECT key, ? FROM files WHERE path = ?", since.isoformat(), path)

    def drop(self, path: str) -> None:
        with self._database.changing():
            self._database.run("DELETE FROM files WHERE path = ?", path)

    def at(self, path: str) -> KnownFile | None:
        return self._one("path = ?", path)

    def called(self, names: Iterable[str]) -> list[KnownFile]:
        """Return the notes with these ids, or with these paths where they have no id; no copies."""
        asked = json.dumps(list(names))
        return [
            *known_where(self._database, "id IN (SELECT value FROM json_each(?)) AND id <> '' AND twin = 0", asked),
            *known_where(self._database, "path IN (SELECT value FROM json_each(?)) AND id = '' AND twin = 0", asked),
        ]

    def by_id(self, id: str) -> KnownFile | None:
        """Return the file that an id belongs to, not its copies."""
        return self._one("id = ? AND id <> '' AND twin = 0", id)

    def by_stem(self, stem: str) -> KnownFile | None:
        return self._one("stem_key = ?", stem_key(stem))

    def all_by_stem(self, stem: str) -> list[KnownFile]:
        return known_where(self._database, "stem_key = ?", stem_key(stem))

    def by_title(self, title: str) -> list[KnownFile]:
        return known_where(self._database, "title_key = ?", title_key(title))

    def by_body(self, key: str) -> list[KnownFile]:
        return known_where(self._database, "body_key = ? AND body_key <> ''", key)

    def named(self, role: Literal["alias", "entity", "link", "session"], name: str) -> list[KnownFile]:
        return known_where(self._database, "key IN (SELECT file FROM names WHERE role = ? AND name = ?)", role, name)

    def titles_of(self, known: KnownFile) -> tuple[str, ...]:
        """Return its title and aliases, as `wording.title_key` writes them."""
        rows = self._database.run(
            "SELECT name FROM names JOIN files ON key = file WHERE role = 'alias' AND path = ? ORDER BY name", known.path
        )
        return (title_key(known.title), *(name for (name,) in rows))

    def starting_with(self, prefix: str) -> list[KnownFile]:
        """Return files whose id, file name or title begins with ``prefix``; at most ten."""
        text, end = stem_key(prefix), stem_key(prefix) + "\U0010ffff"
        upper = prefix.upper()
        return known_where(
            self._database,
            "(stem_key >= ? AND stem_key < ?) OR (title_key >= ? AND title_key < ?) OR (id >= ? AND id < ? AND twin = 0)",
            *(text, end, title_key(prefix), title_key(prefix) + "\U0010ffff", upper, upper + "\U0010ffff"),
            limit=10,
        )

    def ending_with(self, ends: str) -> list[KnownFile]:
        """Return files whose id ends with ``ends``; at most ten."""
        return known_where(self._database, "SUBSTR(id, ?) = ? AND twin = 0", -len(ends), ends, limit=10)

    def has_project(self, project: str) -> bool:
        return bool(self._database.run("SELECT 1 FROM files WHERE project = ? LIMIT 1", project))

    def sample(self, most: int) -> list[str]:
        """Return paths of notes from all over the vault, from the oldest to the newest; fast in a vault of any size."""
        rows = self._database.run(
            "WITH RECURSIVE steps (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM steps WHERE n + 1 < ?)"
            " SELECT path FROM files WHERE twin = 0 AND key IN (SELECT"
            " (SELECT min(key) FROM files WHERE key > n * (SELECT max(key) FROM files) / ?) FROM steps)",
            *(most, most),
        )
        return [path for (path,) in rows]

    def everything(self) -> list[KnownFile]:
        return known_where(self._database, "1")

    def waiting(self) -> list[KnownFile]:
        """Return notes that are proposed, or accepted with an open question; no copies and nothing unreadable."""
        return known_where(self._database, _WAITS)

    def on_branches(self) -> list[KnownFile]:
        """Return notes that hold only on a branch; no copies and nothing unreadable."""
        return known_where(self._database, "branch <> '' AND status <> 'rejected' AND twin = 0 AND problem = ''")

    def to_review(self) -> list[KnownFile]:
        """Return waiting notes, without entity pages that another waiting note links to: they are decided with that one."""
        spoken_of = f"SELECT name FROM names JOIN files ON key = file WHERE role = 'link' AND kind <> 'entity' AND {_WAITS}"  # noqa: S608
        return known_where(self._database, f"{_WAITS} AND NOT (kind = 'entity' AND stem_key IN ({spoken_of}))")

    def stems_like(self, stem: str) -> frozenset[str]:
        """Return the taken file names that begin with this one."""
        key = stem_key(stem)
        rows = self._database.run("SELECT stem_key FROM files WHERE stem_key >= ? AND stem_key < ?", key, key + "\U0010ffff")
        return frozenset(name for (name,) in rows)

    def titles(self) -> list[str]:
        return [title for (title,) in self._database.run("SELECT DISTINCT title FROM files LIMIT 5000")]

    def _one(self, where: str, *values: object) -> KnownFile | None:
        found = known_where(self._database, where, *values, limit=1)
        return found[0] if found else None


class Ledger:
    """Everything recorded about one vault.

    Thread-safe; many processes may have it open. Changes of several parts are one transaction inside `changing`.
    """

    def __init__(self, path: Path, *, step: Callable[[str], None] = lambda doing: None) -> None:
        self._database = LedgerDatabase(path, step=step)
        self.changing = self._database.changing
        self.close = self._database.close
        self.purge = self._database.purge
        self.keys = KeyRows(self._database)
        self.notes = NoteRows(self._database, self.keys)
        self.links = LinkRows(self._database)
        self.pages = NotePages(self._database, self.notes)
        self.problems = ProblemRows(self._database)
        self.tombstones = Tombstones(self._database, self.keys)
        self.bodies = Bodies(self._database)
        self.relations = Relations(self._database)

    def is_empty(self) -> bool:
        return not self._database.run("SELECT 1 FROM files LIMIT 1") and not self._database.run("SELECT 1 FROM template LIMIT 1")

    def landmarks(self) -> list[str]:
        """Return some paths of which at least one exists if the vault does."""
        rows = self._database.run(
            "SELECT path FROM template UNION ALL SELECT path FROM (SELECT path FROM files ORDER BY key DESC LIMIT 50)"
        )
        return [path for (path,) in rows]

    def intend(self, intent: Intent) -> None:
        with self._database.changing():
            self._database.run(
                "INSERT OR REPLACE INTO intents (id, doing, path, temporary, title, project) VALUES (?, ?, ?, ?, ?, ?)",
                *(intent.id, intent.doing, intent.path, intent.temporary, intent.title, intent.project),
            )

    def done(self, id: str) -> None:
        with self._database.changing():
            self._database.run("DELETE FROM intents WHERE id = ?", id)

    def intents(self) -> list[Intent]:
        rows = self._database.run("SELECT id, doing, path, temporary, title, project FROM intents ORDER BY id")
        return [
            Intent(id=id, doing=doing, path=path, temporary=temporary, title=title, project=project)
            for id, doing, path, temporary, title, project in rows
        ]

    def mute(self, id: str, status: str) -> None:
        with self._database.changing():
            self._database.run("INSERT OR REPLACE INTO unmuted (id, status) VALUES (?, ?)", id, status)

    def status_before_mute(self, id: str) -> str:
        found = self._database.run("SELECT status FROM unmuted WHERE id = ?", id)
        return str(found[0][0]) if found else ""

    def gave(self, path: str) -> bool:
        """Return whether this file of the template was laid out before: if it is gone now, its owner removed it."""
        return bool(self._database.run("SELECT 1 FROM template WHERE path = ?", path))

    def give(self, path: str) -> None:
        with self._database.changing():
            self._database.run("INSERT OR IGNORE INTO template (path) VALUES (?)", path)

    def forget_layout(self) -> None:
        """Forget the layout of a deleted vault, so that the next one is laid out like a new one."""
        with self._database.changing():
            self._database.run("DELETE FROM template")
            self._database.run("DELETE FROM settings WHERE name = 'laid out'")

    def setting(self, name: str) -> str:
        found = self._database.run("SELECT value FROM settings WHERE name = ?", name)
        return str(found[0][0]) if found else ""

    def set(self, name: str, value: str) -> None:
        if value == self.setting(name):
            return
        with self._database.changing():
            self._database.run("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", name, value)
