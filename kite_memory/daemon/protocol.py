"""The daemon as other processes meet it: one for each state folder by its lock, asked by one request for each connection.

The frame is `kite_memory.endpoint`'s. Operations of the command line carry JSON, hooks their own input and answer.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic
from types import TracebackType
from typing import Any

from kite_memory import endpoint
from kite_memory.endpoint import LONGEST_REPLY, LONGEST_REQUEST, frame, split_head
from kite_memory.errors import DaemonRunning, DaemonUnreachable, KiteError
from kite_memory.system.private_files import lock_now, make_private_folder

_TRIES, _LOCK_PAUSE = 40, 0.005


class DaemonLock:
    """Lock held from `take` to `free`, or until the process ends. The kernel releases it, so it cannot be left over or stolen.

    The file itself stays: removing it could let two daemons lock two files of one name.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def take(cls, state: Path) -> "DaemonLock":
        """Take the lock, and make the state folder if needed. Raises `DaemonRunning` while another process holds it."""
        handle = _open(state)
        try:
            for left in reversed(range(_TRIES)):
                if lock_now(handle):
                    break
                if not left:
                    pid = _pid(handle) or "unknown"
                    raise DaemonRunning(f"a daemon is already running (pid {pid})", hint="`kmem down` stops it")
                Event().wait(_LOCK_PAUSE)  # `holder` may have it for a moment
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, b"%d\n" % os.getpid())
        except BaseException:
            os.close(handle)
            raise
        return cls(handle)

    def still_holds(self, state: Path) -> bool:
        """Return whether the locked file is still the one at the lock's path."""
        try:
            ours, theirs = os.fstat(self._handle), _file(state).stat()
        except OSError:
            return False
        return (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)

    def free(self) -> None:
        """Release the lock. Can be called twice."""
        if self._handle >= 0:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> "DaemonLock":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.free()


def holder(state: Path) -> int | None:
    """Return the pid of the daemon that holds the lock, 0 if it has not written its pid yet, or ``None`` without one."""
    try:
        handle = os.open(_file(state), os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        return None if lock_now(handle, shared=True) else _pid(handle) or 0
    finally:
        os.close(handle)


def absent(state: Path) -> dict[str, Any]:
    """Return the status of a daemon that cannot be reached. Its lock may be held by a backfill, or by a daemon that hangs."""
    return {"running": False, "pid": None, "since": "", "rss_mb": 0.0, "held_by": holder(state)}


def _file(state: Path) -> Path:
    return state / "daemon.lock"


def _open(state: Path) -> int:
    try:
        make_private_folder(state)
        handle = os.open(_file(state), os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise KiteError(f"cannot open {_file(state)}: {error.strerror}", hint="its folder must be yours and writable") from error
    if sys.platform != "win32":
        os.fchmod(handle, 0o600)
    return handle


def _pid(handle: int) -> int | None:
    os.lseek(handle, 0, os.SEEK_SET)
    digits = os.read(handle, 32).strip()
    return int(digits) if digits.isdigit() else None


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


_PAUSE = 0.05
_RESTART = "`kmem down`, then `kmem up`, restarts it"


class DaemonRefused(KiteError):
    """The daemon answered with an error."""

    def __init__(self, message: str, *, hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


class DaemonSilent(KiteError):
    """A daemon is running but gave no answer. It may have done the request, so the caller must not do it instead."""


def call(state: Path, op: str, body: bytes, timeout: float) -> bytes:
    """Send a request and return the body of its reply.

    Raises `DaemonUnreachable` without a daemon, `DaemonSilent` without an answer in time, and `DaemonRefused` if the answer is an
    error.
    """
    if len(body) > endpoint.LONGEST_REQUEST:
        raise KiteError(f"that is too much for one request ({len(body):,} bytes)", hint="give it in parts")
    deadline = monotonic() + timeout
    connection = _connect(str(state), deadline)
    try:
        word, answer = endpoint.exchange(connection, op, body, deadline)
        with suppress(OSError):  # most replies need no acknowledgement: the daemon has closed
            endpoint.acknowledge(connection)
    except TimeoutError as error:
        raise DaemonSilent(f"the daemon did not answer within {timeout:g} s", hint=_RESTART) from error
    except (OSError, ValueError) as error:
        raise DaemonSilent(f"the daemon gave no proper answer: {error}", hint=_RESTART) from error
    finally:
        connection.close()
    match reply_from(word, answer):
        case Ok(body=content):
            return content
        case Failure(message=message, hint=hint, exit_code=code):
            raise DaemonRefused(message, hint=hint, exit_code=code)
        case Garbage(reason=reason):
            raise DaemonSilent(f"the daemon gave no proper answer: {reason}", hint=_RESTART)


def _connect(state: str, deadline: float) -> endpoint.Connection:
    """Connect, and try again until the deadline while the daemon has too many connections."""
    while True:
        try:
            return endpoint.connect(state, deadline)
        except BlockingIOError:
            Event().wait(_PAUSE)
        except TimeoutError as error:
            if isinstance(error, endpoint.NoProof) and holder(Path(state)) is None:  # a port that was left over, and taken since
                raise DaemonUnreachable("no daemon is running", hint="`kmem up` starts it") from error
            raise DaemonSilent("the daemon takes no more requests", hint=_RESTART) from error
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise DaemonUnreachable("no daemon is running", hint="`kmem up` starts it") from error
        except (OSError, ValueError) as error:
            raise DaemonUnreachable(f"the daemon cannot be reached: {error}", hint=_RESTART) from error
