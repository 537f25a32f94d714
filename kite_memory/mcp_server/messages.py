"""Messages as clients send them: one that cannot be taken is answered under its own id, since its sender waits for that.

Half a character, as an agent gives that cuts a text anywhere, is mended instead.
"""

import json
import re
from typing import Any

import mcp_types as types

from kite_memory.errors import UsageError
from kite_memory.mcp_server.rendering import refusal

_TOO_LONG = "send less: a value has room for 256 kB; of a long transcript send the part that matters, or leave it out"
_TOO_DEEP = "32 levels are the most that a value may have; give what lies deeper as text"
_NO_NUMBER = "give it as text"
_ONE_MESSAGE = 'as {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, one at a time'

_OUTSIDE = re.compile(rb'"|[{\[]++|[\]}]++')
_WITHIN_A_TEXT = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_LONGEST_TEXT = 1_000
_LONGEST_ENVELOPE = 1 << 16


class Unfit(Exception):
    """A message that is not taken. ``answer`` says why, and what to do."""

    def __init__(self, answer: types.JSONRPCError) -> None:
        super().__init__(answer.error.message)
        self.answer = answer


class Envelope:
    """What stands outermost in a message, and nothing of what its params hold: of one of any length, this takes little room."""

    def __init__(self, text: bytes = b"") -> None:
        self._kept = bytearray()
        self._depth = 0
        self._text_began: int | None = None
        self._escaped = False
        self.feed(text)

    def feed(self, piece: bytes) -> None:
        """The message's next bytes, however it is cut."""
        at = 0
        while at < len(piece):
            at = self._outside(piece, at) if self._text_began is None else self._within_a_text(piece, at)

    def _outside(self, piece: bytes, at: int) -> int:
        mark = _OUTSIDE.search(piece, at)
        if mark is None:
            self._keep(piece[at:])
            return len(piece)
        self._keep(piece[at : mark.start()])
        if mark[0] == b'"':
            self._text_began = len(self._kept)
            self._keep(mark[0])
        elif mark[0][:1] in b"]}":
            inner = max(0, self._depth - 2)
            self._depth -= len(mark[0])
            self._keep(mark[0][inner:])
        else:
            self._keep(mark[0][: max(0, 2 - self._depth)])
            self._depth += len(mark[0])
        return mark.end()

    def _within_a_text(self, piece: bytes, at: int) -> int:
        if self._escaped:
            self._escaped = False
            self._keep(piece[at : at + 1])
            return at + 1
        told = _WITHIN_A_TEXT.match(piece, at)
        end = told.end() if told else at
        self._keep(piece[at:end])
        if end == len(piece):
            return end
        self._keep(piece[end : end + 1])
        if piece[end : end + 1] == b"\\":  # the piece's last byte
            self._escaped = True
        else:
            self._close()
        return end + 1

    def _close(self) -> None:
        if self._text_began is not None and len(self._kept) - self._text_began > _LONGEST_TEXT:
            self._kept[self._text_began :] = b"null"
        self._text_began = None

    def _keep(self, text: bytes) -> None:
        room = _LONGEST_ENVELOPE if self._text_began is None else min(_LONGEST_ENVELOPE, self._text_began + _LONGEST_TEXT + 1)
        if self._depth <= 1:
            self._kept += text[: max(0, room - len(self._kept))]

    def id(self) -> types.RequestId | None:
        """The request's; of what is none, or has no id that can be read, ``None``."""
        try:
            told = json.loads(bytes(self._kept))
        except (ValueError, RecursionError):
            return None
        match told:
            case {"result": _} | {"error": _} | {"id": bool()}:
                return None
            case {"id": int() | str() as number} if not isinstance(number, str) or number.isprintable():
                return number
            case _:
                return None


def read(text: bytes) -> tuple[bytes, types.JSONRPCMessage]:
    """A message, and the bytes that say it, mended where need be. Raises `Unfit`."""
    try:
        return text, _message(text)
    except (ValueError, RecursionError):
        mended = _mended(text)
    try:
        return mended, _message(mended)
    except (ValueError, RecursionError):
        raise _no_message(text, mended) from None


def _message(text: bytes) -> types.JSONRPCMessage:
    """What has an id wants an answer: the SDK takes a request whose id is none for a notification, and answers nothing.

    Some clients write null as the id of what is a notification by its name.
    """
    message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    if isinstance(message, types.JSONRPCNotification):
        told = json.loads(text)
        if "id" in told and not (told["id"] is None and message.method.startswith("notifications/")):
            error = UsageError("the id of this request is neither text nor a whole number", hint=_ONE_MESSAGE)
            raise _unfit(Envelope(text), types.INVALID_REQUEST, error)
    return message


def too_long(envelope: Envelope, longest: int) -> Unfit:
    error = UsageError(f"this request is longer than {longest:,} bytes, and was not looked at", hint=_TOO_LONG)
    return _unfit(envelope, types.INVALID_REQUEST, error)


def _mended(text: bytes) -> bytes:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace")
    except RecursionError:
        error = UsageError("this request is nested too deeply to be read", hint=_TOO_DEEP)
    except json.JSONDecodeError as wrong:
        error = UsageError(f"this is not JSON: {wrong.msg}, at character {wrong.pos + 1:,}", hint=_ONE_MESSAGE)
    except UnicodeDecodeError:
        error = UsageError("this is not JSON: it is not UTF-8", hint=_ONE_MESSAGE)
    except ValueError:  # more digits than Python makes a number of
        error = UsageError("this request holds a number with thousands of digits", hint=_NO_NUMBER)
    raise _unfit(Envelope(text), types.PARSE_ERROR, error)


def _no_message(text: bytes, mended: bytes) -> Unfit:
    try:
        types.jsonrpc_message_adapter.validate_python(json.loads(mended), by_name=False)
    except ValueError:
        error = UsageError("this is JSON, but no JSON-RPC 2.0 message", hint=_ONE_MESSAGE)
        return _unfit(Envelope(text), types.INVALID_REQUEST, error)
    error = UsageError("this request is nested too deeply to be read", hint=_TOO_DEEP)  # for the SDK's parser alone
    return _unfit(Envelope(text), types.PARSE_ERROR, error)


def _unfit(envelope: Envelope, code: int, error: UsageError) -> Unfit:
    words, told = refusal(error)
    data: Any = told["error"]
    return Unfit(types.JSONRPCError(jsonrpc="2.0", id=envelope.id(), error=types.ErrorData(code=code, message=words, data=data)))
