"""What one look at a transcript yields: events, problems, and where to go on from."""

from dataclasses import dataclass

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
class Look:
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
