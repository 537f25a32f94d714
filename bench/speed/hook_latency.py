"""How long a prompt waits for the hook: whole processes, side by side with a bare interpreter.

    python -m bench.speed.hook_latency                      a server that answers at once
    python -m bench.speed.hook_latency --daemon KMEM_HOME   the daemon that runs there, with the notes it has
    python -m bench.speed.hook_latency --moments            invented notes and a session of 5,000 events: every moment of an agent's

Every round starts each contender once, in a new order, so that a busy minute hits them all. Every prompt comes from a session
of its own, or the daemon would answer the first one only; but for the one in the long session. The daemon keeps the vectors of the
last prompts: in "other words" no prompt is asked twice. Prints a table; asserts nothing.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from kite_memory import hook_client
from kite_memory.agents.claude_code import real_interpreter
from kite_memory.model.event import RedactedResult
from kite_memory.vault.drafting import Memo

if TYPE_CHECKING:
    from kite_memory.wiring.services import Services

_BASELINE = "python3 -c pass"

_SERVE = """
import sys; from pathlib import Path
from kite_memory.daemon.protocol import Ok
from kite_memory.daemon.server import Server
with Server(Path(sys.argv[1]), lambda request: Ok(body=b"x" * int(sys.argv[2])), report=print):
    print("up", flush=True)
    sys.stdin.read()
"""

_SERVE_MOMENTS = """
import sys; from pathlib import Path
from bench.speed.hook_latency import furnished
from kite_memory.daemon.protocol import Ok
from kite_memory.daemon.server import Server
with furnished(Path(sys.argv[1])) as services:
    with Server(services.config.state, lambda asked: Ok(body=services.hooks.answer(asked.body).encode()), report=print):
        print("up", flush=True)
        sys.stdin.read()
"""
_PROJECT = "orchard"
_LONG_SESSION = "5e551011-0000-4000-8000-000000005000"
_NOTES = 300
_EVENTS = 5_000
_TREES = ("apple", "pear", "plum", "quince", "medlar", "cherry", "walnut", "hazel", "mulberry", "fig")


@contextmanager
def furnished(home: Path) -> "Iterator[Services]":
    """Services with invented notes, and a long session of invented events."""
    from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
    from kite_memory.model.event import Cursor, Event, EventType, ReadResult, Session, Where
    from kite_memory.wiring.services import open_services

    cwd = home / _PROJECT
    cwd.mkdir(parents=True)
    extractor, embedder = ExtractorConfig(name="offline"), EmbedderConfig(name="local")
    config = Config(
        file=home / "config.toml",
        state=home / "state",
        vault=home / "memory",
        claude_root=home / "claude",
        extractor=extractor,
        embedder=embedder,
    )
    kinds = (EventType.ASSISTANT_MESSAGE, EventType.TOOL_CALL, EventType.COMMAND, EventType.TOOL_RESULT)
    began = datetime.now(UTC) - timedelta(seconds=_EVENTS)
    events = tuple(
        Event(
            id=f"event-{number}",
            session=_LONG_SESSION,
            provider="claude-code",
            ordinal=number,
            at=began + timedelta(seconds=number),
            role="user" if number % 50 == 0 else "assistant",
            type=EventType.USER_MESSAGE if number % 50 == 0 else kinds[number % 4],
            text=f"The {_TREES[number % 10]} tree in row {number} " * 40,
            where=Where(file="/invented", start=number, end=number + 1),
            command=f"make row-{number}" if number % 4 == 2 else "",
        )
        for number in range(_EVENTS)
    )
    session = Session(id=_LONG_SESSION, provider="claude-code", started=began, project=_PROJECT, cwd=str(cwd))
    look = ReadResult(path="/invented", session=session, events=events, problems=(), cursor=Cursor(position=1, size=1, mtime_ns=1))
    with open_services(config) as services:
        services.init_vault()
        for number in range(_NOTES):
            tree = _TREES[number % 10]
            services.vault.edits.remember(
                Memo(text=f"The {tree} tree number {number} bears fruit in week {20 + number % 20}.", project=_PROJECT)
            )
        services.recall.refresh(services.vault.notes)
        services.timeline.commit([RedactedResult(look)], "claude-code")
        yield services


@contextmanager
def moments_server(home: Path) -> Iterator[None]:
    with _serving([sys.executable, "-c", _SERVE_MOMENTS, str(home)]):
        yield


@contextmanager
def instant_server(home: Path, size: int) -> Iterator[None]:
    with _serving([sys.executable, "-c", _SERVE, str(home / "state"), str(size)]):
        yield


@contextmanager
def _serving(command: Sequence[str]) -> Iterator[None]:
    """In a process of its own, as the daemon is."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        if server.stdout is None or server.stdout.readline() != b"up\n":
            raise SystemExit("error: the server did not start")
        try:
            yield
        finally:
            server.terminate()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """``given`` is what it reads on its standard input, made anew for every start; ``speaks`` says that silence is a failure."""

    command: Sequence[str]
    given: Callable[[], bytes] = bytes
    speaks: bool = False


def contenders(bare: str, fast: str, prompt: str) -> dict[str, Contender]:
    hook = (fast, "-I", "-S", hook_client.__file__)
    asks = partial(hook_input, prompt)
    numbers = itertools.count(1)
    through_sh = ("sh", "-c", " ".join(f"'{word}'" for word in hook))
    console_script = (sys.executable, "-c", "from kite_memory.hook_client import main; main()")
    return {
        **_interpreters(bare, fast),
        "hook, fast form": Contender(command=hook, given=asks, speaks=True),
        "hook, other words": Contender(command=hook, given=lambda: hook_input(f"{prompt} ({next(numbers)})"), speaks=True),
        "hook, through sh": Contender(command=through_sh, given=asks, speaks=True),
        "hook, console script's way": Contender(command=console_script, given=asks, speaks=True),
    }


def moments(bare: str, fast: str, home: Path) -> dict[str, Contender]:
    """Every moment at which an agent runs the hook, as it is installed."""
    hook = (fast, "-I", "-S", hook_client.__file__)
    prompt = "in which week does the quince tree number 43 bear fruit?"
    call = {"tool_name": "Bash", "tool_input": {"command": "make test"}, "tool_use_id": "t", "tool_response": "12 passed"}
    read = {"tool_name": "Read", "tool_input": {"file_path": "/a"}, "tool_use_id": "t", "tool_response": "x" * 100_000}
    long = {**read, "tool_response": "x" * 2_000_000}

    def given(event: str, **fields: object) -> Callable[[], bytes]:
        result = {"cwd": str(home / _PROJECT), "hook_event_name": event, **fields}
        return lambda: json.dumps({"session_id": str(uuid.uuid4()), **result}).encode()

    return {
        **_interpreters(bare, fast),
        "prompt, new session": Contender(command=hook, given=given("UserPromptSubmit", prompt=prompt)),
        "prompt, 5,000 events": Contender(command=hook, given=given("UserPromptSubmit", prompt=prompt, session_id=_LONG_SESSION)),
        "session start": Contender(command=hook, given=given("SessionStart", source="startup"), speaks=True),
        "tools, nothing pending": Contender(command=hook, given=given("PostToolBatch", tool_calls=[call])),
        "tools, 100 kB read": Contender(command=hook, given=given("PostToolBatch", tool_calls=[read])),
        "tools, 2 MB read": Contender(command=hook, given=given("PostToolBatch", tool_calls=[long])),
        "one tool, nothing pending": Contender(command=hook, given=given("PreToolUse", **call)),
    }


def _interpreters(bare: str, fast: str) -> dict[str, Contender]:
    return {
        _BASELINE: Contender(command=(bare, "-c", "pass")),
        "python3 -I -S -c pass": Contender(command=(fast, "-I", "-S", "-c", "pass")),
    }


def once(command: Sequence[str], given: bytes, environment: Mapping[str, str]) -> tuple[float, int]:
    """Seconds from starting it to having all it said, and how many bytes that was."""
    start = perf_counter()
    ran = subprocess.run(command, input=given, stdout=subprocess.PIPE, env=environment, close_fds=False, check=True)
    return perf_counter() - start, len(ran.stdout)


def hook_input(prompt: str) -> bytes:
    asked = {"hook_event_name": "UserPromptSubmit", "transcript_path": "/nowhere/session.jsonl", "cwd": "/nowhere"}
    return json.dumps({**asked, "session_id": str(uuid.uuid4()), "prompt": prompt}).encode()


def measure(rounds: int, chosen: Mapping[str, Contender], environment: Mapping[str, str]) -> dict[str, list[float]]:
    """Says on stderr if a hook was silent where an answer was due: that would be fast and worthless."""
    seconds: dict[str, list[float]] = {name: [] for name in chosen}
    silent = 0
    order = list(chosen)
    for number in range(-5, rounds):  # the first few warm the disk's cache
        random.shuffle(order)
        for name in order:
            took, said = once(chosen[name].command, chosen[name].given(), environment)
            silent += chosen[name].speaks and not said
            if number >= 0:
                seconds[name].append(took)
    if silent:
        print(f"{silent} hooks said nothing", file=sys.stderr)
    return seconds


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(seconds: Mapping[str, Sequence[float]]) -> Iterator[str]:
    base = sorted(seconds[_BASELINE])
    yield f"{'':28}{'p50':>9}{'p95':>9}{'p99':>9}   p50 and p99 ÷ p50 of {_BASELINE}"
    for name, each in seconds.items():
        ordered = sorted(each)
        p50, p95, p99 = (percentile(ordered, share) for share in (0.50, 0.95, 0.99))
        ratios = f"{p50 / percentile(base, 0.5):.2f}, {p99 / percentile(base, 0.5):.2f}"
        yield f"{name:28}{p50 * 1e3:7.2f}ms{p95 * 1e3:7.2f}ms{p99 * 1e3:7.2f}ms   {ratios}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--bare", default="python3", help="the interpreter to compare with (default: the first python3 on PATH)")
    parser.add_argument("--size", type=int, default=4000, help="bytes that the instant server answers")
    parser.add_argument("--daemon", type=Path, metavar="HOME", help="ask the daemon that runs under this KMEM_HOME")
    parser.add_argument("--moments", action="store_true", help="every moment of an agent's, in a memory that is filled for it")
    parser.add_argument("--prompt", default="which database did we choose for the job queue, and why?")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.daemon.expanduser() if arguments.daemon else Path(temporary)
        environment = {**os.environ, "KMEM_HOME": str(home), "PYTHONPATH": str(Path(hook_client.__file__).parent.parent)}
        chosen = contenders(arguments.bare, real_interpreter(), arguments.prompt)
        server: AbstractContextManager[None] = instant_server(home, arguments.size)
        if arguments.moments:
            chosen, server = moments(arguments.bare, real_interpreter(), home), moments_server(home)
        with nullcontext() if arguments.daemon else server:
            seconds = measure(arguments.rounds, chosen, environment)
    print("\n".join(table(seconds)))


if __name__ == "__main__":
    main()
