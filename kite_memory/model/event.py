"""Events and sessions read from an agent's transcript."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal


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


PLANNING = "ExitPlanMode"
"""Tool name of a `EventType.DECISION` that is a plan approved by the user."""


def opens_turn(event: Event) -> bool:
    """Return whether the user starts a turn with this event: by a prompt, or by approving a plan."""
    plan = event.type is EventType.DECISION and event.tool == PLANNING
    return event.role == "user" and (event.type is EventType.USER_MESSAGE or plan)


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


def evidence_reference(provider: str, session: str, event: str) -> str:
    """Return how notes refer to an event: ``claude-code:<session>#<first eight characters of the event's id>``."""
    return f"{provider}:{session}#{event[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReference:
    """Parsed reference of a note to an event."""

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
