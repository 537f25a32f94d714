"""Performing of operations: by the daemon if one runs, else in this process.

Opening all `Services` takes longer than a query that needs only the timeline or the vault, so those have a way of their own.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

from kite_memory import config
from kite_memory.config import Config
from kite_memory.errors import DaemonRunning, DaemonUnreachable

if TYPE_CHECKING:
    from kite_memory.tools.declarations import Json
    from kite_memory.tools.store import Asker
    from kite_memory.wiring.services import Services

_OF_THE_TIMELINE = frozenset({"timeline", "resume", "threads", "how", "fix", "blame", "became"})
_OF_THE_VAULT = frozenset({"show", "open", "notes", "around", "graph"})


def is_light(op: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether `perform_light` can perform the operation: not one that a model is asked to reword."""
    return op in _OF_THE_TIMELINE | _OF_THE_VAULT and not arguments.get("polish")


def perform_light(config: Config, op: str, arguments: Mapping[str, Any]) -> Any:
    """Perform the operation and return its JSON value."""
    with ExitStack() as opened:
        operations = _timeline_queries if op in _OF_THE_TIMELINE else _vault_queries
        return operations(config, op, arguments, opened)[op](**arguments)


def _timeline_queries(config: Config, op: str, arguments: Mapping[str, Any], opened: ExitStack) -> Mapping[str, Callable[..., Any]]:
    from kite_memory.app.timeline_queries import NoShelf, TimelineQueries
    from kite_memory.timeline.store import Timeline

    timeline = opened.enter_context(closing(Timeline(config.state / "timeline.sqlite")))
    if op != "timeline" or not arguments.get("session"):
        return TimelineQueries(timeline=timeline, notes=NoShelf()).operations()
    from kite_memory.vault import Vault  # imports YAML

    vault = opened.enter_context(Vault(config.vault, config.state / "vault.sqlite"))
    return TimelineQueries(timeline=timeline, notes=vault.notes).operations()


def _vault_queries(config: Config, op: str, arguments: Mapping[str, Any], opened: ExitStack) -> Mapping[str, Callable[..., Any]]:
    from datetime import UTC, datetime
    from functools import partial

    from kite_memory.vault import Vault

    clock = partial(datetime.now, UTC)
    vault = opened.enter_context(Vault(config.vault, config.state / "vault.sqlite"))
    if op in ("show", "open", "notes", "around"):
        from kite_memory.app.note_view import NoteView

        return NoteView(vault=vault, clock=clock).operations()
    from kite_memory.app.vault_pages import VaultPages

    return VaultPages(vault=vault, clock=clock).operations()


_BRIDGE_PATIENCE = 60.0
_FRESH_SECONDS = 2.0
"""Least seconds between two comparisons of the vault without a daemon, which would report changes."""


class LocalBridge:
    """This machine's memory. Thread-safe. A daemon that starts or ends is noticed at the next call."""

    def __init__(self, settings: Config, *, makes_vault: bool = True) -> None:
        """Create it. With ``makes_vault``, a missing vault is made if there never was one."""
        self._settings = settings
        self._makes_vault = makes_vault
        self._lock = threading.Lock()
        self._closing = ExitStack()
        self._house: Services | None = None
        self._compared = 0.0

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

        asked = {name: _as_text(value) for name, value in arguments.items()}
        try:
            return orjson.loads(protocol.call(self._settings.state, op, orjson.dumps(asked), _patience(op)))
        except DaemonUnreachable:
            return self._here().operations.perform(op, asked)

    def _here(self) -> "Services":
        """Return the opened services, with the index in step with the vault as in a daemon."""
        from kite_memory.wiring.services import open_services  # half a second: only without a daemon

        with self._lock:
            if self._house is None:
                self._house = self._closing.enter_context(open_services(self._settings))
                if self._makes_vault:
                    self._house.init_vault()
            if self._house.has_a_vault and time.monotonic() - self._compared > _FRESH_SECONDS:
                self._house.pipeline.compare_vault()
                self._compared = time.monotonic()
            return self._house


_PATIENCE = 90.0
"""Seconds to wait for a reply: a model may take sixty to answer a question."""
_LONG = {"sync": 7_200.0}
"""A first exchange may hold years, over a slow line."""
_READING_PATIENCE = 10.0
_READING = frozenset(
    {"search", "recall", "why", "show", "open", "notes", "around", "helped", "status", "timeline", "resume", "threads"}
    | {"how", "fix", "blame", "became"}
)
_ANSWERED_FROM_CARDS = frozenset({"search", "ask"})
_CARD_ROUNDS = 3
"""Rounds of making cards, newest first, if no daemon has made them: some two hundred milliseconds."""
_ANSWERED_FROM_THE_INDEX = frozenset({"search", "recall", "why", "ask", "review"})


def perform(op: str, **arguments: Any) -> Any:
    """Perform an operation and return its JSON value. The daemon's errors are raised as `KiteError`, as in this process.

    A daemon keeps its index in step with the vault; without one, the index is updated first if the answer depends on it.
    """
    import orjson

    from kite_memory.daemon import protocol

    settings = config.load()
    asked = {name: _as_text(value) for name, value in arguments.items()}
    try:
        return orjson.loads(protocol.call(settings.state, op, orjson.dumps(asked), _patience(op, polish=bool(asked.get("polish")))))
    except DaemonUnreachable:
        if is_light(op, asked):
            return perform_light(settings, op, asked)
        with services() as here:
            if op in ("remember", "sync"):
                here.init_vault()
            if op in _ANSWERED_FROM_THE_INDEX:
                catch_up(here)
            for _ in range(_CARD_ROUNDS if op in _ANSWERED_FROM_CARDS else 0):
                if not here.timeline.cards.make():
                    break
            return here.operations.perform(op, asked)


def _patience(op: str, *, polish: bool = False) -> float:
    return _READING_PATIENCE if op in _READING and not polish else _LONG.get(op, _PATIENCE)


def catch_up(here: "Services") -> None:
    """Update the index with the user's changes to the vault."""
    from kite_memory.cli.backfilling import working

    if not here.has_a_vault:
        return
    with working("indexing") as progress:
        here.pipeline.compare_vault(progress=progress)


def daemon_runs() -> bool:
    return daemon_version() is not None


def daemon_version() -> str | None:
    """Return the running daemon's version; empty for an old one that does not report it, ``None`` without a daemon."""
    from kite_memory.daemon import protocol

    try:
        return protocol.call(config.load().state, "ping", b"", 2.0).decode("ascii", "replace")[:64]
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


def _as_text(value: Any) -> Any:
    """Return the value with invalid characters replaced: shells pass bytes that are not text as lone surrogates."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    return value
