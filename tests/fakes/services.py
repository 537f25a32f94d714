"""All parts joined as in `open_services`, with a small embedder and whatever extractor a test brings."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kite_memory.app.note_indexer import NoteIndexer
from kite_memory.app.pipeline import Pipeline
from kite_memory.distill.budget import Budget
from kite_memory.distill.condense import ChunkPolicy
from kite_memory.distill.extractor import Extractor
from kite_memory.distill.outbox import Outbox
from kite_memory.distill.scheduler import Idle, Scheduler
from kite_memory.paths import asset_folder
from kite_memory.recall.embedder import Embedder
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.sources import Source
from kite_memory.sources.claude_code.source import ClaudeCode
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from tests.fakes.hashing_embedder import HashingEmbedder

ROOMY = Budget(dollars=1e6, calls=10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeServices:
    source: Source
    timeline: Timeline
    outbox: Outbox
    vault: Vault
    recall: Recall
    indexer: NoteIndexer
    pipeline: Pipeline

    def run_until_idle(self) -> None:
        """Everything there is to read, ask and write, until nothing is left to do."""
        self.pipeline.ingest_many([(source, path) for source, path, _ in self.pipeline.unread()])
        self.pipeline.open_sessions()
        self.pipeline.form_chunks()
        while not isinstance(self.pipeline.distil(), Idle):
            pass


@contextmanager
def fake_services(
    home: Path,
    extractor: Extractor,
    *,
    policy: ChunkPolicy = ChunkPolicy(idle=0.0),  # noqa: B008 - frozen
    outbox_file: str = "outbox.sqlite",
    timeline_type: type[Timeline] = Timeline,
    clock: Callable[[], float] = time.time,
    embedder: Embedder | None = None,
    step: Callable[[str], None] = lambda doing: None,
    remembers: bool = False,
    source: Source | None = None,
) -> Iterator[FakeServices]:
    """Lives in ``home``: transcripts under ``claude``, ``state`` and ``vault`` beside it. Opening it again goes on where it was."""
    state = home / "state"
    timeline = timeline_type(state / "timeline.sqlite")
    outbox = Outbox(state / outbox_file)
    outbox.recover()
    vault = Vault(home / "vault", state / "vault.sqlite", step=step)
    vault.ensure(Path(asset_folder("vault_template")))
    recall = Recall(
        index=Index(state / "index", embedder=embedder or HashingEmbedder(dim=32)),
        memory=SessionMemory(state / "index" / "shown.sqlite"),
    )
    indexer = NoteIndexer(notes=vault.notes, events=timeline.events, recall=recall)
    source = source or ClaudeCode(home / "claude", own_state=state)
    pipeline = Pipeline(
        sources=(source,),
        timeline=timeline,
        outbox=outbox,
        scheduler=Scheduler(outbox=outbox, extractor=extractor, budget=ROOMY, clock=clock),
        vault=vault,
        recall=recall,
        indexer=indexer,
        policy=policy,
        clock=clock,
        remembers=remembers,
    )
    try:
        yield FakeServices(
            source=source, timeline=timeline, outbox=outbox, vault=vault, recall=recall, indexer=indexer, pipeline=pipeline
        )
    finally:
        recall.close()
        vault.close()
        outbox.close()
        timeline.close()
