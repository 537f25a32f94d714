"""Who stated something first, as far as the stored texts of a project show."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Speaker = Literal["user", "assistant", "tool", "failure"]
"""``failure`` is a tool that failed: an explanation of the failure quotes its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A whole text of a transcript, including one that became no event or was shortened.

    It is not redacted: only hashes of it may be stored. ``at`` is Unix time, ``start`` the position of its record in the file,
    ``tool`` the name of the tool that returned it, if it has one.
    """

    text: str
    said_by: Speaker
    at: float
    start: int
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where a text occurred before: shares from 0 to 1 of its ``pairs`` of words, each the highest share found in one place.

    ``foreign`` is the share from a tool or a file, unless an agent or a person had written nearly as much before; ``failure`` the
    same for tools that failed; ``person`` is the share written by a person at any time.
    """

    pairs: int
    foreign: float = 0.0
    failure: float = 0.0
    person: float = 0.0


class Provenance(Protocol):
    """Lookup of where texts occurred before."""

    def traces(self, texts: Sequence[str]) -> Sequence[Trace]:
        """Return one trace for each text, from one search in all stored texts."""
        ...
