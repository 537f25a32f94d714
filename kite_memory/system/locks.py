"""Locks on open files, released when the file is closed, so that the kernel frees those of a process that dies."""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

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


def lock(handle: int) -> None:
    """Wait without limit for an exclusive lock. On Windows none is taken."""
    if sys.platform != "win32":
        fcntl.flock(handle, fcntl.LOCK_EX)


_PATIENCE = 30.0
_PAUSE = 0.005


class WriterLock:
    """Lock for a single writer to a vault, across threads and processes. The thread that holds it may acquire it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
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
        waited = 0.0
        try:
            while not lock_now(handle):
                if waited > _PATIENCE:
                    raise KiteError("another process has been writing to the vault for too long", hint="see `kmem status`")
                waiting.wait(_PAUSE)
                waited += _PAUSE
        except BaseException:
            os.close(handle)
            raise
        return handle
