"""Construction of everything that uses a model, or replaces one: extractor, judge, answerer, embedder.

What is sent to a service is redacted once more, just before it leaves. What only some of them need is imported where it is used: a
search needs an embedder alone.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kite_memory.config import EMBEDDERS, EXTRACTORS, Config
from kite_memory.errors import ConfigInvalid
from kite_memory.keys import Keys, keys_beside
from kite_memory.paths import asset_folder
from kite_memory.recall.embedder import Embedder, SendingEmbedder, Space, Vectors, VoyageEmbedder
from kite_memory.recall.embedder import Purpose as EmbeddingPurpose
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.multilingual_embedder import MultilingualEmbedder
from kite_memory.system import utc_now
from kite_memory.wiring.launch import multilingual_command, voyage_command

if TYPE_CHECKING:
    from kite_memory.app.trace import Requests, Tracer
    from kite_memory.distill.answering import Answerer, Polisher
    from kite_memory.distill.anthropic_api import ModelFacts
    from kite_memory.distill.budget import Allowance, Budget, Purpose
    from kite_memory.distill.condense import ChunkPolicy
    from kite_memory.distill.extractor import (
        Backend,
        Batches,
        Ending,
        Extractor,
        Failure,
        Inquiry,
        ListedBatch,
        Outcome,
        Prices,
        RedactedInquiry,
        SendingBackend,
        SendingBatches,
        Usage,
    )
    from kite_memory.distill.model_extractor import Tariff
    from kite_memory.distill.offline import OfflineExtractor
    from kite_memory.distill.outbox import Outbox
    from kite_memory.distill.saving import SaveChecker
    from kite_memory.model.event import Event, Provenance
    from kite_memory.model.hit import Judge
    from kite_memory.model.note import Chunk, Origin, Record, RecordItem
    from kite_memory.team.search import TeamRecall
    from kite_memory.timeline.conversations import ConversationEmbedder
    from kite_memory.wiring.services import Services


@dataclass(frozen=True, slots=True)
class RedactingBackend:
    """Language model backend that redacts secrets in what it sends."""

    inner: "SendingBackend"

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def model(self) -> str:
        return self.inner.model

    def estimate(self, inquiry: "Inquiry") -> "Usage":
        return self.inner.estimate(inquiry)

    def ask(self, inquiry: "Inquiry") -> "Ending":
        return self.inner.ask(_redacted(inquiry))


@dataclass(frozen=True, slots=True)
class RedactingBatches:
    """Batches of inquiries that are redacted before they are sent."""

    inner: "SendingBatches"

    def estimate(self, inquiry: "Inquiry") -> "Usage":
        return self.inner.estimate(inquiry)

    def submit(self, inquiries: "Mapping[str, Inquiry]") -> "str | Failure":
        return self.inner.submit({name: _redacted(inquiry) for name, inquiry in inquiries.items()})

    def is_over(self, batch: str) -> "bool | Failure":
        return self.inner.is_over(batch)

    def endings(self, batch: str, estimates: "Mapping[str, Usage]") -> "Mapping[str, Ending] | Failure":
        return self.inner.endings(batch, estimates)

    def listed(self) -> "Sequence[ListedBatch] | Failure":
        return self.inner.listed()


def _redacted(inquiry: "Inquiry") -> "RedactedInquiry":
    from kite_memory.distill.extractor import RedactedInquiry
    from kite_memory.redaction import redact

    return RedactedInquiry(
        system=inquiry.system,
        user=redact(inquiry.user),
        schema=inquiry.schema,
        max_tokens=inquiry.max_tokens,
        seconds=inquiry.seconds,
    )


@dataclass(frozen=True, slots=True)
class RedactingEmbedder:
    """Embedder that redacts secrets and drops text marked as private before sending."""

    inner: SendingEmbedder

    @property
    def space(self) -> Space:
        return self.inner.space

    def embed(self, texts: Sequence[str], purpose: EmbeddingPurpose) -> Vectors:
        from kite_memory.redaction import drop_private, redact

        return self.inner.embed([redact(drop_private(text)) for text in texts], purpose)


def extractor_of(config: Config, kept: Keys) -> "Extractor":
    """Return the configured extractor. Vendor packages are only imported at its first call."""
    from kite_memory.distill.extractor import NoKeyExtractor, load_prompt

    if config.extractor.name not in EXTRACTORS:
        from kite_memory import extensions

        extension: Extractor = extensions.load("extractor", config.extractor.name)(config.extractor)
        return extension
    backend = backend_of(config, kept)
    if backend is None:
        if hint := _WITHOUT_KEY.get(config.extractor.name):
            return NoKeyExtractor(name=config.extractor.name, hint=hint)
        return OfflineRules()
    from kite_memory.distill.model_extractor import ModelExtractor

    prompt = load_prompt(prompt_folders(config))
    match backend.name:
        case "claude-cli":
            return ModelExtractor(backend=backend, prompt=prompt, seconds=240.0, max_tokens=8_000)
        case "openai" if _is_local(_openai_address(config)):  # local machines are slow, and contexts often small
            return ModelExtractor(backend=backend, prompt=prompt, seconds=600.0, limit_chars=24_000)
        case _:
            return ModelExtractor(backend=backend, prompt=prompt)


_WITHOUT_KEY = {
    "anthropic": "`kmem keys set anthropic`, or ANTHROPIC_API_KEY",
    "openai": "`kmem keys set openai`, or OPENAI_API_KEY; a server on this machine needs none: set `base_url` in [extractor]",
}


class OfflineRules:
    """The offline extractor. Its rules are only loaded when it is used, which most commands never do."""

    name = "offline"

    @cached_property
    def _rules(self) -> "OfflineExtractor":
        from kite_memory.distill.offline import OfflineExtractor

        return OfflineExtractor()

    @property
    def version(self) -> str:
        return self._rules.version

    def estimate(self, chunk: "Chunk") -> "Usage":
        from kite_memory.distill.extractor import Usage

        return Usage()

    def extract(self, chunk: "Chunk") -> "Outcome":
        return self._rules.extract(chunk)


def chunk_policy(config: Config, *, costs: bool) -> "ChunkPolicy":
    """Return when chunks end. If calls cost money, free rules decide which events are extracted without waiting for more."""
    from kite_memory.distill.condense import FREE, PAID, ChunkPolicy

    if not costs:
        return replace(FREE, idle=config.daemon.idle_seconds)

    def urgent(events: "Sequence[Event]") -> bool:
        from kite_memory.distill.offline import said_to_keep

        return said_to_keep(events)

    small = config.extractor.name == "openai" and _is_local(_openai_address(config))  # a context that is often small
    return replace(ChunkPolicy() if small else PAID, idle=config.daemon.idle_seconds, urgent=urgent)


def judge_of(config: Config, kept: Keys, outbox: "Outbox") -> "Judge | None":
    """Return the judge, or ``None`` if it is switched off or there is no model."""
    from kite_memory.distill.judge import ModelJudge

    return None if config.judge == "off" else _asking(ModelJudge, "judge", "judge", config, kept, outbox)


def answerer_of(config: Config, kept: Keys, outbox: "Outbox") -> "Answerer | None":
    """Return the model that writes answers, or ``None`` if there is no model."""
    from kite_memory.distill.answering import Answerer

    return _asking(Answerer, "ask", "answer", config, kept, outbox)


def polisher_of(config: Config, kept: Keys, outbox: "Outbox") -> "Polisher | None":
    """Return the model that rewords briefs, or ``None`` if there is no model."""
    from kite_memory.distill.answering import Polisher

    return _asking(Polisher, "polish", "polish", config, kept, outbox)


_Asker = TypeVar("_Asker")


def _asking(
    make: Callable[..., _Asker], prompt: str, purpose: "Purpose", config: Config, kept: Keys, outbox: "Outbox"
) -> "_Asker | None":
    backend = backend_of(config, kept)
    if backend is None:
        return None
    from kite_memory.distill.extractor import load_prompt

    return make(backend=backend, prompt=load_prompt(prompt_folders(config), prompt), allowance=_allowance(config, outbox, purpose))


def saving_of(config: Config, extractor: "Extractor", outbox: "Outbox") -> "LateSaveChecker":
    """Return the component that checks what agents save. A model extracts from transcripts if there is one."""

    def made() -> "SaveChecker":
        from kite_memory.distill.budget import Allowance
        from kite_memory.distill.saving import SaveChecker

        if extractor.name == "offline":
            return SaveChecker(rules=OfflineRules())
        allowance = Allowance(outbox=outbox, budget=budget_of(config), share=1.0, clock=time.time, purpose="save")
        return SaveChecker(rules=OfflineRules(), model=extractor, allowance=allowance)

    return LateSaveChecker(made)


class LateSaveChecker:
    """A `SaveChecker` that is only loaded when an agent saves something, which most commands never see."""

    def __init__(self, made: Callable[[], "SaveChecker"]) -> None:
        self._made = made

    @cached_property
    def _checker(self) -> "SaveChecker":
        return self._made()

    def item(self, item: "RecordItem", evidence: "Sequence[Event]", /) -> str:
        return self._checker.item(item, evidence)

    def text(self, text: str, /) -> str:
        return self._checker.text(text)

    def says_nothing(self, text: str, /) -> str:
        return self._checker.says_nothing(text)

    def origin_of(self, item: "RecordItem", heard: "Sequence[Event]", provenance: "Provenance | None", /) -> "Origin":
        return self._checker.origin_of(item, heard, provenance)

    def decompose(self, chunk: "Chunk") -> "tuple[Record, str]":
        return self._checker.decompose(chunk)


def team_recall_of(config: Config, kept: Keys) -> "TeamRecall | None":
    """Return the team's recall; ``None`` unless the team is to be queried at prompts and there is a token for it."""
    if config.team.ask != "prompt" or not config.team.bridge:
        return None
    from kite_memory.team.search import Team, TeamRecall

    token = kept.find("team-token")
    if token is None:
        return None
    _protect(config)
    return TeamRecall(Team(address=config.team.bridge, token=token.value))


def first_embedders(config: Config) -> tuple[Embedder, Embedder]:
    """Return the embedder of prompts, which needs no network, and the one whose vectors answer while it is new."""
    if config.embedder.name != "multilingual":
        return LocalEmbedder(), MultilingualEmbedder()
    if command := multilingual_command():
        raise ConfigInvalid("the embedder `multilingual` needs a package that is not installed", hint=f"`{command}`")
    return MultilingualEmbedder(), LocalEmbedder()


def meaning_of(embedder: Embedder) -> "ConversationEmbedder":
    """Return the embedder for conversations. A question is embedded as for notes, so that a prompt is embedded once for both."""
    from kite_memory.recall.lexical import essence
    from kite_memory.timeline.conversations import ConversationEmbedder

    return ConversationEmbedder(
        space=embedder.space.tag,
        of_texts=lambda texts: embedder.embed(texts, "document"),
        of_question=lambda text: embedder.embed([essence(text)], "query")[0],
    )


def second_embedder(config: Config, kept: Keys) -> Embedder | None:
    """Return the embedder used beside the one for prompts: Voyage's, or an extension's.

    ``None`` without a key, or if the configuration excludes it.
    """
    if config.embedder.name in ("local", "multilingual"):
        return None
    if config.embedder.name not in EMBEDDERS:
        from kite_memory import extensions

        _protect(config)
        return RedactingEmbedder(extensions.load("embedder", config.embedder.name)())
    key = kept.find("voyage")
    if key is None:
        if config.embedder.name == "voyage":
            raise ConfigInvalid("the embedder `voyage` has no key", hint="`kmem keys set voyage`, or VOYAGE_API_KEY")
        return None
    if command := voyage_command():
        if config.embedder.name == "voyage":
            raise ConfigInvalid("the embedder `voyage` needs a package that is not installed", hint=f"`{command}`")
        return None
    _protect(config)
    base_url = config.embedder.voyage_base_url or os.environ.get("VOYAGE_BASE_URL", "")
    return RedactingEmbedder(VoyageEmbedder(key.value, model=config.embedder.voyage_model, base_url=base_url))


def _protect(config: Config) -> None:
    """Have what `kmem keys protect` names redacted in this process: called before anything is made that sends text."""
    from kite_memory.protected import protect_process  # here: most commands send nothing

    protect_process(config.file)


def _redacting(config: Config, inner: "SendingBackend") -> RedactingBackend:
    _protect(config)
    return RedactingBackend(inner)


def backend_of(config: Config, kept: Keys) -> "Backend | None":
    """Return the configured model's backend, which redacts what it sends; ``None`` without a model or a key for it."""
    settings = config.extractor
    match settings.name:
        case "offline":
            return None
        case "auto" | "anthropic":
            key = kept.find("anthropic")
            if key is None:
                return None
            from kite_memory.distill.anthropic_api import AnthropicBackend

            return _redacting(
                config,
                AnthropicBackend(api_key=key.value, model=settings.model, prices=prices_of(config), base_url=settings.base_url),
            )
        case "claude-cli":
            from kite_memory.distill.claude_cli import ClaudeCliBackend

            return _redacting(
                config, ClaudeCliBackend(folder=config.state / "extractor", prices=prices_of(config), environment=dict(os.environ))
            )
        case "openai":
            key, address = kept.find("openai"), _openai_address(config)
            if key is None and not _is_local(address):
                return None
            from kite_memory.distill.openai_api import OpenAiBackend

            return _redacting(
                config,
                OpenAiBackend(
                    api_key=key.value if key else "", model=settings.openai_model, prices=prices_of(config), base_url=address
                ),
            )
        case _:  # an extension's extractor, which asks by itself
            return None


def batches_of(config: Config, kept: Keys) -> "Batches | None":
    """Return the service that answers in batches at half the price, or ``None`` if the configured model has none."""
    key = kept.find("anthropic") if config.extractor.name in ("auto", "anthropic") else None
    if key is None:
        return None
    from kite_memory.distill.anthropic_api import AnthropicBackend, AnthropicBatches

    _protect(config)
    settings = config.extractor
    live = AnthropicBackend(api_key=key.value, model=settings.model, prices=prices_of(config), base_url=settings.base_url)
    return RedactingBatches(AnthropicBatches(live))


def prices_of(config: Config) -> "Prices":
    """Return the prices that are set, else those of the model; for one that is not known here, those of an older Claude Haiku."""
    from kite_memory.distill.extractor import Prices

    settings, usual = config.extractor, _facts_of(config).prices
    return Prices(
        dollars_in=usual.dollars_in if settings.dollars_per_million_in is None else settings.dollars_per_million_in,
        dollars_out=usual.dollars_out if settings.dollars_per_million_out is None else settings.dollars_per_million_out,
    )


def _facts_of(config: Config) -> "ModelFacts":
    from kite_memory.distill.anthropic_api import facts_of

    return facts_of(config.extractor.model if config.extractor.name in ("auto", "anthropic") else "")


def tariff_of(config: Config) -> "Tariff":
    """Return what is known beforehand of the cost of any extraction call."""
    from kite_memory.distill.extractor import load_prompt
    from kite_memory.distill.model_extractor import Tariff

    prompt, facts = load_prompt(prompt_folders(config)), _facts_of(config)
    fixed = round((len(prompt.system) + len(json.dumps(prompt.schema))) / facts.chars)
    return Tariff(fixed=fixed, chars=facts.chars, cached=fixed >= facts.cached_from)


def _openai_address(config: Config) -> str:
    return config.extractor.base_url or os.environ.get("OPENAI_BASE_URL", "")


def _is_local(address: str) -> bool:
    from kite_memory.distill.transport import is_loopback

    return is_loopback(address)


def prompt_folders(config: Config) -> tuple[Path, Path]:
    return config.file.parent / "prompts", Path(asset_folder("prompts"))


def budget_of(config: Config) -> "Budget":
    from kite_memory.distill.budget import Budget

    return Budget(dollars=config.extractor.dollars_per_day, calls=config.extractor.calls_per_day)


def _allowance(config: Config, outbox: "Outbox", purpose: "Purpose") -> "Allowance":
    """Return the part of a day's budget for everything besides extraction."""
    from kite_memory.distill.budget import Allowance

    share = config.extractor.judge_share
    return Allowance(outbox=outbox, budget=budget_of(config), share=share, clock=time.time, purpose=purpose)


@contextmanager
def requests_of(services: "Services", tracer: "Tracer") -> "Iterator[Requests]":
    """Return a dry run of the configured models' requests; without a model, of those that one would get."""
    from tempfile import TemporaryDirectory

    from kite_memory.app.trace import Askers, Recorder, Requests
    from kite_memory.distill.answering import Answerer, Polisher
    from kite_memory.distill.budget import Allowance, Budget
    from kite_memory.distill.extractor import load_prompt
    from kite_memory.distill.judge import ModelJudge
    from kite_memory.distill.model_extractor import ModelExtractor
    from kite_memory.distill.outbox import Outbox

    config = services.config
    real = backend_of(config, keys_beside(config.file))
    recorder = Recorder(name=real.name if real else "no model is set up", model=real.model if real else "")
    backend = RedactingBackend(recorder)
    prompt = partial(load_prompt, prompt_folders(config))
    with TemporaryDirectory() as folder, closing(Outbox(Path(folder) / "outbox.sqlite")) as outbox:
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
            clock=utc_now,
        )
