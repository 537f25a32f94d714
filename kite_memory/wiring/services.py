"""All components of one machine's memory, opened and connected according to the configuration; its transcript sources."""

import logging
import os
import platform
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kite_memory.app.agent_hooks import HookHandler, Judging
from kite_memory.app.code_anchors import CodeAnchors
from kite_memory.app.consolidation import Consolidation, commit, use_of_notes, worked_on
from kite_memory.app.forgetting import Forgetting, NoteForgetting
from kite_memory.app.importer import Importer
from kite_memory.app.kept_answers import drop_answers
from kite_memory.app.note_indexer import NoteIndexer
from kite_memory.app.note_view import NoteView, known_project
from kite_memory.app.operations import (
    NoteChanges,
    OperationRegistry,
    PromptAnswers,
    bridge_operations,
)
from kite_memory.app.pipeline import Pipeline
from kite_memory.app.prompt_capture import PromptCapture
from kite_memory.app.question_answering import QuestionAnswering
from kite_memory.app.review import Review
from kite_memory.app.searching import Searching, TimelineConversations
from kite_memory.app.session_context import commands_run, conversation
from kite_memory.app.syncing import Machine, Syncing, purge
from kite_memory.app.trace import Tracer
from kite_memory.app.usage_report import ExtractorState, ShownNotes, StatusReport
from kite_memory.app.vault_pages import VaultPages
from kite_memory.config import Config
from kite_memory.daemon.protocol import absent
from kite_memory.distill.extractor import Extractor, NoKeyExtractor, Sharing
from kite_memory.distill.outbox import Outbox
from kite_memory.distill.scheduler import Idle, Scheduler, Steps
from kite_memory.keys import Keys, keys_beside
from kite_memory.model.event import Event, EvidenceReference
from kite_memory.model.hit import Judge
from kite_memory.model.note import Note
from kite_memory.paths import asset_folder
from kite_memory.protected import protect_process
from kite_memory.recall.embedder import Embedder
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.select import Requirement
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.sources import Source
from kite_memory.system import utc_now
from kite_memory.system.sqlite import seal
from kite_memory.text.display import age
from kite_memory.timeline.conversations import ConversationEmbedder
from kite_memory.timeline.store import Timeline
from kite_memory.tools.arguments import LocalContext
from kite_memory.tools.declarations import ToolDispatcher
from kite_memory.tools.local_conversations import LocalConversations
from kite_memory.tools.local_state import LocalState, heard, latest_projects, working
from kite_memory.tools.local_store import LocalStore
from kite_memory.tools.memory_tools import left_to_do
from kite_memory.tools.note_tools import all_tools
from kite_memory.vault import Vault
from kite_memory.vault.usefulness import NoteUse
from kite_memory.wiring import sources_of
from kite_memory.wiring.models import (
    answerer_of,
    batches_of,
    budget_of,
    chunk_policy,
    extractor_of,
    first_embedders,
    judge_of,
    meaning_of,
    polisher_of,
    saving_of,
    second_embedder,
    team_recall_of,
)

if TYPE_CHECKING:
    from kite_memory.distill.answering import Polisher

log = logging.getLogger("kite_memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All opened components. ``costs`` is whether asking the extractor costs money."""

    config: Config
    sources: tuple[Source, ...]
    timeline: Timeline
    outbox: Outbox
    vault: Vault
    recall: Recall
    indexer: NoteIndexer
    embedder: Embedder
    meaning: ConversationEmbedder
    extractor: Extractor
    costs: bool
    pipeline: Pipeline
    operations: OperationRegistry
    status: StatusReport
    bridge: ToolDispatcher
    hooks: HookHandler
    consolidating: Consolidation
    anchors: CodeAnchors
    saved: Callable[[EvidenceReference], Sequence[Event]]
    """Returns the events that a note of a saved conversation cites."""

    @property
    def has_a_vault(self) -> bool:
        """Whether there is a vault, or was one: only then is its absence reported."""
        return self.vault.root.is_dir() or bool(self.vault.known.all())

    def init_vault(self) -> None:
        """Make the vault if there never was one. Raises `VaultMissing` if there was, and `VaultReadOnly`."""
        self.vault.ensure(Path(asset_folder("vault_template")))


@contextmanager
def open_services(
    config: Config,
    *,
    running: Callable[[], dict[str, Any]] | None = None,
    idle: Callable[[], Idle] | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> Iterator[Services]:
    """Open and connect everything, and close it again. The ``clock`` is that of all that is written and forgotten.

    Several processes may do this at once; only the daemon and a backfill write events. A missing vault raises no error here, but in
    the operations that need it.
    """
    in_background = running is not None  # a thread of the daemon computes embeddings
    with ExitStack() as closing:
        stores = _open_stores(config, closing, clock)
        recalling = _open_recall(stores, closing)
        distilling = _open_distilling(stores, recalling)
        upkeep = _open_upkeep(stores, recalling, closing, in_background=in_background)
        distilling.pipeline.after_deletions(upkeep.store.tidy)
        tools = _open_tools(stores, recalling, distilling, upkeep)
        status = _status(stores, recalling, distilling, running or partial(absent, config.state), idle or _never_idle)
        yield Services(
            config=config,
            sources=distilling.pipeline.sources,
            timeline=stores.timeline,
            outbox=stores.outbox,
            vault=stores.vault,
            recall=recalling.recall,
            indexer=recalling.indexer,
            embedder=recalling.embedder,
            meaning=recalling.meaning,
            extractor=distilling.extractor,
            costs=distilling.costs,
            pipeline=distilling.pipeline,
            operations=_operations(stores, recalling, upkeep, tools, status, in_background=in_background),
            status=status,
            bridge=tools.bridge,
            hooks=_open_hooks(stores, recalling, upkeep, tools, closing, in_background=in_background),
            consolidating=upkeep.consolidating,
            saved=upkeep.store.evidence,
            anchors=CodeAnchors(
                vault=stores.vault, sessions=stores.timeline.sessions, refresh=recalling.indexer.refresh, clock=clock
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stores:
    """The stores that all other components use."""

    config: Config
    keys: Keys
    timeline: Timeline
    outbox: Outbox
    vault: Vault
    clock: Callable[[], datetime]

    def seconds(self) -> float:
        return self.clock().timestamp()

    def polisher(self) -> "Polisher | None":
        return polisher_of(self.config, self.keys, self.outbox)


def _open_stores(config: Config, closing: ExitStack, clock: Callable[[], datetime]) -> _Stores:
    protect_process(config.file)
    closing.callback(seal, config.state)  # runs last, when everything opened after it is closed
    timeline = Timeline(config.state / "timeline.sqlite")
    closing.callback(timeline.close)
    outbox = Outbox(config.state / "outbox.sqlite")
    closing.callback(outbox.close)
    vault = closing.enter_context(Vault(config.vault, config.state / "vault.sqlite", clock=clock))
    return _Stores(config=config, keys=keys_beside(config.file), timeline=timeline, outbox=outbox, vault=vault, clock=clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recalling:
    embedder: Embedder
    meaning: ConversationEmbedder
    judge: Judge | None
    recall: Recall
    indexer: NoteIndexer


def _open_recall(stores: _Stores, closing: ExitStack) -> _Recalling:
    config, timeline = stores.config, stores.timeline
    embedder, former = first_embedders(config)
    meaning = meaning_of(embedder)
    judge = judge_of(config, stores.keys, stores.outbox)
    recall = Recall(
        index=Index(config.state / "index", embedder=embedder, beside=second_embedder(config, stores.keys), former=former),
        memory=SessionMemory(config.state / "index" / "shown.sqlite"),
        requirement=Requirement(dial=config.recall.dial, threshold=config.recall.threshold, judged=judge is not None),
        notes_per_prompt=config.recall.notes_per_prompt,
        tokens_per_prompt=config.recall.tokens_per_prompt,
        fixes=timeline.fixes,
        commands=partial(commands_run, timeline),
        cards=TimelineConversations(cards=timeline.cards, meaning=meaning, timeline=timeline),
        clock=stores.clock,
    )
    closing.callback(recall.close)
    indexer = NoteIndexer(notes=stores.vault.notes, events=timeline.events, recall=recall)
    return _Recalling(embedder=embedder, meaning=meaning, judge=judge, recall=recall, indexer=indexer)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Distilling:
    extractor: Extractor
    costs: bool
    pipeline: Pipeline


def _open_distilling(stores: _Stores, recalling: _Recalling) -> _Distilling:
    config = stores.config
    extractor = extractor_of(config, stores.keys)
    costs = extractor.name != "offline"
    pipeline = Pipeline(
        sources=sources_of(config, projects=stores.timeline.sessions.folders),
        timeline=stores.timeline,
        outbox=stores.outbox,
        scheduler=_scheduler(stores, extractor),
        vault=stores.vault,
        recall=recalling.recall,
        indexer=recalling.indexer,
        policy=chunk_policy(config, costs=costs),
        remembers=isinstance(extractor, Sharing),
        clock=stores.seconds,
    )
    return _Distilling(extractor=extractor, costs=costs, pipeline=pipeline)


def _scheduler(stores: _Stores, extractor: Extractor) -> Steps:
    budget, batches = budget_of(stores.config), batches_of(stores.config, stores.keys)
    if batches is None:
        return Scheduler(outbox=stores.outbox, extractor=extractor, budget=budget, clock=stores.seconds)
    from kite_memory.distill.batches import BatchScheduler
    from kite_memory.distill.model_extractor import ModelExtractor

    if not isinstance(extractor, ModelExtractor):
        return Scheduler(outbox=stores.outbox, extractor=extractor, budget=budget, clock=stores.seconds)
    live = Scheduler(outbox=stores.outbox, extractor=extractor, budget=budget, batches=True, clock=stores.seconds)
    return BatchScheduler(
        live=live, outbox=stores.outbox, extractor=extractor, batches=batches, budget=budget, clock=stores.seconds
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Upkeep:
    pages: VaultPages
    forgetting: Forgetting
    store: LocalStore
    consolidating: Consolidation
    state: Path
    purge_sync: Callable[[], bool]

    def erase(self, forgetting: Forgetting) -> list[str]:
        """Delete all other copies of forgotten text, and return which databases may still hold it."""
        self.consolidating.erase_copies()
        kept = [] if drop_answers(self.state) else [f"{self.state / 'answers'} may still hold it: it cannot be deleted"]
        return [*forgetting.purge_files({"bridge.sqlite": self.store.purge, "sync.sqlite": self.purge_sync}), *kept]


def _open_upkeep(stores: _Stores, recalling: _Recalling, closing: ExitStack, *, in_background: bool) -> _Upkeep:
    config, timeline, vault = stores.config, stores.timeline, stores.vault
    recall, indexer = recalling.recall, recalling.indexer
    pages = VaultPages(vault=vault, clock=stores.clock, polisher=stores.polisher)
    forgetting = Forgetting(timeline=timeline, outbox=stores.outbox, vault=vault, recall=recall, indexer=indexer)
    store = _local_store(stores, recalling, forgetting, pages, in_background=in_background)
    closing.callback(store.close)
    consolidating = Consolidation(
        vault=vault,
        refresh=indexer.refresh,
        pages=pages,
        folder=config.state,
        clock=stores.clock,
        committed=partial(commit, config.vault, environment=os.environ) if config.vault_git else _not_committed,
        used=_uses(stores, recalling),
        worked_on=partial(worked_on, timeline),
        daily=config.vault_journal,
    )
    return _Upkeep(
        pages=pages,
        forgetting=forgetting,
        store=store,
        consolidating=consolidating,
        state=config.state,
        purge_sync=partial(purge, config.state, timeline, vault),
    )


def _uses(stores: _Stores, recalling: _Recalling) -> Callable[[], Callable[[Note], NoteUse]]:
    return partial(use_of_notes, stores.timeline.sessions, recalling.recall.memory)


def _local_store(
    stores: _Stores, recalling: _Recalling, forgetting: Forgetting, pages: VaultPages, *, in_background: bool
) -> LocalStore:
    state = stores.config.state

    def index_notes(paths: Collection[str], *, embed: bool = True) -> None:
        recalling.indexer.refresh(paths, embed=embed or not in_background)

    def forget_events(note: Note) -> None:
        forgetting.forget_events(forgetting.grounds([note]), blank=False)

    return LocalStore(
        vault=stores.vault,
        recall=recalling.recall,
        state=LocalState(state / "bridge.sqlite"),
        conversations=LocalConversations(vault=stores.vault, folder=state / "conversations", index_notes=index_notes),
        index_notes=index_notes,
        let_go=forget_events,
        forgotten=lambda note: _remarked(pages.remove_notes([note], wording=False)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tools:
    history: QuestionAnswering
    local: LocalContext
    bridge: ToolDispatcher


def _open_tools(stores: _Stores, recalling: _Recalling, distilling: _Distilling, upkeep: _Upkeep) -> _Tools:
    history = QuestionAnswering(
        timeline=stores.timeline,
        notes=stores.vault.notes,
        recall=recalling.recall,
        answerer=partial(answerer_of, stores.config, stores.keys, stores.outbox),
        polisher=stores.polisher,
        clock=stores.clock,
        meaning=recalling.meaning,
    )
    local = LocalContext(
        known_project=partial(known_project, stores.vault.known),
        timeline=history.timeline,
        resume=history.resume,
        passages=_searching(stores, recalling, NoteView(vault=stores.vault, clock=stores.clock)).search_passages,
        conversation=partial(conversation, stores.timeline),
        working=partial(working, stores.timeline),
        heard=partial(heard, stores.timeline),
        known_of=stores.timeline.provenance,
        latest_projects=partial(latest_projects, stores.timeline),
    )
    saving = saving_of(stores.config, distilling.extractor, stores.outbox)
    return _Tools(history=history, local=local, bridge=ToolDispatcher(all_tools(upkeep.store, local, saving=saving, age=age)))


def _searching(stores: _Stores, recalling: _Recalling, note_view: NoteView) -> Searching:
    return Searching(
        timeline=stores.timeline,
        known=stores.vault.known,
        recall=recalling.recall,
        meaning=recalling.meaning,
        note_view=note_view,
        clock=stores.clock,
    )


def _status(
    stores: _Stores,
    recalling: _Recalling,
    distilling: _Distilling,
    daemon: Callable[[], dict[str, Any]],
    idle: Callable[[], Idle],
) -> StatusReport:
    extractor = distilling.extractor
    return StatusReport(
        survey=distilling.pipeline.survey,
        open_count=distilling.pipeline.open_count,
        files=stores.timeline.files,
        outbox=stores.outbox,
        vault=stores.vault,
        index=recalling.recall.index,
        memory=recalling.recall.memory,
        extractor=ExtractorState(
            name=extractor.name,
            missing_key=extractor.missing_key if isinstance(extractor, NoKeyExtractor) else None,
            budget_dollars=stores.config.extractor.dollars_per_day if distilling.costs else 0.0,
            idle=idle,
        ),
        daemon=daemon,
        clock=stores.clock,
    )


def _operations(
    stores: _Stores, recalling: _Recalling, upkeep: _Upkeep, tools: _Tools, status: StatusReport, *, in_background: bool
) -> OperationRegistry:
    timeline, vault, clock = stores.timeline, stores.vault, stores.clock
    recall, indexer, store = recalling.recall, recalling.indexer, upkeep.store
    note_view = NoteView(vault=vault, clock=clock, conversation=partial(conversation, timeline))
    answers = PromptAnswers(timeline=timeline, recall=recall, note_view=note_view, clock=clock)
    shown = ShownNotes(
        timeline=timeline, known=vault.known, memory=recall.memory, note_view=note_view, saved=store.evidence, clock=clock
    )
    changes = NoteChanges(vault=vault, recall=recall, indexer=indexer, note_view=note_view, keep_memory=store.keep, clock=clock)
    forgetting = NoteForgetting(
        forgetting=upkeep.forgetting,
        timeline=timeline,
        vault=vault,
        note_view=note_view,
        pages=upkeep.pages,
        after_forgetting=store.forgot,
        erase=upkeep.erase,
        erase_transcripts=store.erase_transcripts,
        write_days_again=upkeep.consolidating.write_days_again,
        clock=clock,
    )
    review = Review(
        vault=vault,
        recall=recall,
        indexer=indexer,
        events=timeline.events,
        dividing=upkeep.consolidating,
        used=_uses(stores, recalling),
        clock=clock,
    )
    return OperationRegistry(
        _searching(stores, recalling, note_view).operations(),
        answers.operations(),
        shown.operations(),
        changes.operations(),
        forgetting.operations(),
        status.operations(),
        bridge_operations(tools.bridge),
        note_view.operations(),
        upkeep.pages.operations(),
        tools.history.operations(),
        Importer(vault=vault, indexer=indexer).operations(),
        review.operations(),
        upkeep.consolidating.operations(),
        _syncing(stores, recalling, upkeep, in_background=in_background).operations(),
    )


def _syncing(stores: _Stores, recalling: _Recalling, upkeep: _Upkeep, *, in_background: bool) -> Syncing:
    return Syncing(
        vault=stores.vault,
        timeline=stores.timeline,
        outbox=stores.outbox,
        memory=recalling.recall.memory,
        index_notes=partial(recalling.indexer.refresh, embed=not in_background),
        forgetting=upkeep.forgetting,
        erase=partial(upkeep.erase, upkeep.forgetting),
        machine=Machine(name=platform.node(), state=stores.config.state, environment=os.environ),
        clock=stores.clock,
    )


def _open_hooks(
    stores: _Stores, recalling: _Recalling, upkeep: _Upkeep, tools: _Tools, closing: ExitStack, *, in_background: bool
) -> HookHandler:
    capture = PromptCapture(
        vault=stores.vault,
        recall=recalling.recall,
        indexer=recalling.indexer,
        report=report_error,
        provenance=stores.timeline.provenance,
    )
    closing.callback(capture.close)
    hooks = HookHandler(
        recall=recalling.recall,
        timeline=stores.timeline,
        judging=Judging(judge=recalling.judge, mode=stores.config.judge) if recalling.judge is not None else None,
        report=report_error,
        left_to_do=partial(left_to_do, upkeep.store, tools.local),
        capture=capture.capture,
        clock=stores.clock,
        team=team_recall_of(stores.config, stores.keys) if in_background else None,
    )
    closing.callback(hooks.close)
    return hooks


def _not_committed(message: str) -> str:
    return ""


def _never_idle() -> Idle:
    return Idle(until=None, reason="")


def _remarked(remark: str) -> None:
    if remark:
        log.warning("%s", remark)


def report_error(error: BaseException) -> None:
    log.error("a request failed", exc_info=error)


def tracer_of(services: Services) -> Tracer:
    return Tracer(
        timeline=services.timeline,
        outbox=services.outbox,
        vault=services.vault,
        recall=services.recall,
        pipeline=services.pipeline,
        clock=utc_now,
    )
