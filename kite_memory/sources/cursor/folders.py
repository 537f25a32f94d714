"""Find the folder of a Cursor conversation that does not name it, from the editor's list of workspaces."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.foreign_sqlite import TooLong, object_in, opened, stamp
from kite_memory.sources.common.jsonl import AppendOnlyFile, Unreadable
from kite_memory.sources.common.tool_text import PATH_LIMIT

_WORKSPACES = 5_000
_DESCRIPTION = 64 * 1024
_DRIVE = re.compile(r"/[A-Za-z]:")
_WSL = "wsl.localhost"


class Folders:
    """Folders of the workspaces in one editor's ``User`` folder. A workspace's database is read again only if it has changed."""

    def __init__(self, user: Path) -> None:
        self._workspaces = user / "workspaceStorage"
        self._known: dict[Path, tuple[tuple[int, int], frozenset[str]]] = {}
        self._homes: dict[str, Path] = {}

    def of_database(self, path: Path) -> str:
        """Return the folder of a workspace's own database."""
        try:
            with AppendOnlyFile(path.with_name("workspace.json"), within=self._workspaces) as file:
                about = object_in(file.between(0, min(file.size, _DESCRIPTION)))
        except (Unreadable, OSError):
            return ""
        match about:
            case {"folder": str(uri)}:
                return path_of(uri)
            case {"workspace": str(uri)}:
                return path_of(uri).rpartition("/")[0]
            case _:
                return ""

    def of_conversation(self, name: str, about: Mapping[str, Any]) -> str:
        """Return the folder that the conversation names (since 3.12), or that of the workspace that lists it."""
        match about.get("workspaceIdentifier"):
            case {"uri": {"fsPath": str(path)}} | {"uri": {"path": str(path)}} if path:
                return beginning(path, PATH_LIMIT)
            case {"uri": str(uri)} if uri:
                return path_of(uri)
            case {"id": str(workspace)} if re.fullmatch(r"[\w-]{1,64}", workspace):
                return self.of_database(self._workspaces / workspace / "state.vscdb")
            case _:
                pass
        if name not in self._homes:
            self._look_up()
        home = self._homes.get(name)
        return self.of_database(home) if home else ""

    def _look_up(self) -> None:
        for path in sorted(self._workspaces.glob("*/state.vscdb"))[:_WORKSPACES]:
            try:
                now = stamp(path)
                if self._known.get(path, ((-1, 0), frozenset()))[0] == now:
                    continue
                names = _listed(path, self._workspaces)
            except (OSError, Unreadable):
                continue
            self._known[path] = (now, names)
            for name in names:
                self._homes.setdefault(name, path)


def _listed(path: Path, within: Path) -> frozenset[str]:
    """Return the conversations that a workspace's database lists. Raises `Unreadable`."""
    with opened(path, within=within, seconds=2.0) as database:
        if not {"key", "value"} <= database.columns("ItemTable"):
            return frozenset()
        try:
            about = object_in(database.value("SELECT value FROM ItemTable WHERE key = 'composer.composerData'"))
        except TooLong:
            about = {}
    if isinstance(about, str):
        return frozenset()
    names: set[str] = set()
    for composer in _list(about.get("allComposers")):
        match composer:
            case {"composerId": str(name)}:
                names.add(name)
            case _:
                continue
    names.update(name for name in _list(about.get("selectedComposerIds")) if isinstance(name, str))
    return frozenset(names)


def _list(value: object) -> list[Any]:
    return value[:100_000] if isinstance(value, list) else []


def path_of(uri: str) -> str:
    """Return the path in a folder's URI, also for one on another machine; empty for anything else."""
    try:
        parts = urlsplit(uri[: 2 * PATH_LIMIT])
    except ValueError:
        return ""
    path = unquote(parts.path)
    match parts.scheme:
        case "file":
            if parts.netloc == _WSL:
                return "/" + path.lstrip("/").partition("/")[2]
            return path[1:] if _DRIVE.match(path) else path
        case "vscode-remote":
            return path
        case _:
            return ""
