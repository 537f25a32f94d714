"""Read append-only files of JSON lines by byte position, also compressed ones: complete lines once, even if the file is changed
meanwhile.
"""

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson

from kite_memory.text import lazy_regex

LINE_LIMIT = 32 * 1024 * 1024
"""Longer lines are skipped. The longest real ones hold a few images and stay under ten megabytes."""

_AT_REST = 60.0
"""Seconds without a change after which an unfinished line counts as abandoned."""

_PIECE = 1024 * 1024
_BLANK_BYTES = b" \t\r\n\x00"
_HEAD = 1024
_TAIL = 256

_ROW_START = lazy_regex(r'\{"(?:parentUuid|type|isSidechain|timestamp)"')
_BLANK = lazy_regex(r"[\s\x00\ufeff]*")
_STRAY_BYTE = lazy_regex("[\udc80-\udcff]")
_SALVAGE_FAILURES = 16
_SALVAGE_VALUES = 1000
_DECODER = json.JSONDecoder(strict=False)


class Unreadable(Exception):
    """The file cannot be read now; the message is a short reason that can be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Whole lines: ``data`` without the last newline, ``start`` its first byte, ``end`` the first byte of the next line.

    An empty stretch ends where it starts. With ``too_long`` there is no data: the line that starts here was skipped. ``more`` means
    that it ends at the budget, not at the end of the file. ``torn`` means that the file is no longer written to and ends within a
    line.
    """

    start: int
    end: int
    data: bytes
    too_long: bool = False
    more: bool = False
    torn: bool = False


class AppendOnlyFile:
    """An open file, for one read. Raises `Unreadable` on opening; reads may raise `OSError`."""

    def __init__(self, path: Path, *, within: Path, line_limit: int = LINE_LIMIT) -> None:
        self._line_limit = line_limit
        self._file = os.fdopen(open_regular(path, within), "rb", buffering=0)
        found = os.fstat(self._file.fileno())
        self.size = found.st_size
        self._at_rest = time.time() - found.st_mtime > _AT_REST
        self.unfinished = False
        """Whether a line was not read because the rest of it may still be written."""
        self.mtime_ns = found.st_mtime_ns
        self._place = [found.st_dev, found.st_ino]

    def __enter__(self) -> "AppendOnlyFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def between(self, start: int, end: int) -> bytes:
        """Return those bytes, or fewer if the file ends before."""
        self._file.seek(start)
        data = self._file.read(end - start)
        while len(data) < end - start and (piece := self._file.read(end - start - len(data))):
            data += piece
        return data

    def identity(self, position: int) -> str:
        """Return what distinguishes this file, read up to ``position``, from another one of the same name."""
        if not position:
            return ""
        head = min(_HEAD, position)
        known = {
            "head": head,
            "head_hash": _hash(self.between(0, head)),
            "tail_hash": _hash(self.between(max(0, position - _TAIL), position)),
            "place": self._place,
        }
        return json.dumps(known, separators=(",", ":"))

    def changed(self, identity: str, position: int) -> str:
        """Return why the file no longer begins with what was read up to ``position``; empty if it still does."""
        if not position:
            return ""
        try:
            known = json.loads(identity)
            head, head_hash, tail_hash, place = known["head"], known["head_hash"], known["tail_hash"], known["place"]
        except (ValueError, KeyError, TypeError):
            return "unknown file"
        if self.size < position:
            return "file truncated"
        if not isinstance(head, int) or not 0 < head <= _HEAD:
            return "unknown file"
        same = _hash(self.between(0, head)) == head_hash and _hash(self.between(max(0, position - _TAIL), position)) == tail_hash
        if same:
            return ""
        return "file rewritten" if place == self._place else "file replaced"

    def lines(self, position: int, budget: int, *, to_the_end: bool = False) -> Stretch:
        """Return the whole lines from ``position`` that fit the budget, or one line that does not.

        Memory is bounded by the budget and the line limit, not by the file. A line without its newline is not returned. If the file
        is no longer written to, ``to_the_end`` also takes the last line if it holds whole objects.
        """
        budget = max(1, min(budget, self._line_limit))
        data = self.between(position, position + budget)
        cut = data.rfind(b"\n")
        if to_the_end and cut < 0 and len(data) == budget and self.size - position <= self._line_limit:
            data = data if self._after_newline(position + len(data)) else self.between(position, self.size)
        torn = False
        if to_the_end and position + len(data) >= self.size and (last := data[cut + 1 :]).strip(_BLANK_BYTES):
            if self._at_rest and _holds_whole_objects(last):
                return Stretch(start=position, end=position + len(data), data=data)
            self.unfinished, torn = not self._at_rest, self._at_rest
        if cut >= 0 or len(data) < budget:
            end = position + cut + 1
            return Stretch(start=position, end=end, data=data[: max(cut, 0)], more=position + len(data) < self.size, torn=torn)
        end = self._after_newline(position + len(data))
        if not end:
            return Stretch(start=position, end=position, data=b"", torn=torn)
        too_long = end - 1 - position > self._line_limit
        return Stretch(
            start=position,
            end=end,
            data=b"" if too_long else self.between(position, end - 1),
            too_long=too_long,
            more=end < self.size,
        )

    def _after_newline(self, begin: int) -> int:
        """Return where the next line begins, or 0 if no line follows. Reads piece by piece and keeps nothing."""
        while piece := self.between(begin, begin + _PIECE):
            newline = piece.find(b"\n")
            if newline >= 0:
                return begin + newline + 1
            begin += len(piece)
        return 0


def _holds_whole_objects(line: bytes) -> bool:
    found = objects(line)
    return any(isinstance(each, FoundObject) for each in found) and not any(
        isinstance(each, Damage) and each.reason == DAMAGED for each in found
    )


def open_regular(path: Path, within: Path) -> int:
    """Open a regular file below ``within`` and return its descriptor.

    Links may point elsewhere inside ``within``, not outside; opening a pipe never blocks.
    """
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)
    try:
        real = path.resolve()
        if not real.is_relative_to(within.resolve()):
            raise Unreadable("outside its root")
        if not stat.S_ISREG(real.stat().st_mode):
            raise Unreadable("not a regular file")
        descriptor = os.open(real, flags)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Unreadable("file is gone") from error
    except (OSError, ValueError, RuntimeError) as error:
        raise Unreadable("file cannot be read") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unreadable("not a regular file")
    return descriptor


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundObject:
    """An object and the bytes ``[start, end)`` of its line that hold it."""

    start: int
    end: int
    row: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    start: int
    reason: str


DAMAGED = "damaged line"


def objects(line: bytes) -> list[FoundObject | Damage]:
    """Return every object on a line that should hold exactly one.

    Real files contain concatenated objects, records cut off by the next one, runs of NUL bytes, bytes that are not UTF-8 and lone
    surrogates. Each loses only what it damaged and is reported once.
    """
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _salvage(line)
    if isinstance(row, dict):
        return [FoundObject(start=0, end=len(line), row=row)]
    return [Damage(start=0, reason="not an object")]


def _salvage(line: bytes) -> list[FoundObject | Damage]:
    text = line.decode("utf-8", "surrogateescape")
    out: list[FoundObject | Damage] = []
    if "\x00" in text:
        out.append(Damage(start=0, reason="NUL bytes"))
    if _STRAY_BYTE.search(text):
        out.append(Damage(start=0, reason="invalid UTF-8"))
    explained = bool(out)
    bytes_at = _ByteOffsets(text)
    position, failures, values = 0, 0, 0
    while (position := _end_of_blank(text, position)) < len(text):
        start = bytes_at(position)
        try:
            value, end = _DECODER.raw_decode(text, position)
            row, halves = mended(value)
        except (ValueError, RecursionError):
            out.append(Damage(start=start, reason=DAMAGED))
            failures += 1
            following = _ROW_START.search(text, position + 1)
            if following is None or failures == _SALVAGE_FAILURES:
                break
            position = following.start()
            continue
        position = end
        values += 1
        if values > _SALVAGE_VALUES:
            out.append(Damage(start=start, reason="too many objects on a line"))
            break
        if not isinstance(row, dict):
            out.append(Damage(start=start, reason="not an object"))
        elif not failures or _is_whole(row):
            # A part of a record that was cut off can look like a whole line, such as a sub-agent's message like a user's.
            if values == 2:
                out.append(Damage(start=start, reason="glued objects"))
            if halves and not explained:
                out.append(Damage(start=start, reason="lone surrogate"))
            out.append(FoundObject(start=start, end=bytes_at(end), row=row))
    return out


def _is_whole(row: dict[str, Any]) -> bool:
    """Return whether the record has the fields that every record of some agent has."""
    return "type" in row and ("sessionId" in row or ("timestamp" in row and ("payload" in row or "data" in row)))


class _ByteOffsets:
    """Byte offset of a character in a line. Called with rising positions, it counts each character once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known = (0, 0)

    def __call__(self, index: int) -> int:
        character, byte = self._known
        byte += len(self._text[character:index].encode("utf-8", "surrogateescape"))
        self._known = (index, byte)
        return byte


def _end_of_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def mended(value: Any) -> tuple[Any, bool]:
    """Return the value with U+FFFD for lone surrogates, and whether there were any."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), True
        return value, False
    if isinstance(value, dict):
        pairs = [(mended(key), mended(part)) for key, part in value.items()]
        return {key[0]: part[0] for key, part in pairs}, any(key[1] or part[1] for key, part in pairs)
    if isinstance(value, list):
        parts = [mended(part) for part in value]
        return [part[0] for part in parts], any(part[1] for part in parts)
    return value, False


UNPACKED_LIMIT = 16 << 30


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
