"""What an agent waits for: the tools on stdio and over HTTP, asked by the official client beside a daemon, and beside a bare
echo server of the same SDK (`bench.bridge.echo_server`), so that their ratio hardly depends on what else the machine does.

    python -m bench.bridge.mcp_calls [--memories 10000] [--rounds 300] [--keep FOLDER]

Times are as the client sees them, with everything in between: its own SDK, two pipes, ours, the daemon's socket, the vault. Run
with PYTHONPATH naming this folder. All tools are listed: the client asks for the list again after each call of one that is not.
Prints a table; asserts nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import anyio
import psutil
from httpx2 import AsyncClient
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from bench.bridge.memories import daemon, key, plant
from bench.speed.hook_latency import percentile

_COMMAND = ("-P", "-m", "kite_memory", "mcp", "--tools", "all")
_STARTS = 9
_SUBJECTS = (
    "when the plum trees of row 17 are cut",
    "which week the quinces bear fruit",
    "cut of the walnut rows",
    "fig fruit week",
)


def shown(name: str, took: list[float]) -> None:
    took.sort()
    row = "  ".join(f"{label} {percentile(took, share):7.2f}" for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)))
    print(f"  {name:32} {row} ms", flush=True)


def environment(home: Path) -> dict[str, str]:
    by_name = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**by_name, "HOME": str(home), "KMEM_HOME": str(home), "KMEM_EXTRACTOR": "offline", "KMEM_EMBEDDER": "local"}


def starts(home: Path) -> None:
    """From the process's start until it has answered `initialize`, and what it holds in memory then."""
    client = {"name": "bench", "version": "1"}
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}).encode() + b"\n"
    took, rss = [], 0.0
    for _ in range(_STARTS):
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *_COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(home), cwd=home
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(hello)
        process.stdin.flush()
        process.stdout.readline()
        took.append(1000 * (time.perf_counter() - began))
        rss = psutil.Process(process.pid).memory_info().rss / 1e6
        process.stdin.close()
        process.stdout.close()
        process.wait()
    shown("start until initialized", took)
    print(f"  {'resident memory':32} {rss:.0f} MB")


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that agents make, and how many times as long as an echo it may take."""

    name: str
    tool: str
    arguments: Callable[[int], dict[str, object]]
    within: float


def asked_of(memories: int) -> tuple[Asked, ...]:
    chance = random.Random(0)
    run = time.time_ns()
    return (
        Asked("read_memory, one key", "read_memory", lambda _: {"key": key(chance.randrange(memories))}, 2),
        Asked("read_memory, project.*", "read_memory", lambda _: {"key": "project.*"}, 12),
        Asked("list_memories, 50", "list_memories", lambda _: {}, 10),
        Asked("write_memory, new", "write_memory", lambda n: {"key": f"current.bench{run}.{n}", "value": {"n": n}}, 4),
        Asked("write_memory, again", "write_memory", lambda n: {"key": key(chance.randrange(memories)), "value": f"now {n}"}, 4),
        Asked("get_context", "get_context", lambda n: {"query": f"{_SUBJECTS[n % 4]} {n}"}, 10),
        Asked("search_notes", "search_notes", lambda n: {"query": f"{_SUBJECTS[n % 4]} {n}"}, 10),
        Asked("smart_resume", "smart_resume", lambda _: {}, 12),
    )


def worked() -> dict[str, float]:
    """CPU milliseconds so far of the processes that this one has started: the echo, ours that speaks MCP, and the daemon."""
    spent = {"echo": 0.0, "mcp": 0.0, "daemon": 0.0}
    for process in psutil.Process().children():
        command = process.cmdline()
        name = "echo" if "bench.bridge.echo_server" in command else "daemon" if "daemon" in command else "mcp"
        times = process.cpu_times()
        spent[name] += 1000 * (times.user + times.system)
    return spent


async def compared(title: str, echo: Client, ours: Client, memories: int, rounds: int) -> None:
    """Each call beside an echo made just before it: both meet the same load."""
    print(f"  {title}, load {os.getloadavg()[0]:.1f}: medians in ms, and how many times an echo made at the same time")
    for asked in asked_of(memories):
        before = worked()
        took: tuple[list[float], list[float]] = ([], [])
        for number in range(-5, rounds):
            arguments = {"project": "orchard", **asked.arguments(number)}
            for client, tool, list_ in ((echo, "echo", took[0]), (ours, asked.tool, took[1])):
                began = time.perf_counter()
                result = await client.call_tool(tool, arguments)
                if number >= 0:
                    list_.append(1000 * (time.perf_counter() - began))
                if result.is_error:
                    raise SystemExit(f"{tool}: {result.content}")
        bare, whole = (median(each) for each in took)
        quick = percentile(sorted(took[1]), 0.1) / percentile(sorted(took[0]), 0.1)
        spent = "  ".join(f"{name} {(each - before[name]) / (rounds + 5):5.2f}" for name, each in worked().items())
        print(
            f"    {asked.name:26} {whole:7.2f}  echo {bare:6.2f}  {whole / bare:5.1f}x  quickest tenth {quick:5.1f}x"
            f"  (wanted: {asked.within:g}x)  CPU ms a call: {spent}",
            flush=True,
        )


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, str]]:
    """The address of a `kmem serve`, and the token of this machine's agents."""
    command = [sys.executable, "-P", "-m", "kite_memory", "serve", "--port", "0", "--rate", "10000", "--tools", "all"]
    process = subprocess.Popen(command, env=environment(home), cwd=home, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        address = next(found[1] for line in process.stderr if (found := re.search(r"listening at (\S+);", line)))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield address, (home / "state" / "local.token").read_text().strip()
    finally:
        process.terminate()
        process.wait()


@contextmanager
def echoing() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-m", "bench.bridge.echo_server", "--http"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    finally:
        process.terminate()
        process.wait()


async def on_stdio(home: Path, memories: int, rounds: int) -> None:
    ours = StdioServerParameters(command=sys.executable, args=list(_COMMAND), env=environment(home), cwd=home)
    echo = StdioServerParameters(
        command=sys.executable, args=["-m", "bench.bridge.echo_server"], env=environment(home), cwd=Path.cwd()
    )
    async with Client(echo, mode="legacy") as bare, Client(ours, mode="legacy") as whole:
        await compared("on stdio", bare, whole, memories, rounds)


async def over_http(home: Path, memories: int, rounds: int) -> None:
    with serving(home) as (address, token), echoing() as plain:
        async with (
            AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as carrier,
            AsyncClient(timeout=60) as bare,
        ):
            echo = Client(streamable_http_client(plain, http_client=bare), mode="legacy")
            ours = Client(streamable_http_client(address, http_client=carrier), mode="legacy")
            async with echo, ours:
                await compared("over HTTP", echo, ours, memories, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--keep", type=Path, help="keep the vault in this folder, and use the one that is there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        home = asked.keep or Path(passing)
        if not (home / "memory").is_dir():
            plant(home, asked.memories)
        with daemon(home):
            print(f"{asked.memories:,} memories, a daemon running, load {os.getloadavg()[0]:.1f}:")
            starts(home)
            anyio.run(on_stdio, home, asked.memories, asked.rounds)
            anyio.run(over_http, home, asked.memories, asked.rounds)


if __name__ == "__main__":
    main()
