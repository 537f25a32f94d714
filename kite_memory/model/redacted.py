"""Types of what has passed the redaction. Only `redaction` makes them; whatever stores or sends text demands them."""

from typing import NewType

from kite_memory.model.read_result import ReadResult

RedactedText = NewType("RedactedText", str)
"""Text without secrets. A part of it, or several joined, is plain text again."""

RedactedResult = NewType("RedactedResult", ReadResult)
"""Result of reading a transcript without secrets, except in its passages, of which only hashes are stored."""
