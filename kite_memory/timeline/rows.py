"""Conversion of rows of the timeline's tables into values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from kite_memory.model.event import Event, EventType, Role, Session, Status, Where
from kite_memory.model.read_result import Cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """A session and how far the timeline has read it.

    ``quiet_since`` is Unix time: the time of the last event or of its commit, whichever is earlier.
    """

    session: Session
    last_ordinal: int
    quiet_since: float


SELECT_EVENT = (
    "SELECT e.id, s.id, s.provider, e.ordinal, e.at, e.role, e.type, e.text, f.path, e.start, e.end,"
    " e.tool, e.command, e.path, e.status, e.parent, e.call"
    " FROM events AS e JOIN sessions AS s ON s.key = e.session JOIN files AS f ON f.key = e.file"
)

SELECT_EVENT_FIRST = SELECT_EVENT.replace(" JOIN ", " CROSS JOIN ")
"""The same for queries whose other tables select the events: with a plain join SQLite would begin with all sessions of a provider
and read all their events.
"""

SELECT_STATE = (
    "SELECT provider, id, project, cwd, branch, started, parent, title, last_ordinal, last_at, committed_at FROM sessions"
)

SELECT_LAST_ORDINALS = "SELECT provider, id, last_ordinal FROM sessions"
SELECT_STATE_PAGE = f"{SELECT_STATE.replace(' FROM', ', key FROM')} WHERE key > ? ORDER BY key LIMIT ?"


def event_of(row: Sequence[Any]) -> Event:
    return Event(
        id=row[0],
        session=row[1],
        provider=row[2],
        ordinal=row[3],
        at=datetime.fromisoformat(row[4]),
        role=cast(Role, row[5]),
        type=EventType(row[6]),
        text=row[7],
        where=Where(file=row[8], start=row[9], end=row[10]),
        tool=row[11],
        command=row[12],
        path=row[13],
        status=cast(Status, row[14]),
        parent=row[15],
        call=row[16],
    )


def session_of(row: Sequence[Any]) -> Session:
    provider, session, project, cwd, branch, started, parent, title = row
    return Session(
        provider=provider,
        id=session,
        project=project,
        cwd=cwd,
        branch=branch,
        started=datetime.fromisoformat(started),
        parent=parent,
        title=title,
    )


def state_of(row: Sequence[Any]) -> SessionState:
    return SessionState(
        session=session_of(row[:8]),
        last_ordinal=row[8],
        quiet_since=min(datetime.fromisoformat(row[9]).timestamp(), row[10]),
    )


def cursor_of(row: Sequence[Any]) -> Cursor:
    position, size, mtime_ns, identity, carry = row
    return Cursor(position=position, size=size, mtime_ns=mtime_ns, identity=identity, carry=carry)
