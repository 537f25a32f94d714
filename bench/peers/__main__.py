"""Ask every peer that can run here, and ours, the same questions, and print one table.

    python -m bench.peers [--gold DIR --transcripts DIR] [--cases FILE] [--minutes 5] [--only NAME]

Each peer is installed into an environment of its own under the temporary folder, which is removed at the end, and runs with its own
HOME. The questions come in a shuffled order that is always the same; a peer whose minutes are over has answered only the first of
them, and its row says how many. "speaks" is the share of unrelated prompts that are answered at all: for a search that is asked, it
is noise; for what is said unasked, a false injection.
"""

import argparse
import json
import os
import random
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.work import Asked, Work, of_invented, of_labelled

_ROOT = Path(__file__).resolve().parents[2]
_FIRST = (1, 2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A program to measure: ``module`` is its adapter, ``package`` what PyPI or npm (``npm:``) has, none for what we run on."""

    name: str
    module: str
    package: str = ""


_KNOWN = (
    Known(name="plain FTS5", module="plain_fts5"),
    Known(name="claude-session-search 0.2.0", module="claude_session_search", package="claude-session-search==0.2.0"),
    Known(name="claude-session-index 0.3.1", module="claude_session_index", package="claude-session-index==0.3.1"),
    Known(name="claude-historian-mcp 1.0.3", module="claude_historian", package="npm:claude-historian-mcp@1.0.3"),
    Known(name="MemPalace 3.11.0", module="mempalace", package="mempalace==3.11.0"),
    Known(name="ours, search", module="ours"),
    Known(name="ours, quoted unasked", module="ours opening"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    python: str
    folder: Path
    packages: int
    megabytes: float


def installed(known: Known, folder: Path) -> Installed:
    folder.mkdir(parents=True)
    if known.package.startswith("npm:"):
        npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
        subprocess.run([*npm, known.package[4:]], check=True, capture_output=True, timeout=300)
        there = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
        return Installed(python=sys.executable, folder=folder, packages=len(there) - 1, megabytes=size_of(folder))
    if known.package:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        before = size_of(folder)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, known.package], check=True, timeout=300)
        packages = len(list(folder.rglob("*.dist-info"))) - len(list(folder.rglob("pip-*.dist-info")))
        packages -= len(list(folder.rglob("setuptools-*.dist-info")))
        return Installed(python=str(python), folder=folder, packages=packages, megabytes=size_of(folder) - before)
    return Installed(python=sys.executable, folder=folder, packages=0, megabytes=0.0)


def size_of(folder: Path) -> float:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir()) / 1e6


class Asker:
    """An adapter's process, and how long is left for it."""

    def __init__(self, known: Known, at: Installed, home: Path, minutes: float) -> None:
        module, *rest = known.module.split()
        kept = {
            name: os.environ[name]
            for name in ("PATH", "LANG", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PEER_WEIGHTS")
            if name in os.environ
        }
        environment = {**kept, "HOME": str(home), "PYTHONPATH": str(_ROOT), "PEER_PACKAGES": str(at.folder)}
        self._process = subprocess.Popen(
            [at.python, "-m", f"bench.peers.{module}", *rest],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self._until = time.monotonic() + 60 * minutes

    def ask(self, asked: dict[str, str]) -> dict[str, Any] | None:
        """Return the answer; ``None`` if it is late."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], max(0, self._until - time.monotonic()))[0]:
            return None
        line = self._process.stdout.readline()
        return dict(json.loads(line)) if line else None

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def measured(known: Known, at: Installed, work: Work, home: Path, minutes: float) -> str:
    before = size_of(home)
    asker = Asker(known, at, home, minutes)
    try:
        indexed = asker.ask({"index": str(home)})
        if indexed is None:
            return f"could not index in {minutes:g} minutes"
        disk = size_of(home) - before
        mixed = [*work.questions, *work.unrelated]
        random.Random(20).shuffle(mixed)
        answered: list[tuple[Asked, dict[str, Any]]] = []
        for asked in mixed:
            answer = asker.ask({"search": asked.query, "project": asked.project})
            if answer is None:
                break
            answered.append((asked, answer))
    finally:
        asker.end()
    return row(answered, of=len(mixed), indexed=indexed, disk=disk)


def row(answered: Sequence[tuple[Asked, dict[str, Any]]], *, of: int, indexed: dict[str, Any], disk: float) -> str:
    questions = [(asked, answer["sessions"]) for asked, answer in answered if asked.deciding]
    unrelated = [bool(answer["sessions"]) for asked, answer in answered if not asked.deciding]
    if not questions or not unrelated:
        return "answered too few questions in time"
    hits = (sum(bool(asked.deciding & set(found[:most])) for asked, found in questions) / len(questions) for most in _FIRST)
    took = sorted(1000 * answer["seconds"] for _, answer in answered)
    memory = max(answer["memory_mb"] for _, answer in answered)
    return " | ".join(
        [
            *(f"{share:.2f}" for share in hits),
            f"{sum(unrelated) / len(unrelated):.2f}",
            f"{statistics.median(took):.1f}",
            f"{took[int(0.95 * len(took))]:.1f}",
            f"{indexed['cpu']:.1f}",
            f"{memory:.0f}",
            f"{disk:.1f}",
            f"{len(answered)} of {of}",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("--cases", type=Path, default=_ROOT / "bench" / "cases" / "openings.jsonl")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--only")
    given = parser.parse_args()
    print("| work | program | first | in 2 | in 5 | speaks | p50 ms | p95 ms | index CPU s | MB memory | MB disk | asked |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for known in _KNOWN:
        if given.only not in (None, known.name):
            continue
        with tempfile.TemporaryDirectory(prefix="peers-") as scratch:
            at = installed(known, Path(scratch) / "installed")
            for name in ("invented", "labelled") if given.gold else ("invented",):
                home = Path(scratch) / name
                home.mkdir()
                work = of_invented(given.cases, home) if name == "invented" else of_labelled(given.gold, given.transcripts, home)
                print(f"| {name} | {known.name} | {measured(known, at, work, home, given.minutes)} |", flush=True)
                shutil.rmtree(home)
            if known.package:
                print(f"| | {known.name}: {at.packages} packages, {at.megabytes:.1f} MB installed |", flush=True)


if __name__ == "__main__":
    main()
