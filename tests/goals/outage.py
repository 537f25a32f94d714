"""A model that is away for 72 hours while an agent goes on: how much memory waiting takes. A process of its own, to be measured."""

import argparse
import json
import random
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from kite_memory.distill.condense import ChunkPolicy
from kite_memory.distill.extractor import Busy, Outcome, Usage
from kite_memory.distill.scheduler import ChunkHandled, Idle
from kite_memory.model.event import ReadResult, RedactedResult
from kite_memory.model.note import Chunk
from kite_memory.timeline.store import Timeline
from tests.crash.harness import LONG_AGO, Places
from tests.fakes.services import fake_services

NOON = 1_772_366_400.0
HOURS = 72
A_LINE = (
    '{{"parentUuid":null,"type":"user","uuid":"{name:08x}-0000-4000-8000-000000000000","sessionId":"s","cwd":"/home/ada/orchard",'
    '"userType":"external","timestamp":"{at}","message":{{"role":"user","content":"matter-{name} is how the {words}"}}}}\n'
)


class Clock:
    """Stands still but for where somebody waits."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now

    def after(self, step: ChunkHandled | Idle) -> bool:
        """Sleep as long as the step asks for; whether nothing is left to wait for."""
        if isinstance(step, Idle) and step.until is not None:
            self.now = max(self.now + 0.01, step.until)
        return isinstance(step, Idle) and step.until is None


class Away:
    name, version = "away", "1"

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage(dollars=0.001)

    def extract(self, chunk: Chunk) -> Outcome:
        return Busy(reason="529", retry_after=0.0)


class Hoards(Timeline):
    """The planted bug: what was read stays in memory until it is asked about."""

    hoard: list[ReadResult] = []  # noqa: RUF012 - a bug on purpose

    def commit(self, looks: Iterable[ReadResult], provider: str) -> int:
        self.hoard.extend(kept := [*looks])
        return super().commit(map(RedactedResult, kept), provider)


def write(folder: Path, lines: int, sessions: int) -> None:
    chance = random.Random(5)
    words = [f"{chance.getrandbits(30):x}" for _ in range(2_000)]
    for session in range(sessions):
        with (folder / f"{session:08d}-0000-4000-8000-000000000000.jsonl").open("w", encoding="ascii") as file:
            for number in range(session, lines, sessions):
                at = (LONG_AGO + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
                file.write(A_LINE.format(name=number, at=at, words=" ".join(chance.choices(words, k=12))))


def peak() -> float:
    """Megabytes that this process held at most since `peak_now`. What the system's own call says begins with our parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def peak_now() -> float:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak()


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("lines", type=int)
    arguments.add_argument("--hoards", action="store_true", help="the control")
    options = arguments.parse_args()
    places, clock = Places(options.folder), Clock()
    places.projects.mkdir(parents=True)
    places.state.mkdir(mode=0o700)
    timeline_type = Hoards if options.hoards else Timeline
    with fake_services(
        options.folder, Away(), policy=ChunkPolicy(stalled=120.0), clock=clock, timeline_type=timeline_type
    ) as services:
        write(places.projects, 5_000, sessions=5)  # whatever is loaded at the first need is loaded now
        services.run_until_idle()
        before = peak_now()
        write(places.projects, options.lines, sessions=max(5, options.lines // 2_000))
        paths = [(source, path) for source, path, _ in services.pipeline.unread()]
        each, began = HOURS * 3600 / len(paths), clock.now
        for source, path in paths:
            services.pipeline.ingest(source, path)
            services.pipeline.form_chunks()
            while clock.now < began + each:
                clock.now = max(clock.now, min(began + each, clock.now + 600.0))
                services.pipeline.form_chunks()
                services.pipeline.distil()
            began += each
        after = peak()
        result = {
            "grown_mb": after - before,
            "hours": (clock.now - NOON) / 3600,
            "lines": sum(count.events for count in services.timeline.files.counts()),
            "waiting": services.outbox.states().get("waiting", 0),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
