"""Lock that allows one daemon for each state folder."""

import os
import sys
from pathlib import Path
from threading import Event
from types import TracebackType

from kite_memory.errors import DaemonRunning, KiteError
from kite_memory.system.locks import lock_now
from kite_memory.system.private_files import make_private_folder

_TRIES, _PAUSE = 40, 0.005


class DaemonLock:
    """Lock held from `take` to `free`, or until the process ends. The kernel releases it, so it cannot be left over or stolen.

    The file itself stays: removing it could let two daemons lock two files of one name.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def take(cls, state: Path) -> "DaemonLock":
        """Take the lock, and make the state folder if needed. Raises `DaemonRunning` while another process holds it."""
        handle = _open(state)
        try:
            for left in reversed(range(_TRIES)):
                if lock_now(handle):
                    break
                if not left:
                    pid = _pid(handle) or "unknown"
                    raise DaemonRunning(f"a daemon is already running (pid {pid})", hint="`kmem down` stops it")
                Event().wait(_PAUSE)  # `holder` may have it for a moment
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, b"%d\n" % os.getpid())
        except BaseException:
            os.close(handle)
            raise
        return cls(handle)

    def still_holds(self, state: Path) -> bool:
        """Return whether the locked file is still the one at the lock's path."""
        try:
            ours, theirs = os.fstat(self._handle), _file(state).stat()
        except OSError:
            return False
        return (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)

    def free(self) -> None:
        """Release the lock. Can be called twice."""
        if self._handle >= 0:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> "DaemonLock":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.free()


def holder(state: Path) -> int | None:
    """Return the pid of the daemon that holds the lock, 0 if it has not written its pid yet, or ``None`` without one."""
    try:
        handle = os.open(_file(state), os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        return None if lock_now(handle, shared=True) else _pid(handle) or 0
    finally:
        os.close(handle)


def _file(state: Path) -> Path:
    return state / "daemon.lock"


def _open(state: Path) -> int:
    try:
        make_private_folder(state)
        handle = os.open(_file(state), os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise KiteError(f"cannot open {_file(state)}: {error.strerror}", hint="its folder must be yours and writable") from error
    if sys.platform != "win32":
        os.fchmod(handle, 0o600)
    return handle


def _pid(handle: int) -> int | None:
    os.lseek(handle, 0, os.SEEK_SET)
    digits = os.read(handle, 32).strip()
    return int(digits) if digits.isdigit() else None
