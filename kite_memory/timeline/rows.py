"""Rows of the timeline's tables as values: for readers, for a person's other machines, and counted by agent."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from kite_memory.model.event import (
    Cursor,
    Edge,
    EdgeKind,
    Event,
    EventType,
    EvidenceReference,
    Role,
    Session,
    Status,
    Where,
    evidence_reference,
    line_of,
)
from kite_memory.timeline.schema import TimelineDatabase

LATEST_MTIME = 2**63 - 1
"""Stored instead of a file's modification time if that is past the year 2262."""
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


class ReadFiles:
    """The transcripts that were read: how far, and what was counted in them."""

    def __init__(self, database: TimelineDatabase) -> None:
        self._database = database

    def cursor(self, path: str) -> Cursor | None:
        row = self._database.one("SELECT position, size, mtime_ns, identity, carry FROM files WHERE path = ?", (path,))
        return None if row is None else cursor_of(row)

    def looked_at(self, paths: Sequence[str] | None = None) -> dict[str, tuple[int, int]]:
        """Return ``{path: (size, mtime_ns)}`` of every file, or of ``paths``, as of the last read of each."""
        rows = (
            self._database.all("SELECT path, size, mtime_ns FROM files")
            if paths is None
            else self._database.all(
                "SELECT f.path, f.size, f.mtime_ns FROM json_each(?) AS asked JOIN files AS f ON f.path = asked.value",
                (json.dumps(paths),),
            )
        )
        return {path: (size, mtime_ns) for path, size, mtime_ns in rows}

    def tallies(self) -> list[EventTally]:
        """Return the counts by provider; no query reads events."""
        events: dict[str, int] = dict(self._database.all("SELECT provider, events FROM totals", ()))
        tallies = {
            provider: EventTally(provider=provider, sessions=sessions, events=events.get(provider, 0), problems=0, skipped=0)
            for provider, sessions in self._database.all("SELECT provider, COUNT(*) FROM sessions GROUP BY provider", ())
        }
        for provider, problems, skipped in self._database.all(
            "SELECT f.provider, SUM(p.count), SUM(IIF(p.reason IN (SELECT value FROM json_each(?)), 0, p.count))"
            " FROM problems AS p JOIN files AS f ON f.key = p.file GROUP BY f.provider",
            (json.dumps(_COMES_LATER),),
        ):
            known = tallies.get(provider) or EventTally(provider=provider, sessions=0, events=0, problems=0, skipped=0)
            tallies[provider] = replace(known, problems=problems, skipped=skipped)
        return [tallies[provider] for provider in sorted(tallies)]

    def counts(self) -> list[SourceCount]:
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
            for provider, files, read_bytes, known_bytes, problems, skipped, sessions, events in self._database.all(
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

    def problems(self, limit: int = 100, *, file: str = "") -> list[CountedProblem]:
        """Return the problems, most common first, of one file if ``file`` is given."""
        return [
            CountedProblem(file=file, reason=reason, count=count, first_position=position)
            for file, reason, count, position in self._database.all(
                "SELECT f.path, p.reason, p.count, p.first_position FROM problems AS p JOIN files AS f ON f.key = p.file"
                " WHERE ? IN ('', f.path) ORDER BY p.count DESC, f.path LIMIT ?",
                (file, limit),
            )
        ]


class StoredEvents:
    """The events of all sessions, as they were read."""

    def __init__(self, database: TimelineDatabase) -> None:
        self._database = database

    def of_session(self, provider: str, session: str, *, after: int = -1, limit: int = 1_000_000) -> list[Event]:
        """Return the session's events past ordinal ``after``, in the order of their source."""
        return [
            event_of(row)
            for row in self._database.all(
                SELECT_EVENT + " WHERE s.provider = ? AND s.id = ? AND e.ordinal > ? ORDER BY e.ordinal, e.seq LIMIT ?",
                (provider, session, after, limit),
            )
        ]

    def last(self, provider: str, session: str, limit: int, *, before: int | None = None) -> list[Event]:
        """Return the session's last events, oldest first; with ``before``, only those with a smaller ordinal."""
        earlier = "" if before is None else " AND e.ordinal < ?"
        rows = self._database.all(
            SELECT_EVENT + f" WHERE s.provider = ? AND s.id = ?{earlier} ORDER BY e.ordinal DESC, e.seq DESC LIMIT ?",
            (provider, session, *(() if before is None else (before,)), limit),
        )
        return [event_of(row) for row in reversed(rows)]

    def of_tools(self, provider: str, session: str, tools: Collection[str], *, among: int) -> list[Event]:
        """Return calls and results of the named ``tools`` among the session's last events, oldest first."""
        rows = self._database.all(
            f"SELECT * FROM ({SELECT_EVENT} WHERE s.provider = ? AND s.id = ? ORDER BY e.ordinal DESC, e.seq DESC LIMIT ?)"  # noqa: S608 - ours
            f" WHERE tool IN ({', '.join('?' * len(tools))})",
            (provider, session, among, *sorted(tools)),
        )
        return [event_of(row) for row in reversed(rows)]

    def last_prompt(self, provider: str, session: str) -> Event | None:
        row = self._database.one(
            SELECT_EVENT + " WHERE s.provider = ? AND s.id = ? AND e.type = 'user_message'"
            " ORDER BY e.ordinal DESC, e.seq DESC LIMIT 1",
            (provider, session),
        )
        return None if row is None else event_of(row)

    def prompts_between(self, provider: str, session: str, since: datetime, until: datetime) -> list[Event]:
        """Return the user messages of a session in a period."""
        found = self._database.all(
            SELECT_EVENT + " WHERE s.provider = ? AND s.id = ? AND e.type = 'user_message' AND e.at >= ? AND e.at < ?"
            " ORDER BY e.ordinal, e.seq",
            (provider, session, since.isoformat(), until.isoformat()),
        )
        return self.offered([event_of(row) for row in found])

    def recent_prompts(self, limit: int) -> list[str]:
        """Return the beginnings of user messages of the sessions worked in last."""
        rows = self._database.all(
            "SELECT substr(e.text, 1, 600) FROM (SELECT key FROM sessions ORDER BY last_at DESC LIMIT 50) AS r"
            " CROSS JOIN events AS e ON e.session = r.key AND e.type = 'user_message'"
            " AND e.id NOT IN (SELECT event FROM let_go) LIMIT ?",
            (limit,),
        )
        return [text for (text,) in rows]

    def spoken(self, provider: str, session: str, most: int = 10) -> int:
        """Return the number of user messages in the session, counted up to ``most``."""
        row = self._database.one(
            "SELECT count(*) FROM (SELECT 1 FROM events AS e JOIN sessions AS s ON e.session = s.key"
            " WHERE s.provider = ? AND s.id = ? AND e.type = 'user_message' LIMIT ?)",
            (provider, session, most),
        )
        return int(row[0]) if row else 0

    def ordinals(self, events: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
        """Map each triple of provider, session and event id to the event's ordinal; omit events that the session does not have."""
        found = self._database.all(
            "SELECT wanted.key, e.ordinal FROM json_each(?) AS wanted CROSS JOIN events AS e ON e.id = wanted.value ->> 2"
            " CROSS JOIN sessions AS s ON s.key = e.session WHERE s.provider = wanted.value ->> 0 AND s.id = wanted.value ->> 1",
            (json.dumps(events),),
        )
        return {events[place]: ordinal for place, ordinal in found}

    def holding(self, stretches: Sequence[tuple[str, str, int, int]]) -> list[tuple[str, str, int, int]]:
        """Return those ranges in which the session has an event. A range is provider, session, first and last ordinal."""
        held = self._database.all(
            "SELECT stretch.key FROM json_each(?) AS stretch"
            " JOIN sessions AS s ON s.provider = stretch.value ->> 0 AND s.id = stretch.value ->> 1"
            " WHERE EXISTS (SELECT 1 FROM events AS e WHERE e.session = s.key"
            " AND e.ordinal BETWEEN stretch.value ->> 2 AND stretch.value ->> 3) ORDER BY stretch.key",
            (json.dumps(stretches),),
        )
        return [stretches[place] for (place,) in held]

    def evidence(self, reference: EvidenceReference) -> list[Event]:
        """Return the events that a citation names, all read from one line; empty if the timeline does not hold them.

        A forked transcript's copy of a line is stored under the first session that showed it, so the session need not match. Where
        lines of several sessions begin alike, that of the named session comes first; the session may be given by a prefix.
        """
        prefix = reference.event
        return [
            event_of(row)
            for row in self._database.all(
                SELECT_EVENT_FIRST + " WHERE e.id >= ? AND e.id < ? AND s.provider = ?"
                " ORDER BY s.id = ? DESC, SUBSTR(s.id, 1, ?) = ? DESC, e.ordinal LIMIT 20",
                (prefix, prefix + "\U0010ffff", reference.provider, reference.session, len(reference.session), reference.session),
            )
        ]

    def line(self, reference: EvidenceReference) -> list[Event]:
        """Return the events of `evidence` that were certainly read from the referenced line."""
        found = self.evidence(reference)
        return [event for event in found if line_of(event.id) == line_of(found[0].id)]

    def citation(self, event: str) -> str:
        """Return the citation of the event; empty if there is no such event."""
        found = self._database.all(
            "SELECT s.provider, s.id FROM events AS e JOIN sessions AS s ON s.key = e.session WHERE e.id = ?", (event,)
        )
        return evidence_reference(found[0][0], found[0][1], event) if found else ""

    def edges(self, provider: str, session: str) -> list[Edge]:
        known = self._database.one("SELECT key FROM sessions WHERE provider = ? AND id = ?", (provider, session))
        rows = self._database.all("SELECT kind, source, target FROM edges WHERE session = ?", known) if known else []
        return [Edge(kind=EdgeKind(kind), source=source, target=target) for kind, source, target in rows]

    def offered(self, events: Sequence[Event]) -> list[Event]:
        """Return the events without those that were forgotten."""
        gone = {name for (name,) in self._database.all("SELECT event FROM let_go")} if events else set()
        return [event for event in events if not gone or gone.isdisjoint((event.id, line_of(event.id)))]

    def changed_since(self, since: Since, limit: int) -> tuple[list[Event], Since]:
        """Return at most ``limit`` events that were added or amended after ``since``, and up to where that is.

        Fewer than ``limit`` are the last.
        """
        newest, last_change = self._database.all("SELECT (SELECT MAX(seq) FROM events), (SELECT MAX(number) FROM amended)", ())[0]
        amended = self._database.all(_AMENDED, (since.change, since.row, ELSEWHERE, limit))
        new = self._database.all(_NEW, (since.row, ELSEWHERE, limit - len(amended))) if len(amended) < limit else []
        change = amended[-1][0] if len(amended) == limit else max(since.change, last_change or 0)
        row = (
            since.row if len(amended) == limit else new[-1][0] if len(amended) + len(new) == limit else max(since.row, newest or 0)
        )
        return [event_of(found[1:]) for found in (*amended, *new)], Since(row=row, change=change)

    def numbered(self, numbers: Sequence[int]) -> dict[int, Event]:
        marks = ",".join("?" * len(numbers))
        query = SELECT_EVENT_FIRST.replace(" FROM ", ", e.seq FROM ", 1) + f" WHERE e.seq IN ({marks})"
        return {row[-1]: event_of(row) for row in self._database.all(query, numbers)}
