"""Removal of secrets from everything that is stored; it runs between the sources and the timeline."""

from kite_memory.redaction.cleaning import drop_private
from kite_memory.redaction.door import redact, redact_event, redact_id, redact_result

__all__ = ["drop_private", "redact", "redact_event", "redact_id", "redact_result"]
