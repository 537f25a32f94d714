"""What one look at a transcript yields: events, problems, and where to go on from."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from kite_memory.model.event import Event, Session
from kite_memory.model.provenance import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where reading a source stopped. Committed together with the events it covers.

    ``position`` is a byte offset in append-only files; of a document that is rewritten, how many of its bytes were taken in.
    ``identity`` and ``carry`` belong to the source that wrote them (JSON text, each a few kB at most): what tells this file
    from another one under the same name, and what a later line needs to know of earlier ones (open tool calls, prompts
    waiting in a queue, counters; which messages of a document were told already).
    ``size`` and ``mtime_ns`` are the file's when looked at: equal ones mean that there is nothing to do.
    """

    position: int
    size: int
    mtime_ns: int
    identity: str = ""
    carry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that could not be understood; ``reason`` is short and comes from a small set, so that it can be counted."""

    file: str
    position: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadResult:
    """``more`` says that the look ended on its byte budget, not at the end of the file.

    ``session`` is ``None`` while nothing has told who is speaking (an empty file, or metadata only).
    ``amends`` says that the agent rewrites what it has written: an event whose id the session holds already is what the
    transcript says of it now, and replaces what was known in its place. Without it, what was told first stays.
    ``passages`` are texts that no events were made of, whole and unredacted.
    """

    path: str
    session: Session | None
    events: tuple[Event, ...]
    problems: tuple[Problem, ...]
    cursor: Cursor
    more: bool = False
    amends: bool = False
    passages: tuple[Passage, ...] = ()


EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
"""Before this no agent wrote a transcript."""
IMPOSSIBLE_TIME = "impossible time"
_UNDATED = datetime.fromtimestamp(0, UTC)
"""What sources give to a record that has no time; that is no problem."""


def in_time(look: ReadResult, *, latest: datetime, before: datetime | None) -> ReadResult:
    """The look with each time before `EARLIEST` or after ``latest`` replaced by a neighbour's, and counted as a problem.

    The neighbour is the event before it, else the next one, else the session's last event ``before`` this look. Where there is
    none, nothing is known that would be better, and the time stays.
    """

    def possible(at: datetime) -> bool:
        return EARLIEST <= at <= latest

    session = look.session
    if all(possible(event.at) for event in look.events) and (session is None or possible(session.started)):
        return look
    good = next((event.at for event in look.events if possible(event.at)), before)
    wrong = {event.where.start for event in look.events if not possible(event.at) and event.at != _UNDATED}
    last = before or good
    events: list[Event] = []
    for event in look.events:
        last = event.at if possible(event.at) else last
        events.append(event if last is None or possible(event.at) else replace(event, at=last))
    if session is not None and good is not None and not possible(session.started):
        session = replace(session, started=good)
    problems = [Problem(file=look.path, position=position, reason=IMPOSSIBLE_TIME) for position in sorted(wrong)]
    return replace(look, session=session, events=tuple(events), problems=(*look.problems, *problems))
