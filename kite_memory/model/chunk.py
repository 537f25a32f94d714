"""A finished stretch of one session: what is distilled at one go."""

from dataclasses import dataclass
from datetime import date

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
