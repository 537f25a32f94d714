"""File names that survive any title, on any file system."""

import hashlib
import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime

from kite_memory.vault.wording import entity_key, one_line, stem_key

MAX_STEM = 60
_MAX_SLUG = 48

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNDECOMPOSED = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ħ": "h"})
_DEVICES = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?", re.IGNORECASE)
_PAGE_NAME = re.compile(r"\w(?:[\w .+&'()-]*[\w+)])?")


def slug(title: str) -> str:
    """Lower-case ASCII letters, digits and hyphens, at most 48 of them, never empty.

    Where folding loses letters (other scripts) a short hash of the title keeps two of them apart.
    """
    folded = unicodedata.normalize("NFKD", one_line(title).casefold().translate(_UNDECOMPOSED))
    parts = re.findall(r"[a-z0-9]+", "".join(char for char in folded if not unicodedata.combining(char)))
    text = "-".join(parts)
    lost = any(char.isalnum() and not char.isascii() for char in folded)
    if not text:
        return f"note-{_tag(title)}"
    if not lost:
        return _cut(text, _MAX_SLUG)
    return f"{_cut(text, _MAX_SLUG - 7)}-{_tag(title)}"


def note_stem(title: str, at: datetime) -> str:
    """``<slug>-<mon><yy>``: what a note's file is called without its ``.md``. The month is UTC's, its name English."""
    at = at.astimezone(UTC)
    return f"{slug(title)}-{_MONTHS[at.month - 1]}{at.year % 100:02d}"


def page_stem(name: str) -> str:
    """What an entity's page is called: its own name where that is a safe file name, so that ``[[name]]`` leads there."""
    name = unicodedata.normalize("NFC", one_line(name))
    safe = (
        len(name) <= MAX_STEM
        and len(name.encode()) <= 3 * MAX_STEM
        and _PAGE_NAME.fullmatch(name)
        and not _DEVICES.fullmatch(name)
        and not name.casefold().endswith(".md")
    )
    return name if safe else f"{slug(name)}-{_tag(entity_key(name))}"


def unique(stem: str, taken: Callable[[str], bool]) -> str:
    """The stem, or the first of ``-2``, ``-3``, … that is free; ``taken`` is asked with `stem_key`."""
    candidate, count = stem, 1
    while taken(stem_key(candidate)):
        count += 1
        candidate = f"{_cut(stem, MAX_STEM - len(str(count)) - 1)}-{count}"
    return candidate


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head, hyphen, _ = text[: limit + 1].rpartition("-")
    return head if hyphen and len(head) > limit // 2 else text[:limit].rstrip(" -.")


def _tag(text: str) -> str:
    return hashlib.sha256(stem_key(text).encode("utf-8", "replace")).hexdigest()[:6]
