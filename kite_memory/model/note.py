"""Notes, the only kind of memory stored in the vault."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kite_memory.model.record import Origin


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


class NoteStatus(StrEnum):
    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    SUPERSEDED = "superseded"
    REJECTED = "rejected"
    MUTED = "muted"
    ARCHIVED = "archived"


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

    def has_expired(self, now: datetime) -> bool:
        """Return whether it has expired. An expired note is ignored everywhere; only its file remains for its owner."""
        return self.expires is not None and self.expires <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A note's file as listed in the vault, without its content."""

    path: str
    size: int
    mtime_ns: int
