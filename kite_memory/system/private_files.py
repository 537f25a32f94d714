"""Files and folders private to this user, written atomically, whatever the umask; and locks on open files.

The kernel frees the locks of a process that dies.
"""

import contextlib
import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypeVar

from kite_memory.errors import KiteError, VaultReadOnly

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FAR = 1 << 20
"""Windows forbids reading a locked range, so the locked byte is far beyond the content."""


def lock_now(handle: int, *, shared: bool = False) -> bool:
    """Return whether the lock was acquired without waiting. On Windows a shared lock is exclusive, too.

    Raises `KiteError` if the file cannot be locked at all.
    """
    try:
        if sys.platform == "win32":
            os.lseek(handle, _FAR, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        raise KiteError(f"the state folder cannot be locked: {error.strerror}", hint="keep it on a local disk") from error
    return True


_PATIENCE = 30.0
_LOCK_PAUSE = 0.005


def lock(handle: int) -> None:
    """Wait without limit for an exclusive lock."""
    if sys.platform == "win32":
        while not lock_now(handle):  # Windows' own wait gives up after ten seconds
            time.sleep(_LOCK_PAUSE)
    else:
        fcntl.flock(handle, fcntl.LOCK_EX)


class WriterLock:
    """Lock for a single writer, across threads and processes. The thread that holds it may acquire it again.

    ``busy`` is the error's message where another process holds it for too long.
    """

    def __init__(self, path: Path, *, busy: str = "another process has been writing to the vault for too long") -> None:
        self._path = path
        self._busy = busy
        self._thread = threading.RLock()
        self._depth = 0

    @contextlib.contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the lock; yield whether this is the outermost hold, in which leftovers of a crashed writer can be cleaned up.

        Raises `VaultReadOnly` if the lock file cannot be opened, `KiteError` after about 30 seconds of waiting.
        """
        with self._thread, contextlib.ExitStack() as outermost:
            if not self._depth:
                outermost.callback(os.close, self._lock())
            self._depth += 1
            try:
                yield self._depth == 1
            finally:
                self._depth -= 1

    def _lock(self) -> int:
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise VaultReadOnly(
                f"cannot open {self._path}: {error.strerror}", hint="its folder must be yours and writable"
            ) from error
        waiting = threading.Event()
        until = time.monotonic() + _PATIENCE
        try:
            while not lock_now(handle):
                if time.monotonic() > until:
                    raise KiteError(self._busy, hint="see `kmem status`")
                waiting.wait(_LOCK_PAUSE)
        except BaseException:
            os.close(handle)
            raise
        return handle


def is_text(path: Path | str) -> bool:
    """Return whether a name is valid UTF-8: Python represents other bytes as lone surrogates, which no database stores."""
    name = str(path)
    return name.isascii() or not any("\ud800" <= char <= "\udfff" for char in name)


def is_file(path: Path) -> bool:
    """Return whether it is a regular file, following links; ``False`` if it may not be read or its name is too long."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def stamp_of(path: Path, *others: Path) -> tuple[int, int]:
    """Return size and time of a file, which change when it or one of ``others`` is written to; those may be missing."""
    status = path.stat()
    size, mtime_ns = status.st_size, status.st_mtime_ns
    for other in others:
        with contextlib.suppress(OSError):
            status = other.stat()
            size, mtime_ns = size + status.st_size, max(mtime_ns, status.st_mtime_ns)
    return size, mtime_ns


def names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder; none if it is not a folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except OSError:
        return []


def folders_in(folder: Path) -> Iterator[Path]:
    """Yield the folders in a folder by name, including links to folders, except links to themselves."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _is_folder(entry))
    except OSError:
        return
    for name in names:  # one at a time: a status looks at the first of ten thousand
        yield folder / name


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
    if folder.parent == folder:  # a drive of Windows that is not there
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
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
    import tempfile  # takes as long to import as all other modules here

    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".kmem-")
    try:
        with os.fdopen(handle, "wb") as file:
            if sys.platform != "win32":
                os.fchmod(file.fileno(), mode)
            write(file)
            file.flush()
            sync_file(file.fileno())
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
Changed = TypeVar("Changed")


def _replace(aside: Path, path: Path) -> None:
    when_not_in_use(lambda: aside.replace(path))


def when_not_in_use(change: Callable[[], Changed]) -> Changed:
    """Rename or remove a file; on Windows, wait a second for a program such as a virus scanner that has it open."""
    for _ in range(_TRIES if sys.platform == "win32" else 0):
        try:
            return change()
        except PermissionError:
            time.sleep(_PAUSE)
    return change()


def sync_file(handle: int) -> None:
    """Wait until an open file or folder is on the disk. macOS's fsync leaves it in the disk's cache; its `F_FULLFSYNC` does not."""
    full = None if sys.platform == "win32" else getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(handle, full)
        except OSError as error:
            if error.errno == errno.EIO:
                raise
        else:
            return
    os.fsync(handle)  # the only one there is, or the only one that this file system knows


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that files created, renamed or removed in it stay so after a power cut."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync_file(handle)
    finally:
        os.close(handle)
