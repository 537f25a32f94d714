"""Typed edges between events."""

from dataclasses import dataclass
from enum import StrEnum


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
