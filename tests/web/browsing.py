"""The page served from a thread, and a real browser to look at it."""

import asyncio
import logging
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from kite_memory.web.server import Access, application, serve
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str


class Site:
    """A served page, asked without a browser; with the cookie of its link, unless a test says otherwise."""

    def __init__(self, link: str) -> None:
        self.link = link
        parts = urlsplit(link)
        self.host, self.prefix = parts.netloc, parts.path.removesuffix("/enter")
        self.cookie = ""
        entered = self.get(f"/enter?{parts.query}")
        self.cookie = entered.headers["set-cookie"].partition(";")[0]
        self.form = self.get("/ask").text.partition('name="form" value="')[2].partition('"')[0]

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", self.prefix + path, headers=headers)

    def post(self, path: str, headers: Mapping[str, str] | None = None, **fields: str) -> Answer:
        """Send a form of the page, as a browser does."""
        given = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{self.host}", **(headers or {})}
        return self.ask("POST", self.prefix + path, headers=given, body=urlencode({"form": self.form, **fields}))

    def ask(self, method: str, path: str, *, headers: Mapping[str, str], body: str = "") -> Answer:
        connection = HTTPConnection(self.host, timeout=60)
        sent = {"Host": self.host, "Cookie": self.cookie, **{name.replace("_", "-"): value for name, value in headers.items()}}
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {**sent, "Content-Length": str(len(body.encode()))}.items():
                if value:
                    connection.putheader(name, value)
            connection.endheaders(body.encode())
            answer = connection.getresponse()
            held = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(status=answer.status, headers=held, text=answer.read().decode())
        finally:
            connection.close()
