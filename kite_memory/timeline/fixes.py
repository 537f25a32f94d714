"""Failures by their signature, and what fixed the last failure like a given one."""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from kite_memory.model.event import Event, EventType, evidence_reference
from kite_memory.model.hit import Fix
from kite_memory.text.error_signature import signatures
from kite_memory.text.shell import purposes, writes
from kite_memory.timeline.runs import PREPARES, needed, purposes_of, reaches, tests_went_well, went_well
from kite_memory.timeline.schema import Rows, TimelineDatabase, next_of_backlog

_FAILING = (EventType.TOOL_RESULT, EventType.TEST_RESULT)
_EVENT = (
    "SELECT seq, text, parent, type, type = 'error' OR status = 'failed' AND type IN ('tool_result', 'test_result')"
    " FROM events WHERE id = ?"
)
_EARLIER = (
    "SELECT seq, text, parent, type FROM events WHERE seq >= ? AND seq < ?"
    " AND (type = 'error' OR status = 'failed' AND type IN ('tool_result', 'test_result'))"
)
_BACKLOG = 5_000
"""Events of an earlier schema handled in one commit, which takes some milliseconds."""
_SESSIONS = 200
_OCCURRENCES = 12
"""Of a signature in a project, the newest occurrences, and as many of its sessions. Each failure counts twice, as result and as
error.
"""
_TRIED = 3
_WINDOW = 160
_SOON = timedelta(hours=3)
_LATEST = datetime.max.replace(tzinfo=UTC) - _SOON
_STEPS = 6
_FILES = 6
_BEFORE = 60
_SAID = 2_000
"""Characters of a command's output that are read at its beginning and at its end."""


def sign(database: sqlite3.Connection, events: Sequence[Event], *, amended: bool) -> None:
    """Store the signatures of the failures among newly written events; ``amended`` events may no longer be failures."""
    for event in events:
        if amended or event.type is EventType.ERROR or (event.status == "failed" and event.type in _FAILING):
            for seq, text, parent, type, failed in database.execute(_EVENT, (event.id,)).fetchall():
                database.execute("DELETE FROM raised WHERE event = ?", (seq,))
                if failed:
                    _raise(database, seq, text, parent if type == "test_result" else "")


def sign_backlog(database: sqlite3.Connection) -> None:
    """Store signatures for some events of an earlier schema, newest first."""
    if between := next_of_backlog(database, "unsigned", _BACKLOG):
        for seq, text, parent, type in database.execute(_EARLIER, between).fetchall():
            _raise(database, seq, text, parent if type == "test_result" else "")


def _raise(database: sqlite3.Connection, event: int, text: str, parent: str) -> None:
    """Store the signatures of one failure.

    For a test run the whole output is used, since its summary only names what failed, not why.
    """
    for (output,) in database.execute("SELECT text FROM events WHERE id = ? AND type = 'tool_result'", (parent,)) if parent else ():
        text = f"{text}\n{output}"
    for signature in signatures(text):
        database.execute("INSERT OR IGNORE INTO signatures (text) VALUES (?)", (signature,))
        database.execute(
            "INSERT OR IGNORE INTO raised SELECT g.key, e.session, e.seq FROM signatures AS g JOIN events AS e"
            " WHERE g.text = ? AND e.seq = ?",
            (signature, event),
        )


def fix_of(rows: Rows, event: int) -> Fix | None:
    """Return how this failure went away in its session, if it did so soon after."""
    for row in rows(
        "SELECT e.session, e.ordinal, e.at, e.command, e.call, s.provider, s.id"
        " FROM events AS e JOIN sessions AS s ON s.key = e.session WHERE e.seq = ?",
        (event,),
    ):
        failure = _failure("", *row)
        return _after(rows, failure, failure.command or _command_of(rows, failure))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    signature: str
    session: int
    ordinal: int
    at: datetime
    command: str
    call: str
    provider: str
    session_id: str


_OCCURRED = (
    "WITH recent AS (SELECT key FROM sessions WHERE project = ? AND id <> ? ORDER BY last_at DESC LIMIT ?),"
    " occurred AS ("
    "  SELECT r.event FROM recent CROSS JOIN raised AS r ON r.session = recent.key"
    "  WHERE r.signature = (SELECT key FROM signatures WHERE text = ?) ORDER BY r.event DESC LIMIT ?)"
    " SELECT e.seq, e.session, e.ordinal, e.at, e.command, e.call, s.provider, s.id"
    " FROM occurred CROSS JOIN events AS e ON e.seq = occurred.event JOIN sessions AS s ON s.key = e.session"
    " WHERE e.id NOT IN (SELECT event FROM let_go)"
)


def _failures(rows: Rows, project: str, session: str, signatures: Sequence[str]) -> Iterator[_Failure]:
    """Return occurrences of the signatures in the project's other sessions, newest first."""
    found: list[tuple[int, _Failure]] = []
    for signature in signatures:
        occurred = rows(_OCCURRED, (project, session, _SESSIONS, signature, _OCCURRENCES))
        found += ((seq, _failure(signature, *row)) for seq, *row in occurred)
    found.sort(key=lambda pair: -pair[0])
    return (failure for _, failure in found)


def _failure(signature: str, session: int, ordinal: int, at: str, command: str, call: str, provider: str, name: str) -> _Failure:
    return _Failure(
        signature=signature,
        session=session,
        ordinal=ordinal,
        at=datetime.fromisoformat(at),
        command=command,
        call=call,
        provider=provider,
        session_id=name,
    )


def _command_of(rows: Rows, failure: _Failure) -> str:
    """Return the command of the failing call, where the failure itself does not name it."""
    if not failure.call:
        return ""
    before = rows(
        "SELECT call, command FROM events WHERE session = ? AND ordinal <= ? AND type IN ('command', 'error', 'test_result')"
        " ORDER BY ordinal DESC LIMIT ?",
        (failure.session, failure.ordinal + 1, _BEFORE),
    )
    return next((command for call, command in before if call == failure.call and command), "")


def _done_by(command: str) -> frozenset[str]:
    return purposes_of(command) | (purposes(command) & PREPARES)


def _tests_failed(rows: Rows, failure: _Failure, doing: frozenset[str]) -> bool:
    commands = rows(
        "SELECT text FROM events WHERE session = ? AND ordinal BETWEEN ? AND ? AND call = ? AND type = 'test_result'"
        " AND status = 'failed' LIMIT 1",
        (failure.session, failure.ordinal - _BEFORE, failure.ordinal + _BEFORE, failure.call),
    )
    return bool(failure.call and commands) and not tests_went_well(commands[0][0], doing)


@dataclass(slots=True)
class _Between:
    steps: dict[str, None] = field(default_factory=dict)
    files: dict[str, None] = field(default_factory=dict)
    said: str = ""


def _after(rows: Rows, failure: _Failure, failed: str) -> Fix | None:
    """Return what happened until a command with the same purpose succeeded, or ``None`` if none soon did."""
    doing = purposes_of(failed) or purposes(failed)
    goal = needed(doing, tests=_tests_failed(rows, failure, doing))
    if not goal:
        return None
    between = _Between()
    running: dict[str, str] = {}
    failing = {failure.call}
    until = (min(failure.at, _LATEST) + _SOON).isoformat(
        timespec="milliseconds"
    )  # in the store's format, whose text order is time order
    succeeded: tuple[str, str, str] | None = None
    for name, at, type, command, path, status, call, text in rows(
        "SELECT id, at, type, command, path, status, call, CASE WHEN type = 'file_action' THEN substr(text, 1, 8)"
        " WHEN type NOT IN ('tool_result', 'user_message') THEN '' WHEN length(text) <= 2 * ? THEN text"
        " ELSE substr(text, 1, ?) || char(10) || substr(text, -?) END FROM events"
        " WHERE session = ? AND ordinal > ? AND id NOT IN (SELECT event FROM let_go) ORDER BY ordinal, seq LIMIT ?",
        (_SAID, _SAID, _SAID, failure.session, failure.ordinal, _WINDOW),
    ):
        if succeeded and call != succeeded[0]:
            break  # the successful call has no more events, so its tests did not fail either
        if at > until:
            break
        match type:
            case "command":
                running[call] = command
            case "file_action" if text != "read":
                between.files.setdefault(path)
                between.said = ""
            case "user_message":
                between.said = text.strip()
            case "error" | "test_result" if status == "failed":
                failing.add(call)
                succeeded = None
            case "tool_result" if call in running and status in ("", "ok") and call not in failing:
                if goal <= _done_by(running[call]) and reaches(running[call], failed):
                    if went_well(running[call], text):
                        succeeded = (call, name, at)
                elif purposes(running[call]) or writes(running[call]):
                    between.steps.setdefault(running[call])
                    between.said = ""
            case "test_result" if call in running and status == "ok" and call not in failing:
                if goal <= _done_by(running[call]) and reaches(running[call], failed):
                    succeeded = (call, name, at)
            case _:
                pass
    if succeeded is None:
        return None
    call, name, at = succeeded
    return Fix(
        signature=failure.signature,
        failed=failed,
        worked=running[call],
        at=datetime.fromisoformat(at),
        evidence=evidence_reference(failure.provider, failure.session_id, name),
        steps=tuple(between.steps)[-_STEPS:],
        files=tuple(between.files)[:_FILES],
        said=between.said,
    )


class KnownFixes:
    """Lookup of how earlier failures were fixed, according to the timeline."""

    def __init__(self, database: TimelineDatabase) -> None:
        self._database = database

    def fix(self, *, project: str, session: str, signatures: Sequence[str], command: str) -> Fix | None:
        """See `model.hit.Fixes.fix`."""
        wanted = purposes(command)
        if not wanted or not project:
            return None
        tried: set[tuple[int, str]] = set()
        for failure in _failures(self._database.all, project, session, signatures):
            if (failure.session, failure.call) in tried:
                continue
            tried.add((failure.session, failure.call))
            failed = failure.command or _command_of(self._database.all, failure)
            if purposes(failed) & wanted and (fix := _after(self._database.all, failure, failed)):
                return fix
            if len(tried) == _TRIED:
                break
        return None

    def fix_of(self, event: Event) -> Fix | None:
        """Return how this failure went away in its session, if it did so soon after."""
        row = self._database.one("SELECT seq FROM events WHERE id = ?", (event.id,))
        return fix_of(self._database.all, row[0]) if row is not None else None
