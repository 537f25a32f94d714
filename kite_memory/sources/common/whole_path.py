"""Paths as an agent writes them, made whole where it is known what they are relative to. Nothing is looked up on the disk."""

from pathlib import PurePosixPath, PureWindowsPath

from kite_memory.redaction.cutting import beginning
from kite_memory.sources.common.tool_text import PATH_LIMIT


def whole_path(path: str, cwd: str) -> str:
    path = path.strip().removeprefix("file://")
    if path.startswith(("/", "~")) or PureWindowsPath(path).is_absolute():
        return beginning(path, PATH_LIMIT)
    if PureWindowsPath(cwd).is_absolute():
        return beginning(str(PureWindowsPath(cwd, path)), PATH_LIMIT)
    if not cwd.startswith("/"):
        return beginning(path, PATH_LIMIT)
    parts: list[str] = []
    for part in PurePosixPath(cwd, path).parts:
        if part == ".." and len(parts) > 1:
            parts.pop()
        elif part != "..":
            parts.append(part)
    return beginning(str(PurePosixPath(*parts)), PATH_LIMIT)
