"""Message Batches of Claude through the `anthropic` package: many inquiries answered within a day, at half the price."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kite_memory.distill.backends.anthropic_api import AnthropicBackend
from kite_memory.distill.backends.backend import Ending, Failure, Inquiry, ListedBatch, RedactedInquiry
from kite_memory.distill.backends.statuses import ending_of_reported
from kite_memory.distill.backends.transport import shortened_error
from kite_memory.distill.extractor import Busy, Usage

if TYPE_CHECKING:
    import anthropic

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
