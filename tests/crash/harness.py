"""Kills the daemon at random moments, again and again, and then counts what was lost, doubled or torn.

Run as a program: it forks, so it must have no threads of its own. Prints one JSON object; ``violations`` should be empty.
"""

import argparse
import json
import os
import random
import signal
import sys
import time
import traceback
import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kite_memory.daemon.daemon import Daemon
from kite_memory.daemon.lock import DaemonLock
from kite_memory.distill.chunking import ChunkPolicy
from kite_memory.distill.extractor import Answer, Usage
from kite_memory.model.chunk import Chunk
from kite_memory.model.event import EventType
from kite_memory.model.record import Fact, Record, Topic
from tests.fakes.house import fake_house

POLICY = ChunkPolicy(target=400, most=1500, idle=0.0)
PRICE = Usage(tokens_in=100, tokens_out=10, dollars=0.001)
LONG_AGO = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


class WordyExtractor:
    """Words every answer differently, one fact for each thing a person said, and writes down whom it was asked about.

    The line in ``log`` is on disk before the answer is given, as a bill would be.
    """

    name = "wordy"
    version = "1"

    def __init__(self, log: Path, incarnation: int) -> None:
        self._log = log
        self._incarnation = incarnation

    def estimate(self, chunk: Chunk) -> Usage:
        return PRICE

    def extract(self, chunk: Chunk) -> Answer:
        handle = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{self._incarnation} {chunk.id}\n".encode())
        os.close(handle)
        time.sleep(random.uniform(0, 0.015))
        facts = tuple(
            Fact(
                title=f"{uuid.uuid4().hex[:8]} on {event.text.split()[0]}",
                body=f"Said of {event.text.split()[0]} in other words: {uuid.uuid4().hex}.",
                evidence=(event.id,),
                importance=2,
                origin="user",
            )
            for event in chunk.events
            if event.type is EventType.USER_MESSAGE
        )
        return Answer(record=Record(topics=(Topic(name="all", summary="", items=facts),)), usage=PRICE)


@dataclass(slots=True)
class Writer:
    """The agent: appends to its transcripts, now and then only half a line."""

    folder: Path
    random: random.Random
    written: dict[str, str] = field(default_factory=dict)
    half: dict[Path, bytes] = field(default_factory=dict)
    count: int = 0

    def go_on(self) -> None:
        path = self.folder / f"{self.random.randrange(3):08d}-0000-4000-8000-000000000000.jsonl"
        with path.open("ab") as file:
            file.write(self.half.pop(path, b""))
            for _ in range(self.random.randrange(1, 4)):
                file.write(self._line(path))
            if self.random.random() < 0.3:
                line = self._line(path)
                cut = self.random.randrange(1, len(line))
                file.write(line[:cut])
                self.half[path] = line[cut:]

    def finish(self) -> None:
        for path, rest in self.half.items():
            with path.open("ab") as file:
                file.write(rest)
        self.half.clear()

    def _line(self, path: Path) -> bytes:
        self.count += 1
        token = f"matter-{self.count:06d}"
        name = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        self.written[name] = token
        said = f"{token} is how the greenhouse is heated from now on, and nothing else will do for the orchids there."
        row = {
            "type": "user",
            "uuid": name,
            "parentUuid": None,
            "sessionId": path.stem,
            "cwd": "/home/ada/orchard",
            "version": "2.1.328",
            "isSidechain": False,
            "userType": "external",
            "timestamp": (LONG_AGO + timedelta(seconds=self.count)).isoformat().replace("+00:00", "Z"),
            "message": {"role": "user", "content": said},
        }
        return json.dumps(row).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Places:
    root: Path

    @property
    def projects(self) -> Path:
        return self.root / "claude" / "projects" / "-orchard"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def vault(self) -> Path:
        return self.root / "vault"

    @property
    def log(self) -> Path:
        return self.root / "asked.log"


def outbox_file(incarnation: int, *, without_outbox: bool) -> str:
    return f"outbox-{incarnation}.sqlite" if without_outbox else "outbox.sqlite"


def live(places: Places, incarnation: int, *, without_outbox: bool) -> None:
    """The real daemon, in this process, until it is killed."""
    random.seed()
    extractor = WordyExtractor(places.log, incarnation)
    with (
        DaemonLock.take(places.state),
        fake_house(
            places.root, extractor, policy=POLICY, outbox_file=outbox_file(incarnation, without_outbox=without_outbox)
        ) as house,
    ):
        Daemon(pipeline=house.pipeline, sources=(house.source,), vault=places.vault, compare_seconds=300.0).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What stands in the end."""

    events: tuple[str, ...]
    bodies: tuple[str, ...]
    unreadable: tuple[str, ...]
    leftovers: tuple[str, ...]
    damage: tuple[str, ...]
    indexed: int
    stale: int


def settle(places: Places, incarnation: int, *, without_outbox: bool) -> Found:
    """Finish what is unfinished, unharmed, and look at what there is."""
    extractor = WordyExtractor(places.log, incarnation)
    file = outbox_file(incarnation, without_outbox=without_outbox)
    with fake_house(places.root, extractor, policy=POLICY, outbox_file=file) as house:
        house.walk()
        house.pipeline.compare_vault()
        sessions = [state.session for state in house.timeline.session_states()]
        notes = [note for entry in house.vault.entries() if (note := house.vault.read(entry.path)) is not None]
        index = house.recall.status()
        return Found(
            events=tuple(event.id for session in sessions for event in house.timeline.events(session.provider, session.id)),
            bodies=tuple(note.body for note in notes),
            unreadable=tuple(problem.reason for problem in house.vault.problems()),
            leftovers=tuple(path.name for path in places.vault.rglob(".kmem-*")),
            damage=tuple(house.timeline.damage()),
            indexed=index.notes,
            stale=index.stale,
        )


def violations(writer: Writer, found: Found, asked: list[tuple[int, str]]) -> list[str]:
    events = Counter(found.events)
    mentions = Counter(word for body in found.bodies for word in set(body.split()) if word.startswith("matter-"))
    told = [f"line lost: {name}" for name in writer.written if name not in events]
    told += [f"event doubled: {name}" for name, count in events.items() if count > 1]
    told += [f"note doubled: {token}" for token, count in mentions.items() if count > 1]
    told += [f"note lost: {token}" for token in writer.written.values() if token not in mentions]
    told += [f"file torn: {reason}" for reason in found.unreadable]
    told += [f"left over: {name}" for name in found.leftovers]
    told += [f"timeline damaged: {line}" for line in found.damage]
    if found.stale or found.indexed != len(found.bodies):
        told.append(f"index out of step: {found.indexed} of {len(found.bodies)} notes, {found.stale} stale")
    return told + asked_too_often(asked)


def asked_too_often(asked: list[tuple[int, str]]) -> list[str]:
    """A chunk may be asked about again only if it was the call in flight when its incarnation was killed."""
    last = dict(asked)
    told: list[str] = []
    seen: dict[str, int] = {}
    for incarnation, chunk in asked:
        if chunk in seen and last[seen[chunk]] != chunk:
            told.append(f"asked twice: {chunk}")
        seen[chunk] = incarnation
    return told


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--kills", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--longest", type=float, default=0.25, help="seconds that one incarnation lives at most")
    arguments.add_argument("--without-outbox", action="store_true", help="the control: answers are not kept over a crash")
    asked_for = arguments.parse_args()
    chance = random.Random(asked_for.seed)
    places = Places(asked_for.folder)
    places.projects.mkdir(parents=True)
    places.state.mkdir(mode=0o700)
    writer = Writer(places.projects, chance)
    for incarnation in range(asked_for.kills):
        child = os.fork()
        if child == 0:
            try:
                live(places, incarnation, without_outbox=asked_for.without_outbox)
            except BaseException:  # noqa: BLE001 - the edge of a process that must never return into the loop
                traceback.print_exc()
            finally:
                os._exit(3)
        until = time.monotonic() + chance.uniform(0.005, asked_for.longest)
        while (left := until - time.monotonic()) > 0:
            writer.go_on()
            time.sleep(min(left, chance.uniform(0, 0.04)))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(f"incarnation {incarnation} ended by itself")
    writer.finish()
    found = settle(places, asked_for.kills, without_outbox=asked_for.without_outbox)
    asked = [(int(line.split()[0]), line.split()[1]) for line in places.log.read_text().splitlines()]
    told = violations(writer, found, asked)
    result = {
        "kills": asked_for.kills,
        "lines": len(writer.written),
        "notes": len(found.bodies),
        "asked": len(asked),
        "asked again": len(asked) - len({chunk for _, chunk in asked}),
        "violations": told[:50],
        "violation count": len(told),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
