"""Kills the daemon at random moments, again and again, and then counts what was lost, doubled or torn.

Run as a program: it forks, so it must have no threads of its own. Prints one JSON object; ``violations`` should be empty.
"""

import argparse
import json
import os
import random
import re
import signal
import sys
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from kite_memory.daemon.daemon import Daemon
from kite_memory.daemon.protocol import DaemonLock
from kite_memory.distill.condense import ChunkPolicy
from kite_memory.distill.extractor import Answer, Usage
from kite_memory.model.event import EventType, RedactedResult
from kite_memory.model.note import Chunk, Fact, Record, Topic
from kite_memory.timeline.store import Timeline
from tests.fakes.services import fake_services

POLICY = ChunkPolicy(target=400, most=1500, idle=0.02, stalled=0.2)
"""So that sessions of today are cut up while they go on, and while no one speaks for a moment."""
AT_THE_END = replace(POLICY, idle=0.0, stalled=0.0)
PRICE = Usage(tokens_in=100, tokens_out=10, dollars=0.001)
LONG_AGO = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
SESSIONS = 6
"""The first half of them are of long ago, the others of today."""

_IN_VAIN = 5
"""So many kills in a row before any call come too early: a machine that is busy with other things needs longer lives."""
_LONGEST = 6.0

_BETWEEN = 0.02
"""Seconds between the two halves of a planted commit: long enough for a kill to fall there, short enough for lives of a second."""

Plant = Literal["", "no-outbox", "cursor-first", "events-first"]
"""A bug on purpose. Answers are not kept over a crash; or the read position is committed by itself, before its events or after
them, and the events have no names of their own."""


class CursorFirst(Timeline):
    def commit(self, looks: Iterable[RedactedResult], provider: str) -> int:
        looks = list(looks)
        super().commit([replace(look, session=None, events=()) for look in looks], provider)
        time.sleep(_BETWEEN)
        return super().commit(looks, provider)


class EventsFirst(Timeline):
    def commit(self, looks: Iterable[RedactedResult], provider: str) -> int:
        for look in looks:
            named = tuple(replace(event, id=str(uuid.uuid4()), parent="") for event in look.events)
            before = self.files.cursor(look.path)
            added = super().commit([replace(look, events=named, cursor=before or replace(look.cursor, position=0))], provider)
            time.sleep(_BETWEEN)
            super().commit([replace(look, session=None, events=())], provider)
        return added


TIMELINES: dict[Plant, type[Timeline]] = {"cursor-first": CursorFirst, "events-first": EventsFirst}


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
        time.sleep(random.uniform(0, 0.03))
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
    old: bool = False
    """Whether all sessions are of long ago."""
    written: dict[str, str] = field(default_factory=dict)
    half: dict[Path, bytes] = field(default_factory=dict)
    count: int = 0

    def go_on(self) -> None:
        path = self.folder / f"{self.random.randrange(SESSIONS):08d}-0000-4000-8000-000000000000.jsonl"
        with path.open("ab") as file:
            file.write(self.half.pop(path, b""))
            for _ in range(self.random.randrange(1, 4)):
                file.write(self._line(path))
                if self.random.random() < 0.4:
                    file.write(self._answer(path))
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
        return self._row(path, "user", name, {"role": "user", "content": said})

    def _answer(self, path: Path) -> bytes:
        name = str(uuid.UUID(int=self.random.getrandbits(128), version=4))
        content = [{"type": "text", "text": "That is settled, and the pipes are laid."}]
        return self._row(path, "assistant", name, {"role": "assistant", "model": "claude-fake", "content": content})

    def _row(self, path: Path, kind: str, name: str, message: dict[str, object]) -> bytes:
        old = self.old or int(path.name[:8]) < SESSIONS // 2
        at = LONG_AGO + timedelta(seconds=self.count) if old else datetime.now(UTC)
        row = {
            "type": kind,
            "uuid": name,
            "parentUuid": None,
            "sessionId": path.stem,
            "cwd": "/home/ada/orchard",
            "version": "2.1.328",
            "isSidechain": False,
            "userType": "external",
            "timestamp": at.isoformat().replace("+00:00", "Z"),
            "message": message,
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


def outbox_file(incarnation: int, plant: Plant) -> str:
    return f"outbox-{incarnation}.sqlite" if plant == "no-outbox" else "outbox.sqlite"


def live(places: Places, incarnation: int, plant: Plant) -> None:
    """The real daemon, in this process, until it is killed."""
    random.seed()
    extractor = WordyExtractor(places.log, incarnation)
    with (
        DaemonLock.take(places.state),
        fake_services(
            places.root,
            extractor,
            policy=POLICY,
            outbox_file=outbox_file(incarnation, plant),
            timeline_type=TIMELINES.get(plant, Timeline),
        ) as services,
    ):
        Daemon(pipeline=services.pipeline, sources=(services.source,), vault=places.vault, compare_seconds=300.0).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What stands in the end."""

    events: tuple[str, ...]
    said: tuple[str, ...]
    bodies: tuple[str, ...]
    unreadable: tuple[str, ...]
    leftovers: tuple[str, ...]
    damage: tuple[str, ...]
    indexed: int
    stale: int


def settle(places: Places, incarnation: int, plant: Plant) -> Found:
    """Finish what is unfinished, unharmed, and look at what there is."""
    extractor = WordyExtractor(places.log, incarnation)
    file = outbox_file(incarnation, plant)
    with fake_services(places.root, extractor, policy=AT_THE_END, outbox_file=file) as services:
        services.run_until_idle()
        services.pipeline.compare_vault()
        sessions = [state.session for state in services.timeline.sessions.states()]
        notes = [note for entry in services.vault.notes.entries() if (note := services.vault.notes.read(entry.path)) is not None]
        index = services.recall.index.status()
        events = [event for session in sessions for event in services.timeline.events.of_session(session.provider, session.id)]
        return Found(
            events=tuple(event.id for event in events),
            said=tuple(event.text.split()[0] for event in events if event.type is EventType.USER_MESSAGE),
            bodies=tuple(note.body for note in notes),
            unreadable=tuple(problem.reason for problem in services.vault.notes.problems()),
            leftovers=tuple(path.name for path in places.vault.rglob(".kmem-*")),
            damage=tuple(services.timeline.damage()),
            indexed=index.notes,
            stale=index.stale,
        )


def violations(writer: Writer, found: Found, asked: list[tuple[int, str]]) -> list[str]:
    said = Counter(found.said)
    mentions = Counter(token for body in found.bodies for token in re.findall(r"Said of (matter-\d+) in other words", body))
    lines = [f"line lost: {token}" for token in writer.written.values() if token not in said]
    lines += [f"event doubled: {token}" for token, count in said.items() if count > 1]
    lines += [f"note doubled: {token}" for token, count in mentions.items() if count > 1]
    lines += [f"note lost: {token}" for token in writer.written.values() if token not in mentions]
    lines += [f"file torn: {reason}" for reason in found.unreadable]
    lines += [f"left over: {name}" for name in found.leftovers]
    lines += [f"timeline damaged: {line}" for line in found.damage]
    if found.stale or found.indexed != len(found.bodies):
        lines.append(f"index out of step: {found.indexed} of {len(found.bodies)} notes, {found.stale} stale")
    return lines + asked_too_often(asked)


def asked_too_often(asked: list[tuple[int, str]]) -> list[str]:
    """A chunk may be asked about again only if it was the call in flight when its incarnation was killed."""
    last = dict(asked)
    lines: list[str] = []
    seen: dict[str, int] = {}
    for incarnation, chunk in asked:
        if chunk in seen and last[seen[chunk]] != chunk:
            lines.append(f"asked twice: {chunk}")
        seen[chunk] = incarnation
    return lines


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--kills", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--longest", type=float, default=0.25, help="seconds that one incarnation lives at most")
    arguments.add_argument("--plant", choices=["", "no-outbox", "cursor-first", "events-first"], default="", help="a control")
    asked_for = arguments.parse_args()
    plant: Plant = asked_for.plant
    chance = random.Random(asked_for.seed)
    places = Places(asked_for.folder)
    places.projects.mkdir(parents=True)
    places.state.mkdir(mode=0o700)
    writer = Writer(places.projects, chance)
    longest, asked_before, in_vain = asked_for.longest, 0, 0
    for incarnation in range(asked_for.kills):
        child = os.fork()
        if child == 0:
            try:
                live(places, incarnation, plant)
            except BaseException:  # noqa: BLE001 - the edge of a process that must never return into the loop
                traceback.print_exc()
            finally:
                os._exit(3)
        until = time.monotonic() + chance.uniform(0.005, longest)
        while (left := until - time.monotonic()) > 0:
            writer.go_on()
            time.sleep(min(left, chance.uniform(0, 0.3)))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(f"incarnation {incarnation} ended by itself")
        asked_now = places.log.stat().st_size if places.log.exists() else 0
        in_vain = 0 if asked_now > asked_before else in_vain + 1
        asked_before = asked_now
        if in_vain == _IN_VAIN:
            longest, in_vain = min(2 * longest, _LONGEST), 0
    writer.finish()
    found = settle(places, asked_for.kills, plant)
    asked = [(int(line.split()[0]), line.split()[1]) for line in places.log.read_text().splitlines()]
    output = violations(writer, found, asked)
    result = {
        "kills": asked_for.kills,
        "lines": len(writer.written),
        "notes": len(found.bodies),
        "asked": len(asked),
        "asked again": len(asked) - len({chunk for _, chunk in asked}),
        "violations": output[:50],
        "violation count": len(output),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
