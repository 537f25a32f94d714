"""What agents had on their lists, as their transcripts show: a state that nobody had to save."""

import sqlite3
from collections.abc import Collection, Sequence

from kite_memory.model.event import Event
from kite_memory.timeline.open_todos import left
from kite_memory.timeline.store import Timeline
from kite_memory.tools.store import State, Todo

_HEARD_SESSIONS, _HEARD_EVENTS = 3, 300


def working(timeline: Timeline, project: str, session: str, *, projects: Collection[str] | None = None) -> list[State]:
    """Of one session, or of a project's last ones; the last first. With ``projects``, no event of another's session is read."""
    return [
        State(
            ai=each.session.provider,
            session=each.session.id,
            project=each.session.project,
            todos=tuple(Todo(text=item.text, status=item.standing) for item in each.listed.items),
            working_notes="",
            context_summary="",
            saved=each.listed.at,
        )
        for each in left(timeline, project=project, session=session, projects=projects)
    ]


def heard(timeline: Timeline, project: str) -> Sequence[Event]:
    """What happened in a project's last sessions: each session's events in order, as far as transcripts were read by now."""
    try:
        sessions = timeline.last_sessions(project, _HEARD_SESSIONS)
        return [event for each in sessions for event in timeline.last_events(each.provider, each.id, _HEARD_EVENTS)]
    except sqlite3.Error:
        return ()
