"""How a vault ages: sessions read in the order of time, as if each had just ended, with the vault tidied between them.

    python -m bench.aging --transcripts DIR [--since 2025-12-01] [--after 2] [--out DIR] [--reuse DIR]

DIR holds transcripts of Claude Code, in any folders. The clock is the sessions' own: each is read when it had just ended, through
the real pipeline without a model, and the vault is tidied once on each day that passes. After the last, ``--after`` more months
pass in which nothing is said. A row is printed for each month: notes by status, what waits for review, entity pages, the lines of
`MEMORY.md`, disk, and the milliseconds of processor that the answer to a prompt took (median and worst of the twenty prompts last
typed). ``--out`` keeps the vault to be read by eye; ``--reuse`` takes timeline and records of an earlier ``--out``, so that nothing
is read and distilled again. Asserts nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import re
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kite_memory import assets
from kite_memory.app.consolidation import Consolidation, use_of_notes
from kite_memory.app.pipeline import Pipeline
from kite_memory.app.review import Review
from kite_memory.app.session_context import NoteIndexer
from kite_memory.app.vault_pages import VaultPages
from kite_memory.distill.batch_ledger import Budget
from kite_memory.distill.condense import FREE
from kite_memory.distill.extractor import Extractor
from kite_memory.distill.offline import OfflineExtractor
from kite_memory.distill.outbox import Outbox
from kite_memory.distill.scheduler import Idle, Scheduler
from kite_memory.model.event import EventType
from kite_memory.model.note import NoteKind, NoteStatus
from kite_memory.recall.index import Index
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.recall import Recall
from kite_memory.recall.select import Prompt
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.sources.claude_code.source import ClaudeCode
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from kite_memory.vault.memory_page import PAGE

_PROMPTS, _ASKED = 20, 12
_QUIET = 3_600.0
_DAY = 86_400.0
_TAIL = 200_000
_TIMESTAMP = re.compile(r'"timestamp":"(\d{4}-\d\d-\d\dT[\d:.]+Z)"')


@dataclass(slots=True)
class Clock:
    """Time as the sessions have it, moved from one to the next."""

    now: float = 0.0

    def seconds(self) -> float:
        return self.now

    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    timeline: Timeline
    outbox: Outbox
    vault: Vault
    recall: Recall
    pipeline: Pipeline
    consolidating: Consolidation
    pages: VaultPages
    reviewing: Review
    source: ClaudeCode
    clock: Clock


@dataclass(slots=True, kw_only=True)
class Row:
    month: str
    sessions: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    review: int = 0
    page_lines: int = 0
    megabytes: float = 0.0
    hook: Sequence[float] = ()
    steps: int = 0

    def __str__(self) -> str:
        notes = sum(self.statuses.values())
        entities = self.kinds[NoteKind.ENTITY]
        middle, worst = (statistics.median(self.hook), max(self.hook)) if self.hook else (0.0, 0.0)
        standing, archived = self.statuses[NoteStatus.ACCEPTED], self.statuses["archived"]
        replaced = self.statuses[NoteStatus.SUPERSEDED]
        return (
            f"{self.month:8} {self.sessions:8} {notes:6} {standing:8} {archived:8} {replaced:8} {self.review:6}"
            f" {entities:5} {100 * entities / max(1, notes):4.0f}% {self.page_lines:9} {self.megabytes:6.1f}"
            f" {middle:7.1f} {worst:7.1f} {self.steps:6}"
        )


HEADING = (
    f"{'month':8} {'sessions':>8} {'notes':>6} {'standing':>8} {'archived':>8} {'replaced':>8} {'review':>6}"
    f" {'pages':>5} {'':>5} {PAGE:>9} {'MB':>6} {'hook ms':>7} {'worst':>7} {'steps':>6}"
)


def opened(stack: ExitStack, folder: Path, roots: Path, clock: Clock) -> House:
    state = folder / "state"
    state.mkdir(parents=True, exist_ok=True)
    timeline = stack.enter_context(closing(Timeline(state / "timeline.sqlite")))
    outbox = stack.enter_context(closing(Outbox(state / "outbox.sqlite")))
    vault = stack.enter_context(Vault(folder / "vault", state / "vault.sqlite", clock=clock.moment))
    vault.ensure(assets.folder("vault_template"))
    embedder = LocalEmbedder()
    recall = stack.enter_context(
        closing(
            Recall(
                index=Index(state / "index", embedder=embedder),
                memory=SessionMemory(state / "index" / "shown.sqlite"),
                clock=clock.moment,
                fixes=timeline,
            )
        )
    )
    indexer = NoteIndexer(vault=vault, timeline=timeline, recall=recall)
    extractor: Extractor = OfflineExtractor()
    source = ClaudeCode(roots, own_state=state)
    pipeline = Pipeline(
        sources=[source],
        timeline=timeline,
        outbox=outbox,
        scheduler=Scheduler(outbox=outbox, extractor=extractor, budget=Budget(dollars=0.0, calls=10**9), clock=clock.seconds),
        vault=vault,
        recall=recall,
        indexer=indexer,
        policy=FREE,
        clock=clock.seconds,
    )
    pages = VaultPages(vault=vault, clock=clock.moment)
    consolidating = Consolidation(
        vault=vault,
        refresh=indexer.refresh,
        pages=pages,
        folder=state,
        clock=clock.moment,
        used=lambda: use_of_notes(timeline, recall.memory),
    )
    reviewing = Review(vault=vault, recall=recall, indexer=indexer, timeline=timeline, dividing=consolidating, clock=clock.moment)
    return House(
        timeline=timeline,
        outbox=outbox,
        vault=vault,
        recall=recall,
        pipeline=pipeline,
        consolidating=consolidating,
        pages=pages,
        reviewing=reviewing,
        source=source,
        clock=clock,
    )


def lives(folder: Path) -> list[tuple[float, Path]]:
    """When each transcript ends, in order; one that has no times is left out."""
    found: list[tuple[float, Path]] = []
    for path in sorted(folder.rglob("*.jsonl")):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            times = _TIMESTAMP.findall(file.read().decode("utf-8", "replace"))
        if times:
            found.append((datetime.fromisoformat(max(times)).timestamp(), path))
    return sorted(found)


def distil(house: House) -> None:
    """What is worth keeping of a session that has just ended."""
    house.pipeline.form_chunks()
    house.clock.now += _QUIET
    house.pipeline.form_chunks()
    while not isinstance(house.pipeline.distil(), Idle):
        pass


def asked(house: House, session: str) -> None:
    """Its prompts as the hook would answer them: what is shown stays longer."""
    if (state := house.timeline.session_state(house.source.provider, session)) is None:
        return
    typed = [event for event in house.timeline.events(house.source.provider, session) if event.type is EventType.USER_MESSAGE]
    for event in typed[:_ASKED]:
        prompt = Prompt(text=event.text[:2_000], session=session, project=state.session.project)
        house.recall.answer(prompt)


def held_back(state: Path) -> dict[str, list[str]]:
    """The chunks of each session that wait to be distilled again."""
    found: dict[str, list[str]] = {}
    with closing(sqlite3.connect(state / "outbox.sqlite")) as database, database:
        for session, chunk in database.execute("SELECT session, id FROM chunks WHERE state = 'written' ORDER BY seq"):
            found.setdefault(session, []).append(chunk)
        database.execute("UPDATE chunks SET state = 'nothing' WHERE state = 'written'")
    return found


def again(state: Path, chunks: Sequence[str]) -> None:
    with closing(sqlite3.connect(state / "outbox.sqlite", timeout=30)) as database, database:
        database.executemany("UPDATE chunks SET state = 'waiting' WHERE id = ?", [(chunk,) for chunk in chunks])


def tidied(house: House, until: float, row: Row) -> None:
    """Once on each day up to ``until``."""
    while house.clock.now + _DAY <= until:
        house.clock.now += _DAY
        row.steps += house.consolidating.maintain(quiet_for=_QUIET)
    house.clock.now = max(house.clock.now, until)


def prompts(house: House) -> list[tuple[str, str]]:
    """The last ones that were typed, each with its project."""
    states = sorted(house.timeline.session_states(), key=lambda state: -state.quiet_since)
    found: list[tuple[str, str]] = []
    for state in states:
        for event in reversed(house.timeline.events(state.session.provider, state.session.id)):
            if event.type is EventType.USER_MESSAGE and event.text.strip():
                found.append((event.text[:2_000], state.session.project))
            if len(found) == _PROMPTS:
                return found
    return found


def measured(house: House, row: Row, folder: Path) -> Row:
    house.reviewing.keep_page()
    for entry in house.vault.entries():
        if (note := house.vault.read(entry.path)) is not None:
            row.statuses[note.status.value] += 1
            row.kinds[note.kind.value] += 1
    row.review = house.reviewing.review(limit=1)["waiting"]
    row.page_lines = sum(line.lstrip().startswith("- ") for line in house.vault.pages.read(PAGE).splitlines())
    row.megabytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    took: list[float] = []
    for place, (text, project) in enumerate(prompts(house)):
        began = time.process_time()
        house.recall.weigh(Prompt(text=text, session=f"aging-{place}", project=project))
        took.append(1000 * (time.process_time() - began))
    row.hook = took
    return row


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transcripts", type=Path, required=True)
    parser.add_argument("--since", default="2025-12-01")
    parser.add_argument("--after", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--reuse", type=Path)
    given = parser.parse_args(arguments)
    since = datetime.fromisoformat(given.since).replace(tzinfo=UTC).timestamp()
    sessions = [(ended, path) for ended, path in lives(given.transcripts) if ended >= since]
    if not sessions:
        sys.exit("error: no transcripts there")
    with ExitStack() as stack:
        folder = given.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kmem-bench-")))
        state = folder / "state"
        state.mkdir(parents=True, exist_ok=True)
        records: dict[str, list[str]] | None = None
        if given.reuse is not None:
            for name in ("timeline.sqlite", "outbox.sqlite"):
                shutil.copy(given.reuse / "state" / name, state / name)
            records = held_back(state)
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kmem-bench-")))  # a source stays inside its own root
        house = opened(stack, folder, root, Clock(now=sessions[0][0]))
        print(HEADING)
        row = Row(month=f"{house.clock.moment():%Y-%m}")
        for ended, path in sessions:
            if (month := f"{datetime.fromtimestamp(ended, UTC):%Y-%m}") != row.month:
                print(measured(house, row, folder), flush=True)
                row = Row(month=month, sessions=row.sessions)
            tidied(house, ended, row)
            house.clock.now = max(house.clock.now, ended + 60)
            if records is None:
                copied = root / "projects" / path.relative_to(given.transcripts)
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copied)
                house.pipeline.ingest(house.source, copied)
                asked(house, path.stem)
                distil(house)
            else:
                asked(house, path.stem)
                again(state, records.pop(path.stem, []))
                distil(house)
            row.sessions += 1
        print(measured(house, row, folder), flush=True)
        for _ in range(given.after):
            tidied(house, house.clock.now + 30 * _DAY, row := Row(month=f"{house.clock.moment():%Y-%m}+", sessions=row.sessions))
            print(measured(house, row, folder), flush=True)


if __name__ == "__main__":
    main()
