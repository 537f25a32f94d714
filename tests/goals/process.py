"""What the kernel shows about a process: what it holds, and how often it woke."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SDKS = ("jiter", "aiohttp", "tokenizers", "psycopg", "rpds")
"""Compiled parts of what `anthropic`, `voyageai`, `mcp` and the drivers load. (pydantic's is there: typer loads it.)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    private_mb: float
    descriptors: int
    zombies: int
    children: int
    sdks: tuple[str, ...]


def seen(pid: int) -> Seen:
    place = Path(f"/proc/{pid}")
    rollup = dict(line.split(":", 1) for line in (place / "smaps_rollup").read_text().splitlines()[1:])
    private = sum(int(rollup[name].split()[0]) for name in ("Private_Clean", "Private_Dirty"))
    states = [state for parent, state, _ in processes() if parent == pid]
    maps = (place / "maps").read_text()
    return Seen(
        private_mb=private / 1024,
        descriptors=len(list((place / "fd").iterdir())),
        zombies=states.count("Z"),
        children=len(states),
        sdks=tuple(name for name in SDKS if name in maps),
    )


def processes() -> list[tuple[int, str, int]]:
    """Parent, state and id of each."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                state, parent, *_ = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found.append((int(parent), state, int(place.name)))
    return found


def naming(home: Path) -> list[int]:
    """Every process that was started with this folder in its environment, zombies left out."""
    found = []
    for _, state, pid in processes():
        try:
            if state != "Z" and str(home).encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def wakes(pid: int) -> int:
    """How often any thread of it was given a processor."""
    return sum(int((task / "schedstat").read_text().split()[2]) for task in Path(f"/proc/{pid}/task").iterdir())


def woke(pid: int, seconds: float) -> int:
    before = wakes(pid)
    time.sleep(seconds)
    return wakes(pid) - before


def asleep(pid: int, *, within: float, look: Callable[[int, float], int] = woke) -> bool:
    """Whether it came to rest: whatever it still had to do after a start is done."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        if look(pid, 1.0) == 0:
            return True
    return False
