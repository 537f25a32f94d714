"""Where the secrets of a text are."""

from kite_memory.redaction.assigned import find_assigned
from kite_memory.redaction.blocks import find_blocks
from kite_memory.redaction.carriers import find_carried
from kite_memory.redaction.chance import digits, worded
from kite_memory.redaction.disguises import find_dumped
from kite_memory.redaction.marks import blanked
from kite_memory.redaction.span import Span
from kite_memory.redaction.spoken import find_spoken
from kite_memory.redaction.tokens import UNKNOWN, find_tokens
from kite_memory.redaction.vendors import Catalogue, every_vendor
from kite_memory.redaction.views import View, put_together, resolved
from kite_memory.redaction.words import words_of

_DEEPEST = 2
"""Base 64 within base 64 is opened that often."""


def find(raw: bytes, places: list[tuple[int, int]], every: Catalogue | None = None) -> list[Span]:
    """Offsets in a bare text, in no order, overlapping where a secret can be told in several ways. ``places`` hold marks."""
    every = every or every_vendor()
    raw = blanked(raw, places)
    spans = _whole(raw, every)
    escaped = resolved(raw)
    if escaped is not None:
        further = _whole(escaped.raw, every)
        spans += [(*escaped.origin(start, end), kind) for start, end, kind in further if kind != UNKNOWN]
    return spans


def _whole(raw: bytes, every: Catalogue) -> list[Span]:
    spans = _plain(raw, every)
    broken = put_together(raw)
    return spans if broken is None else spans + _across(broken, {end for _, end, kind in spans if kind != UNKNOWN}, every)


def _plain(raw: bytes, every: Catalogue, depth: int = 0, *, spoken: bool = True) -> list[Span]:
    """``spoken``: also what people write in their own words, which ends with a line."""

    def look_inside(plain: bytes) -> str:
        spans = _plain(plain, every, depth + 1) if depth < _DEEPEST else []
        return spans[0][2] if spans else ""

    spans: list[Span] = []
    find_tokens(raw, spans, look_inside, every)
    small = raw.lower()
    words = words_of(small)
    find_assigned(raw, small, words, spans)
    if spoken:
        find_spoken(raw, small, words, spans)
    find_carried(raw, words, spans)
    find_blocks(raw, words, spans)
    find_dumped(raw, look_inside, spans)
    return spans


def _across(broken: View, ends: set[int], every: Catalogue) -> list[Span]:
    """What is to be seen only where lines were joined; the rest was to be seen before, and ends where ``ends`` say.

    A word at the beginning of the next line is no part of a secret, least of all where one was complete without it.
    """
    found: list[Span] = []
    for start, end, kind in _plain(broken.raw, every, spoken=False):
        if kind == UNKNOWN or not broken.touched(start, end):
            continue  # two words may look drawn by chance
        piece, seam = broken.behind(start, end)
        complete = seam in ends
        if digits(piece) or not ((complete and len(piece) < 4) or ((complete or len(piece) >= 8) and worded(piece))):
            found.append((*broken.origin(start, end), kind))
    return found
