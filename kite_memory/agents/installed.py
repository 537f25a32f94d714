"""Which version of an agent is installed, told from its files: starting it would take a second and might update it."""

import json
import re
import shutil
from pathlib import Path

_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,6})(?:[-+].{0,60})?")
_LONGEST_MANIFEST = 1 << 16
_PACKAGE = "@anthropic-ai/claude-code"


def claude_version(command: str | None = None) -> tuple[int, ...] | None:
    """Of the ``claude`` that a shell would start; ``None`` where there is none, or it does not say."""
    found = command or shutil.which("claude")
    if not found:
        return None
    try:
        program = Path(found).resolve()
    except (OSError, RuntimeError):
        return None
    return _of_package(program) or _named(program)


def _of_package(program: Path) -> tuple[int, ...] | None:
    """As npm installs it: a program in a package that says its version."""
    for folder in list(program.parents)[:3]:
        try:
            with (folder / "package.json").open("rb") as file:
                told = json.loads(file.read(_LONGEST_MANIFEST))
        except (OSError, ValueError, RecursionError):
            continue
        match told:
            case {"name": str(name), "version": str(version)} if name.startswith(_PACKAGE):
                return _version(version)
            case _:
                return None
    return None


def _named(program: Path) -> tuple[int, ...] | None:
    """As its own installer and Homebrew do: the version is the program's name, or its folder's."""
    return _version(program.name) or _version(program.parent.name)


def _version(text: str) -> tuple[int, ...] | None:
    found = _VERSION.fullmatch(text)
    return tuple(map(int, found.groups())) if found else None
