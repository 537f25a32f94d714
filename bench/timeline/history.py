"""How long it takes to look back: a session of ten thousand events, where it stood, which sessions belong together, an answer.

    python -m bench.timeline.history [--events 10000] [--sessions 500] [--transcripts DIR] [--runs 7]
    python -m bench.timeline.history --cuts FOLDER --gold DIR --transcripts DIR [--seed 1] [--most 10]

Everything is invented, but for DIR: a folder of Claude Code's, whose ``projects`` are read in place. Times are of the operation as
the daemon carries it out, without starting Python; the one after «kmem» is the whole command without a daemon. Prints a table with
the limit beside each figure; asserts nothing.

With ``--cuts``, labelled sessions are cut at random events, and a sheet for each goes into FOLDER: the last events, then the brief
as `kmem resume` gives it, then what followed. A reader grades task, stable point, failing test and next step of each from 0 to 3.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.recall.recall_gold import events_of, labelled
from kite_memory.config import Config, EmbedderConfig, ExtractorConfig
from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Role, Session, Status, Where
from kite_memory.tui.rows import rows
from kite_memory.wiring.services import Services, open_services

PROJECT = Path(__file__).resolve().parents[2]
START = datetime(2026, 1, 1, 9, tzinfo=UTC)
_WORDS = "queue worker lock index pool retry token socket parser schema build deploy cache probe gateway ledger router shard"
WORDS = _WORDS.split(" ")
HOME = "/home/ada/orchard"
_LAST, _CHECKS, _PROMPTS, _FOLLOWED, _SHOWN = 40, 25, 6, 12, 500
"""Number of events of each sort on a sheet, and characters of each."""


def invented(number: int, events: int, chance: random.Random, files: list[str]) -> RedactedResult:
    """Turns of a prompt, some calls, a test run and an answer."""
    session = Session(
        id=f"{number:08x}-0000-4000-8000-000000000000",
        provider=("claude-code", "codex", "gemini-cli")[number % 3],
        started=START + timedelta(hours=5 * number),
        project="orchard",
        cwd=HOME,
        branch=chance.choice(("main", "main", f"graft/{number // 3}")),
    )
    listed: list[Event] = []

    def tell(
        type: EventType, role: Role, text: str, *, command: str = "", path: str = "", status: Status = "", call: str = ""
    ) -> None:
        place = len(listed)
        listed.append(
            Event(
                id=f"{number:04x}{place:04x}-{number:04x}-4000-8000-000000000000",
                session=session.id,
                provider=session.provider,
                ordinal=place,
                at=session.started + timedelta(seconds=place),
                role=role,
                type=type,
                text=text,
                where=Where(file=f"/t/{session.id}.jsonl", start=place, end=place),
                tool="Bash" if command else "Edit" if path else "",
                command=command,
                path=path,
                status=status,
                call=call,
            )
        )

    def words(count: int) -> str:
        return " ".join(chance.choices(WORDS, k=count))

    while len(listed) < events:
        tell(EventType.USER_MESSAGE, "user", f"Please mend the {words(12)}")
        for _ in range(chance.randint(2, 8)):
            call = f"call-{len(listed)}"
            if chance.random() < 0.5:
                path = f"{HOME}/{chance.choice(files)}"
                tell(EventType.TOOL_CALL, "assistant", words(30), path=path, call=call)
                tell(EventType.TOOL_RESULT, "tool", words(80), path=path, status="ok", call=call)
                tell(EventType.FILE_ACTION, "tool", "edited, 3 lines added, 1 removed", path=path, status="ok", call=call)
            else:
                command = f"pytest tests/test_{chance.choice(WORDS)}.py"
                failed = chance.random() < 0.2
                status: Status = "failed" if failed else "ok"
                tell(EventType.TOOL_CALL, "assistant", "", command=command, call=call)
                tell(EventType.COMMAND, "assistant", command, command=command, call=call)
                tell(
                    EventType.TOOL_RESULT,
                    "tool",
                    words(100) + ("\nAssertionError: no lock" if failed else ""),
                    status=status,
                    call=call,
                )
                tell(EventType.TEST_RESULT, "tool", "1 failed" if failed else "9 passed", command=command, status=status, call=call)
        tell(EventType.ASSISTANT_MESSAGE, "assistant", f"The {words(60)} works. Shall I go on?")
    listed = [replace(event, ordinal=place) for place, event in enumerate(listed)]
    return RedactedResult(
        ReadResult(
            path=f"/t/{session.id}.jsonl",
            session=session,
            events=tuple(listed),
            problems=(),
            cursor=Cursor(position=len(listed), size=len(listed), mtime_ns=1),
        )
    )


def config_in(folder: Path, claude: Path) -> Config:
    return Config(
        file=folder / "config.toml",
        state=folder / "state",
        vault=folder / "memory",
        claude_root=claude,
        extractor=ExtractorConfig(name="offline"),
        embedder=EmbedderConfig(name="local"),
    )


def timed(runs: int, done: Callable[[], object]) -> tuple[float, float]:
    """Median and longest, in milliseconds."""
    took: list[float] = []
    for _ in range(runs):
        began = time.perf_counter()
        done()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took), max(took)


def whole(services: Services, session: str) -> int:
    """As `kmem timeline SESSION --plain` does it, piece by piece."""
    after: int | None = -1
    events: list[dict[str, object]] = []
    while after is not None:
        content = json.loads(json.dumps(services.operations.perform("timeline", {"session": session, "after": after})))
        events += content["events"]
        after = content["next"]
    return sum(1 for _ in rows(events, [], HOME))


def command(folder: Path, *arguments: str) -> Callable[[], object]:
    environment = {
        **{name: os.environ[name] for name in ("PATH",) if name in os.environ},
        **{"HOME": str(folder), "KMEM_HOME": str(folder), "KMEM_EXTRACTOR": "offline", "PYTHONPATH": str(PROJECT)},
    }
    line = [sys.executable, "-m", "kite_memory", *arguments]
    return lambda: subprocess.run(line, env=environment, cwd=folder, check=True, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--cuts", type=Path)
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=10)
    given = parser.parse_args()
    if given.cuts:
        cut_sheets(given.cuts, given.gold, given.transcripts, random.Random(given.seed), given.most)
        return
    table = Table("what", "median ms", "longest ms", "limit ms", title=f"load {os.getloadavg()[0]:.1f}")

    def row(what: str, took: tuple[float, float], limit: str = "") -> None:
        table.add_row(what, f"{took[0]:.0f}", f"{took[1]:.0f}", limit)

    with tempfile.TemporaryDirectory(prefix="kmem-bench-") as name:
        folder = Path(name)
        chance = random.Random(3)
        files = [f"src/{one}/{other}.py" for one in WORDS for other in WORDS]
        with open_services(config_in(folder, folder / "claude")) as services:
            long = invented(0, given.events, chance, files)
            assert long.session is not None
            services.timeline.commit([long], long.session.provider)
            for number in range(1, given.sessions):
                look = invented(number, 200, chance, chance.sample(files, 12))
                services.timeline.commit([look], ("claude-code", "codex", "gemini-cli")[number % 3])
            name_of = long.session.id
            row(f"timeline, {given.events:,} events", timed(given.runs, lambda: whole(services, name_of)), "no pause")
            row("resume, the same", timed(given.runs, lambda: services.operations.perform("resume", {"session": name_of})), "150")
            row("sessions, the last 50", timed(given.runs, lambda: services.operations.perform("timeline", {})))
            row(f"threads over {given.sessions} sessions", timed(given.runs, lambda: services.operations.perform("threads", {})))
            question = {"question": "why does the gateway retry the token?"}
            row("ask, without a model", timed(given.runs, lambda: services.operations.perform("ask", question)))
        row("kmem resume --session …", timed(3, command(folder, "resume", "--session", name_of)))
        if given.transcripts:
            real(given.transcripts, folder / "real", given.runs, row)
    Console().print(table)


def cut_sheets(sheets: Path, gold: Path, transcripts: Path, chance: random.Random, most: int) -> None:
    """Write a sheet for each of some cuts: what a reader needs to judge the brief, and below it the brief."""
    sheets.mkdir(parents=True, exist_ok=True)
    files = [file for project in labelled(gold) for _, file in project.sessions()]
    tokens = []
    for number, file in enumerate(chance.sample(files, most), 1):
        session, events = events_of(transcripts, file)
        place = chance.randrange(len(events) // 5, len(events))
        kept = [event for event in events if event.where.start <= events[place].where.start]
        cursor = Cursor(position=1, size=1, mtime_ns=1)
        look = ReadResult(path=file, session=session, events=tuple(kept), problems=(), cursor=cursor)
        with (
            tempfile.TemporaryDirectory(prefix="kmem-bench-") as name,
            open_services(config_in(Path(name), Path(name) / "claude")) as services,
        ):
            services.timeline.commit([RedactedResult(look)], session.provider)
            brief = services.operations.perform("resume", {"session": session.id})
        tokens.append(brief["tokens"])
        checks = [event for event in kept if event.type in (EventType.TEST_RESULT, EventType.COMMAND)][-_CHECKS:]
        prompts = [event for event in kept if event.type is EventType.USER_MESSAGE][-_PROMPTS:]
        parts = (("the last prompts", prompts), ("the last commands and test results", checks), ("the last events", kept[-_LAST:]))
        shown = [f"## {title}\n" + "\n".join(map(shown_event, part)) for title, part in parts]
        head = f"# {number}: {file} cut after event {len(kept)} of {len(events)}"
        followed = "\n".join(map(shown_event, events[len(kept) :][:_FOLLOWED])) or "nothing"
        sheet = "\n\n".join((head, *shown, f"## the brief\n{brief['text']}", f"## what followed\n{followed}"))
        (sheets / f"{number:02}.md").write_text(f"{sheet}\n", encoding="utf-8")
    print(f"{most} sheets in {sheets}; briefs of {min(tokens)} to {max(tokens)} tokens, median {statistics.median(tokens):g}")


def shown_event(event: Event) -> str:
    text = " ".join((event.text or event.command)[:4_000].split())
    shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]} … {text[-_SHOWN // 2 :]}"
    about = " ".join(each for each in (event.tool, event.status, event.path, event.command[:160] if event.text else "") if each)
    return f"- {event.at:%m-%d %H:%M} {event.type.value} [{about}] {shown}"


def real(transcripts: Path, folder: Path, runs: int, row: Callable[[str, tuple[float, float], str], None]) -> None:
    with open_services(config_in(folder, transcripts)) as services:
        services.pipeline.ingest_many([(source, path) for source, path, _ in services.pipeline.unread()])
        sessions = sorted(services.timeline.sessions.overviews(limit=10_000), key=lambda each: -each.events)[:20]
        if not sessions:
            raise SystemExit(f"error: there are no sessions below {transcripts / 'projects'}")
        took = [
            timed(runs, lambda: services.operations.perform("resume", {"session": f"{each.session.provider}:{each.session.id}"}))  # noqa: B023 - called at once
            for each in sessions
        ]
        both = (statistics.median(one for one, _ in took), max(longest for _, longest in took))
        row(f"resume, the longest {len(sessions)} real sessions", both, "150")
        row("threads over the real sessions", timed(runs, lambda: services.operations.perform("threads", {})), "")


if __name__ == "__main__":
    main()
