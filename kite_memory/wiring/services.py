"""All components of one machine's memory, opened and connected according to the configuration; its transcript sources."""

import logging
import os
import platform
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextlib import closing as closed
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kite_memory import assets
from kite_memory.app.agent_hooks import HookHandler
from kite_memory.app.code_anchors import CodeAnchors
from kite_memory.app.consolidation import Consolidation, commit, use_of_notes, worked_on
from kite_memory.app.forgetting import Forgetting
from kite_memory.app.importer import Importer
from kite_memory.app.note_view import NoteView
from kite_memory.app.operations import Operations
from kite_memory.app.pipeline import Pipeline
from kite_memory.app.prompt_capture import PromptCapture
from kite_memory.app.question_answering import QuestionAnswering
from kite_memory.app.review import Review
from kite_memory.app.searching import ConversationVoices, Searching, known_project
from kite_memory.app.session_context import NoteIndexer, commands_run, conversation
from kite_memory.app.syncing import Syncing
from kite_memory.app.trace import Tracer
from kite_memory.app.vault_pages import VaultPages
from kite_memory.config import Config
from kite_memory.daemon.protocol import holder
from kite_memory.distill.batch_ledger import Budget
from kite_memory.distill.extractor import Extractor, Keyless, Sharing, load_prompt
from kite_memory.distill.outbox import Outbox
from kite_memory.distill.scheduler import Allowance, Idle, Scheduler, Steps
from kite_memory.extensions import installed
from kite_memory.keys import Keys, keys_beside
from kite_memory.model.event import Event, EvidenceReference
from kite_memory.model.hit import Judge
from kite_memory.model.note import Note
from kite_memory.projects import project_of
from kite_memory.protected import protected_literals
from kite_memory.recall.embedder import Embedder
from kite_memory.recall.index import Index
from kite_memory.recall.lexical import essence
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.redaction.literals import protect
from kite_memory.sources.aider.source import HISTORY, Aider
from kite_memory.sources.antigravity import Antigravity
from kite_memory.sources.claude_code.source import ClaudeCode
from kite_memory.sources.cline.source import Cline, RooCode
from kite_memory.sources.codex.source import Codex
from kite_memory.sources.common.source import Source
from kite_memory.sources.copilot_cli import CopilotCli
from kite_memory.sources.cursor.source import CursorApp
from kite_memory.sources.droid import Droid
from kite_memory.sources.gemini_cli.source import Gemini
from kite_memory.sources.git_history import GitLog
from kite_memory.sources.goose import Goose
from kite_memory.sources.opencode.source import Kilo, OpenCode
from kite_memory.sources.pi import Pi
from kite_memory.sources.qwen_code import QwenCode
from kite_memory.system.sqlite import seal
from kite_memory.text.ages import age
from kite_memory.timeline.conversations import Meaning
from kite_memory.timeline.store import Timeline
from kite_memory.tools.asking import tools_of
from kite_memory.tools.declarations import Bridge
from kite_memory.tools.local_context import LocalContext
from kite_memory.tools.local_conversations import LocalConversations
from kite_memory.tools.local_state import LocalState, heard, working
from kite_memory.tools.local_store import LocalStore
from kite_memory.tools.resuming import left_to_do
from kite_memory.vault import Vault
from kite_memory.wiring.models import (
    answerer_of,
    backend_of,
    batches_of,
    budget_of,
    chunk_policy,
    extractor_of,
    first_embedders,
    judge_of,
    polisher_of,
    prompt_folders,
    saving_of,
    second_embedder,
    team_recall_of,
)

if TYPE_CHECKING:
    from kite_memory.app.trace import Requests

PROVIDERS = (
    "claude-code", "codex", "gemini-cli", "copilot-cli", "cline", "roo-code", "aider", "opencode", "cursor", "antigravity", "git",
    "kilo-code", "pi", "qwen-code", "goose", "droid",
)  # fmt: skip
"""What an extension may not call its agent: the providers of our own sources, configured or not."""


def sources_of(config: Config, *, projects: Callable[[], Iterable[str]] = tuple) -> tuple[Source, ...]:
    """Return the source of every agent that has a root in the configuration, then those of extensions.

    ``projects`` returns the folders that agents are known to have worked in.
    """
    found: tuple[Source | None, ...] = (
        ClaudeCode(config.claude_root, own_state=config.state),
        Codex(config.codex_root, own_state=config.state) if config.codex_root else None,
        Gemini(config.gemini_root, own_state=config.state) if config.gemini_root else None,
        CopilotCli(config.copilot_root, own_state=config.state) if config.copilot_root else None,
        Cline(config.cline_roots, own_state=config.state) if config.cline_roots else None,
        RooCode(config.roo_roots, own_state=config.state) if config.roo_roots else None,
        _aider(config, projects),
        OpenCode(config.opencode_root) if config.opencode_root else None,
        CursorApp(config.cursor_root, config.cursor_cli_root) if config.cursor_root and config.cursor_cli_root else None,
        Antigravity(config.antigravity_root) if config.antigravity_root else None,
        Kilo(config.kilo_root) if config.kilo_root else None,
        Pi(config.pi_root, own_state=config.state) if config.pi_root else None,
        QwenCode(config.qwen_root, own_state=config.state) if config.qwen_root else None,
        Goose(config.goose_roots, own_state=config.state) if config.goose_roots else None,
        Droid(config.droid_root, own_state=config.state) if config.droid_root else None,
        GitLog(projects, environment=os.environ, home=Path.home()) if config.git_history else None,
    )
    ours = tuple(source for source in found if source is not None)
    if not config.extensions:
        return ours
    return (*ours, *installed.sources(Path.home(), own_state=config.state, taken=PROVIDERS))


def _aider(config: Config, projects: Callable[[], Iterable[str]]) -> Aider | None:
    if config.aider_roots is None:
        return None
    history = config.aider_history or HISTORY
    return Aider(projects, always=config.aider_roots, own=config.own_histories, own_state=config.state, history=history)


log = logging.getLogger("kite_memory")


def _now() -> datetime:
    return datetime.now(UTC)


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
    meaning: Meaning
    extractor: Extractor
    costs: bool
    pipeline: Pipeline
    operations: Operations
    bridge: Bridge
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
        self.vault.ensure(assets.folder("vault_template"))


@contextmanager
def open_services(
    config: Config,
    *,
    running: Callable[[], dict[str, Any]] | None = None,
    idle: Callable[[], Idle] | None = None,
    clock: Callable[[], datetime] = _now,
) -> Iterator[Services]:
    """Open and connect everything, and close it again. The ``clock`` is that of all that is written and forgotten.

    Several processes may do this at once; only the daemon and a backfill write events. A missing vault raises no error here, but in
    the operations that need it.
    """
    with ExitStack() as closing:
        stores = _open_stores(config, closing, clock)
        timeline, outbox, vault, keys = stores.timeline, stores.outbox, stores.vault, stores.keys
        judge = judge_of(config, keys, outbox)
        embedder, former = first_embedders(config)
        meaning = meaning_of(embedder)
        recall = _open_recall(stores, embedder, former, meaning, closing, judged=judge is not None)
        indexer = NoteIndexer(vault=vault, timeline=timeline, recall=recall)
        extractor = extractor_of(config, keys)
        costs = extractor.name != "offline"
        pipeline = _pipeline(stores, recall, indexer, extractor, costs=costs)
        polisher = partial(polisher_of, config, keys, outbox)
        history = QuestionAnswering(
            timeline=timeline,
            vault=vault,
            recall=recall,
            answerer=partial(answerer_of, config, keys, outbox),
            polisher=polisher,
            clock=clock,
            meaning=meaning,
        )
        in_background = running is not None  # a thread of the daemon computes embeddings
        pages = VaultPages(vault=vault, clock=clock, polisher=polisher)
        forgetting = Forgetting(timeline=timeline, outbox=outbox, vault=vault, recall=recall, indexer=indexer)
        store = _local_store(config.state, vault, recall, indexer, forgetting, pages, in_background=in_background)
        closing.callback(store.close)
        pipeline.after_deletions(store.tidy)
        near = _local_context(stores, history, recall, meaning)
        bridge = Bridge(tools_of(store, near, saving=saving_of(config, extractor, outbox), age=age))
        used = partial(use_of_notes, timeline, recall.memory)
        consolidating = Consolidation(
            vault=vault,
            refresh=indexer.refresh,
            pages=pages,
            folder=config.state,
            clock=clock,
            committed=partial(commit, config.vault, environment=os.environ) if config.vault_git else _not_committed,
            used=used,
            worked_on=partial(worked_on, timeline),
            daily=config.vault_journal,
        )
        erase = partial(_erase, consolidating, store)
        syncing = Syncing(
            vault=vault,
            timeline=timeline,
            outbox=outbox,
            memory=recall.memory,
            indexer=indexer,
            forgetting=forgetting,
            erase=partial(erase, forgetting),
            state=config.state,
            name=platform.node(),
            environment=os.environ,
            clock=clock,
        )
        operations = Operations(
            pipeline=pipeline,
            timeline=timeline,
            outbox=outbox,
            vault=vault,
            recall=recall,
            indexer=indexer,
            forgetting=forgetting,
            bridge=bridge,
            keep=store.keep,
            saved=store.evidence,
            forgot=store.forgot,
            erase=erase,
            pages=pages,
            more={
                **history.operations(),
                **Importer(vault=vault, indexer=indexer).operations(),
                **Review(
                    vault=vault,
                    recall=recall,
                    indexer=indexer,
                    timeline=timeline,
                    dividing=consolidating,
                    used=used,
                    clock=clock,
                ).operations(),
                **consolidating.operations(),
                **syncing.operations(),
            },
            extractor=extractor.name,
            lack=extractor.lack if isinstance(extractor, Keyless) else None,
            meaning=meaning,
            budget_dollars=config.extractor.dollars_per_day if costs else 0.0,
            daemon=running or partial(_absent, config.state),
            idle=idle or (lambda: Idle(until=None, reason="")),
            clock=clock,
        )
        yield Services(
            config=config,
            sources=pipeline.sources,
            timeline=timeline,
            outbox=outbox,
            vault=vault,
            recall=recall,
            indexer=indexer,
            embedder=embedder,
            meaning=meaning,
            extractor=extractor,
            costs=costs,
            pipeline=pipeline,
            operations=operations,
            bridge=bridge,
            hooks=_open_hooks(stores, recall, indexer, judge, store, near, closing, in_background=in_background),
            consolidating=consolidating,
            saved=store.evidence,
            anchors=CodeAnchors(vault=vault, sessions=timeline, refresh=indexer.refresh, clock=clock),
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


def _open_stores(config: Config, closing: ExitStack, clock: Callable[[], datetime]) -> _Stores:
    protect(protected_literals(config.file))
    closing.callback(seal, config.state)  # runs last, when everything opened after it is closed
    timeline = Timeline(config.state / "timeline.sqlite")
    closing.callback(timeline.close)
    outbox = Outbox(config.state / "outbox.sqlite")
    closing.callback(outbox.close)
    vault = closing.enter_context(Vault(config.vault, config.state / "vault.sqlite", clock=clock))
    return _Stores(config=config, keys=keys_beside(config.file), timeline=timeline, outbox=outbox, vault=vault, clock=clock)


def _open_recall(
    stores: _Stores, embedder: Embedder, former: Embedder, meaning: Meaning, closing: ExitStack, *, judged: bool
) -> Recall:
    config = stores.config
    beside = second_embedder(config, stores.keys)
    recall = Recall(
        index=Index(config.state / "index", embedder=embedder, beside=beside, former=former),
        memory=SessionMemory(config.state / "index" / "shown.sqlite"),
        threshold=config.recall.threshold,
        dial=config.recall.dial,
        judged=judged,
        notes_per_prompt=config.recall.notes_per_prompt,
        tokens_per_prompt=config.recall.tokens_per_prompt,
        fixes=stores.timeline,
        commands=partial(commands_run, stores.timeline),
        cards=ConversationVoices(timeline=stores.timeline, meaning=meaning),
        clock=stores.clock,
    )
    closing.callback(recall.close)
    return recall


def _pipeline(stores: _Stores, recall: Recall, indexer: NoteIndexer, extractor: Extractor, *, costs: bool) -> Pipeline:
    config = stores.config
    return Pipeline(
        sources=sources_of(config, projects=stores.timeline.folders),
        timeline=stores.timeline,
        outbox=stores.outbox,
        scheduler=_scheduler(stores, extractor),
        vault=stores.vault,
        recall=recall,
        indexer=indexer,
        policy=chunk_policy(config, costs=costs),
        remembers=isinstance(extractor, Sharing),
        clock=stores.seconds,
    )


def _scheduler(stores: _Stores, extractor: Extractor) -> Steps:
    budget, batches = budget_of(stores.config), batches_of(stores.config, stores.keys)
    if batches is None:
        return Scheduler(outbox=stores.outbox, extractor=extractor, budget=budget, clock=stores.seconds)
    from kite_memory.distill.batches import BatchScheduler
    from kite_memory.distill.model_extractor import ModelExtractor

    if not isinstance(extractor, ModelExtractor):
        return Scheduler(outbox=stores.outbox, extractor=extractor, budget=budget)
    live = Scheduler(outbox=stores.outbox, extractor=extractor, budget=budget, batches=True)
    return BatchScheduler(live=live, outbox=stores.outbox, extractor=extractor, batches=batches, budget=budget)


def meaning_of(embedder: Embedder) -> Meaning:
    """Return the embedder for conversations. A question is embedded as for notes, so that a prompt is embedded once for both."""
    return Meaning(
        space=embedder.space.tag,
        of_texts=lambda texts: embedder.embed(texts, "document"),
        of_question=lambda text: embedder.embed([essence(text)], "query")[0],
    )


def _local_context(stores: _Stores, history: QuestionAnswering, recall: Recall, meaning: Meaning) -> LocalContext:
    searching = Searching(
        timeline=stores.timeline,
        vault=stores.vault,
        recall=recall,
        meaning=meaning,
        note_view=NoteView(vault=stores.vault, clock=stores.clock),
        clock=stores.clock,
    )
    return LocalContext(
        project_of=project_of,
        known_project=partial(known_project, stores.vault),
        timeline=history.timeline,
        resume=history.resume,
        passages=searching.beside,
        conversation=partial(conversation, stores.timeline),
        working=partial(working, stores.timeline),
        heard=partial(heard, stores.timeline),
        known_of=stores.timeline.provenance,
    )


def _open_hooks(
    stores: _Stores,
    recall: Recall,
    indexer: NoteIndexer,
    judge: Judge | None,
    store: LocalStore,
    near: LocalContext,
    closing: ExitStack,
    *,
    in_background: bool,
) -> HookHandler:
    capture = PromptCapture(
        vault=stores.vault, recall=recall, indexer=indexer, report=report_error, provenance=stores.timeline.provenance
    )
    closing.callback(capture.close)
    hooks = HookHandler(
        recall=recall,
        timeline=stores.timeline,
        judge=judge,
        mode=stores.config.judge,
        report=report_error,
        left_to_do=partial(left_to_do, store, near),
        capture=capture.capture,
        clock=stores.clock,
        team=team_recall_of(stores.config, stores.keys) if in_background else None,
    )
    closing.callback(hooks.close)
    return hooks


def _erase(consolidating: Consolidation, store: LocalStore, forgetting: Forgetting) -> list[str]:
    """Delete all other copies of forgotten text, and return which databases may still hold it."""
    consolidating.erase_copies()
    return forgetting.purge_files({"bridge.sqlite": store.purge})


def _not_committed(message: str) -> str:
    return ""


def _local_store(
    state: Path,
    vault: Vault,
    recall: Recall,
    indexer: NoteIndexer,
    forgetting: Forgetting,
    pages: VaultPages,
    *,
    in_background: bool,
) -> LocalStore:
    def take_up(paths: Collection[str], *, meaning: bool = True) -> None:
        indexer.refresh(paths, meaning=meaning or not in_background)

    def forget_events(note: Note) -> None:
        forgetting.forget_events(forgetting.grounds([note]), blank=False)

    conversations = LocalConversations(vault=vault, folder=state / "conversations", take_up=take_up)
    return LocalStore(
        vault=vault,
        recall=recall,
        state=LocalState(state / "bridge.sqlite"),
        conversations=conversations,
        take_up=take_up,
        let_go=forget_events,
        forgotten=lambda note: _remarked(pages.remove_notes([note], wording=False)),
    )


def _remarked(remark: str) -> None:
    if remark:
        log.warning("%s", remark)


def _absent(state: Path) -> dict[str, Any]:
    """Return the status of a daemon that cannot be reached. Its lock may be held by a backfill, or by a daemon that hangs."""
    return {"running": False, "pid": None, "since": "", "rss_mb": 0.0, "held_by": holder(state)}


def report_error(error: BaseException) -> None:
    log.error("a request failed", exc_info=error)


@contextmanager
def requests_of(services: Services, tracer: Tracer) -> "Iterator[Requests]":
    """Return a dry run of the configured models' requests; without a model, of those that one would get."""
    from tempfile import TemporaryDirectory

    from kite_memory.app.trace import Askers, Recorder, Requests
    from kite_memory.distill.answering import Answerer, Polisher
    from kite_memory.distill.judge import ModelJudge
    from kite_memory.distill.model_extractor import ModelExtractor
    from kite_memory.wiring.models import RedactingBackend

    config = services.config
    real = backend_of(config, keys_beside(config.file))
    recorder = Recorder(name=real.name if real else "no model is set up", model=real.model if real else "")
    backend = RedactingBackend(recorder)
    prompt = partial(load_prompt, prompt_folders(config))
    with TemporaryDirectory() as folder, closed(Outbox(Path(folder) / "outbox.sqlite")) as outbox:
        free = Allowance(outbox=outbox, budget=Budget(dollars=1.0, calls=1_000_000), share=1.0, clock=time.time)
        yield Requests(
            askers=Askers(
                recorder=recorder,
                extractor=replace(services.extractor, backend=backend)
                if isinstance(services.extractor, ModelExtractor)
                else ModelExtractor(backend=backend, prompt=prompt()),
                judge=ModelJudge(backend=backend, prompt=prompt("judge"), allowance=free),
                answerer=Answerer(backend=backend, prompt=prompt("ask"), allowance=free),
                polisher=Polisher(backend=backend, prompt=prompt("polish"), allowance=free),
            ),
            tracer=tracer,
            timeline=services.timeline,
            vault=services.vault,
            recall=services.recall,
            remembered=services.pipeline.remembered,
            clock=lambda: datetime.now(UTC),
        )


def tracer_of(services: Services) -> Tracer:
    return Tracer(
        timeline=services.timeline,
        outbox=services.outbox,
        vault=services.vault,
        recall=services.recall,
        pipeline=services.pipeline,
        clock=lambda: datetime.now(UTC),
    )
