"""The server of the page: admission of requests, routes, errors, and the loop that listens.

It admits the owner's browser, and no other user of this machine nor any web page. Every request must name this server's
address.
"""

import hmac
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from kite_memory.errors import DaemonUnreachable, KiteError, NotFound
from kite_memory.web.pages import Actions, Pages
from kite_memory.web.rendering import Ask, Renderer

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),  # not no-referrer: browsers would then send `Origin: null` with our own forms
    (b"cache-control", b"no-store"),
)
_ONCE = frozenset({b"host", b"origin", b"content-length"})
_READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Secrets of one run of the page, and the port that it listens at."""

    port: int
    prefix: str = field(default_factory=lambda: f"/{secrets.token_hex(8)}")
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    form: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Value of the hidden field that every form of the page carries."""

    @property
    def link(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}/enter?token={self.token}"

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset({f"127.0.0.1:{self.port}", f"localhost:{self.port}"})

    @property
    def cookie_name(self) -> str:
        return f"kmem-{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enter:
    """Request with the token of the link: it is given the cookie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    status: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admit:
    pass


def decide(access: Access, method: str, path: str, query: bytes, headers: Iterable[tuple[bytes, bytes]]) -> Enter | Refuse | Admit:
    """Decide about a request from its head alone."""
    given: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in given and name in _ONCE:
            return Refuse(status=400, why="a header that may come once came twice")
        given[name] = given[name] + b"; " + value if name == b"cookie" and name in given else value
    if given.get(b"host", b"").decode("latin-1").lower() not in access.hosts:
        return Refuse(status=421, why="this server does not answer to that name")
    if not (path == access.prefix or path.startswith(f"{access.prefix}/")):
        return Refuse(status=404, why="there is nothing here: open the link that `kmem web` has printed")
    if path == f"{access.prefix}/enter" and method in _READS:
        said = parse_qs(query.decode("latin-1"), max_num_fields=4).get("token", [""])[0]
        right = _same(said, access.token)
        return Enter() if right else Refuse(status=403, why="this link is not valid any more: `kmem web` prints a new one")
    if not _same(_cookie(given.get(b"cookie", b""), access.cookie_name), access.cookie):
        return Refuse(status=403, why="open the link that `kmem web` has printed: it lets this browser in")
    if method in _READS:
        return Admit()
    if method != "POST":
        return Refuse(status=405, why="only GET and POST")
    if b"origin" in given and given[b"origin"].decode("latin-1").lower() not in {f"http://{host}" for host in access.hosts}:
        return Refuse(status=403, why="another page may not change anything here")
    if given.get(b"sec-fetch-site", b"same-origin") != b"same-origin":
        return Refuse(status=403, why="another page may not change anything here")
    return Admit()


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _cookie(header: bytes, name: str) -> str:
    """Return a cookie's value. Cookies that other programs on this address have set may be malformed, and must not hide it."""
    for part in re.split(rb";\s*", header[:8_192]):
        if part.startswith(name.encode() + b"="):
            try:
                return next((each.value for each in SimpleCookie(part.decode("latin-1")).values()), "")
            except CookieError:
                return ""
    return ""


_OPENING = """<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={base}/">
<link rel="icon" href="{base}/static/kite.svg"><title>Kite Memory</title><p><a href="{base}/">Open the memory</a>"""
"""Page that goes on by itself: a redirect would count as coming from the program that opened the link, and not carry the cookie."""


class Guard:
    """ASGI middleware. A refusal is a line of plain text; every answer carries the same protective headers."""

    def __init__(self, app: App, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            found = decide(self._access, scope["method"], scope["path"], scope["query_string"], scope["headers"])
        except ValueError:
            found = Refuse(status=400, why="bad request")
        match found:
            case Refuse(status=status, why=why):
                await _answer(send, status, b"text/plain; charset=utf-8", f"{why}\n".encode())
            case Enter():
                value = f"{self._access.cookie_name}={self._access.cookie}; Path={self._access.prefix}; HttpOnly; SameSite=Strict"
                body = _OPENING.format(base=self._access.prefix).encode()
                await _answer(send, 200, b"text/html; charset=utf-8", body, (b"set-cookie", value.encode()))
            case Admit():
                await self._app(scope, receive, _protected(send))


def _protected(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return sending


async def _answer(send: Send, status: int, kind: bytes, body: bytes, *more: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind), length, *HEADERS, *more]})
    await send({"type": "http.response.body", "body": body})


_STATIC = Path(__file__).with_name("static")

Report = Callable[[BaseException], None]


def application(ask: Ask, access: Access, *, report: Report) -> App:
    """Return the ASGI application. ``ask`` performs an operation by its name; ``report`` is called with our own bugs."""
    renderer = Renderer(base=access.prefix, form=access.form)
    pages, actions = Pages(ask, renderer), Actions(ask, renderer)

    def error_page(request: Request, error: Exception) -> Response:
        match error:
            case KiteError():
                status = 404 if isinstance(error, NotFound) else 503 if isinstance(error, DaemonUnreachable) else 400
                return renderer.failure(str(error), error.hint, status)
            case HTTPException(status_code=status):
                return renderer.failure("there is no such page" if status == 404 else error.detail, "", status)
            case _:
                report(error)
                return renderer.failure("internal error; please report it", "the terminal has the details", 500)

    routes = [
        *(Route(path, handler) for path, handler in pages.routes().items()),
        *(Route(path, handler, methods=["POST"]) for path, handler in actions.routes().items()),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
    handlers = {KiteError: error_page, HTTPException: error_page, Exception: error_page}
    return Guard(_quiet(Starlette(routes=[Mount(access.prefix, routes=routes)], exception_handlers=handlers)), access)


def _quiet(app: Starlette) -> App:
    """Return the application without raising what it has already answered and reported."""

    async def answering(scope: dict[str, object], receive: object, send: object) -> None:
        try:
            await app(scope, receive, send)  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 - `error_page` has reported it; Starlette raises it again for the server to log
            return

    return answering  # type: ignore[return-value]


async def serve(app: App, *, listening: socket.socket, started: Callable[[Callable[[], None]], None]) -> None:
    """Serve until SIGINT or SIGTERM, or until the function passed to ``started`` is called."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,  # addresses may hold private data
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=2,
            limit_concurrency=64,
            ws="none",
        )
    )
    started(partial(setattr, server, "should_exit", True))
    await server.serve(sockets=[listening])
