"""Scheduler of an extractor's calls: when to call, when to wait, when to stop.

The only place that retries. A call is booked before it is made, and settled once its cost is known.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol, assert_never

from kite_memory.distill.budget import Budget, utc_day
from kite_memory.distill.condense import middle
from kite_memory.distill.extractor import Answer, Busy, Extractor, Misconfigured, Outcome, Refused, Sharing, Usage
from kite_memory.distill.outbox import Outbox, PutOff, WaitingChunk
from kite_memory.model.note import Chunk

LONGEST_PAUSE = 3600.0
"""Seconds. No server and no clock can delay a call longer than an hour."""

BUDGET_SPENT = "the day's budget is spent"

TOO_DEAR = "one call about it may cost more than `dollars_per_day` under [extractor]"

_OTHERS = 8
"""Number of chunks too expensive for today's remaining budget that are passed over in search of an affordable one."""

_MISFITS = 4
"""Number of chunks too long to share a call that are passed over in search of a shorter one."""

_FIRST_PAUSE = 5.0
_BREAKER_AFTER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkHandled:
    """A chunk was handled; ``answered`` says whether there is something to write. More chunks may be waiting."""

    chunk: str
    answered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Nothing to do before ``until`` (Unix time), or before new chunks if that is ``None``; ``reason`` is for people."""

    until: float | None
    reason: str
    hint: str = ""


class Steps(Protocol):
    """A scheduler's interface."""

    def step(self, load: Callable[[WaitingChunk], Chunk | None]) -> ChunkHandled | Idle: ...


def pause_after(failures: int, retry_after: float, jitter: float) -> float:
    """Return the seconds to pause. ``jitter`` is in [0, 1): it spreads clients that failed at the same moment.

    The server's own delay is the minimum; beyond it, the pause doubles with each failure in a row.
    """
    backoff = _FIRST_PAUSE * 2.0 ** min(max(failures - 1, 0), 12)
    return min(LONGEST_PAUSE, max(retry_after, min(backoff, LONGEST_PAUSE)) * (1.0 + 0.25 * jitter))


class Scheduler:
    """Scheduler that makes one call at a time. With ``batches``, chunks marked for a batch are left to a `BatchScheduler`.

    Failures in a row pause all chunks; what only a person can fix waits for the next day or a restart. A chunk that fails while a
    later one succeeds is tried once more and then refused, so that it does not block the rest. If two fail, nothing is sent that
    day; on the next, the second of them comes last.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        extractor: Extractor,
        budget: Budget,
        batches: bool = False,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._outbox = outbox
        self._batches = batches
        self._extractor = extractor
        self._budget = budget
        self._clock = clock
        self._jitter = jitter
        self._failures = 0
        self._unaccepted: set[str] = set()
        self._alone: set[str] = set()
        """Failed chunks after which another one succeeded."""
        self._by_itself: set[str] = set()
        """Chunks that yielded nothing in a shared call."""
        self._unwritten: list[tuple[WaitingChunk, Outcome]] = []
        self._shared = False
        self._closed_at = self._closed_until = 0.0
        self._closed_because = Idle(until=None, reason="")
        self._unpaid: set[str] = set()
        """Chunks that cost more than the rest of this day's budget."""
        self._unpaid_on = ""

    def step(self, load: Callable[[WaitingChunk], Chunk | None]) -> ChunkHandled | Idle:
        """Send one chunk, if it is time, and commit the result."""
        now = self._clock()
        if self._unwritten:
            return self._write_all_down(now)
        if self._closed_at <= now < self._closed_until:  # do not wait for the old time after a clock was set back
            return self._closed_because
        if self._unpaid_on != utc_day(now):
            self._unpaid.clear()
        match self._outbox.next_waiting(now, without=self._unpaid, alone=self._batches):
            case None:
                return Idle(until=None, reason="nothing waits") if not self._unpaid else self._budget_spent(now, next_day(now))
            case PutOff(until=until, reason=reason):
                if self._unpaid:
                    return self._budget_spent(now, min(until, next_day(now)))
                return Idle(until=until, reason=f"trying again: {reason}" if reason else "trying again")
            case WaitingChunk() as waiting:
                return self._ask(waiting, load, now)

    def _ask(self, waiting: WaitingChunk, load: Callable[[WaitingChunk], Chunk | None], now: float) -> ChunkHandled | Idle:
        chunk = load(waiting)
        if chunk is None or not chunk.events:
            self._outbox.refuse(waiting.id, Usage(), reason="its events are gone from the timeline")
            return ChunkHandled(chunk=waiting.id, answered=False)
        day, estimate = utc_day(now), self._extractor.estimate(chunk)
        if estimate.dollars > self._budget.dollars:
            return self._make_affordable(waiting, chunk)
        beside = self._beside(waiting, chunk, load, now)
        if beside and isinstance(self._extractor, Sharing):
            chunks = [chunk, *(each for _, each in beside)]
            together = self._extractor.estimate_together(chunks)
            if self._outbox.reserve(waiting.id, together, self._budget, day=day, beside=[other.id for other, _ in beside]):
                asked = [waiting, *(other for other, _ in beside)]
                self._shared = True
                self._unwritten = list(zip(asked, self._extractor.extract_together(chunks), strict=True))
                return self._write_all_down(now)
        if not self._outbox.reserve(waiting.id, estimate, self._budget, day=day):
            self._unpaid.add(waiting.id)
            self._unpaid_on = day
            if len(self._unpaid) > _OTHERS or self._outbox.calls.spending(day).calls >= self._budget.calls:
                return self._budget_spent(now, next_day(now))
            return ChunkHandled(chunk=waiting.id, answered=False)
        self._shared = False
        self._unwritten = [(waiting, self._extractor.extract(chunk))]
        return self._write_all_down(now)

    def _beside(
        self, waiting: WaitingChunk, chunk: Chunk, load: Callable[[WaitingChunk], Chunk | None], now: float
    ) -> Sequence[tuple[WaitingChunk, Chunk]]:
        """Return chunks of other sessions to share the call; none if the chunk failed in a shared call before."""
        sharing = self._extractor
        if waiting.id in self._by_itself or not isinstance(sharing, Sharing) or not sharing.share([chunk]):
            return ()
        found: list[tuple[WaitingChunk, Chunk]] = []
        misfits = 0
        for other in self._outbox.beside(waiting, now, without=[*self._by_itself, *self._unpaid], alone=self._batches):
            theirs = load(other)
            if theirs is not None and theirs.events and sharing.share([chunk, *(each for _, each in found), theirs]):
                found.append((other, theirs))
                continue
            misfits += 1
            if misfits == _MISFITS:
                break
        return found

    def _write_all_down(self, now: float) -> ChunkHandled | Idle:
        """Commit the results of a shared call. Chunks without an answer are retried alone; the first one's result stands for the
        whole call.
        """
        while len(self._unwritten) > 1:
            other, outcome = self._unwritten[-1]
            match outcome:
                case Answer(record=record, usage=usage, refused_items=refused):
                    self._outbox.answer(other.id, record, usage, extractor=self._extractor.name, refused_items=refused)
                case Refused(reason=reason) | Misconfigured(reason=reason) | Busy(reason=reason):
                    self._outbox.put_off(other.id, Usage(), not_before=now, reason=reason)
                    if _is_about_a_chunk(outcome):
                        self._by_itself.add(other.id)
                case _:
                    assert_never(outcome)
            self._unwritten.pop()
        ((first, outcome),) = self._unwritten
        if self._shared and not isinstance(outcome, Answer) and _is_about_a_chunk(outcome):
            usage = outcome.usage if isinstance(outcome, Refused) else Usage()
            self._outbox.put_off(first.id, usage, not_before=now, reason=outcome.reason)
            self._by_itself.add(first.id)
            self._unwritten = []
            return ChunkHandled(chunk=first.id, answered=False)
        return self._write_down(first, outcome, now)

    def _make_affordable(self, waiting: WaitingChunk, chunk: Chunk) -> ChunkHandled:
        """Divide a chunk that no day's budget covers; set it aside if even its shortest part would cost too much."""
        shortest = min(chunk.events, key=lambda event: len(event.text))
        at = middle(chunk.events)
        if at is None or self._extractor.estimate(replace(chunk, events=(shortest,))).dollars > self._budget.dollars:
            self._outbox.set_aside(waiting.id, reason=TOO_DEAR)
        else:
            self._outbox.divide(waiting, at)
        return ChunkHandled(chunk=waiting.id, answered=False)

    def _budget_spent(self, now: float, until: float) -> Idle:
        return self._close(now, until, BUDGET_SPENT, "raise `dollars_per_day` under [extractor], or wait")

    def _write_down(self, waiting: WaitingChunk, outcome: Outcome, now: float) -> ChunkHandled | Idle:
        """Commit one result. Raises `StateNotWritten`, as on a full disk: it is then tried again before any other call."""
        match outcome:
            case Answer(record=record, usage=usage, refused_items=refused):
                self._failures = 0
                self._outbox.answer(waiting.id, record, usage, extractor=self._extractor.name, refused_items=refused)
                self._unwritten = []
                self._alone |= self._unaccepted
                self._unaccepted.clear()
                return ChunkHandled(chunk=waiting.id, answered=bool(record.items()))
            case Refused(reason=reason, usage=usage):
                self._failures = 0
                self._outbox.refuse(waiting.id, usage, reason=reason)
                self._unwritten = []
                return ChunkHandled(chunk=waiting.id, answered=False)
            case Busy(reason=reason, retry_after=retry_after, usage=usage, made=made):
                pause = pause_after(max(self._failures + 1, waiting.attempts + 1), retry_after, self._jitter())
                spent = None if made == "perhaps" else usage  # it may be billed, so the booked amount stays booked
                self._outbox.put_off(waiting.id, spent, not_before=now + pause, reason=reason)
                self._unwritten = []
                self._failures += 1
                if self._failures >= _BREAKER_AFTER or retry_after > 0:
                    return self._close(now, now + pause, f"the extractor is busy: {reason}", "")
                return Idle(until=now, reason=reason)
            case Misconfigured(reason=reason, perhaps_this=True) if waiting.id in self._alone:
                self._outbox.refuse(waiting.id, Usage(), reason=reason)
                self._unwritten = []
                self._alone.discard(waiting.id)
                return ChunkHandled(chunk=waiting.id, answered=False)
            case Misconfigured(reason=reason, hint=hint, perhaps_this=True) if self._unaccepted <= {waiting.id}:
                self._outbox.put_off(waiting.id, Usage(), not_before=now + LONGEST_PAUSE, reason=reason)
                self._unwritten = []
                self._unaccepted.add(waiting.id)
                return Idle(until=now, reason=reason, hint=hint)
            case Misconfigured(reason=reason, hint=hint, perhaps_this=perhaps_this):
                tomorrow = next_day(now)  # another is tried first: these two may fail for the same reason
                self._outbox.put_off(
                    waiting.id, Usage(), not_before=tomorrow + LONGEST_PAUSE if perhaps_this else 0.0, reason=reason
                )
                self._unwritten = []
                return self._close(now, tomorrow, reason, hint)
            case _:
                assert_never(outcome)

    def _close(self, now: float, until: float, reason: str, hint: str) -> Idle:
        self._closed_at, self._closed_until = now, until
        self._closed_because = Idle(until=until, reason=reason, hint=hint)
        return self._closed_because


def _is_about_a_chunk(outcome: Outcome) -> bool:
    return isinstance(outcome, Refused) or (isinstance(outcome, Misconfigured) and outcome.perhaps_this)


def next_day(now: float) -> float:
    """Return when the next UTC day begins; both are Unix times."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (today + timedelta(days=1)).timestamp()
