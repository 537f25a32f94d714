"""What a new note is held against, and what somebody who read both says of a pair."""

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
