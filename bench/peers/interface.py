"""What every peer's adapter answers, and the loop that serves it over standard input.

Standard library only, since a peer has its own Python. CPU and memory are read from Linux' ``/proc``.
"""

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Peer(Protocol):
    def index(self, home: Path) -> None:
        """Read the transcripts under ``home/.claude/projects``."""

    def search(self, query: str, project: str) -> Sequence[str]:
        """Return the sessions of a project that answer ``query``, best first."""


def serve(peer: Peer) -> None:
    """Answer one JSON object a line: ``{"index": home}`` or ``{"search": query, "project": name}``."""
    asking, telling = sys.stdin, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints must not mix with the answers
    for line in asking:
        asked = json.loads(line)
        began, cpu = time.perf_counter(), _cpu()
        found: Sequence[str] = ()
        if "index" in asked:
            peer.index(Path(asked["index"]))
        else:
            found = list(dict.fromkeys(peer.search(asked["search"], asked["project"])))
        took = {"seconds": time.perf_counter() - began, "cpu": _cpu() - cpu}
        print(json.dumps({"sessions": found, "memory_mb": _memory(), **took}), file=telling, flush=True)


def sessions_of(home: Path, project: str) -> set[str]:
    return {file.stem for file in (home / ".claude" / "projects" / f"-home-ada-{project}").glob("*.jsonl")}


def _processes() -> list[str]:
    here = Path("/proc/self")
    return ["self", *(number for task in here.glob("task/*/children") for number in task.read_text().split())]


def _cpu() -> float:
    ticks = sum(sum(map(int, Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[11:15])) for each in _processes())
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory() -> float:
    """Return the largest resident memory so far, in MB, of this process and its children."""
    lines = (line for each in _processes() for line in Path(f"/proc/{each}/status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1e3
