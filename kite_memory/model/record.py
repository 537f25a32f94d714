"""What distillation yields for a chunk of a session."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

from kite_memory.model.event import Event, Session
from kite_memory.model.provenance import Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A note that is there, as whoever distils a chunk gets to see it. ``here``: it was made of the same session."""

    id: str
    kind: str
    title: str
    body: str
    day: date
    here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """``id`` depends only on the session and the ids of its first and last event, so a rebuilt timeline names it the same.

    ``before`` is what happened in the session just before, as far as it is at hand: it explains what these events answer,
    and is not to be told again. ``noted`` is how many notes the session has given already. ``provenance`` knows who had
    said something in the project before, where that is known. ``remembered`` are the session's notes and those nearest to it.
    """

    id: str
    session: Session
    events: tuple[Event, ...]
    before: tuple[Event, ...] = ()
    noted: int = 0
    remembered: tuple[Remembered, ...] = ()
    provenance: Provenance | None = None


Origin = Literal["user", "assistant", "tool"]
"""Whose word an item rests on. What only a tool's output says is never taken for the person's."""

SAID_TO_A_REFUSAL = "said to a refused call of"
"""After a person's quoted words in a body: from here on the words are not theirs."""


TURNED_DOWN = "Turned down: "
"""How the title of a decision begins that says only what was not chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    alternative: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an item does to a note that was there before it. ``note`` is that one's id, of those that were offered."""

    note: str
    does: Literal["replaces", "amends"]
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What every kind of item carries.

    ``evidence`` holds full event ids, at least one. ``importance`` is 1 to 3; 3 would hurt to lose. ``triggers`` are
    short phrases in a person's words that say when this is useful. ``doubt`` says, where it is not empty, why a person
    should look at it first.
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
    """A choice made, or an approach turned down. ``body`` includes the reasoning."""

    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight(Item):
    """A verified cause; ``symptom`` is what one sees when meeting it again, word for word where it is an error."""

    symptom: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Item):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference(Item):
    """How the person wants things done. ``everywhere`` lifts it out of its project."""

    everywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion(Item):
    pass


RecordItem = Decision | Insight | Fact | Preference | OpenQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """``name`` is two to five words."""

    name: str
    summary: str
    items: tuple[RecordItem, ...]
    categories: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """No topics means: nothing here is worth keeping. That is a complete answer.

    ``weighed`` are the ids of the notes that the items were held against: where one says nothing of a `Change`, both hold.
    """

    topics: tuple[Topic, ...]
    cross_topic_insights: tuple[str, ...] = ()
    weighed: tuple[str, ...] = ()

    def items(self) -> tuple[RecordItem, ...]:
        return tuple(item for topic in self.topics for item in topic.items)
