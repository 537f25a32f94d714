"""Files and folders for this user's eyes only, whole or not at all, whatever the umask."""

import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from kite_memory.errors import KiteError


def is_text(path: Path) -> bool:
    """Names that are not UTF-8 cannot be written down, so such files cannot be read on from where we were."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_file(path: Path) -> bool:
    """Links followed; what may not be looked at, or is too long a name to be one, is none."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def names_in(folder: Path) -> list[str]:
    """Sorted; none of what is no folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []


def folders_in(folder: Path) -> list[Path]:
    """Links to folders are folders too; one that leads to itself is none."""
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
    """A folder or file that should be this user's alone is not."""


def make_private_folder(folder: Path) -> None:
    """A folder of our own: there, and closed to others even if it was not.

    Raises `NotPrivate` for another user's, `OSError` where none can be made.
    """
    make_folder(folder)
    if sys.platform == "win32":
        return  # folders below the user's profile are the user's
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise NotPrivate(f"{folder} belongs to another user", hint="set KMEM_HOME to a folder of yours")
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)


def make_folder(folder: Path) -> None:
    """What is missing, up to the root, is made closed to others; what is there stays as its owner has it."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    try:
        folder.mkdir(0o700)
        folder.chmod(0o700)  # a umask can also take away too much
    except FileExistsError:
        if not folder.is_dir():
            raise


def make_private_file(path: Path) -> None:
    """There afterwards, for its owner alone if it was not before: SQLite gives its companions the mode of the database."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE))


def replace_file(path: Path, content: bytes, *, mode: int = PRIVATE) -> None:
    """The file is the old one or the new one, never half of either, and the new one outlives a power cut."""
    publish(write_aside(path.parent, lambda file: file.write(content), mode=mode), path)


def write_aside(folder: Path, write: Callable[[IO[bytes]], object], *, mode: int = PRIVATE) -> Path:
    """A finished, synced file under a passing name, for `publish`."""
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
    """Give the file its name, replacing what bore it, and make that last."""
    try:
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """What was created, renamed or removed in it stays so after a power cut."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
