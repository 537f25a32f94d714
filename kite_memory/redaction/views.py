"""The same text read otherwise: its escapes resolved, its broken lines put together."""

import html
import re
from bisect import bisect_right
from dataclasses import dataclass

from kite_memory.redaction.chance import digits, turns, wordlike
from kite_memory.redaction.disguises import arrays, joints
from kite_memory.redaction.vendors import every_vendor

Edit = tuple[int, int, bytes]
"""``[start, end)`` of the text reads as these bytes."""

_AROUND = 2048
"""How much of the text on either side of an edit is looked at again, at most: the line it is in and the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """``starts`` are offsets in ``raw``; from each on, ``origins`` says what it was read from.

    ``seams`` are where edits lie in ``raw``: what touches none of them can be seen in the text itself.
    """

    raw: bytes
    starts: tuple[int, ...]
    origins: tuple[tuple[int, int], ...]
    seams: tuple[tuple[int, int], ...]

    def touched(self, start: int, end: int) -> bool:
        """Whether what lies at ``[start, end)`` goes over a seam, and so was not to be seen before."""
        at = bisect_right(self.seams, (start, len(self.raw) + 1))
        return any(low < end and high > start for low, high in self.seams[max(0, at - 1) : at + 1])

    def behind(self, start: int, end: int) -> tuple[bytes, int]:
        """What of ``[start, end)`` lies behind the last seam in it, and where in the text that seam begins."""
        at = bisect_right(self.seams, (end - 1, len(self.raw))) - 1
        low, high = self.seams[at]
        return self.raw[max(start, high) : end], self._start(low - 1) + 1 if low else 0

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text ``[start, end)`` was read from."""
        return self._start(start), self._end(end - 1)

    def _start(self, offset: int) -> int:
        at = bisect_right(self.starts, offset) - 1
        first, width = self.origins[at]
        return first + (offset - self.starts[at] if width < 0 else 0)

    def _end(self, offset: int) -> int:
        at = bisect_right(self.starts, offset) - 1
        first, width = self.origins[at]
        return first + (offset - self.starts[at] + 1 if width < 0 else width)


_BETWEEN = b"\n\n"


def edited(raw: bytes, edits: list[Edit]) -> View:
    """The lines around the edits, with them made; ``edits`` in order, not overlapping."""
    pieces: list[bytes] = []
    starts: list[int] = []
    origins: list[tuple[int, int]] = []
    seams: list[tuple[int, int]] = []
    length = 0
    at = _line_start(raw, edits[0][0], 0)
    for number, (start, end, reading) in enumerate(edits):
        pieces += (raw[at:start], reading)
        starts += (length, length + start - at)
        origins += ((at, -1), (start, end - start))
        length += start - at
        seams.append((length, length + len(reading)))
        length += len(reading)
        at = end
        last = number + 1 == len(edits)
        begin = len(raw) if last else _line_start(raw, edits[number + 1][0], end)
        if (stop := _line_end(raw, end, begin)) < begin or last:
            pieces += (raw[end:stop], _BETWEEN)
            starts += (length, length + stop - end)
            origins += ((end, -1), (stop, 0))
            length += stop - end + len(_BETWEEN)
            at = begin
    return View(raw=b"".join(pieces), starts=tuple(starts), origins=tuple(origins), seams=tuple(seams))


def _line_start(raw: bytes, at: int, floor: int) -> int:
    """Of the line before: it may hold the name."""
    low = max(floor, at - _AROUND)
    return max(low, raw.rfind(b"\n", low, max(low, raw.rfind(b"\n", low, at))) + 1)


def _line_end(raw: bytes, at: int, ceiling: int) -> int:
    high = min(ceiling, at + _AROUND)
    found = raw.find(b"\n", at, high)
    return found if found >= 0 else high


_ESCAPES = (
    (b"%", re.compile(rb"%(?:[2-7][0-9A-Fa-f]|0[aAdD])")),
    (b"&", re.compile(rb"&(?:#[0-9]{2,3}|#[xX][0-9A-Fa-f]{2}|quot|amp|apos|lt|gt|lowbar|hyphen|equals|colon|sol|plus|period);")),
    (
        b"\\",
        re.compile(
            rb"\\(?:\\{0,3}(?:u00[2-7][0-9A-Fa-f]|x[2-7][0-9A-Fa-f])|/|\\{0,3}(?:u001[bB]|x1[bB]|033|e)\[[0-9;]{0,24}[A-Za-z])"
        ),
    ),
)


def resolved(raw: bytes) -> View | None:
    """Read with the escapes of addresses, of HTML and of JSON resolved, literals in pieces and lists of bytes put together."""
    edits = [
        (found.start(), found.end(), _meaning(found[0]))
        for sign, escape in _ESCAPES
        if sign in raw
        for found in escape.finditer(raw)
    ]
    edits = _apart(sorted([*edits, *joints(raw), *arrays(raw)]))
    return edited(raw, edits) if edits else None


def _meaning(escape: bytes) -> bytes:
    if escape.startswith(b"&"):
        return html.unescape(escape.decode()).encode("ascii", "replace")
    if escape.startswith(b"\\") and b"[" in escape:
        return b""
    if escape.endswith(b"/"):
        return b"/"
    return bytes([int(escape[-2:], 16)])


_INNER = rb"[A-Za-z0-9_\-+/=.~%:$]"
_LAST = rb"[A-Za-z0-9_\-+/=.~%:$#!@&*^]"
_LONG = _INNER + rb"{8}"
_FRAME = rb"[ \t]{0,200}+(?:(?:[>|?#*]|[0-9]{1,6}[?|\t])[ \t]{0,80}+){0,3}"
"""Indentation, and what tools put in front of each line: quote and comment signs, frames, line numbers."""


_NEWLINE = re.compile(
    rb"\n(?:(?<=" + _LAST + rb"{8}\n)" + _FRAME + rb"(?!-[ \t\-])(?=" + _INNER + rb")"
    rb"|(?<=" + _LAST + rb"\n)" + _FRAME + rb"(?!-[ \t\-])(?=" + _LONG + rb")"
    rb"|(?:(?<=[ \r|]\n)|(?<=[^0-9][?\t]\n))" + _FRAME + rb"(?!-[ \t\-])(?=" + _INNER + rb"))"
)
_CONTINUED = re.compile(
    rb"\\(?:(?<=" + _LONG + rb"\\)|(?<=" + _INNER + rb"\\)(?=[\\rn \t\r\n]{1,80}" + _LONG + rb"))"
    rb"\\{0,3}+(?:r\\{1,4}+)?+(?:n|[ \t]{0,4}\r?\n)" + _FRAME + rb"(?=" + _INNER + rb")"
)
"""A break at which at least one side is long enough to be half of a token."""
_RUN = bytes(ord("x") if (code < 128 and chr(code).isalnum()) or code in b"_-+/=.~%:!@$^&*#" else ord(" ") for code in range(256))
_ASSIGNMENT = re.compile(rb"([A-Za-z_][A-Za-z0-9_.\-]{0,63})[ \t]{0,4}(?:=(?!=)|:(?:\s|\Z)|[(\[])")
_SIGNS = bytes.maketrans(b":@", b"==")
_FILE = re.compile(rb"/[^/]{1,80}\.[a-z]{1,5}\Z")
_HEX_TAIL = re.compile(rb"[0-9a-f]{7}\Z")
_HEX_HEAD = re.compile(rb"[0-9a-f]{7,64}+(?![A-Za-z0-9_])")
_NOT_HEX = b"ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ"
_PADDING = b" \t\r?|\\"
_REACH = 256
_PIECE = 40
_SHORTEST = 12


def put_together(raw: bytes) -> View | None:
    """Read with lines joined where a break may have fallen into a token: continued, wrapped, indented, framed or quoted ones."""
    edits: list[Edit] = []
    for found in _NEWLINE.finditer(raw):
        start, end = found.span()
        if raw[start - 1] in _PADDING:
            start -= len(raw[max(0, start - _REACH) : start]) - len(raw[max(0, start - _REACH) : start].rstrip(_PADDING))
        if _within_token(raw, start, end):
            edits.append((start, end, b""))
    if b"\\" in raw:
        escaped = [
            (found.start(), found.end(), b"")
            for found in _CONTINUED.finditer(raw)
            if _within_token(raw, found.start(), found.end())
        ]
        if escaped:
            edits = _apart(sorted([*edits, *escaped]))
    return edited(raw, edits) if edits else None


def _apart(edits: list[Edit]) -> list[Edit]:
    kept: list[Edit] = []
    for edit in edits:
        if not kept or edit[0] >= kept[-1][1]:
            kept.append(edit)
    return kept


def _within_token(raw: bytes, start: int, end: int) -> bool:
    """Whether what stands before and after a break can be one token, and not two words."""
    left = raw[max(0, start - _PIECE) : start]
    right = raw[end : end + _PIECE]
    left = left[left.translate(_RUN).rfind(b" ") + 1 :]
    if (gap := right.translate(_RUN).find(b" ")) >= 0:
        right = right[:gap]
    if not (left and right) or len(left) + len(right) < _SHORTEST or (right[0] in b"/" and b"/" in left and wordlike(right)):
        return False
    if left.islower() and right.islower() and not digits(left + right):
        return False
    capitals = left[-4:].isupper() and right[:4] == right[:4].upper()
    if not capitals and turns(left + right) < 2 and digits(left + right) < 4:
        return False
    left = left[left.translate(_SIGNS).rfind(b"=", 0, -3) + 1 :]  # of ``name=value`` or ``name:password@host``, the value
    if (sign := right.translate(_SIGNS).find(b"=", 3)) >= 0:
        right = right[:sign]
    if not (fragment(left) or fragment(right) or capitals):
        return False
    if (name := _ASSIGNMENT.match(raw, end)) and wordlike(name[1]):
        return False
    if _FILE.search(left) or right.startswith((b"--", b"==", b"++")):
        return False
    if right[:6].isdigit() and len(right) <= 6 and not left[-1:].isdigit() and wordlike(left):
        return False
    if _HEX_HEAD.match(right) and left[-1] in _NOT_HEX and wordlike(left) and not _announces(left):
        return False
    return not (_HEX_TAIL.search(left) and digits(left[-7:]) and right[0] in _NOT_HEX and right[:4].isalpha())


def _announces(left: bytes) -> bool:
    suspects = every_vendor().suspects
    return any(left[-length:] in suspects for length in range(2, 16))


def fragment(piece: bytes) -> bool:
    """Whether a piece of a token may look like this: digits among letters, or letters of both cases without order."""
    unrest = turns(piece)
    if unrest and unrest * 5 >= len(piece):
        return True
    return (unrest >= 2 or digits(piece) >= 4) and not wordlike(piece)
