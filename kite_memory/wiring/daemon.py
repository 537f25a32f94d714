"""The daemon process: its components, requests, log and service unit."""

import json
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from kite_memory import __version__, endpoint, paths
from kite_memory.app.code_anchors import CodeAnchors
from kite_memory.app.consolidation import Consolidation
from kite_memory.app.session_context import session_of
from kite_memory.app.usage_report import segment
from kite_memory.config import Config, LogLevel
from kite_memory.daemon.protocol import DaemonLock, HeldReply, Ok
from kite_memory.errors import UsageError, VaultMissing, VaultReadOnly
from kite_memory.log_lines import BACKUPS, LARGEST, dated
from kite_memory.recall.embedder import Embedder
from kite_memory.redaction import redact
from kite_memory.system.private_files import make_private_folder, replace_file, when_not_in_use
from kite_memory.system.sqlite import broken
from kite_memory.wiring.launch import service_command, service_environment
from kite_memory.wiring.services import Services, open_services, report_error

if TYPE_CHECKING:
    from kite_memory.daemon.daemon import Daemon
    from kite_memory.daemon.protocol import HeldReply, Reply, Request
    from kite_memory.daemon.service_units import Manager, Service

log = logging.getLogger("kite_memory")


def run_daemon(config: Config, lock: DaemonLock) -> int:
    """Run the daemon until it is stopped, and return the exit code. The caller holds the ``lock`` meanwhile."""
    from kite_memory.daemon.daemon import Daemon, share_heaps
    from kite_memory.daemon.server import Server

    share_heaps()
    _log_to(daemon_log(config), config.daemon.log_level)
    for name in broken(config.state):
        log.warning("%s has changed since it was closed, although nothing was written to it: see `kmem verify`", name)
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

    def still_ours() -> bool:
        if not lock.still_holds(config.state):
            return False
        if because := server.listen_again():
            log.warning("%s; no client reaches the daemon until it can listen again", because)
        return True

    with open_services(config, running=running, idle=lambda: daemon.idle) as services:
        services.outbox.recover()
        try:
            services.init_vault()
        except (VaultMissing, VaultReadOnly) as error:
            log.warning("%s", error)
        daemon = Daemon(
            pipeline=services.pipeline,
            sources=services.sources,
            vault=config.vault,
            compare_seconds=config.daemon.compare_seconds,
            still_ours=still_ours,
            warm=partial(_warm, services.embedder),
            embed_bundles=lambda: services.timeline.cards.rebuild() or services.timeline.vectors.embed(services.meaning),
            review=lambda: services.operations.perform("review_page", {}),
            maintain=partial(_maintain, services.consolidating, services.anchors),
        )
        for number in (signal.SIGTERM, signal.SIGINT):  # before other processes can find this one and end it
            signal.signal(number, lambda *_: daemon.stop())
        _store_patience(config.state, services.hooks.patience)
        handle = partial(_handle, services, daemon)
        server = Server(config.state, handle, report=report_error, lost=daemon.fail, urgent=_AT_ONCE)
        with server:
            log.info("started, pid %d", os.getpid())
            code = daemon.run(_end_in_time)
        log.info("stopped")
        return code


_LONGEST_END = 8.0
"""Seconds after which a daemon that stops ends, whatever it is doing. Somebody waits for that: `kmem up`, or the system's end."""


def _end_in_time(code: int) -> None:
    """Let the process end soon, even if a thread holds what is to be closed. Every step is committed, so nothing is lost."""

    def end() -> None:
        log.warning("ended before all work had; it is done again after the next start")
        os._exit(code)

    timer = threading.Timer(_LONGEST_END, end)
    timer.daemon = True
    timer.start()


def _maintain(consolidating: Consolidation, anchors: CodeAnchors, quiet_for: float) -> None:
    consolidating.maintain(quiet_for=quiet_for)
    anchors.maintain(quiet_for=quiet_for)


_AT_ONCE = frozenset({"hook", "ping", "stop", "look", "statusline", "compared"})
"""Requests that take little time, and for which an agent or the user waits."""


def _warm(embedder: Embedder) -> None:
    """Load what is otherwise loaded on first use, before the first prompt arrives."""
    from kite_memory.distill.asked_to_keep import may_ask

    embedder.embed(["ready"], "query")
    redact("ready")
    may_ask("ready")


def _store_patience(state: Path, seconds: float) -> None:
    """Store for the hook how long it may wait. Without a longer time it gives up early."""
    file = Path(endpoint.patience_file(str(state)))
    if seconds:
        replace_file(file, f"{round(seconds * 1000)}\n".encode())
    else:
        with suppress(PermissionError):  # a hook of Windows that reads it
            when_not_in_use(lambda: file.unlink(missing_ok=True))


def _handle(services: Services, daemon: "Daemon", request: "Request") -> "Reply | HeldReply":
    match request.name:
        case "hook":
            said, delivery = services.hooks.prepare(request.body, request.variant, silent=not daemon.has_compared())
            reply = Ok(body=said.encode("utf-8", "replace"))
            return HeldReply(reply=reply, arrived=delivery.arrived, lost=delivery.lost) if delivery else reply
        case "statusline":
            session = session_of(request.body)
            figures = replace(services.status.figures(session), took_ms=services.hooks.took_ms(session))
            return Ok(body=segment(figures).encode())
        case "compared":
            return Ok(body=b"yes" if daemon.has_compared() else b"")
        case "ping":
            return Ok(body=__version__.encode("ascii"))
        case "stop":
            daemon.stop()
            return Ok()
        case "look":
            daemon.look_again()
            return Ok()
        case op:
            return Ok(body=_json(services.operations.perform(op, _arguments(request.body))))


def _arguments(body: bytes) -> dict[str, Any]:
    try:
        arguments = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise UsageError("arguments are a JSON object")
    return arguments


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # a path that is not valid text: the slower writer escapes it
        return json.dumps(value).encode("ascii")


def daemon_log(config: Config) -> Path:
    return config.state / "logs" / "daemon.log"


def _log_to(file: Path, level: LogLevel) -> None:
    """Open the log. Log messages never contain text of a transcript, a prompt or a note."""
    from logging.handlers import RotatingFileHandler  # imports sockets

    make_private_folder(file.parent)
    handler = RotatingFileHandler(file, maxBytes=LARGEST, backupCount=BACKUPS, encoding="utf-8")
    handler.setFormatter(dated())
    log.addHandler(handler)
    log.setLevel(level.upper())


def resident_mb() -> float:
    """Return the memory of this process in megabytes; the most it ever had, if the system does not report the current size."""
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
    """Return the daemon's service and this machine's service manager."""
    from kite_memory.app.syncing import shared_folder
    from kite_memory.daemon.service_units import Service, namespaces_allowed, this_manager

    socket = Path(paths.socket_path(str(config.state)))
    service = Service(
        command=service_command(),
        environment=service_environment(config),
        writable=tuple(
            dict.fromkeys((config.vault, config.state, config.file.parent, socket.parent, *shared_folder(config.sync.target)))
        ),
        runs_claude=config.extractor.name == "claude-cli",
        namespaces=namespaces_allowed(),
    )
    return service, this_manager(home=Path.home(), log=config.state / "logs" / "launchd.log")
