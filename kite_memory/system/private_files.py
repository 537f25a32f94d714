"""Files and folders private to this user, written atomically, whatever the umask."""

import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from kite_memory.errors import KiteError


def is_text(path: Path) -> bool:
    """Return whether the name is valid UTF-8; other names cannot be stored, so such files cannot be read from a cursor."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_file(path: Path) -> bool:
    """Return whether it is a regular file, following links; ``False`` if it may not be read or its name is too long."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder; none if it is not a folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []


def folders_in(folder: Path) -> list[Path]:
    """Return the sorted folders in a folder, including links to folders, except links to themselves."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _is_folder(entry))
    except OSError:
        return []
    return [folder / name for name in names]


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


PRIVATE = 0o600


class NotPrivate(KiteError):
    """A folder or file that must be private to this user is not."""


def make_private_folder(folder: Path) -> None:
    """Create a folder, or close an existing one to other users.

    Raises `NotPrivate` if it belongs to another user, `OSError` if it cannot be created.
    """
    make_folder(folder)
    if sys.platform == "win32":
        return  # folders in the user's profile are private already
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise NotPrivate(f"{folder} belongs to another user", hint="set KMEM_HOME to a folder of yours")
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents closed to others; existing ones keep their mode."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    try:
        folder.mkdir(0o700)
        folder.chmod(0o700)  # the umask may have removed permissions of the owner, too
    except FileExistsError:
        if not folder.is_dir():
            raise


def make_private_file(path: Path) -> None:
    """Create a file for its owner alone if it is missing: SQLite gives companion files the mode of the database."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE))


def replace_file(path: Path, content: bytes, *, mode: int = PRIVATE) -> None:
    """Write a file atomically and durably: it holds the old or the new content, never a mix, and survives a power cut."""
    publish(write_aside(path.parent, lambda file: file.write(content), mode=mode), path)


def write_aside(folder: Path, write: Callable[[IO[bytes]], object], *, mode: int = PRIVATE) -> Path:
    """Write and sync a file under a temporary name, for `publish`."""
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".kmem-")
    try:
        with os.fdopen(handle, "wb") as file:
            if sys.platform != "win32":
                os.fchmod(file.fileno(), mode)
            write(file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return Path(temporary)


def publish(aside: Path, path: Path) -> None:
    """Rename a file to its final name, replacing any other, and sync the folder."""
    try:
        _replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


_TRIES = 50
_PAUSE = 0.02


def _replace(aside: Path, path: Path) -> None:
    """Rename ``aside`` to ``path``; on Windows, wait a second for a program such as a virus scanner that has ``path`` open."""
    for _ in range(_TRIES if sys.platform == "win32" else 0):
        try:
            aside.replace(path)
            return
        except PermissionError:
            time.sleep(_PAUSE)
    aside.replace(path)


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that files created, renamed or removed in it stay so after a power cut."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
