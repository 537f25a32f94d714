"""The command that agents run at every prompt: how we write it, and how we recognise it."""

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from kite_memory.errors import KiteError

_AWKWARD_ON_WINDOWS = re.compile(r"[\"%!$`^&|<>\r\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)

BY_NAME = 'PATH="$PATH:$HOME/.local/bin" kmem-hook'
"""Shell line that finds the client by its name: on the PATH, or where `uv`, `pipx` and `kmem up` put it."""


def fast_command(client: Path | None = None, interpreter: str = "", *, windows: bool = sys.platform == "win32") -> str:
    """Return one line for the agent's shell: the interpreter itself, isolated and without site packages, on the client's file.

    Neither a shim nor a virtual environment's launcher is used: they cost more than the rest together. The client finds the package
    by its own path, so it needs neither.
    """
    client = client or Path(__file__).resolve().parent.parent / "hook_client.py"
    return shell_line((interpreter or real_interpreter(), "-I", "-S", str(client)), windows=windows)


def real_interpreter() -> str:
    """Return the interpreter below a virtual environment.

    Links are kept: package managers move what they point to at every update. Raises `KiteError` where none is found.
    """
    base: object = getattr(sys, "_base_executable", "")  # there is no public name for it
    for candidate in (base, sys.executable):
        if isinstance(candidate, str) and candidate and Path(candidate).is_file():
            return candidate
    raise KiteError("cannot find the Python interpreter that runs this", hint="reinstall kite-memory with a full Python")


def shell_line(words: Sequence[str], *, windows: bool) -> str:
    """Quote words for `sh`; on Windows for Git's bash and cmd alike: both take ``"C:/some path/x.exe"``.

    Raises `KiteError` for a path that cannot be quoted.
    """
    for word in words:
        if not word.isprintable() or (windows and _AWKWARD_ON_WINDOWS.search(word)):
            raise KiteError(f"a hook cannot name the path {word!r}", hint="install kite-memory under a plainer path")
    if not windows:
        return shlex.join(words)
    return " ".join(f'"{word}"' if " " in word or "(" in word else word for word in (word.replace("\\", "/") for word in words))


def is_ours(command: str) -> bool:
    """Return whether the program that a shell line starts is our client: ``kmem-hook``, or an interpreter on its file.

    A line of the person's own that only mentions it is theirs.
    """
    try:
        words = shlex.split(command.replace("\\", "/"))
    except ValueError:
        return False
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    if not words:
        return False
    program = PurePosixPath(words[0]).name.lower().removesuffix(".exe")
    if program == "kmem-hook":
        return True
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    return PurePosixPath(script).parts[-2:] == ("kite_memory", "hook_client.py")
