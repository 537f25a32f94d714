"""Interpretation of an HTTP status and its body, for every API with the usual conventions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from kite_memory.distill.backends.transport import retry_after, shortened_error
from kite_memory.distill.extractor import Busy, Misconfigured, Refused

_SPEND_CODES = frozenset(
    (
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "linked_organization_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "organization_on_hold",
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
    )
)
_SPEND_WORDS = ("credit balance", "usage limit", "spend limit", "spending limit", "billing")
_TOO_LONG_WORDS = (
    "prompt is too long",
    "context window",
    "context limit",
    "context length",
    "context size",
    "maximum context",
    "request_too_large",
)
_DECLINED_WORDS = ("content filtering", "content policy", "content management policy", "content_filter", "content_policy_violation")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedError:
    """An error as a server reports it; empty where it reports nothing."""

    kind: str = ""
    code: str = ""
    message: str = ""


def reported_error(body: str) -> ReportedError:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return ReportedError()
    match content:
        case {"error": {**error}}:
            details = error.get("details")
            code = details.get("error_code") if isinstance(details, dict) else error.get("code")
            return ReportedError(kind=_text(error.get("type")), code=_text(code), message=_text(error.get("message")))
        case {"error": str(message)} | {"object": "error", "message": str(message)} | {"detail": str(message)}:
            return ReportedError(message=message)
        case _:
            return ReportedError()


def ending_of(status: int, body: str, headers: Mapping[str, str], *, key_hint: str) -> Busy | Refused | Misconfigured:
    """Return the outcome for an unsuccessful status. ``key_hint`` explains to a person how to set another key."""
    reported = reported_error(body)
    said = shortened_error(reported.message or body) or f"status {status}"
    lowered = reported.message.lower()
    wait = retry_after(headers.get("retry-after"), datetime.now(UTC))
    if not reported.kind and body.lstrip()[:1] == "<":
        return Busy(reason=f"something that is not the API answered with status {status}", retry_after=wait)
    cannot_pay = (
        reported.kind in ("billing_error", "insufficient_quota")
        or reported.code in _SPEND_CODES
        or any(words in lowered for words in _SPEND_WORDS)
    )
    if status == 402 or (status < 500 and cannot_pay):
        return Misconfigured(reason=f"the account cannot pay: {said}", hint="see the limits and credits of the API account")
    if status in (401, 403):
        return Misconfigured(reason=f"the API does not accept the key: {said}", hint=key_hint)
    if status == 404:
        return Misconfigured(reason=f"the API does not know this: {said}", hint="check the model and `base_url` in [extractor]")
    if status == 413 or any(words in lowered for words in _TOO_LONG_WORDS) or reported.code == "context_length_exceeded":
        return Refused(reason=f"what was asked is too long for the model: {said}")
    if status in (400, 422):
        if reported.code in _DECLINED_WORDS or any(words in lowered for words in _DECLINED_WORDS):
            return Refused(reason=f"the API declined what was asked: {said}")
        reason = f"the API does not accept the request: {said}"
        return Misconfigured(reason=reason, hint="check the model in [extractor]", perhaps_this=True)
    return Busy(reason=f"status {status}: {said}", retry_after=wait)


def ending_of_reported(body: str) -> Busy | Refused | Misconfigured:
    """Return the outcome for an error that comes without a status, as in the results of a batch."""
    status = _STATUS_OF.get(reported_error(body).kind, 500)
    return ending_of(status, body, {}, key_hint="check the account's key")


_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
