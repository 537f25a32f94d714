"""Having an operation carried out: by the daemon where one runs, else in this process."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import orjson

from kite_memory import config
from kite_memory.config import Config
from kite_memory.daemon import client
from kite_memory.errors import DaemonRunning, DaemonUnreachable
from kite_memory.tools import wire
from kite_memory.tools.access import Asker
from kite_memory.tools.wire import Json
from kite_memory.wiring.queries import is_light, perform_light

if TYPE_CHECKING:
    from kite_memory.wiring.services import Services


_BRIDGE_PATIENCE = 60.0
_FRESH_SECONDS = 2.0
"""Without a daemon nobody tells us of what people do to the vault; so often, at most, is looked."""


class LocalBridge:
    """This machine's memory. Thread-safe. A daemon that comes or goes is noticed at the next call."""

    def __init__(self, settings: Config) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._closing = ExitStack()
        self._house: Services | None = None
        self._compared = 0.0

    def close(self) -> None:
        self._closing.close()

    def perform(self, tool: str, arguments: Json, asker: Asker) -> Json:
        body = wire.asked(tool, arguments, asker)
        try:
            answer = orjson.loads(client.call(self._settings.state, "bridge", body, _BRIDGE_PATIENCE))
        except DaemonUnreachable:
            answer = self._here().operations.perform("bridge", orjson.loads(body))
        return wire.result_of(answer)

    def _here(self) -> "Services":
        """With its index in step with the vault, as a daemon's is."""
        from kite_memory.wiring.services import open_services  # half a second, and only without a daemon

        with self._lock:
            if self._house is None:
                self._house = self._closing.enter_context(open_services(self._settings))
                self._house.init_vault()
            if time.monotonic() - self._compared > _FRESH_SECONDS:
                self._house.pipeline.compare_vault()
                self._compared = time.monotonic()
            return self._house


_PATIENCE = 90.0
"""Seconds: a question is answered by a model that may take sixty."""
_READING_PATIENCE = 10.0
_READING = frozenset({"search", "recall", "why", "show", "open", "status", "timeline", "resume", "threads", "how", "fix", "blame"})
_ANSWERED_FROM_CARDS = frozenset({"search", "ask"})
_CARD_ROUNDS = 3
"""Some two hundred milliseconds, where no daemon has made the cards: the newest first."""
_ANSWERED_FROM_THE_INDEX = frozenset({"search", "recall", "why", "ask", "review"})


def perform(op: str, **arguments: Any) -> Any:
    """The operation's JSON value. The daemon's errors arrive as `KiteError`, as if it had happened here.

    A daemon keeps its index in step with the vault; without one, that is done first where the answer rests on it.
    """
    import orjson

    from kite_memory.daemon import client

    settings = config.load()
    asked = {name: _as_text(value) for name, value in arguments.items()}
    patience = _READING_PATIENCE if op in _READING and not asked.get("polish") else _PATIENCE
    try:
        return orjson.loads(client.call(settings.state, op, orjson.dumps(asked), patience))
    except DaemonUnreachable:
        if is_light(op, asked):
            return perform_light(settings, op, asked)
        with house() as here:
            if op == "remember":
                here.init_vault()
            if op in _ANSWERED_FROM_THE_INDEX:
                catch_up(here)
            for _ in range(_CARD_ROUNDS if op in _ANSWERED_FROM_CARDS else 0):
                if not here.timeline.make_cards():
                    break
            return here.operations.perform(op, asked)


def catch_up(here: "Services") -> None:
    """Bring the index in step with what people did to the vault."""
    from kite_memory.cli.backfilling import working

    if not here.has_a_vault:
        return
    with working("indexing") as progress:
        here.pipeline.compare_vault(progress=progress)


def daemon_runs() -> bool:
    return daemon_version() is not None


def daemon_version() -> str | None:
    """Of the running daemon; empty for one of before daemons said it, ``None`` without one."""
    from kite_memory.daemon import client

    try:
        return client.call(config.load().state, "ping", b"", 2.0).decode("ascii", "replace")[:64]
    except DaemonUnreachable:
        return None


@contextmanager
def house() -> "Iterator[Services]":
    """Everything wired up in this process, and closed again."""
    from kite_memory.wiring.services import open_services

    with open_services(config.load()) as opened:
        yield opened


@contextmanager
def alone(settings: Config, *, instead: str) -> Iterator[None]:
    """While this lasts, no daemon and no other command of the kind works on the state folder.

    Raises `DaemonRunning`, with ``instead`` as the hint where it is a daemon that does.
    """
    from kite_memory.daemon.lock import DaemonLock, holder

    if daemon_runs():
        raise DaemonRunning("the daemon is running", hint=instead)
    try:
        lock = DaemonLock.take(settings.state)
    except DaemonRunning as error:
        pid = holder(settings.state) or "unknown"
        raise DaemonRunning(
            f"another kmem is at work here (pid {pid})", hint="wait for it; `kmem status` shows how far it is"
        ) from error
    with lock:
        yield


def _as_text(value: Any) -> Any:
    """Shells hand on bytes that are no text as halves of surrogate pairs, which nothing else takes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    return value
