"""The judge's part of the budget: booked before, settled after, and never at extraction's cost."""

import sqlite3
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kite_memory.distill.budget import Allowance, Budget, Spending
from kite_memory.distill.condense import Span
from kite_memory.distill.extractor import Usage
from kite_memory.distill.outbox import Outbox

NOON = 1_772_366_400.0
DAY = "2026-03-01"
ESTIMATE = Usage(tokens_in=5_000, tokens_out=200, dollars=0.01)
REAL = Usage(tokens_in=2_500, tokens_out=40, dollars=0.003)


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    box = Outbox(tmp_path / "outbox.sqlite")
    yield box
    box.close()


def allowance(outbox: Outbox, *, dollars: float = 1.0, calls: int = 100, share: float = 0.5, now: float = NOON) -> Allowance:
    return Allowance(outbox=outbox, budget=Budget(dollars=dollars, calls=calls), share=share, clock=lambda: now)


def extraction(outbox: Outbox, number: int, *, dollars: float, budget: Budget) -> bool:
    outbox.formed.add([Span(id=f"c{number}", provider="claude-code", session="s", first=number, last=number, weight=1)])
    return outbox.reserve(f"c{number}", Usage(dollars=dollars), budget, day=DAY)


def test_a_call_counts_before_it_is_made(outbox: Outbox) -> None:
    booking = allowance(outbox).book(ESTIMATE)

    assert booking is not None
    assert outbox.calls.purposes(DAY).get("judge", Spending()) == outbox.calls.spending(DAY) == Spending(calls=1, dollars=0.01)


def test_settling_puts_what_it_cost_in_the_place_of_the_estimate(outbox: Outbox) -> None:
    booking = allowance(outbox).book(ESTIMATE)
    assert booking is not None

    booking.settle(REAL)

    spent = outbox.calls.purposes(DAY).get("judge", Spending())
    assert (spent.calls, spent.tokens_in, spent.tokens_out) == (1, 2_500, 40)
    assert spent.dollars == pytest.approx(0.003)


def test_a_refund_leaves_nothing(outbox: Outbox) -> None:
    booking = allowance(outbox).book(ESTIMATE)
    assert booking is not None

    booking.refund()

    assert outbox.calls.purposes(DAY).get("judge", Spending()).calls == outbox.calls.spending(DAY).calls == 0
    assert outbox.calls.purposes(DAY).get("judge", Spending()).dollars == pytest.approx(0.0)


def test_what_a_crash_leaves_booked_stays_spent(tmp_path: Path) -> None:
    before = Outbox(tmp_path / "outbox.sqlite")
    allowance(before).book(ESTIMATE)
    before.close()

    after = Outbox(tmp_path / "outbox.sqlite")
    after.recover()

    assert after.calls.purposes(DAY).get("judge", Spending()) == Spending(calls=1, dollars=0.01)
    after.close()


def test_it_is_settled_on_the_day_it_was_booked(outbox: Outbox) -> None:
    now = [NOON]
    ours = Allowance(outbox=outbox, budget=Budget(dollars=1.0, calls=9), share=1.0, clock=lambda: now[0])
    booking = ours.book(ESTIMATE)
    assert booking is not None

    now[0] += 86_400
    booking.settle(REAL)

    assert outbox.calls.purposes(DAY).get("judge", Spending()).tokens_in == 2_500
    assert outbox.calls.purposes("2026-03-02").get("judge", Spending()) == Spending()


def test_judging_leaves_extraction_its_part(outbox: Outbox) -> None:
    ours = allowance(outbox, dollars=0.1, calls=100)

    while ours.book(ESTIMATE) is not None:
        pass

    assert outbox.calls.purposes(DAY).get("judge", Spending()).dollars == pytest.approx(0.05)
    assert extraction(outbox, 1, dollars=0.04, budget=ours.budget)


def test_the_share_holds_for_calls_as_well(outbox: Outbox) -> None:
    ours = allowance(outbox, calls=9)

    made = sum(ours.book(Usage()) is not None for _ in range(20))

    assert made == 4


def test_what_extraction_has_spent_is_not_there_for_judging(outbox: Outbox) -> None:
    ours = allowance(outbox, dollars=0.1)
    assert extraction(outbox, 1, dollars=0.095, budget=ours.budget)

    assert ours.book(ESTIMATE) is None
    assert outbox.calls.purposes(DAY).get("judge", Spending()) == Spending()


def test_what_agents_save_leaves_the_judge_its_share(outbox: Outbox) -> None:
    judging = allowance(outbox, dollars=1.0, share=0.1)
    saving = replace(judging, share=1.0, purpose="save")
    for _ in range(20):
        assert saving.book(ESTIMATE) is not None

    assert judging.book(ESTIMATE) is not None

    spent = outbox.calls.purposes(DAY)
    assert (spent["save"].calls, spent["judge"].calls, outbox.calls.spending(DAY).calls) == (20, 1, 21)


def test_answers_and_judging_are_held_to_one_share(outbox: Outbox) -> None:
    judging = allowance(outbox, dollars=0.1)
    answering = replace(judging, purpose="answer")

    made = sum(each.book(ESTIMATE) is not None for _ in range(9) for each in (judging, answering))

    assert made == 5


def test_a_share_of_nothing_books_nothing(outbox: Outbox) -> None:
    assert allowance(outbox, share=0.0).book(Usage()) is None


def test_the_next_day_begins_anew(outbox: Outbox) -> None:
    assert allowance(outbox, calls=2).book(ESTIMATE) is not None
    assert allowance(outbox, calls=2).book(ESTIMATE) is None

    assert allowance(outbox, calls=2, now=NOON + 86_400).book(ESTIMATE) is not None


def test_many_at_once_never_book_more_than_there_is(tmp_path: Path) -> None:
    boxes = [Outbox(tmp_path / "outbox.sqlite") for _ in range(2)]  # as of two processes
    ours = [allowance(box, dollars=0.2) for box in boxes]

    with ThreadPoolExecutor(8) as threads:
        booked = list(threads.map(lambda number: ours[number % 2].book(ESTIMATE) is not None, range(60)))

    assert sum(booked) == 10
    assert boxes[0].calls.purposes(DAY).get("judge", Spending()).dollars == pytest.approx(0.1)
    for box in boxes:
        box.close()


@settings(deadline=None)  # every step is committed to the disk
@given(st.lists(st.tuples(st.floats(0.001, 0.1), st.sampled_from(["settle", "refund", "leave"]), st.floats(0, 1)), max_size=30))
def test_neither_part_is_ever_overdrawn(calls: list[tuple[float, str, float]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        outbox = Outbox(Path(folder) / "outbox.sqlite")
        ours = allowance(outbox, dollars=0.5, calls=16)

        for estimate, ending, part in calls:
            booking = ours.book(Usage(dollars=estimate))
            if booking is not None and ending == "settle":
                booking.settle(Usage(dollars=estimate * part))
            elif booking is not None and ending == "refund":
                booking.refund()

        judged = outbox.calls.purposes(DAY).get("judge", Spending())
        assert judged == outbox.calls.spending(DAY)
        assert 0 <= judged.calls <= 8
        assert 0 <= judged.dollars <= 0.25 + 1e-9
        outbox.close()


def test_an_outbox_of_the_first_version_learns_to_tell_judging_apart(tmp_path: Path) -> None:
    old = Outbox(tmp_path / "outbox.sqlite")
    extraction(old, 1, dollars=0.02, budget=Budget(dollars=1.0, calls=9))
    old.close()
    with sqlite3.connect(tmp_path / "outbox.sqlite") as database:
        for table in ("purpose_spending", "batches", "batch_requests"):
            database.execute(f"DROP TABLE {table}")
        for table, column in (
            ("chunks", "by_batch"),
            ("chunks", "batch"),
            ("chunks", "unknown"),
            ("chunks", "first_event"),
            ("chunks", "last_event"),
            ("sessions", "event"),
        ):
            database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        database.execute("PRAGMA user_version = 1")
    database.close()

    new = Outbox(tmp_path / "outbox.sqlite")

    assert new.states() == {"asked": 1}
    assert new.calls.spending(DAY).dollars == pytest.approx(0.02)
    assert new.calls.purposes(DAY).get("judge", Spending()) == Spending()
    assert allowance(new).book(ESTIMATE) is not None
    new.close()
