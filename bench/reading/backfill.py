"""The whole backfill: everything that ten agents left behind, to events, edges and word index. How fast, how big, how true.

    python -m bench.reading.backfill --transcripts DIR [--gold DIR] [--files 10000] [--rounds 3] [--huge]

DIR is a collection of transcripts by agent (``claude-code/ codex/ …``, and ``fixtures/`` of other programs); it is copied into
a temporary home as those agents would have it. Seconds and memory are those of the real command, ``kmem backfill --no-distill``;
those of one agent are of reading it in a process that reads them all. ``--gold`` names labelled projects (``*/prompts.jsonl`` and
``sessions.tsv``), ``--files`` is how many unchanged files of each kind are looked at, and ``--huge`` adds two Codex rollouts: one
of 2 GB, and one with a single line of 200 MB. Prints tables with the limit beside each figure; asserts nothing.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from bench.reading.event_counts import Calls, calls, counted, in_both, twice
from bench.reading.farm import Farm, init_vault
from bench.reading.many_files import KINDS, lay_many
from bench.reading.prompt_counts import PromptCounts, prompts_reported
from bench.reading.too_large import huge_rollout, long_line

PROJECT = Path(__file__).resolve().parents[2]
_HUGE = 2_000_000_000
_LONG_LINE = 200_000_000
_ROLLOUT = "rollout-2026-03-01T00-00-00-0195c000-0000-7000-8000-000000000001.jsonl"


class Person:
    """A home with what agents left in it, and our command."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KMEM_HOME": str(home / "kmem"),
            "KMEM_EXTRACTOR": "offline",
            "PYTHONPATH": str(PROJECT),
        }
        (home / "kmem").mkdir(parents=True, exist_ok=True)
        folders = ", ".join(f'"{folder}"' for folder in sorted(home.glob("projects/*")))
        (home / "kmem" / "config.toml").write_text(f"projects = [{folders}]\n")

    def backfill(self) -> tuple[float, float, float]:
        """Seconds, seconds of processor, peak MB resident."""
        return measured(["-m", "kite_memory", "backfill", "--no-distill"], self.environment)

    def database(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.home}/kmem/state/timeline.sqlite?mode=ro", uri=True)

    def forget(self) -> None:
        for path in (self.home / "kmem" / "state").glob("*.sqlite*"):
            path.unlink()


def measured(arguments: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    began = time.perf_counter()
    process = psutil.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = busy = 0.0
    while process.poll() is None:
        try:
            peak = max(peak, process.memory_info().rss / 1e6)
            spent = process.cpu_times()
            busy = spent.user + spent.system
        except psutil.NoSuchProcess:
            break
        time.sleep(0.005)
    seconds = time.perf_counter() - began
    if process.wait():
        raise SystemExit(f"{arguments} failed with exit code {process.returncode}")
    return seconds, busy, peak


# What a child process does, with a home of its own


def read_by_agent() -> None:
    """Read everything, agent by agent, and print how long each took."""
    from kite_memory.config import load
    from kite_memory.wiring.services import open_services

    with open_services(load()) as services:
        spent: dict[str, float] = {}
        for source in services.sources:
            began = time.perf_counter()
            paths = list(source.transcripts())
            services.pipeline.ingest_many([(source, path) for path in paths])
            spent[source.provider] = time.perf_counter() - began
    print(json.dumps(spent))


def look_at_all() -> None:
    """Read everything, then look for what changed, and print how long a look took, in the middle of several."""
    from kite_memory.config import load
    from kite_memory.wiring.services import open_services

    with open_services(load()) as services:
        services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
        took, busy = [], []
        for _ in range(7):
            began, worked = time.perf_counter(), time.process_time()
            left = len(services.pipeline.unread())
            took.append(time.perf_counter() - began)
            busy.append(time.process_time() - worked)
    print(json.dumps({"seconds": sorted(took)[len(took) // 2], "busy": sorted(busy)[len(busy) // 2], "left": left}))


def child(work: str, environment: dict[str, str]) -> Any:
    command = [sys.executable, "-m", "bench.reading.backfill", "--child", work]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, cwd=PROJECT).stdout)


CHILDREN: dict[str, Callable[[], None]] = {"read-by-agent": read_by_agent, "look-at-all": look_at_all}


# Tables


def speed_table(person: Person, farm: Farm, rounds: int) -> Table:
    size = sum(map(farm.size, farm.laid)) / 1e6
    first, again = [], []
    for _ in range(rounds):
        person.forget()
        first.append(person.backfill())
        again.append(person.backfill())
    seconds, busy, _ = min(first)
    table = Table("the whole of it", "measured", "limit")
    files = sum(map(len, farm.laid.values()))
    table.add_row(
        f"backfill to events, edges and index: {files} transcripts of {len(farm.laid)} agents, {size:.1f} MB",
        f"{size / seconds:.1f} MB/s ({seconds:.2f} s, {busy:.2f} s of processor; best of {rounds}, load {os.getloadavg()[0]:.1f})",
        "≥ 15 MB/s",
    )
    table.add_row("peak resident", f"{max(peak for *_, peak in first):.0f} MB", "≤ 250 MB")
    table.add_row("second run, nothing changed", f"{min(again)[0]:.2f} s", "≤ 2 s")
    stored = sum(path.stat().st_size for path in (person.home / "kmem" / "state").glob("timeline.sqlite*"))
    table.add_row("the timeline on disk", f"{stored / 1e6:.1f} MB", "")
    return table


def agents_table(person: Person, farm: Farm, spent: dict[str, float]) -> Table:
    columns = ("agent", "files", "MB", "s", "MB/s", "sessions", "events", "calls with result", "of those that have one", "twice")
    table = Table(*columns, "problems")
    with closing(person.database()) as database:
        sessions = counted(database, "SELECT provider, COUNT(*) FROM sessions GROUP BY provider")
        events = counted(
            database, "SELECT s.provider, COUNT(*) FROM events AS e JOIN sessions AS s ON s.key = e.session GROUP BY s.provider"
        )
        problems = database.execute(
            "SELECT f.provider, p.reason, SUM(p.count) FROM problems AS p JOIN files AS f ON f.key = p.file"
            " GROUP BY f.provider, p.reason ORDER BY f.provider, 3 DESC"
        ).fetchall()
        result, doubled = calls(database), Counter(provider for provider, *_ in twice(database, farm.real))
    for provider, paths in farm.laid.items():
        size, seconds = farm.size(provider) / 1e6, spent[provider]
        called = result.get(provider, Calls())
        there = in_both(provider, farm.real.intersection(paths))
        table.add_row(
            provider,
            str(len(paths)),
            f"{size:.2f}",
            f"{seconds:.2f}",
            f"{size / seconds:.1f}",
            str(sessions.get(provider, 0)),
            str(events.get(provider, 0)),
            f"{called.with_result} of {called.total}",
            f"{len(there & called.answered) / len(there):.2%} of {len(there)}" if there else "",
            str(doubled[provider]),
            str(sum(count for owner, _, count in problems if owner == provider)),
        )
    table.add_row("[dim]limit", "", "", "", "", "", "", "", "[dim]≥ 99.5 %", "[dim]0", "")
    for provider, reason, count in problems:
        table.add_row(f"[dim]  {provider}", "", "", "", "", "", "", "", f"[dim]{reason}", "", f"[dim]{count}")
    return table


def prompts_table(person: Person, gold: Path) -> Table:
    table = Table("prompts", "read", "labelled", "precision", "recall", "limit")
    with closing(person.database()) as database:
        for name, result in prompts_reported(database, gold):
            _add_prompts(table, name, result)
    return table


def _add_prompts(table: Table, name: str, counts: PromptCounts) -> None:
    strict = (f"{counts.both / max(1, counts.prompts):.2%}", f"{counts.both / max(1, counts.labelled):.2%}")
    table.add_row(f"{name}, as labelled", str(counts.prompts), str(counts.labelled), *strict, "")
    for kind, count in counts.missed.most_common():
        table.add_row(f"[dim]  labelled, and read as something else: {kind}", "", f"[dim]{count}", "", "", "")
    for kind, count in counts.besides.most_common():
        table.add_row(f"[dim]  read, and not labelled: {kind}", f"[dim]{count}", "", "", "", "")
    right = counts.both + sum(count for kind, count in counts.besides.items() if kind in counts.persons)
    wanted = right + sum(count for kind, count in counts.missed.items() if kind not in counts.not_prompts)
    table.add_row(
        f"{name}, a person's words",
        str(counts.prompts),
        str(wanted),
        f"{right / max(1, counts.prompts):.2%}",
        f"{right / max(1, wanted):.2%}",
        "≥ 99 % each",
    )


def many_table(folder: Path, count: int) -> Table:
    table = Table(f"{count} unchanged files", "a look at all of them", "limit")
    for kind in KINDS:
        home = folder / kind
        lay_many(kind, home, count)
        result = child("look-at-all", Person(home).environment)
        left = f", {result['left']} seem changed" if result["left"] else ""
        said = f"{result['seconds'] * 1000:.0f} ms, {result['busy'] * 1000:.0f} ms of processor{left}"
        table.add_row(kind, said, "≤ 200 ms")
    return table


def huge_table(folder: Path) -> Table:
    table = Table("too large", "measured", "limit")
    for name, make, size in (("2 GB rollout", huge_rollout, _HUGE), ("one line of 200 MB", long_line, _LONG_LINE)):
        home = folder / make.__name__
        path = home / ".codex" / "sessions" / "2026" / "03" / "01" / _ROLLOUT
        make(path, size)
        person = Person(home)
        seconds, busy, peak = person.backfill()
        with closing(person.database()) as database:
            ((events,),) = database.execute("SELECT COUNT(*) FROM events").fetchall()
            problems = ", ".join(f"{reason}: {count}" for reason, count in database.execute("SELECT reason, count FROM problems"))
        stored = sum(file.stat().st_size for file in (home / "kmem" / "state").glob("timeline.sqlite*")) / 1e6
        spent = f"{seconds:.1f} s, {busy:.1f} s of processor, {size / 1e6 / seconds:.0f} MB/s"
        said = f"{spent}, peak {peak:.0f} MB, {events} events, {stored:.0f} MB on disk"
        table.add_row(name, f"{said}; {problems or 'no problems'}", "≤ 250 MB")
        path.unlink()
    return table


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--transcripts", type=Path)
    arguments.add_argument("--gold", type=Path)
    arguments.add_argument("--files", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--huge", action="store_true")
    arguments.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    asked = arguments.parse_args()
    if asked.child:
        CHILDREN[asked.child]()
        return
    console = Console(width=170)
    with tempfile.TemporaryDirectory(prefix="kmem-bench-") as temporary:
        folder = Path(temporary)
        if asked.transcripts:
            farm = init_vault(asked.transcripts, folder / "home")
            person = Person(farm.home)
            console.print(speed_table(person, farm, asked.rounds))
            spent = child("read-by-agent", person.environment | {"KMEM_HOME": str(folder / "apart")})
            console.print(agents_table(person, farm, spent))
            if asked.gold:
                console.print(prompts_table(person, asked.gold))
        if asked.files:
            console.print(many_table(folder / "many", asked.files))
        if asked.huge:
            console.print(huge_table(folder / "huge"))


if __name__ == "__main__":
    main()
