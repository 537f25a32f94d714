"""From which score on a note of the team's is worth saying at a prompt, for both kinds of store.

    python -m bench.bridge.team_recall --gold DIR

DIR holds labelled projects, as for `bench.recall.recall_gold`. A store of the bridge (PostgreSQL with pgvector, and this machine's)
holds all notes of the other project, and of this one those of the sessions before; each prompt is then asked for through
`search_notes` as `kite_memory.team.search` asks, the unrelated ones last, when all notes are there. What would be said is shown by
two figures: a note's score, and by how much it stands out from the eighth best. They are chosen on one project and tested on the
other: of all pairs with at most 5 % false injection where nothing is needed and 2 % where nothing is related, the one that shows
most right notes less wrong ones, the stricter of equals. Prints tables; asserts nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bench.bridge.postgres import Anything, local_store
from bench.recall.recall_gold import Json, Labelled, labelled
from kite_memory.model.note import NoteKind, Scope
from kite_memory.recall.lexical import essence
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.select import bounded, why_needless
from kite_memory.redaction import drop_private, redact
from kite_memory.team.postgres import migrate, open_postgres
from kite_memory.team.search import COMPARED, MARGIN, standing_out
from kite_memory.tools import note_tools
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.store import OWNER, Asker, Grant, MemoryPlace, Store
from tests.fakes.postgres_server import postgres_server

FALSE, UNRELATED = 0.05, 0.02
GRID = tuple(product((each / 100 for each in range(40, 72, 2)), (each / 100 for each in range(0, 42, 2))))
COLLEAGUE = Asker(grant=Grant(name="colleague", write=False))

Bar = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A prompt, the notes that would help with it, and what the team's search found. ``need`` is the label's, or unrelated."""

    need: str
    relevant: frozenset[str]
    hits: Sequence[Mapping[str, Any]]
    took_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    right: int
    needed: int
    false: float
    unrelated: float
    useful: int
    shown: int

    @property
    def allowed(self) -> bool:
        return self.false <= FALSE and self.unrelated <= UNRELATED

    def __str__(self) -> str:
        kept = f"{self.useful / self.shown:.2f}" if self.shown else "-"
        return f"{self.right}/{self.needed} | {self.false:.1%} | {self.unrelated:.1%} | {self.useful}/{self.shown} = {kept}"


def outcome(rows: Sequence[Row], bar: Bar) -> Outcome:
    shown = [{str(hit["id"]) for hit in standing_out(row.hits, score=bar[0], margin=bar[1])} for row in rows]
    listed = list(zip(rows, shown, strict=True))
    needed = [(row, notes) for row, notes in listed if row.need in ("useful", "crucial")]
    none, unrelated = ([bool(notes) for row, notes in listed if row.need == need] for need in ("none", "unrelated"))
    return Outcome(
        right=sum(bool(notes & row.relevant) for row, notes in needed),
        needed=len(needed),
        false=sum(none) / max(1, len(none)),
        unrelated=sum(unrelated) / max(1, len(unrelated)),
        useful=sum(len(notes & row.relevant) for row, notes in listed),
        shown=sum(map(len, shown)),
    )


def chosen(rows: Sequence[Row]) -> Bar:
    found = {bar: outcome(rows, bar) for bar in GRID}
    return max((bar for bar in GRID if found[bar].allowed), key=lambda bar: (2 * found[bar].useful - found[bar].shown, bar))


def remembered(store: Store, row: Json, project: str) -> str:
    text = row["body"] + "".join(f"\n\n**Rejected:** {each}" for each in row["rejected"])
    place = MemoryPlace(scope=Scope.PROJECT, project=project)
    return store.remember(OWNER, text, NoteKind(row["kind"]), place, title=row["title"], origin="user").id


def asked(store: Store, project: Labelled, others: Sequence[Labelled]) -> Iterator[Row]:
    bridge = ToolDispatcher(note_tools.tools(store, LocalContext(), gate=Anything(), age=lambda text, now: None))
    ids = {remembered(store, row, other.name): row["id"] for other in others for row in other.rows("notes.jsonl")}

    def ask(row: Json, need: str) -> Row:
        relevant = frozenset(row.get("relevant", ()))
        if why_needless(bounded(drop_private(row["prompt"]))):
            return Row(need=need, relevant=relevant, hits=(), took_ms=0.0)
        query = essence(redact(drop_private(row["prompt"])))
        asked_for = {"query": query, "project": project.name, "limit": COMPARED}
        began = time.perf_counter()
        hits = bridge.perform("search_notes", asked_for, COLLEAGUE)["hits"]
        took = (time.perf_counter() - began) * 1000
        return Row(need=need, relevant=relevant, hits=[hit | {"id": ids[hit["id"]]} for hit in hits], took_ms=took)

    prompts, notes = defaultdict(list), defaultdict(list)
    for row in project.rows("prompts.jsonl"):
        prompts[row["session"]].append(row)
    for row in project.rows("notes.jsonl"):
        notes[row["session"]].append(row)
    for session, _ in project.sessions():
        yield from (ask(row, row["need"]) for row in prompts[session])
        ids |= {remembered(store, row, project.name): row["id"] for row in notes[session]}
    yield from (ask(row, "unrelated") for row in project.rows("unrelated.jsonl"))


@contextmanager
def stores() -> Iterator[Mapping[str, Callable[[], Store]]]:
    """By the kind's name, how to open an empty one."""
    embedder = LocalEmbedder()
    with postgres_server() as server, tempfile.TemporaryDirectory() as folder:

        def postgres() -> Store:
            url = server.database()
            migrate(url, spaces=[embedder.space])
            return open_postgres(url, embedder=embedder, tenant="team")

        def local() -> Store:
            return local_store(Path(tempfile.mkdtemp(dir=folder)), embedder)

        yield {"postgres": postgres, "local": local}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True)
    projects = labelled(parser.parse_args().gold)
    if len(projects) != 2:
        sys.exit("error: two labelled projects are needed, to choose on one and to test on the other")
    with stores() as kinds:
        for kind, opened in kinds.items():
            found: dict[str, list[Row]] = {}
            for project in projects:
                store = opened()
                found[project.name] = list(asked(store, project, [each for each in projects if each is not project]))
                store.close()
            took = [row.took_ms for rows in found.values() for row in rows if row.took_ms]
            print(f"\n{kind}: a search took {np.percentile(took, 50):.0f} ms at p50, {np.percentile(took, 95):.0f} ms at p95\n")
            print("| project | score | margin | shown a right one | false injection | unrelated | right of those shown |")
            print("|---|---|---|---|---|---|---|")
            for name, rows in found.items():
                for margin, score in product((0.0, MARGIN), (each / 100 for each in range(44, 72, 4))):
                    print(f"| {name} | {score:.2f} | {margin:.2f} | {outcome(rows, (score, margin))} |")
            for one, other in (projects, projects[::-1]):
                bar = chosen(found[one.name])
                tested = outcome(found[other.name], bar)
                print(f"\nchosen on {one.name}: {bar[0]:.2f} and {bar[1]:.2f}; tested on {other.name}: {tested}")


if __name__ == "__main__":
    main()
