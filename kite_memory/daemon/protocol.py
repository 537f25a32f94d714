"""Requests and replies on the socket: one request and one reply for each connection.

The frame is `kite_memory.endpoint`'s. Operations of the command line carry JSON; ``hook`` carries an agent's own hook input, and
its reply exactly the text to print.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from kite_memory.endpoint import LONGEST_REPLY, LONGEST_REQUEST, frame, split_head


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. ``op`` is ``name`` or ``name:variant``, such as ``hook:codex``."""

    op: str
    body: bytes = b""

    @property
    def name(self) -> str:
        return self.op.partition(":")[0]

    @property
    def variant(self) -> str:
        return self.op.partition(":")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ok:
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Error reply, which the client prints as ``error: …`` and ``hint: …``."""

    message: str
    hint: str = ""
    exit_code: int = 1


Reply = Ok | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldReply:
    """Reply that the client acknowledges. One of both is called, once: ``arrived`` after that, ``lost`` without it."""

    reply: Reply
    arrived: Callable[[], object]
    lost: Callable[[], object]


@dataclass(frozen=True, slots=True)
class NeedMore:
    """The buffer is valid so far, but incomplete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    reason: str


def render_request(request: Request) -> bytes:
    return frame(request.op, request.body)


def parse_request(buffer: bytes | bytearray) -> Request | NeedMore | Garbage:
    """Parse a request. Cheap to repeat after every received piece: only a complete body is copied."""
    framed = _unframe(buffer, LONGEST_REQUEST)
    return Request(op=framed[0], body=framed[1]) if isinstance(framed, tuple) else framed


def render_reply(reply: Reply) -> bytes:
    match reply:
        case Ok(body=body) if len(body) <= LONGEST_REPLY:
            return frame("ok", body)
        case Ok(body=body):
            return render_reply(Failure(message=f"the answer is too long ({len(body):,} bytes)", hint="ask for less"))
        case Failure(message=message, hint=hint, exit_code=code):
            return frame("error", json.dumps({"message": message, "hint": hint, "exit_code": code}).encode())


def parse_reply(buffer: bytes | bytearray) -> Reply | NeedMore | Garbage:
    framed = _unframe(buffer, LONGEST_REPLY)
    return reply_from(*framed) if isinstance(framed, tuple) else framed


def reply_from(word: str, body: bytes) -> Reply | Garbage:
    if word == "ok":
        return Ok(body=body)
    if word != "error":
        return Garbage(reason=f"unknown kind of reply {word!r}")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    match content:
        case {"message": str(message), "hint": str(hint), "exit_code": int(code)}:
            return Failure(message=message, hint=hint, exit_code=code)
        case _:
            return Garbage(reason="an error without a message")


def _unframe(buffer: bytes | bytearray, longest: int) -> tuple[str, bytes] | NeedMore | Garbage:
    try:
        head = split_head(buffer, longest)
    except ValueError as error:
        return Garbage(reason=str(error))
    if head is None:
        return NeedMore()
    word, length, start = head
    if len(buffer) < start + length:
        return NeedMore()
    if len(buffer) > start + length:
        return Garbage(reason="more than was announced")
    return word, bytes(buffer[start:])
