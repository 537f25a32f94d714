"""Planned changes of the vault: computed first, applied later, printed by ``--dry-run``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from kite_memory.model.note import Note

Ruling = Literal["replaces", "conflicts", "neither"]
"""What the newer of two notes does to the older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarNote:
    """An existing note and its similarity to the note in question: ``cosine`` is 1 for the same meaning."""

    note: Note
    cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Existing notes near a note.

    ``near`` is sorted, likeliest first. ``rarity`` is the weight of each word of all these notes, in lower case; a word missing
    from it has no weight.
    """

    near: tuple[SimilarNote, ...] = ()
    rarity: Mapping[str, float] | None = None


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
