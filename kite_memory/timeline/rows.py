"""Rows of the timeline's tables as values: for readers, for a person's other machines, and counted by agent."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from kite_memory.model.event import Cursor, Event, EventType, Role, Session, Status, Where

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a query with its values and returns all rows."""

_COMES_LATER = ("busy, later", "file cannot be read", "file is gone", "half-written document", "left open by its owner")
"""Reasons that refer to an attempt to read a file, not to a record in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCount:
    """Counts for one provider.

    ``skipped`` are records that were skipped; ``problems_by_agent`` also includes attempts to read a file that failed.
    """

    provider: str
    files: int
    sessions: int
    events: int
    problems: int
    skipped: int
    read_bytes: int
    known_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTally:
    """Like `SourceCount`, without the counts that require a look at every file."""

    provider: str
    sessions: int
    events: int
    problems: int
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedProblem:
    file: str
    reason: str
    count: int
    first_position: int


def tallies_by_agent(rows: Rows) -> list[EventTally]:
    """Return the counts by provider; no query reads events."""
    events: dict[str, int] = dict(rows("SELECT provider, events FROM totals", ()))
    tallies = {
        provider: EventTally(provider=provider, sessions=sessions, events=events.get(provider, 0), problems=0, skipped=0)
        for provider, sessions in rows("SELECT provider, COUNT(*) FROM sessions GROUP BY provider", ())
    }
    for provider, problems, skipped in rows(
        "SELECT f.provider, SUM(p.count), SUM(IIF(p.reason IN (SELECT value FROM json_each(?)), 0, p.count))"
        " FROM problems AS p JOIN files AS f ON f.key = p.file GROUP BY f.provider",
        (json.dumps(_COMES_LATER),),
    ):
        known = tallies.get(provider) or EventTally(provider=provider, sessions=0, events=0, problems=0, skipped=0)
        tallies[provider] = replace(known, problems=problems, skipped=skipped)
    return [tallies[provider] for provider in sorted(tallies)]


def counts_by_agent(rows: Rows) -> list[SourceCount]:
    """Return the counts by provider, with files. Looks at every file."""
    return [
        SourceCount(
            provider=provider,
            files=files,
            sessions=sessions,
            events=events,
            problems=problems or 0,
            skipped=skipped or 0,
            read_bytes=read_bytes,
            known_bytes=known_bytes,
        )
        for provider, files, read_bytes, known_bytes, problems, skipped, sessions, events in rows(
            "SELECT provider, COUNT(*), SUM(position), SUM(size),"
            " (SELECT SUM(p.count) FROM problems AS p JOIN files AS g ON g.key = p.file WHERE g.provider = f.provider),"
            " (SELECT SUM(p.count) FROM problems AS p JOIN files AS g ON g.key = p.file WHERE g.provider = f.provider"
            "  AND p.reason NOT IN (SELECT value FROM json_each(?))),"
            " (SELECT COUNT(*) FROM sessions AS s WHERE s.provider = f.provider),"
            " COALESCE((SELECT t.events FROM totals AS t WHERE t.provider = f.provider), 0)"
            " FROM files AS f GROUP BY provider ORDER BY provider",
            (json.dumps(_COMES_LATER),),
        )
    ]


def problems_by_agent(rows: Rows, limit: int, file: str) -> list[CountedProblem]:
    """Return the problems, most common first, of one file if ``file`` is given."""
    return [
        CountedProblem(file=file, reason=reason, count=count, first_position=position)
        for file, reason, count, position in rows(
            "SELECT f.path, p.reason, p.count, p.first_position FROM problems AS p JOIN files AS f ON f.key = p.file"
            " WHERE ? IN ('', f.path) ORDER BY p.count DESC, f.path LIMIT ?",
            (file, limit),
        )
    ]


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


ELSEWHERE = "another machine"
"""Identity of the file of events that were not read on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """Up to where the events are known: the last row, and the last change to a row."""

    row: int = 0
    change: int = 0


_NEW = SELECT_EVENT_FIRST.replace("SELECT ", "SELECT e.seq, ", 1) + " WHERE e.seq > ? AND f.identity <> ? ORDER BY e.seq LIMIT ?"
_AMENDED = (
    SELECT_EVENT_FIRST.replace("SELECT ", "SELECT a.number, ", 1).replace(
        "FROM events AS e", "FROM amended AS a CROSS JOIN events AS e ON e.seq = a.event"
    )
    + " WHERE a.number > ? AND e.seq <= ? AND f.identity <> ? ORDER BY a.number LIMIT ?"
)


def changes_since(rows: Rows, since: Since, limit: int) -> tuple[list[Event], Since]:
    """Return at most ``limit`` events that were added or amended after ``since``, and up to where that is.

    Fewer than ``limit`` are the last.
    """
    newest, last_change = rows("SELECT (SELECT MAX(seq) FROM events), (SELECT MAX(number) FROM amended)", ())[0]
    amended = rows(_AMENDED, (since.change, since.row, ELSEWHERE, limit))
    new = rows(_NEW, (since.row, ELSEWHERE, limit - len(amended))) if len(amended) < limit else []
    change = amended[-1][0] if len(amended) == limit else max(since.change, last_change or 0)
    row = since.row if len(amended) == limit else new[-1][0] if len(amended) + len(new) == limit else max(since.row, newest or 0)
    return [event_of(found[1:]) for found in (*amended, *new)], Since(row=row, change=change)
