"""Locks on open files: held until the file is closed, so the kernel frees those of whoever dies."""

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
"""Windows forbids others to read what is locked, so the locked byte lies far beyond the content."""


def lock_now(handle: int, *, shared: bool = False) -> bool:
    """Whether the lock was to be had at once. On Windows a shared one is exclusive, too."""
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
    """Wait for an exclusive lock, for as long as it takes. On Windows none is taken."""
    if sys.platform != "win32":
        fcntl.flock(handle, fcntl.LOCK_EX)


_PATIENCE = 30.0
_PAUSE = 0.005


class WriterLock:
    """One writer to a vault at a time, over threads and processes. The thread that holds it may take it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = threading.RLock()
        self._depth = 0

    @contextlib.contextmanager
    def held(self) -> Iterator[bool]:
        """Yields whether this is the outermost hold: the moment to look for what a dead writer left behind."""
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
