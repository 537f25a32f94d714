"""`kmem web`: the memory as a page in the browser of this machine's user."""

import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kite_memory import config as configuration
from kite_memory.cli.console import say, tell, watched
from kite_memory.cli.help import add
from kite_memory.errors import KiteError

PANEL = "Everyday"

_OPENS = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}"><title>Kite Memory</title><a href="{link}">Open the memory</a>
"""

log = logging.getLogger("kite_memory.cli.web")


def web(
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65_535, help="The port to listen on; 0 picks any free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser; only print the link.")] = False,
) -> None:
    """Show the memory in a browser, for you alone. Ctrl-C ends it.

    It shows today's reading, notes and prompts; notes to read, edit and review; sessions over time; the graph. The page can be
    reached only from this machine and only with the link, which is new each time, and loads nothing from elsewhere.

    Example: kmem web
    """
    import anyio

    from kite_memory.cli.backend import LocalBridge
    from kite_memory.web.guard import Access
    from kite_memory.web.server import application, serve

    settings = configuration.load()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    bridge = LocalBridge(settings, makes_vault=False)
    with _listen(port) as listening:
        access = Access(port=int(listening.getsockname()[1]))
        app = application(bridge.ask, access, report=_report)

        def started(stop: Callable[[], None]) -> None:
            signal.signal(signal.SIGTERM, lambda *_: stop())

        async def listen() -> None:
            await serve(app, listening=listening, started=started)

        import webbrowser  # brings much along

        try:
            with _link_file(settings.state, access.link) as file:
                say(access.link)
                tell("your memory is there; Ctrl-C ends it")
                if not no_open and watched() and not webbrowser.open(file.as_uri()):
                    tell("no browser could be opened: open the link yourself")
                anyio.run(listen)
        finally:
            bridge.close()


@contextmanager
def _link_file(state: Path, link: str) -> Iterator[Path]:
    """Write a private page that leads to the link: as an argument of a browser, other users of this machine could read it."""
    from kite_memory.system.private_files import make_private_folder, replace_file

    make_private_folder(state)
    file = state / "web.html"
    replace_file(file, _OPENS.format(link=link).encode())
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port), backlog=64)
    except OSError as error:
        raise KiteError(
            f"cannot listen at port {port}: {error.strerror or error}", hint="give another --port; 0 takes any that is free"
        ) from error


def _report(error: BaseException) -> None:
    log.error("a page failed", exc_info=error)


def add_to(app: typer.Typer) -> None:
    add(app, web, panel=PANEL)
