"""What must never be stored, taken out at the door between sources and timeline."""

from kite_memory.redaction.cleaning import drop_private
from kite_memory.redaction.door import redact, redact_event, redact_id

__all__ = ["drop_private", "redact", "redact_event", "redact_id"]
