"""Selection of the notes that the extractor sees with a chunk, because the chunk may change them."""

from collections.abc import Callable

from kite_memory.model.event import EventType
from kite_memory.model.note import Note, NoteKind, NoteStatus, Scope
from kite_memory.model.plan import Surroundings
from kite_memory.model.record import Chunk, Remembered
from kite_memory.redaction import drop_private, redact


def nearest_to(chunk: Chunk, nearest: Callable[[Note], Surroundings]) -> list[Note]:
    """Return notes near to the user's messages or the agent's last one; the nearest to each first."""
    said = [event for event in chunk.events if event.role == "user" and event.type in _RULING and len(event.text) > _TERSE]
    closing = [event for event in chunk.events if event.type is EventType.ASSISTANT_MESSAGE and event.role == "assistant"][-1:]
    found: list[list[Note]] = []
    for event in (*said[-_MOST_SAID:], *closing):
        for project in dict.fromkeys((chunk.session.project, "")):
            asked = Note(
                id="",
                path="",
                kind=NoteKind.FACT,
                title="",
                body=event.text[:_SAID],
                created=event.at,
                updated=event.at,
                project=project,
                scope=Scope.PROJECT if project else Scope.GLOBAL,
            )
            found.append([near.note for near in nearest(asked).near])
    by_rank = (ranked[place] for place in range(MOST_NEAR) for ranked in found if place < len(ranked))
    return list({note.id: note for note in by_rank}.values())


_RULING = (EventType.USER_MESSAGE, EventType.DECISION)
_MOST_SAID, MOST_HERE, MOST_NEAR = 6, 12, 8
_SAID, _TERSE = 1_500, 12


def may_be_changed(note: Note) -> bool:
    return note.status is NoteStatus.ACCEPTED and not note.key and note.kind is not NoteKind.ENTITY


def as_remembered(note: Note, *, here: bool) -> Remembered:
    title, body = (redact(drop_private(text)) for text in (note.title, note.body))
    return Remembered(id=note.id, kind=note.kind.value, title=title, body=body, day=note.created.date(), here=here)
