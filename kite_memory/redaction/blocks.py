"""Private keys as files contain them, whole or truncated."""

import re
from itertools import islice

from kite_memory.redaction.chance import turns
from kite_memory.redaction.span import Span
from kite_memory.redaction.words import TextWords

_HEADER = re.compile(rb"-----BEGIN (?:[A-Za-z0-9]{1,12} ){0,4}(?:PRIVATE KEY(?: BLOCK)?|Static key V1)-----")
_FOOTER = re.compile(rb"-----END (?:[A-Za-z0-9]{1,12} ){0,4}(?:PRIVATE KEY(?: BLOCK)?|Static key V1)-----")
_BREAK = re.compile(rb"\\{1,4}r\\{1,4}n|\\{1,4}n|\r?\n")
_KEY_LINE = re.compile(
    rb"[\s\"'`,?|>#*+:.\-]{0,40}+(?:[0-9]{1,6}[?|:\t\-][\s?]{0,20}+)?"
    rb"((?:[A-Za-z0-9+/]{1,4096}+ ?){1,64}+={0,2})[\s\"'`,?|+;)\]\\]{0,12}"
)
"""A line of base 64, with a line number, a quote sign, a frame or a string's quotes around it."""
_KEY_TAIL = re.compile(rb"[A-Za-z0-9+/]{32,4096}+={0,2}\Z")
_ATTRIBUTE = re.compile(
    rb"[\s\"'?|>#*+\-]{0,40}(?:[0-9]{1,6}[?|:\t][\s?]{0,20})?(?:[A-Za-z\-]{3,24}: .{0,200})?[\s\"'?|]{0,12}", re.DOTALL
)
_PUTTY_SECRET = re.compile(
    rb"Private-Lines: [0-9]{1,4}\s{1,8}((?:[A-Za-z0-9+/=]{1,128}+\s{1,8}){1,200}+)(?:Private-MAC: [0-9a-f]{1,128}+)?"
)
_WEB_KEY = re.compile(rb"\\{0,3}\"(?:d|p|q|dp|dq|qi|k)\\{0,3}\"\s{0,8}:\s{0,8}\\{0,3}\"([A-Za-z0-9_\-]{20,2048}+)")
_LONGEST = 65536
_MOST_LINES = 2000


def find_blocks(raw: bytes, words: TextWords, spans: list[Span]) -> None:
    if (b"private" in words.each and b"PRIVATE KEY" in raw) or (b"static" in words.each and b"Static key V1-" in raw):
        _find_keys(raw, spans)
    if b"private" in words.each and b"Private-Lines: " in raw:
        spans.extend((found.start(1), found.end(), "private-key") for found in _PUTTY_SECRET.finditer(raw))
    if b"kty" in words.each:
        spans.extend((found.start(1), found.end(1), "private-key") for found in _WEB_KEY.finditer(raw))


def _find_keys(raw: bytes, spans: list[Span]) -> None:
    headers = [(header.start(), header.end()) for header in _HEADER.finditer(raw)]
    footers = [(footer.start(), footer.end()) for footer in _FOOTER.finditer(raw)]
    bounds = [*(start for start, _ in headers[1:]), len(raw)]
    floor = next_footer = 0
    for (start, end), bound in zip(headers, bounds, strict=False):
        while next_footer < len(footers) and footers[next_footer][0] < end:
            _add_headless(raw, footers[next_footer], floor, spans)
            floor = footers[next_footer][1]
            next_footer += 1
        if next_footer < len(footers) and footers[next_footer][0] <= min(bound, end + _LONGEST):
            if _is_key(raw[end : footers[next_footer][0]]):
                spans.append((start, footers[next_footer][1], "private-key"))
            floor = footers[next_footer][1]
            next_footer += 1
        else:
            last = _end_of_key(raw, end, min(bound, end + _LONGEST))
            if last > end:
                spans.append((start, last, "private-key"))
            floor = max(last, end)
    for footer in footers[next_footer:]:
        _add_headless(raw, footer, floor, spans)
        floor = footer[1]


def _is_key(body: bytes) -> bool:
    """Return whether the text is a key, not ``…`` or the rest of an expression that searches for keys."""
    return sum(map(len, re.findall(rb"[A-Za-z0-9+/=]{8,}", body))) * 2 >= max(40, len(body)) and turns(body) >= 6


def _lines(raw: bytes, start: int, bound: int) -> list[tuple[int, int]]:
    r"""Return the bounds of the lines, whose breaks may be written as ``\n`` within a string."""
    lines = []
    for found in islice(_BREAK.finditer(raw, start, bound), _MOST_LINES):
        lines.append((start, found.start()))
        start = found.end()
    return [*lines, (start, bound)]


def _end_of_key(raw: bytes, start: int, bound: int) -> int:
    """Return where the base 64 behind a header ends, if there is no footer."""
    last = start
    lines = _lines(raw, start, bound)
    for at, stop in lines:
        line = raw[at:stop]
        key = _KEY_LINE.fullmatch(line) or (_KEY_LINE.match(line) if (at, stop) == lines[-1] else None)
        if key is not None and (len(key[1]) >= 16 or (last > start and turns(key[1]) >= 1)):
            last = at + key.end(1)
        elif last > start or not _ATTRIBUTE.fullmatch(line):
            break
    return last


def _add_headless(raw: bytes, footer: tuple[int, int], floor: int, spans: list[Span]) -> None:
    """Find the end of a key whose beginning was cut off."""
    first = footer[0]
    longest = 0
    for at, stop in reversed(_lines(raw, max(floor, footer[0] - _LONGEST), footer[0])):
        line = raw[at:stop]
        key = _KEY_LINE.fullmatch(line)
        if key is not None and (len(key[1]) >= 16 or not longest):
            first, longest = at + key.start(1), max(longest, len(key[1]))
        elif longest or not _ATTRIBUTE.fullmatch(line):
            tail = _KEY_TAIL.search(line, max(0, len(line) - 4096))
            if tail is not None:  # the first line, which may follow other text
                first, longest = at + tail.start(), 32
            break
    if longest >= 16:
        spans.append((first, footer[1], "private-key"))
