"""Conversations of Cursor's editor and command line: their locations, and which reader each one needs."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kite_memory.model.read_result import Cursor, ReadResult
from kite_memory.sources.common import foreign_sqlite
from kite_memory.sources.common.growing import unread
from kite_memory.sources.common.jsonl import Unreadable
from kite_memory.sources.cursor.bubbles import PROVIDER
from kite_memory.sources.cursor.cli import read_export, read_store
from kite_memory.sources.cursor.ide import Ide

_NAME = re.compile(r"[\w.-]{1,200}")
_STATE, _STORE = ("state.vscdb", "state.vscdb-wal"), ("store.db", "store.db-wal")


class CursorApp:
    """Source that reads the editor's databases and the command line's files.

    ``user`` is the editor's ``User`` folder, ``cli`` is ``~/.cursor``. A conversation stored in several places is read from the
    most complete one: the editor's database, then the command line's, then an export.
    """

    def __init__(self, user: Path, cli: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._user = user
        self._cli = cli
        self._ide = Ide(user)
        self._clock = clock

    @property
    def provider(self) -> str:
        return PROVIDER

    def roots(self) -> tuple[Path, ...]:
        return (self._cli / "chats", self._cli / "projects")

    def flat_roots(self) -> tuple[Path, ...]:
        """Return the editor's global storage.

        The databases of workspaces change all day, but hold nothing since 2025: they are only compared.
        """
        return (self._user / "globalStorage",)

    def transcripts(self) -> Iterator[Path]:
        for pattern, folder in (
            ("globalStorage/state.vscdb", self._user),
            ("workspaceStorage/*/state.vscdb", self._user),
            ("chats/*/*/store.db", self._cli),
            ("projects/*/agent-transcripts/**/*.jsonl", self._cli),
        ):
            yield from sorted(path for path in folder.glob(pattern) if self.owns(path))

    def owns(self, path: Path) -> bool:
        for root in (self._user, self._cli):
            try:
                parts = path.relative_to(root).parts
            except ValueError:
                continue
            if not all(_NAME.fullmatch(part) for part in parts) or ".." in parts:
                return False
            match parts:
                case ("globalStorage", file) | ("workspaceStorage", _, file) if root == self._user:
                    return file in _STATE
                case ("chats", _, _, file) if root == self._cli:
                    return file in _STORE
                case ("projects", _, "agent-transcripts", *_, file) if root == self._cli:
                    return file.endswith(".jsonl")
                case _:
                    return False
        return False

    def in_order(self, paths: Iterable[Path]) -> list[Path]:
        """Sort sub-agents after the conversations they work for."""
        return sorted({foreign_sqlite.database_of(path) for path in paths}, key=lambda path: ("subagents" in path.parts, str(path)))

    def stamp(self, path: Path) -> tuple[int, int]:
        return foreign_sqlite.stamp(path)

    def read(self, path: Path, cursor: Cursor | None, *, budget: int) -> ReadResult:
        try:
            if path.suffix == ".jsonl":
                better = self._better(path.stem)
                return read_export(path, cursor, root=self._cli, budget=budget, better=better, now=self._clock())
            if path.name == "store.db":
                return read_store(path, cursor, root=self._cli, budget=budget)
            return self._ide.read(path, cursor, budget=budget)
        except Unreadable as error:
            return unread(path, cursor, str(error))
        except OSError:
            return unread(path, cursor, "file cannot be read")

    def _better(self, name: str) -> bool:
        """Return whether a conversation is stored anywhere but in an export. Raises `Unreadable` while that is unknown."""
        return any(True for _ in self._cli.glob(f"chats/*/{name}/store.db")) or self._ide.holds(name)
