"""Whether two sessions that belong together are joined, and two that only look alike are not.

    python -m bench.timeline.thread_pairs PAIRS [--crowd 0]

PAIRS has a line for each pair: two sessions shown by their date, branch, prompts, files, commands, commits and outcome, and whether
they are ``joined``. Each pair is a project of its own; ``--crowd`` adds so many sessions that have to do with neither. Prints which
were joined, surely or not; asserts nothing.
"""

import argparse
import json
import tempfile
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kite_memory.model.event import Cursor, Event, EventType, ReadResult, RedactedResult, Session, Where
from kite_memory.timeline.store import Timeline
from kite_memory.timeline.threads import Joined, joined

HOME = "/home/ada/work"


def look(number: int, project: str, content: dict[str, Any]) -> RedactedResult:
    began = datetime.fromisoformat(content["date"]).replace(tzinfo=UTC)
    name = f"{number:08x}-0000-4000-8000-000000000000"
    session = Session(id=name, provider="claude-code", started=began, project=project, cwd=HOME, branch=content["branch"])
    events: list[Event] = []

    def tell(type: EventType, text: str, *, command: str = "", path: str = "", call: str = "") -> None:
        place = len(events)
        events.append(
            Event(
                id=f"{number:04x}{place:04x}-0000-4000-8000-000000000000",
                session=name,
                provider="claude-code",
                ordinal=place,
                at=began + timedelta(minutes=place),
                role="user" if type is EventType.USER_MESSAGE else "assistant" if type is EventType.ASSISTANT_MESSAGE else "tool",
                type=type,
                text=text,
                where=Where(file=f"/t/{name}", start=place, end=place),
                command=command,
                path=path,
                call=call,
                status="ok" if type in (EventType.TOOL_RESULT, EventType.FILE_ACTION) else "",
            )
        )

    for prompt in content["prompts"]:
        tell(EventType.USER_MESSAGE, prompt)
    for path in content["files"]:
        tell(EventType.FILE_ACTION, "edited, 3 lines added, 1 removed", path=f"{HOME}/{path}")
    for place, command in enumerate(content["commands"]):
        tell(EventType.COMMAND, command, command=command, call=f"run-{place}")
        tell(EventType.TOOL_RESULT, "done", call=f"run-{place}")
    for place, subject in enumerate(content["commits"]):
        command = f'git commit -m "{subject}"'
        tell(EventType.COMMAND, command, command=command, call=f"commit-{place}")
        tell(EventType.TOOL_RESULT, f"[{content['branch']} {number:05x}{place:02x}] {subject}", call=f"commit-{place}")
    tell(EventType.ASSISTANT_MESSAGE, content["outcome"])
    cursor = Cursor(position=len(events), size=len(events), mtime_ns=1)
    return RedactedResult(ReadResult(path=f"/t/{name}", session=session, events=tuple(events), problems=(), cursor=cursor))


def between(found: Joined, first: Session, second: Session) -> str:
    ids = {first.id, second.id}
    for joint in (*(joint for thread in found.threads for joint in thread.joints), *found.unsure):
        if {joint.earlier.id, joint.later.id} == ids:
            reasons = "; ".join(f"{each.tie} {each.what[:40]}" for each in joint.reasons[:3])
            return f"{'joined' if joint.sure else 'unsure'} {joint.strength:.2f} {reasons}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--crowd", type=int, default=0)
    given = parser.parse_args()
    pairs = [json.loads(line) for line in given.pairs.read_text(encoding="utf-8").splitlines() if line.strip()]
    counts: Counter[tuple[bool, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="kmem-bench-") as name, closing(Timeline(Path(name) / "timeline.sqlite")) as timeline:
        for place, pair in enumerate(pairs):
            project = f"project-{place}"
            both = [look(100 * place + number, project, pair[which]) for number, which in enumerate(("first", "second"))]
            others = [other for other in pairs if other is not pair]
            crowd = [
                look(100 * place + 10 + number, project, {**others[number % len(others)]["first"], "date": pair["first"]["date"]})
                for number in range(given.crowd)
            ]
            timeline.commit([*both, *crowd], "claude-code")
            sessions = [each.session for each in both]
            assert sessions[0] is not None
            assert sessions[1] is not None
            said = between(joined(timeline.sessions.works(project=project)), sessions[0], sessions[1])
            counts[pair["joined"], said.partition(" ")[0] or "apart"] += 1
            right = (said.partition(" ")[0] == "joined") is pair["joined"]
            print(f"{pair['id']}  {'join ' if pair['joined'] else 'apart'}  {'ok   ' if right else 'WRONG'}  {said}")
    for truth in (True, False):
        text = ", ".join(f"{count} {how}" for (is_true, how), count in sorted(counts.items()) if is_true is truth)
        print(f"{'true' if truth else 'false'} joints: {text}")


if __name__ == "__main__":
    main()
