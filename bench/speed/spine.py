"""The main job, timed with real processes: how soon a line is an event, a chunk a note, a note an answer.

    python -m bench.speed.spine --transcripts DIR [--lines 200] [--notes 1000]

DIR holds Claude Code transcripts (any folders of ``*.jsonl``); they are read in place. Prints a table with the
limit beside each figure.
"""

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).resolve().parents[2]
SUBJECTS = (
    *("queue", "worker", "lock", "index", "pool", "retry", "token", "socket", "parser"),
    *("schema", "build", "deploy", "cache", "probe", "gateway", "ledger", "router", "shard"),
)


class Person:
    """A home folder with an agent's transcripts and our commands."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.projects = home / "claude" / "projects" / "-orchard"
        self.projects.mkdir(parents=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KMEM_HOME": str(home / "kmem"),
            "CLAUDE_CONFIG_DIR": str(home / "claude"),
            "KMEM_EXTRACTOR": "offline",
            "PYTHONPATH": str(PROJECT),
        }

    def kmem(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "kite_memory", *arguments]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True).stdout

    @contextmanager
    def daemon(self) -> Iterator[psutil.Process]:
        self.kmem("up", "--no-hooks")
        try:
            yield psutil.Process(json.loads(self.kmem("status", "--json"))["daemon"]["pid"])
        finally:
            self.kmem("down")

    def events(self) -> int:
        with sqlite3.connect(f"file:{self.home}/kmem/state/timeline.sqlite?mode=ro", uri=True) as database:
            (count,) = database.execute("SELECT COUNT(*) FROM events").fetchone()
        database.close()
        return int(count)


def line(session: str, text: str, role: str = "user") -> bytes:
    row = {
        "type": role,
        "uuid": str(uuid.uuid4()),
        "parentUuid": None,
        "sessionId": session,
        "cwd": "/home/ada/orchard",
        "version": "2.1.328",
        "isSidechain": False,
        "userType": "external",
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "message": {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]},
    }
    return json.dumps(row).encode() + b"\n"


def until(condition: Callable[[], bool], seconds: float = 60.0) -> float:
    """Milliseconds until ``condition`` holds."""
    began = time.perf_counter()
    while not condition():
        if time.perf_counter() - began > seconds:
            raise TimeoutError("it never came true")
        time.sleep(0.001)
    return (time.perf_counter() - began) * 1000


def append_to_event(person: Person, lines: int) -> list[float]:
    session = str(uuid.uuid4())
    took = []
    with (person.projects / f"{session}.jsonl").open("ab", buffering=0) as file:
        for number in range(lines):
            before = person.events()
            file.write(line(session, f"Look at number {number} of the pots, please."))
            took.append(until(lambda before=before: person.events() > before))  # type: ignore[misc]
            time.sleep(0.02)
    return took


def chunk_to_note(person: Person, rounds: int) -> list[float]:
    """From the moment when silence has ended the chunk (3 s for rules, which cost nothing) to note on disk and found."""
    took = []
    for number in range(rounds):
        session, name = str(uuid.uuid4()), SUBJECTS[number]
        said = (
            f"Let's use Redwood{number} instead of Basalt{number} for the {name}, because Basalt{number} loses the {name} at night."
        )
        (person.projects / f"{session}.jsonl").write_bytes(
            line(session, said) + line(session, f"Decided: the {name} uses Redwood{number}.", "assistant")
        )
        time.sleep(3.0)

        def found(number: int = number) -> bool:
            hits = json.loads(person.kmem("search", f"Redwood{number}", "--mode", "keyword", "--json"))["hits"]
            return any(f"Redwood{number}" in hit["title"] + hit["snippet"] for hit in hits)

        took.append(until(found))
    return took


def remember_to_recall(person: Person, rounds: int) -> tuple[list[float], int]:
    took, known = [], 0
    for number in range(rounds):
        text = f"The {SUBJECTS[number]} of the orchard listens on port {7000 + number}"
        began = time.perf_counter()
        person.kmem("remember", text, "--global")
        took.append((time.perf_counter() - began) * 1000)
        answer = json.loads(person.kmem("recall", f"which port does the {SUBJECTS[number]} of the orchard listen on?", "--json"))
        known += str(7000 + number) in answer["block"]
    return took, known


def backfill(person: Person, transcripts: Path) -> tuple[float, float, float, int]:
    """Seconds, MB read, peak MB resident, files. The copy is in a temporary folder and goes with it."""
    for number, path in enumerate(sorted(transcripts.rglob("*.jsonl"))):
        folder = person.projects.parent / f"-p{number:04d}"
        folder.mkdir()
        shutil.copy(path, folder / path.name)
    files = list(person.projects.parent.rglob("*.jsonl"))
    size = sum(path.stat().st_size for path in files) / 1e6
    began = time.perf_counter()
    command = [sys.executable, "-m", "kite_memory", "backfill", "--no-distill"]
    process = psutil.Popen(command, env=person.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0.0
    while process.poll() is None:
        try:
            peak = max(peak, process.memory_info().rss / 1e6)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.01)
    if process.wait():
        raise SystemExit(f"the backfill failed with exit code {process.returncode}")
    return time.perf_counter() - began, size, peak, len(files)


def write_notes(person: Person, count: int) -> None:
    """Notes as a person would write them, straight into the vault."""
    folder = person.home / "kmem" / "memory" / "projects"
    for number in range(count):
        words = " ".join(SUBJECTS[(number * step) % len(SUBJECTS)] for step in (1, 3, 5, 7))
        (folder / f"orchard-{number:05d}.md").write_text(
            f"---\nkind: fact\ntitle: Fact {number} on {words}\nproject: orchard\n---\n"
            f"Number {number}: {words}, as measured in spring.\n"
        )


def quantile(took: list[float], share: float) -> float:
    return sorted(took)[min(len(took) - 1, int(share * len(took)))]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--transcripts", type=Path, required=True)
    arguments.add_argument("--lines", type=int, default=200)
    arguments.add_argument("--rounds", type=int, default=10)
    arguments.add_argument("--notes", type=int, default=1000)
    asked = arguments.parse_args()
    table = Table("what", "measured", "limit")
    with tempfile.TemporaryDirectory(prefix="kmem-bench-") as folder:
        seconds, size, peak, files = backfill(Person(Path(folder)), asked.transcripts)
        table.add_row(
            "backfill to events", f"{size / seconds:.1f} MB/s ({size:.1f} MB, {files} files, {seconds:.2f} s)", "≥ 20 MB/s"
        )
        table.add_row("backfill, peak resident", f"{peak:.0f} MB", "≤ 200 MB")
    with tempfile.TemporaryDirectory(prefix="kmem-bench-") as folder:
        person = Person(Path(folder))
        with person.daemon() as daemon:
            took = append_to_event(person, asked.lines)
            table.add_row(
                f"line appended → event committed (n={len(took)})",
                f"p50 {statistics.median(took):.1f} ms, p95 {quantile(took, 0.95):.1f} ms",
                "p50 ≤ 100, p95 ≤ 500",
            )
            took = chunk_to_note(person, asked.rounds)
            table.add_row(
                f"chunk finished → note on disk and searchable, offline (n={len(took)})",
                f"p50 {statistics.median(took):.0f} ms, most {max(took):.0f} ms",
                "≤ 2000 ms",
            )
            took, known = remember_to_recall(person, asked.rounds)
            table.add_row(
                f"kmem remember, whole command (n={len(took)})",
                f"p50 {statistics.median(took):.0f} ms; in the next recall {known}/{len(took)}",
                "at return",
            )
            write_notes(person, asked.notes)
            until(lambda: json.loads(person.kmem("status", "--json"))["index"]["rows"] >= asked.notes, 600)
            time.sleep(5)
            resident = daemon.memory_info().rss / 1e6
            before = daemon.num_ctx_switches().voluntary
            threads = {thread.id: thread.user_time + thread.system_time for thread in daemon.threads()}
            time.sleep(10)
            busy = sum(thread.user_time + thread.system_time - threads.get(thread.id, 0.0) for thread in daemon.threads())
            table.add_row(f"daemon resident, idle, {asked.notes} notes", f"{resident:.0f} MB", "≤ 90 MB")
            table.add_row(
                "daemon, ten idle seconds",
                f"{busy * 1000:.0f} ms of processor, {daemon.num_ctx_switches().voluntary - before} switches of the main thread",
                "no polling",
            )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
