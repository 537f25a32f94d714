"""Read JSON documents that an agent rewrites as a whole, and return only what has changed."""

import codecs
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from kite_memory.model.event import Cursor, Event, Problem, ReadResult, Session
from kite_memory.sources.common.jsonl import (
    Unreadable,
    mended,
    open_regular,
)
from kite_memory.sources.common.line_source import failed_read

DOCUMENT_LIMIT = 32 * 1024 * 1024
"""Larger documents are skipped: a document is read into memory as a whole, and its objects take several times its size."""

_VERSION = 1
_TAIL = 200
_MARK = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document's content. ``value`` is ``None`` if it is not valid JSON yet, because it is being written."""

    size: int
    mtime_ns: int
    value: Any


class TooLarge(Unreadable):
    """A document over the limit. ``size`` and ``mtime_ns`` show when it has changed."""

    def __init__(self, size: int, mtime_ns: int) -> None:
        super().__init__("document too large")
        self.size = size
        self.mtime_ns = mtime_ns


def read_document(path: Path, *, within: Path, limit: int = DOCUMENT_LIMIT) -> Document:
    """Read a document. Raises `Unreadable` if it is not a file below ``within``, and `OSError`."""
    with os.fdopen(open_regular(path, within), "rb") as file:
        found = os.fstat(file.fileno())
        if found.st_size > limit:
            raise TooLarge(found.st_size, found.st_mtime_ns)
        data = file.read(limit + 1)
    return Document(size=len(data), mtime_ns=found.st_mtime_ns, value=_value(data))


def _value(data: bytes) -> Any:
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:  # a text cut within a character, which orjson rejects
        return mended(json.loads(data.decode("utf-8", "replace"), strict=False))[0]
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """The current content of a document. A problem's position is the index of its message, of which there are ``messages``.

    ``note`` is passed on when the next version of the document is read.
    """

    session: Session | None
    messages: int
    events: Sequence[Event] = ()
    problems: Sequence[Problem] = ()
    note: str = ""


def read_rewritten(
    path: Path, cursor: Cursor | None, *, within: Path, limit: int, parse: Callable[[Any, str], ParsedDocument | str]
) -> ReadResult:
    """Read the document at ``path`` and return the events of messages that are new or changed.

    ``parse`` parses a whole document, given the note of the previous version, or returns why it has to wait. Then, and while the
    document is half written, the cursor keeps its state, and the document is read again only after a change.
    """
    unmoved = cursor or Cursor(position=0, size=0, mtime_ns=0)
    try:
        document = read_document(path, within=within, limit=limit)
    except TooLarge as error:
        return failed_read(path, replace(unmoved, size=error.size, mtime_ns=error.mtime_ns), str(error), amends=True)
    except Unreadable as error:
        return failed_read(path, cursor, str(error), amends=True)
    except OSError:
        return failed_read(path, cursor, "file cannot be read", amends=True)
    seen = replace(unmoved, size=document.size, mtime_ns=document.mtime_ns)
    before = ReturnedState.from_carry(unmoved.carry)
    result = "half-written document" if document.value is None else parse(document.value, before.note)
    if isinstance(result, str):
        return failed_read(path, seen, result, amends=True)
    events, known = only_changed(result.events, before)
    return ReadResult(
        path=str(path),
        session=result.session,
        events=events,
        problems=tuple(problem for problem in result.problems if problem.position >= before.seen),
        cursor=replace(seen, position=document.size, carry=replace(known, seen=result.messages, note=result.note).to_carry()),
        amends=True,
    )


def only_changed(events: Iterable[Event], known: "ReturnedState") -> tuple[tuple[Event, ...], "ReturnedState"]:
    """Return the events of messages that are new or changed, and the new state."""
    messages = [tuple(group) for _, group in groupby(events, key=lambda event: event.where.start)]
    marks = [_mark(repr(message), 6) for message in messages]
    same = known.head if len(marks) >= known.head and _mark("".join(marks[: known.head]), 8) == known.together else 0
    tail = known.tail if same or not known.head else ()
    changed = [
        event
        for index, (mark, message) in enumerate(zip(marks, messages, strict=True))
        if index >= same and not (index - same < len(tail) and tail[index - same] == mark)
        for event in message
    ]
    head = max(0, len(marks) - _TAIL)
    return tuple(changed), ReturnedState(head=head, together=_mark("".join(marks[:head]), 8), tail=tuple(marks[head:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedState:
    """What was returned of a document so far.

    Its last messages are stored one by one, the ``head`` messages before them as one hash: if any of those has changed, all events
    are returned again, which costs only time. ``seen`` is the number of messages.
    """

    seen: int = 0
    head: int = 0
    together: str = ""
    tail: tuple[str, ...] = ()
    note: str = ""

    def to_carry(self) -> str:
        return orjson.dumps(
            {
                "v": _VERSION,
                "seen": self.seen,
                "head": self.head,
                "together": self.together,
                "tail": "".join(self.tail),
                "note": self.note,
            }
        ).decode()

    @staticmethod
    def from_carry(carry: str) -> "ReturnedState":
        """Parse what `to_carry` returned; return an empty state if another version wrote it."""
        try:
            known = orjson.loads(carry)
            seen, head, together, tail, note = known["seen"], known["head"], known["together"], known["tail"], known["note"]
            if known["v"] == _VERSION and isinstance(seen, int) and isinstance(head, int) and isinstance(tail, str):
                marks = tuple(tail[at : at + _MARK] for at in range(0, len(tail), _MARK))
                return ReturnedState(seen=seen, head=head, together=together, tail=marks, note=note)
        except (ValueError, KeyError, TypeError):
            pass
        return ReturnedState()


def _mark(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()
