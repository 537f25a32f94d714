"""Result of extracting a chunk of a session."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

from kite_memory.model.event import Event, Session
from kite_memory.model.provenance import Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """An existing note as shown to the extractor. ``here`` means that it came from the same session."""

    id: str
    kind: str
    title: str
    body: str
    day: date
    here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Part of a session that is extracted in one go.

    ``id`` depends only on the session and the ids of its first and last event, so a rebuilt timeline gives it the same id.
    ``before`` holds the available events just before it: context that explains these events and is not extracted again. ``noted``
    is how many notes the session has yielded already. ``provenance`` looks up who stated something in the project before, if
    available. ``remembered`` are the session's notes and those nearest to it.
    """

    id: str
    session: Session
    events: tuple[Event, ...]
    before: tuple[Event, ...] = ()
    noted: int = 0
    remembered: tuple[Remembered, ...] = ()
    provenance: Provenance | None = None


Origin = Literal["user", "assistant", "tool"]
"""Who stated an item. What only a tool's output states is never attributed to the user."""

SAID_TO_A_REFUSAL = "said to a refused call of"
"""Follows a user's quoted words in a body: the words after it are not the user's."""


PERSON = "person:"
"""Prefix of an entity that is a person: ``person:Ada Lovelace``."""

TURNED_DOWN = "Turned down: "
"""Prefix of the title of a decision that states only what was not chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """An alternative that was not chosen, and why."""

    alternative: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Effect of an item on an existing note. ``note`` is the id of one of the offered notes."""

    note: str
    does: Literal["replaces", "amends"]
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Fields common to all kinds of items.

    ``evidence`` holds full event ids, at least one. ``importance`` is 1 to 3; 3 is a serious loss if missing. ``triggers`` are
    short phrases in a person's words for when this is useful. ``doubt`` is, if not empty, the reason why a person should review it
    first.
    """

    title: str
    body: str
    evidence: tuple[str, ...]
    importance: int
    origin: Origin
    entities: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    doubt: str = ""
    change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Item):
    """A choice made, or an approach rejected. ``body`` includes the reasoning."""

    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight(Item):
    """A verified cause. ``symptom`` is what is visible when it occurs again, verbatim if it is an error."""

    symptom: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Item):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference(Item):
    """How the user wants things done. ``everywhere`` means that it applies in all projects."""

    everywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion(Item):
    pass


RecordItem = Decision | Insight | Fact | Preference | OpenQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Items about one topic. ``name`` is two to five words."""

    name: str
    summary: str
    items: tuple[RecordItem, ...]
    categories: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Everything extracted from a chunk. A record without topics is complete: nothing is worth keeping.

    ``weighed`` are the ids of the notes that the items were compared with: without a `Change` for one of them, both hold.
    """

    topics: tuple[Topic, ...]
    cross_topic_insights: tuple[str, ...] = ()
    weighed: tuple[str, ...] = ()

    def items(self) -> tuple[RecordItem, ...]:
        return tuple(item for topic in self.topics for item in topic.items)
