"""Replay labelled projects in time order through the real recall, and say how well it spoke.

    python -m bench.recall.recall_gold --gold DIR --transcripts DIR --out PREDICTIONS.jsonl [--verdicts FILE] [--dial normal]

DIR holds one labelled project (notes.jsonl, prompts.jsonl, queries.jsonl, unrelated.jsonl, sessions.tsv), or one folder for each.
Every session's events are read by the real source, redacted, and committed to a real timeline up to each prompt; notes of earlier
sessions are written as notes into a vault; then the real `Recall` is asked. The prompts' texts come from the transcripts, by event.
With several projects the predictions of each lie beside OUT, under the project's name. ``--verdicts`` stands in for a judge;
``--figures FILE`` writes the gate's figures of every candidate, for `bench.recall.fit_gate`. ``--cards`` lets conversations be
pointed to and quoted too. ``--dropped 0.45`` leaves as many of the notes out; ``--distractors`` puts the notes of the project's
other sessions beside them, ``--invented 5000`` notes made of pieces of the labelled ones; with ``--spread`` they have the dates of
the labelled sessions instead of earlier ones. ``--reader`` opens titles as a blind reader of the labelled prompts did.
"""

import kite_memory.recall  # noqa: F401  isort: skip  (before numpy: it keeps OpenBLAS to one thread)

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from kite_memory.app.note_indexer import said_about
from kite_memory.app.searching import TimelineConversations
from kite_memory.model.event import (
    Cursor,
    Event,
    EvidenceReference,
    ReadResult,
    RedactedResult,
    Session,
    evidence_reference,
    opens_turn,
)
from kite_memory.model.hit import Injection, Judged, Question, Verdict
from kite_memory.model.note import Entry, Note, NoteKind
from kite_memory.recall.gate import Dial
from kite_memory.recall.index import Index
from kite_memory.recall.local_embedder import LocalEmbedder
from kite_memory.recall.recall import Recall
from kite_memory.recall.rendering import likely_tokens
from kite_memory.recall.search import Query
from kite_memory.recall.select import Prompt, Requirement, Weighed, situation_of
from kite_memory.recall.session_memory import SessionMemory
from kite_memory.redaction import drop_private, redact_event
from kite_memory.sources.claude_code.source import ClaudeCode
from kite_memory.timeline.store import Timeline
from kite_memory.vault.notefile import parse, render
from kite_memory.wiring.models import meaning_of

Json = dict[str, Any]

_READ = 1 << 26
_LAST_EVENTS = 200
_OPENS, _OPENS_NEEDLESSLY = 0.40, 0.10
"""How often a reader who did not see the labels opened a title that was needed, and one on a prompt that needed none."""
_PROMPT, _EXCHANGE = 1_500, 600
"""Characters of a prompt and of the exchange before it that go beside a prediction, for `bench.recall.opening`."""


@dataclass(slots=True, kw_only=True)
class Shelf:
    """A vault's folder, without the vault's guards, which are not what is measured."""

    root: Path
    known: dict[str, Entry] = field(default_factory=dict)

    def add(self, note: Note) -> None:
        file = self.root / note.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(note), encoding="utf-8")
        self.known[note.path] = Entry(path=note.path, size=file.stat().st_size, mtime_ns=1)

    def entries(self) -> list[Entry]:
        return list(self.known.values())

    def read(self, path: str) -> Note | None:
        entry = self.root / path
        found = parse(entry.read_text(encoding="utf-8"), path, created=datetime.now(UTC), updated=datetime.now(UTC))
        return found if isinstance(found, Note) else None


@dataclass(slots=True, kw_only=True)
class Clock:
    now: datetime

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    name: str
    folder: Path

    def rows(self, file: str) -> list[Json]:
        path = self.folder / file
        return rows(path) if path.exists() else []

    def sessions(self) -> Iterator[tuple[str, str]]:
        for line in (self.folder / "sessions.tsv").read_text(encoding="utf-8").splitlines():
            number, _, rest = line.partition("\t")
            if rest:
                yield number, rest.split("\t")[1]

    def ended(self) -> datetime:
        """Return when the last labelled session began."""
        lines = (self.folder / "sessions.tsv").read_text(encoding="utf-8").splitlines()
        return max(datetime.fromisoformat(parts[1]) for line in lines if len(parts := line.split("\t")) > 1).astimezone(UTC)


def rows(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def labelled(folder: Path) -> list[Labelled]:
    if (folder / "prompts.jsonl").exists():
        return [Labelled(name=folder.resolve().name, folder=folder)]
    return [Labelled(name=each.parent.name, folder=each.parent) for each in sorted(folder.glob("*/prompts.jsonl"))]


def events_of(transcripts: Path, file: str) -> tuple[Session, list[Event]]:
    """A whole transcript, redacted as the pipeline does it."""
    path = next(transcripts.rglob(file), None)
    if path is None:
        sys.exit(f"error: there is no {file} under {transcripts}")
    events: list[Event] = []
    cursor: Cursor | None = None
    session: Session | None = None
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "projects" / "here" / file  # where the source expects its transcripts
        copy.parent.mkdir(parents=True)
        shutil.copyfile(path, copy)
        source = ClaudeCode(Path(scratch), own_state=Path(scratch) / "state")
        while True:
            look = source.read(copy, cursor, budget=_READ)
            events += map(redact_event, look.events)
            session = session or look.session
            cursor = look.cursor
            if not look.more:
                break
    if session is None:
        sys.exit(f"error: {path} tells of no session")
    return session, events


def gold_note(row: Json, project: str, session: Session) -> Note:
    rejected = "".join(f"\n\n**Rejected:** {text}" for text in row["rejected"])
    created = session.started + timedelta(minutes=1)
    return Note(
        id=row["id"],
        path=f"notes/{row['id']}.md",
        kind=NoteKind(row["kind"]),
        title=row["title"],
        body=row["body"] + rejected,
        entities=tuple(row["entities"]),
        created=created,
        updated=created,
        project=project,
        importance=row["importance"],
        supersedes=tuple(row["supersedes"]),
        evidence=tuple(evidence_reference(session.provider, session.id, event) for event in row["evidence"]),
    )


def distractors(project: Labelled, began: datetime) -> list[Note]:
    """Notes of the project's other sessions, unlabelled; those without a date as older than the first labelled session."""
    return [
        _bystander(
            f"d-{at:04}",
            project.name,
            row["kind"],
            row["title"],
            row["body"],
            datetime.fromisoformat(row["created"]) if row["created"] else began - timedelta(days=1),
            row,
        )
        for at, row in enumerate(project.rows("distractors.jsonl"))
    ]


def invented(project: Labelled, many: int, before: datetime, until: datetime | None = None) -> list[Note]:
    """Notes that mean nothing, made of pieces of the labelled ones, so that they have their words.

    They are older than ``before``, or with ``until`` between the two: else an order by date alone would separate them.
    """
    draw = random.Random(0)
    rows = project.rows("notes.jsonl")

    def dated() -> datetime:
        return before - timedelta(hours=draw.randrange(2_000)) if until is None else before + (until - before) * draw.random()

    def piece(key: str, length: int) -> str:
        words = draw.choice(rows)[key].split()
        at = draw.randrange(max(1, len(words) - length))
        return " ".join(words[at : at + length])

    return [
        _bystander(
            f"i-{at:04}",
            project.name,
            draw.choice(rows)["kind"],
            f"{piece('title', 3)} {piece('title', 4)}",
            ". ".join(piece("body", 12) for _ in range(4)),
            dated(),
            {"importance": draw.choice(rows)["importance"]},
        )
        for at in range(many)
    ]


def _bystander(called: str, project: str, kind: str, title: str, body: str, created: datetime, row: Json) -> Note:
    return Note(
        id=called,
        path=f"notes/{called}.md",
        kind=NoteKind(kind),
        title=title,
        body=body,
        created=created,
        updated=created,
        project=project,
        importance=row["importance"],
    )


@dataclass(slots=True)
class Tally:
    """Of the prompts that a verdict is recorded for, at the end of their turn."""

    none: int = 0
    false: int = 0
    needed: int = 0
    right: int = 0
    shown: int = 0
    useful: int = 0

    def add(self, relevant: set[str], shown: set[str]) -> None:
        self.shown += len(shown)
        self.useful += len(relevant & shown)
        if relevant:
            self.needed += 1
            self.right += bool(relevant & shown)
        else:
            self.none += 1
            self.false += bool(shown)

    def __str__(self) -> str:
        return (
            f"shown a right one {self.right}/{self.needed}, false injection {self.false}/{self.none},"
            f" useful of those shown {self.useful}/{self.shown}"
        )


@dataclass(slots=True, kw_only=True)
class Replay:
    """One project with its own services. Predictions go to ``out`` as they come."""

    project: Labelled
    transcripts: Path
    out: TextIO
    dial: Dial
    verdicts: dict[tuple[str, str], Json]
    figures: TextIO | None
    home: Path
    cards: bool = False
    dropped: float = 0.0
    distractors: bool = False
    invented: int = 0
    spread: bool = False
    reader: bool = False
    asked: int = 0
    doubted: int = 0
    judged: Tally = field(default_factory=lambda: Tally())

    def run(self) -> None:
        shelf = Shelf(root=self.home / "vault")
        clock = Clock(now=datetime(2026, 1, 1, tzinfo=UTC))
        timeline = Timeline(self.home / "timeline.sqlite")
        memory = SessionMemory(self.home / "shown.sqlite")
        local = LocalEmbedder()
        index = Index(self.home / "index", embedder=local)
        meaning = meaning_of(local)
        cards = TimelineConversations(cards=timeline.cards, meaning=meaning) if self.cards else None
        recall = Recall(
            index=index,
            memory=memory,
            requirement=Requirement(dial=self.dial, judged=bool(self.verdicts)),
            clock=clock,
            cards=cards,
        )
        notes = defaultdict(list)
        drop = random.Random(0)
        for row in self.project.rows("notes.jsonl"):
            if drop.random() >= self.dropped:
                notes[row["session"]].append(row)
        beside: list[Note] = []
        prompts: dict[str, list[str]] = defaultdict(list)
        for row in self.project.rows("prompts.jsonl"):
            prompts[row["session"]].append(row["event"])
        try:
            for number, file in self.project.sessions():
                session, events = events_of(self.transcripts, file)
                session = replace(session, project=self.project.name)
                clock.now = max(session.started, clock.now)
                if self.distractors and not shelf.known:
                    beside = distractors(self.project, session.started)
                if self.invented and self.spread and not beside:
                    beside = invented(self.project, self.invented, session.started, self.project.ended())
                if self.invented and not self.spread and not shelf.known:
                    for each in invented(self.project, self.invented, session.started):
                        shelf.add(each)
                for each in beside:
                    if each.created < session.started and each.path not in shelf.known:
                        shelf.add(each)
                if beside:
                    recall.refresh(shelf, evidence=partial(said_about, timeline.events))
                if prompts[number]:
                    self._brief(recall, number, session)
                self._prompts(recall, timeline, clock, number, session, events, prompts[number])
                for row in notes[number]:
                    shelf.add(gold_note(row, self.project.name, session))
                recall.refresh(shelf, evidence=partial(said_about, timeline.events))
                if self.cards:
                    while timeline.cards.rebuild():
                        pass
                    while timeline.vectors.embed(meaning, 200, per_day=10**9):
                        pass
            self._queries(recall)
        finally:
            recall.close()
            timeline.close()

    def _tell(self, row: Json) -> None:
        self.out.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _brief(self, recall: Recall, number: str, session: Session) -> None:
        injection = recall.brief(session=session.id, project=session.project)
        self._tell(
            {
                "session": number,
                "brief": [hit.note.name for hit in injection.hits],
                "tokens": likely_tokens(injection.block),
                "printed": injection.block,
            }
        )

    def _prompts(
        self,
        recall: Recall,
        timeline: Timeline,
        clock: Clock,
        number: str,
        session: Session,
        events: Sequence[Event],
        wanted: Sequence[str],
    ) -> None:
        place = {event.id[:8]: at for at, event in reversed(list(enumerate(events)))}
        relevant = {row["event"]: set(row["relevant"]) for row in self.project.rows("prompts.jsonl") if row["session"] == number}
        count = 0
        for event in wanted:
            at = place.get(event, -1)
            if at < 0 or not opens_turn(events[at]):
                self._tell({"session": number, "event": event, "notes": [], "ranked": []})
                continue
            commit(timeline, session, events[count:at])
            count = max(count, at)
            clock.now = max(clock.now, events[at].at)
            text = drop_private(events[at].text)
            before = timeline.events.last(session.provider, session.id, _LAST_EVENTS)
            situation = situation_of(before, text, spoken=timeline.events.spoken(session.provider, session.id))
            prompt = Prompt(text=text, session=session.id, project=session.project, situation=situation)
            weighed = recall.weigh(replace(prompt, session=""))
            injection = recall.answer(prompt)
            self.asked += 1
            shown = list(injection.hits)
            if self.reader:
                self._open(recall, session, event, relevant[event], injection)
            self.doubted += injection.question is not None
            verdict = self.verdicts.get((number, event))
            if injection.question is not None and verdict is not None:
                shown += recall.judged(injection.question, judged(injection.question, verdict)).hits
            if verdict is not None:
                self.judged.add(relevant[event], {hit.note.name for hit in shown})
            self._tell(
                {
                    "session": number,
                    "event": event,
                    "notes": [hit.note.name for hit in shown],
                    "ranked": [hit.note.name for hit in weighed.candidates],
                    "listed": [pointer.id for pointer in injection.pointers if pointer.is_note],
                    "listed_events": listed_events(injection),
                    "tokens": likely_tokens(injection.block),
                    "prompt": text[:_PROMPT],
                    "exchange": situation.exchange[-_EXCHANGE:],
                    "printed": injection.block,
                }
            )
            self._show(number, event, weighed)
        commit(timeline, session, events[count:])

    def _open(self, recall: Recall, session: Session, event: str, relevant: set[str], injection: Injection) -> None:
        """Open a title as a reader would: a needed one that the session was shown, or one of those printed now."""
        draw = random.Random(event)
        titles = relevant & set(recall.memory.listed(session.id)) or {each.id for each in injection.pointers if each.is_note}
        if titles and draw.random() < (_OPENS if relevant else _OPENS_NEEDLESSLY):
            recall.opened(session.id, [draw.choice(sorted(titles))], project=session.project)

    def _queries(self, recall: Recall) -> None:
        for row in self.project.rows("queries.jsonl"):
            found = recall.search(Query(text=row["query"], project=self.project.name))
            self._tell({"query": row["query"], "ranked": [hit.note.name for hit in found]})
        for count, row in enumerate(self.project.rows("unrelated.jsonl")):
            prompt = Prompt(text=row["prompt"], session=f"unrelated-{count}", project=self.project.name)
            self._show(prompt.session, "", recall.weigh(prompt))
            injection = recall.answer(prompt)
            self._tell({"unrelated": row["prompt"], "notes": [hit.note.name for hit in injection.hits]})

    def _show(self, session: str, event: str, weighed: Weighed) -> None:
        """The gate's figures, for fitting it."""
        if self.figures is not None:
            for hit, row in zip(weighed.candidates, weighed.figures, strict=True):
                key = {"project": self.project.name, "session": session, "event": event, "note": hit.note.name}
                self.figures.write(json.dumps({**key, "figures": row}) + "\n")


def listed_events(injection: Injection) -> list[str]:
    """The events of the conversations that were quoted or pointed at."""
    listed = [reference for quote in injection.quotes for reference in (quote.id, *quote.evidence)]
    listed += [reference for each in injection.pointers if not each.is_note for reference in (each.id, *each.evidence)]
    references = map(EvidenceReference.parse, listed)
    return list(dict.fromkeys(reference.event[:8] for reference in references if reference is not None))


def judged(question: Question, verdict: Json) -> Judged:
    there = {hit.note.name for hit in question.candidates}
    given = [each for each in verdict["notes"] if each["id"] in there]
    verdicts = tuple(Verdict(note=each["id"], probability=each["p"] / 100) for each in given)
    return Judged(verdicts=verdicts, anything=verdict["any"] / 100)


def commit(timeline: Timeline, session: Session, events: Sequence[Event]) -> None:
    if events:
        end = events[-1].where.end
        look = ReadResult(
            path=events[-1].where.file,
            session=session,
            events=tuple(events),
            problems=(),
            cursor=Cursor(position=end, size=end, mtime_ns=1),
        )
        timeline.commit([RedactedResult(look)], session.provider)


def scored(project: Labelled, predictions: Path) -> str:
    """The table of the script that lies beside the labels."""
    script = next(
        (folder / "score.py" for folder in (project.folder, project.folder.parent) if (folder / "score.py").exists()), None
    )
    if script is None:
        return "no score.py beside the labels: nothing is scored\n"
    asked = [sys.executable, str(script), "recall", str(project.folder), str(predictions)]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--transcripts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--verdicts", type=Path)
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--dial", choices=("quiet", "normal", "eager"), default="normal")
    parser.add_argument("--cards", action="store_true")
    parser.add_argument("--dropped", type=float, default=0.0)
    parser.add_argument("--distractors", action="store_true")
    parser.add_argument("--invented", type=int, default=0)
    parser.add_argument("--spread", action="store_true")
    parser.add_argument("--reader", action="store_true")
    given = parser.parse_args()
    projects = labelled(given.gold)
    if not projects:
        sys.exit(f"error: no prompts.jsonl in {given.gold}")
    verdicts: dict[str, dict[tuple[str, str], Json]] = defaultdict(dict)
    for row in rows(given.verdicts) if given.verdicts else ():
        verdicts[row["project"]][row["session"], row["event"]] = row
    figures = given.figures.open("w", encoding="utf-8") if given.figures else None
    for project in projects:
        out = given.out if len(projects) == 1 else given.out.with_name(f"{given.out.stem}-{project.name}{given.out.suffix}")
        with tempfile.TemporaryDirectory() as home, out.open("w", encoding="utf-8") as file:
            replay = Replay(
                project=project,
                transcripts=given.transcripts,
                out=file,
                dial=given.dial,
                verdicts=verdicts[project.name],
                figures=figures,
                home=Path(home),
                cards=given.cards,
                dropped=given.dropped,
                distractors=given.distractors,
                invented=given.invented,
                spread=given.spread,
                reader=given.reader,
            )
            replay.run()
        print(f"\n{project.name}: {replay.asked} prompts asked; predictions in {out}")
        print(scored(project, out), end="")
        if given.verdicts:
            print(f"  {replay.doubted} would be put to a judge; by the recorded verdicts: {replay.judged}")
    if figures is not None:
        figures.close()


if __name__ == "__main__":
    main()
