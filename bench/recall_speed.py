"""How long a search and an answer take inside the process, how long one more note takes, and what it all weighs in memory.

    python -m bench.recall_speed [--notes 1000 10000 100000]

The notes are invented, word by word, with words as frequent as in prose; their vectors are random, since making
100,000 real ones takes a quarter of an hour and a dot product does not care. Queries are embedded for real.
Each size runs in a process of its own.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import multiprocessing
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from kite_memory.model.note import Entry, Note, NoteKind
from kite_memory.recall.answer import Prompt
from kite_memory.recall.embedder import Purpose, Space, Vectors
from kite_memory.recall.index import Index
from kite_memory.recall.local import LocalEmbedder
from kite_memory.recall.recall import Recall
from kite_memory.recall.search import Query
from kite_memory.recall.session_memory import SessionMemory

_START = datetime(2026, 1, 1, tzinfo=UTC)
_ROUNDS = 200
_NAMES = """
queue worker migration index cache token session login invoice webhook schedule backup deploy rollback schema upload parser socket
timeout retry lock thread memory leak header cookie certificate domain container image pipeline runner test fixture
"""
_SUBJECTS = _NAMES.split()


class Dice:
    """The local space, with documents thrown instead of embedded."""

    def __init__(self) -> None:
        self._local = LocalEmbedder()
        self._random = np.random.default_rng(7)

    @property
    def space(self) -> Space:
        return self._local.space

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if purpose == "query" or len(texts) == 1:
            return self._local.embed(texts, purpose)
        vectors = self._random.standard_normal((len(texts), self.space.dim)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


class Invented:
    """A vault of notes that are made up as they are read."""

    def __init__(self, count: int) -> None:
        self._count = count
        letters = random.Random(3)
        syllables = ["".join(pair) for pair in zip("bdfgklmnprst" * 5, "aeiou" * 12, strict=True)]
        made = {"".join(letters.choices(syllables, k=letters.randint(2, 4))) for _ in range(20_000)}
        ranked = sorted(made)
        self._words = [*ranked[:200], *_SUBJECTS, *ranked[200:]]
        self._weights = list(np.cumsum([1 / (rank + 10) for rank in range(len(self._words))]))
        self.more: dict[str, Note] = {}

    def entries(self) -> Iterator[Entry]:
        for number in range(self._count):
            yield Entry(path=f"facts/{number}.md", size=400, mtime_ns=1)
        for path in self.more:
            yield Entry(path=path, size=1, mtime_ns=1)

    def read(self, path: str) -> Note | None:
        if path in self.more:
            return self.more[path]
        number = int(path.removeprefix("facts/").removesuffix(".md"))
        chance = random.Random(number)
        body = " ".join(chance.choices(self._words, cum_weights=self._weights, k=45))
        title = " ".join(chance.choices(self._words, cum_weights=self._weights, k=6))
        return note(path, title, body, project=f"project-{number % 20}", age=number % 100)


def note(path: str, title: str, body: str, *, project: str = "", age: int = 0) -> Note:
    at = _START + timedelta(days=age)
    return Note(id=path, path=path, kind=NoteKind.FACT, title=title, body=body, created=at, updated=at, project=project)


def prompts() -> list[str]:
    chance = random.Random(11)
    return [
        f"why does the {chance.choice(_SUBJECTS)} of the {chance.choice(_SUBJECTS)} fail after the {chance.choice(_SUBJECTS)}"
        f" {chance.choice(_SUBJECTS)}, and should we change the {chance.choice(_SUBJECTS)} first?"
        for _ in range(_ROUNDS)
    ]


def timed(name: str, run: Callable[[str], object], texts: Sequence[str]) -> None:
    for text in texts[:5]:
        run(text)
    times = []
    for text in texts:
        start = time.perf_counter()
        run(text)
        times.append(1000 * (time.perf_counter() - start))
    times.sort()
    p95 = times[len(times) * 95 // 100]
    print(f"  {name:34} p50 {statistics.median(times):7.1f} ms   p95 {p95:7.1f} ms   max {times[-1]:7.1f} ms")


def print_memory(name: str) -> None:
    path = Path("/proc/self/smaps_rollup")
    if not path.exists():
        return
    fields = dict(line.split(":", 1) for line in path.read_text().splitlines()[1:])
    whole, dirty = (int(fields[field].split()[0]) / 1024 for field in ("Rss", "Private_Dirty"))
    print(f"  {name:34} resident {whole:6.0f} MB   of that private {dirty:6.0f} MB")


def measure(count: int) -> None:
    print(f"\n{count:,} notes", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        # In a process of its own, so that what it leaves in memory is not counted as what answering needs.
        making = multiprocessing.get_context("spawn").Process(target=filled, args=(Path(temporary), count))
        making.start()
        making.join()
        opened(Path(temporary), Invented(count))


def recall_in(folder: Path) -> Recall:
    return Recall(index=Index(folder / "index", embedder=Dice()), memory=SessionMemory(folder / "sessions.db"))


def filled(folder: Path, count: int) -> None:
    recall = recall_in(folder)
    start = time.perf_counter()
    recall.refresh(Invented(count))
    print(f"  {'first refresh, without embedding':34} {time.perf_counter() - start:8.1f} s", flush=True)
    recall.close()


def opened(folder: Path, vault: Invented) -> None:
    print_memory("before")
    recall = recall_in(folder)
    start = time.perf_counter()
    recall.answer(Prompt(text="why does the queue worker fail after the migration?"))
    print(f"  {'first answer after a start':34} {1000 * (time.perf_counter() - start):8.1f} ms")
    print_memory("after one answer")
    texts = prompts()
    timed("answer", lambda text: recall.answer(Prompt(text=text, session="one", project="project-3", head=text[:80])), texts)
    timed("search, hybrid", lambda text: recall.search(Query(text=text, project="project-3")), texts)
    timed("search, keyword", lambda text: recall.search(Query(text=text, mode="keyword")), texts)
    timed("search, semantic", lambda text: recall.search(Query(text=text, mode="semantic")), texts)
    wrong = Query(text="migratoin certifcate", mode="keyword")
    timed("search, keyword, typing errors", lambda _: recall.search(wrong), texts[:40])
    timed("answer to a 1 MB paste", lambda text: recall.answer(Prompt(text=text + " lorem ipsum" * 90_000)), texts[:40])

    def remember(text: str) -> None:
        path = f"facts/more-{len(vault.more)}.md"
        vault.more[path] = note(path, text, text)
        recall.refresh(vault, hint=[path])
        recall.search(Query(text=text, limit=1))

    timed("one note more, until it is found", remember, texts[:40])
    start = time.perf_counter()
    recall.refresh(vault)
    print(f"  {'refresh that finds nothing new':34} {1000 * (time.perf_counter() - start):8.1f} ms")
    print_memory("after all of that")
    recall.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--notes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    arguments = parser.parse_args()
    for count in arguments.notes:
        if len(arguments.notes) == 1:
            measure(count)
        else:
            subprocess.run([sys.executable, "-m", "bench.recall_speed", "--notes", str(count)], check=True)


if __name__ == "__main__":
    main()
