"""Trace of one session: its files' lines, the events read from them, their chunks, the chunks' notes, and the index."""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, assert_never

from kite_memory.app.pipeline import Pipeline
from kite_memory.app.question_answering import QuestionAnswering
from kite_memory.app.session_context import before
from kite_memory.app.survey import PassedOver
from kite_memory.app.timeline_queries import TimelineQueries
from kite_memory.distill.answering import Answerer, Polisher
from kite_memory.distill.extractor import Ending, Inquiry, Refused, SharingExtractor, Usage
from kite_memory.distill.judge import as_judged
from kite_memory.distill.outbox import ChunkEntry, Outbox, WaitingChunk
from kite_memory.errors import KiteError
from kite_memory.model.event import Event, EventType, Session
from kite_memory.model.hit import Judge, Question
from kite_memory.model.note import Chunk, Note, Remembered
from kite_memory.recall.prose import passages
from kite_memory.recall.recall import Recall
from kite_memory.recall.select import Prompt
from kite_memory.redaction import redact
from kite_memory.text.quoting import plain_line
from kite_memory.timeline.store import Timeline
from kite_memory.vault import Vault
from kite_memory.vault.drafting import draft_id

Json = dict[str, Any]

_MOST_ITEMS = 40
"""Limit of items in a record."""
_LARGEST = 64 << 20
"""Largest transcript in bytes whose lines are counted."""
_KIND = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPart:
    """A part of a session: a chunk, or events that are in none. ``chunk`` is as an extractor gets it."""

    first: int
    last: int
    state: str
    why: str
    events: tuple[Event, ...]
    entry: ChunkEntry | None = None
    chunk: Chunk | None = None


class Tracer:
    """Read-only, so it may run beside a daemon. Raises `SessionNotFound` for a session that is not in the timeline."""

    def __init__(
        self,
        *,
        timeline: Timeline,
        outbox: Outbox,
        vault: Vault,
        recall: Recall,
        pipeline: Pipeline,
        clock: Callable[[], datetime],
    ) -> None:
        self._timeline = timeline
        self._outbox = outbox
        self._vault = vault
        self._recall = recall
        self._pipeline = pipeline
        self._clock = clock

    def find(self, named: str) -> Session:
        """Return a session by the beginning of its id, with or without its agent: ``codex:019d``."""
        return TimelineQueries(timeline=self._timeline, notes=self._vault.notes).find(named)

    def trace(self, named: str) -> Json:
        session = self.find(named)
        events = self._timeline.events.of_session(session.provider, session.id)
        offered = {event.id for event in self._timeline.events.offered(events)}
        files: list[Json] = []
        numbers: dict[str, Mapping[int, int]] = {}
        for name in dict.fromkeys(event.where.file for event in events):
            described, numbers[name] = self._file(Path(name), events)
            files.append(described)
        notes = self._notes(session)
        traced = [self._part(session, part, notes, numbers) for part in self.parts(session)]
        made = {note["id"] for part in traced for note in part["notes"]}
        return {
            "session": {
                "id": session.id,
                "provider": session.provider,
                "project": session.project,
                "branch": session.branch,
                "title": plain_line(session.title),
            },
            "files": files,
            "events": {
                "total": len(events),
                "by_type": dict(Counter(event.type.value for event in events).most_common()),
                "let_go": len(events) - len(offered),
            },
            "parts": traced,
            "other_notes": [self._note(note, self._evidence(note, events, numbers)) for note in notes if note.id not in made],
            "index": {"stale": self._recall.index.status().stale},
        }

    def parts(self, session: Session) -> list[SessionPart]:
        """Return the session's parts. Every event is in exactly one."""
        events = self._timeline.events.of_session(session.provider, session.id)
        entries = self._outbox.formed.of_session(session.provider, session.id)
        parts = [self._of_entry(session, entry, events) for entry in entries]
        chunked_to = self._outbox.formed.chunked_to().get((session.provider, session.id), -1)
        held = {event.id for part in parts for event in part.events}
        for run in _runs([event for event in events if event.id not in held], [entry.first for entry in entries], chunked_to):
            skipped = run[0].ordinal <= chunked_to
            stretch = PassedOver(provider=session.provider, session=session.id, first=run[0].ordinal, last=run[-1].ordinal)
            for within, span in self._pipeline.spans(stretch):
                chunk = self._chunk(session, span.id, span.first, span.last)
                parts.append(
                    SessionPart(
                        first=span.first,
                        last=span.last,
                        state="passed over" if skipped else "open",
                        why=_PASSED_OVER if skipped else _OPEN,
                        events=tuple(event for event in within if span.first <= event.ordinal <= span.last),
                        chunk=chunk,
                    )
                )
        return sorted(parts, key=lambda part: (part.first, part.last))

    def _of_entry(self, session: Session, entry: ChunkEntry, events: Sequence[Event]) -> SessionPart:
        return SessionPart(
            first=entry.first,
            last=entry.last,
            state=entry.state,
            why=_why(entry, self._clock()),
            events=tuple(event for event in events if entry.first <= event.ordinal <= entry.last),
            entry=entry,
            chunk=self._chunk(session, entry.id, entry.first, entry.last),
        )

    def _chunk(self, session: Session, name: str, first: int, last: int) -> Chunk | None:
        return self._pipeline.load(
            WaitingChunk(id=name, provider=session.provider, session=session.id, first=first, last=last, attempts=0)
        )

    def _part(self, session: Session, part: SessionPart, notes: Sequence[Note], numbers: "LineNumbers") -> Json:
        by_id: dict[str, Json] = {}
        for name, note in self._made_of(part):
            if note is None:
                by_id[name] = {**_NO_NOTE, "id": name, "fate": "deleted or forgotten; it is not written again"}
            else:
                fate = "in the vault" if note.id == name else "merged into this note"
                by_id.setdefault(note.id, self._note(note, self._evidence(note, part.events, numbers), fate))
        for note in notes:
            if note.id not in by_id and (evidence := self._evidence(note, part.events, numbers)):
                by_id[note.name] = self._note(note, evidence, "evidence was added to it")
        why = part.why
        if part.state == "written" and not by_id:
            why = why or "no note of it is in the vault any more"
        return {
            "first": part.first,
            "last": part.last,
            "events": len(part.events),
            "from": part.events[0].at.isoformat() if part.events else "",
            "to": part.events[-1].at.isoformat() if part.events else "",
            "where": _places(part.events, numbers),
            "chunk": part.entry.id if part.entry else "",
            "state": part.state,
            "extractor": part.entry.extractor if part.entry else "",
            "attempts": part.entry.attempts if part.entry else 0,
            "why": why,
            "notes": list(by_id.values()),
        }

    def _made_of(self, part: SessionPart) -> Iterator[tuple[str, Note | None]]:
        """Yield each draft's id and the note that it became or was merged into; ``None`` if its owner deleted that."""
        if part.chunk is None or part.entry is None or part.entry.state != "written":
            return
        whole = replace(part.chunk, events=part.events)
        for place in range(_MOST_ITEMS):
            for name in dict.fromkeys((draft_id(part.chunk, place), draft_id(whole, place))):
                known = self._vault.known.by_id(name)
                note = self._read(known.path) if known is not None else None
                if note is not None or self._vault.known.is_buried(name):
                    yield name, note

    def _notes(self, session: Session) -> list[Note]:
        found = (self._read(path) for path in self._vault.known.of_session(session.provider, session.id))
        return [note for note in found if note is not None]

    def _read(self, path: str) -> Note | None:
        try:
            return self._vault.notes.read(path)
        except KiteError:  # the vault is missing; the timeline's part can be shown without it
            return None

    def _note(self, note: Note, evidence: list[Json], fate: str = "in the vault") -> Json:
        indexed = self._recall.index.called(note.name)
        return {
            "id": note.id,
            "path": note.path,
            "title": plain_line(note.title),
            "kind": note.kind.value,
            "status": note.status.value,
            "fate": fate,
            "index": "indexed" if indexed is not None else "not in the index",
            "evidence": evidence,
        }

    def _evidence(self, note: Note, events: Sequence[Event], numbers: "LineNumbers") -> list[Json]:
        """Return the events that the note cites, with the lines they were read from."""
        cited = set(note.evidence)
        found: dict[str, Json] = {}
        for event in events:
            reference = event.reference
            if reference in cited:
                found.setdefault(reference, {"reference": reference, "type": event.type.value, "where": _places([event], numbers)})
        return list(found.values())

    def _file(self, path: Path, events: Sequence[Event]) -> tuple[Json, Mapping[int, int]]:
        cursor = self._timeline.files.cursor(str(path))
        starts = {event.where.start for event in events if event.where.file == str(path) and event.where.end > event.where.start}
        size = path.stat().st_size if path.is_file() else None
        read_to = cursor.position if cursor else 0
        counted, numbers = _lines(path, starts, read_to) if starts and size is not None and size <= _LARGEST else (None, {})
        problems = self._timeline.files.problems(file=str(path))
        described = {
            "path": str(path),
            "there": size is not None,
            "size": size or 0,
            "read_to": read_to,
            "lines": counted,
            "problems": [{"reason": one.reason, "count": one.count, "first_position": one.first_position} for one in problems],
        }
        return described, numbers


_NO_NOTE: Json = {"path": "", "title": "", "kind": "", "status": "", "index": "", "evidence": []}

LineNumbers = Mapping[str, Mapping[int, int]]
"""For each file, line numbers by the byte where the line begins."""

_PASSED_OVER = "it was too old for the first start or for `--since`; `kmem backfill` makes notes of it"
_OPEN = "it may go on: a chunk ends when enough was said, or after a silence"


def _why(entry: ChunkEntry, now: datetime) -> str:
    refused = f"the quality gate did not let through: {entry.refused_items}" if entry.refused_items else ""
    match entry.state:
        case "waiting":
            until = datetime.fromtimestamp(min(entry.not_before, 4e9), UTC)
            then = f" until {until:%Y-%m-%d %H:%M} UTC" if until > now else ""
            return (
                f"put off{then}: {entry.reason}" if then or entry.reason else "it is next, or waits for the budget: `kmem status`"
            )
        case "asked":
            return "the extractor is being asked; after a crash, the daemon's next start asks again"
        case "answered":
            return "its notes are about to be written; `kmem status` says what stands in the way"
        case "refused":
            return entry.reason
        case "aside":
            return f"set aside: {entry.reason or 'its calls got no answer'}; `kmem backfill --retry` asks again"
        case "divided":
            return "it was too dear for a day's budget, and was divided into two"
        case "nothing" if not entry.extractor:
            return "too little was said for anybody to be asked"
        case "nothing":
            return refused or f"{'the rules' if entry.extractor == 'offline' else entry.extractor} found nothing to keep"
        case "written":
            return refused
        case _:
            assert_never(entry.state)


def _runs(loose: Sequence[Event], starts: Sequence[int], chunked_to: int) -> Iterator[list[Event]]:
    """Yield runs of consecutive events, split at chunks between them and where the session's chunks end."""
    for _, run in groupby(loose, key=lambda event: (bisect_right(starts, event.ordinal), event.ordinal > chunked_to)):
        yield list(run)


def _places(events: Sequence[Event], line_numbers: LineNumbers) -> str:
    """Return the place as ``session.jsonl:12-40`` if lines can be counted, otherwise in bytes or messages."""
    if not events:
        return ""
    first, last = events[0].where, events[-1].where
    numbers = line_numbers.get(first.file, {})
    name = Path(first.file).name
    if first.start in numbers and last.start in numbers:
        begin, end = numbers[first.start], numbers[last.start]
        return f"{name}:{begin}" if begin == end else f"{name}:{begin}-{end}"
    if first.end > first.start:
        return f"{name}, bytes {first.start}-{last.end}"
    return f"{name}, messages {first.start}-{last.start}" if last.start != first.start else f"{name}, message {first.start}"


def _lines(path: Path, starts: set[int], read_to: int) -> tuple[Json | None, dict[int, int]]:
    """Return how many lines gave events, and the types of the others. ``None`` for a file that is not read line by line."""
    numbers: dict[int, int] = {}
    without: Counter[str] = Counter()
    position = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if position >= read_to:
                    break
                if position in starts:
                    numbers[position] = number
                elif line.strip():
                    without[_kind(line)] += 1
                position += len(line)
    except OSError:
        return None, {}
    if not numbers:
        return None, {}
    return {"with_events": len(numbers), "without_events": dict(without.most_common())}, numbers


def _kind(line: bytes) -> str:
    """Return the agent's own name for the type of a line."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return "not JSON"
    kind = content.get("type") if isinstance(content, dict) else None
    return redact(plain_line(kind, _KIND)) if isinstance(kind, str) and kind else "of no type"


TASKS = ("extract", "judge", "ask", "polish", "embed")

_SECONDS = 60.0
_MOST_PROMPTS = 50
_EVENTS = 2_000


@dataclass(slots=True)
class Recorder:
    """Backend that sends nothing: it records each request, and refuses it."""

    name: str
    model: str
    asked: list[Inquiry] = field(default_factory=list)

    def estimate(self, inquiry: Inquiry) -> Usage:
        return Usage()

    def ask(self, inquiry: Inquiry) -> Ending:
        self.asked.append(inquiry)
        return Refused(reason="nothing is sent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Askers:
    """All components that ask a model, each connected to ``recorder``."""

    recorder: Recorder
    extractor: SharingExtractor
    judge: Judge
    answerer: Answerer
    polisher: Polisher


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Dry run of all requests about a session. Nothing is sent, booked, written or stored."""

    askers: Askers
    tracer: Tracer
    timeline: Timeline
    vault: Vault
    recall: Recall
    remembered: Callable[[Chunk], Iterable[Remembered]]
    clock: Callable[[], datetime]

    def about(self, named: str) -> list[Json]:
        """Return one entry for each call: its ``task``, ``when`` it is made, and its texts.

        The entry of an embedder has only ``texts``. The session's last prompt is used in place of a user's question, which cannot
        be known.
        """
        session = self.tracer.find(named)
        return [
            *self._recorded("extract", "once for each finished chunk", self._extract(session)),
            *self._recorded("extract", "once for short chunks of several sessions; here those of this one", self._shared(session)),
            *self._recorded("judge", "with a prompt that the gate is in doubt about", self._judge(session)),
            *self._recorded("ask", "by `kmem ask`, here with the last prompt as the question", self._ask(session)),
            *self._recorded("polish", "by `kmem resume --polish`", self._polish(session)),
            *self._embed(session),
        ]

    def _recorded(self, task: str, when: str, asking: Iterator[None]) -> Iterator[Json]:
        for _ in asking:
            for inquiry in self.askers.recorder.asked:
                yield {
                    "task": task,
                    "when": when,
                    "to": f"{self.askers.recorder.name} {self.askers.recorder.model}".strip(),
                    "system": inquiry.system,
                    "user": inquiry.user,
                    "schema": dict(inquiry.schema),
                    "max_tokens": inquiry.max_tokens,
                }
            self.askers.recorder.asked.clear()

    def _extract(self, session: Session) -> Iterator[None]:
        for chunk in self._chunks(session):
            self.askers.extractor.extract(chunk)
            yield

    def _shared(self, session: Session) -> Iterator[None]:
        together: list[Chunk] = []
        for chunk in self._chunks(session):
            if self.askers.extractor.share([*together, chunk]):
                together.append(chunk)
        if len(together) > 1:
            self.askers.extractor.extract_together(together)
            yield

    def _chunks(self, session: Session) -> Iterator[Chunk]:
        """Yield the chunks as they would be sent now, with the notes that exist now."""
        for part in self.tracer.parts(session):
            never_asked = part.state == "nothing" and part.entry is not None and not part.entry.extractor
            if part.chunk is not None and part.chunk.events and not never_asked:
                yield replace(part.chunk, remembered=tuple(self.remembered(part.chunk)))

    def _judge(self, session: Session) -> Iterator[None]:
        """Ask the judge about the last prompt that any note could help with."""
        for event in self._prompts(session):
            prompt = Prompt(
                text=event.text,
                project=session.project,
                situation=before(self.timeline, session.provider, session.id, event.text),
            )
            candidates = self.recall.weigh(prompt).candidates
            if not candidates:
                continue
            question = Question(
                session=session.id,
                project=session.project,
                prompt=prompt.text,
                exchange=prompt.situation.exchange,
                candidates=candidates,
            )
            self.askers.judge.judge(as_judged(question), seconds=_SECONDS)
            yield
            return

    def _ask(self, session: Session) -> Iterator[None]:
        for event in self._prompts(session)[:1]:
            self._history().ask(question=event.text, project=session.project)
            yield

    def _polish(self, session: Session) -> Iterator[None]:
        try:
            self._history().resume(session=f"{session.provider}:{session.id}", polish=True)
        except KiteError:  # a session without events has no brief
            return
        yield

    def _embed(self, session: Session) -> Iterator[Json]:
        notes = list(self.vault.notes.of_session(session.provider, session.id))
        if texts := [text for note in notes for text in passages(note)]:
            yield {"task": "embed", "when": "with a Voyage key, once for each note", "to": "voyage", "texts": texts}

    def _history(self) -> QuestionAnswering:
        return QuestionAnswering(
            timeline=self.timeline,
            notes=self.vault.notes,
            recall=self.recall,
            answerer=lambda: self.askers.answerer,
            polisher=lambda: self.askers.polisher,
            clock=self.clock,
        )

    def _prompts(self, session: Session) -> list[Event]:
        """Return the user's prompts, newest first."""
        events = self.timeline.events.last(session.provider, session.id, _EVENTS)
        said = [
            event for event in self.timeline.events.offered(events) if event.type is EventType.USER_MESSAGE and event.role == "user"
        ]
        return said[::-1][:_MOST_PROMPTS]
