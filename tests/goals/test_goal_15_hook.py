"""Whatever state the daemon is in, the hook ends with 0 and prints nothing, and does not wait until that state is over."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from kite_memory import paths
from kite_memory.daemon.protocol import Ok, Reply, Request
from tests.counts import how_many
from tests.test_hook_client import (
    BLOCK,
    FAST,
    HANGS,
    IN_TIME_FOR_SURE,
    SERVE,
    Ran,
    daemon,
    impostor,
    run,
    state_of,
    until_it_leaves,
)

pytestmark = [
    pytest.mark.skipif(not hasattr(socket, "AF_UNIX") or not hasattr(signal, "SIGSTOP"), reason="unix sockets and signals"),
]

EVENTS = ("UserPromptSubmit", "SessionStart", "PreToolUse", "PostToolBatch", "PostToolUseFailure", "Stop", "SessionEnd")
GOOD = b"KMEM1 ok %d\n%s" % (len(BLOCK), BLOCK)

NAIVE = """
import os, socket, sys
from kite_memory import paths
with socket.socket(socket.AF_UNIX) as client:
    client.connect(paths.socket_path(os.environ['KMEM_HOME'] + '/state'))
    client.sendall(b'KMEM1 hook 2\\n{}')
    client.shutdown(socket.SHUT_WR)
    sys.stdout.buffer.write(client.recv(65536).partition(b'\\n')[2])
"""
PLANTED = (sys.executable, "-c", NAIVE)
"""The planted bug: a hook that trusts any answer, and lets its errors out."""


@contextmanager
def dead(home: Path, chance: random.Random) -> Iterator[None]:
    state_of(home)
    yield


@contextmanager
def stale_socket(home: Path, chance: random.Random) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(paths.socket_path(str(state_of(home))))
    yield
    Path(paths.socket_path(str(state_of(home)))).unlink()


@contextmanager
def stopped(home: Path, chance: random.Random) -> Iterator[None]:
    command = [sys.executable, "-c", SERVE, str(state_of(home))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGSTOP)
        yield
        process.kill()


@contextmanager
def slow(home: Path, chance: random.Random) -> Iterator[None]:
    go_on = threading.Event()

    def late(request: Request) -> Reply:
        go_on.wait(HANGS)
        return Ok(body=BLOCK)

    with daemon(home, late):
        yield
        go_on.set()


@contextmanager
def deaf(home: Path, chance: random.Random) -> Iterator[None]:
    with impostor(home, until_it_leaves):
        yield
    Path(paths.socket_path(str(state_of(home)))).unlink()


@contextmanager
def backlog_full(home: Path, chance: random.Random) -> Iterator[None]:
    where = paths.socket_path(str(state_of(home)))
    waiting: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(where)
        hung.listen(0)
        try:
            while True:
                client = socket.socket(socket.AF_UNIX)
                waiting.append(client)
                client.setblocking(False)
                client.connect(where)
        except BlockingIOError:
            pass
        yield
        for client in waiting:
            client.close()
    Path(where).unlink()


@contextmanager
def garbage(home: Path, chance: random.Random) -> Iterator[None]:
    reply = spoilt(chance)

    def behave(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(reply)

    with impostor(home, behave):
        yield
    Path(paths.socket_path(str(state_of(home)))).unlink()


def spoilt(chance: random.Random) -> bytes:
    """A good reply with something wrong in it."""
    while True:
        match chance.randrange(5):
            case 0:
                reply = chance.randbytes(chance.randrange(200))
            case 1:
                reply = GOOD[: chance.randrange(len(GOOD))]
            case 2:
                reply = GOOD + chance.randbytes(chance.randrange(1, 50))
            case 3:
                at = chance.randrange(len(b"KMEM1 ok 59"))
                reply = GOOD[:at] + chance.randbytes(1) + GOOD[at + 1 :]
            case _:
                at = chance.randrange(len(GOOD))
                reply = GOOD[:at] + GOOD[at + chance.randrange(1, 9) :]
        if not well_framed(reply):
            return reply


def well_framed(reply: bytes) -> bool:
    head = re.match(rb"KMEM1 ok ([0-9]+)\n", reply)
    return head is not None and len(reply) == head.end() + int(head[1])


STATES: dict[str, Callable[[Path, random.Random], AbstractContextManager[None]]] = {
    "dead": dead,
    "stale socket": stale_socket,
    "stopped": stopped,
    "slow": slow,
    "deaf": deaf,
    "backlog full": backlog_full,
    "garbage": garbage,
}


def asked(home: Path, chance: random.Random, how: tuple[str, ...], *, deadline_ms: str) -> Ran:
    event = chance.choice(EVENTS)
    given = b'{"hook_event_name": "%s", "session_id": "s", "prompt": "which port?", "padding": "%s"}'
    body = given % (event.encode(), b"x" * chance.choice([0, 10, 100_000]))
    return run(home, *chance.choice([(), ("--agent", "codex")]), given=body, how=how, deadline_ms=deadline_ms)


@pytest.mark.parametrize("state", STATES)
def test_the_hook_is_silent(tmp_path: Path, state: str) -> None:
    for number in range(how_many(700) // len(STATES)):
        chance = random.Random(f"{state} {number}")
        with STATES[state](tmp_path, chance):
            # A whole reply in time would be printed: garbage is given all the time it wants.
            ran = asked(tmp_path, chance, FAST, deadline_ms=IN_TIME_FOR_SURE if state == "garbage" else "")

        assert ran.silent, (number, ran.code, ran.out, ran.err)


@pytest.mark.parametrize("state", ["dead", "stale socket", "garbage"])
def test_control_a_hook_that_trusts_anyone_who_answers_is_caught(tmp_path: Path, state: str) -> None:
    heard = []
    for number in range(10):
        chance = random.Random(f"{state} {number}")
        with STATES[state](tmp_path, chance):
            heard.append(asked(tmp_path, chance, PLANTED, deadline_ms=""))

    assert not all(ran.silent for ran in heard)


def test_control_with_a_daemon_that_is_well_it_does_speak(tmp_path: Path) -> None:
    with daemon(tmp_path):
        ran = asked(tmp_path, random.Random(1), FAST, deadline_ms=IN_TIME_FOR_SURE)

    assert (ran.code, ran.out, os.fsdecode(ran.err)) == (0, BLOCK, "")
