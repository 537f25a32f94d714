"""Access to the operating system: private files, locks, SQLite, checksums, directory listings, editors' folders."""

from datetime import UTC, datetime
from typing import Final

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""Names by which this machine reaches itself."""


def utc_now() -> datetime:
    return datetime.now(UTC)
