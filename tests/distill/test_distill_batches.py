"""A backlog in batches, through the real `anthropic` package: what is booked, what is asked twice, what a crash costs."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kite_memory.distill.anthropic_api import AnthropicBackend, AnthropicBatches
from kite_memory.distill.batches import BatchScheduler
from kite_memory.distill.budget import Budget, utc_day
from kite_memory.distill.condense import Span
from kite_memory.distill.extractor import Prices, load_prompt
from kite_memory.distill.model_extractor import ModelExtractor
from kite_memory.distill.outbox import Outbox, WaitingChunk
from kite_memory.distill.scheduler import ChunkHandled, Idle, Scheduler
from kite_memory.extensions.contract.extractor_contract import DECIDED, EXPLAINED, SESSION, answer_to, event, plain_item, stretches
from kite_memory.model.event import EventType
from kite_memory.model.note import Chunk, Remembered
from kite_memory.wiring.models import RedactingBackend, RedactingBatches
from tests.fakes.anthropic_server import AnthropicServer, Json, Raw, anthropic_server, api_error, text_message

PROMPT = load_prompt([Path(__file__).parents[2] / "prompts"])
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
PRICES = Prices(dollars_in=1.0, dollars_out=5.0)
USAGE = {"input_tokens": 10_000, "output_tokens": 1_000}
LIVE = 0.015
"""Dollars of `USAGE` at the full price."""


class ReopenedScheduler:
    """A scheduler over a file, which can be opened again as after a crash."""

    def __init__(self, folder: Path, server: AnthropicServer) -> None:
        self.now = NOON
        self.budget = Budget(dollars=1.0, calls=100)
        self.remembered: tuple[Remembered, ...] = ()
        self.secret = ""
        self._file = folder / "outbox.sqlite"
        self._server = server
        self.open()

    def open(self) -> None:
        self.outbox = Outbox(self._file)
        self.outbox.recover()
        backend = AnthropicBackend(api_key="sk-test", model="claude-haiku-4-5", prices=PRICES, base_url=self._server.url)
        extractor = ModelExtractor(backend=RedactingBackend(backend), prompt=PROMPT, seconds=20.0)
        live = Scheduler(outbox=self.outbox, extractor=extractor, budget=self.budget, batches=True, clock=lambda: self.now)
        self.scheduler = BatchScheduler(
            live=live,
            outbox=self.outbox,
            extractor=extractor,
            batches=RedactingBatches(AnthropicBatches(backend)),
            budget=self.budget,
            clock=lambda: self.now,
            jitter=lambda: 0.0,
        )

    def load(self, waiting: WaitingChunk) -> Chunk | None:
        more = 6 if waiting.session.startswith("long") else 0
        events = (
            event(waiting.first, f"{DECIDED} {self.secret}"),
            event(waiting.first + 1, EXPLAINED, EventType.ASSISTANT_MESSAGE),
            *(event(waiting.first + 2 + at, f"{at}. {EXPLAINED * 5}"[:3_900]) for at in range(more)),
        )
        return Chunk(id=waiting.id, session=SESSION, events=events, remembered=self.remembered)

    def add(self, session: str, first: int = 1, *, batch: bool = True) -> str:
        name = f"{session}-{first}"
        span = Span(id=name, provider="claude-code", session=session, first=first, last=first + 1, weight=1)
        self.outbox.formed.add([span])
        if batch:
            self.outbox.batches.mark()
        return name

    def run(self) -> Idle:
        """Take steps until there is nothing to do now."""
        for _ in range(60):
            step = self.scheduler.step(self.load)
            if isinstance(step, Idle) and (step.until is None or step.until > self.now):
                return step
        raise AssertionError("the scheduler never rests")

    def after(self, seconds: float) -> Idle:
        self.now += seconds
        return self.run()

    @property
    def state(self) -> dict[str, int]:
        return {str(name): count for name, count in self.outbox.states().items()}

    @property
    def spent(self) -> tuple[int, Any]:
        spending = self.outbox.calls.spending(utc_day(NOON))
        return spending.calls, spending.dollars


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    def reply(asked: Json) -> Json:
        return text_message(json.dumps(answer_to(asked["messages"][0]["content"])), usage=USAGE)

    with anthropic_server(reply) as running:
        yield running


@pytest.fixture
def scheduler(tmp_path: Path, server: AnthropicServer) -> Iterator[ReopenedScheduler]:
    opened = ReopenedScheduler(tmp_path, server)
    yield opened
    opened.outbox.close()


def test_answers_come_at_half_the_price(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    scheduler.add("long-a"), scheduler.add("long-b")

    idle = scheduler.run()

    assert scheduler.state == {"asked": 2}
    assert scheduler.outbox.batches.chunks() == 2
    assert idle.until == NOON + 60 and "batch" in idle.reason
    calls, booked = scheduler.spent
    assert calls == 2 and booked > LIVE
    server.batches_over = True
    scheduler.after(60)
    assert scheduler.state == {"answered": 2}
    assert scheduler.spent == (2, pytest.approx(2 * LIVE / 2))
    assert scheduler.outbox.calls.spending(utc_day(NOON)).tokens_in == 20_000
    assert scheduler.outbox.batches.sent() == []
    assert server.requests == []


def test_short_sessions_share_a_request_of_a_batch(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    for name in ("a", "b", "c", "long-d"):
        scheduler.add(name)

    scheduler.run()
    server.batches_over = True
    scheduler.after(60)

    ((shared, alone),) = server.batches.values()
    assert {shared["custom_id"], alone["custom_id"]} == {"a-1", "long-d-1"}
    assert scheduler.state == {"answered": 4}
    assert scheduler.spent == (2, pytest.approx(2 * LIVE / 2))


def test_what_is_not_marked_is_answered_at_once(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    scheduler.add("long-a")
    scheduler.add("b", batch=False)

    scheduler.run()

    assert len(server.requests) == 1
    assert scheduler.state == {"asked": 1, "answered": 1}


def test_later_stretches_of_a_session_wait_for_the_notes_of_earlier_ones(
    scheduler: ReopenedScheduler, server: AnthropicServer
) -> None:
    scheduler.add("long-a", 1), scheduler.add("long-a", 11)

    scheduler.run()
    assert [len(requests) for requests in server.batches.values()] == [1]

    server.batches_over = True
    scheduler.after(60)
    assert [[each["custom_id"] for each in requests] for requests in server.batches.values()] == [["long-a-1"], ["long-a-11"]]


def test_notes_keep_the_names_under_which_they_were_shown(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    note = Remembered(
        id="note-9",
        title="SQLite for the jobs",
        body="Jobs lie in SQLite.",
        kind="decision",
        day=SESSION.started.date(),
        here=False,
    )
    scheduler.remembered = (note,)
    changed = plain_item(replaces="N1", because="PostgreSQL it is")
    server.reply = lambda asked: text_message(json.dumps(stretches(A=[changed])), usage=USAGE)
    scheduler.add("long-a")
    scheduler.run()
    scheduler.remembered = ()
    server.batches_over = True

    scheduler.after(60)

    (answered,) = scheduler.outbox.answered()
    assert answered.record.weighed == ("note-9",)
    assert [each.change and (each.change.does, each.change.note) for each in answered.record.items()] == [("replaces", "note-9")]


def test_secrets_do_not_leave_in_a_batch(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    scheduler.secret = "AKIAIOSFODNN7EXAMPLE"
    scheduler.add("long-a")

    scheduler.run()

    assert "AKIAIOSFODNN7EXAMPLE" not in json.dumps(server.batches)


def test_a_restart_takes_the_answers_of_a_batch_sent_before(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    scheduler.add("long-a")
    scheduler.run()
    scheduler.outbox.close()
    server.batches_over = True

    scheduler.open()
    scheduler.after(60)

    assert len(server.batches) == 1
    assert scheduler.state == {"answered": 1}


def test_a_batch_whose_arrival_is_unknown_is_found_and_not_sent_again(
    scheduler: ReopenedScheduler, server: AnthropicServer
) -> None:
    server.on_batch = Raw(reset=True)
    scheduler.add("long-a")
    scheduler.run()
    scheduler.outbox.close()  # and a crash on top
    server.on_batch, server.batches_over = None, True

    scheduler.open()
    assert scheduler.state == {"asked": 1}
    scheduler.after(300)

    assert len(server.batches) == 1
    assert scheduler.state == {"answered": 1}
    assert scheduler.spent == (1, pytest.approx(LIVE / 2))


def test_another_batch_of_the_same_size_is_not_taken_for_ours(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    server.batches["msgbatch_other"] = [{"custom_id": "theirs", "params": {"messages": [{"content": ""}]}}]
    server.batches_over = True
    server.on_batch, server.loses = Raw(reset=True), True
    scheduler.add("long-a")
    scheduler.run()
    server.on_batch, server.loses = None, False

    scheduler.after(300)

    ours = [requests for name, requests in server.batches.items() if name != "msgbatch_other"]
    assert [each["custom_id"] for each in ours[0]] == ["long-a-1"]
    scheduler.after(60)
    assert scheduler.state == {"answered": 1}


def test_what_a_lost_batch_has_booked_stays_spent(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    server.on_batch, server.loses = Raw(reset=True), True
    scheduler.add("long-a")
    scheduler.run()
    _, booked = scheduler.spent
    server.on_batch, server.loses = api_error(529, "overloaded_error", "later"), True

    scheduler.after(300)

    assert scheduler.spent == (1, pytest.approx(booked))
    assert scheduler.state == {"waiting": 1}


@pytest.mark.parametrize(
    "refusal",
    [
        api_error(529, "overloaded_error", "later"),
        api_error(401, "authentication_error", "no such key"),
        api_error(429, "rate_limit_error", "slowly", headers={"retry-after": "30"}),
    ],
)
def test_a_batch_that_is_not_accepted_costs_nothing(scheduler: ReopenedScheduler, server: AnthropicServer, refusal: Raw) -> None:
    server.on_batch, server.loses = refusal, True
    scheduler.add("long-a")

    idle = scheduler.run()

    assert scheduler.spent == (0, 0.0)
    assert scheduler.state == {"waiting": 1}
    assert idle.until is not None and idle.until > NOON


@pytest.mark.parametrize("kind", ["expired", "canceled"])
def test_requests_without_an_answer_cost_nothing_and_are_asked_again(
    scheduler: ReopenedScheduler, server: AnthropicServer, kind: str
) -> None:
    scheduler.add("long-a"), scheduler.add("long-b")
    scheduler.run()
    server.batches_over = True
    server.ended = lambda each: (
        {"type": kind} if each["custom_id"] == "long-a-1" else {"type": "succeeded", "message": server.reply(each["params"])}
    )

    scheduler.now += 60
    assert isinstance(scheduler.scheduler.step(scheduler.load), ChunkHandled)

    assert scheduler.state == {"waiting": 1, "answered": 1}
    assert scheduler.spent == (2, pytest.approx(LIVE / 2))


def test_a_request_that_the_service_does_not_accept_is_refused_where_others_were_answered(
    scheduler: ReopenedScheduler, server: AnthropicServer
) -> None:
    scheduler.add("long-a"), scheduler.add("long-b")
    scheduler.run()
    server.batches_over = True
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "messages: no"}}
    server.ended = lambda each: (
        {"type": "errored", "error": error}
        if each["custom_id"] == "long-a-1"
        else {"type": "succeeded", "message": server.reply(each["params"])}
    )

    scheduler.after(60)

    assert scheduler.state == {"refused": 1, "answered": 1}


def test_where_all_requests_err_nothing_is_sent_until_the_next_day(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    scheduler.add("long-a"), scheduler.add("long-b")
    scheduler.run()
    server.batches_over = True
    error = {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-nonesuch"}}
    server.ended = lambda each: {"type": "errored", "error": error}

    idle = scheduler.after(60)

    assert scheduler.state == {"waiting": 2}
    assert len(server.batches) == 1
    assert idle.hint and idle.until == NOON + 12 * 3600
    assert scheduler.spent == (2, 0.0)


def test_a_request_that_the_results_leave_out_stays_booked(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    scheduler.add("long-a"), scheduler.add("long-b")
    scheduler.run()
    _, booked = scheduler.spent
    server.batches_over = True
    server.ended = lambda each: (
        None if each["custom_id"] == "long-a-1" else {"type": "succeeded", "message": server.reply(each["params"])}
    )

    scheduler.now += 60
    scheduler.scheduler.step(scheduler.load)

    assert scheduler.state == {"waiting": 1, "answered": 1}
    assert scheduler.spent == (2, pytest.approx(booked / 2 + LIVE / 2))


def test_no_more_is_sent_than_the_days_budget_allows_and_the_rest_once_it_is_freed(tmp_path: Path, server: AnthropicServer) -> None:
    scheduler = ReopenedScheduler(tmp_path, server)
    scheduler.outbox.close()
    scheduler.budget = Budget(dollars=0.10, calls=100)
    scheduler.open()
    for name in ("long-a", "long-b", "long-c", "long-d", "long-e"):
        scheduler.add(name)

    scheduler.run()

    first = len(server.batches["msgbatch_1"])
    assert 1 <= first < 5
    assert scheduler.spent[1] <= 0.10
    server.batches_over = True
    for _ in range(4):
        scheduler.after(60)
    assert scheduler.state == {"answered": 5}
    assert scheduler.spent == (5, pytest.approx(5 * LIVE / 2))
    scheduler.outbox.close()


def test_what_is_erased_while_a_batch_is_on_its_way_makes_no_note(scheduler: ReopenedScheduler, server: AnthropicServer) -> None:
    scheduler.add("long-a")
    scheduler.run()
    scheduler.outbox.drop_answers([("claude-code", "long-a", 1)])
    server.batches_over = True

    scheduler.now += 60
    scheduler.scheduler.step(scheduler.load)

    assert scheduler.state == {"waiting": 1}
    assert scheduler.spent == (1, pytest.approx(LIVE / 2))


def test_a_crash_between_the_answers_and_the_settlement_counts_nothing_twice(
    scheduler: ReopenedScheduler, server: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler.add("long-a"), scheduler.add("long-b")
    scheduler.run()
    server.batches_over = True

    def crash(*value: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(scheduler.outbox.batches, "settle", crash)
    scheduler.now += 60
    with pytest.raises(KeyboardInterrupt):
        scheduler.scheduler.step(scheduler.load)
    assert scheduler.state == {"asked": 1, "answered": 1}
    scheduler.outbox.close()

    scheduler.open()
    scheduler.run()

    assert scheduler.state == {"answered": 2}
    assert scheduler.spent == (2, pytest.approx(2 * LIVE / 2))
    assert len(server.batches) == 1
