"""Transcripts of agents parsed into events, one module or folder per agent. Here is the interface of every source."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from kite_memory.model.event import Cursor, ReadResult


class Source(Protocol):
    """Read-only access to one agent's transcripts.

    No method raises because of a transcript's content. A file that vanishes or cannot be opened yields a `ReadResult` with a
    problem. Reading a growing file twice yields the same events as reading the grown file once.
    """

    @property
    def provider(self) -> str: ...

    def roots(self) -> tuple[Path, ...]:
        """Return the folders to watch, whether or not they exist yet."""
        ...

    def transcripts(self) -> Iterator[Path]:
        """Yield every existing transcript in a stable order."""
        ...

    def owns(self, path: Path) -> bool:
        """Return whether ``path`` belongs to one of this source's transcripts, decided by name alone."""
        ...

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        """Sort transcripts so that those whose lines others may repeat come first.

        A line belongs to the first transcript that contains it.
        """
        ...

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        """Read about ``budget`` bytes from ``cursor`` on; ``None`` starts at the beginning.

        Events are not redacted: they must be redacted before they are stored.
        """
        ...


@runtime_checkable
class CompositeSource(Protocol):
    """A source whose transcripts are not one plain file each: a database with its log, a folder, a repository.

    Such a source identifies each transcript by one existing path. It also owns the files that belong to it (a write-ahead log), and
    `Source.in_order` replaces them by the transcript. One `ReadResult` covers one session; a transcript with many sessions yields
    them one `ReadResult` after another, with ``more`` set until all changes are returned. Until then the cursor's size and time are
    0, so that reading continues after a crash.
    """

    def stamp(self, path: Path) -> tuple[int, int]:
        """Return size and time (ns) to compare with a cursor's. May raise `OSError`.

        Must be cheap, since all transcripts are compared every few minutes.
        """
        ...

    def flat_roots(self) -> tuple[Path, ...]:
        """Return folders to watch without their subfolders, which hold many other files."""
        ...
