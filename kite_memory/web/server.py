"""The server of the page: routes, errors, and the loop that listens."""

import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from kite_memory.errors import DaemonUnreachable, KiteError, NotFound
from kite_memory.web.actions import Actions
from kite_memory.web.guard import Access, App, Guard
from kite_memory.web.pages import Pages
from kite_memory.web.rendering import Ask, Renderer

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
                return renderer.failure("something went wrong here", "this is a bug of ours; the terminal says more", 500)

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
