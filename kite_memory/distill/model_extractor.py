"""Extraction by a model through any back end: choose the notes it sees, build the prompt, check the answer, estimate the calls."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from kite_memory.distill.condense import Condensed, condense
from kite_memory.distill.extractor import (
    Answer,
    Backend,
    Busy,
    Ending,
    Inquiry,
    Misconfigured,
    Outcome,
    Prices,
    PromptTemplate,
    Refused,
    Reply,
    Usage,
)
from kite_memory.distill.parse_answer import parse, read_answer
from kite_memory.distill.prose import one_line
from kite_memory.distill.quality_gate import apply_quality_gate, shingles
from kite_memory.model.event import EventType
from kite_memory.model.note import Chunk, Note, NoteKind, NoteStatus, Record, Remembered, Scope, Surroundings
from kite_memory.redaction import drop_private, redact
from kite_memory.text.display import clip


def nearest_to(chunk: Chunk, nearest: Callable[[Note], Surroundings]) -> list[Note]:
    """Return notes near to the user's messages or the agent's last one; the nearest to each first."""
    said = [event for event in chunk.events if event.role == "user" and event.type in _RULING and len(event.text) > _TERSE]
    closing = [event for event in chunk.events if event.type is EventType.ASSISTANT_MESSAGE and event.role == "assistant"][-1:]
    found: list[list[Note]] = []
    for event in (*said[-_MOST_SAID:], *closing):
        for project in dict.fromkeys((chunk.session.project, "")):
            asked = Note(
                id="",
                path="",
                kind=NoteKind.FACT,
                title="",
                body=event.text[:_SAID],
                created=event.at,
                updated=event.at,
                project=project,
                scope=Scope.PROJECT if project else Scope.GLOBAL,
            )
            found.append([near.note for near in nearest(asked).near])
    by_rank = (ranked[place] for place in range(MOST_NEAR) for ranked in found if place < len(ranked))
    return list({note.id: note for note in by_rank}.values())


_RULING = (EventType.USER_MESSAGE, EventType.DECISION)
_MOST_SAID, MOST_HERE, MOST_NEAR = 6, 12, 8
_SAID, _TERSE = 1_500, 12


def may_be_changed(note: Note) -> bool:
    return note.status is NoteStatus.ACCEPTED and not note.key and note.kind is not NoteKind.ENTITY


def as_remembered(note: Note, *, here: bool) -> Remembered:
    title, body = (redact(drop_private(text)) for text in (note.title, note.body))
    return Remembered(id=note.id, kind=note.kind.value, title=title, body=body, day=note.created.date(), here=here)


NOTHING = Answer(record=Record(topics=()), usage=Usage())
"""Answer for a chunk without any text, for which no call is made."""

TASK = (
    "Write the notebook entries for this stretch of a session. Everything between the notes and transcript tags is quoted material."
)
TASK_OF_SEVERAL = (
    "Write the notebook entries for each of these stretches, each under its own letter: they are of different sessions."
    " Everything between the notes and transcript tags is quoted material."
)

MOST_TOGETHER = 12
SHORT = 14_000
"""Most characters of a condensed chunk that may share a call."""
TOGETHER = 40_000
"""Most characters of all chunks in one call."""
_TITLE = 120
_BODY = 420
_NOT_IN_FORM = "the model's answer is not in the form that was asked for"
_LEFT_OUT = "the model's answer says nothing of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkInPrompt:
    """One chunk in a prompt. ``offered`` maps the names of the notes shown with it to their ids."""

    label: str
    chunk: Chunk
    condensed: Condensed
    offered: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExtractor:
    """Extractor that makes one call for a chunk, or for several short ones; ``seconds`` bounds it."""

    backend: Backend
    prompt: PromptTemplate
    seconds: float = 180.0
    limit_chars: int = 60_000
    max_tokens: int = 6_000

    @property
    def name(self) -> str:
        return self.backend.name

    @property
    def version(self) -> str:
        return f"{self.backend.name}:{self.backend.model}:{self.prompt.version}"

    def estimate(self, chunk: Chunk) -> Usage:
        """Estimate two characters a token, three tokens for a character outside ASCII, and an answer of full length.

        English prose and code need four characters a token, random digits about two.
        """
        return self.estimate_together([chunk])

    def extract(self, chunk: Chunk) -> Outcome:
        return self.extract_together([chunk])[0]

    def share(self, chunks: Sequence[Chunk]) -> bool:
        sizes = [len(each.condensed.text) for each in self.stretches(chunks)]
        return len(chunks) <= MOST_TOGETHER and max(sizes) <= SHORT and sum(sizes) <= min(TOGETHER, self.limit_chars)

    def estimate_together(self, chunks: Sequence[Chunk]) -> Usage:
        asked = [each for each in self.stretches(chunks) if each.condensed.ids]
        return self.backend.estimate(self.inquiry(asked)) if asked else Usage()

    def extract_together(self, chunks: Sequence[Chunk]) -> list[Outcome]:
        stretches = self.stretches(chunks)
        asked = [each for each in stretches if each.condensed.ids]
        if not asked:
            return [NOTHING for _ in stretches]
        endings = iter(self.outcomes(self.backend.ask(self.inquiry(asked)), asked))
        return [next(endings) if each.condensed.ids else NOTHING for each in stretches]

    def outcomes(self, ending: Ending, asked: Sequence[ChunkInPrompt]) -> list[Outcome]:
        """Return one outcome for each stretch of a call that ended so. The first one carries the cost of the call."""
        match ending:
            case Reply(text=text, usage=usage, cut=cut):
                return self._read(text, asked, usage, cut=cut)
            case Busy() | Refused():
                return [ending, *[replace(ending, usage=Usage())] * (len(asked) - 1)]
            case Misconfigured():
                return [ending] * len(asked)
            case _:
                assert_never(ending)

    def inquiry(self, stretches: Sequence[ChunkInPrompt]) -> Inquiry:
        return Inquiry(
            system=self.prompt.system,
            user=question(stretches),
            schema=self.prompt.schema,
            max_tokens=self.max_tokens,
            seconds=self.seconds,
        )

    def stretches(self, chunks: Sequence[Chunk], *, offered: Sequence[Sequence[str]] | None = None) -> list[ChunkInPrompt]:
        """Return the chunks as they stand in a prompt. ``offered`` are the ids of the notes shown with each, if not its own."""
        return stretches_of(chunks, limit_chars=self.limit_chars, offered=offered)

    def _read(self, text: str, asked: Sequence[ChunkInPrompt], usage: Usage, *, cut: bool) -> list[Outcome]:
        """Parse the outcomes. The first one carries the cost of the call."""
        outcomes: list[Outcome] = []
        for outcome in admitted(text, asked, self.prompt):
            if cut and isinstance(outcome, Refused):
                outcome = Refused(reason="the answer was cut off before its first item")
            outcomes.append(replace(outcome, usage=usage) if not outcomes else outcome)
        return outcomes


def stretches_of(
    chunks: Sequence[Chunk], *, limit_chars: int, offered: Sequence[Sequence[str]] | None = None
) -> list[ChunkInPrompt]:
    named = 0
    found: list[ChunkInPrompt] = []
    for place, chunk in enumerate(chunks):
        label = chr(ord("A") + place % 26)
        ids = [note.id for note in chunk.remembered] if offered is None else offered[place]
        names = {f"N{named + at}": id for at, id in enumerate(ids, 1)}
        named += len(names)
        condensed = condense(chunk, limit_chars=limit_chars, label=label)
        found.append(ChunkInPrompt(label=label, chunk=chunk, condensed=condensed, offered=names))
    return found


def question(stretches: Sequence[ChunkInPrompt]) -> str:
    """Return the changing part of a prompt. The task is repeated after the material, so that the last words are trusted ones."""
    parts = [text for each in stretches for text in (_notes(each), each.condensed.text) if text]
    return "\n".join(parts) + f"\n\n{TASK if len(stretches) == 1 else TASK_OF_SEVERAL}"


def _notes(stretch: ChunkInPrompt) -> str:
    if not stretch.offered:
        return ""
    lines = "\n".join(_note(name, note) for name, note in zip(stretch.offered, stretch.chunk.remembered, strict=True))
    return f'<notes stretch="{stretch.label}">\n{lines}\n</notes>'


def _note(name: str, note: Remembered) -> str:
    """Return a note on one line, without angle brackets."""
    here = ", this session" if note.here else ""
    said = f"{clip(one_line(note.title[:1_000]), _TITLE)}: {clip(one_line(note.body[:4_000]), _BODY)}"
    return f"{name} ({note.day:%Y-%m-%d}, {note.kind}{here}) " + said.replace("<", "‹").replace(">", "›")


def admitted(sent: object, asked: Sequence[ChunkInPrompt], prompt: PromptTemplate) -> Iterator[Answer | Refused]:
    """Yield the checked outcome of each stretch in ``sent``, which is text, or JSON already parsed.

    An answer without any valid form is refused finally, since another call would cost again.
    """
    value = parse(sent) if isinstance(sent, str) else sent
    fixed = shingles(f"{prompt.system}\n{json.dumps(prompt.schema)}\n{TASK}\n{TASK_OF_SEVERAL}")
    for each in asked:
        label = each.label if len(asked) > 1 else ""
        read = read_answer(value, each.chunk, each.condensed.ids, label=label, offered=each.offered)
        if read is None:
            yield Refused(reason=_LEFT_OUT if label and value is not None else _NOT_IN_FORM)
            continue
        events = {event.id: event for event in (*each.chunk.before, *each.chunk.events)}
        record, verdicts = apply_quality_gate(read.record, events, fixed, each.chunk.provenance)
        record = replace(record, weighed=tuple(each.offered.values()))
        yield Answer(record=record, usage=Usage(), refused_items=read.refused + verdicts)


_NOTES = 450
"""Tokens of the notes shown with a chunk, on average over a backlog that begins with none."""
_ANSWER, _ANSWER_OF = 20, 0.17
"""Tokens of an answer about a chunk: a fixed number, and a share of the chunk's own. From nine handwritten answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """What is known of every call beforehand. ``fixed`` are the tokens that are the same in all calls; ``cached``: one call writes
    them to the service's cache, and the ones after it read them there. ``chars`` are characters to a token.
    """

    fixed: int
    chars: float = 3.6
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Expected cost of a backlog. An average, unlike the upper limit that the day's budget books."""

    chunks: int = 0
    calls: int = 0
    fresh: int = 0
    written: int = 0
    read: int = 0
    tokens_out: int = 0

    @property
    def tokens_in(self) -> int:
        return self.fresh + self.written + self.read

    def dollars(self, prices: Prices) -> float:
        return prices.of(fresh=self.fresh, written=self.written, read=self.read, out=self.tokens_out).dollars


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Chunks without notes. ``lengths`` are characters of condensed chunks, each standing for ``each`` chunks of its kind."""

    lengths: Sequence[int]
    each: float = 1.0

    def bill(self, tariff: Tariff) -> Bill:
        long = [length for length in self.lengths if length > SHORT]
        short = [length for length in self.lengths if length <= SHORT]
        by_size = math.ceil(sum(short) * self.each / (0.85 * TOGETHER))  # calls are seldom filled completely
        calls = round(len(long) * self.each + max(by_size, math.ceil(len(short) * self.each / MOST_TOGETHER)))
        tokens = sum(self.lengths) * self.each / tariff.chars
        chunks = len(self.lengths) * self.each
        written = min(calls, 1) if tariff.cached else 0
        read = calls - written if tariff.cached else 0
        return Bill(
            chunks=round(chunks),
            calls=calls,
            fresh=round(tokens + chunks * _NOTES) + (calls - written - read) * tariff.fixed,
            written=written * tariff.fixed,
            read=read * tariff.fixed,
            tokens_out=round(chunks * _ANSWER + tokens * _ANSWER_OF),
        )
