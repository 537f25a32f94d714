"""Sending of a backlog in batches, which cost half and are answered within a day, beside the calls that are answered at once."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from kite_memory.distill.budget import Budget, PlannedRequest, SentBatch, SentRequest, utc_day
from kite_memory.distill.extractor import (
    Answer,
    Batches,
    Busy,
    Ending,
    Failure,
    Inquiry,
    ListedBatch,
    Misconfigured,
    Outcome,
    Refused,
    Usage,
)
from kite_memory.distill.model_extractor import ModelExtractor
from kite_memory.distill.outbox import MOST_UNKNOWN, Outbox, WaitingChunk
from kite_memory.distill.scheduler import BUDGET_SPENT, LONGEST_PAUSE, ChunkHandled, Idle, Scheduler, next_day, pause_after
from kite_memory.model.note import Chunk

Load = Callable[[WaitingChunk], Chunk | None]

_MOST_REQUESTS = 100
_FIRST_CHECK = 60.0
_LONGEST_BETWEEN_CHECKS = 600.0
_LISTED_AFTER = 300.0
"""Seconds after which a batch that arrived is certainly listed."""
_SAME_TIME = 3600.0
"""Seconds by which the service's clock and this machine's may differ."""
_OVER_AFTER = 48 * 3600.0
"""Seconds after which no batch is still at work: the service ends it after 24 hours."""
_RAISE = "raise `dollars_per_day` under [extractor], or wait"
_ON_ITS_WAY = "a batch is being answered, which takes up to a day"
_LOST = "its batch got lost"
_LEFT_OUT = "its batch says nothing of it"
_GONE = "its events are gone from the timeline"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    request: PlannedRequest
    inquiry: Inquiry


class BatchScheduler:
    """Scheduler that sends marked chunks in batches, and lets ``live`` send all others.

    A batch is booked before it is sent. Where it is unknown whether it arrived, as after a crash, it is looked for in the account's
    list, and its results are known by the ids of chunks; only one that is not there is sent again.
    """

    def __init__(
        self,
        *,
        live: Scheduler,
        outbox: Outbox,
        extractor: ModelExtractor,
        batches: Batches,
        budget: Budget,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._live = live
        self._outbox = outbox
        self._extractor = extractor
        self._batches = batches
        self._budget = budget
        self._clock = clock
        self._jitter = jitter
        self._failures = 0
        self._closed_until = 0.0
        self._closed_because = Idle(until=None, reason="")

    def step(self, load: Load) -> ChunkHandled | Idle:
        """Take a batch's answers or send one, if it is time, and else let the live scheduler do a step."""
        now = self._clock()
        for batch in self._outbox.batches.sent():
            due = batch.check_at <= now or batch.check_at > now + LONGEST_PAUSE  # a later one was stored while the clock was wrong
            if due and (taken := self._check(batch, load, now)):
                return taken
        beside = self._send(load, now)
        if isinstance(beside, ChunkHandled):
            return beside
        step = self._live.step(load)
        if isinstance(step, ChunkHandled) or beside is None:
            return step
        times = [each.until for each in (step, beside) if each.until is not None]
        merged = beside if step.until is None else step
        return replace(merged, until=min(times, default=None))

    def _send(self, load: Load, now: float) -> ChunkHandled | Idle | None:
        """Send a batch; ``None`` if nothing is to be sent or awaited."""
        checks = [batch.check_at for batch in self._outbox.batches.sent()]
        awaited = Idle(until=min(checks), reason=_ON_ITS_WAY) if checks else None
        if now < self._closed_until <= now + 24 * 3600:
            return replace(self._closed_because, until=min([self._closed_until, *checks]))
        planned = list(self._plan(load, now))
        if not planned:
            return awaited
        number, booked = self._outbox.batches.book([each.request for each in planned], self._budget, day=utc_day(now), now=now)
        if not booked:
            until = min([next_day(now), *checks])  # a batch that is over frees what it has booked too much
            return self._close(until, _ON_ITS_WAY if checks else BUDGET_SPENT, "" if checks else _RAISE)
        sent = planned[:booked]
        submitted = self._batches.submit({each.request.id: each.inquiry for each in sent})
        match submitted:
            case str():
                self._failures = 0
                self._outbox.batches.arrived(number, submitted, check_at=now + _FIRST_CHECK)
                return ChunkHandled(chunk=sent[0].request.id, answered=False)
            case Busy(made="perhaps", reason=reason):
                self._outbox.batches.check_again(number, at=now + _LISTED_AFTER)
                return self._close(now + _LISTED_AFTER, reason, "")
            case Busy(reason=reason, retry_after=wait):
                self._failures += 1
                pause = pause_after(self._failures, wait, self._jitter())
                self._outbox.batches.take_back(number, not_before=now, reason=reason)
                return self._close(now + pause, reason, "")
            case Refused(reason=reason):
                self._outbox.batches.take_back(number, not_before=now, reason=reason)
                self._outbox.batches.unmark([chunk for each in sent for chunk in each.request.offered])
                return ChunkHandled(chunk=sent[0].request.id, answered=False)
            case Misconfigured(reason=reason, hint=hint):
                self._outbox.batches.take_back(number, not_before=now, reason=reason)
                return self._close(next_day(now), reason, hint)
            case _:
                assert_never(submitted)

    def _plan(self, load: Load, now: float) -> Iterator[_Planned]:
        """Yield requests about the first marked chunk of each session. A chunk that was asked about before goes alone."""
        together: list[Chunk] = []
        made = 0
        for waiting in self._outbox.for_batches(now):
            chunk = load(waiting)
            if chunk is None or not chunk.events:
                self._outbox.refuse(waiting.id, Usage(), reason=_GONE)
                continue
            alone = self._planned([chunk])
            if alone is None or alone.request.estimate.dollars > self._budget.dollars:
                self._outbox.batches.unmark([chunk.id])  # a live scheduler divides it
                continue
            if waiting.attempts or not self._extractor.share([chunk]):
                made += 1
                yield alone
            elif not together or self._extractor.share([*together, chunk]):
                together.append(chunk)
            else:
                yield from filter(None, [self._planned(together)])
                made += 1
                together = [chunk]
            if made >= _MOST_REQUESTS - 1:
                break
        if together:
            yield from filter(None, [self._planned(together)])

    def _planned(self, chunks: Sequence[Chunk]) -> _Planned | None:
        stretches = self._extractor.stretches(chunks)
        if not all(each.condensed.ids for each in stretches):
            return None
        inquiry = self._extractor.inquiry(stretches)
        offered = {chunk.id: [note.id for note in chunk.remembered] for chunk in chunks}
        return _Planned(request=PlannedRequest(estimate=self._batches.estimate(inquiry), offered=offered), inquiry=inquiry)

    def _check(self, batch: SentBatch, load: Load, now: float) -> ChunkHandled | None:
        """Ask how far a batch is, and take its answers if it is over."""
        if not batch.remote:
            self._find(batch, now)
            return None
        over = self._batches.is_over(batch.remote)
        if over is False and now - batch.sent < _OVER_AFTER:
            age = max(0.0, now - batch.sent)
            at = now + min(max(_FIRST_CHECK, age / 10), _LONGEST_BETWEEN_CHECKS)
            self._outbox.batches.check_again(batch.number, at=at)
            return None
        if over is not True:
            self._without_answers(batch, over, now)
            return None
        requests = self._outbox.batches.requests(batch.number)
        endings = self._batches.endings(batch.remote, {each.id: Usage(dollars=each.reserved) for each in requests})
        if isinstance(endings, Busy | Refused | Misconfigured):
            self._without_answers(batch, endings, now)
            return None
        if requests and not endings and batch.requests == len(requests):
            self._outbox.batches.is_stranger(batch, check_at=now)
            return None
        return self._take(batch, [(each, endings[each.id]) for each in requests if each.id in endings], load, now)

    def _without_answers(self, batch: SentBatch, answer: Failure | bool, now: float) -> None:
        """Look again later, or give the batch up once no service has it any more."""
        if now - batch.sent >= _OVER_AFTER and not isinstance(answer, Busy):
            self._outbox.batches.close(batch.number, now=now, reason=_LOST, most=MOST_UNKNOWN)
        else:
            self._outbox.batches.check_again(batch.number, at=now + _LONGEST_BETWEEN_CHECKS)

    def _find(self, batch: SentBatch, now: float) -> None:
        """Find a batch of which it is unknown whether it arrived, by its size and the time."""
        if now < batch.sent + _LISTED_AFTER and now >= batch.sent:
            self._outbox.batches.check_again(batch.number, at=batch.sent + _LISTED_AFTER)
            return
        listed = self._batches.listed()
        if isinstance(listed, Busy | Refused | Misconfigured):
            self._without_answers(batch, listed, now)
            return
        if found := self._same(batch, listed):
            self._outbox.batches.arrived(batch.number, found.id, check_at=now)
        else:
            self._outbox.batches.close(batch.number, now=now, reason=_LOST, most=MOST_UNKNOWN)

    def _same(self, batch: SentBatch, listed: Sequence[ListedBatch]) -> ListedBatch | None:
        others = {*batch.strangers, *(each.remote for each in self._outbox.batches.sent())}
        near = [
            each
            for each in listed
            if each.id not in others and each.requests == batch.requests and abs(each.created - batch.sent) <= _SAME_TIME
        ]
        return min(near, key=lambda each: abs(each.created - batch.sent), default=None)

    def _take(self, batch: SentBatch, ended: Sequence[tuple[SentRequest, Ending]], load: Load, now: float) -> ChunkHandled:
        """Store the outcomes, each before its cost is settled, so that a crash at any point repeats what is missing."""
        succeeded = any(not isinstance(ending, Busy | Misconfigured) for _, ending in ended)
        chunks = {each.id: each for each in self._outbox.in_batch(batch.number)}
        first, answered = "", False
        for request, ending in ended:
            there = [chunks[name] for name in request.offered if name in chunks]
            for waiting, outcome in self._outcomes(request, there, ending, load):
                first = first or waiting.id
                answered |= isinstance(outcome, Answer) and bool(outcome.record.items())
                self._store(waiting, outcome, now, alone=len(request.offered) == 1, succeeded=succeeded)
            unknown = isinstance(ending, Busy) and ending.made == "perhaps"
            self._outbox.batches.settle(batch.number, request.id, None if unknown else _cost(ending))
        self._outbox.batches.close(batch.number, now=now, reason=_LEFT_OUT, most=MOST_UNKNOWN)
        match next((ending for _, ending in ended if not succeeded), None):
            case Misconfigured(reason=reason, hint=hint):
                self._close(next_day(now), reason, hint)
            case Busy(reason=reason):
                self._close(now + LONGEST_PAUSE, reason, "")
        return ChunkHandled(chunk=first, answered=answered)

    def _outcomes(
        self, request: SentRequest, there: Sequence[WaitingChunk], ending: Ending, load: Load
    ) -> Iterator[tuple[WaitingChunk, Outcome]]:
        """Yield the outcome of each chunk that still waits for one."""
        waiting = {each.id: each for each in there}
        loaded = {each.id: chunk for each in there if (chunk := load(each)) is not None}
        if not loaded:
            yield from ((each, Refused(reason=_GONE)) for each in there)
            return
        session = next(iter(loaded.values())).session
        sent = [loaded.get(name) or Chunk(id=name, session=session, events=()) for name in request.offered]
        stretches = self._extractor.stretches(sent, offered=list(request.offered.values()))
        for name, outcome in zip(request.offered, self._extractor.outcomes(ending, stretches), strict=True):
            if name in waiting:
                yield waiting[name], outcome if name in loaded else Refused(reason=_GONE)

    def _store(self, waiting: WaitingChunk, outcome: Outcome, now: float, *, alone: bool, succeeded: bool) -> None:
        match outcome:
            case Answer(record=record, refused_items=refused):
                name = self._extractor.name
                self._outbox.answer(waiting.id, record, Usage(), extractor=name, refused_items=refused)
            case Refused(reason=reason) if alone:
                self._outbox.refuse(waiting.id, Usage(), reason=reason)
            case Misconfigured(reason=reason, perhaps_this=True) if alone and succeeded:
                self._outbox.refuse(waiting.id, Usage(), reason=reason)
            case Busy(reason=reason, made="perhaps"):
                self._outbox.put_off(waiting.id, None, not_before=now, reason=reason)
            case Busy(reason=reason) | Refused(reason=reason) | Misconfigured(reason=reason):
                self._outbox.put_off(waiting.id, Usage(), not_before=now, reason=reason)
            case _:
                assert_never(outcome)

    def _close(self, until: float, reason: str, hint: str) -> Idle:
        self._closed_until = until
        self._closed_because = Idle(until=until, reason=reason, hint=hint)
        return self._closed_because


def _cost(ending: Ending) -> Usage:
    return Usage() if isinstance(ending, Misconfigured) else ending.usage
