"""Result of reading one transcript: events, problems, and the cursor to continue from."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from kite_memory.model.event import Event, Session
from kite_memory.model.provenance import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Position at which reading a source stopped. Committed together with the events it covers.

    ``position`` is a byte offset in append-only files; for a document that is rewritten, the number of its bytes that were read.
    ``identity`` and ``carry`` are defined by the source that wrote them (JSON text, each a few kB at most): what distinguishes this
    file from another one of the same name, and the state that later lines need (open tool calls, queued prompts, counters, which
    messages of a document were returned already). ``size`` and ``mtime_ns`` are the file's when it was read: if they are unchanged,
    there is nothing to do.
    """

    position: int
    size: int
    mtime_ns: int
    identity: str = ""
    carry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a transcript that could not be parsed; ``reason`` is short and from a small set, so that it can be counted."""

    file: str
    position: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResult:
    """Result of reading one transcript once.

    ``more`` means that reading stopped at its byte budget, not at the end of the file. ``session`` is ``None`` while the session is
    unknown (an empty file, or metadata only). ``amends`` means that the agent rewrites its records: an event whose id is stored
    already replaces the stored one. Without it, the event stored first stays. ``passages`` are texts that became no events, whole
    and unredacted.
    """

    path: str
    session: Session | None
    events: tuple[Event, ...]
    problems: tuple[Problem, ...]
    cursor: Cursor
    more: bool = False
    amends: bool = False
    passages: tuple[Passage, ...] = ()


Result = TypeVar("Result", bound=ReadResult)

EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
"""No agent wrote transcripts before this."""
IMPOSSIBLE_TIME = "impossible time"
_UNDATED = datetime.fromtimestamp(0, UTC)
"""Time that sources give to a record without one; not counted as a problem."""


def in_time(read_result: Result, *, latest: datetime, before: datetime | None) -> Result:
    """Return the result with every time before `EARLIEST` or after ``latest`` replaced, and counted as a problem.

    The replacement is the time of the previous event (``before`` is that of the session's last event before this result), else of
    the next one. Without either the time stays.
    """

    def possible(at: datetime) -> bool:
        return EARLIEST <= at <= latest

    session = read_result.session
    if all(possible(event.at) for event in read_result.events) and (session is None or possible(session.started)):
        return read_result
    good = next((event.at for event in read_result.events if possible(event.at)), before)
    wrong = {event.where.start for event in read_result.events if not possible(event.at) and event.at != _UNDATED}
    last = before or good
    events: list[Event] = []
    for event in read_result.events:
        last = event.at if possible(event.at) else last
        events.append(event if last is None or possible(event.at) else replace(event, at=last))
    if session is not None and good is not None and not possible(session.started):
        session = replace(session, started=good)
    problems = [Problem(file=read_result.path, position=position, reason=IMPOSSIBLE_TIME) for position in sorted(wrong)]
    return replace(read_result, session=session, events=tuple(events), problems=(*read_result.problems, *problems))
