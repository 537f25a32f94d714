"""When to ask, when to wait, when to stop asking: the one place that retries."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import assert_never

from kite_memory.distill.chunking import middle
from kite_memory.distill.extractor import Answer, Busy, Extractor, Misconfigured, Outcome, Refused, Usage
from kite_memory.distill.outbox import Outbox, PutOff, WaitingChunk
from kite_memory.distill.spending import Budget, utc_day
from kite_memory.model.record import Chunk

LONGEST_PAUSE = 3600.0
"""No server and no clock makes us wait longer than an hour for one call."""

BUDGET_SPENT = "the day's budget is spent"

TOO_DEAR = "one call about it may cost more than `dollars_per_day` under [extractor]"

_OTHERS = 8
"""So many chunks that today's rest does not pay for are passed over in search of one that it does."""

_FIRST_PAUSE = 5.0
_BREAKER_AFTER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A chunk was dealt with; ``answered`` says whether there is something to write. There may be more."""

    chunk: str
    answered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """Nothing to ask before ``until`` (Unix time), or before new chunks where that is ``None``; ``reason`` is for people."""

    until: float | None
    reason: str
    hint: str = ""


def pause_after(failures: int, retry_after: float, jitter: float) -> float:
    """Seconds to leave the server alone. ``jitter`` is in [0, 1): it spreads clients that failed at the same moment.

    A server's own word is the least; beyond it, the pause doubles with each failure in a row.
    """
    backoff = _FIRST_PAUSE * 2.0 ** min(max(failures - 1, 0), 12)
    return min(LONGEST_PAUSE, max(retry_after, min(backoff, LONGEST_PAUSE)) * (1.0 + 0.25 * jitter))


class Scheduler:
    """One call at a time.

    Failures in a row open a breaker over all chunks; what only a person can mend waits for the next day or a restart. A chunk
    that is not accepted, though another is after it, is tried once more and then refused: it does not hold up the rest. Where two
    are not, nothing is asked that day; on the next, the second of them comes after the others.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        extractor: Extractor,
        budget: Budget,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._outbox = outbox
        self._extractor = extractor
        self._budget = budget
        self._clock = clock
        self._jitter = jitter
        self._failures = 0
        self._unaccepted: set[str] = set()
        self._alone: set[str] = set()
        """Of those not accepted, chunks after which another was."""
        self._unwritten: tuple[WaitingChunk, Outcome] | None = None
        self._closed_at = self._closed_until = 0.0
        self._closed_because = Idle(until=None, reason="")
        self._unpaid: set[str] = set()
        """Chunks that the rest of this day's budget does not pay for."""
        self._unpaid_on = ""

    def step(self, load: Callable[[WaitingChunk], Chunk | None]) -> Asked | Idle:
        """Ask about one chunk, if the time is right, and commit what came of it."""
        now = self._clock()
        if self._unwritten is not None:
            return self._write_down(*self._unwritten, now)
        if self._closed_at <= now < self._closed_until:  # a clock that was set back is no reason to wait for where it was
            return self._closed_because
        if self._unpaid_on != utc_day(now):
            self._unpaid.clear()
        match self._outbox.next_waiting(now, without=self._unpaid):
            case None:
                return Idle(until=None, reason="nothing waits") if not self._unpaid else self._budget_spent(now, _next_day(now))
            case PutOff(until=until, reason=reason):
                if self._unpaid:
                    return self._budget_spent(now, min(until, _next_day(now)))
                return Idle(until=until, reason=f"trying again: {reason}" if reason else "trying again")
            case WaitingChunk() as waiting:
                return self._ask(waiting, load(waiting), now)

    def _ask(self, waiting: WaitingChunk, chunk: Chunk | None, now: float) -> Asked | Idle:
        if chunk is None or not chunk.events:
            self._outbox.refuse(waiting.id, Usage(), reason="its events are gone from the timeline")
            return Asked(chunk=waiting.id, answered=False)
        day, estimate = utc_day(now), self._extractor.estimate(chunk)
        if estimate.dollars > self._budget.dollars:
            return self._make_affordable(waiting, chunk)
        if not self._outbox.reserve(waiting.id, estimate, self._budget, day=day):
            self._unpaid.add(waiting.id)
            self._unpaid_on = day
            if len(self._unpaid) > _OTHERS or self._outbox.spending(day).calls >= self._budget.calls:
                return self._budget_spent(now, _next_day(now))
            return Asked(chunk=waiting.id, answered=False)
        self._unwritten = (waiting, self._extractor.extract(chunk))
        return self._write_down(*self._unwritten, now)

    def _make_affordable(self, waiting: WaitingChunk, chunk: Chunk) -> Asked:
        """Divide what no day's budget pays for, unless even its shortest part would cost too much."""
        shortest = min(chunk.events, key=lambda event: len(event.text))
        at = middle(chunk.events)
        if at is None or self._extractor.estimate(replace(chunk, events=(shortest,))).dollars > self._budget.dollars:
            self._outbox.set_aside(waiting.id, reason=TOO_DEAR)
        else:
            self._outbox.divide(waiting, at)
        return Asked(chunk=waiting.id, answered=False)

    def _budget_spent(self, now: float, until: float) -> Idle:
        return self._close(now, until, BUDGET_SPENT, "raise `dollars_per_day` under [extractor], or wait")

    def _write_down(self, waiting: WaitingChunk, outcome: Outcome, now: float) -> Asked | Idle:
        """Raises `StateNotWritten`, as on a full disk: then this is tried again before anything else is asked."""
        match outcome:
            case Answer(record=record, usage=usage, refused_items=refused):
                self._failures = 0
                self._outbox.answer(waiting.id, record, usage, extractor=self._extractor.name, refused_items=refused)
                self._unwritten = None
                self._alone |= self._unaccepted
                self._unaccepted.clear()
                return Asked(chunk=waiting.id, answered=bool(record.items()))
            case Refused(reason=reason, usage=usage):
                self._failures = 0
                self._outbox.refuse(waiting.id, usage, reason=reason)
                self._unwritten = None
                return Asked(chunk=waiting.id, answered=False)
            case Busy(reason=reason, retry_after=retry_after, usage=usage, made=made):
                pause = pause_after(max(self._failures + 1, waiting.attempts + 1), retry_after, self._jitter())
                spent = None if made == "perhaps" else usage  # it may be on the bill: what was booked stays booked
                self._outbox.put_off(waiting.id, spent, not_before=now + pause, reason=reason)
                self._unwritten = None
                self._failures += 1
                if self._failures >= _BREAKER_AFTER or retry_after > 0:
                    return self._close(now, now + pause, f"the extractor is busy: {reason}", "")
                return Idle(until=now, reason=reason)
            case Misconfigured(reason=reason, perhaps_this=True) if waiting.id in self._alone:
                self._outbox.refuse(waiting.id, Usage(), reason=reason)
                self._unwritten = None
                self._alone.discard(waiting.id)
                return Asked(chunk=waiting.id, answered=False)
            case Misconfigured(reason=reason, hint=hint, perhaps_this=True) if self._unaccepted <= {waiting.id}:
                self._outbox.put_off(waiting.id, Usage(), not_before=now + LONGEST_PAUSE, reason=reason)
                self._unwritten = None
                self._unaccepted.add(waiting.id)
                return Idle(until=now, reason=reason, hint=hint)
            case Misconfigured(reason=reason, hint=hint, perhaps_this=perhaps_this):
                tomorrow = _next_day(now)  # when another is tried before this one: these two may have the same fault
                self._outbox.put_off(
                    waiting.id, Usage(), not_before=tomorrow + LONGEST_PAUSE if perhaps_this else 0.0, reason=reason
                )
                self._unwritten = None
                return self._close(now, tomorrow, reason, hint)
            case _:
                assert_never(outcome)

    def _close(self, now: float, until: float, reason: str, hint: str) -> Idle:
        self._closed_at, self._closed_until = now, until
        self._closed_because = Idle(until=until, reason=reason, hint=hint)
        return self._closed_because


def _next_day(now: float) -> float:
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (today + timedelta(days=1)).timestamp()
