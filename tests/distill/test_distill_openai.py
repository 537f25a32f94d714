"""Chat completions as many servers speak them: how they are asked, and what each ending of a call becomes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kite_memory.distill import extractor
from kite_memory.distill.extractor import Answer, Busy, Misconfigured, Prices, RedactedInquiry, Refused, Reply, Usage
from kite_memory.distill.model_extractor import TASK, ModelExtractor
from kite_memory.distill.openai_api import OpenAiBackend
from kite_memory.extensions.contract.extractor_contract import about_the_queue, answer, item
from kite_memory.redaction import redact
from kite_memory.wiring.models import RedactingBackend
from tests.fakes.anthropic_server import Json, Raw
from tests.fakes.openai_server import OpenAiServer, completion, failure, openai_server

PROMPT = extractor.load_prompt([Path(__file__).parents[2] / "prompts"])
GOOD = json.dumps(answer(item()))
PRICES = Prices(dollars_in=1.0, dollars_out=5.0)
HELLO = RedactedInquiry(system="Be brief.", user=redact("Hello?"), schema={"type": "object"}, max_tokens=50, seconds=20.0)


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with openai_server(lambda asked: completion(GOOD)) as running:
        yield running


def backend_for(server: OpenAiServer, *, key: str = "sk-test", url: str = "") -> OpenAiBackend:
    return OpenAiBackend(api_key=key, model="qwen3:8b", prices=PRICES, base_url=url or server.url)


@pytest.fixture
def backend(server: OpenAiServer) -> OpenAiBackend:
    return backend_for(server)


def answering(server: OpenAiServer, reply: Json | Raw) -> None:
    server.reply = lambda asked: reply


def extracted(backend: OpenAiBackend) -> object:
    return ModelExtractor(backend=RedactingBackend(backend), prompt=PROMPT, seconds=20.0).extract(about_the_queue())


def test_one_call_with_the_fixed_part_first_and_the_form_prescribed(server: OpenAiServer, backend: OpenAiBackend) -> None:
    outcome = extracted(backend)

    assert isinstance(outcome, Answer)
    (asked,) = server.requests
    system, user = asked["messages"]
    assert asked["model"] == "qwen3:8b"
    assert system == {"role": "system", "content": PROMPT.system}
    assert user["content"].startswith("<transcript ")
    assert user["content"].endswith(TASK)
    assert asked["response_format"]["json_schema"] == {"name": "answer", "strict": False, "schema": PROMPT.schema}
    assert asked["max_tokens"] == 6_000
    assert server.headers[0]["authorization"] == "Bearer sk-test"


def test_no_key_is_sent_where_none_exists(server: OpenAiServer) -> None:
    outcome = extracted(backend_for(server, key=""))

    assert isinstance(outcome, Answer)
    assert "authorization" not in server.headers[0]


def test_a_server_elsewhere_is_not_asked_without_a_key(server: OpenAiServer) -> None:
    ending = backend_for(server, key="", url="http://192.0.2.1/v1").ask(HELLO)

    assert isinstance(ending, Misconfigured)
    assert "kmem keys set openai" in ending.hint


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_cannot_be_one_is_never_sent(server: OpenAiServer, key: str) -> None:
    ending = backend_for(server, key=key).ask(HELLO)

    assert isinstance(ending, Misconfigured)
    assert server.requests == []


def test_the_key_is_not_shown(backend: OpenAiBackend) -> None:
    assert "sk-test" not in repr(backend)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x/", "http://", "/v1", "http://[", "http://x:port/"])
def test_an_address_that_is_invalid_is_said(server: OpenAiServer, url: str) -> None:
    assert isinstance(backend_for(server, url=url).ask(HELLO), Misconfigured)


def test_a_proxy_is_not_asked_for_our_own_loopback(
    server: OpenAiServer, backend: OpenAiBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")

    assert isinstance(backend.ask(HELLO), Reply)


def taking(*forms: str, said: str) -> Callable[[Json], Json | Raw]:
    """A server that knows only these forms of asking for JSON; "" is that of not asking."""

    def reply(asked: Json) -> Json | Raw:
        form = asked.get("response_format", {}).get("type", "")
        return completion(GOOD) if form in forms else failure(400, said)

    return reply


REJECTIONS = {
    "openai": "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    "groq": "This model does not support response format `json_schema`.",
    "lm studio": "'response_format.type' must be 'json_schema' or 'text'",
    "llama.cpp": "failed to parse grammar",
    "a strict one": "Invalid schema for response_format 'answer': In context=(), 'required' is required to be supplied",
}


@pytest.mark.parametrize("forms", [("json_object", ""), ("",)])
@pytest.mark.parametrize("said", REJECTIONS.values(), ids=REJECTIONS.keys())
def test_a_server_that_rejects_the_form_is_asked_more_plainly_with_the_schema_in_words(
    server: OpenAiServer, backend: OpenAiBackend, forms: tuple[str, ...], said: str
) -> None:
    server.reply = taking(*forms, said=said)

    outcome = extracted(backend)

    assert isinstance(outcome, Answer)
    assert server.requests[-1].get("response_format", {}).get("type", "") == forms[0]
    assert json.dumps(PROMPT.schema) in server.requests[-1]["messages"][0]["content"]


def test_what_a_server_has_understood_once_is_how_it_is_asked_from_then_on(server: OpenAiServer, backend: OpenAiBackend) -> None:
    server.reply = taking("", said="unknown field response_format")
    backend.ask(HELLO)
    before = len(server.requests)

    backend.ask(HELLO)

    assert before == 3
    assert len(server.requests) == before + 1


def test_a_server_that_is_out_of_order_is_not_taken_for_one_that_rejects_the_form(
    server: OpenAiServer, backend: OpenAiBackend
) -> None:
    answering(server, failure(500, "response_format: something broke"))
    backend.ask(HELLO)
    answering(server, completion(GOOD))

    backend.ask(HELLO)

    assert server.requests[-1]["response_format"]["type"] == "json_schema"


def test_the_name_of_the_limit_follows_the_server(server: OpenAiServer, backend: OpenAiBackend) -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    server.reply = lambda asked: failure(400, said) if "max_tokens" in asked else completion(GOOD)

    ending = backend.ask(HELLO)

    assert isinstance(ending, Reply)
    assert server.requests[-1]["max_completion_tokens"] == 50


def test_a_server_that_rejects_everything_is_asked_a_few_times_at_most(server: OpenAiServer, backend: OpenAiBackend) -> None:
    said = "unknown: max_tokens, max_completion_tokens, response_format, schema"
    answering(server, failure(400, said))

    ending = backend.ask(HELLO)

    assert isinstance(ending, Misconfigured)
    assert len(server.requests) <= 6


def test_what_was_reported_is_counted_at_the_full_price(server: OpenAiServer, backend: OpenAiBackend) -> None:
    usage = {"prompt_tokens": 7_000, "completion_tokens": 500, "prompt_tokens_details": {"cached_tokens": 4_000}}
    answering(server, completion(GOOD, usage=usage))

    ending = backend.ask(HELLO)

    assert isinstance(ending, Reply)
    assert ending.usage == Usage(tokens_in=7_000, tokens_out=500, dollars=(7_000 + 5 * 500) / 1_000_000)


@pytest.mark.parametrize("usage", [None, {}, [1], {"completion_tokens": 3}, {"prompt_tokens": None, "completion_tokens": 3}])
def test_a_server_that_reports_nothing_is_counted_as_estimated(server: OpenAiServer, backend: OpenAiBackend, usage: object) -> None:
    answering(server, completion(GOOD) | {"usage": usage})

    ending = backend.ask(HELLO)

    assert isinstance(ending, Reply)
    assert ending.usage == backend.estimate(HELLO)


TEXTS: dict[str, tuple[object, str]] = {
    "text": ("yes", "yes"),
    "parts": ([{"type": "text", "text": "y"}, {"type": "image"}, {"type": "text", "text": "es"}, 3], "yes"),
    "thoughts first": ("<think>\nno, {wait}\n</think>yes", "yes"),
    "nothing": (None, ""),
    "a number": (3, ""),
}


@pytest.mark.parametrize(("content", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_what_was_said_is_read_however_it_is_wrapped(
    server: OpenAiServer, backend: OpenAiBackend, content: object, text: str
) -> None:
    answering(server, completion(content))

    ending = backend.ask(HELLO)

    assert isinstance(ending, Reply)
    assert ending.text == text


def test_a_cut_answer_keeps_what_is_whole(server: OpenAiServer, backend: OpenAiBackend) -> None:
    said = json.dumps(answer(item(), item(title="Second")))
    answering(server, completion(said[: said.index("Second")], finish="length"))

    outcome = extracted(backend)

    assert isinstance(outcome, Answer)
    assert len(outcome.record.items()) == 1


REFUSED: dict[str, Json | Raw] = {
    "in so many words": completion(None, refusal="I can't help with that."),
    "filtered": completion("", finish="content_filter"),
    "filtered before": failure(400, "The response was filtered", code="content_filter"),
    "too long": failure(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
    "too long for llama.cpp": failure(400, "the request exceeds the available context size, try increasing it"),
    "too large": Raw(status=413, body="Payload too large"),
}


@pytest.mark.parametrize("reply", REFUSED.values(), ids=REFUSED.keys())
def test_what_will_never_be_answered_is_refused(server: OpenAiServer, backend: OpenAiBackend, reply: Json | Raw) -> None:
    answering(server, reply)

    assert isinstance(backend.ask(HELLO), Refused)


MISCONFIGURED = {
    "401": failure(401, "Incorrect API key provided", code="invalid_api_key"),
    "403": failure(403, "Your organisation may not"),
    "404": failure(404, "The model `x` does not exist", code="model_not_found"),
    "ollama's 404": Raw(status=404, body='{"error": "model \'x\' not found, try pulling it first"}'),
    "no quota": failure(429, "You exceeded your current quota", kind="insufficient_quota", code="insufficient_quota"),
    "not active": failure(429, "Your account is not active", code="billing_not_active"),
    "an unknown parameter": failure(400, "Unrecognized request argument supplied: stream"),
    "fastapi": Raw(status=422, body='{"detail": "model: field required"}'),
}


@pytest.mark.parametrize("reply", MISCONFIGURED.values(), ids=MISCONFIGURED.keys())
def test_what_only_a_person_can_mend_stops_the_asking(server: OpenAiServer, backend: OpenAiBackend, reply: Raw) -> None:
    answering(server, reply)

    ending = backend.ask(HELLO)

    assert isinstance(ending, Misconfigured)
    assert ending.hint
    assert "sk-test" not in str(ending)
    assert len(server.requests) == 1


TURNED_AWAY = {
    "429": failure(429, "Rate limit reached", kind="requests", code="rate_limit_exceeded", retry_after="7"),
    "429 without a payment method": failure(
        429,
        "Rate limit reached on requests per min. Visit https://platform.openai.com/account/billing to add a payment method.",
        kind="requests",
        code="rate_limit_exceeded",
        retry_after="7",
    ),
    "500": failure(500, "The server had an error", kind="server_error"),
    "503": failure(503, "Loading model", kind="unavailable_error"),
    "502": Raw(status=502, body="<html><h1>Bad gateway</h1>"),
    "a redirect": Raw(status=307, headers={"location": "http://127.0.0.1:9/v1/chat/completions"}),
}


@pytest.mark.parametrize("reply", TURNED_AWAY.values(), ids=TURNED_AWAY.keys())
def test_what_was_turned_away_may_pass(server: OpenAiServer, backend: OpenAiBackend, reply: Raw) -> None:
    answering(server, reply)

    ending = backend.ask(HELLO)

    assert isinstance(ending, Busy)
    assert ending.made == "yes"
    assert ending.retry_after == (7.0 if reply.status == 429 else 0.0)
    assert len(server.requests) == 1


OUTCOME_UNKNOWN = {
    "a login page": Raw(body="<!doctype html><title>Sign in</title>"),
    "half of its JSON": Raw(body='{"choices": ['),
    "no choice": Raw(body='{"choices": []}'),
    "a choice without a message": Raw(body='{"choices": [{}]}'),
    "JSON of someone else": Raw(body='{"type": "message"}'),
    "deep nesting": Raw(body="[" * 100_000),
    "more than anyone can read": Raw(body=json.dumps(completion(GOOD)) + " " * 5_000_000),
    "packed": Raw(body="x", headers={"content-encoding": "gzip"}),
    "a reset": Raw(reset=True),
}


@pytest.mark.parametrize("reply", OUTCOME_UNKNOWN.values(), ids=OUTCOME_UNKNOWN.keys())
def test_what_makes_no_sense_may_pass_and_may_be_on_the_bill(server: OpenAiServer, backend: OpenAiBackend, reply: Raw) -> None:
    answering(server, reply)

    ending = backend.ask(HELLO)

    assert isinstance(ending, Busy)
    assert ending.made == "perhaps"


SLOW: dict[str, Raw] = {
    "hang": Raw(hang=60),
    "drip": Raw(body=" " * 4_000 + GOOD, drip=0.05),
    "dripping head": Raw(drip_head=0.05),
    "dripping error": Raw(status=500, body="x" * 9_000, drip=0.05),
}


@pytest.mark.parametrize("reply", SLOW.values(), ids=SLOW.keys())
def test_a_server_that_never_ends_is_given_up(server: OpenAiServer, backend: OpenAiBackend, reply: Raw) -> None:
    answering(server, reply)

    ending = backend.ask(RedactedInquiry(system="s", user=redact("u"), schema={}, max_tokens=5, seconds=0.6))

    assert isinstance(ending, Busy)
    assert "no answer" in ending.reason
    assert ending.made == "perhaps"


def test_no_one_at_the_address_may_pass_and_costs_nothing(server: OpenAiServer) -> None:
    ending = backend_for(server, url="http://127.0.0.1:9").ask(HELLO)

    assert isinstance(ending, Busy)
    assert ending.made == "no"


@pytest.mark.parametrize("text", ["\ud800", "\x00", "é" * 9, "🙂"])
def test_any_text_can_be_asked(server: OpenAiServer, backend: OpenAiBackend, text: str) -> None:
    def echo(asked: Json) -> Json:
        said: Any = asked["messages"][1]["content"]
        return completion(said)

    server.reply = echo

    ending = backend.ask(RedactedInquiry(system="s", user=redact(text), schema={}, max_tokens=5, seconds=20.0))

    assert isinstance(ending, Reply)
    assert ending.text == text
