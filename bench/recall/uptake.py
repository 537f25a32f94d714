"""How well one can tell afterwards that a note was taken up, on labelled prompts of real sessions.

    python -m bench.recall.uptake --gold DIR --transcripts DIR

In those sessions no note was ever shown, so this pretends that some were, each at one prompt, and reads the two turns that
followed, as the daemon would:

  worked out       notes that were made of what was worked out in these very turns: what a reader should find
  its control      notes of other sessions
  relevant         notes of earlier sessions that would have helped with the prompt, by the labels: the agent did without them
  and its control  notes of earlier sessions that would not have
  near misses      of those, the ones that have the most words in common with the prompt

Prints a table for each project; nothing of the data is written anywhere.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kite_memory.app.usage_report import turns
from kite_memory.model.event import Event, EventType
from kite_memory.model.note import Note, NoteKind
from kite_memory.recall.uptake import uptake
from kite_memory.sources.claude_code.source import ClaudeCode
from kite_memory.text.stems import STOP_WORDS

_ANY_DAY = datetime(2026, 1, 1, tzinfo=UTC)
_BUDGET = 64 << 20
_TURNS = 2
_CONTROLS = 4
_NEAREST = 2

NotePair = tuple[str, str]
"""Of which group a note was, and what was made of it."""


class Project:
    def __init__(self, gold: Path, source: ClaudeCode, transcripts: Path) -> None:
        listed = [line.split("\t") for line in (gold / "sessions.tsv").read_text(encoding="utf-8").splitlines()]
        self.sessions = {number: events_of(source, transcripts / gold.name / file) for number, _, file, _ in listed}
        self.rows = {row["id"]: row for row in rows(gold / "notes.jsonl")}
        self.notes = {name: note_of(row) for name, row in self.rows.items()}
        self.prompts = [row for row in rows(gold / "prompts.jsonl") if row["need"] != "none"]
        self.chance = random.Random(0)

    def rows_of_notes(self) -> Iterator[NotePair]:
        for name, row in self.rows.items():
            yield from self._worked_out(name, row)
        for prompt in self.prompts:
            yield from self._relevant(prompt)

    def _worked_out(self, name: str, row: dict[str, Any]) -> Iterator[NotePair]:
        events = self.sessions[row["session"]]
        first = next((place for place, event in enumerate(events) if event.id[:8] in row["evidence"]), 0)
        prompt = next((place for place in range(first - 1, -1, -1) if is_prompt(events[place])), None)
        if prompt is None:
            return
        others = [other for other, each in self.rows.items() if each["session"] != row["session"]]
        yield "worked out", outcome(self.notes[name], events, prompt)
        for other in self._some(others):
            yield "its control", outcome(self.notes[other], events, prompt)

    def _relevant(self, row: dict[str, Any]) -> Iterator[NotePair]:
        events = self.sessions[row["session"]]
        prompt = next(place for place, event in enumerate(events) if event.id[:8] == row["event"])
        for name in row["relevant"]:
            yield "relevant", outcome(self.notes[name], events, prompt)
        earlier = [name for name, each in self.rows.items() if each["session"] < row["session"] and name not in row["relevant"]]
        for name in self._some(earlier):
            yield "and its control", outcome(self.notes[name], events, prompt)
        asked = words(events[prompt].text)
        for name in sorted(earlier, key=lambda name: -len(asked & words(self.notes[name].body)))[:_NEAREST]:
            yield "near misses", outcome(self.notes[name], events, prompt)

    def _some(self, names: Sequence[str]) -> list[str]:
        return self.chance.sample(names, min(_CONTROLS, len(names)))


def events_of(source: ClaudeCode, path: Path) -> list[Event]:
    events: list[Event] = []
    cursor = None
    while True:
        look = source.read(path, cursor, budget=_BUDGET)
        events += look.events
        cursor = look.cursor
        if not look.more:
            return events


def is_prompt(event: Event) -> bool:
    return event.type is EventType.USER_MESSAGE and event.role == "user"


def outcome(note: Note, events: Sequence[Event], prompt: int) -> str:
    """As if the note had been shown with that prompt."""
    result = turns(events, events[prompt].at)
    end = result.ends[_TURNS - 1] if len(result.ends) >= _TURNS else len(result.after)
    return uptake(note, before=result.before, after=result.after[:end]).outcome


def words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w{4,}", text.casefold()) if word not in STOP_WORDS}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def note_of(row: dict[str, Any]) -> Note:
    rejected = "".join(f"\n\n**Rejected:** {text}" for text in row["rejected"])
    return Note(
        id=row["id"],
        path=f"{row['id']}.md",
        kind=NoteKind(row["kind"]),
        title=row["title"],
        body=row["body"] + rejected,
        entities=tuple(row["entities"]),
        created=_ANY_DAY,
        updated=_ANY_DAY,
    )


def print_table(name: str, result: Sequence[NotePair]) -> None:
    counted = Counter(result)
    print(f"\n{name:16}{'notes':>7}{'used':>7}{'ignored':>9}{'unknown':>9}{'used, of all':>15}{'of those known':>15}")
    for group in dict.fromkeys(group for group, _ in result):
        used, ignored, unknown = (counted[group, what] for what in ("used", "ignored", "unknown"))
        total = used + ignored + unknown
        shares = f"{used / total:15.1%}{used / max(1, used + ignored):15.1%}"
        print(f"{group:16}{total:7}{used:7}{ignored:9}{unknown:9}{shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--gold", type=Path, required=True, help="a folder of labelled projects, each with notes and prompts")
    parser.add_argument("--transcripts", type=Path, required=True, help="a folder with the transcripts of each project")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "projects").symlink_to(arguments.transcripts.absolute(), target_is_directory=True)
        source = ClaudeCode(root, own_state=root / "state")
        for gold in sorted(path.parent for path in arguments.gold.glob("*/sessions.tsv")):
            print_table(gold.name, list(Project(gold, source, root / "projects").rows_of_notes()))


if __name__ == "__main__":
    main()
