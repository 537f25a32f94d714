"""What was left to do in sessions, from their events."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kite_memory.model.event import Session
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.todos import TOOLS, Listed, todos

_SESSIONS = 8
_EVENTS = 2_000
"""Of a session, the last ones are looked at: what was not listed since is done, or forgotten by the agent as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    session: Session
    listed: Listed


def left(timeline: Timeline, *, project: str = "", session: str = "", projects: Collection[str] | None = None) -> Iterator[Left]:
    """Of one session, or of a project's last ones; the last first. With ``projects``, no event of another's session is read."""
    chosen = timeline.sessions_named(session) if session else timeline.last_sessions(project, _SESSIONS)
    for each in chosen:
        if session and each.id != session:  # an id that begins so
            continue
        if projects is not None and each.project not in projects:
            continue
        listed = todos(timeline.offered(timeline.of_tools(each.provider, each.id, TOOLS, among=_EVENTS)))
        if listed is not None:
            yield Left(session=each, listed=listed)
