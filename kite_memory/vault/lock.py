"""One writer to a vault at a time, over threads and processes; the kernel frees the lock of whoever dies."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from kite_memory.errors import KiteError, VaultReadOnly
from kite_memory.system.locks import lock_now

_PATIENCE = 30.0
_PAUSE = 0.005


class WriterLock:
    """The thread that holds it may take it again."""

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
