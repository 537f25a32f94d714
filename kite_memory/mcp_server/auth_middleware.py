"""Authentication for the MCP server over HTTP. Every request passes through here before anything of it is parsed.

What is recorded of requests and calls is here, too: lines in an audit log, and Prometheus metrics.
"""

import errno
import hmac
import ipaddress
import json
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any, Literal, Protocol

import anyio

from kite_memory import __version__
from kite_memory.mcp_server.stdio import Envelope, Unfit, read, too_long
from kite_memory.mcp_server.tokens import PREFIX, StoredToken, Tokens, Turned
from kite_memory.system import utc_now
from kite_memory.system.private_files import make_private_folder

_MOST_KNOWN = 10_000
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONGEST_FILE = 8 << 20
_LONGEST_WORD = 200


class MetricsMissing(Exception):
    """The metrics package is not installed."""


class Metrics:
    """Prometheus metrics.

    Thread-safe. Raises `MetricsMissing` without ``prometheus-client``, which comes with ``kite-memory[team]``.
    """

    def __init__(self, *, ready: Callable[[], bool] = lambda: True, waiting: Callable[[], int] = lambda: 0) -> None:
        """Create the metrics. ``waiting`` returns the number of connections that have not sent a request yet."""
        try:
            import prometheus_client as prometheus
        except ModuleNotFoundError as error:
            if error.name != "prometheus_client":
                raise
            raise MetricsMissing from error
        registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=registry)
        prometheus.Info("kmem_build", "Version of kite-memory.", registry=registry).info({"version": __version__})
        prometheus.Gauge("kmem_ready", "1 once the store answers.", registry=registry).set_function(lambda: float(ready()))
        prometheus.Gauge(
            "kmem_connections_waiting", "Connections that have not sent a request yet.", registry=registry
        ).set_function(lambda: float(waiting()))
        self._requests = prometheus.Counter(
            "kmem_http_requests", "HTTP requests, by why they were refused; ok for those let in.", ["outcome"], registry=registry
        )
        self._calls = prometheus.Counter(
            "kmem_tool_calls", "Calls of tools, by how they ended.", ["tool", "outcome"], registry=registry
        )
        self._seconds = prometheus.Histogram(
            "kmem_tool_seconds", "How long a call took.", ["tool"], buckets=_SECONDS, registry=registry
        )
        self._written: Callable[[], bytes] = lambda: prometheus.generate_latest(registry)
        self.content_type = prometheus.CONTENT_TYPE_LATEST

    def request(self, outcome: str) -> None:
        self._requests.labels(outcome).inc()

    def call(self, tool: str, outcome: str, seconds: float) -> None:
        """Count a call. ``tool`` must be a declared tool's name, since arbitrary names would let the labels grow without bound."""
        self._calls.labels(tool, outcome).inc()
        self._seconds.labels(tool).observe(seconds)

    def text(self) -> bytes:
        return self._written()


class Audit:
    """Audit log: lines of JSON in a file readable by its owner only. Thread-safe.

    At 8 MB the file is renamed to ``….1``, replacing the previous one. A full disk does not fail requests; lines that could not be
    written are counted in the next one that is.
    """

    def __init__(self, file: Path, *, clock: Callable[[], datetime] = utc_now, longest: int = _LONGEST_FILE) -> None:
        make_private_folder(file.parent)
        self._file = file
        self._clock = clock
        self._longest = longest
        self._lock = threading.Lock()
        self._lost = 0

    def note(self, *, token: str, address: str, what: str, outcome: str, took_ms: float | None = None) -> None:
        """Write a line. ``token`` is the token's name, empty for a request without one."""
        entry = {"at": self._clock().isoformat(timespec="milliseconds"), "token": token, "address": address, "what": what}
        entry = {name: value[:_LONGEST_WORD] for name, value in {**entry, "outcome": outcome}.items()}
        took = {} if took_ms is None else {"took_ms": round(took_ms, 1)}
        with self._lock:
            lost = {"lost_before": self._lost} if self._lost else {}
            try:
                self._write(json.dumps({**entry, **took, **lost}).encode("ascii") + b"\n")
                self._lost = 0
            except OSError:
                self._lost += 1

    def _write(self, line: bytes) -> None:
        handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            full = os.fstat(handle).st_size + len(line) > self._longest
            if not full and os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)
        if full:
            self._file.replace(self._file.with_name(f"{self._file.name}.1"))
            self._write(line)


class Buckets:
    """Rate limiter: each name may do ``burst`` things at once and ``rate`` more per second. Thread-safe, and bounded in memory.

    If there are too many names, those not seen for longest are dropped, since their buckets are the fullest.
    """

    def __init__(self, *, rate: float, burst: float, clock: Callable[[], float] = monotonic, most: int = _MOST_KNOWN) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> bool:
        """Take one from the bucket of a name, and return whether there was one left."""
        with self._lock:
            now = self._clock()
            left, since = self._left.pop(name, (self._burst, now))
            left = min(self._burst, left + (now - since) * self._rate)
            taken = left >= 1
            self._left[name] = (left - 1 if taken else left, now)
            if len(self._left) > self._most:
                self._left.popitem(last=False)
            return taken


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LONGEST_BODY = 4 << 20
ADMITTED = "kite.admitted"
"""Key in the ASGI scope under which the `Admitted` request is stored."""

_SECONDS_FOR_A_BODY = 30.0
_READ_TO_ITS_END = 2 * LONGEST_BODY
_LOOKED_AT_AT_ONCE = 1 << 16
"""Longer bodies are parsed in a thread."""
_LONGEST_HEADER = 1_024
_LONGEST_AUTHORIZATION = 8_300
"""An issuer's tokens hold claims and are longer than ours."""
_ONCE = frozenset({b"host", b"origin", b"authorization", b"content-length", b"kite-project"})

_MOST_AT_ONCE = 200
"""Most requests answered at a time; further ones are refused as busy."""
HEALTH = "/healthz"
METRICS = "/metrics"

Why = Literal["headers", "host", "origin", "path", "too often", "token", "method", "too long", "too slow", "busy", "not ready"]
_STATUS: dict[Why, int] = {
    "headers": 400,
    "host": 421,
    "origin": 403,
    "path": 404,
    "too often": 429,
    "token": 401,
    "method": 405,
    "too long": 413,
    "too slow": 408,
    "busy": 503,
    "not ready": 503,
}
_WORDS: dict[int, bytes] = {
    400: b"bad request",
    401: b"a token is needed: Authorization: Bearer ...",
    403: b"this origin is not allowed",
    404: b"not found",
    405: b"only POST",
    408: b"too slow",
    413: b"too long",
    421: b"this server does not answer to that name",
    429: b"too many requests; try again in a moment",
    503: b"busy; try again in a moment",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """Rules of which requests are admitted.

    ``names`` are those by which clients address this server, as in a Host header, with or without a port. ``private`` means that
    only this machine can reach the server; only then is the local token valid.
    """

    names: frozenset[str]
    origins: frozenset[str]
    path: str
    private: bool
    behind_proxy: bool = False

    @classmethod
    def of(
        cls, *, host: str, port: int, names: Iterable[str], origins: Iterable[str], path: str, private: bool, behind_proxy: bool
    ) -> "AccessRules":
        """Return the rules.

        A name without a port matches any port, since a proxy may use another. On loopback this server's port is required.
        """
        local = ("127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host)
        own = {f"{name.lower()}:{port}" for name in local} if private or behind_proxy else set()
        return cls(
            names=frozenset(own | {name.lower() for name in names}),
            origins=frozenset({f"http://{name}" for name in own} | {origin.lower().rstrip("/") for origin in origins}),
            path=path,
            private=private,
            behind_proxy=behind_proxy,
        )

    def answers_to(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        bare = name if colon and port.isdecimal() else host
        return host in self.names or bare in self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    kept: StoredToken
    address: str
    project: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRequest:
    """A refused request. ``detail`` is for the log only."""

    why: Why
    address: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An admitted request for the metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """A browser's CORS preflight request, which carries no token yet."""

    headers: bytes


class TokenIssuer(Protocol):
    """Another issuer whose tokens are accepted beside ours."""

    def find(self, token: str) -> StoredToken | Turned: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Who is admitted: the rules for a request's head, the tokens, and where it is noted what came of each request."""

    rules: AccessRules
    tokens: Tokens
    audit: Audit
    issuer: TokenIssuer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """``starting`` returns why the server is not ready yet, ``health`` why it currently fails, which may take a while; both return
    an empty string otherwise.
    """

    starting: Callable[[], str] = lambda: ""
    health: Callable[[], str] = lambda: ""


class AuthMiddleware:
    """ASGI middleware that admits or refuses requests.

    A refusal reveals no more than its kind; which token failed goes to the log. A browser shows a page the answer only if it names
    the page's origin, so answers to allowed pages do.
    """

    def __init__(
        self,
        app: App,
        *,
        admission: Admission,
        readiness: Readiness,
        per_token: Buckets,
        per_address: Buckets,
        failures: Buckets,
        metrics: Metrics | None = None,
    ) -> None:
        self._app = app
        self._rules = admission.rules
        self._tokens = admission.tokens
        self._audit = admission.audit
        self._issuer = admission.issuer
        self._per_token = per_token
        self._per_address = per_address
        self._failures = failures
        self._starting = readiness.starting
        self._health = readiness.health
        self._metrics = metrics
        self._at_once = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no websockets, no lifespan
        if scope["path"] == HEALTH:
            await self._tell_health(scope, send)
            return
        self._at_once += 1
        try:
            await self._answered(scope, receive, _readable_by(self._page(scope), send))
        finally:
            self._at_once -= 1

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._at_once > _MOST_AT_ONCE:
            judged: Judged = RefusedRequest(why="busy", address=self._address(scope, scope["headers"]))
        else:
            judged = await anyio.to_thread.run_sync(self.judge, scope)  # reading the tokens blocks on the disk
        if self._metrics is not None:
            self._metrics.request(judged.why if isinstance(judged, RefusedRequest) else "ok")
        if isinstance(judged, Preflight):
            await _agree(judged, send)
            return
        if isinstance(judged, RefusedRequest):
            await self._refuse(judged, send)
            return
        if isinstance(judged, Measured):
            await self._tell_metrics(send)
            return
        body = await _body(receive)
        if not isinstance(body, bytes | Envelope):
            await self._refuse(RefusedRequest(why=body, address=judged.address, detail=judged.kept.name), send)
            return
        try:
            text = await _fit(body)
        except Unfit as unfit:
            outcome = "too long" if isinstance(body, Envelope) else "not to be read"
            await anyio.to_thread.run_sync(
                lambda: self._audit.note(token=judged.kept.name, address=judged.address, what="request", outcome=outcome)
            )
            await _answer(unfit, 413 if isinstance(body, Envelope) else 400, send)
        else:
            await self._app({**scope, ADMITTED: judged}, _again(text, receive), send)

    def judge(self, scope: Scope) -> "Judged":
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        address = self._address(scope, headers)

        def refused(why: Why, detail: str = "") -> RefusedRequest:
            return RefusedRequest(why=why, address=address, detail=detail)

        often = Counter(name for name, _ in headers)
        if any(often[name] > 1 for name in _ONCE) or any(len(value) > _longest(name) for name, value in headers if name in _ONCE):
            return refused("headers")
        known = {name: value.decode("latin-1") for name, value in headers if name in _ONCE}
        if not self._rules.answers_to(known.get(b"host", "").lower()):
            return refused("host")
        origin = known.get(b"origin")
        if origin is not None and origin.lower() not in self._rules.origins:
            return refused("origin")
        measured = scope["path"] == METRICS and scope["method"] == "GET" and self._metrics is not None
        if not measured and not hmac.compare_digest(str(scope["path"]).encode(), self._rules.path.encode()):
            return refused("path")
        if not self._per_address.take(address):
            return refused("too often")
        if measured and self._rules.private and b"authorization" not in known:
            return Measured()
        if scope["method"] == "OPTIONS" and origin is not None and (b"access-control-request-method", b"POST") in headers:
            return Preflight(headers=next((value for name, value in headers if name == b"access-control-request-headers"), b""))
        scheme, _, token = known.get(b"authorization", "").partition(" ")
        kept = self._kept(token.strip() if scheme.lower() == "bearer" else "")
        if not isinstance(kept, StoredToken):
            return refused("token", kept)
        if not self._per_token.take(kept.id):
            return refused("too often", kept.name)
        if measured:
            return Measured()
        if scope["method"] != "POST":
            return refused("method", kept.name)
        if self._starting():
            return refused("not ready", kept.name)
        project = _utf_8_first(known.get(b"kite-project", "")).strip()
        return Admitted(kept=kept, address=address, project=project if project.isprintable() else "")

    def _kept(self, token: str) -> StoredToken | Turned:
        if self._issuer is not None and token and not token.startswith(PREFIX):
            return self._issuer.find(token)
        return self._tokens.find(token, loopback=self._rules.private)

    def _page(self, scope: Scope) -> bytes:
        """Return the origin of an allowed page; empty for any other request."""
        origins: list[bytes] = [value for name, value in scope["headers"] if name == b"origin"]
        allowed = len(origins) == 1 and origins[0].decode("latin-1").lower() in self._rules.origins
        return origins[0] if allowed else b""

    def _address(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> str:
        """Return the client's address.

        A proxy appends the address of its client, some with a port; earlier entries may be forged.
        """
        peer = scope.get("client")
        address = str(peer[0]) if peer else ""
        if not self._rules.behind_proxy:
            return address
        forwarded = [value for name, value in headers if name == b"x-forwarded-for"]
        last = forwarded[-1].decode("latin-1").rpartition(",")[2].strip() if forwarded else ""
        try:
            return str(ipaddress.ip_address(_without_port(last)))
        except ValueError:
            return address

    async def _refuse(self, refused: RefusedRequest, send: Send) -> None:
        """Send a refusal.

        An address with many failures gets 429 and no longer fills the log. A valid token is limited by its own rate only: clients
        also try GET each time they start, and must learn that it is not supported.
        """
        status = _STATUS[refused.why]
        ours = refused.why in ("method", "busy", "not ready")
        if not ours and not self._failures.take(refused.address):
            status = 429
        else:
            outcome = f"{refused.why}: {refused.detail}" if refused.detail else refused.why
            await anyio.to_thread.run_sync(
                lambda: self._audit.note(token="", address=refused.address, what="request", outcome=outcome)
            )
        words = self._starting().encode() or _WORDS[503] if refused.why == "not ready" else _WORDS[status]
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(words)).encode()), (b"connection", b"close")]
        match status:
            case 401:
                headers.append((b"www-authenticate", b"Bearer"))
            case 405:
                headers.append((b"allow", b"POST"))
            case 429 | 503:
                headers.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": words})

    async def _tell_health(self, scope: Scope, send: Send) -> None:
        """Answer a health check, which needs no token and may use any host name; the answer says only whether the server works."""
        if scope["method"] not in ("GET", "HEAD"):
            await _tell(405, b"only GET", b"text/plain", send)
            return
        reason = self._starting() or await anyio.to_thread.run_sync(self._health)
        health = {"status": "unavailable", "reason": reason} if reason else {"status": "ok"}
        await _tell(503 if reason else 200, json.dumps(health).encode(), b"application/json", send)

    async def _tell_metrics(self, send: Send) -> None:
        if self._metrics is not None:
            await _tell(200, self._metrics.text(), self._metrics.content_type.encode(), send)


Judged = Admitted | Preflight | Measured | RefusedRequest


async def _tell(status: int, words: bytes, kind: bytes, send: Send) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(words)).encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words})


def _readable_by(origin: bytes, send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            allowed = [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
            message = {**message, "headers": [*message.get("headers", ()), *allowed]}
        await send(message)

    return sent if origin else send


async def _agree(preflight: Preflight, send: Send) -> None:
    headers = [(b"access-control-allow-methods", b"POST"), (b"access-control-max-age", b"600")]
    if 0 < len(preflight.headers) <= _LONGEST_HEADER:
        headers.append((b"access-control-allow-headers", preflight.headers))
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _longest(header: bytes) -> int:
    return _LONGEST_AUTHORIZATION if header == b"authorization" else _LONGEST_HEADER


def _without_port(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def _utf_8_first(header: str) -> str:
    """Decode a header as UTF-8, as most clients write it, or else as latin-1, as the standard has it."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeDecodeError:
        return header


async def _body(receive: Receive) -> bytes | Envelope | Literal["too long", "too slow"]:
    """Return the body, or the envelope of one that is too long.

    It is read to its end: a client that is answered earlier only sees a broken connection.
    """
    body: bytearray | Envelope = bytearray()
    length = 0
    with anyio.move_on_after(_SECONDS_FOR_A_BODY):
        while True:
            message = await receive()
            piece = message.get("body", b"")
            length += len(piece)
            if isinstance(body, Envelope):
                body.feed(piece)
            else:
                body += piece
                body = body if length <= LONGEST_BODY else Envelope(bytes(body))
            if length > _READ_TO_ITS_END:
                return "too long"
            if message["type"] != "http.request" or not message.get("more_body", False):
                return body if isinstance(body, Envelope) else bytes(body)
    return "too slow"


async def _fit(body: bytes | Envelope) -> bytes:
    """Return the body as the SDK reads it. Raises `Unfit`."""
    if isinstance(body, Envelope):
        raise too_long(body, LONGEST_BODY)
    return (await anyio.to_thread.run_sync(read, body) if len(body) > _LOOKED_AT_AT_ONCE else read(body))[0]


async def _answer(unfit: Unfit, status: int, send: Send) -> None:
    words = unfit.answer.model_dump_json(by_alias=True, exclude_unset=True).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(words)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words})


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that delivers the body again."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return left.pop() if left else await receive()

    return received
