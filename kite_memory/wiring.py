"""From the configuration to the running parts: the only place that knows which adapter is which."""

import importlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextlib import closing as closed
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import orjson

from kite_memory import __version__, assets, endpoint, paths
from kite_memory.app.agent_hooks import Moments
from kite_memory.app.code_anchors import Anchoring
from kite_memory.app.consolidation import Consolidating
from kite_memory.app.forgetting import LettingGo
from kite_memory.app.importer import TakingIn
from kite_memory.app.launch import daemon_command, daemon_environment
from kite_memory.app.operations import Operations, known_project
from kite_memory.app.pipeline import Pipeline
from kite_memory.app.prompt_capture import Saying
from kite_memory.app.question_answering import History
from kite_memory.app.review import Reviewing
from kite_memory.app.session_context import said_about
from kite_memory.app.trace import Tracer
from kite_memory.app.vault_git import commit
from kite_memory.app.vault_pages import Gardening
from kite_memory.config import Config, LogLevel
from kite_memory.daemon.lock import DaemonLock, holder
from kite_memory.distill import prompts
from kite_memory.distill.backends.keyless import Keyless
from kite_memory.distill.backends.prices import Prices
from kite_memory.distill.budget_ledger import Allowance
from kite_memory.distill.chunking import FREE, ChunkPolicy
from kite_memory.distill.extractor import Extractor, Outcome, Sharing, Usage
from kite_memory.distill.outbox import Budget, Outbox, Purpose
from kite_memory.distill.saving import Saving
from kite_memory.distill.scheduler import Idle, Scheduler
from kite_memory.errors import ConfigInvalid, KiteError, UsageError, VaultMissing, VaultReadOnly
from kite_memory.keys import Keys, keys_beside
from kite_memory.log_lines import BACKUPS, LARGEST, dated
from kite_memory.model.chunk import Chunk
from kite_memory.model.event import Event, EvidenceReference
from kite_memory.model.judging import Judge
from kite_memory.model.note import Note
from kite_memory.projects.project import project_of
from kite_memory.protected import protected_literals
from kite_memory.recall.embedders.embedder import Embedder
from kite_memory.recall.embedders.local import LocalEmbedder
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.redaction import redact
from kite_memory.redaction.literals import protect
from kite_memory.sources.aider.source import HISTORY, Aider
from kite_memory.sources.antigravity.source import Antigravity
from kite_memory.sources.claude_code.source import ClaudeCode
from kite_memory.sources.cline.roo_code import RooCode
from kite_memory.sources.cline.source import Cline
from kite_memory.sources.codex.source import Codex
from kite_memory.sources.common.source import Source
from kite_memory.sources.copilot_cli.source import CopilotCli
from kite_memory.sources.cursor.source import CursorApp
from kite_memory.sources.gemini_cli.source import Gemini
from kite_memory.sources.git_history.source import GitLog
from kite_memory.sources.opencode.source import OpenCode
from kite_memory.system.checksums import broken, seal
from kite_memory.system.private_files import make_private_folder, replace_file
from kite_memory.team.recall import Colleagues
from kite_memory.team.search import Team
from kite_memory.text.ages import age
from kite_memory.timeline.event_embeddings import Meaning
from kite_memory.timeline.store import Timeline
from kite_memory.tools.bridge import Bridge
from kite_memory.tools.local_context import Near
from kite_memory.tools.local_conversations import LocalConversations
from kite_memory.tools.local_state import LocalState
from kite_memory.tools.local_store import LocalStore
from kite_memory.tools.registry import tools_of
from kite_memory.tools.resuming import left_to_do
from kite_memory.tools.store import StoreUnavailable
from kite_memory.tools.working import heard, working
from kite_memory.vault import Vault

if TYPE_CHECKING:
    from types import ModuleType

    from kite_memory.app.requests import Requests
    from kite_memory.daemon.daemon import Daemon
    from kite_memory.daemon.protocol import Held, Reply, Request
    from kite_memory.daemon.service_units import Manager, Service
    from kite_memory.distill.answering import Answerer
    from kite_memory.distill.backends.backend import Backend
    from kite_memory.distill.offline import OfflineExtractor
    from kite_memory.distill.polishing import Polisher
    from kite_memory.tools.wire import Perform

log = logging.getLogger("kite_memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """``costs`` says whether asking the extractor costs money."""

    config: Config
    sources: tuple[Source, ...]
    timeline: Timeline
    outbox: Outbox
    vault: Vault
    recall: Recall
    embedder: Embedder
    meaning: Meaning
    extractor: Extractor
    costs: bool
    pipeline: Pipeline
    operations: Operations
    bridge: Bridge
    moments: Moments
    consolidating: Consolidating
    anchoring: Anchoring
    saved: Callable[[EvidenceReference], Sequence[Event]]
    """What a note of a saved conversation rests on."""

    @property
    def has_a_vault(self) -> bool:
        """Whether there is one, or was: only then is its absence worth a word."""
        return self.vault.root.is_dir() or bool(self.vault.known())

    def lay_out(self) -> None:
        """Make the vault if there never was one. Raises `VaultMissing` where there was, and `VaultReadOnly`."""
        self.vault.ensure(assets.folder("vault_template"))


@contextmanager
def open_house(
    config: Config, *, running: Callable[[], dict[str, Any]] | None = None, idle: Callable[[], Idle] | None = None
) -> Iterator[House]:
    """Everything wired up, and closed again. Several processes may do this at once; only the daemon and a backfill write events.

    A vault that is not there does not keep the house shut: what needs it says so when it is asked.
    """
    with ExitStack() as closing:
        protect(protected_literals(config.file))
        closing.callback(seal, config.state)  # last, when all that is below is closed
        timeline = Timeline(config.state / "timeline.sqlite")
        closing.callback(timeline.close)
        outbox = Outbox(config.state / "outbox.sqlite")
        closing.callback(outbox.close)
        vault = closing.enter_context(Vault(config.vault, config.state / "vault.sqlite"))
        embedder = LocalEmbedder()
        kept = keys_beside(config.file)
        judge = judge_of(config, kept, outbox)
        recall = Recall(
            index=Index(
                config.state / "index",
                embedder=embedder,
                beside=second_embedder(config, kept),
                said=partial(said_about, timeline),
            ),
            memory=SessionMemory(config.state / "index" / "shown.sqlite"),
            threshold=config.recall.threshold,
            dial=config.recall.dial,
            judged=judge is not None,
            notes_per_prompt=config.recall.notes_per_prompt,
            tokens_per_prompt=config.recall.tokens_per_prompt,
            fixes=timeline,
        )
        closing.callback(recall.close)
        extractor = extractor_of(config, kept)
        costs = extractor.name != "offline"
        sources = sources_of(config, projects=timeline.folders)
        scheduler = Scheduler(
            outbox=outbox,
            extractor=extractor,
            budget=_budget(config),
        )
        pipeline = Pipeline(
            sources=sources,
            timeline=timeline,
            outbox=outbox,
            scheduler=scheduler,
            vault=vault,
            recall=recall,
            policy=policy_of(config, costs=costs),
            remembers=isinstance(extractor, Sharing),
        )
        meaning = Meaning(
            space=embedder.space.tag,
            of_texts=lambda texts: embedder.embed(texts, "document"),
            of_question=lambda text: embedder.embed([text], "query")[0],
        )
        history = History(
            timeline=timeline,
            vault=vault,
            recall=recall,
            answerer=partial(answerer_of, config, kept, outbox),
            polisher=partial(polisher_of, config, kept, outbox),
            clock=lambda: datetime.now(UTC),
        )
        in_background = running is not None  # a daemon's own thread gives notes their vectors
        gardening = Gardening(
            vault=vault,
            lock=pipeline.vault_lock,
            clock=lambda: datetime.now(UTC),
            polisher=partial(polisher_of, config, kept, outbox),
        )
        letting_go = LettingGo(timeline=timeline, outbox=outbox, vault=vault, recall=recall)
        store = _local_store(config.state, vault, recall, pipeline, letting_go, gardening, in_background=in_background)
        closing.callback(store.close)
        pipeline.after_deletions(store.tidy)
        near = Near(
            project_of=project_of,
            known_project=partial(known_project, vault),
            timeline=history.timeline,
            resume=history.resume,
            working=partial(working, timeline),
            heard=partial(heard, timeline),
            known_of=timeline.provenance,
        )
        bridge = Bridge(tools_of(store, near, saving=saving_of(config, extractor, outbox), age=age))
        consolidating = Consolidating(
            vault=vault,
            refresh=recall.refresh,
            gardening=gardening,
            folder=config.state,
            lock=pipeline.vault_lock,
            clock=lambda: datetime.now(UTC),
            committed=partial(commit, config.vault, environment=os.environ) if config.vault_git else _not_committed,
        )
        operations = Operations(
            pipeline=pipeline,
            timeline=timeline,
            outbox=outbox,
            vault=vault,
            recall=recall,
            history=history,
            bridge=bridge,
            keep=store.keep,
            saved=store.evidence,
            forgot=store.forgot,
            erase=partial(_erase, consolidating, store),
            gardening=gardening,
            more=consolidating.operations(),
            reviewing=Reviewing(vault=vault, recall=recall, timeline=timeline, lock=pipeline.vault_lock, dividing=consolidating),
            taking_in=TakingIn(vault=vault, recall=recall, lock=pipeline.vault_lock),
            extractor=extractor.name,
            lack=extractor.lack if isinstance(extractor, Keyless) else None,
            meaning=meaning,
            budget_dollars=config.extractor.dollars_per_day if costs else 0.0,
            daemon=running or partial(_absent, config.state),
            idle=idle or (lambda: Idle(until=None, reason="")),
            clock=lambda: datetime.now(UTC),
        )
        saying = Saying(vault=vault, recall=recall, lock=pipeline.vault_lock, report=_report, provenance=timeline.provenance)
        closing.callback(saying.close)
        moments = Moments(
            recall=recall,
            timeline=timeline,
            judge=judge,
            mode=config.judge,
            report=_report,
            left_to_do=partial(left_to_do, store, near),
            hear=saying.hear,
            colleagues=colleagues_of(config, kept) if in_background else None,
        )
        closing.callback(moments.close)
        yield House(
            config=config,
            sources=sources,
            timeline=timeline,
            outbox=outbox,
            vault=vault,
            recall=recall,
            embedder=embedder,
            meaning=meaning,
            extractor=extractor,
            costs=costs,
            pipeline=pipeline,
            operations=operations,
            bridge=bridge,
            moments=moments,
            consolidating=consolidating,
            saved=store.evidence,
            anchoring=Anchoring(
                vault=vault,
                sessions=timeline,
                refresh=lambda paths: recall.refresh(vault, hint=paths),
                lock=pipeline.vault_lock,
                clock=lambda: datetime.now(UTC),
            ),
        )


def _erase(consolidating: Consolidating, store: LocalStore, letting_go: LettingGo) -> list[str]:
    """What else was kept of words that are to be gone for good, and what no database shall hold of them any more."""
    consolidating.let_go()
    return letting_go.leave_nothing({"bridge.sqlite": store.purge})


def _tend(consolidating: Consolidating, anchoring: Anchoring, quiet_for: float) -> None:
    consolidating.tend(quiet_for=quiet_for)
    anchoring.tend(quiet_for=quiet_for)


def _not_committed(message: str) -> str:
    return ""


def saving_of(config: Config, extractor: Extractor, outbox: Outbox) -> Saving:
    """What looks at that which agents save of their own accord; a model takes a transcript apart where there is one."""
    if extractor.name == "offline":
        return Saving(rules=_Offline())
    allowance = Allowance(outbox=outbox, budget=_budget(config), share=1.0, clock=time.time, purpose="save")
    return Saving(rules=_Offline(), model=extractor, allowance=allowance)


def _local_store(
    state: Path,
    vault: Vault,
    recall: Recall,
    pipeline: Pipeline,
    letting_go: LettingGo,
    gardening: Gardening,
    *,
    in_background: bool,
) -> LocalStore:
    def take_up(paths: Collection[str], *, meaning: bool = True) -> None:
        recall.refresh(vault, hint=paths, meaning=meaning or not in_background)

    def let_go(note: Note) -> None:
        letting_go.let_go(letting_go.grounds([note]), blank=False)

    conversations = LocalConversations(vault=vault, folder=state / "conversations", lock=pipeline.vault_lock, take_up=take_up)
    return LocalStore(
        vault=vault,
        recall=recall,
        state=LocalState(state / "bridge.sqlite"),
        conversations=conversations,
        lock=pipeline.vault_lock,
        take_up=take_up,
        let_go=let_go,
        forgotten=lambda note: _remarked(gardening.let_go([note], wording=False)),
    )


def _remarked(remark: str) -> None:
    if remark:
        log.warning("%s", remark)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamBridge:
    """``health`` says why the store does not answer just now; empty where it does."""

    perform: "Perform"
    health: Callable[[], str]
    close: Callable[[], None]


def bridge_of(config: Config, store_url: str) -> "tuple[Perform, Callable[[], None]]":
    """`team_bridge`, and how to close it."""
    bridge = team_bridge(config, store_url)
    return bridge.perform, bridge.close


def team_bridge(config: Config, store_url: str) -> TeamBridge:
    """The bridge over a team's store, in this process. Raises `KiteError` where it cannot be opened.

    ``team`` is the store that the configuration names.
    """
    postgres = _postgres()
    team = config.team
    url = _store_url(config, store_url)
    with _naming(url):
        store = postgres.open_postgres(
            url,
            embedder=LocalEmbedder(),
            objects=postgres.objects_of(bucket=team.bucket, endpoint=team.endpoint, prefix=team.prefix, region=team.region),
            tenant=team.tenant,
            password=_store_password(config),
        )
    keeping = postgres.Housekeeping(store)
    bridge = Bridge(tools_of(store, Near(), saving=Saving(rules=_Offline()), age=age))

    def close() -> None:
        keeping.close()
        store.close()

    def health() -> str:
        try:
            store.ping()
        except KiteError as error:
            return str(error)
        return ""

    return TeamBridge(perform=bridge.perform, health=health, close=close)


@contextmanager
def _naming(url: str) -> Iterator[None]:
    """What an agent is not told of a store, who starts a server on it must know: which it is, and why it does not answer."""
    try:
        yield
    except StoreUnavailable as error:
        words = str(error.__cause__ or "").strip().splitlines()
        reason = f": {words[0].rpartition('failed: ')[2]}" if words else ""
        host = url.partition("://")[2].partition("/")[0].partition("?")[0].rpartition("@")[2] or "its socket"
        raise StoreUnavailable(f"{error}, at {host}{reason}", hint=error.hint) from error


def migrate_store(config: Config, store_url: str, tell: Callable[[str], None] = lambda line: None) -> None:
    """Bring a team's store to this version. Raises `KiteError` where that cannot be."""
    url = _store_url(config, store_url)
    with _naming(url):
        _postgres().migrate(url, spaces=[LocalEmbedder().space], password=_store_password(config), tell=tell)


def _postgres() -> "ModuleType":
    try:
        return importlib.import_module("kite_memory.team.postgres")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("kite_memory"):
            raise
        raise UsageError("a team's store needs more packages", hint="install `kite-memory[team]`") from error


def _store_url(config: Config, told: str) -> str:
    url = config.team.store if told == "team" else told
    scheme, is_url, _ = url.partition("://")
    if not is_url:
        raise UsageError("a team's store is named by a URL", hint="as postgresql://user@host/database, or `team` as [team] says")
    if scheme not in ("postgresql", "postgres"):
        raise UsageError(f"a team's store is PostgreSQL, and {scheme!r:.40} is not", hint="as postgresql://user@host/database")
    return url


def _store_password(config: Config) -> str:
    """Of the environment's own, PostgreSQL's library knows already."""
    found = keys_beside(config.file).find("team")
    return found.value if found and found.place != "environment" else ""


def sources_of(config: Config, *, projects: Callable[[], Iterable[str]] = tuple) -> tuple[Source, ...]:
    """Every agent whose transcripts are read, a line for each; those without a root are left out.

    ``projects`` are the folders that agents are known to have worked in.
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
        GitLog(projects, environment=os.environ, home=Path.home()) if config.git_history else None,
    )
    return tuple(source for source in found if source is not None)


def _aider(config: Config, projects: Callable[[], Iterable[str]]) -> Aider | None:
    if config.aider_roots is None:
        return None
    history = config.aider_history or HISTORY
    return Aider(projects, always=config.aider_roots, own=config.own_histories, own_state=config.state, history=history)


def policy_of(config: Config, *, costs: bool) -> ChunkPolicy:
    """Where a call costs money, the rules that cost nothing say what cannot wait for more to be said."""
    if not costs:
        return replace(FREE, idle=min(config.daemon.idle_seconds, FREE.idle))

    def urgent(events: Sequence[Event]) -> bool:
        from kite_memory.distill.offline import said_to_keep

        return said_to_keep(events)

    return ChunkPolicy(idle=config.daemon.idle_seconds, urgent=urgent)


def _absent(state: Path) -> dict[str, Any]:
    """The daemon as seen by a process that could not reach it. Who else holds its lock may be a backfill, or one that hangs."""
    return {"running": False, "pid": None, "since": "", "rss_mb": 0.0, "held_by": holder(state)}


def extractor_of(config: Config, kept: Keys) -> Extractor:
    """Vendor packages are not imported here; the first call does that."""
    backend = backend_of(config, kept)
    if backend is None:
        if hint := _WITHOUT_KEY.get(config.extractor.name):
            return Keyless(name=config.extractor.name, hint=hint)
        return _Offline()
    from kite_memory.distill.model_extractor import ModelExtractor

    prompt = prompts.load(_prompt_folders(config))
    match backend.name:
        case "claude-cli":
            return ModelExtractor(backend=backend, prompt=prompt, seconds=240.0, max_tokens=8_000)
        case "openai" if _is_local(_openai_address(config)):  # a machine that is slow, and a context that is often small
            return ModelExtractor(backend=backend, prompt=prompt, seconds=600.0, limit_chars=24_000)
        case _:
            return ModelExtractor(backend=backend, prompt=prompt)


def _allowance(config: Config, outbox: Outbox, purpose: Purpose) -> Allowance:
    """What all that is asked beside the extraction may take of a day's budget."""
    share = config.extractor.judge_share
    return Allowance(outbox=outbox, budget=_budget(config), share=share, clock=time.time, purpose=purpose)


def judge_of(config: Config, kept: Keys, outbox: Outbox) -> Judge | None:
    """``None`` where nobody wants one, or there is no model to ask."""
    backend = None if config.judge == "off" else backend_of(config, kept)
    if backend is None:
        return None
    from kite_memory.distill.judge import ModelJudge

    return ModelJudge(
        backend=backend,
        prompt=prompts.load(_prompt_folders(config), "judge"),
        allowance=_allowance(config, outbox, "judge"),
    )


def colleagues_of(config: Config, kept: Keys) -> Colleagues | None:
    """``None`` where nobody said that the team is to be asked at prompts, or there is no token for it."""
    if config.team.ask != "prompt" or not config.team.bridge:
        return None
    token = kept.find("team-token")
    return Colleagues(Team(address=config.team.bridge, token=token.value)) if token else None


def answerer_of(config: Config, kept: Keys, outbox: Outbox) -> "Answerer | None":
    """Who writes the answer to a question; ``None`` where there is no model to ask."""
    backend = backend_of(config, kept)
    if backend is None:
        return None
    from kite_memory.distill.answering import Answerer

    return Answerer(
        backend=backend,
        prompt=prompts.load(_prompt_folders(config), "ask"),
        allowance=_allowance(config, outbox, "answer"),
    )


def polisher_of(config: Config, kept: Keys, outbox: Outbox) -> "Polisher | None":
    """Who says a brief better; ``None`` where there is no model to ask."""
    backend = backend_of(config, kept)
    if backend is None:
        return None
    from kite_memory.distill.polishing import Polisher

    return Polisher(
        backend=backend,
        prompt=prompts.load(_prompt_folders(config), "polish"),
        allowance=_allowance(config, outbox, "polish"),
    )


@contextmanager
def requests_of(house: House, tracer: Tracer) -> "Iterator[Requests]":
    """What the models that are configured would be sent; without one, what one would be sent that was."""
    from tempfile import TemporaryDirectory

    from kite_memory.app.requests import Askers, Recorder, Requests
    from kite_memory.distill.answering import Answerer
    from kite_memory.distill.judge import ModelJudge
    from kite_memory.distill.model_extractor import ModelExtractor
    from kite_memory.distill.polishing import Polisher
    from kite_memory.outbound import DiscreetBackend

    config = house.config
    real = backend_of(config, keys_beside(config.file))
    recorder = Recorder(name=real.name if real else "no model is set up", model=real.model if real else "")
    backend = DiscreetBackend(recorder)
    prompt = partial(prompts.load, _prompt_folders(config))
    with TemporaryDirectory() as folder, closed(Outbox(Path(folder) / "outbox.sqlite")) as outbox:
        free = Allowance(outbox=outbox, budget=Budget(dollars=1.0, calls=1_000_000), share=1.0, clock=time.time)
        yield Requests(
            askers=Askers(
                recorder=recorder,
                extractor=replace(house.extractor, backend=backend)
                if isinstance(house.extractor, ModelExtractor)
                else ModelExtractor(backend=backend, prompt=prompt()),
                judge=ModelJudge(backend=backend, prompt=prompt("judge"), allowance=free),
                answerer=Answerer(backend=backend, prompt=prompt("ask"), allowance=free),
                polisher=Polisher(backend=backend, prompt=prompt("polish"), allowance=free),
            ),
            tracer=tracer,
            timeline=house.timeline,
            vault=house.vault,
            recall=house.recall,
            remembered=house.pipeline.remembered,
            clock=lambda: datetime.now(UTC),
        )


def tracer_of(house: House) -> Tracer:
    return Tracer(
        timeline=house.timeline,
        outbox=house.outbox,
        vault=house.vault,
        recall=house.recall,
        pipeline=house.pipeline,
        clock=lambda: datetime.now(UTC),
    )


def backend_of(config: Config, kept: Keys) -> "Backend | None":
    """The door to the model that the configuration names; ``None`` where it names none, or there is no key for it."""
    from kite_memory.outbound import DiscreetBackend

    settings, prices = config.extractor, prices_of(config)
    match settings.name:
        case "offline":
            return None
        case "auto" | "anthropic":
            key = kept.find("anthropic")
            if key is None:
                return None
            from kite_memory.distill.backends.anthropic_api import AnthropicBackend

            return DiscreetBackend(
                AnthropicBackend(api_key=key.value, model=settings.model, prices=prices, base_url=settings.base_url)
            )
        case "claude-cli":
            from kite_memory.distill.backends.claude_cli import ClaudeCliBackend

            return DiscreetBackend(ClaudeCliBackend(folder=config.state / "extractor", prices=prices, environment=dict(os.environ)))
        case "openai":
            key, address = kept.find("openai"), _openai_address(config)
            if key is None and not _is_local(address):
                return None
            from kite_memory.distill.backends.openai_api import OpenAiBackend

            return DiscreetBackend(
                OpenAiBackend(api_key=key.value if key else "", model=settings.openai_model, prices=prices, base_url=address)
            )
        case _:
            assert_never(settings.name)


def prices_of(config: Config) -> Prices:
    return Prices(dollars_in=config.extractor.dollars_per_million_in, dollars_out=config.extractor.dollars_per_million_out)


def fixed_part(config: Config) -> int:
    """Characters of what is the same in every call of an extraction."""
    prompt = prompts.load(_prompt_folders(config))
    return len(prompt.system) + len(json.dumps(prompt.schema))


_WITHOUT_KEY = {
    "anthropic": "`kmem keys set anthropic`, or ANTHROPIC_API_KEY",
    "openai": "`kmem keys set openai`, or OPENAI_API_KEY; a server on this machine needs none: set `base_url` in [extractor]",
}


def _openai_address(config: Config) -> str:
    return config.extractor.base_url or os.environ.get("OPENAI_BASE_URL", "")


def _is_local(address: str) -> bool:
    from kite_memory.distill.backends.transport import is_loopback

    return is_loopback(address)


def _prompt_folders(config: Config) -> tuple[Path, Path]:
    return config.file.parent / "prompts", assets.folder("prompts")


def _budget(config: Config) -> Budget:
    return Budget(dollars=config.extractor.dollars_per_day, calls=config.extractor.calls_per_day)


class _Offline:
    """The offline extractor. Its rules are only loaded when it is asked, which most commands never do."""

    name = "offline"

    @cached_property
    def _rules(self) -> "OfflineExtractor":
        from kite_memory.distill.offline import OfflineExtractor

        return OfflineExtractor()

    @property
    def version(self) -> str:
        return self._rules.version

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage()

    def extract(self, chunk: Chunk) -> Outcome:
        return self._rules.extract(chunk)


def second_embedder(config: Config, kept: Keys) -> Embedder | None:
    """The Voyage space beside the local one, where there is a key for it and nobody said no."""
    if config.embedder.name == "local":
        return None
    key = kept.find("voyage")
    if key is None:
        if config.embedder.name == "voyage":
            raise ConfigInvalid("the embedder `voyage` has no key", hint="`kmem keys set voyage`, or VOYAGE_API_KEY")
        return None
    from kite_memory.outbound import DiscreetEmbedder
    from kite_memory.recall.embedders.voyage import VoyageEmbedder

    base_url = config.embedder.voyage_base_url or os.environ.get("VOYAGE_BASE_URL", "")
    return DiscreetEmbedder(VoyageEmbedder(key.value, model=config.embedder.voyage_model, base_url=base_url))


def run_daemon(config: Config, lock: DaemonLock) -> int:
    """Answer the socket, work until told to stop. The caller holds the ``lock`` meanwhile."""
    from kite_memory.daemon.daemon import Daemon
    from kite_memory.daemon.malloc_tuning import few_arenas
    from kite_memory.daemon.server import Server

    few_arenas()
    _log_to(daemon_log(config), config.daemon.log_level)
    for name in broken(config.state):
        log.warning("%s is not what it was when it was closed, and nobody wrote to it: see `kmem verify`", name)
    since = datetime.now(UTC).isoformat()

    def running() -> dict[str, Any]:
        unwatched = {str(folder): why for folder, why in daemon.unwatched().items()}
        pid = os.getpid()
        return {
            "running": True,
            "version": __version__,
            "pid": pid,
            "since": since,
            "rss_mb": resident_mb(),
            "held_by": pid,
            "unwatched": unwatched,
        }

    with open_house(config, running=running, idle=lambda: daemon.idle) as house:
        house.outbox.recover()
        try:
            house.lay_out()
        except (VaultMissing, VaultReadOnly) as error:
            log.warning("%s", error)
        daemon = Daemon(
            pipeline=house.pipeline,
            sources=house.sources,
            vault=config.vault,
            compare_seconds=config.daemon.compare_seconds,
            still_ours=lambda: lock.still_holds(config.state),
            warm=partial(_warm, house.embedder),
            embed_bundles=lambda: house.timeline.embed_bundles(house.meaning),
            review=lambda: house.operations.perform("review_page", {}),
            tend=partial(_tend, house.consolidating, house.anchoring),
        )
        for number in (signal.SIGTERM, signal.SIGINT):  # before anybody can see that we are there, and end us
            signal.signal(number, lambda *_: daemon.stop())
        _tell_patience(config.state, house.moments.patience)
        handle = partial(_handle, house.operations, house.moments, daemon)
        with Server(config.state, handle, report=_report, lost=daemon.fail, urgent=_AT_ONCE):
            log.info("started, pid %d", os.getpid())
            code = daemon.run()
        log.info("stopped")
        return code


_AT_ONCE = frozenset({"hook", "ping", "stop", "look"})
"""Requests that take no time, and for which an agent or a person waits."""


def _warm(embedder: Embedder) -> None:
    """What is made when it is first used, before the first prompt comes."""
    from kite_memory.distill.asked_to_keep import may_ask

    embedder.embed(["ready"], "query")
    redact("ready")
    may_ask("ready")


def _tell_patience(state: Path, seconds: float) -> None:
    """To the hook, which gives up soon where nobody chose to wait."""
    file = Path(endpoint.patience_file(str(state)))
    if seconds:
        replace_file(file, f"{round(seconds * 1000)}\n".encode())
    else:
        file.unlink(missing_ok=True)


def _handle(operations: Operations, moments: Moments, daemon: "Daemon", request: "Request") -> "Reply | Held":
    from kite_memory.daemon.protocol import Held, Ok

    match request.name:
        case "hook":
            said, delivery = moments.prepare(request.body, request.variant)
            reply = Ok(body=said.encode("utf-8", "replace"))
            return Held(reply=reply, arrived=delivery.arrived, lost=delivery.lost) if delivery else reply
        case "ping":
            return Ok(body=__version__.encode("ascii"))
        case "stop":
            daemon.stop()
            return Ok()
        case "look":
            daemon.look_again()
            return Ok()
        case op:
            return Ok(body=_json(operations.perform(op, _arguments(request.body))))


def _arguments(body: bytes) -> dict[str, Any]:
    try:
        told = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error}") from error
    if not isinstance(told, dict):
        raise UsageError("arguments are a JSON object")
    return told


def _json(told: Any) -> bytes:
    try:
        return orjson.dumps(told)
    except TypeError:  # a path on disk that is no text; the slower writer spells it out
        return json.dumps(told).encode("ascii")


def _report(error: BaseException) -> None:
    log.error("a request failed", exc_info=error)


def daemon_log(config: Config) -> Path:
    return config.state / "logs" / "daemon.log"


def _log_to(file: Path, level: LogLevel) -> None:
    """Our own words only: nothing of a transcript, a prompt or a note is ever logged."""
    from logging.handlers import RotatingFileHandler  # brings sockets along

    make_private_folder(file.parent)
    handler = RotatingFileHandler(file, maxBytes=LARGEST, backupCount=BACKUPS, encoding="utf-8")
    handler.setFormatter(dated())
    log.addHandler(handler)
    log.setLevel(level.upper())


def resident_mb() -> float:
    """What this process holds in memory now; where the system does not tell, the most it ever held."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    except (OSError, ValueError, IndexError):
        pass
    if sys.platform == "win32":
        return 0.0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / 1e6 if sys.platform == "darwin" else most / 1e3, 1)


def service_of(config: Config) -> "tuple[Service, Manager]":
    """The daemon as this machine's service manager should know it."""
    from kite_memory.daemon.service_units import Service, namespaces_allowed, this_manager

    socket = Path(paths.socket_path(str(config.state)))
    service = Service(
        command=daemon_command(),
        environment=daemon_environment(config),
        writable=tuple(dict.fromkeys((config.vault, config.state, config.file.parent, socket.parent))),
        runs_claude=config.extractor.name == "claude-cli",
        namespaces=namespaces_allowed(),
    )
    return service, this_manager(home=Path.home(), log=config.state / "logs" / "launchd.log")
