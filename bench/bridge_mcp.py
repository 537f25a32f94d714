"""What an agent waits for: the tools of `kmem mcp` on stdio, asked by the official client beside a daemon; and what they cost.

    python -m bench.bridge_mcp [--memories 10000] [--rounds 300] [--keep FOLDER]

Times are as the client sees them, with everything in between: its own SDK, two pipes, ours, the daemon's socket, the vault. Run
with PYTHONPATH naming this folder. Prints a table; asserts nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import psutil
from mcp import Client, StdioServerParameters

from bench.bridge_memories import daemon, key, plant
from bench.hook_latency import percentile

_COMMAND = ("-P", "-m", "kite_memory", "mcp")
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
    told = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**told, "HOME": str(home), "KMEM_HOME": str(home), "KMEM_EXTRACTOR": "offline", "KMEM_EMBEDDER": "local"}


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


async def timed(name: str, rounds: int, ask: Callable[[int], Awaitable[object]]) -> None:
    await ask(-1)
    took = []
    for number in range(rounds):
        began = time.perf_counter()
        await ask(number)
        took.append(1000 * (time.perf_counter() - began))
    shown(name, took)


async def calls(home: Path, memories: int, rounds: int) -> None:
    chance = random.Random(0)
    server = StdioServerParameters(command=sys.executable, args=list(_COMMAND), env=environment(home), cwd=home)
    async with Client(server, mode="legacy") as client:

        async def ask(tool: str, **arguments: object) -> None:
            result = await client.call_tool(tool, {"project": "orchard", **arguments})
            if result.is_error:
                raise SystemExit(f"{tool}: {result.content}")

        await timed("read_memory, one key", rounds, lambda _: ask("read_memory", key=key(chance.randrange(memories))))
        await timed("read_memory, project.fig.*", max(1, rounds // 10), lambda _: ask("read_memory", key="project.fig.row1*"))
        await timed("list_memories, 50", max(1, rounds // 10), lambda _: ask("list_memories"))
        await timed(
            "write_memory, new", rounds, lambda number: ask("write_memory", key=f"current.bench{number}", value={"n": number})
        )
        await timed(
            "write_memory, again",
            rounds,
            lambda number: ask("write_memory", key=key(chance.randrange(memories)), value=f"now {number}"),
        )
        await timed("get-context", rounds, lambda number: ask("get-context", query=f"{_SUBJECTS[number % 4]} {number}"))
        await timed("search_notes", rounds, lambda number: ask("search_notes", query=f"{_SUBJECTS[number % 4]} {number}"))


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
            anyio.run(calls, home, asked.memories, asked.rounds)


if __name__ == "__main__":
    main()
