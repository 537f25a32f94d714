"""Events and sessions read from an agent's transcript, the result of reading one, and who stated something first.

Only `redaction` makes the types of what has passed it; whatever stores or sends text demands them.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal, NewType, Protocol, TypeVar

Speaker = Literal["user", "assistant", "tool", "failure"]
"""``failure`` is a tool that failed: an explanation of the failure quotes its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A whole text of a transcript, including one that became no event or was shortened.

    It is not redacted: only hashes of it may be stored. ``at`` is Unix time, ``start`` the position of its record in the file,
    ``tool`` the name of the tool that returned it, if it has one.
    """

    text: str
    said_by: Speaker
    at: float
    start: int
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where a text occurred before: shares from 0 to 1 of its ``pairs`` of words, each the highest share found in one place.

    ``foreign`` is the share from a tool or a file, unless an agent or a person had written nearly as much before; ``failure`` the
    same for tools that failed; ``person`` is the share written by a person at any time.
    """

    pairs: int
    foreign: float = 0.0
    failure: float = 0.0
    person: float = 0.0


class Provenance(Protocol):
    """Lookup of where texts occurred before."""

    def traces(self, texts: Sequence[str]) -> Sequence[Trace]:
        """Return one trace for each text, from one search in all stored texts."""
        ...


class EdgeKind(StrEnum):
    """Kind of relation between two events."""

    NEXT = "next"
    CALLS = "calls"
    RETURNS = "returns"
    TOUCHES_FILE = "touches_file"
    RUNS_COMMAND = "runs_command"
    RAISES_ERROR_SIGNATURE = "raises_error_signature"
    DECIDES = "decides"
    RESUMES_AT = "resumes_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Directed edge between two event ids (``from`` and ``to`` in JSON).

    The target of an edge to a touched file, a command or an error signature is its own name. The source of ``decides`` and
    ``resumes_at`` is a session id.
    """

    kind: EdgeKind
    source: str
    target: str


class EventType(StrEnum):
    USER_MESSAGE = "user_message"
    ASSISTANT_MESSAGE = "assistant_message"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    COMMAND = "command"
    FILE_ACTION = "file_action"
    TEST_RESULT = "test_result"
    ERROR = "error"
    DECISION = "decision"
    RESUME_POINT = "resume_point"


Role = Literal["user", "assistant", "tool", "system"]
Status = Literal["", "ok", "failed", "denied", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Byte range ``[start, end)`` of ``file`` that an event was read from.

    For sources that are not append-only files, ``start`` counts messages instead of bytes and ``end`` equals ``start``.
    """

    file: str
    start: int
    end: int


def evidence_reference(provider: str, session: str, event: str) -> str:
    """Return a citation of an event: ``<provider>:<session>#<first eight characters of the event's id>``."""
    return f"{provider}:{session}#{event[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a session.

    ``id`` is unique over all sessions: the agent's own uuid where it has one, else a hash of what cannot change. Several events
    read from one line are ``<uuid>``, ``<uuid>:1``, ``<uuid>:2``: the first eight characters always identify the line. ``ordinal``
    rises with the position in the source; ``at`` may not. ``call`` is the agent's own name of a tool call, shared by the call and
    its result. ``parent`` is an event id, or empty. ``whole`` is the text before it was shortened, if it was; it is not redacted
    and never stored.
    """

    id: str
    session: str
    provider: str
    ordinal: int
    at: datetime
    role: Role
    type: EventType
    text: str
    where: Where
    tool: str = ""
    command: str = ""
    path: str = ""
    status: Status = ""
    parent: str = ""
    call: str = ""
    whole: str = ""

    @property
    def reference(self) -> str:
        return evidence_reference(self.provider, self.session, self.id)


PLANNING = "ExitPlanMode"
"""Tool name of a `EventType.DECISION` that is a plan approved by the user."""


def opens_turn(event: Event) -> bool:
    """Return whether the user starts a turn with this event: by a prompt, or by approving a plan."""
    plan = event.type is EventType.DECISION and event.tool == PLANNING
    return event.role == "user" and (event.type is EventType.USER_MESSAGE or plan)


def merged_by_time(*each: Sequence[Event]) -> list[Event]:
    """Merge sequences of events by time; the order within each is kept."""
    return [event for _, event in heapq.merge(*map(_in_time, each), key=lambda pair: pair[0])]


def _in_time(events: Sequence[Event]) -> Iterator[tuple[datetime, Event]]:
    """Yield the events with times that never decrease, so that a clock that jumps back does not change the order."""
    latest: datetime | None = None
    for event in events:
        latest = event.at if latest is None else max(latest, event.at)
        yield latest, event


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation with an agent.

    ``parent`` is the id of the session that this sub-agent works for, or that this session was forked from. ``project`` is a short
    name of the repository (or folder) it works on; worktrees of one repository share it.
    """

    id: str
    provider: str
    started: datetime
    project: str = ""
    cwd: str = ""
    branch: str = ""
    parent: str = ""
    title: str = ""


def line_of(event: str) -> str:
    """Return the id that all events of one transcript line share: ``<line>``, ``<line>:1``, ``<line>:2``."""
    line, colon, number = event.rpartition(":")
    return line if colon and number.isdecimal() else event


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReference:
    """A parsed citation."""

    provider: str
    session: str
    event: str

    @staticmethod
    def parse(text: str) -> "EvidenceReference | None":
        """Parse what `evidence_reference` returned; return ``None`` for anything else."""
        provider, colon, rest = text.partition(":")
        session, sharp, event = rest.rpartition("#")
        if not (colon and sharp and provider and session and event):
            return None
        return EvidenceReference(provider=provider, session=session, event=event)


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


RedactedText = NewType("RedactedText", str)
"""Text without secrets. A part of it, or several joined, is plain text again."""

RedactedResult = NewType("RedactedResult", ReadResult)
"""Result of reading a transcript without secrets, except in its passages, of which only hashes are stored."""
