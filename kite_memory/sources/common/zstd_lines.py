"""Reading the lines of a file that an agent has compressed: a stretch at a time, whatever it grows to when unpacked."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from kite_memory.sources.common.jsonl import LINE_LIMIT, Stretch, open_regular

UNPACKED_LIMIT = 16 << 30
_PIECE = 1 << 20


def _decompressor() -> tuple[Callable[[], Any], type[Exception]]:
    """Loaded where it is used: few sessions are compressed."""
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor, ZstdError
    else:
        from backports.zstd import ZstdDecompressor, ZstdError
    return ZstdDecompressor, ZstdError


class CompressedLines:
    """One file, open while its lines are read one after the other. Positions count unpacked bytes.

    Raises `Unreadable` on opening; reads may raise `OSError`. Where the rest cannot be unpacked, the lines end, and `damage`
    says why.
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
        """Whether that name leads to the file that is open, as it was."""
        try:
            found = path.stat()
        except OSError:
            return False
        return [found.st_dev, found.st_ino] == self._place and (found.st_size, found.st_mtime_ns) == (self.size, self.mtime_ns)

    def identity(self) -> str:
        return json.dumps({"size": self.size, "mtime_ns": self.mtime_ns}, separators=(",", ":"))

    @property
    def read_of_it(self) -> int:
        """How much of the compressed file was read; less than all while there is more."""
        return self.size if self._ended and not self._ready else max(0, min(self._file.tell(), self.size - 1))

    def lines(self, position: int, budget: int) -> Stretch:
        """As `AppendOnlyFile.lines`. Going back starts over; going on from where the last stretch ended costs nothing."""
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
        """Up to the line end at ``cut``. Without one there is but the last line: it ends with the file, unless that is damaged."""
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
        """Unpack until ``wanted`` bytes are ready; whether any are."""
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
