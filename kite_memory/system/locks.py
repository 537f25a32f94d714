"""Locks on open files: held until the file is closed, so the kernel frees those of whoever dies."""

import sys

from kite_memory.errors import KiteError

if sys.platform == "win32":
    import msvcrt
    import os
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
