"""An agent's list of what is to do, told as people write one: a line for each item, its mark before it."""

from collections.abc import Mapping

from kite_memory.redaction import drop_private, redact
from kite_memory.redaction.cutting import beginning

_MARKS = {
    "completed": "x",
    "done": "x",
    "in_progress": ">",
    "in-progress": ">",
    "cancelled": "~",
    "deleted": "~",
}
_TEXTS = ("content", "step", "description", "title", "text")
_MOST = 100
_LENGTH = 200


def todo_lines(value: object) -> str:
    """Empty for what is no such list."""
    if not isinstance(value, list) or not value:
        return ""
    lines = [line for each in value[:_MOST] if (line := _line(each))]
    return "\n".join(lines) if len(lines) == min(len(value), _MOST) else ""


def _line(item: object) -> str:
    if not isinstance(item, Mapping) or not isinstance(status := item.get("status"), str):
        return ""
    said = next((text for key in _TEXTS if isinstance(text := item.get(key), str) and text.strip()), "")
    line = " ".join(redact(drop_private(beginning(said, 4 * _LENGTH))).split())[:_LENGTH]
    return f"[{_MARKS.get(status.casefold(), ' ')}] {line}" if line else ""
