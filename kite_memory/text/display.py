"""Text as people read and write it: cut to a length, counts in words, and ages such as ``12h`` or ``30d``."""

import re
from datetime import UTC, datetime, timedelta

from kite_memory.errors import UsageError


def clip(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, cut between words if possible, with an ellipsis."""
    if len(text) <= limit:
        return text
    if limit < 1:
        return ""
    cut = text[: limit - 1]
    space = max(cut.rfind(" "), cut.rfind("\n"))
    return (cut[:space] if space > limit // 2 else cut).rstrip(" \n,;:-–—") + "…"


def clip_end(text: str, limit: int) -> str:
    """Return at most ``limit`` characters, wherever that cuts the text, with an ellipsis."""
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + "…"


def clip_line(text: str, limit: int) -> str:
    """Return the text on one line of at most ``limit`` characters, with an ellipsis."""
    return clip_end(" ".join(text[: 8 * limit].split()), limit)


def counted(number: float, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    if number == 1:
        return f"1 {noun}"
    ending = noun[:-1] + "ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"
    return f"{number:,} {ending}"


_AGE = re.compile(r"(\d{1,5})([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def duration(text: str) -> timedelta:
    """Parse an age. Raises `UsageError` for anything else."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not an age", hint="write 12h, 30d or 8w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def age(text: str, now: datetime) -> datetime | None:
    """Return the moment that long before ``now``, or the given date, in UTC; ``None`` for an empty text. Raises `UsageError`."""
    if not text.strip():
        return None
    if _AGE.fullmatch(text.strip()):
        return now - duration(text)
    try:
        at = datetime.fromisoformat(text.strip())
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter if the conversion to UTC leaves the range of dates
        raise UsageError(f"{text!r} is neither an age nor a date", hint="write 12h, 30d, 8w or 2026-03-01") from None
