"""One HTTP call to a model: bounded in time and size, without redirects, its status and body interpreted."""

import json
import math
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kite_memory.distill.extractor import Busy, Misconfigured, Refused
from kite_memory.distill.prose import one_line
from kite_memory.redaction import redact
from kite_memory.redaction.cutting import beginning
from kite_memory.system import LOOPBACK
from kite_memory.text.display import clip

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import Client, Request, Response

LONGEST_WAIT = 3_600.0
_LARGEST_RESPONSE = 4_000_000
_LONGEST_CONNECT = 10.0


@dataclass(slots=True, kw_only=True)
class TimedConnection:
    """A connection that is closed ``seconds`` after it was opened, whatever the state of the call.

    The package's timeouts apply to one read each: headers that arrive byte by byte would never exceed them. Only name resolution
    cannot be interrupted; the system's resolver has its own timeout.
    """

    client: "Client"
    seconds: float
    _streams: list[socket.socket] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cut: bool = False

    @property
    def is_cut(self) -> bool:
        return self._cut

    def late(self, *, made: bool = True) -> Busy:
        return Busy(reason=f"no answer within {self.seconds:.1f} seconds", made="perhaps" if made else "no")

    def failed(self, error: Exception) -> Busy:
        """Interpret ``error``, the package's own, about the connection."""
        from httpx2 import ConnectError, ConnectTimeout, ProxyError, TimeoutException, UnsupportedProtocol

        unsent = isinstance(error, ConnectError | ConnectTimeout | ProxyError | UnsupportedProtocol)
        if self._cut or isinstance(error, TimeoutException):
            return self.late(made=not unsent)
        return Busy(
            reason=f"the connection failed: {shortened_error(type(error).__name__ + ': ' + str(error))}",
            made="no" if unsent else "perhaps",
        )

    def watch(self, event: str, info: Mapping[str, object]) -> None:
        """Keep the socket of each connection that the package reports, plain and again under TLS."""
        stream = info.get("return_value")
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")) and hasattr(stream, "get_extra_info"):
            found = stream.get_extra_info("socket")
            with self._lock:
                if isinstance(found, socket.socket):
                    self._streams.append(found)
                if self._cut:
                    self._shut()

    def cut(self) -> None:
        with self._lock:
            self._cut = True
            self._shut()

    def _shut(self) -> None:
        for stream in self._streams:
            try:
                socket.socket.shutdown(stream, socket.SHUT_RDWR)  # not TLS's own method, which would drop its state during a read
            except OSError:
                pass  # closed already, or replaced by its TLS socket


@contextmanager
def line(seconds: float) -> Iterator[TimedConnection]:
    """Open a line for one call; the time starts now."""
    from httpx2 import Client, Timeout

    seconds = max(seconds, 0.001)

    def watched(request: "Request") -> None:
        request.extensions = {**request.extensions, "trace": opened.watch}

    client = Client(
        verify=_trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"), int(time.monotonic() // 3_600)),
        timeout=Timeout(seconds, connect=min(_LONGEST_CONNECT, seconds)),
        follow_redirects=False,  # the key and the transcript go where they were sent, and nowhere else
        mounts={f"all://{f'[{host}]' if ':' in host else host}": None for host in LOOPBACK},  # a proxy cannot reach our loopback
        headers={"accept-encoding": "identity"},  # an unpacked body could be a thousand times the counted size
        event_hooks={"request": [watched], "response": [_bound]},
    )
    opened = TimedConnection(client=client, seconds=seconds)
    clock = threading.Timer(seconds, opened.cut)
    clock.daemon = True
    clock.start()
    try:
        with client:
            yield opened
    finally:
        clock.cancel()


@lru_cache(maxsize=1)
def _trusted(file: str | None, folder: str | None, hour: int) -> "SSLContext":
    """Return the trusted certificate authorities. Reading the system's hundred-odd takes longer than a short call, so they are
    cached for an ``hour``, after which changes are noticed.
    """
    from httpx2 import create_ssl_context

    return create_ssl_context()


def remaining(seconds: float, since: float) -> float:
    """Return what is left of ``seconds`` that began at ``since`` on the monotonic clock: loading a package counts too."""
    return seconds - (time.monotonic() - since)


def is_loopback(base_url: str) -> bool:
    try:
        return (urlsplit(base_url).hostname or "") in LOOPBACK
    except ValueError:
        return False


def is_address(base_url: str) -> bool:
    try:
        parts = urlsplit(base_url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def is_key(text: str) -> bool:
    """Return whether the key is valid in a header; any other must never be sent."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def retry_after(header: str | None, now: datetime) -> float:
    """Return the seconds to wait from a ``Retry-After`` header, at most an hour; 0 if it is missing or invalid."""
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


def shortened_error(text: str) -> str:
    return clip(one_line(redact(beginning(text, 1_000))), 200)


def _bound(response: "Response") -> None:
    """Make a body that is too long end in an error; the package has no limit for it."""
    import httpx2

    class Bounded(httpx2.SyncByteStream):
        def __init__(self, inner: httpx2.SyncByteStream) -> None:
            self._inner = inner

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for piece in self._inner:
                size += len(piece)
                if size > _LARGEST_RESPONSE:
                    raise httpx2.ReadError("the response is too large")
                yield piece

        def close(self) -> None:
            self._inner.close()

    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.ReadError("the response is packed, though that was not requested")
    if isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = Bounded(response.stream)


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
        # A message about the rate may only recommend to pay: "Visit …/account/billing to add a payment method."
        or (reported.code != "rate_limit_exceeded" and any(words in lowered for words in _SPEND_WORDS))
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
