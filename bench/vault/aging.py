"""How a vault ages: sessions read in the order of time, as if each had just ended, with the vault consolidated between them.

    python -m bench.vault.aging --transcripts DIR [--since 2025-12-01] [--after 2] [--out DIR]

DIR holds transcripts of Claude Code, Codex and Copilot CLI, in folders named after them. The clock is the sessions' own: each is
read when it had just ended, by the components of the daemon without a model, and the vault is consolidated as the daemon does it,
once on each day that passes. After the last, ``--after`` more months pass in which nothing happens. A row is printed for each
month:

    read      sessions, and their transcripts' megabytes, from the beginning on
    notes     all, accepted, archived; what waits for review, at the end of the month and at most; entity pages, and their share
    list      titles at a session's start;  page   lines of `MEMORY.md`
    disk      megabytes of vault and state
    s/MB      seconds of processor for each megabyte of transcript read in this month, answers to its prompts not counted
    hook      milliseconds of processor that the answer to a prompt takes: median and worst of the twenty prompts last typed
    verify    seconds of processor that `kmem verify` takes, and what it found
    steps     days of this month on which consolidation changed something

``--out`` keeps vault and state, as a ``KMEM_HOME``. Asserts nothing.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
from kite_memory.distill.scheduler import Idle
from kite_memory.model.event import EventType
from kite_memory.model.note import NoteKind, NoteStatus
from kite_memory.vault.memory_page import PAGE
from kite_memory.wiring.services import Services, open_services

_PROMPTS, _ASKED = 20, 12
_QUIET = 3_600.0
_DAY = 86_400.0
_TAIL = 200_000
_TIMESTAMP = re.compile(r'"timestamp":"(\d{4}-\d\d-\d\dT[\d:.]+Z)"')
_VERIFY = "from kite_memory.cli.opening import run; run()"
_PLACES = {"claude-code": "claude/projects/bench", "codex": "codex/sessions", "copilot-cli": "copilot/session-state"}


@dataclass(slots=True)
class Clock:
    """Time as the sessions have it, moved from one to the next."""

    now: float = 0.0

    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)


@dataclass(slots=True, kw_only=True)
class Row:
    month: str
    sessions: int = 0
    megabytes: float = 0.0
    read: float = 0.0
    took: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    review: int = 0
    most_review: int = 0
    titles: int = 0
    page_lines: int = 0
    disk: float = 0.0
    hook: Sequence[float] = ()
    verify: tuple[float, str] = (0.0, "")
    steps: int = 0

    def __str__(self) -> str:
        notes, entities = sum(self.statuses.values()), self.kinds[NoteKind.ENTITY]
        middle, worst = (statistics.median(self.hook), max(self.hook)) if self.hook else (0.0, 0.0)
        per_megabyte = f"{self.took / self.read:.2f}" if self.read else "-"
        return (
            f"{self.month:8} {self.sessions:8} {self.megabytes:5.0f} {notes:6} {self.statuses[NoteStatus.ACCEPTED]:8}"
            f" {self.statuses[NoteStatus.ARCHIVED]:8} {self.review:6} {self.most_review:4} {entities:5}"
            f" {100 * entities / max(1, notes):4.1f}% {self.titles:4} {self.page_lines:4} {self.disk:5.0f} {per_megabyte:>5}"
            f" {middle:5.1f} {worst:5.1f} {self.verify[0]:6.1f} {self.verify[1]:>5} {self.steps:5}"
        )


HEADING = (
    f"{'month':8} {'sessions':>8} {'MB':>5} {'notes':>6} {'accepted':>8} {'archived':>8} {'review':>6} {'most':>4}"
    f" {'pages':>5} {'':5} {'list':>4} {'page':>4} {'disk':>5} {'s/MB':>5}"
    f" {'hook':>5} {'worst':>5} {'verify':>6} {'found':>5} {'steps':>5}"
)


def configured(home: Path, agents: Path) -> Config:
    return Config(
        file=home / "config.toml",
        state=home / "state",
        vault=home / "memory",
        claude_root=agents / "claude",
        codex_root=agents / "codex",
        copilot_root=agents / "copilot",
        extractor=ExtractorConfig(name="offline", calls_per_day=10**9),
        embedder=EmbedderConfig(name="local"),
        judge="off",
    )


def transcripts(folder: Path) -> list[tuple[float, Path]]:
    """Return when each ends, in order; without those that have no times."""
    found: list[tuple[float, Path]] = []
    for agent in _PLACES:
        for path in sorted((folder / agent).rglob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _TAIL))
                times = _TIMESTAMP.findall(file.read().decode("utf-8", "replace"))
            if times:
                found.append((datetime.fromisoformat(max(times)).timestamp(), path))
    return sorted(found)


def read(services: Services, path: Path, agents: Path, folder: Path) -> Path:
    """Read a transcript from where its agent would have written it."""
    copied = agents / _PLACES[path.relative_to(folder).parts[0]] / path.name
    copied.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, copied)
    for source, there in services.pipeline.sources_of([copied]):
        services.pipeline.ingest(source, there)
    return copied


def distil(services: Services, clock: Clock) -> None:
    """Keep what is worth it of a session that has just ended."""
    services.pipeline.form_chunks()
    clock.now += _QUIET
    services.pipeline.form_chunks()
    while not isinstance(services.pipeline.distil(), Idle):
        pass


def answered(
    services: Services, event: str, session: str, cwd: str, prompt: str = "", *, arrives: bool = True
) -> tuple[str, float]:
    """Return what the hook prints, and the milliseconds of processor that it took."""
    body = {"hook_event_name": event, "session_id": session, "cwd": cwd, "prompt": prompt, "source": "startup"}
    began = time.process_time()
    text, delivery = services.hooks.prepare(json.dumps(body).encode())
    took = 1000 * (time.process_time() - began)
    (delivery.arrived if arrives else delivery.lost)()
    return text, took


def ask(services: Services, session: str) -> None:
    """Answer the session's prompts: what is shown stays longer."""
    for named in services.timeline.sessions.named(session):
        typed = [
            event for event in services.timeline.events.of_session(named.provider, named.id) if event.type is EventType.USER_MESSAGE
        ]
        for event in typed[:_ASKED]:
            answered(services, "UserPromptSubmit", named.id, named.cwd, event.text[:2_000])


def pass_time(services: Services, clock: Clock, until: float, row: Row) -> None:
    """Consolidate once on each day up to ``until``."""
    while clock.now + _DAY <= until:
        clock.now += _DAY
        row.steps += services.consolidating.maintain(quiet_for=_QUIET)
        row.most_review = max(row.most_review, services.operations.perform("review", {"limit": 1})["waiting"])
    clock.now = max(clock.now, until)


def prompts(services: Services) -> list[tuple[str, str]]:
    """Return the prompts typed last, each with its folder."""
    states = sorted(services.timeline.sessions.states(), key=lambda state: -state.quiet_since)
    found: list[tuple[str, str]] = []
    for state in states:
        for event in reversed(services.timeline.events.of_session(state.session.provider, state.session.id)):
            if event.type is EventType.USER_MESSAGE and event.text.strip():
                found.append((event.text[:2_000], state.session.cwd))
            if len(found) == _PROMPTS:
                return found
    return found


def verified(home: Path) -> tuple[float, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", _VERIFY, "verify", "--json"]
    ended = subprocess.run(command, env={**os.environ, "KMEM_HOME": str(home)}, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    try:
        return took, str(len(json.loads(ended.stdout)))
    except ValueError:
        return took, "?"


def measure(services: Services, row: Row, home: Path) -> Row:
    services.operations.perform("review_page", {})
    for entry in services.vault.notes.entries():
        if (note := services.vault.notes.read(entry.path)) is not None:
            row.statuses[note.status.value] += 1
            row.kinds[note.kind.value] += 1
    row.review = services.operations.perform("review", {"limit": 1})["waiting"]
    row.most_review = max(row.most_review, row.review)
    row.page_lines = sum(line.lstrip().startswith("- ") for line in services.vault.pages.read(PAGE).splitlines())
    row.disk = sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) / 1e6
    latest = prompts(services)
    took: list[float] = []
    for place, (text, cwd) in enumerate(latest):
        took.append(answered(services, "UserPromptSubmit", f"aging-{row.month}-{place}", cwd, text, arrives=False)[1])
    row.hook = took
    if latest:
        start, _ = answered(services, "SessionStart", f"aging-{row.month}", latest[0][1], arrives=False)
        row.titles = sum(line.startswith("- ") for line in start.splitlines())
    row.verify = verified(home)
    return row


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transcripts", type=Path, required=True)
    parser.add_argument("--since", default="2025-12-01")
    parser.add_argument("--after", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    since = datetime.fromisoformat(given.since).replace(tzinfo=UTC).timestamp()
    sessions = [(ended, path) for ended, path in transcripts(given.transcripts) if ended >= since]
    if not sessions:
        sys.exit("error: no transcripts there")
    with ExitStack() as stack:
        home = given.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kmem-bench-")))
        agents = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kmem-bench-")))
        clock = Clock(now=sessions[0][0])
        services = stack.enter_context(open_services(configured(home, agents), clock=clock.moment))
        services.init_vault()
        print(HEADING)
        row = Row(month=f"{clock.moment():%Y-%m}")
        for ended, path in sessions:
            if (month := f"{datetime.fromtimestamp(ended, UTC):%Y-%m}") != row.month:
                print(measure(services, row, home), flush=True)
                row = Row(month=month, sessions=row.sessions, megabytes=row.megabytes)
            pass_time(services, clock, ended, row)
            clock.now = max(clock.now, ended + 60)
            began = time.process_time()
            copied = read(services, path, agents, given.transcripts)
            row.took += time.process_time() - began
            ask(services, path.stem)
            began = time.process_time()
            distil(services, clock)
            row.took += time.process_time() - began
            copied.unlink()
            size = path.stat().st_size / 1e6
            row.sessions, row.megabytes, row.read = row.sessions + 1, row.megabytes + size, row.read + size
        print(measure(services, row, home), flush=True)
        for _ in range(given.after):
            row = Row(month=f"{clock.moment():%Y-%m}+", sessions=row.sessions, megabytes=row.megabytes)
            pass_time(services, clock, clock.now + 30 * _DAY, row)
            print(measure(services, row, home), flush=True)


if __name__ == "__main__":
    main()
