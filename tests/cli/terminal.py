"""A terminal with somebody at it, for what is only said or asked where a person watches."""

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tests.e2e.kmem import Machine

_COLOUR = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    code: int
    screen: str

    @property
    def coloured(self) -> bool:
        return _COLOUR.search(self.screen) is not None


def at_a_terminal(machine: Machine, arguments: Sequence[str], *, typed: Sequence[tuple[str, bytes]] = ()) -> Watched:
    """Runs `kmem` there. Each of ``typed`` is what to wait for, and what to type then (``b"\\x03"`` is Ctrl-C)."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kite_memory", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=machine.env({"TERM": "xterm-256color"}),
        cwd=machine.home,
        start_new_session=True,
        preexec_fn=_take_the_terminal,
    )
    os.close(theirs)
    screen = b""
    waiting = list(typed)
    with os.fdopen(ours, "rb+", buffering=0) as terminal:
        while select.select([terminal], [], [], 60)[0]:
            try:
                piece = terminal.read(4096)
            except OSError:  # how Linux says that no one is left at the other end
                break
            if not piece:
                break
            screen += piece
            if waiting and waiting[0][0].encode() in screen:
                terminal.write(waiting.pop(0)[1])
        code = process.wait(timeout=60)
    return Watched(code=code, screen=screen.decode("utf-8", "replace").replace("\r\n", "\n"))


def _take_the_terminal() -> None:
    """So that what is typed there, Ctrl-C included, is for this process."""
    import fcntl
    import termios

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell that runs the tests in its background has it ignored

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
