"""Performing of operations: by the daemon if one runs, else in this process.

Opening all `Services` takes longer than a query that needs only the timeline or the vault, so those have a way of their own.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_never

from kite_memory import config
from kite_memory.config import Config
from kite_memory.errors import DaemonRunning, DaemonUnreachable, KiteError
from kite_memory.system import utc_now

if TYPE_CHECKING:
    from kite_memory.distill.answering import Answerer
    from kite_memory.keys import Keys
    from kite_memory.model.event import Event, EvidenceReference
    from kite_memory.timeline.store import Timeline
    from kite_memory.tools.declarations import Json
    from kite_memory.tools.store import Asker
    from kite_memory.vault import Vault
    from kite_memory.wiring.services import Services

_HANDLE = 8
"""Length of a conversation's short name."""
_PATIENCE = 90.0
"""Seconds to wait for a reply: a model may take sixty to answer a question."""
_READING_PATIENCE = 10.0
_SYNC_PATIENCE = 7_200.0
"""A first exchange may hold years, over a slow line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operation:
    """How an operation is performed.

    ``reads`` names the part that is enough to perform it without a daemon; an empty one takes all `Services`. ``from_index`` means
    that the answer depends on the index, ``from_files`` that it rests on the vault's ledger and files or on the timeline, so that
    the index need not be up to date. ``on_first_page`` are those that the page begins with. ``makes_vault`` is for what may be
    asked before there is a vault. ``patience`` is how many seconds the daemon may take.
    """

    reads: Literal["", "timeline", "notes", "pages", "index", "prompts"] = ""
    from_index: bool = False
    from_files: bool = False
    on_first_page: bool = False
    makes_vault: bool = False
    patience: float = _PATIENCE


_reading = partial(_Operation, patience=_READING_PATIENCE)
_OTHER = _Operation()
_OPERATIONS: Mapping[str, _Operation] = {
    "timeline": _reading(reads="timeline", from_files=True, on_first_page=True),
    "threads": _reading(reads="timeline", from_files=True),
    "became": _reading(reads="timeline", from_files=True),
    "resume": _reading(reads="timeline"),
    "how": _reading(reads="timeline"),
    "fix": _reading(reads="timeline"),
    "blame": _reading(reads="timeline"),
    "show": _reading(reads="notes", from_files=True),
    "open": _reading(reads="notes", from_files=True),
    "notes": _reading(reads="notes", from_files=True, on_first_page=True),
    "around": _reading(reads="notes", from_files=True),
    "graph": _Operation(reads="pages"),
    "search": _reading(reads="index", from_index=True),
    "ask": _Operation(reads="index", from_index=True),
    "why": _reading(reads="prompts", from_index=True, from_files=True, on_first_page=True),
    "helped": _reading(reads="prompts", from_files=True, on_first_page=True),
    "recall": _reading(from_index=True),
    "review": _Operation(from_index=True),
    "status": _reading(from_files=True),
    "remember": _Operation(makes_vault=True),
    "sync": _Operation(makes_vault=True, patience=_SYNC_PATIENCE),
}
"""The operations that are not performed as `_OTHER`."""


def _properties(op: str) -> _Operation:
    return _OPERATIONS.get(op, _OTHER)


class _Behind(Exception):
    """Links of the vault must be mended first, which takes all services."""


def perform_light(config: Config, op: str, arguments: Mapping[str, Any]) -> Any:
    """Perform the operation and return its JSON value. Raises `_Behind` if notes were deleted or moved meanwhile."""
    with ExitStack() as opened:
        match _properties(op).reads:
            case "timeline":
                operations = _timeline_queries(config, op, arguments, opened)
            case "notes":
                operations = _note_queries(config, opened)
            case "pages":
                operations = _page_queries(config, opened)
            case "index":
                operations = _index_queries(config, op, opened)
            case "prompts":
                operations = _prompt_queries(config, opened)
            case "":
                raise ValueError(f"{op} takes all services")
            case unknown:
                assert_never(unknown)
        return operations[op](**arguments)


def _timeline_queries(config: Config, op: str, arguments: Mapping[str, Any], opened: ExitStack) -> Mapping[str, Callable[..., Any]]:
    from kite_memory.app.timeline_queries import EmptyVault, TimelineQueries
    from kite_memory.timeline.store import Timeline

    timeline = opened.enter_context(closing(Timeline(config.state / "timeline.sqlite")))
    if op != "timeline" or not arguments.get("session"):
        return TimelineQueries(timeline=timeline, notes=EmptyVault()).operations()
    from kite_memory.vault import Vault  # imports YAML

    vault = opened.enter_context(Vault(config.vault, config.state / "vault.sqlite"))
    return TimelineQueries(timeline=timeline, notes=vault.notes).operations()


def _note_queries(config: Config, opened: ExitStack) -> Mapping[str, Callable[..., Any]]:
    from kite_memory.app.note_view import NoteView
    from kite_memory.vault import Vault

    vault = opened.enter_context(Vault(config.vault, config.state / "vault.sqlite"))
    return NoteView(vault=vault, clock=utc_now, conversation=partial(_conversation, config, opened)).operations()


def _page_queries(config: Config, opened: ExitStack) -> Mapping[str, Callable[..., Any]]:
    from kite_memory.app.vault_pages import VaultPages
    from kite_memory.vault import Vault

    vault = opened.enter_context(Vault(config.vault, config.state / "vault.sqlite"))
    return VaultPages(vault=vault, clock=utc_now).operations()


def _conversation(config: Config, opened: ExitStack, called: str) -> str:
    """Return the conversation of this citation, as with all services. The timeline is only opened for what may be a citation."""
    if "#" not in called and len(called) != _HANDLE:
        return ""
    from kite_memory.app.session_context import conversation
    from kite_memory.timeline.store import Timeline

    return conversation(opened.enter_context(closing(Timeline(config.state / "timeline.sqlite"))), called)


def _index_queries(config: Config, op: str, opened: ExitStack) -> Mapping[str, Callable[..., Any]]:
    from kite_memory.keys import keys_beside
    from kite_memory.recall.index import Index
    from kite_memory.recall.search import IndexedNotes
    from kite_memory.timeline.store import Timeline
    from kite_memory.vault import Vault
    from kite_memory.wiring.models import first_embedders, meaning_of, second_embedder

    keys = keys_beside(config.file)
    timeline = opened.enter_context(closing(Timeline(config.state / "timeline.sqlite")))
    vault = opened.enter_context(Vault(config.vault, config.state / "vault.sqlite"))
    embedder, former = first_embedders(config)
    index = opened.enter_context(
        closing(Index(config.state / "index", embedder=embedder, beside=second_embedder(config, keys), former=former))
    )
    if _changes_read(vault) and not index.is_in_step(vault.notes):
        from kite_memory.app.note_indexer import said_about
        from kite_memory.cli.console import working

        with working("indexing") as progress:
            index.refresh(vault.notes, evidence=partial(said_about, timeline.events), progress=progress)
    _make_cards(timeline)
    recall, meaning = IndexedNotes(index=index, clock=utc_now), meaning_of(embedder)
    if op == "ask":
        from kite_memory.app.question_answering import QuestionAnswering
        from kite_memory.protected import protect_process

        protect_process(config.file)
        asking = QuestionAnswering(
            timeline=timeline,
            notes=vault.notes,
            recall=recall,
            answerer=partial(_answerer, config, keys, opened),
            clock=utc_now,
            meaning=meaning,
        )
        return asking.operations()
    from kite_memory.app.note_view import NoteView
    from kite_memory.app.searching import Searching

    searching = Searching(
        timeline=timeline,
        known=vault.known,
        recall=recall,
        meaning=meaning,
        note_view=NoteView(vault=vault, clock=utc_now),
        clock=utc_now,
    )
    return {"search": searching.search}


def _answerer(config: Config, keys: "Keys", opened: ExitStack) -> "Answerer | None":
    """Return the model that writes answers, with the outbox opened that books its calls; ``None`` if there is no model."""
    from kite_memory.wiring.models import answerer_of, backend_of

    if backend_of(config, keys) is None:
        return None
    from kite_memory.distill.outbox import Outbox

    return answerer_of(config, keys, opened.enter_context(closing(Outbox(config.state / "outbox.sqlite"))))


def _prompt_queries(config: Config, opened: ExitStack) -> Mapping[str, Callable[..., Any]]:
    from kite_memory.app.note_view import NoteView
    from kite_memory.app.usage_report import ShownNotes
    from kite_memory.recall.session_memory import SessionMemory
    from kite_memory.timeline.store import Timeline
    from kite_memory.vault import Vault

    timeline = opened.enter_context(closing(Timeline(config.state / "timeline.sqlite")))
    vault = opened.enter_context(Vault(config.vault, config.state / "vault.sqlite"))
    memory = opened.enter_context(closing(SessionMemory(config.state / "index" / "shown.sqlite")))
    _changes_read(vault)

    def saved(reference: "EvidenceReference") -> "Sequence[Event]":
        from kite_memory.tools.local_conversations import LocalConversations  # seldom: most notes are of transcripts

        return LocalConversations(vault=vault, folder=config.state / "conversations", index_notes=bool).evidence(reference)

    view = NoteView(vault=vault, clock=utc_now)
    return ShownNotes(timeline=timeline, known=vault.known, memory=memory, note_view=view, saved=saved, clock=utc_now).operations()


def _changes_read(vault: "Vault") -> bool:
    """Read the user's changes to the vault, and return whether they may be indexed: those of a frozen vault may not.

    Raises `_Behind` if links must be mended.
    """
    if not (vault.root.is_dir() or vault.known.all()):
        return False
    try:
        with vault.lock:
            comparison = vault.scanner.compare()
            if comparison.frozen:
                return False
            if comparison.deleted or vault.scanner.links_outdated:
                raise _Behind
            vault.relations.bring_in_line()
    except KiteError as error:
        raise _Behind from error
    return True


def keys_at_hand(config: Config) -> list[str]:
    """Return the names of the keys that are set, on which the extractor and the embedder depend."""
    from kite_memory.keys import keys_beside

    kept = keys_beside(config.file)
    return [name for name in ("anthropic", "openai", "voyage") if kept.find(name) is not None]


def keep_answer(config: Config, name: str, answer: Any, until: float) -> None:
    """Keep an answer for the case that nothing has changed when it is asked for again. All databases must be closed."""
    from kite_memory.app.kept_answers import KeptAnswer, inputs_digest

    found = inputs_digest(config, utc_now(), keys=keys_at_hand(config))
    with suppress(OSError):  # it is only quicker with it
        KeptAnswer(found=found, answer=answer, until=until).keep(config.state, name)


def kept_status(config: Config) -> dict[str, Any] | None:
    """Return the status while nothing has changed since the last one, with transcripts compared now; ``None`` otherwise."""
    from kite_memory.app.kept_answers import kept_answer
    from kite_memory.app.survey import TranscriptSurvey, sources_json
    from kite_memory.daemon.protocol import absent
    from kite_memory.timeline.rows import ReadFiles
    from kite_memory.timeline.schema import TimelineDatabase
    from kite_memory.timeline.summaries import Sessions
    from kite_memory.wiring import sources_of

    status = kept_answer(config, "status", utc_now(), keys=keys_at_hand(config))
    if status is None:
        return None
    with closing(TimelineDatabase(config.state / "timeline.sqlite")) as database:
        sources = sources_of(config, projects=Sessions(database).folders)
        files = ReadFiles(database)
        survey = TranscriptSurvey(sources=sources, files=files, passed_over=tuple)
        status["sources"] = sources_json(survey.now(), survey.places(), files.tallies())
    return {**status, "daemon": absent(config.state)}


def status_alone(config: Config) -> dict[str, Any]:
    """Return the status of a machine on which no daemon runs."""
    status = kept_status(config)
    if status is None:
        status, until = _new_status(config)
        keep_answer(config, "status", status, until)
    return status


def _new_status(config: Config) -> tuple[dict[str, Any], float]:
    """Return the status, made from what it needs alone, and until when it holds."""
    from kite_memory.app.survey import TranscriptSurvey, passed_over, sessions_behind
    from kite_memory.app.usage_report import ExtractorState, StatusReport
    from kite_memory.daemon.protocol import absent
    from kite_memory.distill.extractor import NoKeyExtractor
    from kite_memory.distill.outbox import Outbox
    from kite_memory.distill.scheduler import Idle
    from kite_memory.keys import keys_beside
    from kite_memory.recall.index import Index
    from kite_memory.recall.session_memory import SessionMemory
    from kite_memory.timeline.store import Timeline
    from kite_memory.vault import Vault
    from kite_memory.wiring import sources_of
    from kite_memory.wiring.models import extractor_of, first_embedders, second_embedder

    keys = keys_beside(config.file)
    extractor = extractor_of(config, keys)
    embedder, former = first_embedders(config)
    beside = second_embedder(config, keys)
    with ExitStack() as opened:
        timeline = opened.enter_context(closing(Timeline(config.state / "timeline.sqlite")))
        outbox = opened.enter_context(closing(Outbox(config.state / "outbox.sqlite")))
        vault = opened.enter_context(Vault(config.vault, config.state / "vault.sqlite", clock=utc_now))
        index = opened.enter_context(closing(Index(config.state / "index", embedder=embedder, beside=beside, former=former)))
        report = StatusReport(
            survey=TranscriptSurvey(
                sources=sources_of(config, projects=timeline.sessions.folders),
                files=timeline.files,
                passed_over=partial(passed_over, outbox.formed, timeline.events),
            ),
            open_count=partial(sessions_behind, outbox.formed, timeline.sessions),
            files=timeline.files,
            outbox=outbox,
            vault=vault,
            index=index,
            memory=opened.enter_context(closing(SessionMemory(config.state / "index" / "shown.sqlite"))),
            extractor=ExtractorState(
                name=extractor.name,
                missing_key=extractor.missing_key if isinstance(extractor, NoKeyExtractor) else None,
                budget_dollars=config.extractor.dollars_per_day if extractor.name != "offline" else 0.0,
                idle=partial(Idle, until=None, reason=""),
            ),
            daemon=partial(absent, config.state),
            clock=utc_now,
        )
        return report.status(), index.columns().next_expiry(utc_now().timestamp())


_BRIDGE_PATIENCE = 60.0
_FRESH_SECONDS = 2.0
"""Least seconds between two comparisons of the vault without a daemon, which would report changes."""


class LocalMemory:
    """This machine's memory. Thread-safe. A daemon that starts or ends is noticed at the next call."""

    def __init__(self, settings: Config, *, makes_vault: bool = True) -> None:
        """Create it. With ``makes_vault``, a missing vault is made if there never was one."""
        self._settings = settings
        self._makes_vault = makes_vault
        self._lock = threading.Lock()
        self._closing = ExitStack()
        self._services: Services | None = None
        self._compared = self._read = 0.0

    def starting(self) -> str:
        """Return an empty string: it is always available, unlike a team's store."""
        return ""

    def health(self) -> str:
        return ""

    def close(self) -> None:
        self._closing.close()

    def perform(self, tool: str, arguments: "Json", asker: "Asker") -> "Json":
        import orjson

        from kite_memory.daemon import protocol
        from kite_memory.tools import declarations  # brings redaction along, which most commands do not need

        body = declarations.request_body(tool, arguments, asker)
        try:
            answer = orjson.loads(protocol.call(self._settings.state, "bridge", body, _BRIDGE_PATIENCE))
        except DaemonUnreachable:
            answer = self._here().operations.perform("bridge", orjson.loads(body))
        return declarations.result_of(answer)

    def ask(self, op: str, **arguments: Any) -> Any:
        """Perform an operation and return its JSON value, as `perform` below, with services that stay open."""
        import orjson

        from kite_memory.daemon import protocol
        from kite_memory.text.quoting import mended

        asked = {name: mended(value) for name, value in arguments.items()}
        try:
            return orjson.loads(protocol.call(self._settings.state, op, orjson.dumps(asked), _properties(op).patience))
        except DaemonUnreachable:
            if self._services is None and not self._makes_vault and (answer := self._first_answer(op, asked)) is not None:
                return answer
            return self._here(op).operations.perform(op, asked)

    def prepare(self) -> None:
        """Load what the first page needs, most of it modules, while the user's browser opens."""
        with suppress(Exception):  # at the edge of a thread: the page itself reports what is wrong
            if daemon_version() is None:
                for op in ("status", *(op for op, each in _OPERATIONS.items() if each.on_first_page)):
                    self._first_answer(op, {})

    def _first_answer(self, op: str, asked: Mapping[str, Any]) -> Any:
        """Return what the first page shows, while nothing has changed; ``None`` for anything else, which opens all services."""
        with self._lock:  # each opens the vault for itself, and may write what the user changed
            if op == "status":
                return kept_status(self._settings)
            if _properties(op).on_first_page:
                with suppress(_Behind):
                    return perform_light(self._settings, op, asked)
        return None

    def _here(self, op: str = "") -> "Services":
        """Return the opened services, with the vault's state up to date for the operation, and the index if it may need that."""
        from kite_memory.wiring.services import open_services  # half a second: only without a daemon

        with self._lock:
            if self._services is None:
                self._services = self._closing.enter_context(open_services(self._settings))
                if self._makes_vault:
                    self._services.init_vault()
            from_files = _properties(op).from_files
            if self._services.has_a_vault and time.monotonic() - (self._read if from_files else self._compared) > _FRESH_SECONDS:
                if not from_files:
                    self._services.pipeline.compare_vault()
                    self._compared = time.monotonic()
                elif op != "status":  # which reads the user's changes itself
                    with suppress(KiteError):  # the operation reports what is wrong
                        self._services.pipeline.read_vault()
                self._read = time.monotonic()
            return self._services


_CARD_ROUNDS = 3
"""Rounds of making cards, newest first, if no daemon has made them: some two hundred milliseconds."""


def perform(op: str, **arguments: Any) -> Any:
    """Perform an operation and return its JSON value. The daemon's errors are raised as `KiteError`, as in this process.

    A daemon keeps its index in step with the vault; without one, the index is updated first if the answer depends on it.
    """
    import orjson

    from kite_memory.daemon import protocol
    from kite_memory.text.quoting import mended

    settings = config.load()
    asked = {name: mended(value) for name, value in arguments.items()}
    properties = _properties(op)
    rewords = bool(asked.get("polish"))  # a model is asked
    try:
        patience = _PATIENCE if rewords else properties.patience
        return orjson.loads(protocol.call(settings.state, op, orjson.dumps(asked), patience))
    except DaemonUnreachable:
        if properties.reads and not rewords:
            with suppress(_Behind):
                return perform_light(settings, op, asked)
        if op == "status":
            return status_alone(settings)
        with services() as here:
            if properties.makes_vault:
                here.init_vault()
            if properties.from_index:
                catch_up(here)
            if properties.reads == "index":
                _make_cards(here.timeline)
            return here.operations.perform(op, asked)


def _make_cards(timeline: "Timeline") -> None:
    for _ in range(_CARD_ROUNDS):
        if not timeline.cards.rebuild():
            return


def catch_up(here: "Services") -> None:
    """Update the index with the user's changes to the vault."""
    from kite_memory.cli.console import working

    if not here.has_a_vault:
        return
    with working("indexing") as progress:
        here.pipeline.compare_vault(progress=progress)


def daemon_runs(state: Path | None = None) -> bool:
    return daemon_version(state) is not None


def daemon_version(state: Path | None = None) -> str | None:
    """Return the running daemon's version; empty for an old one that does not report it, ``None`` without a daemon."""
    from kite_memory.daemon import protocol

    try:
        return protocol.call(state or config.load().state, "ping", b"", 5.0).decode("ascii", "replace")[:64]
    except DaemonUnreachable:
        return None


@contextmanager
def services() -> "Iterator[Services]":
    """Open all services in this process, and close them again."""
    from kite_memory.wiring.services import open_services

    with open_services(config.load()) as opened:
        yield opened


@contextmanager
def alone(settings: Config, *, instead: str) -> Iterator[None]:
    """Hold the lock of the state folder, so that no daemon and no other such command uses it.

    Raises `DaemonRunning`, with ``instead`` as the hint if a daemon holds the lock.
    """
    from kite_memory.daemon.protocol import DaemonLock, holder

    if daemon_runs():
        raise DaemonRunning("the daemon is running", hint=instead)
    try:
        lock = DaemonLock.take(settings.state)
    except DaemonRunning as error:
        pid = holder(settings.state) or "unknown"
        raise DaemonRunning(
            f"another kmem process (pid {pid}) is using the memory", hint="wait for it; `kmem status` shows its progress"
        ) from error
    with lock:
        yield
