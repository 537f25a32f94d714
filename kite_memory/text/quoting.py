"""Make untrusted text safe to include in what an agent or a person reads, and to store.

Used for every output: the hook's block, MCP responses, the terminal, and the pages written to the vault. No file and no
database accepts a lone surrogate.
"""

import json
import re
import unicodedata
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

from kite_memory.text import lazy_regex
from kite_memory.text.display import clip_line

_TAG = lazy_regex(r"<(?=[/!?|\s]{0,8}[^\W\d]|!-)")


def safe_json(value: object) -> str:
    """Serialize as JSON with escapes for what reads as a tag and for invisible characters; the value is unchanged."""
    text = _TAG.sub(r"\\u003c", json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
    return text if text.isprintable() else "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


_T = TypeVar("_T")


def mended(value: _T) -> _T:
    """Return the value with U+FFFD for every lone surrogate in its texts; joined pairs become one character.

    Looks into lists, tuples and dataclasses.
    """
    whole: Any = value
    match value:
        case Enum():
            pass
        case str():
            whole = _text(value)
        case tuple():
            whole = tuple(map(mended, value))
        case list():
            whole = list(map(mended, value))
        case _ if is_dataclass(value) and not isinstance(value, type):
            now = {each.name: getattr(value, each.name) for each in fields(value)}
            changed = {name: new for name, old in now.items() if (new := mended(old)) != old}
            whole = replace(value, **changed) if changed else value
        case _:
            pass
    result: _T = whole
    return result


def _text(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_ANSI = lazy_regex(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]"  # colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,2000}(?:\x07|\x1b\\|\x9c)"  # titles, links, device strings
    r"|\x1b[ -/]{0,16}[0-~]"
)
_LINE_ENDS = lazy_regex("\r\n?|[\v\f\x85\u2028\u2029]")
_UNSEEN = lazy_regex(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\ufdd0-\ufdef\uffa0\U000e0000-\U000e0fff]"
)
"""Invisible characters of categories that are otherwise visible: fillers, false blanks, variation selectors, tag characters."""

_LESS = (
    "(?:[<\u2039\u00ab\u226a\u226e\u227a\u2329\u276c\u276e\u2770\u27e8\u27ea\u29fc\u3008\u300a\u1438\u02c2]"
    r"|&(?:amp;|\#0*38;|\#x0*26;)*(?:lt|\#0*60|\#x0*3c);?"
    r"|%(?:25)*3c|\\{1,8}[ux]\{?0*3c\}?)"
)
_GREATER = (
    "(?:[>\u203a\u00bb\u226b\u226f\u227b\u232a\u276d\u276f\u2771\u27e9\u27eb\u29fd\u3009\u300b\u1433\u02c3]"
    r"|&(?:amp;|\#0*38;|\#x0*26;)*(?:gt|\#0*62|\#x0*3e);?"
    r"|%(?:25)*3e|\\{1,8}[ux]\{?0*3e\}?)"
)
_BLANKS = r"\s{0,40}"
_SLASH = (
    "(?:[/!?|%\\\\\u2044\u2215\u29f8]"
    r"|&(?:amp;|\#0*38;|\#x0*26;)*(?:sol|\#0*47|\#x0*2f);?"
    r"|%(?:25)*2f|\\{1,8}[ux]\{?0*2f\}?)"
)
_TAG_START = lazy_regex(f"{_LESS}(?={_BLANKS}{_SLASH}{{0,8}}{_BLANKS}[^\\W\\d]|!\\W?-|!\\[)", re.IGNORECASE)
_TAG_END = lazy_regex(f"(‹[^‹›<>\n]{{1,200}}?){_GREATER}", re.IGNORECASE)
_OWN_NAME = lazy_regex(r"vault[\W_]{1,3}context", re.IGNORECASE)
_OWN_LINE = lazy_regex("^[ \t]*[-\u2010-\u2015\u2212\u2500\u2501\u2e3a\u2e3b\ufe58]{2,}[ \t]*(?=\\[)", re.MULTILINE)
_OTHER_MARKS = lazy_regex(r"\[(/?INST|Relevant\W{1,3}vault)\b", re.IGNORECASE)
_TURN = lazy_regex(r"^[ \t]*(?=(?:human|assistant|system)[ \t]*:)", re.IGNORECASE | re.MULTILINE)


def plain(text: str) -> str:
    """Remove control, escape, bidirectional and invisible characters, for a terminal; newlines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_ENDS.sub("\n", _ANSI.sub("", text))
    return "".join(map(_visible, text))


def plain_line(text: str, length: int = 200) -> str:
    """Return `plain` text on one line of at most ``length`` characters."""
    return clip_line(plain(text[: length * 8]), length)


def quoted(text: str) -> str:
    """Make a text safe inside the injected block."""
    text = plain(text)
    if not text.isascii():
        text = _without_stray_marks("".join(map(_ordinary, text)))
    text = _TAG_START.sub("‹", text)
    text = _TAG_END.sub(r"\1›", text)
    text = _OWN_NAME.sub("vault context", text)
    text = _OTHER_MARKS.sub(r"(\1", text)
    text = _OWN_LINE.sub("- ", text)
    text = _TURN.sub("› ", text)
    return re.sub(r"\n\s*\n\s*", "\n\n", text).strip()


def _without_stray_marks(text: str) -> str:
    """Remove combining marks that are not on a letter: on a ``<`` they would only hide it. Composed letters stay."""
    kept = []
    bearing = False
    for char in unicodedata.normalize("NFC", text):
        if char.isascii():
            bearing = False
        elif unicodedata.category(char)[0] != "M":
            bearing = char.isalnum()
        elif not bearing:
            continue
        kept.append(char)
    return "".join(kept)


@lru_cache(maxsize=4096)
def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if char in "\n\t":
        return char
    if category in ("Cc", "Cf", "Cs", "Co") or _UNSEEN.match(char) or ord(char) & 0xFFFE == 0xFFFE:
        return ""
    return " " if category == "Zs" else char


@lru_cache(maxsize=4096)
def _ordinary(char: str) -> str:
    """Return the ASCII form of a full-width, mathematical or otherwise styled letter or sign; super- and subscript digits stay."""
    if char.isascii() or unicodedata.category(char)[0] not in "LPS":
        return char
    bare = unicodedata.normalize("NFKC", char)
    return bare if bare.isascii() else char
