"""A finished stretch of one session: what is distilled at one go."""

from dataclasses import dataclass

from kite_memory.model.event import Event, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """``id`` depends only on the session and the ids of its first and last event, so a rebuilt timeline names it the same."""

    id: str
    session: Session
    events: tuple[Event, ...]
