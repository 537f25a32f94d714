"""Where the secrets of a text are."""

from kite_memory.redaction.assigned import find_assigned
from kite_memory.redaction.blocks import find_blocks
from kite_memory.redaction.carriers import find_carried
from kite_memory.redaction.chance import wordlike
from kite_memory.redaction.cleaning import bare
from kite_memory.redaction.marks import blanked
from kite_memory.redaction.span import Span
from kite_memory.redaction.tokens import UNKNOWN, find_tokens
from kite_memory.redaction.views import View, put_together, resolved

_DEEPEST = 2
"""Base 64 within base 64 is opened that often."""


def find(text: str, places: list[tuple[int, int]]) -> list[Span]:
    """Offsets in ``text``, in no order, overlapping where a secret can be told in several ways. ``places`` hold marks."""
    raw = blanked(bare(text), places)
    spans = _plain(raw, 0)
    broken = put_together(raw)
    if broken is not None:
        spans += _across(broken)
    escaped = resolved(raw)
    if escaped is not None:
        further = _plain(escaped.raw, 0)
        broken = put_together(escaped.raw)
        if broken is not None:
            further += _across(broken)
        spans += [(*escaped.origin(start, end), kind) for start, end, kind in further if kind != UNKNOWN]
    return spans


def _plain(raw: bytes, depth: int) -> list[Span]:
    spans: list[Span] = []
    find_tokens(raw, spans, lambda plain: _inside(plain, depth))
    find_assigned(raw, raw.lower(), spans)
    find_carried(raw, spans)
    find_blocks(raw, spans)
    return spans


def _inside(plain: bytes, depth: int) -> str:
    spans = _plain(plain, depth + 1) if depth < _DEEPEST else []
    return spans[0][2] if spans else ""


def _across(broken: View) -> list[Span]:
    """What is to be seen only where lines were joined; the rest was to be seen before. Two words may look drawn by chance."""
    return [
        (*broken.origin(start, end), kind)
        for start, end, kind in _plain(broken.raw, 0)
        if kind != UNKNOWN and broken.touched(start, end) and not wordlike(broken.tail(start, end))
    ]
