"""What cannot be read from notes again: what was deleted, which bodies are ours, which note replaces another or was merged into
one."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from kite_memory.vault.ledger.database import LedgerDatabase
from kite_memory.vault.ledger.keys import KeyRows
from kite_memory.vault.wording import digest, title_key


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
