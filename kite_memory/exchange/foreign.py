"""A piece of somebody else's memory, and the draft of a note that it becomes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from kite_memory.model.note import Note, NoteKind, NoteStatus
from kite_memory.model.record import Origin
from kite_memory.model.scope import Scope
from kite_memory.redaction import drop_private, redact
from kite_memory.vault import links
from kite_memory.vault.drafting import Draft, entities_of, tags_of, title_of
from kite_memory.vault.identity import note_id
from kite_memory.vault.ledger import link_key
from kite_memory.vault.notefile import FOLDERS
from kite_memory.vault.slugs import note_stem
from kite_memory.vault.taming import tame, tame_name
from kite_memory.vault.wording import one_line

_MOST_BODY = 12_000
_MOST_TRIGGERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """``name`` is what stays the same about it where it comes from: taking it in twice is taking it in once.

    ``project`` is empty for what is everybody's. ``origin`` ``"user"`` for what a person wrote by hand.
    """

    source: str
    name: str
    title: str
    body: str
    kind: NoteKind
    created: datetime
    project: str = ""
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    origin: Origin = "assistant"
    importance: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A note of our own that comes back, with its id, its evidence and its status. ``stem`` is what links to it say there."""

    note: Note
    stem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """What was not taken in. ``reason`` is one of a small set, for counting."""

    name: str
    reason: str


def drafts(pieces: Iterable[Foreign | Kept], *, accepted: bool) -> list[Draft]:
    """Through the same door as everything: redacted, tamed, bounded.

    Everything waits for review and is nobody's word unless it is ``accepted``: whoever made a file can write into it that a person
    said this, and accepted it.
    """
    return [
        _draft(piece, accepted=accepted) if isinstance(piece, Foreign) else _kept(piece.note, accepted=accepted) for piece in pieces
    ]


def _kept(note: Note, *, accepted: bool) -> Draft:
    """Its links go: where they lead may not be there, and where it is, the planner links again what belongs together.

    So does what it replaced and may contradict, until all are here that do come; see `references`. Its key goes too where it is not
    ``accepted``: what stands under a key is told to whoever asks for it.
    """

    def clean(text: str) -> str:
        return redact(drop_private(text))

    def each(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(filter(None, map(clean, texts)))

    body = links.unlinked(clean(note.body))
    note = replace(
        note,
        title=clean(note.title),
        aliases=each(note.aliases),
        tags=each(note.tags),
        triggers=each(note.triggers),
        entities=each(note.entities),
        evidence=each(note.evidence),
        project=clean(note.project),
        session=clean(note.session),
        key=clean(note.key) if accepted else "",
        status=NoteStatus.PROPOSED if note.status is NoteStatus.ACCEPTED and not accepted else note.status,
        origin=_origin(note.origin, accepted=accepted),
        branch=clean(note.branch),
        review=clean(note.review),
        anchors=each(note.anchors),
        supersedes=(),
        superseded_by="",
        conflicts=(),
    )
    return Draft(
        note=replace(note, body=tame(body)),  # whose word it is, the file says itself
        entities=entities_of(note.entities),
    )


def _origin(told: Origin, *, accepted: bool) -> Origin:
    return "tool" if told == "user" and not accepted else told


def references(pieces: Iterable[Kept]) -> dict[str, dict[str, tuple[str, ...]]]:
    """By each note's id and by property, the ids of the notes that it replaced, was replaced by, or may contradict.

    Only among these: what a name means elsewhere nobody knows.
    """
    kept = list(pieces)
    named: dict[str, str] = {}
    for piece in kept:
        named[link_key(piece.stem)] = "" if link_key(piece.stem) in named else piece.note.id  # two of one name are neither
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for piece in kept:
        note = piece.note
        said = {"supersedes": note.supersedes, "superseded_by": (note.superseded_by,), "conflicts": note.conflicts}
        led = {name: tuple(filter(None, (named.get(link_key(each), "") for each in to))) for name, to in said.items()}
        if any(led.values()):
            found[note.id] = {name: ids for name, ids in led.items() if ids}
    return found


def _draft(piece: Foreign, *, accepted: bool) -> Draft:
    def clean(text: str) -> str:
        return redact(drop_private(text))

    given = clean(piece.body)
    origin = _origin(piece.origin, accepted=accepted)
    body = tame(given, _MOST_BODY, linked=origin == "user")
    title = title_of(clean(piece.title), body)
    entities = entities_of(map(clean, piece.entities))
    project = one_line(clean(piece.project))
    return Draft(
        note=Note(
            id=note_id(piece.created, "imported", piece.source, piece.name),
            path=f"{FOLDERS[piece.kind]}/{note_stem(title, piece.created)}.md",
            kind=piece.kind,
            title=title,
            body=body,
            created=piece.created,
            updated=piece.created,
            aliases=(title,),
            tags=tags_of((*map(clean, piece.tags), f"imported/{piece.source}")),
            triggers=tuple(dict.fromkeys(filter(None, map(tame_name, map(clean, piece.triggers)))))[:_MOST_TRIGGERS],
            entities=tuple(entity.name for entity in entities),
            scope=Scope.PROJECT if project else Scope.GLOBAL,
            project=project,
            status=NoteStatus.ACCEPTED if accepted else NoteStatus.PROPOSED,
            origin=origin,
            importance=min(max(piece.importance, 1), 3),
        ),
        entities=entities,
    )
