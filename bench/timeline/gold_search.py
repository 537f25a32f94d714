"""Labelled questions asked of the timeline: is an answer's session first, in the first five, and an event near its evidence?

    python -m bench.timeline.gold_search --gold DIR --transcripts DIR [--keep FOLDER]

Beside our search, the same questions are asked of a plain FTS5 over the same messages. ``--keep`` says where the timelines stay, so
that they need not be read and embedded again.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import re
import sqlite3
import statistics
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.recall.recall_gold import Labelled, events_of, labelled
from kite_memory.model.event import Cursor, Event, ReadResult, RedactedResult
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.timeline.conversations import CardQuery, ConversationEmbedder
from kite_memory.timeline.search import EventQuery
from kite_memory.timeline.store import Timeline

Place = tuple[str, int]
"""A session, and a line of its transcript."""

_NEAR = 6
_FIRST = 5
_MESSAGES = (
    "SELECT e.seq, e.text FROM events AS e WHERE e.type IN ('user_message', 'assistant_message', 'decision', 'resume_point')"
)


def read(project: Labelled, transcripts: Path, folder: Path, meaning: ConversationEmbedder) -> Timeline:
    path = folder / f"{project.name}.sqlite"
    there = path.exists()
    timeline = Timeline(path)
    for _, file in () if there else project.sessions():
        session, events = events_of(transcripts, file)
        cursor = Cursor(position=1, size=1, mtime_ns=1)
        changed = replace(session, project=project.name)
        timeline.commit(
            [RedactedResult(ReadResult(path=f"/t/{file}", session=changed, events=tuple(events), problems=(), cursor=cursor))],
            changed.provider,
        )
    while timeline.cards.rebuild():
        pass
    while timeline.vectors.embed(meaning, 200, per_day=10**9):
        pass
    return timeline


class Lines:
    """Which line of its transcript an event was read from."""

    def __init__(self, transcripts: Path) -> None:
        self._transcripts = transcripts
        self._starts: dict[str, list[int]] = {}

    def of(self, event: Event) -> Place:
        name = Path(event.where.file).name
        if name not in self._starts:
            result = next(self._transcripts.rglob(name)).read_bytes()
            self._starts[name] = [0, *(found.end() for found in re.finditer(rb"\n", result))]
        return event.session, bisect_right(self._starts[name], event.where.start)


def answers(project: Labelled, timeline: Timeline, lines: Lines) -> dict[str, set[Place]]:
    """Of each note, where its evidence stands."""
    files = dict(project.sessions())
    found: dict[str, set[Place]] = {}
    for note in project.rows("notes.jsonl"):
        session = Path(files[note["session"]]).stem
        events = [event for event in timeline.events.of_session("claude-code", session) if event.id[:8] in note["evidence"]]
        found[note["id"]] = {lines.of(event) for event in events} or {(session, -100)}
    return found


def plain(timeline: Timeline, lines: Lines, database: Path) -> Callable[[str], list[Place]]:
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE m USING fts5(text, tokenize = 'porter unicode61')")
    with sqlite3.connect(database) as result:
        index.executemany("INSERT INTO m (rowid, text) VALUES (?, ?)", result.execute(_MESSAGES))

    def ask(question: str) -> list[Place]:
        words = dict.fromkeys(re.findall(r"[^\W_]+", question.lower()))
        wanted = " OR ".join(f'"{word}"' for word in words)
        numbers = [row for (row,) in index.execute("SELECT rowid FROM m WHERE m MATCH ? ORDER BY rank LIMIT 5", (wanted,))]
        events = timeline.events.numbered(numbers)
        return [lines.of(events[number]) for number in numbers]

    return ask


def ours(
    timeline: Timeline,
    lines: Lines,
    meaning: ConversationEmbedder | None,
    *,
    cards: bool = True,
    events: bool = True,
    split: int = _FIRST,
) -> Callable[[str], list[Place]]:
    def ask(question: str) -> list[Place]:
        found = [hit.telling for hit in timeline.cards.find(CardQuery(text=question, limit=split), meaning)] if cards else []
        if events:
            there = {event.id for event in found}
            found += [
                hit.event
                for hit in timeline.search.find(EventQuery(text=question, limit=_FIRST), meaning)
                if hit.event.id not in there
            ]
        return [lines.of(event) for event in found[:_FIRST]]

    return ask


def tell(name: str, found: Sequence[tuple[list[Place], set[Place], float]]) -> None:
    first, of_session = (
        sum(any(place[0] in {answer[0] for answer in wanted} for place in places[:most]) for places, wanted, _ in found)
        for most in (1, _FIRST)
    )
    near = sum(
        any(place[0] == answer[0] and abs(place[1] - answer[1]) <= _NEAR for place in places for answer in wanted)
        for places, wanted, _ in found
    )
    silent = sum(not places for places, _, _ in found)
    took = sorted(cpu for *_, cpu in found)
    cpu = f"p50 {statistics.median(took):6.1f}  p95 {took[int(0.95 * len(took))]:6.1f} ms cpu"
    print(f"  {name:28}{first:5}{of_session:5}{near:5}{silent:5}   {cpu}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--transcripts", type=Path, required=True)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    local = LocalEmbedder()
    meaning = ConversationEmbedder(
        space=local.space.tag,
        of_texts=lambda texts: local.embed(texts, "document"),
        of_question=lambda text: local.embed([text], "query")[0],
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        for project in labelled(asked.gold):
            timeline = read(project, asked.transcripts, folder, meaning)
            lines = Lines(asked.transcripts)
            wanted = answers(project, timeline, lines)
            questions = project.rows("queries.jsonl")
            print(f"{project.name}: {len(questions)} questions; session first, in first five, event within six lines, silent")
            ways = {
                "plain FTS5 over messages": plain(timeline, lines, folder / f"{project.name}.sqlite"),
                "events alone": ours(timeline, lines, meaning, cards=False),
                "cards alone, words": ours(timeline, lines, None, events=False),
                "cards alone": ours(timeline, lines, meaning, events=False),
                "three cards, then events": ours(timeline, lines, meaning, split=3),
                "four cards, then events": ours(timeline, lines, meaning, split=4),
            }
            for name, ask in ways.items():
                found = []
                for question in questions:
                    began = time.thread_time()
                    places = ask(question["query"])
                    took = 1000 * (time.thread_time() - began)
                    found.append((places, set().union(*(wanted[note] for note in question["relevant"])), took))
                tell(name, found)
            timeline.close()


if __name__ == "__main__":
    main()
