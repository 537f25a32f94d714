"""Normalization before redaction: invisible characters are removed, lookalike characters unified.

Also what a person marked as private, and a person's own literals to redact, which are stored only as keyed hashes.
"""

import hashlib
import hmac
import re
import unicodedata
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kite_memory.text import lazy_regex

if TYPE_CHECKING:  # whose expressions take longer to compile than most commands to run
    from kite_memory.redaction.chance import Span

_LESS = rb"(?:<|%3c|\\u003c|\\x3c|&(?:amp;)?(?:lt|#0{0,4}60|#x0{0,4}3c);?)"
_MORE = rb"(?:>|%3e|\\u003e|\\x3e|&(?:amp;)?(?:gt|#0{0,4}62|#x0{0,4}3e);?)"
_SLASH = rb"(?P<close>/|%2f|\\u002f|\\/|&#0{0,4}47;|&#x0{0,4}2f;)"
_TAG = lazy_regex(_LESS + rb"\s{0,8}" + _SLASH + rb"?\s{0,8}private(?![\w\-])[^<>&]{0,200}?" + _MORE)
_PASSES = 8


def drop_private(text: str) -> str:
    """Return ``text`` without what is between ``<private>`` and ``</private>``, tags included.

    An unclosed tag drops everything after it, since losing a sentence is better than keeping a secret. Tags may be nested.
    """
    if _is_plain(text):
        return text
    for _ in range(_PASSES):
        seen = clean(text)
        kept = _outside(seen)
        if kept == seen:
            return text
        text = kept
    tag = _TAG.search(bare(text).lower())
    return text[: tag.start()] if tag else text


def _is_plain(text: str) -> bool:
    """Return whether a tag can be in the text neither as it is nor disguised: no letter is folded, and nothing is hidden."""
    raw = text.encode("utf-8", "surrogatepass")
    if b"private" in raw.lower() or b"\x1b" in raw:
        return False
    if text.isascii():
        return True
    others = raw.translate(None, _PLAIN).decode("utf-8", "surrogatepass")
    return "\x9b" not in others and not _ANY_HIDDEN.search(others) and not _FOLDABLE.search(others)


def _outside(text: str) -> str:
    small = bare(text).lower()
    if b"private" not in small:
        return text
    pieces: list[str] = []
    depth = at = 0
    for tag in _TAG.finditer(small):
        if tag["close"]:
            if depth == 1:
                at = tag.end()
            depth = max(0, depth - 1)
        else:
            if depth == 0:
                pieces.append(text[at : tag.start()])
            depth += 1
    return "".join(pieces) if depth else "".join((*pieces, text[at:]))


_ESCAPES = lazy_regex(
    "\x1b(?:\\[[0-?]{0,64}[ -/]{0,8}[@-~]?|[\\]PX^_](?:[^\x07\x1b]{0,4096}(?:\x07|\x1b\\\\))?|[ -/]{1,4}[0-~]?"
    "|[0-Z\\\\^_`a-z{|}~])?"
    "|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]?"
)
"""ECMA-48: control sequences, strings (window titles, links), and whatever else begins with ESC."""
_HIDDEN = (
    "\x00-\x08\x0e-\x1f\x7f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f"
)
_WIDE = "\uff01-\uff5e\U0001d400-\U0001d7ff"
_SEEN = f"\\t\\n\\r\\x20-\\x7e{_WIDE}"
_INVISIBLE = lazy_regex(f"[{_HIDDEN}](?<=[{_SEEN}].)[{_HIDDEN}]{{0,65536}}+(?=[{_SEEN}])", re.DOTALL)
"""Only between plain characters: a joiner within an emoji or a word of another script has a meaning."""
_CONTROLS = bytes([*range(9), *range(14, 32), 127])
_ASCII = bytes(range(128))
_PLAIN = _ASCII.translate(None, _CONTROLS)
_ANY_HIDDEN = lazy_regex(f"[{_HIDDEN}]")
_LETTERS = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u052f\u1e00-\u1fff"
_FOLDABLE = lazy_regex(
    f"[\uff0d\uff0f-\uff1a\uff1c-\uff1e\uff20-\uff3a\uff3f\uff41-\uff5a\U0001d400-\U0001d7ff\u2500-\u257f{_LETTERS}]{{1,65536}}+"
)
_CYRILLIC = "abvgdejziyklmnoprstufhcqwx_y_eui"
_LOOKALIKES = {
    **dict(zip("асеорхуіѕјҽԁԛԝһАВЕКМНОРСТУХІЅЈ", "aceopxyisjedqwhABEKMHOPCTYXISJ", strict=True)),
    **dict(zip("αβγδεζηθικλμνξοπρσςτυφχψω", "abgdezhqiklmnxoprsstufcyw", strict=True)),
    **dict(zip("łøđðßıæœŋþħŧəєґ", "lodds" + "iaon" + "phteeg", strict=True)),
}
"""Letters that are replaced by Latin ones: those that look alike, used as a disguise, and those with a Latin equivalent."""
OTHER_LETTER = 0xF0
"""The byte for a letter of a script that has no Latin equivalents here."""
LABEL = 0xF1
"""The byte for each character of a word for "password" in such a script."""


@cache
def _folds() -> dict[int, str]:
    """Return replacements of one character by one, so that offsets stay."""
    folded = {0x430 + at: letter for at, letter in enumerate(_CYRILLIC) if letter != "_"}
    folded |= {ord(letter): plain for letter, plain in _LOOKALIKES.items()}
    folded |= {ord("ъ"): "y", ord("ь"): "y"}
    folded |= {code: "-" if chr(code) in "─━═" else "|" if chr(code) in "│┃║" else "+" for code in range(0x2500, 0x2580)}
    for code in (*range(0xAA, 0x530), *range(0x1E00, 0x2000)):
        small = unicodedata.normalize("NFKD", chr(code).lower())[:1]
        plain = small if "a" <= small <= "z" else folded.get(ord(small), "") if small else ""
        if code not in folded and plain and chr(code).isalpha():
            folded[code] = plain if chr(code).islower() else plain.upper()
    for code in (*range(0xFF01, 0xFF5F), *range(0x1D400, 0x1D800)):
        plain = unicodedata.normalize("NFKC", chr(code))
        if len(plain) == 1 and plain.isascii():
            folded[code] = plain
    return folded


@cache
def tables(file: str) -> list[tuple[str, dict[str, str]]]:
    """Return the tables of a file beside this module, each with its name.

    A line with brackets begins a table, ``name = value`` is an entry, and an indented line continues the value above. A value with
    blanks at its ends is in quotes.
    """
    found: list[tuple[str, dict[str, str]]] = []
    name = ""
    for line in Path(__file__).with_name(file).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            found.append((line[1:-1], {}))
        elif line.startswith("    "):
            found[-1][1][name] += line[3:]
        elif line and not line.startswith("#"):
            name, _, value = line.partition(" =")
            value = value[1:]
            found[-1][1][name] = value[1:-1] if value.startswith('"') and value.endswith('"') else value
    return found


def listed(text: str) -> list[bytes]:
    """Return each word of one of our own lists as `bare` does, without its expressions, which take long to compile."""
    return [_folded_letters(word) for word in text.split()]


def _folded_letters(word: str) -> bytes:
    if not word.isascii():
        word = word.translate(_folds())
        word = "".join(each if each.isascii() else chr(OTHER_LETTER) if each >= _OTHERS_BEGIN else "?" for each in word)
    return word.encode("latin-1")


def _other_labels() -> list[str]:
    labels = next(table for name, table in tables("words.txt") if name == "labels")
    stems = (label.strip("*~?") for several in labels.values() for label in several.split(", "))
    return [stem for stem in stems if not stem.translate(_folds()).isascii()]


_OTHERS_BEGIN = "\u0530"
_OTHER_LETTER = lazy_regex(
    f"[{_OTHERS_BEGIN}-\u1cff\u2c00-\u2dff\u3005-\u3007\u3031-\ud7ff\uf900-\ufaff\ufb1d-\ufdff\ufe70-\ufefc\uff66-\uffdc]"
)
_OTHER_LETTERS = lazy_regex(f"{_OTHER_LETTER.pattern}{{1,65536}}+")


@cache
def _any_other_label() -> re.Pattern[str]:
    return lazy_regex("|".join(map(re.escape, sorted(_other_labels(), key=len, reverse=True))))


def clean(text: str) -> str:
    """Return ``text`` without terminal escapes and without invisible characters between plain ones. Idempotent."""
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if text.isascii() and not text.encode().translate(None, _PLAIN):
        return text
    return _INVISIBLE.sub("", text) if _ANY_HIDDEN.search(_without(_PLAIN, text)) else text


def _without(letters: bytes, text: str) -> str:
    """Return ``text`` without these ASCII ``letters``; many times faster than a regular expression."""
    return text.encode("utf-8", "surrogatepass").translate(None, letters).decode("utf-8", "surrogatepass")


def _folded(found: re.Match[str]) -> str:
    return found[0].translate(_folds())


def bare(text: str) -> bytes:
    """Return ``text`` with one byte for each character.

    Letters with a Latin equivalent (accented, Cyrillic, Greek, full-width, mathematical) become it, and the lines of a table drawn
    with box characters those of one in ASCII. Labels in other scripts become
    `LABEL`, their other letters `OTHER_LETTER`, and anything that is no letter ``?``.
    """
    if text.isascii():
        return text.encode()
    others = _without(_ASCII, text)
    if _FOLDABLE.search(others):
        text = _FOLDABLE.sub(_folded, text)
    raw = text.encode("ascii", "replace")
    if not _OTHER_LETTER.search(others):
        return raw
    marked = bytearray(raw)
    for code, pattern in ((OTHER_LETTER, _OTHER_LETTERS), (LABEL, _any_other_label())):
        for found in pattern.finditer(text):
            marked[found.start() : found.end()] = bytes((code,)) * len(found[0])
    return bytes(marked)


KIND = "protected"
SHORTEST = 6
LONGEST = 4096
_PROBE_BITS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedLiteral:
    """A protected literal. ``probe`` is a short keyed sum to skip most of a text quickly; ``digest`` decides."""

    length: int
    probe: int
    digest: str


def literal(key: bytes, text: str) -> ProtectedLiteral:
    return ProtectedLiteral(length=len(text), probe=_probe(key, text), digest=_digest(key, text))


@dataclass(frozen=True, kw_only=True)
class Literals:
    key: bytes
    known: tuple[ProtectedLiteral, ...]

    def find(self, text: str) -> "list[Span]":
        """Return where a literal occurs, also within a word. Takes time linear in ``text`` for each length of a literal."""
        import numpy as np  # imported late: most people protect nothing

        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
        base = _base(self.key)
        length = len(codes)
        powers = np.cumprod(np.full(length, base, np.uint64), dtype=np.uint64)
        inverse = np.cumprod(np.full(length, pow(base, -1, 1 << 64), np.uint64), dtype=np.uint64)
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(codes * powers, dtype=np.uint64)))
        found: list[Span] = []
        for size, wanted in self._by_length.items():
            if size > length:
                continue
            probes = ((sums[size:] - sums[:-size]) * inverse[: length - size + 1]) >> np.uint64(64 - _PROBE_BITS)
            candidates = np.flatnonzero(np.isin(probes, np.array(list(wanted), np.uint64)))
            found += (
                (start, start + size, KIND)
                for start in map(int, candidates)
                if _digest(self.key, text[start : start + size]) in wanted[int(probes[start])]
            )
        return found

    @cached_property
    def _by_length(self) -> dict[int, dict[int, set[str]]]:
        table: dict[int, dict[int, set[str]]] = {}
        for each in self.known:
            table.setdefault(each.length, {}).setdefault(each.probe, set()).add(each.digest)
        return table


def _base(key: bytes) -> int:
    return int.from_bytes(hashlib.sha256(b"probe" + key).digest()[:8], "big") | 1


def _probe(key: bytes, text: str) -> int:
    """Return the upper bits of the polynomial of the code points modulo 2**64, as `Literals.find` computes it."""
    base, total, power = _base(key), 0, 1
    for character in text:
        total += ord(character) * power
        power = power * base % (1 << 64)
    return (total % (1 << 64)) >> (64 - _PROBE_BITS)


def _digest(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


_protected: Literals | None = None


def protect(literals: Literals | None) -> None:
    """Set the literals that are redacted everywhere in this process from now on."""
    global _protected
    _protected = literals if literals is not None and literals.known else None


def find_protected(text: str) -> "list[Span]":
    return _protected.find(text) if _protected is not None and len(text) >= SHORTEST else []
