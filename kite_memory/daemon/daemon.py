"""The process that stays: threads that wake, look, and go back to sleep."""

import logging
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kite_memory.daemon.heap import give_back
from kite_memory.daemon.pipeline import Pipeline
from kite_memory.daemon.watch import Wake, Watch
from kite_memory.distill.scheduler import Asked, Idle
from kite_memory.sources.source import Source

log = logging.getLogger("kite_memory.daemon")

_SETTLE = 0.2
"""Seconds to let a burst of changes in the vault pass: an editor's save is several events."""

_MUCH = 50
"""Texts embedded at once that leave a heap worth trimming."""


class Daemon:
    """File events are hints; every ``compare_seconds`` all transcripts and the vault are compared with what is known.

    An error that no one expected in any thread stops the whole process with exit code 1, so that the service
    manager starts it afresh: every step is committed, so nothing is lost by that.
    """

    def __init__(
        self,
        *,
        pipeline: Pipeline,
        sources: tuple[Source, ...],
        vault: Path,
        compare_seconds: float,
        warm: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pipeline = pipeline
        self._compare_seconds = compare_seconds
        self._warm = warm
        self._clock = clock
        self._stop = threading.Event()
        self._failed = False
        self._transcripts = Wake()
        self._chunks = Wake()
        self._notes = Wake()
        self._threads: list[threading.Thread] = []
        roots = [root for source in sources for root in source.roots()]
        self._transcript_watch = Watch(roots, notice=self._transcripts.ring, lost=lambda: self._transcripts.ring(everything=True))
        self._vault_watch = Watch([vault], notice=self._notes.ring, lost=lambda: self._notes.ring(everything=True))
        self.idle = Idle(until=None, reason="starting")

    def run(self) -> int:
        """Work until a signal or `stop`; returns the exit code. For the main thread of a process of its own."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        return self.work()

    def work(self) -> int:
        """Work until `stop`; returns the exit code."""
        self._transcript_watch.start()
        self._vault_watch.start()
        for work in (self._ingest, self._distil, self._keep_index):
            thread = threading.Thread(target=self._guard, args=(work,), name=work.__name__.strip("_"), daemon=True)
            self._threads.append(thread)
            thread.start()
        self._stop.wait()
        self._transcript_watch.stop()
        self._vault_watch.stop()
        for thread in self._threads:
            thread.join(timeout=5.0)  # a call to the model may hang longer; what it would have said is asked again
        return 1 if self._failed else 0

    def stop(self) -> None:
        self._stop.set()
        for wake in (self._transcripts, self._chunks, self._notes):
            wake.ring()

    def look_again(self) -> None:
        """Compare everything now."""
        self._transcripts.ring(everything=True)
        self._notes.ring(everything=True)

    def unwatched(self) -> dict[Path, str]:
        """Folders that only the periodic comparison looks at, and why."""
        return {**self._transcript_watch.unwatched, **self._vault_watch.unwatched}

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            log.exception("thread %s ended unexpectedly; stopping", threading.current_thread().name)
            self._failed = True
            self.stop()

    def _ingest(self) -> None:
        self._pipeline.open_sessions()
        roused_everything, compare_at = True, 0.0
        paths: frozenset[str] = frozenset()
        while not self._stop.is_set():
            if roused_everything or self._clock() >= compare_at:
                self._transcript_watch.arm()
                work = [(source, path) for source, path, _ in self._pipeline.unread()]
                compare_at = self._clock() + self._compare_seconds
            else:
                work = [
                    (source, Path(path)) for path in sorted(paths) if (source := self._pipeline.source_of(Path(path))) is not None
                ]
            for source, path in work:
                if self._stop.is_set():
                    return
                self._pipeline.ingest(source, path)
            ripe = self._pipeline.form_chunks()
            self._chunks.ring()
            wake_at = compare_at if ripe is None else min(compare_at, ripe)
            roused = self._transcripts.wait(max(0.0, wake_at - self._clock()))
            roused_everything, paths = roused.everything, roused.paths

    def _distil(self) -> None:
        while not self._stop.is_set():
            match self._pipeline.distil():
                case Asked():
                    continue
                case Idle(until=until) as idle:
                    self.idle = idle
                    self._chunks.wait(None if until is None else max(0.05, until - self._clock()))

    def _keep_index(self) -> None:
        self._warm()
        while not self._stop.is_set():
            self._vault_watch.arm()
            if (refreshed := self._pipeline.compare_vault(stop=self._stop.is_set)) is not None:
                self._chunks.ring()
                if refreshed.embedded > _MUCH:
                    give_back()
            self._notes.wait(self._compare_seconds)
            self._stop.wait(_SETTLE)
            self._notes.wait(0.0)
