"""Extract fields from a Claude Code record, whatever else it holds and whatever is missing."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from kite_memory.redaction.cutting import beginning


def scalar(value: object) -> str:
    """Return ``str(value)``; "…" for a list or dict, which may be nested too deeply for Python."""
    return "…" if isinstance(value, dict | list) else str(value)


_BLOCKS = 2_000
_NAME_LIMIT = 128
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ODD = re.compile(r"[^A-Za-z0-9_./-]+")


def moment(value: object) -> datetime | None:
    """Parse a line's time as UTC; return ``None`` if it cannot be parsed."""
    try:
        match value:
            case str():
                at = datetime.fromisoformat(value)
            case bool():
                return None
            case int() | float():
                at = datetime.fromtimestamp(value / 1000, UTC)
            case _:
                return None
        if at.tzinfo is None:
            return at.replace(tzinfo=UTC)
        return at if at.tzinfo is UTC else at.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


_BARE = frozenset({"data", "signature", "encrypted_content", "encrypted_index", "id", "tool_use_id", "uuid"})
_DEEPEST = 12


def texts_in(value: object, deepest: int = _DEEPEST) -> Iterator[str]:
    """Yield every text in a JSON value, in order, without member names and binary data."""
    match value:
        case str():
            yield value
        case list() if deepest:
            for each in value:
                yield from texts_in(each, deepest - 1)
        case dict() if deepest:
            for name, each in value.items():
                if name not in _BARE:
                    yield from texts_in(each, deepest - 1)
        case _:
            return


def content_of(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    message = row.get("message")
    return blocks_of(message.get("content")) if isinstance(message, dict) else []


def blocks_of(content: object) -> list[Mapping[str, Any]]:
    """Return a message's blocks; a plain text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    blocks = ({"type": "text", "text": block} if isinstance(block, str) else block for block in content[:_BLOCKS])
    return [block for block in blocks if isinstance(block, dict)]


def calls_answered(row: Mapping[str, Any]) -> list[str]:
    """Return the names of the calls whose results are on a line."""
    return [short(block.get("tool_use_id")) for block in content_of(row) if block.get("type") == "tool_result"]


def may_be_a_person(row: Mapping[str, Any]) -> bool:
    """Return whether the client names no other origin than the user. Versions before 2.1.168 name none.

    ``isMeta`` marks text the client adds itself, such as a skill's body; ``turnCompanion`` an expanded command (2.1.258).
    """
    if row.get("isMeta") is True or row.get("turnCompanion") is True:
        return False
    match row.get("origin"):
        case {"kind": str(kind)} | str(kind):
            if kind != "human":
                return False
        case _:
            pass
    return row.get("promptSource") != "system"


def as_id(value: object) -> str:
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def short(value: object) -> str:
    return value[:_NAME_LIMIT] if isinstance(value, str) else ""


def safe(value: object) -> str:
    """Return a name from a transcript in a form that is safe to count and print."""
    return (_ODD.sub("?", beginning(value, 40)) if isinstance(value, str) else "") or "without a name"


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
