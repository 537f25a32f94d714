"""Read JSON from a cursor: append-only files of lines, and documents that are rewritten as a whole."""

import codecs
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar

import orjson

from kite_memory.model.event import Cursor, Event, Passage, Problem, ReadResult, Session
from kite_memory.sources.common.jsonl import (
    LINE_LIMIT,
    AppendOnlyFile,
    Damage,
    FoundObject,
    Stretch,
    Unreadable,
    mended,
    objects,
    open_regular,
)

UNPACKED_LIMIT = 16 << 30
_PIECE = 1 << 20


def _decompressor() -> tuple[Callable[[], Any], type[Exception]]:
    """Import zstd on first use, since few sessions are compressed."""
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor, ZstdError
    else:
        from backports.zstd import ZstdDecompressor, ZstdError
    return ZstdDecompressor, ZstdError


class CompressedLines:
    """A compressed file of lines, read in order. Positions count unpacked bytes.

    Raises `Unreadable` on opening; reads may raise `OSError`. If the rest cannot be unpacked, the lines end and `damage` holds the
    reason.
    """

    def __init__(self, path: Path, *, within: Path, line_limit: int = LINE_LIMIT) -> None:
        self._line_limit = line_limit
        self._new, self._error = _decompressor()
        self._file = os.fdopen(open_regular(path, within), "rb", buffering=0)
        found = os.fstat(self._file.fileno())
        self.size = found.st_size
        self.mtime_ns = found.st_mtime_ns
        self._place = [found.st_dev, found.st_ino]
        self._restart()

    def __enter__(self) -> "CompressedLines":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def is_still(self, path: Path) -> bool:
        """Return whether ``path`` is still the open file, unchanged."""
        try:
            found = path.stat()
        except OSError:
            return False
        return [found.st_dev, found.st_ino] == self._place and (found.st_size, found.st_mtime_ns) == (self.size, self.mtime_ns)

    def identity(self) -> str:
        return json.dumps({"size": self.size, "mtime_ns": self.mtime_ns}, separators=(",", ":"))

    @property
    def read_of_it(self) -> int:
        """Number of compressed bytes read; less than the size while there is more."""
        return self.size if self._ended and not self._ready else max(0, min(self._file.tell(), self.size - 1))

    def lines(self, position: int, budget: int) -> Stretch:
        """As `AppendOnlyFile.lines`. Going back starts over; continuing from the end of the last stretch costs nothing."""
        if position < self._at:
            self._restart()
        while self._at < position and self._fill(1):
            self._drop(min(position - self._at, len(self._ready)))
        budget = max(1, min(budget, self._line_limit))
        self._fill(budget)
        cut, searched = self._ready.rfind(b"\n", 0, budget), 0
        while cut < 0 and len(self._ready) <= self._line_limit and searched < len(self._ready):
            cut = self._ready.find(b"\n", searched)
            if cut < 0:
                searched = len(self._ready)
                self._fill(searched + _PIECE)
        if cut < 0 and len(self._ready) > self._line_limit:
            return self._too_long()
        return self._stretch(cut)

    def _stretch(self, cut: int) -> Stretch:
        """Return the lines up to the line end at ``cut``.

        Without one there is only the last line, which ends with the file unless that is damaged.
        """
        if cut < 0 and not self.damage:
            cut = len(self._ready)
        start, data = self._at, bytes(self._ready[: max(cut, 0)])
        too_long = cut > self._line_limit
        self._drop(min(cut + 1, len(self._ready)))
        more = self._fill(1) and not (self._ended and self.damage and b"\n" not in self._ready)
        return Stretch(start=start, end=self._at, data=b"" if too_long else data, too_long=too_long, more=more)

    def _too_long(self) -> Stretch:
        start = self._at
        while (cut := self._ready.find(b"\n")) < 0:
            self._drop(len(self._ready))
            if not self._fill(1):
                return Stretch(start=start, end=self._at, data=b"", too_long=True)
        self._drop(cut + 1)
        return Stretch(start=start, end=self._at, data=b"", too_long=True, more=self._fill(1))

    def _restart(self) -> None:
        self._file.seek(0)
        self._unpacking = self._new()
        self._ready = bytearray()
        self._at = 0
        self._ended = False
        self.damage = ""

    def _drop(self, count: int) -> None:
        del self._ready[:count]
        self._at += count

    def _fill(self, wanted: int) -> bool:
        """Unpack until ``wanted`` bytes are ready; return whether any are."""
        while len(self._ready) < wanted and not self._ended:
            try:
                if self._unpacking.eof:  # frames may follow one another
                    left = self._unpacking.unused_data or self._file.read(_PIECE)
                    self._unpacking = self._new()
                    piece = self._unpacking.decompress(left, _PIECE) if left else b""
                    self._ended = not left
                elif self._unpacking.needs_input:
                    packed = self._file.read(_PIECE)
                    if not packed:
                        self._end("damaged archive" if self.size else "")
                    piece = self._unpacking.decompress(packed, _PIECE)
                else:
                    piece = self._unpacking.decompress(b"", _PIECE)
            except self._error:
                piece = b""
                self._end("damaged archive")
            self._ready += piece
            if self._at + len(self._ready) > UNPACKED_LIMIT:
                self._end("archive too long")
        return bool(self._ready)

    def _end(self, damage: str) -> None:
        self._ended, self.damage = True, damage


PROBLEMS_AT_ONCE = 1_000
EVENTS_AT_ONCE = 20_000
"""Limit of events in one result, since a malicious line may hold a thousand of them."""

Carried = TypeVar("Carried")


class EventCollector(Protocol):
    """Collector of events and problems while lines are parsed."""

    @property
    def events(self) -> Sequence[Event]: ...

    @property
    def problems(self) -> Sequence[Problem]: ...

    def problem(self, position: int, reason: str) -> None: ...


def read_growing(
    path: Path,
    cursor: Cursor | None,
    *,
    within: Path,
    line_limit: int,
    read: Callable[[AppendOnlyFile], ReadResult],
    amends: bool = False,
) -> ReadResult:
    """Open the file and call ``read``. If it cannot be read, return a problem and the same cursor."""
    try:
        with AppendOnlyFile(path, within=within, line_limit=line_limit) as file:
            return read(file)
    except Unreadable as error:
        reason = str(error)
    except OSError:
        reason = "file cannot be read"
    return failed_read(path, cursor, reason, amends=amends)


def failed_read(path: Path, cursor: Cursor | None, reason: str, *, amends: bool = False) -> ReadResult:
    """Return a result that holds only a problem and the same cursor."""
    unmoved = cursor or Cursor(position=0, size=0, mtime_ns=0)
    problem = Problem(file=str(path), position=unmoved.position, reason=reason)
    return ReadResult(path=str(path), session=None, events=(), problems=(problem,), cursor=unmoved, amends=amends)


def starting_point(
    file: AppendOnlyFile, cursor: Cursor | None, begin: Callable[[], Carried], resume: Callable[[str], Carried | None]
) -> tuple[int, Carried, str]:
    """Return the position and state to continue with, and why reading starts over if the file is not the one that was read."""
    if cursor is None or not cursor.position:
        return 0, begin(), ""
    if changed := file.changed(cursor.identity, cursor.position):
        return 0, begin(), changed
    to_carry = resume(cursor.carry)
    return (0, begin(), "unknown cursor") if to_carry is None else (cursor.position, to_carry, "")


def continue_reading(
    file: AppendOnlyFile,
    position: int,
    collector: EventCollector,
    read_line: Callable[[FoundObject, int, bytes], bool | None],
    *,
    budget: int,
    wanted: bool = True,
) -> tuple[int, bool]:
    """Parse the next lines and call ``read_line`` with each object, the position of its line, and the line.

    If ``read_line`` returns true, reading stops before that object. Returns the position after the last object that was read, and
    whether there is more. Lines are skipped unless ``wanted``.
    """
    stretch = file.lines(position, budget, to_the_end=True)
    if stretch.torn and wanted:
        collector.problem(stretch.end, "unfinished line")
    if stretch.too_long and wanted:
        collector.problem(position, "line too long")
    reached = stretch.end
    if stretch.data and wanted:
        reached = min(_read_lines(stretch.data, position, collector, read_line), stretch.end)
    return reached, stretch.more or reached < stretch.end


def _read_lines(
    data: bytes, position: int, collector: EventCollector, read_line: Callable[[FoundObject, int, bytes], bool | None]
) -> int:
    for line in data.split(b"\n"):
        if len(collector.problems) >= PROBLEMS_AT_ONCE or len(collector.events) >= EVENTS_AT_ONCE:
            return position
        for found in objects(line) if line else ():
            match found:
                case Damage(start=start, reason=reason):
                    collector.problem(position + start, reason)
                case FoundObject():
                    if read_line(found, position, line):
                        return position + found.start
        position += len(line) + 1
    return position


def result_up_to(
    path: Path,
    file: AppendOnlyFile,
    collector: EventCollector,
    *,
    session: Session | None,
    position: int,
    carry: str,
    more: bool,
    wanted: bool = True,
    amends: bool = False,
    passages: Sequence[Passage] = (),
) -> ReadResult:
    """Return the result of reading up to ``position``; only its cursor if it was not ``wanted``.

    While the file ends within a line, the cursor keeps no time, so that it is read again once it no longer changes.
    """
    mtime_ns = 0 if file.unfinished else file.mtime_ns
    return ReadResult(
        path=str(path),
        session=session if wanted else None,
        events=tuple(collector.events) if wanted else (),
        problems=tuple(collector.problems) if wanted else (),
        cursor=Cursor(position=position, size=file.size, mtime_ns=mtime_ns, identity=file.identity(position), carry=carry),
        more=more,
        amends=amends,
        passages=tuple(passages) if wanted else (),
    )


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
