"""What an agent's transcript says happened, line by line."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal


class EdgeKind(StrEnum):
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
    """``source`` and ``target`` are event ids (JSON calls them ``from`` and ``to``).

    A file that is touched, a command that is run and a failure's signature are targets by their own names. A session decides
    and resumes: it is the source, by its id.
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
    """The bytes ``[start, end)`` of ``file`` that an event was read from.

    For sources that are not append-only files, ``start`` counts messages instead of bytes and ``end`` is ``start``.
    """

    file: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened.

    ``id`` is unique over all sessions: the agent's own uuid where it has one, else a hash of what cannot change.
    Several events read from one line are ``<uuid>``, ``<uuid>:1``, ``<uuid>:2``: the first eight characters always
    lead back to the line. ``ordinal`` rises with the position in the source; ``at`` need not. ``call`` is the agent's
    own name of a tool call, shared by the call and its result. ``parent`` is an event id, or empty. ``whole`` is the text before it
    was cut, where it was; it is not redacted, and never stored.
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
"""The tool of a `EventType.DECISION` that is a plan which the person approved."""


def opens_turn(event: Event) -> bool:
    """Whether a person set the agent to work with it: by a prompt, or by approving a plan."""
    plan = event.type is EventType.DECISION and event.tool == PLANNING
    return event.role == "user" and (event.type is EventType.USER_MESSAGE or plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation with an agent. ``parent`` names the session that a sub-agent works for, or a fork comes from.

    ``project`` is a short name of the repository (or folder) it works on; worktrees of one repository share it.
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
    """How notes name an event: ``claude-code:<session>#<first eight characters of the event's id>``."""
    return f"{provider}:{session}#{event[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReference:
    provider: str
    session: str
    event: str

    @staticmethod
    def parse(text: str) -> "EvidenceReference | None":
        """The inverse of `evidence_reference`; ``None`` for anything a person has mangled."""
        provider, colon, rest = text.partition(":")
        session, sharp, event = rest.rpartition("#")
        if not (colon and sharp and provider and session and event):
            return None
        return EvidenceReference(provider=provider, session=session, event=event)
