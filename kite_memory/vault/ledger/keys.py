"""What notes cannot say again: keys and their earlier versions, what was deleted, which bodies are ours, what replaces what."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

from kite_memory.model.note import Note, Scope
from kite_memory.vault.ledger.database import (
    FILE_COLUMNS,
    Keyed,
    KeyPlace,
    KnownFile,
    LedgerDatabase,
    Wording,
    known,
    known_where,
)
from kite_memory.vault.wording import digest, title_key

_FEW_KEYS = 500
_AT_ONCE = 500
_VERSIONS = 100
_NO_TIME = "0" * 10
"""Beginning of an id that has no time."""
_VERSION_CHARACTERS = 2_000_000
"""Of all versions of one note together; the newest is kept whatever its size."""


class KeyRows:
    """The keys of notes, and the versions of the note under each."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def see(self, note: Note, name: str, *, duplicate: bool, by: str) -> None:
        """Record a note's key, and its text as a new version if it differs from the last one."""
        if not note.key:
            self._database.run("DELETE FROM keys WHERE file = (SELECT key FROM files WHERE path = ?)", note.path)
            return
        expires = note.expires.astimezone(UTC).isoformat() if note.expires else ""
        place = KeyPlace.of(note)
        self._database.run(
            "INSERT OR REPLACE INTO keys SELECT key, ?, ?, ?, ?, ?, ? FROM files WHERE path = ?",
            *(*place.columns, json.dumps(note.tags), expires, note.path),
        )
        if duplicate:
            return
        last = self.wording(name)
        if last is not None and last.body == note.body and last.version > self.over(place):
            return
        version = max(last.version if last else 0, self.last_version(place)) + 1
        self._database.run(
            "INSERT INTO versions (id, version, at, by, body) VALUES (?, ?, ?, ?, ?)",
            *(name, version, note.updated.isoformat(), by, note.body),
        )
        self._database.run("DELETE FROM versions WHERE id = ? AND version <= ?", name, self._oldest_kept(name, version))

    def _oldest_kept(self, name: str, newest: int) -> int:
        """Return the newest version to remove; 0 for none. At most 100 versions and 2,000,000 characters are kept."""
        room = _VERSION_CHARACTERS
        rows = self._database.run("SELECT version, length(body) FROM versions WHERE id = ? ORDER BY version DESC", name)
        for count, (version, length) in enumerate(rows):
            room -= length
            if version != newest and (count >= _VERSIONS or room < 0):
                return int(version)
        return 0

    def wording(self, name: str) -> Wording | None:
        """Return the newest version of a note, by its id, or its path where it has none."""
        return next(iter(self.wordings(name, limit=1)), None)

    def last_wordings(self, names: Sequence[str]) -> dict[str, Wording]:
        """Return the newest version of each of these notes."""
        found: dict[str, Wording] = {}
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            rows = self._database.run(
                "SELECT id, version, at, by, body FROM versions AS v"  # noqa: S608 - question marks alone
                f" WHERE id IN ({', '.join('?' * len(some))}) AND version = (SELECT max(version) FROM versions WHERE id = v.id)",
                *some,
            )
            found |= {
                id: Wording(version=version, at=datetime.fromisoformat(at), by=by, body=body) for id, version, at, by, body in rows
            }
        return found

    def wordings(self, name: str, *, limit: int = -1) -> list[Wording]:
        """Return the versions of a note, newest first."""
        rows = self._database.run(
            "SELECT version, at, by, body FROM versions WHERE id = ? ORDER BY version DESC LIMIT ?", name, limit
        )
        return [Wording(version=version, at=datetime.fromisoformat(at), by=by, body=body) for version, at, by, body in rows]

    def keyed(self, place: KeyPlace) -> list[KnownFile]:
        """Return the notes that have this key in this place; no copies, and no rejected ones.

        Which of them counts is the same on every machine, and its file is the first: one whose id is made of its place alone, or
        else the newest, as notes had the time in their ids before.
        """
        found = known_where(
            self._database,
            "status <> 'rejected' AND twin = 0"
            " AND key IN (SELECT file FROM keys WHERE key = ? AND scope = ? AND project = ? AND session = ?)",
            *place.columns,
        )
        return sorted(found, key=lambda each: (each.id.startswith(_NO_TIME), each.id), reverse=True)

    def called(self, key: str) -> list[Keyed]:
        """Return the notes that have this key in any place."""
        return self._keys("k.key = ?", key)

    def page(self, prefix: str, *, after: tuple[str, str], limit: int) -> list[Keyed]:
        """Return those whose keys begin with ``prefix``, in the order of keys and paths, behind ``after``."""
        return self._keys("k.key >= ? AND k.key < ? AND (k.key, path) > (?, ?)", prefix, prefix + "\U0010ffff", *after, limit=limit)

    def newest(self, prefix: str, *, project: str, session: str, before: tuple[int, str] | None, limit: int) -> list[Keyed]:
        """Return those whose keys begin with ``prefix``, newest files first.

        Of this project or none and this session or none (empty: of any). Where more than 500 keys match, the files are walked from
        the newest on; otherwise the matches are sorted.
        """
        ends = (prefix, prefix + "\U0010ffff")
        few = self._database.run(
            "SELECT count(*) FROM (SELECT 1 FROM keys WHERE key >= ? AND key < ? LIMIT ?)", *ends, _FEW_KEYS + 1
        )
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
        rows = self._database.run(
            f"SELECT k.key, scope, k.project, session, tags, expires, {FILE_COLUMNS}"  # noqa: S608 - all but the values is ours
            f" FROM {source} WHERE {where} AND status <> 'rejected' AND twin = 0 ORDER BY {order} LIMIT ?",
            *(*values, limit),
        )
        return [Keyed(place=_place(*row[:4]), tags=tuple(json.loads(row[4])), expires=row[5], known=known(row[6:])) for row in rows]

    def count(self, now: datetime) -> int:
        """Return the number of keys that have not expired."""
        counted = self._database.run(
            "SELECT count(*) FROM keys AS k JOIN files AS f ON f.key = k.file"
            " WHERE twin = 0 AND status <> 'rejected' AND (expires = '' OR expires > ?)",
            now.astimezone(UTC).isoformat(),
        )
        return int(counted[0][0])

    def last_version(self, place: KeyPlace) -> int:
        """Return the last version of any note that has or had the key in this place; 0 for none."""
        found = self._database.run(
            "SELECT MAX(version) FROM (SELECT version FROM last_versions WHERE place = ? UNION ALL SELECT version FROM versions"
            " WHERE id IN (SELECT IIF(id = '', path, id) FROM keys AS k JOIN files AS f ON f.key = k.file"
            " WHERE k.key = ? AND scope = ? AND k.project = ? AND session = ?))",
            *(place.digest, *place.columns),
        )
        return int(found[0][0] or 0)

    def over(self, place: KeyPlace) -> int:
        """Return the last version of a key in this place that was forgotten or has expired; 0 for none."""
        found = self._database.run("SELECT version FROM last_versions WHERE place = ?", place.digest)
        return int(found[0][0]) if found else 0

    def begin_anew(self, name: str, place: KeyPlace) -> None:
        """Mark the present versions of a key as over, though still known; the next version gets a number that was never used."""
        last = self.wording(name)
        if last is not None:
            with self._database.changing():
                self._database.run(
                    "INSERT INTO last_versions (place, version) VALUES (?, ?)"
                    " ON CONFLICT (place) DO UPDATE SET version = max(version, excluded.version)",
                    *(place.digest, last.version),
                )

    def forget(self, name: str) -> None:
        rows = self._database.run(
            "SELECT k.key, scope, k.project, session FROM keys AS k JOIN files AS f ON f.key = k.file"
            " WHERE IIF(id = '', 'path:' || path, id) = ? AND twin = 0",
            name,
        )
        name = name.removeprefix("path:")
        for row in rows:
            self.begin_anew(name, _place(*row))
        self._database.run("DELETE FROM versions WHERE id = ?", name)


def _place(key: str, scope: str, project: str, session: str) -> KeyPlace:
    return KeyPlace(key=key, scope=Scope(scope), project=project, session=session)


FORGOTTEN = "forgotten"
"""Why a note counts as deleted that its owner asked to forget."""


class Tombstones:
    """Notes that were deleted, and titles that are not to be made again."""

    def __init__(self, database: LedgerDatabase, keys: KeyRows) -> None:
        self._database = database
        self._keys = keys

    def bury(self, id: str, titles: Iterable[str], project: str, *, at: datetime, because: str) -> None:
        """Record that neither this id, nor a note of one of these titles in this project, is to be written again."""
        self.bury_hidden(id, {_buried(title) for title in titles if title}, project, at=at, because=because)

    def bury_hidden(self, id: str, titles: Iterable[str], project: str, *, at: datetime, because: str) -> None:
        """Do what `bury` does, given the digests of the titles."""
        with self._database.changing():
            self._keys.forget(id)
            self._database.run("DELETE FROM tombstones WHERE id = ?", id)
            self._database.run("INSERT INTO tombstones (id, at, because) VALUES (?, ?, ?)", id, at.isoformat(), because)
            rows = [(title, project, id) for title in titles]
            self._database.run_each("INSERT INTO buried_titles (title_key, project, id) VALUES (?, ?, ?)", rows)

    def ids(self) -> list[str]:
        return [id for (id,) in self._database.run("SELECT id FROM tombstones ORDER BY id")]

    def because(self, id: str) -> str:
        """Return why a note counts as deleted; empty if it does not."""
        return next((str(because) for (because,) in self._database.run("SELECT because FROM tombstones WHERE id = ?", id)), "")

    def titles(self, id: str) -> list[tuple[str, str]]:
        """Return the digests of a deleted note's titles that are not to be made again, each with its project."""
        rows = self._database.run("SELECT title_key, project FROM buried_titles WHERE id = ? ORDER BY title_key", id)
        return [(title, project) for title, project in rows]

    def lift(self, id: str) -> None:
        """Forget that a note was deleted: its owner has put it back."""
        with self._database.changing():
            self._database.run("DELETE FROM tombstones WHERE id = ?", id)

    def lift_title(self, title: str, project: str) -> None:
        """Allow a title again, as its owner asks."""
        with self._database.changing():
            self._database.run("DELETE FROM buried_titles WHERE title_key = ? AND project = ?", _buried(title), project)

    def is_buried(self, id: str) -> bool:
        return bool(self._database.run("SELECT 1 FROM tombstones WHERE id = ?", id))

    def is_title_buried(self, title: str, project: str) -> bool:
        return bool(self._database.run("SELECT 1 FROM buried_titles WHERE title_key = ? AND project = ?", _buried(title), project))


def _buried(title: str) -> str:
    """Return the digest of a title that is not to be made again, so that the ledger does not hold its text."""
    return digest(title_key(title))


class Bodies:
    """Digests of the bodies that we wrote: any other body is a person's."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def wrote(self, id: str, digest: str) -> None:
        """Record a body that we wrote or are about to write.

        It is recorded before the write, so that no crash makes our own note look like a person's.
        """
        with self._database.changing():
            self._database.run("INSERT OR IGNORE INTO bodies (id, digest) VALUES (?, ?)", id, digest)

    def disown(self, id: str) -> None:
        """Record that no body of this note is ours."""
        with self._database.changing():
            self._database.run("DELETE FROM bodies WHERE id = ?", id)

    def is_ours(self, id: str, digest: str) -> bool:
        return bool(id and self._database.run("SELECT 1 FROM bodies WHERE id = ? AND digest = ?", id, digest))


class Relations:
    """Which note replaces which, or is ruled not to, and which note a draft was merged into."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def rule(self, newer: str, older: str, ruling: Literal["replacing", "replaces", "neither"]) -> None:
        with self._database.changing():
            self._database.run("INSERT OR REPLACE INTO rulings (newer, older, ruling) VALUES (?, ?, ?)", newer, older, ruling)

    def settled(self, ids: Iterable[str]) -> frozenset[tuple[str, str]]:
        """Return the pairs with these notes that were decided, the newer first."""
        found: set[tuple[str, str]] = set()
        for id in ids:
            found.update(self._database.run("SELECT newer, older FROM rulings WHERE newer = ? OR older = ?", id, id))
        return frozenset(found)

    def all_settled(self) -> frozenset[tuple[str, str]]:
        return frozenset(map(tuple, self._database.run("SELECT newer, older FROM rulings")))

    def replacements(self) -> list[tuple[str, str, bool]]:
        """Return ids of newer and older notes where the older is not marked as replaced, as of the last comparison.

        With each pair, whether it was marked before: then its owner has taken that back.
        """
        rows = self._database.run(
            "SELECT newer, older, ruling = 'replaces' FROM rulings JOIN files ON files.id = older AND twin = 0"
            " WHERE ruling <> 'neither' AND status NOT IN ('superseded', 'rejected', 'muted', 'archived') AND kind <> ''"
            " ORDER BY newer, older"
        )
        return [(newer, older, bool(said)) for newer, older, said in rows]

    def absorb(self, draft: str, note: str) -> None:
        with self._database.changing():
            self._database.run("INSERT OR REPLACE INTO absorbed (draft, note) VALUES (?, ?)", draft, note)

    def absorbed_by(self, draft: str) -> str:
        found = self._database.run("SELECT note FROM absorbed WHERE draft = ?", draft)
        return str(found[0][0]) if found else ""
