"""What the vault should become: decided first, done after, printed by ``--dry-run``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from kite_memory.model.note import Note

Ruling = Literal["replaces", "conflicts", "neither"]
"""Of two notes, what the newer does to the older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A note that is there, and how near its meaning comes to that of the one asked about: 1 for the same."""

    note: Note
    cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """``near`` with the likeliest first. ``rarity`` says how much each of the words of all these notes tells, in small letters.

    A word that is not in it tells nothing.
    """

    near: tuple[Near, ...] = ()
    rarity: Mapping[str, float] | None = None


Surround = Callable[[Note], Surroundings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two notes of which the newer may make the older untrue."""

    newer: Note
    older: Note
    likely: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    note: Note
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Amend:
    """Add to a note that is there: evidence, and ``addition`` (markdown, may be empty) at its end.

    ``absorbs`` is the id of the draft that ends here instead of becoming a note of its own. ``importance`` is what it has at least
    from now on.
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
    """Create ``note`` and mark the old one as replaced by it. Several may name the same note, which is created once.

    ``late``: the one that is there is the newer, and ``note`` comes in as replaced by it.
    """

    note: Note
    old_id: str
    old_path: str
    because: str
    late: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    title: str
    because: str


Action = Create | Amend | Supersede | Skip
