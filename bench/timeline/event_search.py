"""How long a search over events takes, for each kind of question, by the clock and of a processor's time.

    python -m bench.timeline.event_search [--events 1000000] [--rounds 40] [--keep FILE]

Makes up sessions of several projects and agents: words as rare and as common as in prose (Zipf), calls with their commands,
results, failures and files. They go through the real `Timeline.commit`; each round asks for other words. Bundles are given vectors
by chance; a question gets its own from the local embedder, which is part of what is timed. At the end the operations `search` and
`ask` are timed as the daemon performs them, and cards alone. ``--keep`` names the folder where the timeline stays, to be asked
again.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.timeline.history import config_in
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Role, Session, Status, Where
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.timeline.conversations import CardQuery, ConversationEmbedder
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import Timeline
from kite_memory.wiring.models import meaning_of
from kite_memory.wiring.services import open_services

_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_VOCABULARY = 60_000
_LINES = 80_000
_PER_SESSION = 1_000
_PROJECTS = 12
_AGENTS = ("claude-code", "codex", "gemini-cli")
_SYLLABLES = (
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "ke",
    "li",
    "mo",
    "nu",
    "pa",
    "re",
    "si",
    "to",
    "vu",
    "wa",
    "xe",
    "yi",
    "tra",
    "plo",
)
_ENDINGS = ("TypeError: {} has no member {}", "error: cannot reach {} at {}", "AssertionError: {} is not {}")


class Speech:
    """Lines of made-up words, the n-th of them n times rarer than the first."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.words = [self._word() for _ in range(_VOCABULARY)]
        weights = list(accumulate(1 / (rank + 8) for rank in range(_VOCABULARY)))
        drawn = chance.choices(self.words, cum_weights=weights, k=_LINES * 11)
        self._lines = [" ".join(drawn[at : at + 11]) for at in range(0, len(drawn), 11)]

    def _word(self) -> str:
        return "".join(self._chance.choices(_SYLLABLES, k=self._chance.randint(2, 4)))

    def text(self, lines: int) -> str:
        return "\n".join(self._chance.choices(self._lines, k=lines))

    def line(self) -> str:
        return self._chance.choice(self._lines)

    def word(self, first: int, last: int) -> str:
        """One of the ``first`` to ``last`` commonest."""
        return self.words[self._chance.randrange(first, last)]


def session(number: int, chance: random.Random, speech: Speech) -> RedactedResult:
    agent = _AGENTS[number % len(_AGENTS)]
    session = Session(
        id=f"{number:08x}-5e55-4000-8000-000000000000",
        provider=agent,
        started=_BEGAN + timedelta(hours=5 * number),
        project=f"project-{int(_PROJECTS * chance.random() ** 2)}",
        cwd="/home/ada",
    )
    path = f"/t/{session.id}.jsonl"
    events = tuple(_events(session, path, chance, speech))
    return RedactedResult(
        ReadResult(path=path, session=session, events=events, problems=(), cursor=Cursor(position=1, size=1, mtime_ns=1))
    )


def _events(session: Session, path: str, chance: random.Random, speech: Speech) -> Iterator[Event]:
    made = 0

    def event(
        type: EventType, role: Role, text: str, *, command: str = "", file: str = "", status: Status = "", tool: str = ""
    ) -> Event:
        nonlocal made
        made += 1
        return Event(
            id=f"{made:08x}{session.id}",
            session=session.id,
            provider=session.provider,
            ordinal=made,
            at=session.started + timedelta(seconds=11 * made),
            role=role,
            type=type,
            text=text,
            where=Where(file=path, start=made, end=made + 1),
            tool=tool,
            command=command,
            path=file,
            status=status,
            call=f"call-{turn}" if tool else "",
        )

    for turn in range(_PER_SESSION):
        if made >= _PER_SESSION - 8:
            return
        if turn % 8 == 0:
            yield event(EventType.USER_MESSAGE, "user", speech.text(3))
        yield event(EventType.ASSISTANT_MESSAGE, "assistant", speech.text(4))
        if turn % 3 == 0:
            file = f"/home/ada/{session.project}/{speech.word(0, 400)}/{speech.word(0, 3_000)}.py"
            yield event(EventType.TOOL_CALL, "assistant", file, file=file, tool="Edit")
            yield event(EventType.TOOL_RESULT, "tool", speech.text(6), file=file, status="ok", tool="Edit")
            yield event(EventType.FILE_ACTION, "tool", "edited, 2 lines added", file=file, status="ok", tool="Edit")
            continue
        command = f"run {speech.line()}"
        failed = chance.random() < 0.1
        said = speech.text(8)
        if failed:
            said += "\n" + chance.choice(_ENDINGS).format(speech.word(0, 5_000), speech.word(0, 5_000))
        yield event(EventType.TOOL_CALL, "assistant", "", tool="Bash")
        yield event(EventType.COMMAND, "assistant", command, command=command, tool="Bash")
        yield event(EventType.TOOL_RESULT, "tool", said, status="failed" if failed else "ok", tool="Bash")
        if failed:
            yield event(EventType.ERROR, "tool", said[-300:], command=command, status="failed", tool="Bash")
        elif turn % 7 == 0:
            yield event(EventType.TEST_RESULT, "tool", f"{turn} passed", command=command, status="ok", tool="Bash")


def fill(timeline: Timeline, count: int, chance: random.Random, speech: Speech) -> None:
    spent, taken, last = 0.0, 0, 0
    number = 0
    while taken < count:
        look = session(number, chance, speech)
        started = time.perf_counter()
        taken += timeline.commit([look], look.session.provider if look.session else "")
        spent += time.perf_counter() - started
        number += 1
        if taken - last >= 100_000:
            last = taken
            print(f"  {taken:,} events, {taken / spent:,.0f} a second taken in", flush=True)
    print(f"{taken:,} events of {number:,} sessions taken in within {spent:.0f} s")


def meaning_by_chance() -> ConversationEmbedder:
    local = LocalEmbedder()
    chance = np.random.default_rng(7)

    def vectors(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        drawn = chance.standard_normal((len(texts), local.space.dim)).astype(np.float32)
        unit: npt.NDArray[np.float32] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True).astype(np.float32)
        return unit

    return ConversationEmbedder(space=local.space.tag, of_texts=vectors, of_question=lambda text: local.embed([text], "query")[0])


def give_vectors(timeline: Timeline, meaning: ConversationEmbedder) -> None:
    started, given = time.perf_counter(), 0
    while more := timeline.vectors.embed(meaning, 1_000, per_day=10**9):
        given += more
    print(f"{given:,} bundles given vectors within {time.perf_counter() - started:.0f} s")


def questions(speech: Speech, chance: random.Random) -> dict[str, Callable[[], EventQuery]]:
    rare, common = (3_000, _VOCABULARY), (0, 40)
    project, since = "project-7", _BEGAN + timedelta(days=90)

    def words(*ranges: tuple[int, int]) -> str:
        return " ".join(speech.word(*each) for each in ranges)

    return {
        "one rare word": lambda: EventQuery(text=words(rare)),
        "one common word": lambda: EventQuery(text=words(common)),
        "two rare words": lambda: EventQuery(text=words(rare, rare)),
        "rare and common words": lambda: EventQuery(text=words(common, rare, common, (300, 3_000))),
        "only common words": lambda: EventQuery(text=words(common, common, common)),
        "a sentence of eleven": lambda: EventQuery(text=speech.line()),
        "a paragraph of 44": lambda: EventQuery(text=speech.text(4)),
        "error: a message": lambda: EventQuery(
            text=chance.choice(_ENDINGS).format(speech.word(0, 5_000), speech.word(0, 5_000)), types=frozenset({EventType.ERROR})
        ),
        "error: a common word": lambda: EventQuery(text=words(common), types=frozenset({EventType.ERROR})),
        "test: alone": lambda: EventQuery(types=frozenset({EventType.TEST_RESULT})),
        "tool: and two words": lambda: EventQuery(text=words(common, (300, 3_000)), tool="Bash"),
        "file: alone": lambda: EventQuery(file=f"{speech.word(0, 3_000)}.py"),
        "file: unknown": lambda: EventQuery(file=f"{speech.word(0, 40)}.rs"),
        "file: and a word": lambda: EventQuery(text=words(common), file=f"{speech.word(0, 3_000)}.py"),
        "session: and two words": lambda: EventQuery(text=words(common, common), session=f"{chance.randrange(500):08x}"),
        "project and two words": lambda: EventQuery(text=words(common, (300, 3_000)), project=project),
        "project, 30 days, words": lambda: EventQuery(text=words(common, (40, 300)), project=project, since=since),
        "nothing there": lambda: EventQuery(text="zzyzx qqwwq"),
    }


def ask(timeline: Timeline, meaning: ConversationEmbedder | None, speech: Speech, chance: random.Random, rounds: int) -> None:
    print(f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} processors")
    print(f"{'question':26}{'p50 ms':>9}{'p95 ms':>9}{'p50 cpu':>9}{'p95 cpu':>9}{'found':>8}")
    every: list[tuple[float, float]] = []
    for name, make in questions(speech, chance).items():
        took: list[tuple[float, float]] = []
        found = 0
        for _ in range(rounds):
            query = make()
            started, worked = time.perf_counter(), time.thread_time()
            found += len(timeline.search.find(query, meaning))
            took.append((1000 * (time.perf_counter() - started), 1000 * (time.thread_time() - worked)))
        every += took
        _tell(name, took, f"{found / rounds:8.1f}")
    _tell("all", every, "")


def ask_product(folder: Path, speech: Speech, chance: random.Random, rounds: int) -> None:
    """Time what a user's search and question take in a running daemon, each round with other words."""
    asked: dict[str, Callable[[], str]] = {
        "two words": lambda: f"{speech.word(40, 300)} {speech.word(3_000, _VOCABULARY)}",
        "a sentence of eleven": speech.line,
        "a paragraph of 44": lambda: speech.text(4),
    }
    with open_services(config_in(folder, folder / "claude")) as services:
        meaning = meaning_of(services.embedder)
        ways: dict[str, Callable[[str], object]] = {
            "cards": lambda text: services.timeline.cards.find(CardQuery(text=text, project="project-7"), meaning),
            "search": lambda text: services.operations.perform("search", {"query": text}),
            "ask": lambda text: services.operations.perform("ask", {"question": text}),
        }
        for way, perform in ways.items():
            perform("warm up")
            for name, make in asked.items():
                took: list[tuple[float, float]] = []
                for _ in range(rounds):
                    text = make()
                    started, worked = time.perf_counter(), time.thread_time()
                    perform(text)
                    took.append((1000 * (time.perf_counter() - started), 1000 * (time.thread_time() - worked)))
                _tell(f"{way}, {name}", took, "")


def _tell(name: str, took: list[tuple[float, float]], found: str) -> None:
    columns: list[float] = []
    for times in zip(*took, strict=True):
        ordered = sorted(times)
        columns += (statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))])
    print(f"{name:26}" + "".join(f"{column:9.1f}" for column in columns) + found, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--keep", type=Path, help="a folder to make, or to ask again")
    asked = parser.parse_args()
    chance = random.Random(7)
    speech = Speech(chance)
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        path = config_in(folder, folder / "claude").state / "timeline.sqlite"
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.exists()
        timeline = Timeline(path)
        if not there:
            fill(timeline, asked.events, chance, speech)
        while timeline.cards.rebuild():
            pass
        meaning = meaning_by_chance()
        give_vectors(timeline, meaning)
        print(f"{path.stat().st_size / 1e6:,.0f} MB")
        for how in (None, meaning):
            print("\nby words and meaning" if how else "\nby words")
            ask(timeline, how, speech, random.Random(8), asked.rounds)
        timeline.close()
        print("\nthe operations")
        ask_product(folder, speech, random.Random(9), asked.rounds)


if __name__ == "__main__":
    main()
