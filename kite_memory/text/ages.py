"""Parse ages as people write them: ``12h``, ``30d``, ``8w``, or a date."""

import re
from datetime import UTC, datetime, timedelta

from kite_memory.errors import UsageError

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
