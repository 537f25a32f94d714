"""Notes, the only kind of memory stored in the vault: the record that they are drafted from, and planned changes of the vault.

Changes are computed first, applied later, and printed by ``--dry-run``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from kite_memory.model.event import Event, Provenance, Session


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


ITEM_KINDS: Mapping[str, type[RecordItem]] = {
    "decision": Decision,
    "insight": Insight,
    "fact": Fact,
    "preference": Preference,
    "question": OpenQuestion,
}
"""The kinds of items by the names that a model's answer and everything stored use for them."""
_NAMES: Mapping[type[RecordItem], str] = {kind: name for name, kind in ITEM_KINDS.items()}


def item_kind(item: RecordItem) -> str:
    """Return the name of the item's kind."""
    return _NAMES[type(item)]


def named_item(item: RecordItem) -> dict[str, object]:
    """Return an item for orjson, which writes its fields."""
    return {"kind": item_kind(item), "item": item}


def item_from_json(raw: Mapping[str, Any]) -> RecordItem:
    """Return the item that orjson has written for `named_item`. Raises `KeyError` or `TypeError` for anything else."""
    fields = raw["item"]
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
    if "rejected" in values:
        values["rejected"] = tuple(Rejected(**rejected) for rejected in fields["rejected"])
    if values.get("change") is not None:
        values["change"] = Change(**fields["change"])
    kind: Callable[..., RecordItem] = ITEM_KINDS[raw["kind"]]
    return kind(**values)


def record_to_json(record: Record, item_to_json: Callable[[RecordItem], object] = named_item) -> dict[str, object]:
    """Return topics and insights as JSON values; `Record.weighed` is for a stored answer alone."""
    return {
        "topics": [
            {
                "name": topic.name,
                "summary": topic.summary,
                "categories": topic.categories,
                "entities": topic.entities,
                "items": [item_to_json(item) for item in topic.items],
            }
            for topic in record.topics
        ],
        "cross_topic_insights": record.cross_topic_insights,
    }


def record_from_json(raw: Mapping[str, Any], item_from_json: Callable[[Mapping[str, Any]], RecordItem] = item_from_json) -> Record:
    """Return the record that `record_to_json` wrote, with ``weighed`` if it is there. Strict: our own programs wrote it."""
    return Record(
        topics=tuple(
            Topic(
                name=topic["name"],
                summary=topic["summary"],
                categories=tuple(topic["categories"]),
                entities=tuple(topic["entities"]),
                items=tuple(map(item_from_json, topic["items"])),
            )
            for topic in raw["topics"]
        ),
        cross_topic_insights=tuple(raw["cross_topic_insights"]),
        weighed=tuple(raw.get("weighed", ())),
    )


class Scope(StrEnum):
    """Where a note applies."""

    GLOBAL = "global"
    PROJECT = "project"
    SESSION = "session"
    SHARED = "shared"


class NoteKind(StrEnum):
    DECISION = "decision"
    INSIGHT = "insight"
    FACT = "fact"
    PREFERENCE = "preference"
    QUESTION = "question"
    JOURNAL = "journal"
    ENTITY = "entity"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindProperties:
    """What holds for all notes of a kind.

    ``folder`` is where the vault keeps them. One that ``states`` something may be shown unasked, and may say the same as another:
    journals cover a whole day and entity pages only link notes, so only a search finds those. One that is ``replaceable`` may be
    contradicted and replaced by a newer note of its kind.
    """

    folder: str
    states: bool = True
    replaceable: bool = True


KINDS: Mapping[NoteKind, KindProperties] = {
    NoteKind.DECISION: KindProperties(folder="decisions"),
    NoteKind.INSIGHT: KindProperties(folder="topics"),
    NoteKind.FACT: KindProperties(folder="projects"),
    NoteKind.PREFERENCE: KindProperties(folder="people"),
    NoteKind.QUESTION: KindProperties(folder="ideas", replaceable=False),
    NoteKind.JOURNAL: KindProperties(folder="journals", states=False, replaceable=False),
    NoteKind.ENTITY: KindProperties(folder="topics", states=False, replaceable=False),
}
SPOKEN_KINDS = frozenset(kind for kind in NoteKind if KINDS[kind].states)
REPLACEABLE_KINDS = frozenset(kind for kind in NoteKind if KINDS[kind].replaceable)


class NoteStatus(StrEnum):
    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"
    MUTED = "muted"
    ARCHIVED = "archived"


REVIEW_SPLIT, REVIEW_LAPSED = "split", "lapsed"
"""Values of a note's ``review``: a person is asked to divide it, or no longer asked about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note of the vault.

    ``path`` is relative to the vault, with ``/`` between parts. ``body`` is markdown without the frontmatter. ``id`` is empty for a
    file that a person created without one; its path then identifies it. ``links`` are the targets of the wikilinks in the body;
    ``supersedes`` and ``superseded_by`` are such targets without brackets. ``entities`` are the names it mentions, linked or not.
    ``evidence`` holds references as `model.event.evidence_reference` writes them.

    ``conflicts`` are notes that this one may contradict, for a person to decide. It was true until ``valid_until``, if something
    has replaced it. ``anchors`` are files it mentions with their hash when it was created (``path@hash``), and ``drifted`` is when
    one of them was first found changed. ``branch`` is empty for what holds on all branches. ``review`` is any other question to a
    person about it.
    """

    id: str
    path: str
    kind: NoteKind
    title: str
    body: str
    created: datetime
    updated: datetime
    links: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    scope: Scope = Scope.PROJECT
    project: str = ""
    session: str = ""
    key: str = ""
    valid_from: datetime | None = None
    expires: datetime | None = None
    supersedes: tuple[str, ...] = ()
    superseded_by: str = ""
    conflicts: tuple[str, ...] = ()
    valid_until: datetime | None = None
    anchors: tuple[str, ...] = ()
    drifted: datetime | None = None
    branch: str = ""
    review: str = ""
    status: NoteStatus = NoteStatus.ACCEPTED
    evidence: tuple[str, ...] = ()
    origin: Origin = "assistant"
    importance: int = 2

    @property
    def name(self) -> str:
        """What identifies it permanently: its id, or its path if it has none."""
        return self.id or self.path

    def has_expired(self, now: datetime) -> bool:
        """Return whether it has expired. An expired note is ignored everywhere; only its file remains for its owner."""
        return self.expires is not None and self.expires <= now

    @property
    def holds_from(self) -> datetime:
        """The time from which it holds, and what it replaces no longer does."""
        return self.valid_from or self.created

    @property
    def is_asked_about(self) -> bool:
        """Whether a person must decide something about it other than whether to keep it."""
        return (bool(self.conflicts) and self.review != REVIEW_LAPSED) or self.review == REVIEW_SPLIT

    @property
    def awaits_review(self) -> bool:
        return self.status is NoteStatus.PROPOSED or (self.status is NoteStatus.ACCEPTED and self.is_asked_about)


class Entry(NamedTuple):
    """A note's file as listed in the vault, without its content. A plain tuple, since a listing makes one for every note."""

    path: str
    size: int
    mtime_ns: int


Ruling = Literal["replaces", "conflicts", "neither"]
"""What the newer of two notes does to the older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarNote:
    """An existing note and its similarity to the note in question: ``cosine`` is 1 for the same meaning."""

    note: Note
    cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Existing notes near a note, likeliest first."""

    near: tuple[SimilarNote, ...] = ()


Surround = Callable[[Note], Surroundings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two notes of which the newer may invalidate the older; ``likely`` is how likely that is."""

    newer: Note
    older: Note
    likely: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create a new note."""

    note: Note
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Amend:
    """Add to an existing note: evidence, and ``addition`` (markdown, may be empty) at its end.

    ``absorbs`` is the id of the draft that is merged instead of becoming its own note. ``importance`` is the note's new minimum.
    """

    id: str
    path: str
    evidence: tuple[str, ...]
    addition: str
    because: str
    absorbs: str = ""
    importance: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersede:
    """Create ``note`` and mark the old one as replaced by it.

    Several may name the same note, which is created once. ``late`` means that the existing note is the newer one, and ``note`` is
    created as replaced by it.
    """

    note: Note
    old_id: str
    old_path: str
    because: str
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Write nothing for this item."""

    title: str
    because: str


Action = Create | Amend | Supersede | Skip
