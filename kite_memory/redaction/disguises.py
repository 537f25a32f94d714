"""Secrets that are spelled otherwise: as dumps of bytes, lists of numbers, pieces put together, base 32."""

import binascii
import re
from collections.abc import Callable

from kite_memory.redaction.span import Span

_DUMP_LINE = re.compile(
    rb"[ \t|>]{0,16}(?:0x)?[0-9a-f]{4,16}:?[ \t]{1,4}((?:[0-9a-f]{2}[ \t]{0,2}){1,16}+)[^\r\n]{0,60}+\r?", re.IGNORECASE
)
"""A line of ``xxd`` or ``hexdump -C``: an offset, bytes, and what they say."""
_DUMP = re.compile(rb"0(?<=[0-9a-fA-F]{6})(?::|[ \t])[ \t]{1,3}[0-9a-fA-F]{2} ?[0-9a-fA-F]{2} ")
_MOST_LINES = 4000
_PRINTABLE = bytes(code for code in range(256) if 32 <= code < 127 or code in b"\r\n\t")

_NUMBER = rb"(?:0x[0-9a-f]{2}|[0-9]{2,3})"
_ARRAY = re.compile(
    rb",(?<=[0-9a-f],)\s{0,12}+" + _NUMBER + rb"(?:\s{0,12}+,\s{0,12}+" + _NUMBER + rb"){6,4096}+,?\s{0,8}[\])}]{0,3}",
    re.IGNORECASE,
)
_FIRST = re.compile(_NUMBER + rb"\Z", re.IGNORECASE)
_CALL = re.compile(
    rb"(?:(?:bytes|bytearray|buffer\.from|string\.fromcharcode|uint8array)\(|\[\]byte)?[\[{(]{0,2}\s{0,8}\Z", re.IGNORECASE
)
_JOINTS = (
    (b"+", re.compile(rb"\+[ \t\r\n]{0,24}([\"'`])(?=[^\s\"'`])")),
    (b" . ", re.compile(rb" \. {1,2}([\"'])(?=[^\s\"'`])")),
    (b" .. ", re.compile(rb" \.\. {1,2}([\"'])(?=[^\s\"'`])")),
    (b'" "', re.compile(rb" (\")(?=[A-Za-z0-9_\-])")),
    (b"' '", re.compile(rb" (')(?=[A-Za-z0-9_\-])")),
)
"""Where a literal begins that belongs to the one before."""
_OPENED = (b'${"', b"${'")
_WITHIN = re.compile(rb"\$\{[\"']|[\"']\}(?<=[A-Za-z0-9_\-]..)")


def joints(raw: bytes) -> list[tuple[int, int, bytes]]:
    """Edits that put the pieces of a literal together."""
    edits = [(found.start(), found.end(), b"") for found in _WITHIN.finditer(raw)] if any(sign in raw for sign in _OPENED) else []
    for sign, joint in _JOINTS:
        for found in joint.finditer(raw) if sign in raw else ():
            gap = raw[max(0, found.start() - 4) : found.start()]
            before = gap.rstrip(b" \t")
            if before.endswith(found[1]) and before[-2:-1] not in (b"", b" ", b"=", b"(", found[1]):
                edits.append((found.start() - (len(gap) - len(before)) - 1, found.end(), b""))
    return edits


def arrays(raw: bytes) -> list[tuple[int, int, bytes]]:
    """Edits that read lists of numbers as the text they stand for, where it is text."""
    found = []
    for array in _ARRAY.finditer(raw):
        first = _FIRST.search(raw, max(0, array.start() - 4), array.start())
        if first is None:
            continue
        numbers = re.findall(_NUMBER, raw[first.start() : array.end()], re.IGNORECASE)
        codes = [int(number, 16 if number[:2] in (b"0x", b"0X") else 10) for number in numbers]
        if all(32 <= code < 127 for code in codes):
            call = _CALL.search(raw, max(0, first.start() - 32), first.start())
            found.append((call.start() if call else first.start(), array.end(), b'"' + bytes(codes).replace(b'"', b"'") + b'"'))
    return found


def find_dumped(raw: bytes, look_inside: Callable[[bytes], str], spans: list[Span]) -> None:
    """A dump whose bytes hold a secret goes as a whole."""
    at = 0
    while first := _DUMP.search(raw, at):
        begin = raw.rfind(b"\n", max(at, first.start() - 80), first.start()) + 1 or at
        plain = bytearray()
        end = at = begin
        for _ in range(_MOST_LINES):
            line = _DUMP_LINE.match(raw, at)
            if line is None:
                break
            digits = bytes(line[1].translate(None, b" \t"))
            plain += binascii.a2b_hex(digits[: len(digits) // 2 * 2])
            end = line.end()
            at = end + 1
            if raw[end : end + 1] != b"\n":
                break
        if len(plain) >= 16 and (kind := look_inside(bytes(code if code in _PRINTABLE else 32 for code in plain))):
            spans.append((begin, end, kind))
        at = max(end, first.end())
