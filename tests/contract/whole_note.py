"""A note of which every field says something, so that every store of notes can be checked for keeping all of it."""

from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime
from typing import Any

from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.vault.wording import note_id

WHEN = datetime(2026, 2, 26, 14, 3, 11, tzinfo=UTC)
ELSEWHERE = frozenset({"path", "updated"})
"""Of the place where a note is kept, not of the note."""


def other(title: str) -> Note:
    """A note to link to."""
    id = note_id(WHEN, title)
    return Note(
        id=id, path=f"decisions/{title.lower()}.md", kind=NoteKind.DECISION, title=title, body=f"{title}, once.",
        created=WHEN, updated=WHEN, project="orchard",
    )  # fmt: skip


OTHERS = tuple(map(other, ("Fences", "Walls", "Dogs", "Geese")))


def whole_note(fences: str = "fences", walls: str = "walls", dogs: str = "dogs", geese: str = "geese") -> Note:
    """Leads to notes of these names."""
    given: dict[str, Any] = {
        "id": note_id(WHEN, "whole"),
        "path": "decisions/hedges.md",
        "kind": NoteKind.DECISION,
        "title": "Plant hedges",
        "body": f"Deer jump fences, see [[{geese}]].",
        "created": WHEN,
        "updated": WHEN,
        "links": (geese,),
        "aliases": ("Hedges", "Living fences"),
        "tags": ("deer", "planting"),
        "triggers": ("when deer come",),
        "entities": ("deer", "hawthorn"),
        "scope": Scope.SESSION,
        "project": "orchard",
        "session": "morning",
        "key": "project.border",
        "valid_from": datetime(2026, 2, 27, 1, 2, 3, tzinfo=UTC),
        "expires": datetime(2126, 2, 27, 1, 2, 4, tzinfo=UTC),
        "supersedes": (fences,),
        "superseded_by": walls,
        "conflicts": (dogs,),
        "valid_until": datetime(2026, 3, 27, 1, 2, 5, tzinfo=UTC),
        "anchors": ("plan.md@0123abcd",),
        "drifted": datetime(2026, 3, 28, tzinfo=UTC),
        "branch": "spring",
        "review": "in two?",
        "status": NoteStatus.PROPOSED,
        "evidence": ("claude-code:5e55-0001#00000001-0000",),
        "origin": "tool",
        "importance": 3,
    }
    note = Note(**given)
    for each in fields(Note):
        assert each.name in given, f"say what {each.name} holds, and see that every store keeps it"
        assert each.default is MISSING or getattr(note, each.name) != each.default, each.name
    return note


def differing(kept: Note, given: Note, *, but: frozenset[str] = ELSEWHERE) -> dict[str, tuple[object, object]]:
    """What of a note has not come back, and what there is instead."""
    same = replace(kept, **{name: getattr(given, name) for name in but})
    pairs = {each.name: (getattr(same, each.name), getattr(given, each.name)) for each in fields(Note)}
    return {name: (now, then) for name, (now, then) in pairs.items() if now != then}
