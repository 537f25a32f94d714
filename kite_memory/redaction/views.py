"""Alternative readings of a text: with escapes resolved, and with broken lines joined."""

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from kite_memory.redaction.chance import Span, digits, oddness, turns, wordlike
from kite_memory.redaction.vendors import every_vendor
from kite_memory.text import lazy_regex

_DUMP_LINE = lazy_regex(
    rb"[ \t|>]{0,16}(?:0x)?[0-9a-f]{4,16}:?[ \t]{1,4}((?:[0-9a-f]{2}[ \t]{0,2}){1,16}+)[^\r\n]{0,60}+\r?", re.IGNORECASE
)
"""A line of ``xxd`` or ``hexdump -C``: an offset, bytes, and their text."""
_DUMP = lazy_regex(rb"0(?<=[0-9a-fA-F]{4})(?::|[ \t])[ \t]{1,3}[0-9a-fA-F]{2} ?[0-9a-fA-F]{2} ")
_MOST_LINES = 4000
_OF_SECRETS = lazy_regex(rb"pass|pwd|\bpw\b|secret|token|cred|key", re.IGNORECASE)
"""What names a dumped file as one with a password."""


_NUMBER = rb"(?:0x[0-9a-f]{2}|[0-9]{2,3})"
_ARRAY = lazy_regex(
    rb",(?<=[0-9a-f],)\s{0,12}+" + _NUMBER + rb"(?:\s{0,12}+,\s{0,12}+" + _NUMBER + rb"){3,4096}+,?\s{0,8}[\])}]{0,3}",
    re.IGNORECASE,
)
_FEWEST_COMMAS = 4
_FIRST_NUMBER = lazy_regex(_NUMBER + rb"\Z", re.IGNORECASE)
_CALL = lazy_regex(
    rb"(?:(?:bytes|bytearray|buffer\.from|string\.fromcharcode|uint8array)\(|\[\]byte|(?:\"\"|'')\.join\(map\(chr,\s{0,4})?"
    rb"[\[{(]{0,2}\s{0,8}\Z",
    re.IGNORECASE,
)
_JOINTS = (
    (b"+", b"+", lazy_regex(rb"\+[ \t\r\n]{0,24}([\"'`])(?=[^\s\"'`])")),
    (b".", b" . ", lazy_regex(rb" \. {1,2}([\"'])(?=[^\s\"'`])")),
    (b".", b"'.'", lazy_regex(rb"\.(')(?=[^\s'])")),
    (b".", b'"."', lazy_regex(rb"\.(\")(?=[^\s\"])")),
    (b".", b" .. ", lazy_regex(rb" \.\. {1,2}([\"'])(?=[^\s\"'`])")),
    (b".", b".concat(", lazy_regex(rb"\.concat\(([\"'])(?=[^\s\"'`])")),
    (b"{", b'}{"', lazy_regex(rb"\}\{([\"'])(?=[^\s\"'`])")),
    (b'"', b'" "', lazy_regex(rb" (\")(?=[A-Za-z0-9_\-])")),
    (b"'", b"' '", lazy_regex(rb" (')(?=[A-Za-z0-9_\-])")),
    (b"\\", b"\\\n", lazy_regex(rb" \\\n[ \t]{0,40}([\"'])(?=[^\s\"'])")),
    (b'"', b'"\n', lazy_regex(rb"\n[ \t]{1,40}(\")(?=[^\s\"]{1,40}\")")),
)
"""Where a literal begins that continues the one before, behind two literals that such a text holds. To look for one character
takes a hundredth of the time of looking for several, so the rarest comes first.
"""
_ANY_DOT = lazy_regex(rb"\.(?:(?<= \.)\.? |(?<=[\"']\.)[\"']|concat\()")
_SHELL_WORD = lazy_regex(
    rb"=(?P<word>(?:\"[^\"\s$`\\]{1,40}\"|'[^'\s]{1,40}'){2,16}+[\w!%+.\-]{0,24}|[\w!%+.\-]{1,24}+(?:\"[^\"\s$`\\]{1,40}\"|'[^'\s]{1,40}'){1,16}+)"
    rb"(?=[\s;&|)]|\Z)"
)
_CLOSED_AND_OPENED = (b'""', b"''", b"\"'", b"'\"")
_CUT_IN_A_WORD = lazy_regex(rb"(?<=[A-Za-z0-9_])\\\n[ \t]{0,24}(?=[A-Za-z0-9_\-.])")
_OPENED = (b'${"', b"${'")
_WITHIN = lazy_regex(rb"\$\{[\"']|[\"']\}(?<=[A-Za-z0-9_\-]..)")


def joints(raw: bytes) -> list[tuple[int, int, bytes]]:
    """Return edits that join the pieces of a literal."""
    edits: list[Edit] = []
    if b'"' not in raw and b"'" not in raw and b"`" not in raw:
        return edits
    if b"$" in raw and any(sign in raw for sign in _OPENED):
        edits += ((found.start(), found.end(), b"") for found in _WITHIN.finditer(raw))
    words = list(_SHELL_WORD.finditer(raw)) if b"=" in raw else []
    if words and any(sign in raw for sign in _CLOSED_AND_OPENED):
        edits += ((*word.span("word"), b'"%b"' % word["word"].translate(None, b"\"'")) for word in words)
    dotted = _ANY_DOT.search(raw) is not None
    for first, sign, joint in _JOINTS:
        if first not in raw or (first == b"." and not dotted) or sign not in raw:
            continue
        for found in joint.finditer(raw):
            gap = raw[max(0, found.start() - 4) : found.start()]
            before = gap.rstrip(b" \t")
            if before.endswith(found[1]) and before[-2:-1] not in (b"", b" ", b"=", b"(", found[1]):
                edits.append((found.start() - (len(gap) - len(before)) - 1, found.end(), b""))
    return edits


_LITERALS = rb"\s{0,16}+(?P<of>(?:[bru]?(?:\"[^\"\\\r\n]{0,80}+\"|'[^'\\\r\n]{0,80}+')\s{0,16}+,?\s{0,16}+){2,32}+)"
_BY = rb"([\"'])(?P<by>[^\"'\\\r\n]{0,3})\1"
_JOINED = (
    (b".join(", lazy_regex(_BY + rb"\.join\(\s{0,16}[\[({]" + _LITERALS + rb"[\])}]\)?")),
    (b"].join(", lazy_regex(rb"\[" + _LITERALS + rb"\]\.join\(\s{0,4}" + _BY.replace(rb"\1", rb"\2") + rb"\s{0,4}\)")),
    (
        b"string{",
        lazy_regex(rb"Join\(\[\]string\{" + _LITERALS + rb"\}\s{0,4},\s{0,4}" + _BY.replace(rb"\1", rb"\2") + rb"\s{0,4}\)"),
    ),
    (b"concat(", lazy_regex(rb"(?i:concat)\(\s{0,4}" + _LITERALS + rb"(?P<by>)\)")),
    (b"CONCAT(", lazy_regex(rb"CONCAT\(\s{0,4}" + _LITERALS + rb"(?P<by>)\)")),
    (b"implode(", lazy_regex(rb"implode\(\s{0,4}" + _BY + rb"\s{0,4},\s{0,4}(?:\[|array\()" + _LITERALS + rb"[\])]\)?")),
)
"""A list of literals that a program joins."""
_LITERAL = lazy_regex(rb"\"([^\"]{0,80})\"|'([^']{0,80})'")


_SINGLE = lazy_regex(rb"[\[{(]\s{0,8}(?:'[^'\\\r\n]'\s{0,4},\s{0,4}){3,64}+(?:'[^'\\\r\n]'|'\\0'|0)\s{0,4}[\]})](?!\.join|\))")
_SINGLE_LETTER = lazy_regex(rb"'([^'])'")
_CHARACTERS = lazy_regex(
    rb"chr\([0-9]{2,3}\)(?:\s{0,4}[+.&|]{1,2}\s{0,4}chr\([0-9]{2,3}\)){3,256}+"
    rb"|\[char\][0-9]{2,3}(?:\s{0,4}\+\s{0,4}\[char\][0-9]{2,3}){3,256}+",
    re.IGNORECASE,
)
_BACKWARDS = lazy_regex(
    rb"([\"'])(?P<word>[^\"'\\\s]{6,80}+)\1(?:\.split\((?:\"\"|'')\)\.reverse\(\)\.join\((?:\"\"|'')\)|\[::-1\]|\.reverse\b(?!\())"
)
_OF_CHARACTERS = (b"chr(", b"CHR(", b"[char]")
_CHARACTER = lazy_regex(rb"[0-9]{2,3}")
_ANY_CALL = lazy_regex(rb"\((?:(?<=join\()|(?<=concat\()|(?<=CONCAT\()|(?<=implode\()|(?<=chr\()|(?<=CHR\())")


def lists(raw: bytes) -> list[tuple[int, int, bytes]]:
    """Return edits that replace a list of literals by the joined one."""
    if (
        not (b"(" in raw and _ANY_CALL.search(raw))
        and not (b"{" in raw and b"string{" in raw)
        and not (b"[" in raw and b"[char]" in raw)
    ):
        return []
    found = [call for sign, joined in _JOINED if sign in raw for call in joined.finditer(raw)]
    return [
        (call.start(), call.end(), b'"%b"' % call["by"].join(one or other for one, other in _LITERAL.findall(call["of"])))
        for call in found
    ] + [
        (chain.start(), chain.end(), b'"%b"' % bytes(int(code) & 127 for code in _CHARACTER.findall(chain[0])))
        for chain in (_CHARACTERS.finditer(raw) if any(sign in raw for sign in _OF_CHARACTERS) else ())
    ]


def arrays(raw: bytes) -> list[tuple[int, int, bytes]]:
    """Return edits that replace lists of numbers by the text they encode, where it is text."""
    found: list[Edit] = []
    if b"'" in raw and (b"','" in raw or b"', '" in raw):
        found += ((each.start(), each.end(), b'"%b"' % b"".join(_SINGLE_LETTER.findall(each[0]))) for each in _SINGLE.finditer(raw))
    for array in _ARRAY.finditer(raw):
        first = _FIRST_NUMBER.search(raw, max(0, array.start() - 4), array.start())
        if first is None:
            continue
        numbers = re.findall(_NUMBER, raw[first.start() : array.end()], re.IGNORECASE)
        codes = [int(number, 16 if number[:2] in (b"0x", b"0X") else 10) for number in numbers]
        while codes and codes[-1] == 0:
            codes.pop()  # the end of a string of C
        if len(codes) >= _FEWEST_COMMAS and all(32 <= code < 127 for code in codes):
            call = _CALL.search(raw, max(0, first.start() - 32), first.start())
            found.append((call.start() if call else first.start(), array.end(), b'"' + bytes(codes).replace(b'"', b"'") + b'"'))
    return found


def find_dumped(raw: bytes, look_inside: Callable[[bytes], str], spans: list[Span]) -> None:
    """Find dumps whose bytes hold a secret; each is taken as a whole."""
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
        text = bytes(code if code in _PRINTABLE else 32 for code in plain)
        if len(plain) >= 16 and (kind := look_inside(text)):
            spans.append((begin, end, kind))
        elif oddness(text.strip()) and _OF_SECRETS.search(raw, max(0, begin - 80), begin):
            spans.append((begin, end, "password"))
        at = max(end, first.end())


PAIR = lazy_regex(rb"[^\s:]{1,128}:[^\s]{4,512}")
"""A name and a password, as ``.npmrc`` and Docker's settings have them in base 64."""
_PRINTABLE = bytes(code for code in range(256) if 32 <= code < 127 or code in b"\r\n\t")
_FIRST = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"
_SECOND = b"ABCDEFGHQRSTUVWXghijklmnwxyz0123"
_THIRD = b"ABEFIJMNQRUVYZcdghklopstwx014589"
"""What base 64 of ASCII text can have at the first, second and third place of each four: an eighth of all base 64."""
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_TENS = b"234567"
_BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_HEX = b"0123456789abcdefABCDEF"


def decoded(text: bytes) -> bytes:
    """Return the ASCII text that base 64 ``text`` encodes, also as UTF-16 (PowerShell); empty for anything else."""
    head = text[:64]
    if head[0::4].translate(None, _FIRST) or head[2::4].translate(None, _THIRD) or head[1::4].translate(None, _SECOND):
        return b""
    body = text.translate(_URL_SAFE)
    if len(body) % 4 == 1:
        body = body[:-1]
    plain = binascii.a2b_base64(body + b"=" * (-len(body) % 4))
    if b"\0" in plain and not plain[1::2].strip(b"\0"):
        plain = plain[0::2]
    return b"" if plain.translate(None, _PRINTABLE) else plain


def hexadecimal(text: bytes) -> bytes:
    """Return the ASCII text that hexadecimal ``text`` encodes; empty if it encodes no such text."""
    if len(text) % 2 or text[0:32:2].translate(None, _TENS) or text.translate(None, _HEX):
        return b""
    plain = binascii.a2b_hex(text)
    return b"" if plain.translate(None, _PRINTABLE) else plain


def base32(text: bytes) -> bytes:
    """Return the ASCII text that base 32 ``text``, without its padding, encodes; empty if it encodes no such text."""
    if len(text) % 8 in (1, 3, 6) or text.translate(None, _BASE32):
        return b""
    plain = base64.b32decode(text + b"=" * (-len(text) % 8))
    return b"" if plain.translate(None, _PRINTABLE) else plain


Edit = tuple[int, int, bytes]
"""``[start, end)`` of the text is replaced by these bytes."""

_AROUND = 2048
"""Most bytes of the text on either side of an edit that are searched again: its line and the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A text with edits applied.

    ``starts`` are offsets in ``raw``; for each, ``origins`` is where the text from there on comes from. ``seams`` are the edits'
    places in ``raw``: a secret that touches none of them can be found in the original text.
    """

    raw: bytes
    starts: tuple[int, ...]
    origins: tuple[tuple[int, int], ...]
    seams: tuple[tuple[int, int], ...]

    def touched(self, start: int, end: int) -> bool:
        """Return whether ``[start, end)`` overlaps a seam, and so could not be found in the original text."""
        at = bisect_right(self.seams, (start, len(self.raw) + 1))
        return any(low < end and high > start for low, high in self.seams[max(0, at - 1) : at + 1])

    def behind(self, start: int, end: int) -> tuple[bytes, int]:
        """Return the part of ``[start, end)`` behind its last seam, and where that seam begins in the original text."""
        at = bisect_right(self.seams, (end - 1, len(self.raw))) - 1
        low, high = self.seams[at]
        return self.raw[max(start, high) : end], self._start(low - 1) + 1 if low else 0

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the original text ``[start, end)`` comes from."""
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
    """Return the lines around the edits with the edits applied. ``edits`` must be in order and must not overlap."""
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
    """Return the start of the line before, which may hold the name."""
    low = max(floor, at - _AROUND)
    return max(low, raw.rfind(b"\n", low, max(low, raw.rfind(b"\n", low, at))) + 1)


def _line_end(raw: bytes, at: int, ceiling: int) -> int:
    high = min(ceiling, at + _AROUND)
    found = raw.find(b"\n", at, high)
    return found if found >= 0 else high


_ESCAPES = (
    (b"%", lazy_regex(rb"%(?:[2-7][0-9A-Fa-f]|0[aAdD])")),
    (b"&", lazy_regex(rb"&(?:#[0-9]{2,3}|#[xX][0-9A-Fa-f]{2}|quot|amp|apos|lt|gt|lowbar|hyphen|equals|colon|sol|plus|period);")),
    (
        b"\\",
        lazy_regex(
            rb"\\(?:\\{0,3}(?:u00[2-7][0-9A-Fa-f]|x[2-7][0-9A-Fa-f])|/"
            rb"|\\{0,3}(?:u001[bB]|x1[bB]|033|e)\[[0-9;]{0,24}[A-Za-z]|\\{0,3}[01][0-7]{2}(?=\\|[\"']))"
        ),
    ),
)


def resolved(raw: bytes) -> View | None:
    """Return a view with URL, HTML and JSON escapes resolved, and split literals and byte lists joined; else ``None``."""
    edits: list[Edit] = []
    for sign, escape in _ESCAPES:
        if sign in raw:
            edits += ((found.start(), found.end(), _meaning(found[0])) for found in escape.finditer(raw))
    if b"\\" in raw and b"\\\n" in raw:
        edits += ((found.start(), found.end(), b"") for found in _CUT_IN_A_WORD.finditer(raw))
    if b'"' in raw or b"'" in raw or b"`" in raw:
        edits += joints(raw)
    if raw.count(b",") >= _FEWEST_COMMAS:
        edits += arrays(raw)
    if b".reverse" in raw or (b"[" in raw and b"[::-1]" in raw):
        edits += ((each.start(), each.end(), b'"%b"' % each["word"][::-1]) for each in _BACKWARDS.finditer(raw))
    if b"(" in raw or b"[char]" in raw:
        edits += lists(raw)
    return edited(raw, _apart(sorted(edits))) if edits else None


def _meaning(escape: bytes) -> bytes:
    if escape.startswith(b"&"):
        return html.unescape(escape.decode()).encode("ascii", "replace")
    if escape.startswith(b"\\") and b"[" in escape:
        return b""
    if escape.endswith(b"/"):
        return b"/"
    if escape[-4:-3] == b"\\" and escape[-3:].isdigit():
        return bytes([max(32, int(escape[-3:], 8))])
    return bytes([int(escape[-2:], 16)])


_INNER = rb"[A-Za-z0-9_\-+/=.~%:$]"
_LAST = rb"[A-Za-z0-9_\-+/=.~%:$#!@&*^]"
_LONG = _INNER + rb"{8}"
_FRAME = rb"[ \t]{0,200}+(?:(?:[>|?#*]|[0-9]{1,6}[?|\t])[ \t]{0,80}+){0,3}"
"""Indentation, and what tools put before each line: quote and comment signs, frames, line numbers."""


_NEWLINE = lazy_regex(
    rb"\n(?:(?<=" + _LAST + rb"{8}\n)" + _FRAME + rb"(?!-[ \t\-])(?=" + _INNER + rb")"
    rb"|(?<=" + _LAST + rb"\n)" + _FRAME + rb"(?!-[ \t\-])(?=" + _LONG + rb")"
    rb"|(?:(?<=[ \r|]\n)|(?<=[^0-9][?\t]\n))" + _FRAME + rb"(?!-[ \t\-])(?=" + _INNER + rb"))"
)
_CONTINUED = lazy_regex(
    rb"\\(?:(?<=" + _LONG + rb"\\)|(?<=" + _INNER + rb"\\)(?=[\\rn \t\r\n]{1,80}" + _LONG + rb"))"
    rb"\\{0,3}+(?:r\\{1,4}+)?+(?:n|[ \t]{0,4}\r?\n)" + _FRAME + rb"(?=" + _INNER + rb")"
)
"""A line break with at least one side long enough to be half of a token."""
_RUN = bytes(ord("x") if (code < 128 and chr(code).isalnum()) or code in b"_-+/=.~%:!@$^&*#" else ord(" ") for code in range(256))
_ASSIGNMENT = lazy_regex(rb"([A-Za-z_][A-Za-z0-9_.\-]{0,63})[ \t]{0,4}(?:=(?!=)|:(?:\s|\Z)|[(\[])")
_SIGNS = bytes.maketrans(b":@", b"==")
_FILE = lazy_regex(rb"/[^/]{1,80}\.[a-z]{1,5}\Z")
_HEX_TAIL = lazy_regex(rb"[0-9a-f]{7}\Z")
_HEX_HEAD = lazy_regex(rb"[0-9a-f]{7,64}+(?![A-Za-z0-9_])")
_NOT_HEX = b"ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ"
_PADDING = b" \t\r?|\\"
_REACH = 256
_PIECE = 40
_SHORTEST = 12


def put_together(raw: bytes) -> View | None:
    """Return a view with lines joined where a break may split a token: continued, wrapped, indented, framed or quoted lines."""
    edits: list[Edit] = []
    runs = b""
    for found in _NEWLINE.finditer(raw):
        start, end = found.span()
        if raw[start - 1] in _PADDING:
            start -= len(raw[max(0, start - _REACH) : start]) - len(raw[max(0, start - _REACH) : start].rstrip(_PADDING))
        runs = runs or raw.translate(_RUN)
        if _within_token(raw, runs, start, end):
            edits.append((start, end, b""))
    if b"\\" in raw:
        runs = runs or raw.translate(_RUN)
        escaped = [
            (found.start(), found.end(), b"")
            for found in _CONTINUED.finditer(raw)
            if _within_token(raw, runs, found.start(), found.end())
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


def _within_token(raw: bytes, runs: bytes, start: int, end: int) -> bool:
    """Return whether the text before and after a break can be one token, and not two words. ``runs`` is ``raw`` by `_RUN`."""
    first = max(max(0, start - _PIECE), runs.rfind(b" ", max(0, start - _PIECE), start) + 1)
    last = runs.find(b" ", end, end + _PIECE)
    last = last if last >= 0 else min(len(raw), end + _PIECE)
    if first >= start or end >= last or start - first + last - end < _SHORTEST:
        return False
    left, right = raw[first:start], raw[end:last]
    capitals = left[-4:].isupper() and right[:4] == right[:4].upper()
    if not capitals and turns(left + right) < 2 and digits(left + right) < 4:
        return False
    if right[0] in b"/" and b"/" in left and wordlike(right):
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
    """Return whether a piece of a token may look like this: digits among letters, or letters of both cases in no order."""
    unrest = turns(piece)
    if unrest and unrest * 5 >= len(piece):
        return True
    return (unrest >= 2 or digits(piece) >= 4) and not wordlike(piece)
