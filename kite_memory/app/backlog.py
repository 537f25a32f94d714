"""Estimate of the calls, tokens and dollars for extracting everything that has no notes yet, without asking a model."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kite_memory.app.pipeline import READ_BUDGET, Pipeline
from kite_memory.app.survey import PassedOver
from kite_memory.distill.condense import ChunkPolicy, condense, finished, worth_asking
from kite_memory.distill.extractor import Prices
from kite_memory.distill.model_extractor import MOST_TOGETHER, SHORT, TOGETHER
from kite_memory.distill.outbox import Outbox
from kite_memory.model.event import Event, Session
from kite_memory.model.note import Chunk
from kite_memory.sources import Source
from kite_memory.timeline.rows import ReadFiles
from kite_memory.timeline.store import Timeline

_LOOKED_AT = 48_000_000
"""Bytes of transcripts read for an estimate. Of more, only every second, third, … transcript is read."""
_NOTES = 450
"""Tokens of the notes shown with a chunk, on average over a backlog that begins with none."""
_SAID, _SAID_OF = 20, 0.17
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
            tokens_out=round(chunks * _SAID + tokens * _SAID_OF),
        )


def backlog(
    unread: Sequence[tuple[Source, Path, int]],
    passed_over: Iterable[PassedOver],
    *,
    pipeline: Pipeline,
    timeline: Timeline,
    outbox: Outbox,
    policy: ChunkPolicy,
    limit_chars: int = 60_000,
) -> Backlog:
    """Estimate the backlog from unread transcripts, waiting chunks and events in no chunk. Nothing that is read is stored."""
    step = max(1, math.ceil(sum(behind for _, _, behind in unread) / _LOOKED_AT))
    by_size = sorted(unread, key=lambda each: (each[2], str(each[1])))

    def length(chunk: Chunk) -> int:
        return len(condense(chunk, limit_chars=limit_chars).text)

    sampled = (each for source, path, _ in by_size[step // 2 :: step] for each in _read(source, path, timeline.files))
    lengths = [length(chunk) for session, events in sampled for chunk in _chunks(session, events, policy)]
    there = (*_waiting(pipeline, outbox), *_in_no_chunk([*passed_over, *pipeline.open_stretches()], timeline, policy))
    return Backlog(lengths=[*lengths, *map(length, there)], each=step if lengths else 1.0)


def _read(source: Source, path: Path, files: ReadFiles) -> Iterator[tuple[Session, list[Event]]]:
    cursor = files.cursor(str(path))
    events: list[Event] = []
    session: Session | None = None
    while True:
        read_result = source.read(path, cursor, budget=READ_BUDGET)
        session = read_result.session or session
        events += read_result.events
        if not read_result.more or read_result.cursor == cursor:
            break
        cursor = read_result.cursor
    if session is not None and events:
        yield session, events


def _chunks(session: Session, events: Sequence[Event], policy: ChunkPolicy) -> Iterator[Chunk]:
    for span in finished(events, policy, quiet_for=math.inf):
        within = tuple(event for event in events if span.first <= event.ordinal <= span.last)
        if worth_asking(within):
            yield Chunk(id=span.id, session=session, events=within)


def _waiting(pipeline: Pipeline, outbox: Outbox) -> Iterator[Chunk]:
    yield from (chunk for waiting in outbox.all_waiting() if (chunk := pipeline.plain_chunk(waiting)) is not None)


def _in_no_chunk(stretches: Iterable[PassedOver], timeline: Timeline, policy: ChunkPolicy) -> Iterator[Chunk]:
    for each in stretches:
        session = timeline.sessions.get(each.provider, each.session)
        events = timeline.events.of_session(each.provider, each.session, after=each.first - 1) if session is not None else []
        events = [event for event in events if event.ordinal <= each.last]
        if session is not None:
            yield from _chunks(session, events, policy)
