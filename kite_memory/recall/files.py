"""Files and folders that only their owner may read, and that nobody sees half of."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO


def private_folder(path: Path) -> None:
    """0700 for every folder that has to be made; one that is there keeps its mode."""
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)


def private_file(path: Path) -> None:
    """There afterwards, 0600 if it was not before: SQLite gives its companions the mode of the database."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def write_aside(folder: Path, write: Callable[[IO[bytes]], object]) -> Path:
    """A finished, synced file under a passing name, for `publish`."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=".kmem-")
    with os.fdopen(handle, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    return Path(name)


def publish(aside: Path, path: Path) -> None:
    """Give the file its name, replacing what bore it, and make that last."""
    aside.replace(path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """No other process is in here meanwhile; where locks cannot be had (Windows), that is only likely."""
    with os.fdopen(os.open(lock, os.O_CREAT | os.O_RDWR, 0o600), "rb") as file:
        try:
            import fcntl
        except ImportError:
            yield
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
