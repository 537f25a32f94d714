"""The real `anthropic` package against a loopback server: what each ending of a call becomes."""

import dataclasses
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kite_memory.distill.anthropic_api import AnthropicBackend
from kite_memory.distill.extractor import Answer, Busy, Misconfigured, Prices, Refused, Usage, load_prompt
from kite_memory.distill.model_extractor import TASK, ModelExtractor
from kite_memory.distill.transport import retry_after
from kite_memory.extensions.contract.extractor_contract import about_the_queue, answer, chunk, event, item
from kite_memory.model.event import EventType
from kite_memory.model.note import Record
from kite_memory.wiring.models import RedactingBackend
from tests.fakes.anthropic_server import AnthropicServer, Json, Raw, anthropic_server, api_error, message, text_message

PROMPT = load_prompt([Path(__file__).parents[2] / "prompts"])
GOOD = json.dumps(answer(item()))


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with anthropic_server(lambda asked: text_message(GOOD)) as running:
        yield running


@pytest.fixture
def backend(server: AnthropicServer) -> AnthropicBackend:
    return AnthropicBackend(
        api_key="sk-test", model="claude-haiku-4-5", prices=Prices(dollars_in=1.0, dollars_out=5.0), base_url=server.url
    )


@pytest.fixture
def extractor(backend: AnthropicBackend) -> ModelExtractor:
    return through(backend)


def through(backend: AnthropicBackend, seconds: float = 20.0) -> ModelExtractor:
    return ModelExtractor(backend=RedactingBackend(backend), prompt=PROMPT, seconds=seconds)


def answering(server: AnthropicServer, reply: Json | Raw) -> None:
    server.reply = lambda asked: reply


@pytest.mark.parametrize(
    ("model", "cached"),
    [
        ("claude-haiku-4-5", {}),
        ("claude-sonnet-4-6", {"cache_control": {"type": "ephemeral"}}),
        ("claude-haiku-5-5", {"cache_control": {"type": "ephemeral"}}),
    ],
)
def test_the_fixed_part_is_cached_where_it_is_long_enough_for_the_model(
    server: AnthropicServer, backend: AnthropicBackend, model: str, cached: Json
) -> None:
    asking = through(dataclasses.replace(backend, model=model))

    asking.extract(about_the_queue())

    assert server.requests[0]["system"] == [{"type": "text", "text": PROMPT.system, **cached}]


@pytest.mark.parametrize(("model", "thinking"), [("claude-haiku-4-5", None), ("claude-haiku-5-5", {"type": "disabled"})])
def test_no_thinking_is_paid_for(server: AnthropicServer, backend: AnthropicBackend, model: str, thinking: Json | None) -> None:
    through(dataclasses.replace(backend, model=model)).extract(about_the_queue())

    assert server.requests[0].get("thinking") == thinking


def test_the_price_from_above_counts_a_cache_only_where_there_is_one(backend: AnthropicBackend) -> None:
    without, written = (
        through(dataclasses.replace(backend, model=model)).estimate(about_the_queue()).dollars
        for model in ("claude-haiku-4-5", "claude-sonnet-4-6")
    )

    assert without < written


def test_one_call_with_the_form_prescribed(server: AnthropicServer, extractor: ModelExtractor) -> None:
    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Answer)
    (asked,) = server.requests
    assert asked["model"] == "claude-haiku-4-5"
    assert asked["output_config"] == {"format": {"type": "json_schema", "schema": PROMPT.schema}}
    (said,) = asked["messages"]
    assert said["content"].startswith("<transcript ")
    assert said["content"].endswith(TASK)
    assert server.headers[0]["x-stainless-retry-count"] == "0"


def test_the_base_url_of_the_environment_is_used_where_none_is_set(
    server: AnthropicServer, backend: AnthropicBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)

    outcome = through(dataclasses.replace(backend, base_url="")).extract(about_the_queue())

    assert isinstance(outcome, Answer)


def test_a_proxy_is_not_asked_for_our_own_loopback(
    server: AnthropicServer, extractor: ModelExtractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")

    assert isinstance(extractor.extract(about_the_queue()), Answer)


def test_cached_tokens_count_at_their_price(server: AnthropicServer, extractor: ModelExtractor) -> None:
    fields = {"input_tokens": 1_000, "cache_creation_input_tokens": 2_000, "cache_read_input_tokens": 4_000, "output_tokens": 500}
    answering(server, text_message(GOOD, usage=fields))

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Answer)
    assert (outcome.usage.tokens_in, outcome.usage.tokens_out) == (7_000, 500)
    assert outcome.usage.dollars == pytest.approx((1_000 + 2_500 + 400 + 2_500) / 1_000_000)


@pytest.mark.parametrize(
    "usage", [None, {}, {"input_tokens": -5, "output_tokens": "many"}, {"input_tokens": 10**30}, {"output_tokens": 5}, [1]]
)
def test_a_usage_that_is_not_reported_or_makes_no_sense_counts_as_estimated(
    server: AnthropicServer, extractor: ModelExtractor, usage: Any
) -> None:
    answering(server, text_message(GOOD) | {"usage": usage})

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Answer)
    assert outcome.usage == extractor.estimate(about_the_queue())


SAID = {
    "prose": "I looked at the stretch and found nothing that needs to be written down. Let me know if you disagree!",
    "a refusal in words": "I'm sorry, but I can't help with summarising this conversation.",
    "wrong types": '{"topics": {"items": "none"}}',
    "another form": '{"notes": [{"title": "x"}]}',
    "nothing": "",
    "cut at once": '{"topics": [{"na',
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID.keys())
def test_an_answer_without_form_is_refused_and_not_asked_for_again(
    server: AnthropicServer, extractor: ModelExtractor, said: str
) -> None:
    answering(server, text_message(said))

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Refused)
    assert outcome.usage.tokens_in == 100
    assert len(server.requests) == 1


@pytest.mark.parametrize("wrapped", [f"```json\n{GOOD}\n```", f"Sure!\n{GOOD}\nDone.", GOOD.replace("]}", ",]}")])
def test_an_answer_with_something_around_it_is_read(server: AnthropicServer, extractor: ModelExtractor, wrapped: str) -> None:
    answering(server, text_message(wrapped))

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Answer)
    assert len(outcome.record.items()) == 1


def test_a_cut_answer_keeps_what_is_whole(server: AnthropicServer, extractor: ModelExtractor) -> None:
    said = json.dumps(answer(item(), item(title="Second"), item(title="Third")))
    answering(server, text_message(said[: said.index("Third")], stop_reason="max_tokens"))

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Answer)
    assert len(outcome.record.items()) == 2


def test_an_answer_cut_before_its_first_item_is_refused(server: AnthropicServer, extractor: ModelExtractor) -> None:
    answering(server, text_message(GOOD[:60], stop_reason="max_tokens"))

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Refused)
    assert "cut off" in outcome.reason


def test_a_refusal_of_the_model_is_refused(server: AnthropicServer, extractor: ModelExtractor) -> None:
    answering(server, text_message(GOOD, stop_reason="refusal"))

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Refused)
    assert "declined" in outcome.reason


@pytest.mark.parametrize(
    "content",
    [[], [{"type": "thinking", "thinking": "…"}], ["text"], [{"type": "text", "text": 7}], [{"type": "tool_use", "input": {}}]],
)
def test_a_message_without_text_is_refused(server: AnthropicServer, extractor: ModelExtractor, content: list[Any]) -> None:
    answering(server, message(content))

    assert isinstance(extractor.extract(about_the_queue()), Refused)


def test_events_that_do_not_exist_and_quotations_of_the_prompt_are_reported(
    server: AnthropicServer, extractor: ModelExtractor
) -> None:
    quotation = "Failed rows stop the import with their line number; log to import.log, as the auditor wants."
    said = answer(item(), item(evidence=["deadbeef"]), item(body=quotation), item(kind="poem"))
    answering(server, text_message(json.dumps(said)))

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Answer)
    assert len(outcome.record.items()) == 1
    assert sorted(outcome.refused_items) == ["of an unknown kind", "quotes the prompt", "without evidence in the chunk"]


MISCONFIGURED = {
    "401": api_error(401, "authentication_error", "invalid x-api-key"),
    "403": api_error(403, "permission_error", "Your key may not use this"),
    "404": api_error(404, "not_found_error", "model: claude-nonesuch"),
    "402": api_error(402, "billing_error", "Payment required"),
    "no credit": api_error(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    "usage limits": api_error(400, "invalid_request_error", "You have reached your specified API usage limits."),
    "spend limit": api_error(
        429, "rate_limit_error", "Try later", code="enforced_spend_limit_reached", headers={"retry-after": "60"}
    ),
    "a schema it does not take": api_error(400, "invalid_request_error", "output_config.format: not supported by this model"),
}


@pytest.mark.parametrize("reply", MISCONFIGURED.values(), ids=MISCONFIGURED.keys())
def test_what_only_a_person_can_mend_stops_the_asking(server: AnthropicServer, extractor: ModelExtractor, reply: Raw) -> None:
    answering(server, reply)

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Misconfigured)
    assert outcome.hint
    assert len(server.requests) == 1


def test_a_refused_key_hints_at_the_command_that_stores_one(server: AnthropicServer, extractor: ModelExtractor) -> None:
    answering(server, MISCONFIGURED["401"])

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Misconfigured)
    assert "kmem keys set anthropic" in outcome.hint
    assert "sk-test" not in str(outcome)


BUSY = {
    "429": api_error(429, "rate_limit_error", "slow down"),
    "500": api_error(500, "api_error", "Internal server error"),
    "502": Raw(status=502, body="<html><h1>Bad gateway</h1>"),
    "503": Raw(status=503, body=""),
    "504": api_error(504, "timeout_error", "timed out"),
    "529": api_error(529, "overloaded_error", "Overloaded"),
    "billing down": api_error(503, "api_error", "the billing service is unavailable"),
    "a login page": Raw(body="<!doctype html><title>Sign in to the network</title>"),
    "a blocking proxy": Raw(status=403, body="<html>Blocked by policy</html>"),
    "a redirect": Raw(status=302, headers={"location": "http://127.0.0.1:9/"}),
    "garbage": Raw(body="\x00\x01 no json"),
    "half of its JSON": Raw(body='{"type": "message", "content": ['),
    "JSON of someone else": Raw(body='{"choices": []}'),
    "a list": Raw(body="[]"),
    "deep nesting": Raw(body="[" * 100_000),
    "more than anyone can read": Raw(body=json.dumps(text_message(GOOD)) + " " * 5_000_000),
    "packed": Raw(body="x", headers={"content-encoding": "br"}),
    "a reset": Raw(reset=True),
}


@pytest.mark.parametrize("reply", BUSY.values(), ids=BUSY.keys())
def test_what_may_pass_is_tried_again_later_by_our_scheduler(
    server: AnthropicServer, extractor: ModelExtractor, reply: Raw
) -> None:
    answering(server, reply)

    outcome = extractor.extract(about_the_queue())

    assert isinstance(outcome, Busy)
    assert outcome.reason
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Raw(hang=60),
        Raw(body=" " * 4_000 + GOOD, drip=0.05),
        Raw(drip_head=0.05),
        Raw(status=500, body="x" * 9_000, drip=0.05),
    ],
    ids=["hang", "drip", "dripping head", "dripping error"],
)
def test_a_server_that_never_ends_is_given_up(server: AnthropicServer, extractor: ModelExtractor, reply: Raw) -> None:
    answering(server, reply)

    outcome = dataclasses.replace(extractor, seconds=0.6).extract(about_the_queue())

    assert isinstance(outcome, Busy)
    assert "no answer" in outcome.reason
    assert outcome.made == "perhaps"


def test_no_one_at_the_address_may_pass(backend: AnthropicBackend) -> None:
    outcome = through(dataclasses.replace(backend, base_url="http://127.0.0.1:9")).extract(about_the_queue())

    assert isinstance(outcome, Busy)
    assert outcome.made == "no"


@pytest.mark.parametrize(
    "reply",
    [
        api_error(413, "invalid_request_error", "Request exceeds the maximum size"),
        api_error(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
        api_error(400, "invalid_request_error", "Output blocked by content filtering policy"),
    ],
)
def test_a_chunk_that_will_never_be_answered_is_refused(server: AnthropicServer, extractor: ModelExtractor, reply: Raw) -> None:
    answering(server, reply)

    assert isinstance(extractor.extract(about_the_queue()), Refused)


@pytest.mark.parametrize(("header", "waits"), [("30", 30.0), ("99999999", 3_600.0), ("soon", 0.0), (None, 0.0)])
def test_the_wait_that_was_asked_for_is_reported(
    server: AnthropicServer, extractor: ModelExtractor, header: str | None, waits: float
) -> None:
    answering(server, api_error(429, "rate_limit_error", "slow down", headers={"retry-after": header} if header else {}))

    outcome = extractor.extract(about_the_queue())

    assert outcome == Busy(reason="status 429: slow down", retry_after=waits)


NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "waits"),
    [
        ("0", 0.0),
        ("12.5", 12.5),
        ("-3", 0.0),
        ("1e300", 3_600.0),
        ("inf", 0.0),
        ("nan", 0.0),
        ("", 0.0),
        ("9" * 400, 0.0),
        ("Sun, 01 Mar 2026 12:01:30 GMT", 90.0),
        ("Sun, 01 Mar 2026 12:01:30", 90.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 01 Mar 2099 12:00:00 GMT", 3_600.0),
        ("Mon, 99 Foo 2026 99:99:99 GMT", 0.0),
        ("Sun, 01 Mar 99999 12:00:00 +9999", 0.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str, waits: float) -> None:
    assert retry_after(header, NOW) == waits


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "schlüssel"])
def test_a_key_that_cannot_be_one_is_never_sent(server: AnthropicServer, backend: AnthropicBackend, key: str) -> None:
    outcome = through(dataclasses.replace(backend, api_key=key)).extract(about_the_queue())

    assert isinstance(outcome, Misconfigured)
    assert server.requests == []


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x/", "http://", "/v1", "http://[", "http://x:port/", "http://x:99999"])
def test_an_address_that_is_invalid_is_said(backend: AnthropicBackend, url: str) -> None:
    assert isinstance(through(dataclasses.replace(backend, base_url=url)).extract(about_the_queue()), Misconfigured)


def test_a_chunk_in_which_nothing_is_said_costs_no_call(server: AnthropicServer, extractor: ModelExtractor) -> None:
    silent = chunk([event(1, " ", EventType.ASSISTANT_MESSAGE)])

    outcome = extractor.extract(silent)

    assert outcome == Answer(record=Record(topics=()), usage=Usage())
    assert server.requests == []


def test_the_version_follows_model_and_prompt(backend: AnthropicBackend, extractor: ModelExtractor) -> None:
    other_model = through(dataclasses.replace(backend, model="claude-other"))
    other_prompt = dataclasses.replace(extractor, prompt=dataclasses.replace(PROMPT, version="0"))

    assert len({extractor.version, other_model.version, other_prompt.version}) == 3


def test_the_key_is_not_shown(extractor: ModelExtractor) -> None:
    assert "sk-test" not in repr(extractor)
