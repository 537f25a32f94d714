"""Access to the operating system: private files, locks, SQLite, checksums, directory listings, editors' folders."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)
