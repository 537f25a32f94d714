"""The daemon's threads: each wakes, compares, works and sleeps again. File events are hints to look again at some paths."""

import ctypes
import logging
import math
import os
import queue
import signal
import socket
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
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

from kite_memory.app.pipeline import Pipeline
from kite_memory.distill.scheduler import ChunkHandled, Idle
from kite_memory.errors import KiteError, StateNotWritten, StateTakenAway
from kite_memory.sources import CompositeSource, Source
from kite_memory.vault.listing import is_below_hidden

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
        """Watch the folders made since the last call. Cheap without new folders; call it before every comparison."""
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


_ARENA_MAX = -8
"""``M_ARENA_MAX`` of glibc's ``mallopt``."""

_ARENAS = 2

_MMAP_THRESHOLD = -3
_LARGE = 1 << 20
"""Size in bytes from which freed memory is returned to the system at once.

Such blocks are a layer's expanded weights, or a matrix of many notes. By default glibc raises this to the size last freed, and
keeps megabytes after every prompt.
"""


def share_heaps() -> None:
    """Let all threads share two heaps.

    glibc would give each thread its own, up to eight for every core, and memory freed in one cannot be used by another: a dozen
    threads that each embedded one query hold thirty megabytes between them. Other C libraries do not do this.
    """
    if (libc := _glibc()) is not None:
        libc.mallopt(_ARENA_MAX, _ARENAS)
        libc.mallopt(_MMAP_THRESHOLD, _LARGE)


def give_back() -> None:
    """Return free memory to the system, after work that needed much."""
    if (libc := _glibc()) is not None:
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "malloc_trim") and hasattr(libc, "mallopt") else None


log = logging.getLogger("kite_memory.daemon")

_SETTLE = 0.2
"""Seconds to wait for a burst of changes in the vault to end: an editor's save is several events."""

_QUIET = 1.0
_LONGEST_BURST = 10.0
"""Seconds after which newly written notes get their embeddings even if more are being written. Their words are indexed at once."""

_MINUTE = 60.0

_FILES_AT_ONCE = 500
"""Transcripts read before their sessions are cut into chunks: waiting sessions are held in memory."""

_ROUNDS = 4
"""Rounds of embedding bundles between two comparisons of the vault: some two seconds of processor time in all."""
_BREATH = 5.0
"""Seconds between two parts of a backlog, so that it does not occupy a processor."""
_UNTIL_QUIET = 100.0
"""Seconds after an agent's work when its last turn is closed."""

_PATIENCE = 5.0
"""Seconds that all threads together get to end. A call to a model may take longer: it is repeated after the next start."""


class Daemon:
    """File events are hints; every ``compare_seconds`` all transcripts and the vault are compared with what is known.

    ``maintain`` is called with the number of seconds in which no transcript has grown. An unexpected error in any thread stops the
    whole process with exit code 1, so that the service manager starts it again: every step is committed, so nothing is lost by
    that.
    """

    def __init__(
        self,
        *,
        pipeline: Pipeline,
        sources: tuple[Source, ...],
        vault: Path,
        compare_seconds: float,
        warm: Callable[[], object] = lambda: None,
        embed_bundles: Callable[[], int] = lambda: 0,
        maintain: Callable[[float], object] = lambda quiet_for: None,
        review: Callable[[], object] = lambda: None,
        still_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        self._pipeline = pipeline
        self._compare_seconds = compare_seconds
        self._warm = warm
        self._embed_bundles = embed_bundles
        self._tend = maintain
        self._worked_at = time.monotonic()
        self._review = review
        self._still_ours = still_ours
        self._stop = threading.Event()
        self._ended: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._caught_up = threading.Event()
        self._compared = threading.Event()
        self._failed = False
        self._transcripts = Wake()
        self._chunks = Wake()
        self._notes = Wake()
        self._threads: list[threading.Thread] = []
        roots = [root for source in sources for root in source.roots()]
        flat_roots = [root for source in sources if isinstance(source, CompositeSource) for root in source.flat_roots()]
        self._transcript_watch = Watch(
            roots, flat=flat_roots, notice=self._transcripts.ring, lost=lambda: self._transcripts.ring(everything=True)
        )
        self._vault_watch = Watch(
            [vault],
            notice=self._notes.ring,
            lost=lambda: self._notes.ring(everything=True),
            ignored=partial(_is_not_listed, vault),
        )
        self.idle = Idle(until=None, reason="starting")

    def run(self, stopping: Callable[[int], object] = lambda code: None) -> int:
        """Work until a signal or `stop`, and return the exit code. Must be called in the main thread of its own process.

        ``stopping`` is called with this code when the threads are asked to end.
        """
        # A handler alone may never run: a signal that comes just before the main thread begins to wait does not wake it. The byte
        # that Python writes for each signal does, by way of another thread.
        received, sent = socket.socketpair()
        with received, sent:
            sent.setblocking(False)
            signal.set_wakeup_fd(sent.fileno(), warn_on_full_buffer=False)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop())
            listener = threading.Thread(target=self._stop_on_byte, args=(received,), name="kmem-signals", daemon=True)
            listener.start()
            try:
                return self.work(stopping)
            finally:
                signal.set_wakeup_fd(-1)
                received.shutdown(socket.SHUT_RDWR)
                listener.join()

    def _stop_on_byte(self, received: socket.socket) -> None:
        if received.recv(1):
            self.stop()

    def work(self, stopping: Callable[[int], object] = lambda code: None) -> int:
        """Work until `stop`, and return the exit code. See `run`."""
        self._transcript_watch.start()
        self._vault_watch.start()
        for work in (self._ingest, self._distil, self._keep_index):
            thread = threading.Thread(target=self._guard, args=(work,), name=work.__name__.strip("_"), daemon=True)
            self._threads.append(thread)
            thread.start()
        self._ended.get()
        stopping(int(self._failed))
        self._stop.set()
        self._caught_up.set()
        for wake in (self._transcripts, self._chunks, self._notes):
            wake.ring()
        self._transcript_watch.stop()
        self._vault_watch.stop()
        until = time.monotonic() + _PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return 1 if self._failed else 0

    def stop(self) -> None:
        """Stop the daemon. Can be called from any thread and from a signal handler, where only a `SimpleQueue` is safe to use."""
        self._ended.put(None)

    def fail(self) -> None:
        """Stop with the exit code of a failure, from any thread."""
        self._failed = True
        self.stop()

    def look_again(self) -> None:
        """Compare everything now."""
        self._transcripts.ring(everything=True)
        self._notes.ring(everything=True)

    def has_compared(self) -> bool:
        """Return whether the vault was compared since the start: before, the index may hold notes that were deleted meanwhile."""
        return self._compared.is_set()

    def unwatched(self) -> dict[Path, str]:
        """Return the folders that only the periodic comparison reads, and why."""
        return {**self._transcript_watch.unwatched, **self._vault_watch.unwatched}

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            log.exception("thread %s ended unexpectedly; stopping", threading.current_thread().name)
            self.fail()

    def _ingest(self) -> None:
        self._pipeline.open_sessions()
        roused, compare_at = Changes(everything=True), 0.0
        while not self._stop.is_set():
            work: Iterator[tuple[Source, Path, int | None]]
            try:
                if roused.everything or time.monotonic() >= compare_at:
                    if not self._still_ours():
                        raise StateTakenAway("the state folder was removed or replaced under the running daemon")
                    self._transcript_watch.arm()
                    self._pipeline.survey.keep()
                    work = (each for each in self._pipeline.survey.compared() if each[2] is not None)
                    compare_at = time.monotonic() + self._compare_seconds
                else:
                    work = ((source, path, None) for source, path in self._pipeline.sources_of(map(Path, roused.paths)))
                for done, (source, path, behind) in enumerate(work, 1):
                    if self._stop.is_set():
                        return
                    self._worked_at = time.monotonic()
                    self._pipeline.ingest_changed(source, path, behind, stop=self._stop.is_set)
                    if not done % _FILES_AT_ONCE:
                        self._pipeline.form_chunks()
                        give_back()
                ripe = self._pipeline.form_chunks()
            except StateNotWritten as error:
                log.warning("%s; trying again in a minute", error)
                self._stop.wait(_MINUTE)
                roused = Changes(everything=True)
                continue
            self._caught_up.set()
            self._chunks.ring()
            until_compare = compare_at - time.monotonic()
            until_ripe = until_compare if ripe is None else ripe - time.time()
            roused = self._transcripts.wait(max(0.0, min(until_compare, until_ripe)))

    def _distil(self) -> None:
        self._caught_up.wait()  # while a timeline is read again, a chunk's events may not be there yet
        while not self._stop.is_set():
            try:
                step = self._pipeline.distil()
            except StateNotWritten as error:
                log.warning("%s; trying again in a minute", error)
                step = Idle(until=time.time() + _MINUTE, reason=str(error), hint=error.hint)
            match step:
                case ChunkHandled():
                    continue
                case Idle(until=until) as idle:
                    self.idle = idle
                    self._chunks.wait(None if until is None else max(0.05, until - time.time()))

    def _keep_review(self) -> None:
        """Carry out ticked boxes on the review page. A tick is a change to the vault like any other."""
        try:
            self._review()
        except KiteError as error:
            log.warning("the review page could not be kept: %s", error)

    def _embed_a_little(self) -> float:
        """Embed some of the waiting cards and bundles, and return after how many seconds to continue."""
        for _ in range(_ROUNDS):
            try:
                if self._stop.is_set() or not self._embed_bundles():
                    return _UNTIL_QUIET if time.monotonic() - self._worked_at < 2 * _UNTIL_QUIET else math.inf
            except KiteError as error:  # search goes on by words alone
                log.warning("%s; trying again at the next comparison", error)
                return math.inf
        return _BREATH

    def _warm_up(self) -> None:
        try:
            self._warm()
        except KiteError as error:
            log.warning("%s; notes are found by their words alone", error)

    def _maintain(self) -> None:
        """Run the periodic work that needs idle agents."""
        try:
            if not self._stop.is_set():
                self._tend(time.monotonic() - self._worked_at)
        except StateNotWritten as error:
            log.warning("%s; trying again at the next comparison", error)

    def _keep_index(self) -> None:
        self._warm_up()
        roused, compare_at = Changes(everything=True), 0.0
        unembedded: float | None = None
        while not self._stop.is_set():
            now = time.monotonic()
            if roused.everything or now >= compare_at or not self._pipeline.unchanged_since_written(map(Path, roused.paths)):
                self._vault_watch.arm()
                refreshed = self._pipeline.compare_vault(embed=False, stop=self._stop.is_set)
                self._compared.set()  # before embedding, which may take minutes: prompts wait for this
                self._pipeline.embed(stop=self._stop.is_set)
                if refreshed is not None:
                    self._chunks.ring()
                    give_back()  # the list of a large vault's notes took much memory
                compare_at, unembedded = time.monotonic() + self._compare_seconds, None
            elif roused.paths and (unembedded is None or now < unembedded + _LONGEST_BURST):
                unembedded = unembedded or now
            elif unembedded is not None:
                self._pipeline.embed(stop=self._stop.is_set)
                unembedded = None
            self._keep_review()
            more_in = self._embed_a_little()
            self._maintain()
            until_compare = max(0.0, min(compare_at - time.monotonic(), more_in))
            roused = self._notes.wait(until_compare if unembedded is None else min(until_compare, _QUIET))
            if roused.paths or roused.everything:
                self._stop.wait(_SETTLE)
                roused |= self._notes.wait(0.0)


def _is_not_listed(vault: Path, path: str) -> bool:
    """Return whether a comparison of the vault ignores the path.

    False for a path outside the vault, which may be another spelling of one inside.
    """
    try:
        return is_below_hidden(Path(path).relative_to(vault))
    except ValueError:
        return False
