"""What is left to do: how much of each transcript is still to be read, and what waits for extraction."""

import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kite_memory.model.event import Event, Session
from kite_memory.model.note import Chunk
from kite_memory.sources import CompositeSource, Source
from kite_memory.system.private_files import stamp_of
from kite_memory.timeline.rows import LATEST_MTIME, EventTally, ReadFiles

if TYPE_CHECKING:
    from kite_memory.app.pipeline import Pipeline
    from kite_memory.distill.condense import ChunkPolicy
    from kite_memory.distill.model_extractor import Backlog
    from kite_memory.distill.outbox import FormedChunks, Outbox
    from kite_memory.timeline.rows import StoredEvents
    from kite_memory.timeline.store import Timeline
    from kite_memory.timeline.summaries import Sessions

_COUNTED = 2_000
"""Files that are compared while a user waits, the same number of each agent that is there: a tenth of a second."""
READ_BUDGET = 4 << 20
"""Limit of transcript bytes in memory at once."""
_LOOKED_AT = 48_000_000
"""Bytes of transcripts read for an estimate. Of more, only every second, third, … transcript is read."""
_LIMIT_CHARS = 60_000
_AT_ONCE = 500
"""Transcripts or sessions that are looked up together, to avoid a list of a hundred thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """A part of a session, by its ordinals, without notes because it was older than requested."""

    provider: str
    session: str
    first: int
    last: int


def passed_over(formed: "FormedChunks", events: "StoredEvents", provider: str = "") -> list[PassedOver]:
    """Return the passed-over parts of all sessions, or of one provider's."""
    named = (gap for gap in formed.gaps() if provider in ("", gap[0]))
    gaps = (gap for batch in batches(named) for gap in events.holding(batch))
    return [PassedOver(provider=of, session=session, first=first, last=last) for of, session, first, last in gaps]


def sessions_behind(formed: "FormedChunks", sessions: "Sessions") -> int:
    """Return how many sessions have events in no chunk yet, without those passed over."""
    chunked_to = formed.chunked_to()
    return sum(last > chunked_to.get(key, -1) for key, last in sessions.last_ordinals().items())


@dataclass(slots=True, kw_only=True)
class Survey:
    """Transcripts by provider.

    ``found`` counts them, ``unread`` those not or only partly read, and ``behind`` their unread bytes. ``passed_over`` counts
    sessions. Of the providers in ``more`` not all files were counted.
    """

    found: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    behind: Counter[str] = field(default_factory=Counter)
    more: set[str] = field(default_factory=set)
    passed_over: int = 0


class TranscriptSurvey:
    """Comparison of transcripts with what the timeline has read of them."""

    def __init__(self, *, sources: Sequence[Source], files: ReadFiles, passed_over: Callable[[], Collection[PassedOver]]) -> None:
        self._sources = sources
        self._files = files
        self._passed_over = passed_over
        self._survey: Survey | None = None

    def compared(self) -> Iterator[tuple[Source, Path, int | None]]:
        """Yield every transcript, and by about how many bytes it differs from what was read; ``None`` if not at all."""
        for source in self._sources:
            for path, behind in self._compared_of(source):
                yield source, path, behind

    def _compared_of(self, source: Source, most: int | None = None) -> Iterator[tuple[Path, int | None]]:
        stamp = source.stamp if isinstance(source, CompositeSource) else stamp_of
        for paths in batches(source.transcripts(), None if most is None else most + 1):
            looked_at = self._files.looked_at([str(path) for path in paths])
            for path in paths:
                try:
                    size, mtime_ns = stamp(path)
                except OSError:
                    continue
                now, before = (size, min(mtime_ns, LATEST_MTIME)), looked_at.get(str(path), (0, 0))
                yield path, max(0, now[0] - before[0]) if now != before else None

    def made(self) -> Survey:
        """Return a survey of everything, made now."""
        return self._filled(Survey())

    def _filled(self, survey: Survey, most: int | None = None) -> Survey:
        survey.passed_over = len({(each.provider, each.session) for each in self._passed_over()})
        for source in self._sources:
            for _, behind in self._compared_of(source, most):
                if survey.found[source.provider] == most:
                    survey.more.add(source.provider)
                    break
                survey.found[source.provider] += 1
                if behind is not None:
                    survey.unread[source.provider] += 1
                    survey.behind[source.provider] += behind
        return survey

    def now(self, most: int = _COUNTED) -> Survey:
        """Return the survey that `keep` maintains; without one, a survey of up to ``most`` files of all agents together."""
        return self._survey or self._filled(Survey(), most // max(1, sum(self.places().values())))

    def keep(self) -> None:
        """Make a survey that is maintained from now on. The first one is visible while it is made, so that no caller waits."""
        if self._survey is None:
            self._survey = Survey()
            self._filled(self._survey)
        else:
            self._survey = self.made()

    def places(self) -> dict[str, bool]:
        """Return every provider, and whether any of its folders exists."""
        found: dict[str, bool] = {}
        for source in self._sources:
            flat = source.flat_roots() if isinstance(source, CompositeSource) else ()
            found[source.provider] = any(map(os.path.isdir, (*source.roots(), *flat)))
        return found

    def read(self, provider: str, behind: int | None, *, new: bool) -> None:
        """Update the survey with a transcript that was read. ``behind`` is its difference, if the survey found it."""
        if self._survey is None:
            return
        self._survey.found[provider] += new
        if behind is not None:
            self._survey.unread[provider] -= 1
            self._survey.behind[provider] -= behind


_Each = TypeVar("_Each")


def batches(all: Iterable[_Each], most: int | None = None) -> Iterator[list[_Each]]:
    """Yield what is to be looked up together: less than usual where only ``most`` are wanted."""
    left = iter(all)
    while batch := list(islice(left, _AT_ONCE if most is None else min(_AT_ONCE, most))):
        yield batch


def sources_json(survey: Survey, there: Mapping[str, bool], tallies: Iterable[EventTally]) -> list[dict[str, Any]]:
    """Return the state of each provider.

    ``there`` is whether one of its folders exists, ``skipped`` how many records were skipped, and ``more`` whether there are more
    files than were ``found``.
    """
    found, unread, behind = survey.found, survey.unread, survey.behind
    counted = {tally.provider: tally for tally in tallies}
    return [
        {
            "provider": provider,
            "there": there.get(provider, False) or found[provider] > 0,
            "found": found[provider],
            "more": provider in survey.more,
            "read": found[provider] - unread[provider],
            "skipped": counted[provider].skipped if provider in counted else 0,
            "sessions": counted[provider].sessions if provider in counted else 0,
            "events": counted[provider].events if provider in counted else 0,
            "problems": counted[provider].problems if provider in counted else 0,
            "behind_bytes": behind[provider],
        }
        for provider in sorted({*counted, *there})
    ]


def backlog(
    unread: Sequence[tuple[Source, Path, int]],
    passed_over: Iterable[PassedOver],
    *,
    pipeline: "Pipeline",
    timeline: "Timeline",
    outbox: "Outbox",
    policy: "ChunkPolicy",
) -> "Backlog":
    """Estimate the backlog from unread transcripts, waiting chunks and events in no chunk. Nothing that is read is stored."""
    from kite_memory.distill.condense import condense  # none of these is needed for a survey
    from kite_memory.distill.model_extractor import Backlog

    step = max(1, math.ceil(sum(behind for _, _, behind in unread) / _LOOKED_AT))
    by_size = sorted(unread, key=lambda each: (each[2], str(each[1])))

    def length(chunk: Chunk) -> int:
        return len(condense(chunk, limit_chars=_LIMIT_CHARS).text)

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


def _chunks(session: Session, events: Sequence[Event], policy: "ChunkPolicy") -> Iterator[Chunk]:
    from kite_memory.distill.condense import finished, worth_asking

    for span in finished(events, policy, quiet_for=math.inf):
        within = tuple(event for event in events if span.first <= event.ordinal <= span.last)
        if worth_asking(within):
            yield Chunk(id=span.id, session=session, events=within)


def _waiting(pipeline: "Pipeline", outbox: "Outbox") -> Iterator[Chunk]:
    yield from (chunk for waiting in outbox.all_waiting() if (chunk := pipeline.plain_chunk(waiting)) is not None)


def _in_no_chunk(stretches: Iterable[PassedOver], timeline: "Timeline", policy: "ChunkPolicy") -> Iterator[Chunk]:
    for each in stretches:
        session = timeline.sessions.get(each.provider, each.session)
        events = timeline.events.of_session(each.provider, each.session, after=each.first - 1) if session is not None else []
        events = [event for event in events if event.ordinal <= each.last]
        if session is not None:
            yield from _chunks(session, events, policy)
