"""What stands where a secret stood."""

import re
from bisect import bisect_left, bisect_right

from kite_memory.redaction.literals import KIND as PROTECTED
from kite_memory.redaction.names import NAMED_KINDS
from kite_memory.redaction.span import Span, joined
from kite_memory.redaction.tokens import OWN_KINDS
from kite_memory.redaction.vendors import VENDORS

KINDS: frozenset[str] = (
    frozenset(vendor.kind for vendor in VENDORS)
    | NAMED_KINDS
    | OWN_KINDS
    | {"private-key", "url-password", "url-token", "webhook", "password", "password-hash", "authorization", "cookie", "text"}
    | {PROTECTED}
)
"""Every kind there is: a mark of another kind is no mark, so nothing can hide in one."""

_MARK = re.compile(r"\[redacted:([a-z0-9-]{1,32})\]")


def mark(kind: str) -> str:
    return f"[redacted:{kind}]"


def marks(text: str) -> list[tuple[int, int]]:
    """Where the marks of an earlier pass are."""
    if "[redacted:" not in text:
        return []
    return [found.span() for found in _MARK.finditer(text) if found[1] in KINDS]


def blanked(raw: bytes, places: list[tuple[int, int]]) -> bytes:
    """``raw`` with marks made unreadable: as brackets, which end every token and begin no value."""
    if not places:
        return raw
    blank = bytearray(raw)
    for start, end in places:
        blank[start:end] = b"[" * (end - start)
    return bytes(blank)


def beside(spans: list[Span], places: list[tuple[int, int]]) -> list[Span]:
    """``spans`` joined, taking marks whole or not at all, and never marks alone: so each pass leaves less that is not a mark."""
    spans = joined(spans)
    if not places:
        return spans
    starts = [start for start, _ in places]
    ends = [end for _, end in places]
    kept: list[Span] = []
    for start, end, kind in spans:
        first, behind = bisect_right(ends, start), bisect_left(starts, end)
        if first < behind:
            start, end = min(start, starts[first]), max(end, ends[behind - 1])
            if sum(ends[at] - starts[at] for at in range(first, behind)) == end - start:
                continue
        kept.append((start, end, kind))
    return joined(kept)
