"""The one way in: what passes here carries no secrets."""

from dataclasses import replace

from kite_memory.model.event import Event
from kite_memory.redaction.cleaning import clean
from kite_memory.redaction.finding import find
from kite_memory.redaction.marks import beside, mark, marks
from kite_memory.redaction.private import drop_private
from kite_memory.redaction.span import Span

_PASSES = 8


def redact(text: str) -> str:
    """``text`` with each secret replaced by ``[redacted:<kind>]``.

    Terminal escapes and invisible characters between plain ones go too; all else stays as it was. Redacting twice changes
    nothing: what is returned has been looked through without a find.
    """
    for _ in range(_PASSES):
        text = clean(text)
        places = marks(text)
        spans = beside(find(text, places), places)
        if not spans:
            return text
        text = _replaced(text, spans)
    return mark("text")  # made to show another secret whenever one is taken out


def redact_event(event: Event) -> Event:
    """The event itself where there is nothing to take out."""
    text, command, path = (redact(drop_private(part)) if part else part for part in (event.text, event.command, event.path))
    if text == event.text and command == event.command and path == event.path:
        return event
    return replace(event, text=text, command=command, path=path)


def _replaced(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, kind in spans:
        pieces += (text[at:start], mark(kind))
        at = end
    return "".join((*pieces, text[at:]))
