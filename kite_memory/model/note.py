"""A note in the vault: the one kind of memory."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kite_memory.model.record import Origin


class Scope(StrEnum):
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
    """``path`` is relative to the vault, with ``/`` between parts. ``body`` is markdown without the frontmatter.

    ``id`` is empty for a file that a person made without one; its path is then its name. ``links`` are the targets of the
    wikilinks in the body; ``supersedes`` and ``superseded_by`` are targets of the same sort, without brackets. ``entities``
    are the names of what it speaks about, linked or not. ``evidence`` holds references as
    `model.event.evidence_reference` writes them.

    ``conflicts`` are notes that this one may contradict, which a person is to say. It was true until ``valid_until``, where
    something has replaced it. ``anchors`` are files that it speaks of with their hash when it was made (``path@hash``), and
    ``drifted`` is when one of them was first found to be another. ``branch`` is empty for what holds on all of them.
    ``review`` is what else a person is asked about it.
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
        """From then on it counts for nothing, whoever asks; only its owner finds the file."""
        return self.expires is not None and self.expires <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A note's file as a listing of the vault shows it, unread."""

    path: str
    size: int
    mtime_ns: int
