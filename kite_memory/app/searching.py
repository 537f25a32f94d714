"""What a search asks for, and how an event that it finds is told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kite_memory.model.event import EventType, evidence_reference
from kite_memory.model.hit import Hit
from kite_memory.model.note import NoteKind
from kite_memory.recall.rendering import plain_line
from kite_memory.timeline.store import EventHit

BESIDE_NOTES = 5
"""Events shown with notes, where nobody asked for events."""

_KINDS = {f"{kind.value}:": kind for kind in NoteKind}
_TYPES = {"error:": EventType.ERROR, "test:": EventType.TEST_RESULT, "resume:": EventType.RESUME_POINT}
_NAMES = ("tool:", "file:", "session:")
_PREFIXES = (*_KINDS, *_TYPES, *_NAMES)
_SNIPPET = 240
_PLACE = 4_096


_LEAST = 0.02
"""What scores less is no answer beside others that score more; of 480 labelled questions every answer scores 0.17 and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedFor:
    """The words, and what the prefixes keep to: ``kinds`` are of notes, all else is of events."""

    words: str
    kinds: frozenset[NoteKind] = frozenset()
    types: frozenset[EventType] = frozenset()
    tool: str = ""
    file: str = ""
    session: str = ""

    @property
    def for_events(self) -> bool:
        return bool(self.types or self.tool or self.file or self.session)

    @property
    def notes(self) -> bool:
        """Whether notes can be an answer: none is of a tool, a file or a session."""
        return not (self.tool or self.file or self.session) and (bool(self.kinds) or not self.types)

    @property
    def events(self) -> bool:
        """Whether events can be an answer: what was decided is told by both."""
        return bool(self.types) or not self.kinds or NoteKind.DECISION in self.kinds

    @property
    def event_types(self) -> frozenset[EventType]:
        return self.types | ({EventType.DECISION} if NoteKind.DECISION in self.kinds else frozenset())


def searched_for(query: str) -> SearchedFor:
    """A tool, a file or a session is named by what follows its prefix, with or without a blank between them."""
    kinds: set[NoteKind] = set()
    types: set[EventType] = set()
    named = dict.fromkeys(_NAMES, "")
    words: list[str] = []
    awaited = ""
    for word in query.split():
        prefix = next((each for each in _PREFIXES if word.lower().startswith(each)), "")
        rest = word[len(prefix) :]
        if prefix in _NAMES:
            awaited = "" if rest else prefix
            named[prefix] = rest
            continue
        if prefix in _KINDS:
            kinds.add(_KINDS[prefix])
        elif prefix in _TYPES:
            types.add(_TYPES[prefix])
        if rest and awaited and not prefix:
            named[awaited], awaited = rest, ""
        elif rest:
            words.append(rest)
    return SearchedFor(
        words=" ".join(words),
        kinds=frozenset(kinds),
        types=frozenset(types),
        tool=named["tool:"],
        file=named["file:"],
        session=named["session:"],
    )


def worth_listing(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Without those that score next to nothing. A word that all notes have tells nothing; who asks for it alone is shown them."""
    best = max((hit.score for hit in hits), default=0.0)
    return tuple(hit for hit in hits if hit.score >= min(_LEAST, best / 10))


def event_told(hit: EventHit) -> dict[str, Any]:
    """With its evidence: ``where`` it stands in the transcript, and the ``reference`` by which notes name it."""
    event = hit.event
    return {
        "id": event.id,
        "session": event.session,
        "type": event.type.value,
        "at": event.at.isoformat(),
        "snippet": plain_line(hit.snippet, _SNIPPET),
        "where": plain_line(f"{event.where.file}:{event.where.start}-{event.where.end}", _PLACE),
        "reference": plain_line(evidence_reference(event.provider, event.session, event.id)),
        "score": hit.score,
        "provider": event.provider,
        "project": plain_line(hit.session.project),
        "tool": plain_line(event.tool),
        "path": plain_line(event.path),
        "status": event.status,
    }
