"""What must never be stored, taken out at the door between sources and timeline."""

from kite_memory.redaction.door import redact, redact_event, redact_id
from kite_memory.redaction.private import drop_private

__all__ = ["drop_private", "redact", "redact_event", "redact_id"]
