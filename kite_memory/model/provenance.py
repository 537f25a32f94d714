"""Who said something first, as far as is known of all that was said in a project."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Speaker = Literal["user", "assistant", "tool", "failure"]
"""``failure`` is a tool that failed: what it printed is quoted by whoever found out why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text of a transcript, whole: also what becomes no event, or one that is cut.

    It is not redacted: nothing of it may be stored but hashes. ``at`` is Unix time, ``start`` the place of its record in the file,
    ``tool`` the tool that brought it in, where that has a name.
    """

    text: str
    said_by: Speaker
    at: float
    start: int
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where a text stood before: shares from 0 to 1 of its ``pairs`` of words, each the most that stands in one place.

    ``foreign`` is what a tool or a file said, unless an agent or a person had said nearly as much before; ``failure`` the same of
    what failed; ``person`` is what a person said, whenever that was.
    """

    pairs: int
    foreign: float = 0.0
    failure: float = 0.0
    person: float = 0.0


class Provenance(Protocol):
    def traces(self, texts: Sequence[str]) -> Sequence[Trace]:
        """Of each text, in one look at all that is known."""
        ...
