"""The one way in: what passes here carries no secrets."""

import hashlib
import re
from dataclasses import replace

from kite_memory.model.event import Event
from kite_memory.redaction.cleaning import bare, clean
from kite_memory.redaction.finding import find
from kite_memory.redaction.literals import find_protected
from kite_memory.redaction.marks import beside, mark, marks
from kite_memory.redaction.private import drop_private
from kite_memory.redaction.span import Span
from kite_memory.redaction.tokens import UNKNOWN

_PASSES = 8


def redact(text: str) -> str:
    """``text`` with each secret replaced by ``[redacted:<kind>]``.

    Terminal escapes and invisible characters between plain ones go too; all else stays as it was. Redacting twice changes
    nothing: what is returned has been looked through without a find.
    """
    text = clean(text)
    return _redacted(text, bare(text))


def _redacted(text: str, raw: bytes) -> str:
    """``text`` has been cleaned, and ``raw`` is the same `bare`."""
    for _ in range(_PASSES):
        places = marks(text)
        spans = beside([*find(raw, places), *find_protected(text)], places)
        if not spans:
            return text
        text = clean(_replaced(text, spans))
        raw = bare(text)
    return mark("text")  # made to show another secret whenever one is taken out


_ORDINARY_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?::[0-9]{1,6})?|[0-9a-f]{1,64}|[a-z]{0,12}|[0-9]{0,19}")


def redact_id(text: str) -> str:
    """``text``, or where there is a secret in it, a name made from its SHA-256: the same each time, another for another id.

    An id that only looks drawn by chance stays: that is how ids look.
    """
    if _ORDINARY_ID.fullmatch(text):
        return text
    if clean(text) == text and not find_protected(text) and all(kind == UNKNOWN for _, _, kind in find(bare(text), [])):
        return text  # ids are drawn by chance
    return f"{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}-redacted"


def redact_event(event: Event, known: dict[str, str] | None = None) -> Event:
    """The event itself where there is nothing to take out.

    ``known`` are texts that were looked through already, each with what was let through, and takes up those of this event:
    an agent names the same files and says the same words again and again.
    """
    known = {} if known is None else known
    text, command, path = (_let_through(part, known) if part else part for part in (event.text, event.command, event.path))
    ids = [_id(part, known) for part in _ids(event)]
    if text == event.text and command == event.command and path == event.path and ids == _ids(event):
        return event
    id, session, parent, call, tool = ids
    return replace(event, text=text, command=command, path=path, id=id, session=session, parent=parent, call=call, tool=tool)


def _ids(event: Event) -> list[str]:
    return [event.id, event.session, event.parent, event.call, event.tool]


def _id(text: str, known: dict[str, str]) -> str:
    key = f"\0{text}"  # an id that is also a text is let through otherwise
    told = known.get(key)
    if told is None:
        told = known[key] = redact_id(text)
    return told


def _let_through(text: str, known: dict[str, str]) -> str:
    """As ``redact(drop_private(text))``, cleaned but once where nobody marked any of it as private."""
    told = known.get(text)
    if told is None:
        plain = clean(text)
        raw = bare(plain)
        told = known[text] = redact(drop_private(text)) if b"private" in raw.lower() else _redacted(plain, raw)
    return told


def _replaced(text: str, spans: list[Span]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, kind in spans:
        pieces += (text[at:start], mark(kind))
        at = end
    return "".join((*pieces, text[at:]))
