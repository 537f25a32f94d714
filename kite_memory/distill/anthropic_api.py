"""Asking Claude through the `anthropic` package: one call for a chunk, no retries of its own, every ending a value."""

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kite_memory.distill.admit import NOTHING, admitted, question
from kite_memory.distill.condense import Condensed, condense
from kite_memory.distill.extractor import Answer, Busy, Misconfigured, Outcome, Refused, Usage
from kite_memory.distill.prices import Prices, tokens_at_most
from kite_memory.distill.prompts import Prompt
from kite_memory.distill.prose import clip, one_line
from kite_memory.model.chunk import Chunk

if TYPE_CHECKING:
    from anthropic import Anthropic

LONGEST_WAIT = 3_600.0
_LARGEST_RESPONSE = 4_000_000
_SPEND_CODES = frozenset(
    (
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "linked_organization_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "organization_on_hold",
    )
)
_SPEND_WORDS = ("credit balance", "usage limit", "spend limit", "spending limit", "billing")
_TOO_LONG_WORDS = ("prompt is too long", "context window", "context limit", "maximum context", "request_too_large")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicExtractor:
    """``base_url`` of "" leaves the choice to the package: ``ANTHROPIC_BASE_URL``, else the vendor's.

    ``timeout`` bounds the whole call in seconds, however slowly a server drips. The package is imported by the first call:
    it takes over a second and 40 MB, which only who asks a model should pay.
    """

    api_key: str = field(repr=False)
    model: str
    prices: Prices
    prompt: Prompt
    base_url: str = ""
    timeout: float = 180.0
    limit_chars: int = 60_000
    max_tokens: int = 6_000

    @property
    def name(self) -> str:
        return "anthropic"

    @property
    def version(self) -> str:
        return f"anthropic:{self.model}:{self.prompt.version}"

    def estimate(self, chunk: Chunk) -> Usage:
        """Two characters a token, three tokens for one outside ASCII, an answer of full length, and a cache to be written.

        English prose and code need four characters a token, random digits about two.
        """
        condensed = condense(chunk, limit_chars=self.limit_chars)
        if not condensed.ids:
            return Usage()
        fixed = self.prompt.system + json.dumps(self.prompt.schema)
        return self.prices.of(
            fresh=tokens_at_most(question(condensed)), written=tokens_at_most(fixed) + 500, read=0, out=self.max_tokens
        )

    def extract(self, chunk: Chunk) -> Outcome:
        condensed = condense(chunk, limit_chars=self.limit_chars)
        if not condensed.ids:
            return NOTHING
        if not self.api_key or not self.api_key.isascii() or not self.api_key.isprintable() or " " in self.api_key:
            return Misconfigured(reason="there is no usable Anthropic key", hint=_KEY_HINT)
        if self.base_url and (urlsplit(self.base_url).scheme not in ("http", "https") or not urlsplit(self.base_url).hostname):
            return Misconfigured(reason=f"{self.base_url!r} is no address of a server", hint="set `base_url` in [extractor]")
        try:
            import anthropic
        except ImportError as error:
            return Misconfigured(reason=f"the `anthropic` package cannot be loaded: {error}", hint="reinstall kite-memory")
        try:
            with self._client() as client:
                raw = client.messages.with_raw_response.create(**self._request(condensed))
                return self._read(raw.http_response.text, chunk, condensed)
        except anthropic.APIStatusError as error:
            return _status_outcome(error.status_code, error.response.text, error.response.headers)
        except anthropic.APITimeoutError:
            return Busy(reason=f"no answer within {self.timeout:.0f} seconds")
        except anthropic.AnthropicError as error:
            cause = error.__cause__ or error
            return Busy(reason=f"the connection failed: {_brief(type(cause).__name__ + ': ' + str(cause))}")

    def _client(self) -> "Anthropic":
        from anthropic import Anthropic, DefaultHttpxClient, Timeout

        deadline = time.monotonic() + self.timeout
        transport = DefaultHttpxClient(
            timeout=Timeout(self.timeout, connect=min(10.0, self.timeout)),
            follow_redirects=False,  # the key and the transcript go where they were sent, and nowhere else
            mounts=dict.fromkeys(("all://127.0.0.1", "all://localhost", "all://[::1]")),  # no proxy can reach our loopback
            event_hooks={"response": [lambda response: _bound(response, deadline)]},
        )
        return Anthropic(
            api_key=self.api_key, base_url=self.base_url or None, max_retries=0, http_client=transport, open_telemetry=False
        )

    def _request(self, condensed: Condensed) -> dict[str, Any]:
        return {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "system": [{"type": "text", "text": self.prompt.system, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": question(condensed)}],
            "output_config": {"format": {"type": "json_schema", "schema": dict(self.prompt.schema)}},
        }

    def _read(self, body: str, chunk: Chunk, condensed: Condensed) -> Answer | Refused | Busy:
        """A reply of status 200. What is not the API's JSON comes from something in between and may pass."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return Busy(reason=f"something that is not the API answered: {_brief(body)}")
        match message:
            case {"type": "message", "content": list(blocks)}:
                pass
            case _:
                return Busy(reason=f"something that is not the API answered: {_brief(body)}")
        usage = self.prices.of_reported(message.get("usage"))
        stop = message.get("stop_reason")
        if stop == "refusal":
            return Refused(reason="the model declined to answer", usage=usage)
        text = "".join(
            block["text"]
            for block in blocks
            if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
        )
        outcome = admitted(text, chunk, condensed, self.prompt, usage)
        if stop in ("max_tokens", "model_context_window_exceeded") and isinstance(outcome, Refused):
            return Refused(reason="the answer was cut off before its first item", usage=usage)
        return outcome


def retry_after(header: str | None, now: datetime) -> float:
    """Seconds to wait as a ``Retry-After`` header has it, at most an hour; 0 for one that is missing or makes no sense."""
    if not header:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            at = parsedate_to_datetime(header[:100])
        except (ValueError, TypeError, IndexError, OverflowError):
            return 0.0
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    return min(max(seconds, 0.0), LONGEST_WAIT) if math.isfinite(seconds) else 0.0


_KEY_HINT = "store one with `kmem keys set anthropic`"


def _status_outcome(status: int, body: str, headers: Mapping[str, str]) -> Outcome:
    kind, code, message = _error(body)
    said = _brief(message or body) or f"status {status}"
    lowered = message.lower()
    wait = retry_after(headers.get("retry-after"), datetime.now(UTC))
    if not kind and body.lstrip()[:1] == "<":
        return Busy(reason=f"something that is not the API answered with status {status}", retry_after=wait)
    cannot_pay = kind == "billing_error" or code in _SPEND_CODES or any(words in lowered for words in _SPEND_WORDS)
    if status == 402 or (status < 500 and cannot_pay):
        return Misconfigured(reason=f"the account cannot pay: {said}", hint="see the limits and credits of the API account")
    if status in (401, 403):
        return Misconfigured(reason=f"the API does not accept the key: {said}", hint=_KEY_HINT)
    if status == 404:
        return Misconfigured(reason=f"the API does not know this: {said}", hint="check `model` and `base_url` in [extractor]")
    if status == 413 or any(words in lowered for words in _TOO_LONG_WORDS):
        return Refused(reason=f"the chunk is too long for the model: {said}")
    if status in (400, 422):
        if "content filtering" in lowered or "content policy" in lowered:
            return Refused(reason=f"the API declined the chunk: {said}")
        return Misconfigured(reason=f"the API does not accept the request: {said}", hint="check `model` in [extractor]")
    return Busy(reason=f"status {status}: {said}", retry_after=wait)


def _error(body: str) -> tuple[str, str, str]:
    """Type, code and message of an error in the API's own form; empty where it is none."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return "", "", ""
    match told:
        case {"error": {"type": str(kind), **rest}}:
            details, message = rest.get("details"), rest.get("message")
            code = details.get("error_code") if isinstance(details, dict) else ""
            return kind, code if isinstance(code, str) else "", message if isinstance(message, str) else ""
        case _:
            return "", "", ""


def _brief(text: str) -> str:
    return clip(one_line(text[:1_000]), 200)


def _bound(response: Any, deadline: float) -> None:
    """Have the body of ``response`` end in an error where it is too long or too slow; the package sets limits for neither."""
    import httpx2  # what `anthropic` speaks through

    class Bounded(httpx2.SyncByteStream):
        def __init__(self, inner: httpx2.SyncByteStream) -> None:
            self._inner = inner

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for piece in self._inner:
                size += len(piece)
                if size > _LARGEST_RESPONSE:
                    raise httpx2.ReadError("the response is too large")
                if time.monotonic() > deadline:
                    raise httpx2.ReadTimeout("the response is too slow")
                yield piece

        def close(self) -> None:
            self._inner.close()

    response.stream = Bounded(response.stream)
