"""The one way in: what passes here carries no secrets."""

import re
from dataclasses import replace

from kite_memory.model.event import Event
from kite_memory.redaction.cleaning import clean
from kite_memory.redaction.finding import find
from kite_memory.redaction.private import drop_private
from kite_memory.redaction.span import Span, joined

_MARK = re.compile(r"\[redacted:[a-z0-9-]{1,32}\]")
_PASSES = 8


def redact(text: str) -> str:
    """``text`` with each secret replaced by ``[redacted:<kind>]``.

    Terminal escapes and invisible characters between plain ones go too; all else stays as it was. Redacting twice changes
    nothing: what is returned has been looked through without a find.
    """
    for _ in range(_PASSES):
        text = clean(text)
        spans = joined(_beside_marks(text, find(text)))
        if not spans:
            return text
        text = _replaced(text, spans)
    return "[redacted:text]"  # built to show a new secret whenever one is taken out


def redact_event(event: Event) -> Event:
    """The event itself where there is nothing to take out, so that most cost no memory."""
    text, command, path = (redact(drop_private(part)) if part else part for part in (event.text, event.command, event.path))
    if text == event.text and command == event.command and path == event.path:
        return event
    return replace(event, text=text, command=command, path=path)


def _beside_marks(text: str, spans: list[Span]) -> list[Span]:
    """Marks are taken whole or not at all, and never alone: so each pass leaves less that is not a mark."""
    if not spans or "[redacted:" not in text:
        return spans
    marks = [mark.span() for mark in _MARK.finditer(text)]
    kept: list[Span] = []
    for start, end, kind in spans:
        covered = 0
        for first, last in marks:
            if first < end and last > start:
                covered += min(end, last) - max(start, first)
                start, end = min(start, first), max(end, last)
        if covered < end - start and not any(first <= start and end <= last for first, last in marks):
            kept.append((start, end, kind))
    return kept


def _replaced(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, kind in spans:
        pieces += (text[at:start], f"[redacted:{kind}]")
        at = end
    return "".join((*pieces, text[at:]))
