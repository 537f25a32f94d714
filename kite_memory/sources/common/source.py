"""What every source promises; `tests/contract` holds each one to it."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from kite_memory.model.look import Cursor, ReadResult


class Source(Protocol):
    """One agent's transcripts, read only.

    Nothing here raises on what a transcript holds, and a file that vanishes or cannot be opened is a `ReadResult` with a
    problem. Two looks at a growing file yield what one look at the grown file would.
    """

    @property
    def provider(self) -> str: ...

    def roots(self) -> tuple[Path, ...]:
        """Folders to watch, whether or not they exist yet."""
        ...

    def transcripts(self) -> Iterator[Path]:
        """Every transcript there is now, in a stable order."""
        ...

    def owns(self, path: Path) -> bool:
        """Whether a change of ``path`` is a change of one of this source's transcripts. Decided by name alone."""
        ...

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        """Those first whose lines others may repeat: whoever tells a line first owns it."""
        ...

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        """Go on from ``cursor`` for about ``budget`` bytes; ``None`` starts at the beginning.

        Events come out unredacted: whoever stores them redacts them first.
        """
        ...


@runtime_checkable
class Compound(Protocol):
    """A source besides whose transcripts are not a plain file each: a database with its log, a folder, a repository.

    Such a source names each transcript by one path that exists, and answers for all that belongs to it: it owns the files
    beside (a write-ahead log) too, and `Source.in_order` gives the transcript in their place. One `ReadResult` is of one session;
    a transcript that holds many yields them one `ReadResult` after another, with ``more`` until all that changed is told. Until
    then the cursor's size and time are 0, so that a crash amid them leaves something to do.
    """

    def stamp(self, path: Path) -> tuple[int, int]:
        """Size and time (ns) to compare with a cursor's. May raise `OSError`; cheap, since all are compared every few minutes."""
        ...

    def flat_roots(self) -> tuple[Path, ...]:
        """Folders to watch without what is below them: they hold much else."""
        ...
