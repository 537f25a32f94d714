"""The page served from a thread, and a real browser to look at it."""

import asyncio
import logging
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kite_memory.web.guard import Access
from kite_memory.web.server import application, serve
from kite_memory.wiring.services import Services

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def asking(services: Services) -> Callable[..., Any]:
    return lambda op, **arguments: services.operations.perform(op, arguments)


def _tell(error: BaseException) -> None:
    logging.getLogger("tests.web").error("a page failed", exc_info=error)


@contextmanager
def served(services: Services, report: Callable[[BaseException], None] | None = None) -> Iterator[str]:
    """Serve the page at a free port, and yield its link."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        access = Access(port=int(listening.getsockname()[1]))
        app = application(asking(services), access, report=report or _tell)
        begun = threading.Event()
        stops: list[Callable[[], None]] = []

        def started(stop: Callable[[], None]) -> None:
            stops.append(stop)
            begun.set()

        thread = threading.Thread(target=lambda: asyncio.run(serve(app, listening=listening, started=started)))
        thread.start()
        begun.wait()
        try:
            yield access.link
        finally:
            stops[0]()
            thread.join()


def lacking() -> str:
    """Return why no browser can be used here, or an empty string."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "Playwright is not installed"
    return "" if shutil.which("chromium") else "Chromium is not installed: apt-get install chromium"


@contextmanager
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            yield opened
        finally:
            opened.close()
