"""Back ends for Claude through the `anthropic` package: single calls, and batches answered within a day at half the price.

There are no retries: every outcome is a value.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kite_memory.distill.extractor import (
    Busy,
    Ending,
    Failure,
    Inquiry,
    ListedBatch,
    Misconfigured,
    Prices,
    RedactedInquiry,
    Refused,
    Reply,
    Usage,
    are_counts,
    tokens_at_most,
)
from kite_memory.distill.transport import (
    TimedConnection,
    ending_of,
    ending_of_reported,
    is_address,
    is_key,
    line,
    remaining,
    shortened_error,
)

if TYPE_CHECKING:
    import anthropic

_KEY_HINT = "store one with `kmem keys set anthropic`"


_CACHED = {"type": "ephemeral"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What the vendor says of a model. ``prices`` are those of prompts of up to 100,000 tokens.

    Fewer tokens than ``cached_from`` are never cached, even on request. ``chars`` are characters of a condensed session to a token.
    ``thinks``: it thinks before each answer, at the price of the answer, unless a request says otherwise.
    """

    prices: Prices
    cached_from: int = 4_096
    chars: float = 3.6
    thinks: bool = False


_NEWER = 2.8
"""Characters to a token of the tokenizer that came with Claude Opus 4.7: three tenths more tokens for the same text."""

_FACTS = {
    "claude-haiku-5-5": ModelFacts(prices=Prices(dollars_in=0.1, dollars_out=0.5), cached_from=512, chars=_NEWER, thinks=True),
    "claude-haiku": ModelFacts(prices=Prices(dollars_in=1.0, dollars_out=5.0)),
    "claude-sonnet-5-5": ModelFacts(prices=Prices(dollars_in=2.0, dollars_out=10.0), cached_from=1_024, chars=_NEWER),
    "claude-sonnet-5": ModelFacts(prices=Prices(dollars_in=3.0, dollars_out=15.0), cached_from=1_024, chars=_NEWER),
    "claude-sonnet": ModelFacts(prices=Prices(dollars_in=3.0, dollars_out=15.0), cached_from=2_048),
    "claude-opus-5-5": ModelFacts(prices=Prices(dollars_in=4.0, dollars_out=20.0), cached_from=512, chars=_NEWER),
    "claude-opus-5": ModelFacts(prices=Prices(dollars_in=5.0, dollars_out=25.0), cached_from=512, chars=_NEWER),
    "claude-opus-4-8": ModelFacts(prices=Prices(dollars_in=5.0, dollars_out=25.0), cached_from=1_024, chars=_NEWER),
    "claude-opus": ModelFacts(prices=Prices(dollars_in=5.0, dollars_out=25.0)),
}
_OTHER = ModelFacts(prices=Prices(dollars_in=1.0, dollars_out=5.0))
_CHARS = 4
"""Characters of English prose to a token: with fewer, a prompt is only more surely long enough to be cached."""


def facts_of(model: str) -> ModelFacts:
    return next((facts for name, facts in _FACTS.items() if model.startswith(name)), _OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicBackend:
    """Back end for Claude. ``base_url`` of "" leaves the choice to the package: ``ANTHROPIC_BASE_URL``, else the vendor's.

    The package is imported by the first call: it takes over a second and 40 MB, so only callers of a model pay for it.
    """

    api_key: str = field(repr=False)
    model: str
    prices: Prices
    base_url: str = ""

    @property
    def name(self) -> str:
        return "anthropic"

    def estimate(self, inquiry: Inquiry) -> Usage:
        """Estimate a full-length answer, and a cache write if the fixed part is long enough for one."""
        fixed = tokens_at_most(inquiry.system + json.dumps(inquiry.schema)) + 500
        written = fixed if self._is_cached(inquiry) else 0
        fresh = tokens_at_most(inquiry.user) + fixed - written
        return self.prices.of(fresh=fresh, written=written, read=0, out=inquiry.max_tokens)

    def _is_cached(self, inquiry: Inquiry) -> bool:
        return len(inquiry.system) >= _CHARS * facts_of(self.model).cached_from

    def ask(self, inquiry: RedactedInquiry) -> Ending:
        request = self.request(inquiry)
        body = self.call(lambda client: client.messages.with_raw_response.create(**request).http_response.text, inquiry.seconds)
        return self._read(body, self.estimate(inquiry)) if isinstance(body, str) else body

    def call(self, send: "Callable[[anthropic.Anthropic], str]", seconds: float) -> str | Failure:
        """Make one request with the package. ``send`` returns the body of the response."""
        began = time.monotonic()
        if not is_key(self.api_key):
            return Misconfigured(reason="there is no usable Anthropic key", hint=_KEY_HINT)
        if self.base_url and not is_address(self.base_url):
            return Misconfigured(reason=f"{self.base_url!r} is not a server address", hint="set `base_url` in [extractor]")
        try:
            import anthropic  # noqa: F401 - whether it can be is all that is asked here
        except ImportError as error:
            return Misconfigured(reason=f"the `anthropic` package cannot be loaded: {error}", hint="reinstall kite-memory")
        with line(remaining(seconds, began)) as opened:
            return self._called(send, opened)

    def _called(self, send: "Callable[[anthropic.Anthropic], str]", opened: TimedConnection) -> str | Failure:
        import anthropic
        from httpx2 import HTTPError, InvalidURL

        try:
            client = anthropic.Anthropic(
                api_key=self.api_key,
                base_url=self.base_url or None,
                max_retries=0,
                http_client=opened.client,
                open_telemetry=False,
            )
            body = send(client)
        except anthropic.APIStatusError as error:
            return ending_of(error.status_code, error.response.text, error.response.headers, key_hint=_KEY_HINT)
        except anthropic.AnthropicError as error:
            cause = error.__cause__
            return opened.failed(cause if isinstance(cause, Exception) else error)
        except HTTPError as error:
            return opened.failed(error)
        except InvalidURL as error:
            return Misconfigured(reason=f"no address of a server: {shortened_error(str(error))}", hint="see ANTHROPIC_BASE_URL")
        return opened.late() if opened.is_cut else body

    def request(self, inquiry: RedactedInquiry) -> dict[str, Any]:
        """Return the parameters of a call to `messages`, which a batch takes as well."""
        return {
            "model": self.model,
            "max_tokens": inquiry.max_tokens,
            "system": [
                {"type": "text", "text": inquiry.system, **({"cache_control": _CACHED} if self._is_cached(inquiry) else {})},
            ],
            "messages": [{"role": "user", "content": inquiry.user}],
            "output_config": {"format": {"type": "json_schema", "schema": dict(inquiry.schema)}},
            **({"thinking": {"type": "disabled"}} if facts_of(self.model).thinks else {}),
        }

    def _read(self, body: str, estimate: Usage) -> Ending:
        """Interpret a reply of status 200. A body that is not the API's JSON comes from an intermediary and may be temporary."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            message = None
        if (ending := self.ending_of_message(message, estimate)) is not None:
            return ending
        return Busy(reason=f"something that is not the API answered: {shortened_error(body)}", made="perhaps")

    def ending_of_message(self, message: object, estimate: Usage) -> Reply | Refused | None:
        """Return what a message of the API says; ``None`` for anything else. ``estimate`` is its cost if it reports none."""
        match message:
            case {"type": "message", "content": list(blocks), **rest}:
                reported, stop = rest.get("usage"), rest.get("stop_reason")
            case _:
                return None
        known = isinstance(reported, dict) and are_counts(reported, "input_tokens", "output_tokens")
        usage = self.prices.of_reported(reported) if known else estimate
        if stop == "refusal":
            return Refused(reason="the model declined to answer", usage=usage)
        text = "".join(
            block["text"]
            for block in blocks
            if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
        )
        return Reply(text=text, usage=usage, cut=stop in ("max_tokens", "model_context_window_exceeded"))


_SECONDS = 120.0
_LISTED = 100
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True)
class AnthropicBatches:
    """Batches of one account and model. Makes no retries, and every outcome is a value."""

    live: AnthropicBackend
    """Back end of single calls, with their full prices."""

    @property
    def _halved(self) -> AnthropicBackend:
        return replace(self.live, prices=self.live.prices.halved())

    def estimate(self, inquiry: Inquiry) -> Usage:
        return self._halved.estimate(inquiry)

    def submit(self, inquiries: Mapping[str, RedactedInquiry]) -> str | Failure:
        requests: Any = [{"custom_id": name, "params": self.live.request(inquiry)} for name, inquiry in inquiries.items()]
        response = self._response(
            lambda client: client.messages.batches.with_raw_response.create(requests=requests).http_response.text
        )
        if not isinstance(response, dict):
            return response
        return _id(response) or Busy(reason="the service named no batch", made="perhaps")

    def is_over(self, batch: str) -> bool | Failure:
        response = self._response(lambda client: client.messages.batches.with_raw_response.retrieve(batch).http_response.text)
        return response.get("processing_status") == "ended" if isinstance(response, dict) else response

    def endings(self, batch: str, estimates: Mapping[str, Usage]) -> Mapping[str, Ending] | Failure:
        """Read the results where the batch was sent, whatever address the service gives for them: the key goes nowhere else."""

        def send(client: "anthropic.Anthropic") -> str:
            from httpx2 import Response

            return client.get(f"/v1/messages/batches/{batch}/results", cast_to=Response).text

        body = self.live.call(send, _SECONDS)
        if not isinstance(body, str):
            return body
        found: dict[str, Ending] = {}
        for row in body.splitlines():
            entry = _object(row)
            name, result = entry.get("custom_id"), entry.get("result")
            if isinstance(name, str) and name in estimates and isinstance(result, dict):
                found[name] = self._ending(result, estimates[name])
        return found

    def _ending(self, result: Mapping[str, Any], estimate: Usage) -> Ending:
        """Interpret the outcome of one inquiry. Only answers are billed."""
        match result:
            case {"type": "succeeded", "message": message}:
                ending = self._halved.ending_of_message(message, estimate)
                return ending or Busy(reason="the batch holds something that is no answer", made="perhaps")
            case {"type": "errored"}:
                return ending_of_reported(json.dumps(result.get("error")))
            case {"type": "expired"}:
                return Busy(reason="the batch expired before this was answered")
            case {"type": "canceled"}:
                return Busy(reason="the batch was canceled before this was answered")
            case _:
                return Busy(reason="the batch has an outcome of an unknown kind", made="perhaps")

    def listed(self) -> Sequence[ListedBatch] | Failure:
        response = self._response(lambda client: client.messages.batches.with_raw_response.list(limit=_LISTED).http_response.text)
        if not isinstance(response, dict):
            return response
        batches = response.get("data")
        return [batch for each in batches if (batch := _listed(each))] if isinstance(batches, list) else []

    def _response(self, send: "Callable[[anthropic.Anthropic], str]") -> dict[str, Any] | Failure:
        body = self.live.call(send, _SECONDS)
        if not isinstance(body, str):
            return body
        return _object(body) or Busy(reason=f"something that is not the API answered: {shortened_error(body)}", made="perhaps")


def _object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _id(response: Mapping[str, Any]) -> str:
    """Return a batch's id, which becomes a part of addresses; empty if it is not fit for that."""
    name = response.get("id")
    return name if isinstance(name, str) and _ID.fullmatch(name) else ""


def _listed(entry: object) -> ListedBatch | None:
    match entry:
        case {"id": name, "created_at": str(created), "request_counts": {**counts}} if name == _id({"id": name}):
            try:
                at = datetime.fromisoformat(created).timestamp()
            except (ValueError, OverflowError):
                return None
            numbers = [count for count in counts.values() if isinstance(count, int) and 0 <= count < 1_000_000]
            return ListedBatch(id=name, created=at, requests=sum(numbers))
        case _:
            return None
