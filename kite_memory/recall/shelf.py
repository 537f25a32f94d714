"""The part of a vault that recall reads, and the files in it."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from kite_memory.model.note import Entry, Note

UNKNOWN = -1
"""Time or size of a file that the next comparison treats as changed."""


class Shelf(Protocol):
    """The part of a vault that recall uses."""

    def entries(self) -> Iterable[Entry]:
        """Return every file that may be a note, unread. Raises `VaultMissing` instead of listing a missing vault as empty."""
        ...

    def read(self, path: str) -> Note | None:
        """Return the note at this path, or ``None`` if none exists or the file is not a note."""
        ...


def listed(shelf: Shelf, unusable: list[Entry]) -> Iterator[Entry]:
    """Yield the files whose names are text, and append the others to ``unusable``."""
    for entry in shelf.entries():
        if is_text(entry.path):
            yield entry
        else:
            unusable.append(entry)


def unlisted(path: str) -> Entry:
    """Return an entry that the next comparison treats as changed."""
    return Entry(path=path, size=UNKNOWN, mtime_ns=UNKNOWN)


def is_text(path: str) -> bool:
    """Return whether a path is valid text: Python represents other bytes in file names as lone surrogates."""
    return path.isascii() or not any("\ud800" <= char <= "\udfff" for char in path)
