"""JSON-RPC in lines over a process's standard streams, for one client that may disappear at any time.

The SDK's own transport reads lines of any length, leaves invalid JSON unanswered, drops pending answers when the input ends, and
cannot stop while its input is open but its output is not read. Pipes and sockets are read when they have something, and short lines
are written when there is room for them. Other reads and writes may block and cannot be interrupted, so threads do them which are
not joined at the end.
"""

import asyncio
import contextlib
import json
import os
import queue
import re
import select
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from kite_memory.errors import UsageError
from kite_memory.mcp_server.server import refusal

_TOO_LONG = "send less: a value has room for 256 kB; of a long transcript send the part that matters, or leave it out"
_TOO_DEEP = "32 levels are the most that a value may have; give what lies deeper as text"
_NO_NUMBER = "give it as text"
_ONE_MESSAGE = 'as {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, one at a time'

_OUTSIDE = re.compile(rb'"|[{\[]++|[\]}]++')
_WITHIN_A_TEXT = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_LONGEST_TEXT = 1_000
_LONGEST_ENVELOPE = 1 << 16


class Unfit(Exception):
    """A message that is refused. ``answer`` is the error response, with what to do."""

    def __init__(self, answer: types.JSONRPCError) -> None:
        super().__init__(answer.error.message)
        self.answer = answer


class Envelope:
    """The outermost members of a message without its params, so that a message of any length takes little memory."""

    def __init__(self, text: bytes = b"") -> None:
        self._kept = bytearray()
        self._depth = 0
        self._text_began: int | None = None
        self._escaped = False
        self.feed(text)

    def feed(self, piece: bytes) -> None:
        """Add the next bytes of the message, split anywhere."""
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
        match = _WITHIN_A_TEXT.match(piece, at)
        end = match.end() if match else at
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
        """Return the id of a request; ``None`` for other messages and for an id that cannot be parsed."""
        try:
            identifier = json.loads(bytes(self._kept))
        except (ValueError, RecursionError):
            return None
        match identifier:
            case {"result": _} | {"error": _} | {"id": bool()}:
                return None
            case {"id": int() | str() as number} if not isinstance(number, str) or number.isprintable():
                return number
            case _:
                return None


def read(text: bytes) -> tuple[bytes, types.JSONRPCMessage]:
    """Return the message and its bytes, repaired if needed. Raises `Unfit`."""
    try:
        return text, _json_message(text)
    except (ValueError, RecursionError):
        mended = _mended(text)
    try:
        return mended, _json_message(mended)
    except (ValueError, RecursionError):
        raise _no_message(text, mended) from None


def _json_message(text: bytes) -> types.JSONRPCMessage:
    """Parse a message.

    A message with an id needs an answer, but the SDK takes a request with an invalid id for a notification and does not answer.
    Some clients write null as the id of what its method shows to be a notification.
    """
    message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    if isinstance(message, types.JSONRPCNotification):
        content = json.loads(text)
        if "id" in content and not (content["id"] is None and message.method.startswith("notifications/")):
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
    except ValueError:  # more digits than Python converts to a number
        error = UsageError("this request holds a number with thousands of digits", hint=_NO_NUMBER)
    raise _unfit(Envelope(text), types.PARSE_ERROR, error)


def _no_message(text: bytes, mended: bytes) -> Unfit:
    try:
        types.jsonrpc_message_adapter.validate_python(json.loads(mended), by_name=False)
    except ValueError:
        error = UsageError("this is JSON, but no JSON-RPC 2.0 message", hint=_ONE_MESSAGE)
        return _unfit(Envelope(text), types.INVALID_REQUEST, error)
    error = UsageError("this request is nested too deeply to be read", hint=_TOO_DEEP)  # only for the SDK's parser
    return _unfit(Envelope(text), types.PARSE_ERROR, error)


def _unfit(envelope: Envelope, code: int, error: UsageError) -> Unfit:
    words, details = refusal(error)
    data: Any = details["error"]
    return Unfit(types.JSONRPCError(jsonrpc="2.0", id=envelope.id(), error=types.ErrorData(code=code, message=words, data=data)))


LONGEST_LINE = 4 << 20
_PIECE = 1 << 16
_SECONDS_TO_FINISH = 30.0

Item = SessionMessage | Exception


class InputLines:
    """Lines of a file descriptor; of a line that is too long, only its envelope. Text after the last newline counts as a line."""

    def __init__(self, fd: int, longest: int = LONGEST_LINE) -> None:
        self._fd = fd
        self._longest = longest
        self._line: bytearray | Envelope = bytearray()

    def __iter__(self) -> Iterator[bytes | Envelope]:
        """Yield the lines, blocking until there is one."""
        while piece := self._read():
            yield from self._ended_by(piece)
        yield from self._rest()

    async def awaited(self) -> AsyncIterator[bytes | Envelope]:
        """Yield the lines of a descriptor that `_can_be_awaited`."""
        while True:
            await anyio.wait_readable(self._fd)
            if not (piece := self._read()):
                break
            for line in self._ended_by(piece):
                yield line
        for line in self._rest():
            yield line

    def _ended_by(self, piece: bytes) -> Iterator[bytes | Envelope]:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._whole()
            self._line = bytearray()
        self._add(rest)

    def _rest(self) -> Iterator[bytes | Envelope]:
        if self._line:
            yield self._whole()

    def _whole(self) -> bytes | Envelope:
        return self._line if isinstance(self._line, Envelope) else bytes(self._line)

    def _add(self, piece: bytes) -> None:
        if isinstance(self._line, Envelope):
            self._line.feed(piece)
            return
        self._line += piece
        if len(self._line) > self._longest:
            self._line = Envelope(bytes(self._line))

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, _PIECE)
        except OSError:  # the terminal is closed
            return b""


def _can_be_awaited(fd: int) -> bool:
    """Return whether the event loop can wait for the descriptor, so that a read does not block."""
    if sys.platform == "win32":
        return False
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class _Due:
    """Answers not written yet: those to requests, by their id, and those to invalid lines."""

    def __init__(self) -> None:
        self._ids: set[types.RequestId] = set()
        self._refusals: list[types.JSONRPCError] = []
        self._changed = asyncio.Event()

    def refused(self, answer: types.JSONRPCError) -> None:
        self._refusals.append(answer)

    def came_in(self, message: types.JSONRPCMessage) -> None:
        match message:
            case types.JSONRPCRequest(id=number):
                self._ids.add(number)
            case types.JSONRPCNotification(method="notifications/cancelled", params={"requestId": str() | int() as number}):
                self._settle(number)
            case _:
                pass

    def went_out(self, message: types.JSONRPCMessage) -> None:
        if any(message is each for each in self._refusals):
            self._refusals = [each for each in self._refusals if each is not message]
            self._changed.set()
        elif isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
            self._settle(message.id)

    async def settled(self) -> None:
        while self._ids or self._refusals:
            self._changed.clear()
            await self._changed.wait()

    def _settle(self, number: types.RequestId) -> None:
        self._ids.discard(number)
        self._changed.set()


async def serve(server: Server[Any], *, read_fd: int, write_fd: int, longest: int = LONGEST_LINE) -> None:
    """Serve until the input has ended and all requests are answered, or until the output is closed."""
    incoming, taken = anyio.create_memory_object_stream[Item](0)
    given, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    errors, due = given.clone(), _Due()
    with incoming, taken, given, errors, outgoing:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, read_fd, longest, incoming, errors, due)
            group.start_soon(_write, write_fd, outgoing, due, group.cancel_scope.cancel)
            await server.run(taken, given, server.create_initialization_options())
            group.cancel_scope.cancel()


async def _read(
    fd: int, longest: int, incoming: MemoryObjectSendStream[Item], errors: MemoryObjectSendStream[SessionMessage], due: _Due
) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    async def deal_with(line: bytes | Envelope) -> None:
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            try:
                message = _message(line, longest)
            except Unfit as unfit:
                due.refused(unfit.answer)
                await errors.send(SessionMessage(unfit.answer))
            else:
                due.came_in(message)
                await incoming.send(SessionMessage(message))

    def read() -> None:
        """Read one line at a time, waiting until it is handled. Stops if the event loop has ended."""
        with contextlib.suppress(RuntimeError, CancelledError):
            try:
                for line in InputLines(fd, longest):
                    if isinstance(line, Envelope) or line.strip():
                        asyncio.run_coroutine_threadsafe(deal_with(line), loop).result()
            finally:
                loop.call_soon_threadsafe(ended.set)

    with incoming, errors:
        if _can_be_awaited(fd):
            async for line in InputLines(fd, longest).awaited():
                if isinstance(line, Envelope) or line.strip():
                    await deal_with(line)
        else:
            threading.Thread(target=read, name="kmem-mcp-input", daemon=True).start()
            await ended.wait()
        with anyio.move_on_after(_SECONDS_TO_FINISH):
            await due.settled()


async def _write(fd: int, outgoing: MemoryObjectReceiveStream[SessionMessage], due: _Due, leave: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    lines: queue.SimpleQueue[tuple[bytes, asyncio.Future[bool]] | None] = queue.SimpleQueue()

    def write() -> None:
        while (taken := lines.get()) is not None:
            line, written = taken
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(_set, written, _write_all(fd, line))

    threading.Thread(target=write, name="kmem-mcp-output", daemon=True).start()
    has_room = _room_in(fd)
    try:
        async for envelope in outgoing:
            line = envelope.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            if has_room(line):
                well = _write_all(fd, line)
            else:
                written: asyncio.Future[bool] = loop.create_future()
                lines.put((line, written))
                well = await written
            if not well:
                leave()
                break
            due.went_out(envelope.message)
    finally:
        lines.put(None)


def _room_in(fd: int) -> Callable[[bytes], bool]:
    """Return whether a line can be written without blocking: a pipe that is ready has room for some kilobytes."""
    if not _can_be_awaited(fd) or not hasattr(select, "poll"):
        return lambda line: False
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return lambda line: len(line) <= select.PIPE_BUF and bool(poll.poll(0))


def _set(written: asyncio.Future[bool], well: bool) -> None:
    if not written.cancelled():
        written.set_result(well)


def _message(line: bytes | Envelope, longest: int) -> types.JSONRPCMessage:
    if isinstance(line, Envelope):
        raise too_long(line, longest)
    return read(line)[1]


def _write_all(fd: int, line: bytes) -> bool:
    """Write all of the line. Return whether the output was still open."""
    left = memoryview(line)
    try:
        while left:
            left = left[os.write(fd, left) :]
    except OSError:
        return False
    return True


@contextlib.contextmanager
def own_ends() -> Iterator[tuple[int, int]]:
    """Yield this process's standard input and output for the protocol alone; other output goes to standard error."""
    read_fd, write_fd = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    try:
        yield read_fd, write_fd
    finally:
        sys.stdout.flush()
        os.dup2(write_fd, 1)
        os.dup2(read_fd, 0)
