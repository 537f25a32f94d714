"""The scheduler: nothing dropped, nothing asked twice, no one hammered."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kite_memory.distill.budget import Budget, utc_day
from kite_memory.distill.condense import Span
from kite_memory.distill.extractor import Busy, Extractor, Misconfigured, Outcome, Refused, Usage
from kite_memory.distill.outbox import MOST_UNKNOWN, Outbox, WaitingChunk
from kite_memory.distill.scheduler import LONGEST_PAUSE, TOO_DEAR, ChunkHandled, Idle, Scheduler, pause_after
from kite_memory.errors import StateNotWritten
from kite_memory.extensions.contract.extractor_contract import SESSION, event
from kite_memory.model.note import Chunk
from tests.fakes.clock import TickClock
from tests.fakes.extractors import ScriptedExtractor, SharingExtractor, plain_answer

NOON = 1_772_366_400.0
MIDNIGHT = NOON + 12 * 3600


@pytest.fixture
def clock() -> TickClock:
    return TickClock(NOON)


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    box = Outbox(tmp_path / "outbox.sqlite")
    yield box
    box.close()


def load(waiting: WaitingChunk) -> Chunk | None:
    return Chunk(id=waiting.id, session=SESSION, events=(event(waiting.first, "We chose grafting."),))


def scheduler(outbox: Outbox, extractor: Extractor, clock: TickClock, *, dollars: float = 1.0) -> Scheduler:
    return Scheduler(
        outbox=outbox,
        extractor=extractor,
        budget=Budget(dollars=dollars, calls=100),
        clock=clock,
        jitter=lambda: 0.0,
    )


def fill(outbox: Outbox, count: int) -> None:
    outbox.formed.add(
        [Span(id=f"c{n}", provider="claude-code", session=SESSION.id, first=n, last=n, weight=1) for n in range(count)]
    )


def run_dry(scheduler: Scheduler) -> Idle:
    while True:
        match scheduler.step(load):
            case Idle() as idle:
                return idle
            case ChunkHandled():
                pass


def test_every_chunk_is_asked_once_and_answered(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 5)
    extractor = ScriptedExtractor()

    idle = run_dry(scheduler(outbox, extractor, clock))

    assert idle.until is None
    assert extractor.asked == ["c0", "c1", "c2", "c3", "c4"]
    assert outbox.states() == {"answered": 5}


ENDINGS = (
    plain_answer,
    Refused(reason="declined"),
    Busy(reason="overloaded"),
    Misconfigured(reason="no credit", hint="add credit"),
)


@pytest.mark.parametrize("ending", ENDINGS, ids=["answered", "refused", "busy", "misconfigured"])
def test_how_a_call_ended_is_written_down_when_the_disk_has_room_again(
    tmp_path: Path, clock: TickClock, ending: Outcome | Callable[[Chunk, str], Outcome]
) -> None:
    class FullDisk(Outbox):
        full = False

        def answer(self, *args: Any, **kwargs: Any) -> None:
            self._unless_full(super().answer, *args, **kwargs)

        def refuse(self, *args: Any, **kwargs: Any) -> None:
            self._unless_full(super().refuse, *args, **kwargs)

        def put_off(self, *args: Any, **kwargs: Any) -> None:
            self._unless_full(super().put_off, *args, **kwargs)

        def _unless_full(self, write: Callable[..., None], *args: Any, **kwargs: Any) -> None:
            if self.full:
                raise StateNotWritten("the outbox cannot be written: database or disk is full")
            write(*args, **kwargs)

    outbox = FullDisk(tmp_path / "full.sqlite")
    fill(outbox, 1)
    extractor = ScriptedExtractor([(lambda chunk: ending(chunk, "Pears")) if callable(ending) else ending])
    asking = scheduler(outbox, extractor, clock)
    outbox.full = True
    for _ in range(3):
        with pytest.raises(StateNotWritten):
            asking.step(load)
    outbox.full = False
    before = outbox.states()

    asking.step(load)

    assert before == {"asked": 1}
    assert extractor.asked == ["c0"]
    assert "asked" not in outbox.states()
    outbox.close()


def test_a_refused_chunk_is_not_asked_again(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 1)
    extractor = ScriptedExtractor([Refused(reason="too long")])

    run_dry(scheduler(outbox, extractor, clock))
    clock.now += 1e6
    run_dry(scheduler(outbox, extractor, clock))

    assert extractor.asked == ["c0"]


def test_a_servers_word_holds_back_every_chunk(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 2)
    extractor = ScriptedExtractor([Busy(reason="429", retry_after=300.0)])
    asking = scheduler(outbox, extractor, clock)

    idle = asking.step(load)
    assert isinstance(idle, Idle)
    assert idle.until == NOON + 300
    clock.now += 299
    assert isinstance(asking.step(load), Idle)
    clock.now += 2
    run_dry(asking)

    assert sorted(extractor.asked) == ["c0", "c0", "c1"]
    assert outbox.states() == {"answered": 2}


def test_failures_in_a_row_open_the_breaker(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 10)
    extractor = ScriptedExtractor([Busy(reason="529")] * 10)
    asking = scheduler(outbox, extractor, clock)

    for _ in range(20):
        asking.step(load)

    assert len(extractor.asked) == 3


def test_an_outage_of_three_days_loses_nothing_and_asks_seldom(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 20)
    extractor = ScriptedExtractor([Busy(reason="529", usage=Usage())] * 200, price=0.001)
    asking = scheduler(outbox, extractor, clock, dollars=100.0)
    while clock.now < NOON + 72 * 3600:
        idle = run_dry(asking)
        clock.now = max(clock.now + 1.0, idle.until or 0.0)
    during = len(extractor.asked)

    recovered = ScriptedExtractor()
    asking = scheduler(outbox, recovered, clock, dollars=100.0)
    while any(state != "answered" for state in outbox.states()):
        idle = run_dry(asking)
        clock.now = max(clock.now + 1.0, idle.until or 0.0)

    assert during < 100
    assert sorted(recovered.asked) == sorted(f"c{n}" for n in range(20))


def test_over_budget_waits_for_the_next_day(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 3)
    extractor = ScriptedExtractor(price=0.4)
    asking = scheduler(outbox, extractor, clock, dollars=0.405)

    idle = run_dry(asking)
    assert extractor.asked == ["c0", "c1"]
    assert idle.until == MIDNIGHT
    clock.now = MIDNIGHT
    run_dry(asking)

    assert extractor.asked == ["c0", "c1", "c2"]


LOST = Busy(reason="no answer within 180 s", made="perhaps")


def test_a_chunk_whose_calls_get_no_answer_is_set_aside_after_a_few(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 1)
    extractor = ScriptedExtractor([LOST] * 500, price=0.05)
    asking = scheduler(outbox, extractor, clock)

    while clock.now < NOON + 14 * 24 * 3600:
        idle = run_dry(asking)
        clock.now = max(clock.now + 1.0, idle.until or clock.now + 3600.0)

    assert len(extractor.asked) == MOST_UNKNOWN
    assert outbox.aside() == {LOST.reason: 1}


def test_after_an_outage_what_was_set_aside_is_asked_once_more(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 2)
    asking = scheduler(outbox, ScriptedExtractor([LOST] * 2 * MOST_UNKNOWN), clock)
    while outbox.aside() != {LOST.reason: 2}:
        clock.now = max(clock.now + 1.0, run_dry(asking).until or 0.0)
    fill(outbox, 3)
    recovered = ScriptedExtractor([partial(plain_answer, title="It works again"), LOST])
    clock.now += 3600.0
    asking = scheduler(outbox, recovered, clock)
    for _ in range(5):
        clock.now = max(clock.now + 1.0, run_dry(asking).until or 0.0)

    assert recovered.asked == ["c2", "c0", "c1"]
    assert outbox.states() == {"answered": 2, "aside": 1}


def test_a_person_has_chunks_that_were_set_aside_asked_again(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 1)
    asking = scheduler(outbox, ScriptedExtractor([LOST] * MOST_UNKNOWN), clock)
    while not outbox.aside():
        clock.now = max(clock.now + 1.0, run_dry(asking).until or 0.0)

    assert outbox.retry() == 1
    clock.now += 3600.0
    run_dry(asking)

    assert outbox.states() == {"answered": 1}


class PricedByLength(ScriptedExtractor):
    """Ten cents for an event."""

    def estimate(self, chunk: Chunk) -> Usage:
        return Usage(dollars=0.1 * len(chunk.events))


def load_all(waiting: WaitingChunk) -> Chunk | None:
    events = tuple(event(ordinal, "We chose grafting.") for ordinal in range(waiting.first, waiting.last + 1))
    return Chunk(id=waiting.id, session=SESSION, events=events)


def form(outbox: Outbox, *spans: tuple[str, int, int]) -> None:
    outbox.formed.add(
        [Span(id=id, provider="claude-code", session=SESSION.id, first=first, last=last, weight=1) for id, first, last in spans]
    )


def step_dry(asking: Scheduler) -> Idle:
    while isinstance(step := asking.step(load_all), ChunkHandled):
        pass
    return step


def test_a_chunk_that_no_days_budget_pays_for_is_divided(outbox: Outbox, clock: TickClock) -> None:
    form(outbox, ("dear", 0, 6), ("cheap", 7, 7))
    asked: list[int] = []

    def counted(chunk: Chunk) -> Outcome:
        asked.extend(each.ordinal for each in chunk.events)
        return plain_answer(chunk, "Counted", usage=Usage(dollars=0.001))

    asking = scheduler(outbox, PricedByLength([counted] * 10), clock, dollars=0.35)
    for day in range(3):
        step_dry(asking)
        clock.now = MIDNIGHT + day * 86_400

    assert sorted(asked) == list(range(8))
    assert outbox.formed.gaps() == []


def test_a_chunk_that_cannot_be_made_cheap_enough_is_set_aside_and_the_others_are_asked(outbox: Outbox, clock: TickClock) -> None:
    form(outbox, ("dear", 0, 0), ("cheap", 1, 1))
    asking = scheduler(outbox, DearOnce(), clock, dollars=0.3)

    assert step_dry(asking).until is None

    assert outbox.aside() == {TOO_DEAR: 1}
    assert outbox.states() == {"answered": 1, "aside": 1}


class DearOnce(ScriptedExtractor):
    def estimate(self, chunk: Chunk) -> Usage:
        return Usage(dollars=5.0 if chunk.id == "dear" else 0.1)


def test_what_the_days_rest_does_not_pay_for_lets_a_cheaper_chunk_go_first(outbox: Outbox, clock: TickClock) -> None:
    form(outbox, ("three", 0, 2), ("two", 3, 4), ("one", 5, 5))
    spent = Usage(dollars=0.1)
    extractor = PricedByLength([partial(plain_answer, title="Said", usage=spent)] * 3)
    asking = scheduler(outbox, extractor, clock, dollars=0.35)
    outbox.calls.book("judge", Usage(dollars=0.22), Budget(dollars=1, calls=9), Budget(dollars=1, calls=9), day=utc_day(NOON))

    idle = step_dry(asking)
    assert (extractor.asked, idle.until) == (["one"], MIDNIGHT)
    clock.now = MIDNIGHT
    step_dry(asking)

    assert extractor.asked == ["one", "three", "two"]


def test_what_only_a_person_can_mend_is_not_retried_today(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 2)
    extractor = ScriptedExtractor([Misconfigured(reason="credit balance is too low", hint="add credit")])
    asking = scheduler(outbox, extractor, clock)

    idle = run_dry(asking)
    clock.now += 6 * 3600
    again = run_dry(asking)

    assert extractor.asked == ["c0"]
    assert idle == again
    assert idle.hint == "add credit"


NOT_ACCEPTED = Misconfigured(reason="the API does not accept the request", hint="check the model", perhaps_this=True)


def step_often(scheduler: Scheduler) -> ChunkHandled | Idle:
    return [scheduler.step(load) for _ in range(9)][-1]


def test_one_chunk_that_is_not_accepted_does_not_hold_up_the_others(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 3)
    extractor = ScriptedExtractor(
        [NOT_ACCEPTED, partial(plain_answer, title="One"), partial(plain_answer, title="Two"), NOT_ACCEPTED]
    )
    asking = scheduler(outbox, extractor, clock)

    step_often(asking)
    first = outbox.states()
    clock.now += LONGEST_PAUSE
    step_often(asking)

    assert extractor.asked == ["c0", "c1", "c2", "c0"]
    assert first == {"waiting": 1, "answered": 2}
    assert outbox.states() == {"refused": 1, "answered": 2}


def test_two_chunks_in_a_row_that_are_not_accepted_hold_up_the_others_for_a_day_at_most(outbox: Outbox, clock: TickClock) -> None:
    def answer_to(chunk: Chunk) -> Outcome:
        return NOT_ACCEPTED if chunk.id in ("c0", "c1") else plain_answer(chunk, title=chunk.id)

    fill(outbox, 4)
    asking = scheduler(outbox, ScriptedExtractor([answer_to] * 9), clock)

    step_often(asking)
    clock.now = MIDNIGHT
    step_often(asking)

    assert outbox.states() == {"waiting": 2, "answered": 2}


def test_where_no_chunk_is_accepted_none_is_given_up(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 3)
    extractor = ScriptedExtractor([NOT_ACCEPTED] * 8)
    asking = scheduler(outbox, extractor, clock)

    idle = step_often(asking)
    asked = list(extractor.asked)
    clock.now = MIDNIGHT
    step_often(asking)

    assert idle == Idle(until=MIDNIGHT, reason=NOT_ACCEPTED.reason, hint=NOT_ACCEPTED.hint)
    assert asked == ["c0", "c1"]
    assert outbox.states() == {"waiting": 3}


def test_a_chunk_whose_events_are_gone_is_not_asked(outbox: Outbox, clock: TickClock) -> None:
    fill(outbox, 1)
    extractor = ScriptedExtractor()

    scheduler(outbox, extractor, clock).step(lambda _: None)

    assert extractor.asked == []
    assert outbox.states() == {"refused": 1}


@given(st.integers(1, 10_000), st.floats(0, 1e12), st.floats(0, 0.999))
def test_no_pause_is_longer_than_an_hour_or_shorter_than_the_server_said(failures: int, retry_after: float, jitter: float) -> None:
    pause = pause_after(failures, retry_after, jitter)

    assert min(retry_after, LONGEST_PAUSE) <= pause <= LONGEST_PAUSE
    assert pause >= 5.0


def fill_sessions(outbox: Outbox, sessions: int, *, chunks: int = 1) -> None:
    """``s0-0``, ``s0-1`` … of the first session, then those of the next."""
    outbox.formed.add(
        [
            Span(id=f"s{session}-{n}", provider="claude-code", session=f"session {session}", first=n, last=n, weight=1)
            for session in range(sessions)
            for n in range(chunks)
        ]
    )


def test_chunks_of_several_sessions_share_a_call_which_is_booked_once(outbox: Outbox, clock: TickClock) -> None:
    fill_sessions(outbox, 5)
    extractor = SharingExtractor(most=4)

    run_dry(scheduler(outbox, extractor, clock))

    assert extractor.calls == [["s0-0", "s1-0", "s2-0", "s3-0"], ["s4-0"]]
    assert outbox.states() == {"answered": 5}
    spent = outbox.calls.spending(utc_day(NOON))
    assert spent.calls == 2
    assert spent.dollars == pytest.approx(0.01)


def test_of_one_session_one_chunk_is_asked_about_at_a_time(outbox: Outbox, clock: TickClock) -> None:
    fill_sessions(outbox, 2, chunks=2)
    extractor = SharingExtractor(most=9)

    run_dry(scheduler(outbox, extractor, clock))

    assert extractor.calls == [["s0-0", "s1-0"], ["s0-1", "s1-1"]]


def test_what_a_shared_call_leaves_out_is_asked_about_alone(outbox: Outbox, clock: TickClock) -> None:
    fill_sessions(outbox, 4)
    extractor = SharingExtractor(most=9, leaves_out=["s1-0", "s2-0"])

    run_dry(scheduler(outbox, extractor, clock))

    assert extractor.calls == [["s0-0", "s1-0", "s2-0", "s3-0"], ["s1-0"], ["s2-0"]]
    assert outbox.states() == {"answered": 4}


@pytest.mark.parametrize(
    ("ending", "after"),
    [
        (Refused(reason="declined"), [["s0-0"], ["s1-0"], ["s2-0"]]),
        (Misconfigured(reason="400", hint="", perhaps_this=True), [["s0-0"], ["s1-0"], ["s2-0"]]),
        (Busy(reason="overloaded"), [["s0-0", "s1-0", "s2-0"]]),
    ],
    ids=["declined", "not accepted", "busy"],
)
def test_a_shared_call_that_fails_costs_no_one_their_answer(
    outbox: Outbox, clock: TickClock, ending: Outcome, after: list[list[str]]
) -> None:
    fill_sessions(outbox, 3)
    extractor = SharingExtractor([ending], most=9)
    asking = scheduler(outbox, extractor, clock)

    run_dry(asking)
    clock.now += LONGEST_PAUSE
    run_dry(asking)

    assert extractor.calls[0] == ["s0-0", "s1-0", "s2-0"]
    assert sorted(extractor.calls[1:]) == after
    assert outbox.states() == {"answered": 3}


def test_a_crash_in_a_shared_call_loses_no_chunk(outbox: Outbox, clock: TickClock, tmp_path: Path) -> None:
    fill_sessions(outbox, 3)
    assert outbox.reserve("s0-0", Usage(dollars=0.01), Budget(dollars=1, calls=9), day=utc_day(NOON), beside=["s1-0", "s2-0"])

    outbox.recover()
    run_dry(scheduler(outbox, SharingExtractor(most=9), clock))

    assert outbox.states() == {"answered": 3}
    assert outbox.calls.spending(utc_day(NOON)).calls == 2
