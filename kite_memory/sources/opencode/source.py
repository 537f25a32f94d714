"""OpenCode's sessions: its databases, and the JSON files of before it had one."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kite_memory.model.look import Cursor, Look
from kite_memory.sources.common import foreign_sqlite
from kite_memory.sources.common.growing import unread
from kite_memory.sources.common.jsonl import Unreadable
from kite_memory.sources.opencode.database import look_at_database
from kite_memory.sources.opencode.files import look_at_files, stamp_of_files
from kite_memory.sources.opencode.parts import PROVIDER
from kite_memory.system.listing import names_in

_DATABASE = re.compile(r"opencode(?:-[\w.-]{1,64})?\.db(?:-wal)?")
_SESSION_FILE = re.compile(r"ses_[\w-]{1,128}\.json")
_PROJECT_FOLDER = re.compile(r"[\w.-]{1,128}")


class OpenCode:
    """Reads ``root``, which is ``${XDG_DATA_HOME:-~/.local/share}/opencode`` on every system.

    ``opencode.db``, and one for each other channel, hold many sessions each. The files below ``storage`` are read only where
    there is no database: they are what one was made from, and stay behind.
    """

    def __init__(self, root: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._root = root
        self._sessions = root / "storage" / "session"
        self._clock = clock

    @property
    def provider(self) -> str:
        return PROVIDER

    def roots(self) -> tuple[Path, ...]:
        return ()

    def flat_roots(self) -> tuple[Path, ...]:
        """Beside the databases stand its snapshots, whole repositories, and a folder for every message it ever wrote."""
        return (self._root,)

    def transcripts(self) -> Iterator[Path]:
        databases = sorted(path for path in _listed(self._root) if self.owns(path) and not path.name.endswith("-wal"))
        yield from databases
        if not databases:
            for project in sorted(_listed(self._sessions)):
                yield from sorted(path for path in _listed(project) if self.owns(path))

    def owns(self, path: Path) -> bool:
        if path.parent == self._root:
            return bool(_DATABASE.fullmatch(path.name))
        folder = path.parent
        return bool(
            folder.parent == self._sessions and _PROJECT_FOLDER.fullmatch(folder.name) and _SESSION_FILE.fullmatch(path.name)
        )

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        return sorted({foreign_sqlite.database_of(path) for path in paths})

    def stamp(self, path: Path) -> tuple[int, int]:
        return stamp_of_files(path) if path.suffix == ".json" else foreign_sqlite.stamp(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> Look:
        try:
            if path.suffix == ".json":
                return look_at_files(path, cursor, root=self._root, now=self._clock())
            return look_at_database(path, cursor, root=self._root, budget=budget, now=self._clock())
        except Unreadable as error:
            return unread(path, cursor, str(error))
        except OSError:
            return unread(path, cursor, "file cannot be read")


def _listed(folder: Path) -> list[Path]:
    return [folder / name for name in names_in(folder)]
