"""How often an agent is given something as it runs a command or when one has failed, and what that costs.

    python -m bench.recall.actions --gold DIR --transcripts DIR [--show 60]

``--gold`` holds labelled projects, each a folder with ``notes.jsonl`` and ``sessions.tsv``; ``--transcripts`` holds, under
the same names, the sessions themselves, read in place. Each project is replayed in time order through the real source, the
real timeline and the real `Recall.act`: before a session's calls there are the notes and the events of the sessions before
it. A call is asked about as it is run, and again where it failed. ``--show`` prints that many of the lines, evenly spread,
for somebody to read. Nothing of the data is written anywhere but into a temporary folder.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import csv
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Session, Status, Where
from kite_memory.model.note import Entry, Note, NoteKind
from kite_memory.recall.index import Index
from kite_memory.recall.recall import Recall
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.sources.claude_code.source import ClaudeCode
from kite_memory.text.shell import Action
from kite_memory.timeline.store import Timeline
from tests.fakes.hashing_embedder import HashingEmbedder

_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_NOW = datetime(2026, 12, 1, tzinfo=UTC)
_SHELL = "Bash"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRemark:
    session: str
    call: str
    moment: str
    line: str
    shell: bool


@dataclass(slots=True, kw_only=True)
class Tally:
    calls: int = 0
    failed: int = 0
    others: int = 0
    seconds: list[float] = field(default_factory=list)
    remarks: list[ToolRemark] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool's call with what came of it: ``error`` is empty for one that succeeded."""

    tool: str
    command: str
    path: str
    error: str


class Pile:
    """A vault in memory."""

    def __init__(self) -> None:
        self._notes: dict[str, Note] = {}

    def add(self, note: Note) -> None:
        self._notes[note.path] = note

    def entries(self) -> list[Entry]:
        return [Entry(path=path, size=len(note.body), mtime_ns=1) for path, note in self._notes.items()]

    def read(self, path: str) -> Note | None:
        return self._notes.get(path)


def gold_note(row: dict[str, Any], project: str) -> Note:
    created = _BEGAN + timedelta(days=int(row["session"]))
    return Note(
        id=row["id"],
        path=f"notes/{row['id']}.md",
        kind=NoteKind(row["kind"]),
        title=row["title"],
        body=row["body"] + "".join(f"\n\n**Rejected:** {text}" for text in row["rejected"]),
        entities=tuple(row["entities"]),
        created=created,
        updated=created,
        project=project,
        importance=row["importance"],
        supersedes=tuple(row["supersedes"]),
    )


def sessions(transcripts: Path, project: str, names: Sequence[str], home: Path) -> Iterator[tuple[Session, list[ReadResult]]]:
    """In the order of ``names``, through the source as the daemon reads it."""
    (home / "projects").symlink_to(transcripts, target_is_directory=True)
    source = ClaudeCode(home, own_state=home / "own")
    for file in names:
        path = home / "projects" / project / file
        looks = [source.read(path, None, budget=4 << 20)]
        while looks[-1].more:
            looks.append(source.read(path, looks[-1].cursor, budget=4 << 20))
        session = next((look.session for look in looks if look.session is not None), None)
        if session is not None:
            yield session, looks


def calls(events: Sequence[Event]) -> Iterator[Call]:
    """As the hooks would see them. What the person ran or turned down is none of the agent's."""
    commands = {event.call: event.command for event in events if event.type is EventType.COMMAND and event.call}
    results = {event.call: event for event in events if event.type is EventType.TOOL_RESULT and event.call}
    for event in events:
        result = results.get(event.call)
        if event.type is EventType.TOOL_CALL and result is not None and result.status in ("ok", "failed"):
            error = (result.text or "failed") if result.status == "failed" else ""
            yield Call(tool=event.tool, command=commands.get(event.call, ""), path=event.path, error=error)


def replay(gold: Path, transcripts: Path, folder: Path) -> Tally:
    notes = [json.loads(line) for line in (gold / "notes.jsonl").read_text(encoding="utf-8").splitlines()]
    with (gold / "sessions.tsv").open(encoding="utf-8", newline="") as table:
        order = {row[2]: row[0] for row in csv.reader(table, delimiter="\t")}
    timeline, pile, tally = Timeline(folder / "timeline.sqlite"), Pile(), Tally()
    index = Index(folder / "index", embedder=HashingEmbedder(dim=64))
    recall = Recall(index=index, memory=SessionMemory(folder / "memory.sqlite"), clock=lambda: _NOW, fixes=timeline.fixes)
    for session, looks in sessions(transcripts, gold.name, list(order), folder):
        number = order[f"{session.id}.jsonl"]
        index.refresh(pile)
        for call in calls([event for look in looks for event in look.events]):
            ask(recall, call, session, gold.name, tally, number)
        timeline.commit([RedactedResult(_of_project(look, gold.name)) for look in looks], session.provider)
        for row in notes:
            if row["session"] == number:
                pile.add(gold_note(row, gold.name))
    recall.close()
    timeline.close()
    return tally


def _of_project(look: ReadResult, project: str) -> ReadResult:
    """All sessions of a labelled project are of one, wherever its folders lay."""
    return look if look.session is None else replace(look, session=replace(look.session, project=project))


def ask(recall: Recall, call: Call, session: Session, project: str, tally: Tally, number: str) -> None:
    shell = call.tool == _SHELL
    tally.calls += shell
    tally.others += not shell
    tally.failed += shell and bool(call.error)
    files = (call.path,) if call.path and call.tool in ("Edit", "MultiEdit", "Write", "NotebookEdit") else ()
    for moment, error in (("before", ""), ("after", call.error)):
        if moment == "after" and not error:
            continue
        action = Action(
            session=session.id, project=project, cwd=session.cwd, tool=call.tool, command=call.command, error=error, files=files
        )
        started = time.perf_counter()
        injection = recall.act(action)
        tally.seconds.append(time.perf_counter() - started)
        if not injection.silent:
            line = " ".join(injection.block.splitlines()[2:-1])
            name = call.command or f"{call.tool} {call.path}"
            tally.remarks.append(ToolRemark(session=number, call=name, moment=moment, line=line, shell=shell))


def print_tallies(tallies: dict[str, Tally]) -> None:
    columns = ("shell calls", "failed", "other calls", "given before", "given after", "share", "p50 ms", "p99 ms")
    print(f"{'project':12}" + "".join(f"{column:>13}" for column in columns))
    for project, tally in tallies.items():
        before = sum(result.moment == "before" for result in tally.remarks)
        after = len(tally.remarks) - before
        times = sorted(1000 * seconds for seconds in tally.seconds)
        p99 = times[min(len(times) - 1, int(0.99 * len(times)))]
        share = f"{len(tally.remarks) / max(1, tally.calls + tally.others):.2%}"
        figures = (tally.calls, tally.failed, tally.others, before, after, share, f"{statistics.median(times):.2f}", f"{p99:.2f}")
        print(f"{project:12}" + "".join(f"{figure:>13}" for figure in figures))
        shell = sum(result.shell for result in tally.remarks)
        print(f"{'':12}of them with a shell's call: {shell}, {shell / max(1, tally.calls):.2%} of those")


def timeline_speed(folder: Path, events: int) -> None:
    """How long the question for an earlier fix takes where the failure is common: ended soon, never, or only elsewhere."""
    timeline = Timeline(folder / "large.sqlite")
    chance = random.Random(7)
    for number in range(events // 5_000):
        timeline.commit([_made_up(number, chance)], "made-up")
    print(f"\na fix asked for among {events:,} events")
    for case, command, depot, project in [
        ("that is there", "make deploy", "aaa", "p3"),
        ("that is not there: it never worked", "make ship", "bbb", "p3"),
        ("that is not there: another project's", "make deploy", "aaa", "elsewhere"),
    ]:
        times = []
        for _ in range(200):
            started = time.perf_counter()
            timeline.fixes.fix(
                project=project, session="", signatures=(f"error: unable to reach depot {depot}",) * 8, command=command
            )
            times.append(1000 * (time.perf_counter() - started))
        times.sort()
        print(f"  {case:40} p50 {times[100]:.2f} ms, p99 {times[198]:.2f} ms")
    timeline.close()


def _made_up(number: int, chance: random.Random) -> RedactedResult:
    """A session of a thousand calls, one in ten of which fails; those of one kind never succeed."""
    session = Session(id=f"s{number}", provider="made-up", started=_BEGAN + timedelta(hours=number), project=f"p{number % 20}")
    events: list[Event] = []
    for run in range(1_000):
        never = run % 4 == 0
        failed: bool = never or chance.random() < 0.1
        status: Status = "failed" if failed else "ok"
        command = "make ship" if never else "make deploy"
        said = f"error: unable to reach depot {'bbb' if never else 'aaa'}" if failed else "done " * chance.randrange(1, 400)
        listed: list[tuple[EventType, str, Status]] = [
            (EventType.TOOL_CALL, "deploy", ""),
            (EventType.COMMAND, command, ""),
            (EventType.TOOL_RESULT, said, status),
            (EventType.ERROR if failed else EventType.ASSISTANT_MESSAGE, said, status if failed else ""),
            (EventType.FILE_ACTION, "edited", "ok"),
        ]
        for place, (type, text, status) in enumerate(listed):
            ordinal = run * len(listed) + place
            events.append(
                Event(
                    id=f"{number:06x}{ordinal:06x}",
                    session=session.id,
                    provider=session.provider,
                    ordinal=ordinal,
                    at=session.started + timedelta(seconds=ordinal),
                    role="tool",
                    type=type,
                    text=text,
                    where=Where(file="made-up", start=ordinal, end=ordinal),
                    command=command if type in (EventType.COMMAND, EventType.ERROR) else "",
                    path="a/b.py" if type is EventType.FILE_ACTION else "",
                    status=status,
                    call=f"c{run}",
                )
            )
    cursor = Cursor(position=number, size=number, mtime_ns=number)
    return RedactedResult(ReadResult(path=f"made-up/{number}", session=session, events=tuple(events), problems=(), cursor=cursor))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--gold", type=Path, help="a folder of labelled projects")
    parser.add_argument("--transcripts", type=Path, help="a folder with their sessions")
    parser.add_argument("--show", type=int, default=0, help="print so many of the lines")
    parser.add_argument("--events", type=int, default=0, help="also ask a made-up timeline of so many events")
    asked = parser.parse_args()
    if asked.gold and asked.transcripts:
        tallies: dict[str, Tally] = {}
        for gold in sorted(path.parent for path in asked.gold.glob("*/notes.jsonl")):
            with tempfile.TemporaryDirectory() as folder:
                tallies[gold.name] = replay(gold, asked.transcripts, Path(folder))
        print_tallies(tallies)
        listed = [(project, each) for project, tally in tallies.items() for each in tally.remarks]
        for project, each in listed[:: max(1, len(listed) // asked.show)] if asked.show else ():
            print(f"\n{project} {each.session} {each.moment}: {' '.join(each.call.split())[:160]}\n  {each.line}")
    if asked.events:
        with tempfile.TemporaryDirectory() as folder:
            timeline_speed(Path(folder), asked.events)


if __name__ == "__main__":
    main()
