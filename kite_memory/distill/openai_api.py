"""Back end for OpenAI's chat completions: the vendor's, or a server on this machine (Ollama, llama.cpp, vLLM …)."""

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from kite_memory.distill.extractor import (
    Busy,
    Ending,
    Inquiry,
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
    is_address,
    is_key,
    is_loopback,
    line,
    remaining,
    reported_error,
    shortened_error,
)

if TYPE_CHECKING:
    from httpx2 import Response

VENDOR = "https://api.openai.com/v1"
_KEY_HINT = "store one with `kmem keys set openai`"
_NOT_THE_FORM = re.compile(r"response.?format|json.?schema|json.?object|grammar|structured|\bschema\b", re.IGNORECASE)
_NOT_KNOWN = re.compile(r"unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|not permitted|instead", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wording:
    """How a server accepts requests for JSON, and its name for the answer's length limit.

    The vendor has dropped ``max_tokens``; most others know only that, and would ignore an unknown limit.
    """

    form: Literal["json_schema", "json_object", "none"] = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"

    def body(self, model: str, inquiry: RedactedInquiry) -> dict[str, Any]:
        system = inquiry.system
        form: dict[str, Any] = {}
        match self.form:
            case "json_schema":
                schema = {"name": "answer", "strict": _asks_for_all(inquiry.schema), "schema": dict(inquiry.schema)}
                form = {"response_format": {"type": "json_schema", "json_schema": schema}}
            case "json_object":
                form = {"response_format": {"type": "json_object"}}
            case "none":
                pass
        if self.form != "json_schema":
            system = f"{system}\n\nThe JSON schema of the answer:\n{json.dumps(inquiry.schema)}"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": inquiry.user}]
        return {"model": model, "messages": messages, self.limit: inquiry.max_tokens, "stream": False, **form}

    def after(self, status: int, body: str) -> "_Wording | None":
        """Return another wording to try after an error; ``None`` if the error is not about the wording."""
        if status not in (400, 415, 422, 500, 501):
            return None
        said = reported_error(body).message or body[:2_000]
        if self.limit in said and _NOT_KNOWN.search(said):
            return replace(self, limit="max_tokens" if self.limit == "max_completion_tokens" else "max_completion_tokens")
        if not _NOT_THE_FORM.search(said):
            return None
        match self.form:
            case "json_schema":
                return replace(self, form="json_object")
            case "json_object":
                return replace(self, form="none")
            case "none":
                return None


def _asks_for_all(schema: object) -> bool:
    """Return whether every property is required; only then does the vendor enforce a schema strictly."""
    if isinstance(schema, list):
        return all(map(_asks_for_all, schema))
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    return (not isinstance(properties, Mapping) or set(properties) <= set(schema.get("required", ()))) and all(
        map(_asks_for_all, schema.values())
    )


class OpenAiBackend:
    """Back end for chat completions. ``base_url`` is everything before ``/chat/completions``, as the vendor's package takes it; ""
    is the vendor's.

    A key is needed unless the server is on this machine. The first wording that a server accepts is used from then on. Tokens
    reported as cached count at the full price, since discounts differ.
    """

    def __init__(self, *, api_key: str, model: str, prices: Prices, base_url: str = "") -> None:
        self._api_key = api_key
        self._model = model
        self._prices = prices
        self._base_url = (base_url or VENDOR).rstrip("/")
        self._wording = _Wording(limit="max_completion_tokens" if self._base_url == VENDOR else "max_tokens")
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return "openai"

    @property
    def model(self) -> str:
        return self._model

    def estimate(self, inquiry: Inquiry) -> Usage:
        asked = tokens_at_most(inquiry.system + json.dumps(inquiry.schema)) + tokens_at_most(inquiry.user) + 500
        return self._prices.of(fresh=asked, written=0, read=0, out=inquiry.max_tokens)

    def ask(self, inquiry: RedactedInquiry) -> Ending:
        began = time.monotonic()
        if not is_address(self._base_url):
            return Misconfigured(reason=f"{self._base_url!r} is not a server address", hint="set `base_url` in [extractor]")
        if not is_key(self._api_key) and (self._api_key or not is_loopback(self._base_url)):
            return Misconfigured(reason="there is no usable OpenAI key", hint=_KEY_HINT)
        try:
            import httpx2  # noqa: F401 - whether it can be is all that is asked here
        except ImportError as error:
            return Misconfigured(reason=f"the `httpx2` package cannot be loaded: {error}", hint="reinstall kite-memory")
        with line(remaining(inquiry.seconds, began)) as opened:
            return self._asked(inquiry, opened)

    def _asked(self, inquiry: RedactedInquiry, opened: TimedConnection) -> Ending:
        from httpx2 import HTTPError, InvalidURL

        with self._lock:
            wording = self._wording
        tried: set[_Wording] = set()
        try:
            while True:
                tried.add(wording)
                response = self._posted(opened, wording.body(self._model, inquiry))
                body = response.content.decode("utf-8", "replace")
                if opened.is_cut:
                    return opened.late()
                if response.is_success:
                    with self._lock:
                        self._wording = wording
                    return self._read(body, inquiry)
                another = wording.after(response.status_code, body)
                if another is None or another in tried:
                    return ending_of(response.status_code, body, response.headers, key_hint=_KEY_HINT)
                wording = another
        except HTTPError as error:
            return opened.failed(error)
        except InvalidURL as error:
            return Misconfigured(
                reason=f"no address of a server: {shortened_error(str(error))}", hint="set `base_url` in [extractor]"
            )

    def _posted(self, opened: TimedConnection, body: dict[str, Any]) -> "Response":
        headers = {"content-type": "application/json"}
        if self._api_key:
            headers["authorization"] = f"Bearer {self._api_key}"
        return opened.client.post(f"{self._base_url}/chat/completions", content=json.dumps(body).encode("ascii"), headers=headers)

    def _read(self, body: str, inquiry: Inquiry) -> Ending:
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            content = None
        match content:
            case {"choices": [{"message": {**message}, **choice}, *_]}:
                pass
            case _:
                return Busy(reason=f"something that is not the API answered: {shortened_error(body)}", made="perhaps")
        usage = self._usage(content.get("usage"), inquiry)
        stop = choice.get("finish_reason")
        refusal = message.get("refusal")
        if stop == "content_filter" or (isinstance(refusal, str) and refusal):
            return Refused(reason="the model declined to answer", usage=usage)
        return Reply(text=_without_thoughts("".join(_texts(message.get("content")))), usage=usage, cut=stop == "length")

    def _usage(self, reported: object, inquiry: Inquiry) -> Usage:
        """Return the reported usage, or the estimated maximum if the server reports none."""
        if not isinstance(reported, dict) or not are_counts(reported, "prompt_tokens", "completion_tokens"):
            return self.estimate(inquiry)
        counts = {"input_tokens": reported.get("prompt_tokens"), "output_tokens": reported.get("completion_tokens")}
        return self._prices.of_reported(counts)


def _texts(content: object) -> Iterator[str]:
    """Yield the texts of a reply: most servers send a string, some a list of parts."""
    match content:
        case str(text):
            yield text
        case list(parts):
            for part in parts:
                match part:
                    case {"type": "text", "text": str(text)}:
                        yield text
                    case _:
                        pass
        case _:
            pass


def _without_thoughts(text: str) -> str:
    """Remove the reasoning that some local models print before their answer."""
    return text.rpartition("</think>")[2]
