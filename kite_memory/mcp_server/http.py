"""MCP over streamable HTTP. Every request stands alone, so a restart, or a second server beside this one, loses nothing."""

import asyncio
import re
import socket
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h11
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn.protocols.http.h11_impl import H11Protocol

from kite_memory.mcp_server.auth_middleware import (
    ADMITTED,
    LONGEST_BODY,
    Admission,
    Admitted,
    Audit,
    AuthMiddleware,
    Buckets,
    Metrics,
    MetricsMissing,
    Readiness,
)
from kite_memory.mcp_server.server import Report, client_of, server_over
from kite_memory.tools.declarations import FinishedCall, Perform, observed
from kite_memory.tools.store import Asker, NotAllowed

_KNOWN = (
    ("claude-code", "claude-code"),
    ("claude", "claude"),
    ("codex", "codex"),
    ("gemini-cli", "gemini-cli"),
    ("cursor", "cursor"),
    ("cline", "cline"),
    ("roo", "roo"),
    ("visual studio code", "vscode"),
    ("vscode", "vscode"),
    ("opencode", "opencode"),
)
_LONGEST = 40
_UNFIT = re.compile(r"[^a-z0-9._-]+")


def agent_of(client: str) -> str:
    """Return the agent's known name for a client, or the client's own name reduced to safe characters; empty without a name."""
    name = client[:200].strip().lower()
    for start, agent in _KNOWN:
        if name.startswith(start):
            return agent
    return _UNFIT.sub("-", name).strip("-._")[:_LONGEST]


_CALLS_AT_ONCE = 16
_MOST_WAITING = 200
_BURST_SECONDS = 4.0
_ADDRESS_RATE = 2.0
"""Requests per second of an address, as a multiple of a token's, since several people may share an address."""
_FAILURES_PER_SECOND = 0.5
_FAILURES_AT_ONCE = 20.0
_SECONDS_TO_ASK = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor(Asker):
    """An asker over the network. ``token`` is the name of its token; both fields are for the log."""

    address: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    file: Path
    key: Path


class IdleConnections:
    """Connections that have not sent their next request yet. Beyond ``most``, one is closed to make room for the newest.

    It is the longest waiting one of the address that has most of them, so a client that opens hundreds displaces only its own.
    """

    def __init__(self, most: int = _MOST_WAITING) -> None:
        self._most = most
        self._count = 0
        self._of: dict[str, OrderedDict[object, Callable[[], None]]] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, address: str, connection: object, close: Callable[[], None]) -> None:
        self._of.setdefault(address, OrderedDict())[connection] = close
        self._count += 1
        if self._count > self._most:
            crowded = max(self._of, key=lambda each: len(self._of[each]))
            oldest, close_oldest = next(iter(self._of[crowded].items()))
            self.remove(crowded, oldest)
            close_oldest()

    def remove(self, address: str, connection: object) -> None:
        here = self._of.get(address, OrderedDict())
        if here.pop(connection, None) is not None:
            self._count -= 1
        if not here:
            self._of.pop(address, None)


class _Impatient(H11Protocol):
    """uvicorn's protocol with a timeout for a request, without which a few hundred idle connections would block the server."""

    seconds: float
    waiting: IdleConnections
    _address = ""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        if (connected := transport.get_extra_info("socket")) is not None:
            # asyncio sets it only if the socket names its protocol; without it, an answer in two pieces waits for a delayed ACK
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._timer is None and self.conn.their_state is h11.IDLE:  # the first bytes of the next request
            self._wait()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._wait_no_longer()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self.seconds, self.transport.close)
        self.waiting.add(self._address, self, self.transport.close)

    def _wait_no_longer(self) -> None:
        self.waiting.remove(self._address, self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """``rate`` is the limit of requests per second and token. Once an address was refused ``failures_at_once`` times, its further
    refusals are 429 for some time and are not logged. A new connection has ``seconds_to_ask`` to send the head of a request.
    """

    rate: float = 20.0
    failures_at_once: float = _FAILURES_AT_ONCE
    seconds_to_ask: float = _SECONDS_TO_ASK


async def serve(
    perform: Perform,
    *,
    listening: socket.socket,
    admission: Admission,
    report: Report,
    certificate: Certificate | None = None,
    limits: RequestLimits = RequestLimits(),
    readiness: Readiness = Readiness(),  # noqa: B008 - frozen
    team: bool = False,
    everything: bool = False,
    started: Callable[[Callable[[], None]], None] = lambda stop: None,
) -> None:
    """Serve until SIGINT or SIGTERM, or until the function passed to ``started`` is called.

    With ``team``, the store is a team's, where a token without a person is a person of its own. For ``everything`` see
    `server_over`.
    """
    waits = IdleConnections()

    class Impatient(_Impatient):
        seconds = limits.seconds_to_ask
        waiting = waits

    metrics = _metrics(readiness.starting, waits)
    recorded = observed(perform, partial(_record, audit=admission.audit, metrics=metrics))
    server = server_over(recorded, partial(who, team=team), report, at_once=_CALLS_AT_ONCE, everything=everything)
    manager = StreamableHTTPSessionManager(app=server, json_response=True, stateless=True, max_request_body_size=LONGEST_BODY)
    gate = AuthMiddleware(
        manager.handle_request,
        admission=admission,
        readiness=readiness,
        per_token=Buckets(rate=limits.rate, burst=limits.rate * _BURST_SECONDS),
        per_address=Buckets(rate=limits.rate * _ADDRESS_RATE, burst=limits.rate * _ADDRESS_RATE * _BURST_SECONDS),
        failures=Buckets(rate=_FAILURES_PER_SECOND, burst=limits.failures_at_once),
        metrics=metrics,
    )
    listens = uvicorn.Server(
        uvicorn.Config(
            gate,
            http=Impatient,
            lifespan="off",
            log_config=None,
            access_log=False,  # addresses may hold private data
            proxy_headers=False,  # `AuthMiddleware` reads them itself, and only if a proxy is configured
            server_header=False,
            timeout_graceful_shutdown=5,
            ssl_certfile=certificate.file if certificate else None,
            ssl_keyfile=certificate.key if certificate else None,
            ws="none",
        )
    )

    def stop() -> None:
        listens.should_exit = True

    async with manager.run():
        started(stop)
        await listens.serve(sockets=[listening])


def _metrics(starting: Callable[[], str], waiting: IdleConnections) -> Metrics | None:
    try:
        return Metrics(ready=lambda: not starting(), waiting=lambda: len(waiting))
    except MetricsMissing:
        return None


def who(context: ServerRequestContext[Any, Any], *, team: bool = False) -> Visitor:
    """Return the asker of a request. Raises `NotAllowed` if it did not pass `AuthMiddleware`."""
    request = context.request
    admitted = request.scope.get(ADMITTED) if request is not None else None
    if not isinstance(admitted, Admitted):
        raise NotAllowed("the request has no identity")
    grant = admitted.kept.team_grant if team else admitted.kept.grant
    only = next(iter(grant.projects)) if grant.projects is not None and len(grant.projects) == 1 else ""
    return Visitor(
        grant=grant,
        project=admitted.project or only,
        ai=agent_of(client_of(context)),
        address=admitted.address,
        token=admitted.kept.name,
    )


def _record(call: FinishedCall, audit: Audit, metrics: Metrics | None) -> None:
    by = call.asker
    who = {"token": by.token, "address": by.address} if isinstance(by, Visitor) else {"token": "", "address": ""}
    audit.note(**who, what=call.tool, outcome=call.outcome, took_ms=call.seconds * 1000)
    if metrics is not None:
        metrics.call(call.tool, call.outcome, call.seconds)
