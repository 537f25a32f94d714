"""The ledger as a whole: its parts, and the few facts that are about the vault rather than a note."""

from collections.abc import Callable
from pathlib import Path

from kite_memory.vault.ledger.database import LedgerDatabase
from kite_memory.vault.ledger.decisions import Bodies, Relations, Tombstones
from kite_memory.vault.ledger.keys import KeyRows
from kite_memory.vault.ledger.notes import NoteRows
from kite_memory.vault.ledger.values import Intent


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
        with self._database.changing():
            self._database.run("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", name, value)
