"""How long a prompt waits for the hook: whole processes, side by side with a bare interpreter.

    python -m bench.hook_latency                      a server that answers at once
    python -m bench.hook_latency --daemon KMEM_HOME   the daemon that runs there, with the notes it has

Every round starts each contender once, in a new order, so that a busy minute hits them all. Every prompt comes from a session
of its own, or the daemon would answer the first one only. Prints a table; asserts nothing.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from kite_memory import hook_client
from kite_memory.agents.hook_command import real_interpreter

_BASELINE = "python3 -c pass"

_SERVE = """
import sys; from pathlib import Path
from kite_memory.daemon.protocol import Ok
from kite_memory.daemon.server import Server
with Server(Path(sys.argv[1]), lambda request: Ok(body=b"x" * int(sys.argv[2])), report=print):
    print("up", flush=True)
    sys.stdin.read()
"""


@contextmanager
def instant_server(home: Path, size: int) -> Iterator[None]:
    """In a process of its own, as the daemon is."""
    state = home / "state"
    command = [sys.executable, "-c", _SERVE, str(state), str(size)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        if server.stdout is None or server.stdout.readline() != b"up\n":
            raise SystemExit("error: the server did not start")
        try:
            yield
        finally:
            server.terminate()


def contenders(bare: str, fast: str) -> dict[str, Sequence[str]]:
    hook = (fast, "-I", "-S", hook_client.__file__)
    return {
        _BASELINE: (bare, "-c", "pass"),
        "python3 -I -S -c pass": (fast, "-I", "-S", "-c", "pass"),
        "hook, fast form": hook,
        "hook, through sh": ("sh", "-c", " ".join(f"'{word}'" for word in hook)),
        "hook, console script's way": (sys.executable, "-c", "from kite_memory.hook_client import main; main()"),
    }


def once(command: Sequence[str], given: bytes, environment: Mapping[str, str]) -> tuple[float, int]:
    """Seconds from starting it to having all it said, and how many bytes that was."""
    start = perf_counter()
    ran = subprocess.run(command, input=given, stdout=subprocess.PIPE, env=environment, close_fds=False, check=True)
    return perf_counter() - start, len(ran.stdout)


def hook_input(prompt: str) -> bytes:
    asked = {"hook_event_name": "UserPromptSubmit", "transcript_path": "/nowhere/session.jsonl", "cwd": "/nowhere"}
    return json.dumps({**asked, "session_id": str(uuid.uuid4()), "prompt": prompt}).encode()


def measure(
    rounds: int, commands: Mapping[str, Sequence[str]], prompt: str, environment: Mapping[str, str]
) -> dict[str, list[float]]:
    """Says on stderr if a hook was silent where an answer was due: that would be fast and worthless."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    silent = 0
    order = list(commands)
    for number in range(-5, rounds):  # the first few warm the disk's cache
        random.shuffle(order)
        for name in order:
            took, said = once(commands[name], hook_input(prompt), environment)
            silent += name.startswith("hook") and not said
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
    parser.add_argument("--prompt", default="which database did we choose for the job queue, and why?")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.daemon.expanduser() if arguments.daemon else Path(temporary)
        environment = {**os.environ, "KMEM_HOME": str(home), "PYTHONPATH": str(Path(hook_client.__file__).parent.parent)}
        commands = contenders(arguments.bare, real_interpreter())
        if arguments.daemon:
            seconds = measure(arguments.rounds, commands, arguments.prompt, environment)
        else:
            with instant_server(home, arguments.size):
                seconds = measure(arguments.rounds, commands, arguments.prompt, environment)
    print("\n".join(table(seconds)))


if __name__ == "__main__":
    main()
