"""A queue of file events that overflows again and again, and watches that run out, cost time and never a line."""

import json
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from kite_memory.daemon.daemon import Daemon
from tests.counts import how_many
from tests.crash.harness import AT_THE_END, Places, Writer
from tests.e2e.kmem import PROJECT, eventually
from tests.fakes.extractors import ScriptedExtractor
from tests.fakes.services import FakeServices, fake_services

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's"),
    pytest.mark.timeout(900),
    # watchdog warns if it is notified twice of a new folder; as an error it would end its thread, which it does nowhere else
    pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning"),
]

NEVER = 3600.0
"""Seconds between two comparisons: what is found meanwhile is found because the watch has tokens_read."""
QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
LIMIT = 'echo "$1" > /proc/sys/user/max_inotify_watches && shift && exec "$@"'
LIMITED = ["unshare", "--user", "--map-root-user", "sh", "-c", LIMIT, "sh"]


def may_limit() -> bool:
    return subprocess.run([*LIMITED, "5", "true"], capture_output=True, check=False).returncode == 0


class Overflows(logging.Handler):
    """Counts what the watcher's library says of lost events, each for one queue."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "events were lost" in record.getMessage()

    def reached(self, count: int) -> bool:
        return self.count >= count


@contextmanager
def at_work(home: Path, *, compare_seconds: float) -> Iterator[tuple[FakeServices, Daemon, Overflows]]:
    overflows, places = Overflows(), Places(home)
    places.projects.mkdir(parents=True, exist_ok=True)
    places.state.mkdir(mode=0o700)
    logger = logging.getLogger("watchdog.observers")
    logger.addHandler(overflows)
    with fake_services(home, ScriptedExtractor(), policy=AT_THE_END) as services:
        daemon = Daemon(pipeline=services.pipeline, sources=(services.source,), vault=places.vault, compare_seconds=compare_seconds)
        thread = threading.Thread(target=daemon.work)
        thread.start()
        try:
            yield services, daemon, overflows
        finally:
            daemon.stop()
            thread.join()
            logger.removeHandler(overflows)


@contextmanager
def held_up() -> Iterator[None]:
    """The watch's reader gets no turn, as on a machine at its limit: a burst meanwhile overflows the queue for certain."""
    from watchdog.observers.inotify_c import InotifyFD  # Linux's alone

    turn, may_read = threading.Event(), InotifyFD._check_inotify_fd

    def when_its_turn_comes(inotify: InotifyFD) -> bool:
        return may_read(inotify) and turn.wait()

    with patch.object(InotifyFD, "_check_inotify_fd", when_its_turn_comes):
        try:
            yield
        finally:
            turn.set()


def flood(folder: Path) -> float:
    """A burst of writes that do not fold into one event, twice what the kernel's queue holds; how many a second."""
    burst = 2 * int(QUEUE.read_text())
    handles = [os.open(folder / f"noise-{number}.txt", os.O_WRONLY | os.O_CREAT) for number in range(8)]
    began = time.perf_counter()
    for _ in range(burst // len(handles)):
        for handle in handles:
            os.pwrite(handle, b"x", 0)
    took = time.perf_counter() - began
    for handle in handles:
        os.close(handle)
    return burst / took


def tokens_read(services: FakeServices) -> set[str]:
    states = services.timeline.sessions.states()
    return {
        event.text.split()[0]
        for state in states
        for event in services.timeline.events.of_session(state.session.provider, state.session.id)
    }


def missed(home: Path, times: int, *, nested: bool) -> tuple[str, set[str]]:
    """What there is to tell of it (how often a queue overflew, how fast was written, when all was known), and what is not known
    though all has been quiet for a while.
    """
    places, rates = Places(home), []
    with at_work(home, compare_seconds=NEVER) as (services, _, overflows):
        writer = Writer(places.projects, random.Random(4), old=True)
        writer.go_on()
        writer.finish()
        assert eventually(lambda: tokens_read(services) >= set(writer.written.values())), "it does not work at all"
        for burst in range(times):
            with held_up():
                rates.append(flood(places.projects))
                writer.go_on()
                if burst + 1 == times:
                    writer.finish()
            if nested:
                assert eventually(partial(overflows.reached, burst + 1), seconds=60.0)
                new = places.projects / f"new-{burst}" / "deeper"
                new.mkdir(parents=True)
                inner = Writer(new, random.Random(1_000 + burst), old=True, count=(burst + 1) * 1_000)
                inner.go_on()
                inner.finish()
                writer.written |= inner.written
            flood(places.projects)
        expected = set(writer.written.values())
        quiet = time.perf_counter()
        eventually(lambda: tokens_read(services) >= expected, seconds=20.0 if nested else 5.0)
        rate, late = sum(rates) / len(rates), time.perf_counter() - quiet
        return f"{overflows.count} overflows at {rate:,.0f} writes a second, known after {late:.1f} s", expected - tokens_read(
            services
        )


def test_no_overflow_of_the_queue_loses_a_line(tmp_path: Path) -> None:
    story, lost = missed(tmp_path, how_many(30), nested=True)

    print(story)
    assert lost == set()


def test_control_a_watch_that_does_not_hear_of_overflows_is_caught(tmp_path: Path) -> None:
    """The planted bug: the library's warnings go nowhere, so no one knows that something was lost."""
    logging.disable(logging.WARNING)
    try:
        _, lost = missed(tmp_path, 2, nested=False)
    finally:
        logging.disable(logging.NOTSET)

    assert lost != set()


WITH_FEW_WATCHES = """
import json, sys
from pathlib import Path
from tests.e2e.kmem import eventually
from tests.goals.test_goal_04_watcher import Places, Writer, at_work, random, tokens_read

home, seconds = Path(sys.argv[1]), float(sys.argv[2])
places = Places(home)
for number in range(40):
    (places.projects / f"p-{number}").mkdir(parents=True)
before = Writer(places.projects / "p-0", random.Random(5), old=True)
before.go_on(); before.finish()
with at_work(home, compare_seconds=seconds) as (services, daemon, _):
    writer = Writer(places.projects / "p-39", random.Random(4), old=True, count=1_000)
    # Once what was there before is read, the comparison that every start begins with has listed all folders.
    eventually(lambda: tokens_read(services) >= set(before.written.values()), seconds=60)
    eventually(lambda: bool(daemon.unwatched()), seconds=60)
    writer.go_on(); writer.finish()
    found = eventually(lambda: tokens_read(services) >= set(writer.written.values()), seconds=20 if seconds < 60 else 3)
    print(json.dumps([sorted(map(str, daemon.unwatched().values())), found]))
"""


def with_few_watches(home: Path, compare_seconds: float) -> tuple[list[str], bool]:
    command = [*LIMITED, "3", sys.executable, "-c", WITH_FEW_WATCHES, str(home), str(compare_seconds)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    warned, found = json.loads(done.stdout.splitlines()[-1])
    return warned, found


@pytest.mark.skipif(not may_limit(), reason="no user namespaces here")
def test_where_watches_run_out_the_comparison_takes_over_and_it_is_reported(tmp_path: Path) -> None:
    warned, found = with_few_watches(tmp_path, 1.0)

    assert warned
    assert found


@pytest.mark.skipif(not may_limit(), reason="no user namespaces here")
def test_control_without_a_comparison_it_would_not_be_found(tmp_path: Path) -> None:
    _, found = with_few_watches(tmp_path, NEVER)

    assert not found
