"""What a vault of many notes costs: to take up, to ask, to add one more note to, to hold in memory, and at the hook.

    python -m bench.speed.scale [--notes 1000 10000 100000] [--cards 40000] [--vectors random] [--busy 2] [--hooks 200]

The notes are invented: 40 to 80 words, as frequent as words are, in 40 projects, with entities and files, on disk in a real vault.
Their vectors are thrown by default, since making 100,000 takes twenty minutes and a dot product does not care; one note in a
hundred (300 at most) has a real one, and is what half of the prompts ask for. ``--vectors real`` embeds all. Prompts are embedded
for real either way; they are as long as real ones were found to be, half of them up to twenty words, one in ten a hundred.

Beside them lie as many conversations as make ``--cards`` cards, a quarter of them in the project that the hook asks in.
While questions are timed, ``--busy`` processes use up a core each. Each size, and each step of it, runs in a process of its own.
``--hooks 0`` leaves out the daemon. Prints a table for each size; asserts nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import itertools
import json
import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import numpy as np
import psutil

from bench.speed.hook_latency import contenders, measure, percentile, table
from kite_memory.agents.claude_code import real_interpreter
from kite_memory.app.searching import TimelineConversations
from kite_memory.distill.outbox import Outbox
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Session, Where
from kite_memory.model.note import Note, NoteKind
from kite_memory.paths import asset_folder
from kite_memory.recall.embedder import Purpose, Space, Vectors
from kite_memory.recall.index import Index
from kite_memory.recall.local_embedder import WEIGHTS, LocalEmbedder, read_vocabulary
from kite_memory.recall.prose import passages
from kite_memory.recall.recall import Recall
from kite_memory.recall.search import Query
from kite_memory.recall.select import Prompt
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.text.stems import STOP_WORDS
from kite_memory.timeline.conversations import CardQuery, ConversationEmbedder
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from kite_memory.vault.notefile import render
from kite_memory.wiring.models import meaning_of

Choice = Literal["random", "real"]

_START = datetime(2026, 1, 1, tzinfo=UTC)
_PROJECTS = 40
_HOOKS_PROJECT = "nowhere"
"""The project of the folder that the hook's prompts come from."""
_TURNS = 10
_KINDS = (NoteKind.FACT, NoteKind.DECISION, NoteKind.INSIGHT, NoteKind.PREFERENCE)
_ROUNDS = 400
_REAL_AT_MOST = 300
_PROMPT_WORDS = (6, 8, 10, 12, 15, 18, 24, 32, 48, 100)
_SPIN = """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100_000))
"""
_GLUE = ("why", "does", "the", "of", "and", "should", "we", "this", "in", "again", "with", "a", "it")


class Invented:
    """The notes of one size, each made from its number alone."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.every = max(100, count // _REAL_AT_MOST)
        words = [word for word in read_vocabulary(WEIGHTS / "vocab.txt") if word.isascii() and word.isalpha() and len(word) > 2]
        self._words = [word for word in words if word not in STOP_WORDS]  # the more frequent ones first, as it happens
        self._weights = list(itertools.accumulate(1 / (rank + 30) for rank in range(len(self._words))))
        chance = random.Random(5)
        self._entities = ["".join(word.title() for word in chance.sample(self._words[300:6000], 2)) for _ in range(60 * _PROJECTS)]

    def note(self, number: int) -> Note:
        chance = random.Random(number)
        place = number % _PROJECTS
        project = f"project-{place}"
        entities = tuple(chance.sample(self._entities[60 * place : 60 * place + 60], 2))
        words = self._drawn(chance, chance.randint(40, 80))
        words[7], words[23], words[31] = *entities, f"src/{words[2]}/{words[3]}.py"
        body = " ".join(words).capitalize() + "."
        return Note(
            id=f"invented-{number}",
            path=f"projects/{project}/invented-{number}.md",
            kind=_KINDS[number % len(_KINDS)],
            title=" ".join(self._drawn(chance, 7)).capitalize(),
            body=body,
            created=_START + timedelta(days=number % 100),
            updated=_START + timedelta(days=number % 100),
            entities=entities,
            project=project,
        )

    def conversation(self, number: int) -> ReadResult:
        chance = random.Random(number)
        project = _HOOKS_PROJECT if number % 4 == 0 else f"project-{number % _PROJECTS}"
        began = _START + timedelta(hours=number % 2_400)
        session = Session(id=f"{number:08x}-ca4d-4000-8000-000000000000", provider="claude-code", started=began, project=project)
        path = f"/invented/{session.id}.jsonl"
        events = tuple(
            Event(
                id=f"{place:04x}{session.id}",
                session=session.id,
                provider=session.provider,
                ordinal=place,
                at=began + timedelta(minutes=place),
                role="assistant" if place % 2 else "user",
                type=EventType.ASSISTANT_MESSAGE if place % 2 else EventType.USER_MESSAGE,
                text=" ".join(self._drawn(chance, 60 if place % 2 else 25)).capitalize() + ".",
                where=Where(file=path, start=place, end=place + 1),
            )
            for place in range(2 * _TURNS)
        )
        cursor = Cursor(position=1, size=1, mtime_ns=1)
        return ReadResult(path=path, session=session, events=events, problems=(), cursor=cursor)

    def meant(self) -> Iterator[Note]:
        """Those that have real vectors and are asked for."""
        return map(self.note, range(0, self.count, self.every))

    def prompts(self) -> list[str]:
        chance = random.Random(11)
        meant = list(itertools.islice(self.meant(), _ROUNDS))
        return [self._prompt(chance, meant[turn % len(meant)] if turn % 2 else None) for turn in range(_ROUNDS)]

    def _prompt(self, chance: random.Random, meant: Note | None) -> str:
        length = chance.choice(_PROMPT_WORDS)
        said = f"{meant.title} {meant.body}".split() if meant else self._drawn(chance, length)
        return " ".join(chance.choice(_GLUE) if place % 3 == 1 else word for place, word in enumerate(said[:length]))

    def _drawn(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self._words, cum_weights=self._weights, k=count)


class Dice:
    """The local space, with documents thrown instead of embedded, but for those ``meant``."""

    def __init__(self, meant: Iterator[Note]) -> None:
        self._local = LocalEmbedder()
        self._random = np.random.default_rng(7)
        self._meant = {text for note in meant for text in passages(note)}

    @property
    def space(self) -> Space:
        return self._local.space

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        vectors = self._random.standard_normal((len(texts), self.space.dim)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        for row, text in enumerate(texts):
            if purpose == "query" or text in self._meant:
                vectors[row] = self._local.embed([text], purpose)[0]
        return vectors


def line(name: str, value: str) -> None:
    print(f"  {name:44} {value}", flush=True)


def timed(name: str, run: Callable[[str], object], texts: Sequence[str]) -> None:
    """``CPU`` is what one call costs this process, whatever else the machine does."""
    for text in texts[:5]:
        run(text)
    took, worked = [], []
    for text in texts:
        start, start_worked = time.perf_counter(), time.process_time()
        run(text)
        worked.append(1000 * (time.process_time() - start_worked))
        took.append(1000 * (time.perf_counter() - start))
    took.sort()
    worked.sort()
    (p50, p99), (cpu50, cpu99) = ([percentile(each, share) for share in (0.5, 0.99)] for each in (took, worked))
    line(name, f"p50 {p50:6.1f}   p99 {p99:6.1f}   max {took[-1]:6.1f} ms    CPU p50 {cpu50:6.1f}   p99 {cpu99:6.1f} ms")


def line_of_memory(name: str) -> None:
    path = Path("/proc/self/smaps_rollup")
    if path.exists():
        fields = dict(line.split(":", 1) for line in path.read_text().splitlines()[1:])
        whole, private = (int(fields[field].split()[0]) / 1024 for field in ("Rss", "Anonymous"))
        line(f"memory {name}", f"{whole:6.0f} MB resident, of which {private:.0f} MB are not pages of files")


def bytes_written() -> int:
    path = Path("/proc/self/io")
    return int(path.read_text().split("wchar:")[1].split()[0]) if path.exists() else 0


@contextmanager
def busy(cores: int) -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(cores)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def vault_in(home: Path) -> Vault:
    return Vault(home / "memory", home / "state" / "vault.sqlite")


def recall_in(home: Path, embedder: Dice | LocalEmbedder) -> Recall:
    index = home / "state" / "index"
    return Recall(index=Index(index, embedder=embedder), memory=SessionMemory(index / "shown.sqlite"))


def fill(home: Path, count: int, vectors: Choice) -> None:
    invented = Invented(count)
    home.joinpath("state").mkdir(parents=True)
    with vault_in(home) as vault:
        vault.ensure(Path(asset_folder("vault_template")))
        size = 0
        for note in map(invented.note, range(count)):
            path = vault.root / note.path
            path.parent.mkdir(parents=True, exist_ok=True)
            size += path.write_text(render(note), encoding="utf-8")
            os.utime(path, (note.created.timestamp(),) * 2)
        line("text of the notes", f"{size / 1e6:6.1f} MB")
        embedder = LocalEmbedder() if vectors == "real" else Dice(invented.meant())
        recall = recall_in(home, embedder)
        start = time.perf_counter()
        recall.refresh(vault.notes)
        line(f"first refresh, vectors {vectors}", f"{time.perf_counter() - start:6.1f} s")
        recall.close()
    written = sum(path.stat().st_size for path in (home / "state" / "index").rglob("*") if path.is_file())
    line("index on disk", f"{written / 1e6:6.1f} MB")


def ask(home: Path, count: int, cores: int) -> None:
    prompts = Invented(count).prompts()
    project = "project-3"
    line_of_memory("before")
    recall = recall_in(home, LocalEmbedder())
    start = time.perf_counter()
    recall.answer(Prompt(text=prompts[0]), remember=False)
    line("first answer after a start", f"{1000 * (time.perf_counter() - start):6.1f} ms")
    line_of_memory("after one answer")
    sessions = itertools.count()

    def answer(text: str, project: str) -> bool:
        return bool(recall.answer(Prompt(text=text, session=f"{next(sessions)}", project=project, head=text[:80])).hits)

    spoke = sum(answer(text, "") for text in prompts)
    line("prompts that are given something", f"{spoke / len(prompts):6.0%}")
    for name, others in (("nothing else running", 0), (f"{cores} busy cores", cores)):
        with busy(others):
            timed(f"answer, {name}", lambda text: answer(text, ""), prompts)
            timed("  of one project", lambda text: answer(text, project), prompts)
            timed(f"search, {name}", lambda text: recall.search(Query(text=text)), prompts)
            timed("  of one project", lambda text: recall.search(Query(text=text, project=project)), prompts)
            timed("  within one project", lambda text: recall.search(Query(text=text, within=project)), prompts)
    timed("search with typing errors", lambda _: recall.search(Query(text="migratoin certifcate", mode="keyword")), prompts[:40])
    timed("answer to a 1 MB paste", lambda text: answer(text + " lorem ipsum" * 90_000, ""), prompts[:40])
    line_of_memory("after all of that")
    recall.close()


def talk(home: Path, count: int, cards: int) -> None:
    """Make the cards, and ask them alone and with the notes."""
    invented, dice = Invented(count), Dice(iter(()))
    local = LocalEmbedder()
    meaning = ConversationEmbedder(
        space=local.space.tag,
        of_texts=lambda texts: dice.embed(texts, "document"),
        of_question=meaning_of(local).of_question,
    )
    with (
        closing(Timeline(home / "state" / "timeline.sqlite")) as timeline,
        closing(Outbox(home / "state" / "outbox.sqlite")) as outbox,
    ):
        start = time.perf_counter()
        for look in map(invented.conversation, range(cards // _TURNS)):
            timeline.commit([RedactedResult(look)], "claude-code")
            last = look.events[-1]
            outbox.formed.skip(last.provider, last.session, last.ordinal, event=last.id)  # or the daemon would make notes of them
        while timeline.cards.rebuild():
            pass
        while timeline.vectors.embed(meaning):
            pass
        line(f"{cards:,} cards, from conversations to vectors", f"{time.perf_counter() - start:6.1f} s")
        with closing(timeline_file(home)) as database:
            ((made,),) = database.execute("SELECT COUNT(*) FROM cards").fetchall()
            of_cards = "SELECT SUM(pgsize) FROM dbstat WHERE name LIKE '%card%' OR name LIKE '%bundles%'"
            ((written,),) = database.execute(of_cards).fetchall()
        line(f"{made:,} cards on disk, words and vectors", f"{written / 1e6:6.1f} MB")
        prompts = invented.prompts()

        def of_project(text: str) -> None:
            timeline.cards.find(CardQuery(text=text, within=_HOOKS_PROJECT), meaning)

        timed("cards of one project", of_project, prompts)
        timed("cards of all projects", lambda text: timeline.cards.find(CardQuery(text=text), meaning), prompts)
        index = home / "state" / "index"
        recall = Recall(
            index=Index(index, embedder=local),
            memory=SessionMemory(index / "shown.sqlite"),
            cards=TimelineConversations(cards=timeline.cards, meaning=meaning),
        )
        sessions = itertools.count()

        def answer(text: str, session: str) -> None:
            recall.answer(Prompt(text=text, session=session, project=_HOOKS_PROJECT, head=text[:80]))

        timed("answer from notes and cards, first prompt", lambda text: answer(text, f"first-{next(sessions)}"), prompts)
        timed("  later in a session", lambda text: answer(text, "long"), prompts)
        line_of_memory("after all of that")
        recall.close()


def timeline_file(home: Path) -> sqlite3.Connection:
    return sqlite3.connect(home / "state" / "timeline.sqlite")


def add(home: Path, count: int) -> None:
    """One note more, until it is found by words and meaning; vectors are real here."""
    invented = Invented(count + 100)
    with vault_in(home) as vault:
        recall = recall_in(home, LocalEmbedder())
        recall.answer(Prompt(text="which worker holds the lock of the queue?"), remember=False)
        numbers = itertools.count(count)
        written = []

        def add_one(_: str) -> None:
            note = invented.note(next(numbers))
            path = vault.root / note.path
            path.write_text(render(note), encoding="utf-8")
            before = bytes_written()
            recall.refresh(vault.notes, hint={note.path})
            written.append(bytes_written() - before)

        timed("one note more, until it is found", add_one, ["one"] * 40)
        written.sort()
        line("  bytes written for it", f"p50 {written[20]:,}   most {written[-1]:,}")
        timed("refresh that finds nothing new", lambda _: recall.refresh(vault.notes), ["one"] * 3)
        line_of_memory("after that")
        recall.close()


def hook(home: Path, rounds: int) -> None:
    """The daemon as it is installed, over this vault; the note it gives is written through it."""
    project = Path(__file__).resolve().parents[2]
    environment = {
        **{"PATH": os.environ["PATH"], "HOME": str(home), "KMEM_HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "claude")},
        **{"KMEM_EXTRACTOR": "offline", "KMEM_EMBEDDER": "local", "PYTHONPATH": str(project)},
    }

    def kmem(*arguments: str) -> str:
        command = [sys.executable, "-m", "kite_memory", *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    kmem("up", "--no-hooks")
    try:
        daemon = psutil.Process(json.loads(kmem("status", "--json"))["daemon"]["pid"])
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < 3.0:  # it compares the vault first
            if daemon.cpu_percent(0.5) > 10:
                quiet_since = time.monotonic()
        kmem("remember", "We chose PostgreSQL over SQLite for the job queue: its workers write at the same time.", "--global")
        start = time.perf_counter()
        kmem("remember", "The deploy of the gateway waits for the probe, or the first requests fail.", "--global")
        line("kmem remember, whole process", f"{1000 * (time.perf_counter() - start):6.1f} ms")
        line("daemon, after its first comparison", f"{daemon.memory_info().rss / 2**20:6.0f} MB resident")
        prompt = "which database did we choose for the job queue, PostgreSQL or SQLite, and why?"
        bare = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else "python3"
        chosen = {name: each for name, each in contenders(bare, real_interpreter(), prompt).items() if "console" not in name}
        print("\n".join(f"  {row}" for row in table(measure(rounds, chosen, environment))), flush=True)
        line("daemon, after that", f"{daemon.memory_info().rss / 2**20:6.0f} MB resident")
    finally:
        kmem("down")


def size(count: int, arguments: argparse.Namespace) -> None:
    print(f"\n{count:,} notes", flush=True)
    with tempfile.TemporaryDirectory(prefix="kmem-scale-") as temporary:
        home = arguments.keep / str(count) if arguments.keep else Path(temporary)
        if not (home / "state").exists():
            apart(fill, home, count, arguments.vectors)
        apart(ask, home, count, arguments.busy)
        apart(add, home, count)
        if arguments.cards and not (home / "state" / "timeline.sqlite").exists():
            apart(talk, home, count, arguments.cards)
        if arguments.hooks:
            apart(hook, home, arguments.hooks)


def apart(step: Callable[..., None], *arguments: object) -> None:
    """In a process of its own, so that what one step leaves in memory is not counted for the next."""
    process = multiprocessing.get_context("spawn").Process(target=step, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"error: {step.__name__} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--cards", type=int, default=40_000)
    parser.add_argument("--vectors", choices=("random", "real"), default="random")
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 2, help="processes that keep a core busy each")
    parser.add_argument("--hooks", type=int, default=200, help="how often the hook is started, for each way of starting it")
    parser.add_argument("--keep", type=Path, help="keep the vaults in this folder, and use those that are there")
    arguments = parser.parse_args()
    for count in arguments.notes:
        size(count, arguments)


if __name__ == "__main__":
    main()
