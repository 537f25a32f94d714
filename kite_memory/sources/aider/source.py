"""Find Aider's chat histories in known projects and read them from a cursor."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from kite_memory.model.event import Cursor, ReadResult
from kite_memory.projects import Git, GitFailed
from kite_memory.sources.aider.history import PROVIDER, AiderRun, HistoryReading
from kite_memory.sources.common.growing import read_growing, starting_point
from kite_memory.sources.common.jsonl import LINE_LIMIT, AppendOnlyFile
from kite_memory.system.private_files import is_file, is_text

HISTORY = ".aider.chat.history.md"

_DEEPEST = 64
_MOST_FOLDERS = 1 << 15
"""Size of the cache of repositories: if it were smaller than their number, each comparison would look all of them up again."""
_ARRIVES = 60.0
"""Seconds in which a file that is being copied or unpacked may still grow."""
_PIECE = 16 * 1024
"""Bytes read at once: runs are short, and reading stops after each."""


class Aider:
    """Source that reads ``.aider.chat.history.md`` in the repository, or the folder, that Aider was started in.

    There is no list of these folders, and the home folder is not searched: ``folders`` returns those that other agents have worked
    in, ``always`` are those that the user configured. ``history`` is the file's name if the user chose another, or its full path. A
    run of Aider is a session; reading stops where another run begins.

    A file in a project folder may have been written by anyone: it may come from a clone or an archive. Its content at the first
    read, and all of a file that git tracks, becomes events of a document without a user; only what is written while it is watched
    is the user's. In the folders of ``own``, and in a file that ``history`` names by its full path, the earlier content is the
    user's, too.
    """

    def __init__(
        self,
        folders: Callable[[], Iterable[str]],
        *,
        always: Iterable[Path] = (),
        own: Iterable[Path] = (),
        own_state: Path,
        history: str = HISTORY,
        line_limit: int = LINE_LIMIT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folders = folders
        self._always = tuple(always)
        self._own = frozenset(own)
        self._git = Git(os.environ)
        self._clock = clock
        self._own_folders = (own_state, own_state.resolve())
        self._history = Path(history)
        self._line_limit = line_limit

    @property
    def provider(self) -> str:
        return PROVIDER

    def roots(self) -> tuple[Path, ...]:
        return ()

    def flat_roots(self) -> tuple[Path, ...]:
        """Return only the folders that contain a history; changes in their subfolders are irrelevant."""
        return tuple(dict.fromkeys((*self._always, *(path.parent for path in self.transcripts()))))

    def stamp(self, path: Path) -> tuple[int, int]:
        found = path.stat()
        return found.st_size, found.st_mtime_ns

    def transcripts(self) -> Iterator[Path]:
        seen: set[str] = set()
        for folder in (*map(str, self._always), *sorted(set(self._folders()))):
            for place in _places(folder):
                if (name := os.path.join(place, self._history)) not in seen:  # noqa: PTH118 - ten thousand of them each time
                    seen.add(name)
                    if is_file(path := Path(name)) and self.owns(path):
                        yield path

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted(paths)

    def owns(self, path: Path) -> bool:
        named = path == self._history if self._history.is_absolute() else path.name == self._history.name
        return named and is_text(path) and ".." not in path.parts and not any(path.is_relative_to(own) for own in self._own_folders)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        return read_growing(
            path,
            cursor,
            within=path.parent,
            line_limit=self._line_limit,
            read=lambda file: self._read_next(path, file, cursor, budget),
        )

    def _read_next(self, path: Path, file: AppendOnlyFile, cursor: Cursor | None, budget: int) -> ReadResult:
        position, run, changed = starting_point(file, cursor, AiderRun, AiderRun.from_carry)
        self._mark_foreign(path, file, run)
        reading = HistoryReading(path=path, run=run)
        if changed:
            reading.problem(0, changed)
        left = budget
        while True:
            reached, more = self._piece(file, position, min(left, _PIECE), reading)
            left -= max(1, reached - position)
            moved, position = reached > position, reached
            if left <= 0 or not (moved and more) or reading.stopped:
                break
        return ReadResult(
            path=str(path),
            session=reading.session,
            events=tuple(reading.events),
            problems=tuple(reading.problems),
            cursor=Cursor(
                position=position,
                size=file.size,
                mtime_ns=file.mtime_ns,
                identity=file.identity(position),
                carry=reading.run.to_carry(),
            ),
            more=reading.stopped or (more and moved),
        )

    def _mark_foreign(self, path: Path, file: AppendOnlyFile, run: AiderRun) -> None:
        if run.foreign_to < 0:
            is_own = path.parent in self._own or path == self._history
            run.foreign_to = 0 if is_own else file.size
            run.seen = self._clock() if run.foreign_to else 0.0
        elif run.foreign_to and self._clock() - run.seen < _ARRIVES:
            run.foreign_to = max(run.foreign_to, file.size)
        if self._is_tracked(path):
            run.foreign_to = file.size

    def _is_tracked(self, path: Path) -> bool:
        """Return whether git tracks the file; true if git cannot be asked."""
        repository = _repository(str(path.parent))
        if not repository:
            return False
        name = path.relative_to(repository).as_posix()
        try:
            return bool(self._git.ask(Path(repository), ["ls-files", "-z", "--", f":(top,literal,icase){name}"]))
        except GitFailed:
            return True

    def _piece(self, file: AppendOnlyFile, position: int, size: int, reading: HistoryReading) -> tuple[int, bool]:
        """Read about ``size`` bytes, or one block if it is longer; return the position reached, and whether there is more."""
        while True:
            stretch = file.lines(position, size)
            if stretch.too_long:
                reading.problem(position, "line too long")
                return stretch.end, stretch.more
            if stretch.end == position:
                return position, False
            reached = reading.read(stretch.data, position, forced=size >= self._line_limit)
            if reached > position or reading.stopped or not stretch.more:
                return reached, stretch.more or reached < stretch.end
            size *= 2


def _places(folder: str) -> Iterator[str]:
    """Yield the folders that may contain a history for work in ``folder``: itself, and the repository around it."""
    if not Path(folder).is_absolute() or folder.startswith(("\\\\", "//")) or "\x00" in folder:
        return  # a path of another system, or on a network share, which a lookup would contact
    yield folder
    repository = _repository(folder)
    if repository and repository != folder:
        yield repository


@lru_cache(maxsize=_MOST_FOLDERS)
def _repository(folder: str) -> str:
    for here in (Path(folder), *list(Path(folder).parents)[:_DEEPEST]):
        try:
            if (here / ".git").exists():
                return str(here)
        except OSError:
            continue
    return ""
