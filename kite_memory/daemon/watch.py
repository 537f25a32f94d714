"""File events, used as hints to look again at some paths, or at everything."""

import logging
import os
import stat
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

_NO_POLLING = 3600.0
"""Seconds that watchdog's own threads sleep when nothing happens; stopping wakes them at once."""

_NEW_FOLDERS: list[type[FileSystemEvent]] = [DirCreatedEvent, DirMovedEvent]
_CHANGES = [*_NEW_FOLDERS, FileCreatedEvent, FileModifiedEvent, FileMovedEvent, FileDeletedEvent]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Paths to look at again. ``everything`` asks for a comparison of all paths."""

    paths: frozenset[str] = frozenset()
    everything: bool = False

    def __or__(self, other: "Changes") -> "Changes":
        return Changes(paths=self.paths | other.paths, everything=self.everything or other.everything)


class Wake:
    """Signal with a set of paths: set from any thread, awaited by one."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._paths: set[str] = set()
        self._everything = False
        self._rung = False

    def ring(self, *paths: str, everything: bool = False) -> None:
        with self._condition:
            self._paths.update(paths)
            self._everything |= everything
            self._rung = True
            self._condition.notify_all()

    def wait(self, timeout: float | None) -> Changes:
        """Return the changes at the first signal, or none after ``timeout`` seconds."""
        with self._condition:
            self._condition.wait_for(lambda: self._rung, timeout)
            roused = Changes(paths=frozenset(self._paths), everything=self._everything)
            self._paths.clear()
            self._everything = self._rung = False
            return roused


class _Handler(FileSystemEventHandler):
    def __init__(self, notice: Callable[[str], None], lost: Callable[[], None], ignored: Callable[[str], bool]) -> None:
        self._notice = notice
        self._lost = lost
        self._ignored = ignored

    def on_any_event(self, event: FileSystemEvent) -> None:
        for path in (os.fsdecode(path) for path in (event.src_path, event.dest_path) if path):
            if self._ignored(path):
                continue
            if event.is_directory:
                self._lost()
                return
            self._notice(path)


class _Overflow(logging.Handler):
    """Log handler that detects a lost queue, which watchdog reports only in its log."""

    def __init__(self, lost: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._lost = lost

    def emit(self, record: logging.LogRecord) -> None:
        if "overflow" in record.getMessage():
            self._lost()


class Watch:
    """Watches folders, also ones that do not exist yet; of those in ``flat``, only the files directly in them.

    ``notice`` gets the path of a changed file; ``lost`` is called when anything may have changed: a new folder, an overflown queue.
    Both are called from watchdog's thread and must be quick. Neither is called for ``ignored`` paths. Folders that cannot be
    watched are in `unwatched`: only the periodic comparison reads them.
    """

    def __init__(
        self,
        roots: Iterable[Path],
        *,
        flat: Iterable[Path] = (),
        notice: Callable[[str], None],
        lost: Callable[[], None],
        ignored: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self._recursive = {**dict.fromkeys(flat, False), **dict.fromkeys(roots, True)}
        self._handler = _Handler(notice, lost, ignored)
        self._lost = lost
        self._observer: BaseObserver = Observer(timeout=_NO_POLLING)
        self._overflow = _Overflow(self._overflown)
        self._deaf = threading.Event()
        self._watched: dict[Path, tuple[int, int]] = {}
        self._scheduled: dict[Path, ObservedWatch] = {}
        self._lock = threading.Lock()
        self.unwatched: dict[Path, str] = {}

    def start(self) -> None:
        logger = logging.getLogger("watchdog.observers")
        logger.addHandler(self._overflow)
        logger.propagate = False
        # A folder made while its parent is being walked is found twice, by the walk and by its event; and watched once.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning, r"watchdog\.")
        self._observer.start()
        self.arm()

    def stop(self) -> None:
        logging.getLogger("watchdog.observers").removeHandler(self._overflow)
        self._observer.stop()
        if self._observer.is_alive():
            self._observer.join()

    def _overflown(self) -> None:
        self._deaf.set()
        self._lost()

    def arm(self) -> None:
        """Watch the folders made since the last call. Cheap if none exist; call it before every comparison."""
        with self._lock:
            if self._deaf.is_set():  # after an overflow, the library does not watch folders made meanwhile
                self._deaf.clear()
                self._watched.clear()
            for root, recursive in self._recursive.items():
                identity = _identity(root)
                if identity is None:
                    self._watched.pop(root, None)
                    self._await(root)
                elif self._watched.get(root) != identity and self._schedule(root, recursive=recursive, events=_CHANGES):
                    self._watched[root] = identity

    def _await(self, root: Path) -> None:
        ancestor = next((folder for folder in root.parents if folder.is_dir()), None)
        if ancestor is not None and ancestor not in self._scheduled:
            self._schedule(ancestor, recursive=False, events=_NEW_FOLDERS)

    def _schedule(self, folder: Path, *, recursive: bool, events: list[type[FileSystemEvent]]) -> bool:
        stale = self._scheduled.pop(folder, None)
        if stale is not None:
            self._observer.unschedule(stale)
        try:
            self._scheduled[folder] = self._observer.schedule(self._handler, folder, recursive=recursive, event_filter=events)
        except OSError as error:
            self.unwatched[folder] = error.strerror or str(error)
            return False
        self.unwatched.pop(folder, None)
        return True


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return the folder's identity. A folder deleted and made again has another one, and the old watch does not see it."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
