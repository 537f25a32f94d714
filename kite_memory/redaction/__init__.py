"""Removal of secrets from everything that is stored; it runs between the sources and the timeline.

Its hundreds of expressions are compiled at the first call, since most commands only show what was redacted before.
"""

from kite_memory.model.event import Event, ReadResult, RedactedResult, RedactedText

__all__ = ["drop_private", "redact", "redact_event", "redact_id", "redact_result"]


def drop_private(text: str) -> str:
    """Return ``text`` without what is marked as private, see `cleaning.drop_private`."""
    if text.isascii() and "private" not in text.lower() and "\x1b" not in text:
        return text
    from kite_memory.redaction import cleaning

    return cleaning.drop_private(text)


def redact(text: str, *, of: int = 0) -> RedactedText:
    """Return ``text`` with each secret replaced by ``[redacted:<kind>]``, see `redaction_engine.redact`."""
    from kite_memory.redaction import redaction_engine

    return redaction_engine.redact(text, of=of)


def redact_event(event: Event, known: dict[str, str] | None = None) -> Event:
    """Return the event redacted, see `redaction_engine.redact_event`."""
    from kite_memory.redaction import redaction_engine

    return redaction_engine.redact_event(event, known)


def redact_id(text: str) -> str:
    """Return ``text``, or an id made from its hash if it holds a secret, see `redaction_engine.redact_id`."""
    from kite_memory.redaction import redaction_engine

    return redaction_engine.redact_id(text)


def redact_result(read_result: ReadResult) -> RedactedResult:
    """Return a read result redacted, see `redaction_engine.redact_result`."""
    from kite_memory.redaction import redaction_engine

    return redaction_engine.redact_result(read_result)
