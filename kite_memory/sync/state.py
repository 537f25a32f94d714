"""What this machine knows of its exchange with the others, in ``sync.sqlite``."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from kite_memory.sync.rows import NO_PATH, PATH_KEY, NoteVersion, without_forgotten
from kite_memory.sync.segments import SyncKey, pack, unpack
from kite_memory.system import sqlite
from kite_memory.system.private_files import replace_file

NAME, NAMES = "sync.sqlite", "sync.names"

_VERSION_1 = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE notes (
        key TEXT PRIMARY KEY,
        here TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        sent INTEGER NOT NULL,
        version TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX notes_to_send ON notes (key) WHERE NOT sent",
    "CREATE TABLE positions (machine TEXT PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE pending (number INTEGER PRIMARY KEY, content BLOB NOT NULL)",
    """
    CREATE TABLE uptake (
        note TEXT PRIMARY KEY, shown INTEGER NOT NULL, used INTEGER NOT NULL, ignored INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE TABLE forgotten (event TEXT PRIMARY KEY, blank INTEGER NOT NULL) WITHOUT ROWID",
)
"""``notes`` are versions as JSON, with the path of the file here; ``pending`` is a segment that may not be in the folder yet.

``uptake`` and ``forgotten`` are what was sent to the others, or received from them.
"""

MIGRATIONS: sqlite.Migrations = {1: _VERSION_1}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNote:
    """A note's version, and the file that holds it here. ``sent`` is whether the others can read it."""

    version: NoteVersion
    here: str
    size: int = -1
    mtime_ns: int = -1
    sent: bool = False


class PendingSegments:
    """Segments of this machine that are not in the folder yet."""

    def __init__(self, state: "SyncState") -> None:
        self._state = state

    def next_number(self) -> int:
        return int(self._state.setting("next") or 1)

    def add(self, number: int, content: bytes) -> None:
        """Keep a segment until it is in the folder."""
        self._state.set("next", str(number + 1))
        self._state.run("INSERT INTO pending VALUES (?, ?)", number, content)

    def replace(self, number: int, content: bytes) -> None:
        self._state.run("UPDATE pending SET content = ? WHERE number = ?", content, number)

    def all(self) -> list[tuple[int, bytes]]:
        return self._state.run("SELECT number, content FROM pending ORDER BY number")

    def published(self, number: int) -> None:
        self._state.run("DELETE FROM pending WHERE number = ?", number)


class ExchangedRows:
    """What was sent to the others, or received from them, about the use of notes and about forgotten events."""

    def __init__(self, state: "SyncState") -> None:
        self._state = state

    def uptake(self) -> Mapping[str, tuple[int, int, int]]:
        return {note: (shown, used, ignored) for note, shown, used, ignored in self._state.run("SELECT * FROM uptake")}

    def record_uptake(self, note: str, shown: int, used: int, ignored: int) -> None:
        self._state.run("INSERT OR REPLACE INTO uptake VALUES (?, ?, ?, ?)", note, shown, used, ignored)

    def is_forgotten(self, event: str, *, blank: bool) -> bool:
        return bool(self._state.run("SELECT 1 FROM forgotten WHERE event = ? AND blank >= ?", event, blank))

    def record_forgotten(self, event: str, *, blank: bool) -> None:
        self._state.run(
            "INSERT INTO forgotten VALUES (?, ?) ON CONFLICT (event) DO UPDATE SET blank = MAX(blank, excluded.blank)", event, blank
        )


class SyncState:
    """This machine's sync position and settings. For one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        repair = "move it away and sync again: what the folder holds is read anew, and nothing is doubled"
        self._database = sqlite.open_private(path, MIGRATIONS, named=str(path), repair=repair, synchronous="FULL")
        self.pending = PendingSegments(self)
        self.exchanged = ExchangedRows(self)

    def close(self) -> None:
        self._database.close()

    def erase(self, *, lines: frozenset[str], notes: frozenset[str]) -> bool:
        """Erase these lines and notes from what is kept, and from what is not in the folder yet.

        Then do what `sqlite.rewrite` does.
        """
        key, gone = self.key, notes | self.gone()
        with self.changing():
            for number, content in self.pending.all():
                if key is None:
                    break
                rows, _ = unpack(content, key=key, machine=self.machine, number=number)
                kept = [row for each in rows if (row := without_forgotten(each, lines=lines, notes=gone)) is not None]
                if kept != rows:
                    self.pending.replace(number, pack(kept, key=key, machine=self.machine, number=number))
            for held in map(self.note, notes):
                if held is not None and not held.version.key.startswith(PATH_KEY):
                    self.keep(replace(held, version=replace(held.version, path=NO_PATH), here=""))
        with sqlite.raising_not_written(self.path, named=str(self.path)):
            return sqlite.rewrite(self._database)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Make all changes of the block, or none. Blocks may be nested."""
        if self._database.in_transaction:
            yield
            return
        with sqlite.raising_not_written(self.path, named=str(self.path)), sqlite.transaction(self._database):
            yield

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Undo all changes of the block at its end."""
        self.run("BEGIN")
        try:
            yield
        finally:
            self.run("ROLLBACK")

    def run(self, statement: str, *values: object) -> list[Any]:
        return self._database.execute(statement, values).fetchall()

    def setting(self, name: str) -> str:
        found = self.run("SELECT value FROM settings WHERE name = ?", name)
        return str(found[0][0]) if found else ""

    def set(self, name: str, value: str) -> None:
        self.run("INSERT OR REPLACE INTO settings VALUES (?, ?)", name, value)

    @property
    def machine(self) -> str:
        return self.setting("machine")

    @property
    def key(self) -> SyncKey | None:
        kept = self.setting("key")
        return SyncKey.parse(kept) if kept else None

    def begin(self, key: SyncKey, machine: str) -> None:
        """Begin with a key, under a new name: everything is to be sent, and all that others have sent is to be read."""
        with self.changing():
            self.set("key", key.text())
            self.set("machine", machine)
            self.set("next", "")
            for table in ("positions", "pending"):
                self.run(f"DELETE FROM {table}")  # noqa: S608 - ours
            self.send_again()

    def send_again(self) -> None:
        """Take nothing for sent."""
        with self.changing():
            for name in ("events", "amended", "forgotten"):
                self.set(name, "")
            for table in ("uptake", "forgotten"):
                self.run(f"DELETE FROM {table}")  # noqa: S608 - ours
            self.run("UPDATE notes SET sent = 0")

    def names(self) -> frozenset[str]:
        """Return the names under which this machine has sent anything, in this state or one that was replaced or lost."""
        kept = self.path.with_name(NAMES)
        return frozenset(kept.read_text().split() if kept.exists() else ())

    def keep_name(self) -> None:
        """Keep this machine's name in a file of its own, so that it is known after this state is lost."""
        if self.machine not in (known := self.names()):
            replace_file(self.path.with_name(NAMES), "\n".join(sorted({*known, self.machine})).encode())

    def notes(self) -> dict[str, HeldNote]:
        return {held.version.key: held for held in map(_held, self.run("SELECT here, size, mtime_ns, sent, version FROM notes"))}

    def note(self, key: str) -> HeldNote | None:
        rows = self.run("SELECT here, size, mtime_ns, sent, version FROM notes WHERE key = ?", key)
        return _held(rows[0]) if rows else None

    def to_send(self) -> list[HeldNote]:
        rows = self.run("SELECT here, size, mtime_ns, sent, version FROM notes WHERE NOT sent ORDER BY key")
        return list(map(_held, rows))

    def gone(self) -> frozenset[str]:
        """Return the keys of the notes that are gone everywhere."""
        return frozenset(key for (key,) in self.run("SELECT key FROM notes WHERE version ->> 'gone' <> ''"))

    def keep(self, held: HeldNote) -> None:
        version = orjson.dumps(held.version).decode()
        self.run(
            "INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?, ?)",
            *(held.version.key, held.here, held.size, held.mtime_ns, held.sent, version),
        )

    def mark_sent(self, keys: Iterable[str]) -> None:
        """Record that the others can read these notes' versions."""
        self._database.executemany("UPDATE notes SET sent = 1 WHERE key = ?", [(key,) for key in keys])

    def position(self, machine: str) -> int:
        """Return the number of the first segment of ``machine`` that was not read yet."""
        found = self.run("SELECT next FROM positions WHERE machine = ?", machine)
        return int(found[0][0]) if found else 1

    def advance(self, machine: str, number: int) -> None:
        self.run("INSERT OR REPLACE INTO positions VALUES (?, ?)", machine, number)

    def reread(self) -> None:
        """Read everything that the others have sent again."""
        self.run("DELETE FROM positions")


def _held(row: tuple[Any, ...]) -> HeldNote:
    here, size, mtime_ns, sent, encoded = row
    found = orjson.loads(encoded)
    version = NoteVersion(**{**found, "titles": tuple(found["titles"])})
    return HeldNote(version=version, here=here, size=size, mtime_ns=mtime_ns, sent=bool(sent))
