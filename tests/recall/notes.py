"""Invented notes, and a vault that holds them in memory."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kite_memory.model.hit import Hit
from kite_memory.model.note import Entry, Note, NoteKind

DAY = datetime(2026, 2, 26, 14, 3, 11, tzinfo=UTC)


def note(id: str, title: str, body: str = "", *, age: int = 0, **fields: Any) -> Note:
    at = DAY - timedelta(days=age)
    defaults: dict[str, Any] = {"path": f"facts/{id}.md", "kind": NoteKind.FACT, "created": at, "updated": at}
    return Note(id=id, title=title, body=body, **(defaults | fields))


def hit(body: str, **fields: Any) -> Hit:
    return Hit(note=note(fields.pop("id", "one"), fields.pop("title", "A title"), body, **fields), score=0.5, why="")


QUEUE = note(
    "queue",
    "PostgreSQL over SQLite for the job queue",
    "You chose [[PostgreSQL]] over [[SQLite]] for the job queue because concurrent writers need row-level locking.\n\n"
    "**Rejected:** [[SQLite]]: its single-writer lock stalled the workers.\n",
    kind=NoteKind.DECISION,
    path="decisions/postgres-over-sqlite-feb26.md",
    project="mycelia",
)
AUTH = note("auth", "Auth uses JWT", "Login tokens are JWT and expire after 24 hours.", project="mycelia", age=3)
LINT = note("lint", "Lint runs from src", "The linter finds its configuration only when started in src.", project="mycelia", age=9)
CSS = note("css", "Colours live in tokens.css", "Every colour of the design is a variable in tokens.css.", project="orchard", age=1)
VAULT = (QUEUE, AUTH, LINT, CSS)


class Pile:
    """A vault in memory. ``read`` counts what is read; a path in ``strange`` yields no note."""

    def __init__(self, *notes: Note) -> None:
        self.notes: dict[str, tuple[Note, int]] = {}
        self.strange: set[str] = set()
        self.read_paths: list[str] = []
        self._clock = 0
        for each in notes:
            self.put(each)

    def put(self, changed: Note) -> None:
        self._clock += 1
        self.notes[changed.path] = (changed, self._clock)

    def change(self, path: str, **fields: Any) -> None:
        self.put(replace(self.notes[path][0], **fields))

    def remove(self, path: str) -> None:
        del self.notes[path]

    def entries(self) -> Iterable[Entry]:
        found = [Entry(path=path, size=len(note.body), mtime_ns=time) for path, (note, time) in self.notes.items()]
        return [*found, *(Entry(path=path, size=1, mtime_ns=1) for path in sorted(self.strange))]

    def read(self, path: str) -> Note | None:
        self.read_paths.append(path)
        return self.notes[path][0] if path in self.notes else None
