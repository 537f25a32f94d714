"""The daemon's server: accepts connections and answers requests with a few threads.

One thread accepts and reads, without waiting for any single client, and passes complete requests to the workers; so a client that
connects and sends nothing costs a file descriptor for two seconds and nothing else. Without clients, no thread wakes.
"""

import errno
import hmac
import os
import secrets
import selectors
import socket
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Literal

from kite_memory import endpoint
from kite_memory.daemon.protocol import Failure, Garbage, HeldReply, NeedMore, Reply, Request, parse_request, render_reply
from kite_memory.endpoint import RECEIVED
from kite_memory.errors import DaemonRunning, KiteError
from kite_memory.paths import socket_path
from kite_memory.system.private_files import NotPrivate, make_private_folder, replace_file, when_not_in_use

Transport = Literal["auto", "unix", "port"]

_BACKLOG = 64
_NO_SOCKETS_HERE = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EAFNOSUPPORT}
_SECONDS_TO_ANSWER = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A listening socket. ``token`` is empty for a unix socket, where the kernel identifies the client."""

    socket: socket.socket
    address: Path
    identity: tuple[int, int]
    token: str = ""

    def close(self) -> None:
        """Close the socket, and remove its address if it still belongs to this listener."""
        self.socket.close()
        if self.is_found():
            with suppress(OSError):  # a client of Windows that reads it; a left-over is no harm
                when_not_in_use(self.address.unlink)

    def is_found(self) -> bool:
        """Return whether its address is still this listener's."""
        try:
            found = self.address.lstat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self.identity


def listen(state: Path, transport: Transport = "auto") -> Listener:
    """Open the daemon's address. Raises `DaemonRunning` if another daemon answers there, `KiteError` if it cannot be taken safely.

    An address without an answer is left over and is replaced. The caller holds the `DaemonLock`, since two processes that replace
    one leftover at the same time would not notice each other.
    """
    make_private_folder(state)
    _refuse_if_answered(state)
    if transport == "port" or (transport == "auto" and not hasattr(socket, "AF_UNIX")):
        return _listen_on_port(state)
    try:
        listener = _listen_on_socket(state)
    except OSError as error:
        if transport == "auto" and error.errno in _NO_SOCKETS_HERE:
            return _listen_on_port(state)
        at = socket_path(str(state))
        raise KiteError(f"cannot listen at {at}: {error.strerror or error}", hint="is the disk full or read-only?") from error
    Path(endpoint.port_file(str(state))).unlink(missing_ok=True)
    return listener


def _refuse_if_answered(state: Path) -> None:
    try:
        endpoint.connect(str(state), monotonic() + _SECONDS_TO_ANSWER).close()
    except endpoint.NoProof:
        return  # a daemon of ours would have the lock that the caller has
    except (BlockingIOError, TimeoutError):
        pass  # a hanging or busy daemon still owns the address
    except (OSError, ValueError):
        return
    raise DaemonRunning(f"another process answers at {socket_path(str(state))}", hint="`kmem down` stops it")


def _listen_on_socket(state: Path) -> Listener:
    path = Path(socket_path(str(state)))
    if path.parent != state:
        _make_runtime_folder(path.parent)
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise KiteError(f"{path} is in the way: it is not a socket", hint="move it away")
        path.unlink()
    except FileNotFoundError:
        pass
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))  # safe whatever the umask: no other user can enter the folder
        path.chmod(0o600)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    found = path.lstat()
    return Listener(socket=listening, address=path, identity=(found.st_dev, found.st_ino))


def _make_runtime_folder(folder: Path) -> None:
    """Make the socket's folder, and check its owner and mode.

    Its parent may be writable for all: another user could have put a folder or a link in its place.
    """
    if sys.platform == "win32":
        raise KiteError(f"{folder} cannot hold the socket", hint="set KMEM_HOME to a shorter path")
    try:
        folder.mkdir(0o700)
        folder.chmod(0o700)
    except FileExistsError:
        pass
    except FileNotFoundError as error:
        raise KiteError(f"cannot make the runtime folder {folder}", hint="set KMEM_HOME to a shorter path") from error
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise NotPrivate(f"{folder} is not a folder of yours alone", hint="remove it, or set KMEM_HOME to a shorter path")


def _listen_on_port(state: Path) -> Listener:
    """Listen on loopback where there are no unix sockets, with a secret token that only this user can read."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    path = Path(endpoint.port_file(str(state)))
    try:
        listening.bind(("127.0.0.1", 0))
        listening.listen(_BACKLOG)
        token = secrets.token_hex(endpoint.TOKEN_DIGITS // 2)
        replace_file(path, f"{listening.getsockname()[1]} {token}\n".encode())
    except BaseException:
        listening.close()
        raise
    found = path.lstat()
    return Listener(socket=listening, address=path, identity=(found.st_dev, found.st_ino), token=token)


_PIECE = 1 << 18
_PAUSE_WITHOUT_DESCRIPTORS = 0.5

Take = Callable[[socket.socket, Request], None]
Report = Callable[[BaseException], None]

BUSY = Failure(message="the daemon is busy", hint="try again in a moment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of the server.

    ``waiting`` limits both the requests read but not yet answered and the connections still being read. Besides the ``workers`` for
    all requests, there are ``reserved`` ones for urgent requests.
    """

    workers: int = 8
    reserved: int = 4
    waiting: int = 64
    read_seconds: float = 2.0
    write_seconds: float = 2.0
    stop_seconds: float = 5.0


@dataclass(slots=True, kw_only=True, eq=False)
class _Caller:
    """A connection until its request is complete. A client on a port is untrusted until it has sent the token."""

    connection: socket.socket
    until: float
    token: str
    buffer: bytearray
    proven: bool = False

    def read(self) -> Request | NeedMore | Garbage:
        try:
            if not (piece := self.connection.recv(_PIECE)):
                return Garbage(reason="cut in the middle")
            self.buffer += piece
            unmet = self._introduce()
        except BlockingIOError:
            return NeedMore()
        except OSError as error:
            return Garbage(reason=str(error))
        return parse_request(self.buffer) if unmet is None else unmet

    def _introduce(self) -> NeedMore | Garbage | None:
        while self.token:
            end = self.buffer.find(b"\n", 0, 128)
            if end < 0:
                return NeedMore() if len(self.buffer) < 128 else Garbage(reason="no introduction")
            line = bytes(self.buffer[:end])
            del self.buffer[: end + 1]
            if self.proven:
                if not hmac.compare_digest(line, self.token.encode()):
                    return Garbage(reason="wrong token")
                self.token = ""
            elif line.startswith(endpoint.GREETING) and len(line) == len(endpoint.GREETING) + endpoint.NONCE_DIGITS:
                self.connection.send(endpoint.proof(self.token, line[len(endpoint.GREETING) :]) + b"\n")
                self.proven = True
            else:
                return Garbage(reason="no introduction")
        return None


class Acceptor:
    """Accepts connections from `watch` to `close`, and passes complete requests to ``take``, which must not block.

    ``lost`` is called if an unexpected error ends it: no connection is accepted from then on.
    """

    def __init__(
        self, listener: Listener, limits: Limits, take: Take, report: Report, *, lost: Callable[[], None] = lambda: None
    ) -> None:
        self._listener = listener
        self._limits = limits
        self._take = take
        self._report = report
        self._lost = lost
        self._callers: dict[socket.socket, _Caller] = {}  # in order of arrival, hence of deadline
        self._deaf_until = 0.0
        self._woken, self._wake = socket.socketpair()

    def close(self) -> None:
        try:
            self._wake.send(b"!")
        except OSError:
            pass  # the thread has ended already

    def is_found(self) -> bool:
        """Return whether clients find this listener at its address."""
        return self._listener.is_found()

    def watch(self) -> None:
        """Accept connections until `close`, then remove the address."""
        with selectors.DefaultSelector() as selector:
            try:
                self._listener.socket.setblocking(False)
                selector.register(self._listener.socket, selectors.EVENT_READ)
                selector.register(self._woken, selectors.EVENT_READ)
                while self._serve(selector):
                    pass
            except Exception as error:  # noqa: BLE001 - the edge of a thread
                self._report(error)
                self._lost()
            finally:
                for caller in self._callers.values():
                    caller.connection.close()
                self._callers.clear()
                self._woken.close()
                self._wake.close()
                self._listener.close()

    def _serve(self, selector: selectors.BaseSelector) -> bool:
        for key, _ in selector.select(self._seconds_to_wait()):
            if key.fileobj is self._woken:
                return False
            if key.fileobj is self._listener.socket:
                self._accept(selector)
            elif isinstance(key.fileobj, socket.socket) and (caller := self._callers.get(key.fileobj)):
                self._read(selector, caller)
        now = monotonic()
        while self._callers and (oldest := next(iter(self._callers.values()))).until <= now:
            self._dismiss(selector, oldest)
            oldest.connection.close()
        if self._deaf_until and self._deaf_until <= now:
            self._deaf_until = 0.0
            selector.register(self._listener.socket, selectors.EVENT_READ)
        return True

    def _seconds_to_wait(self) -> float | None:
        """Return the seconds to the next deadline; ``None`` without one, so that an idle daemon does not wake."""
        ends = [self._deaf_until] if self._deaf_until else []
        if self._callers:
            ends.append(next(iter(self._callers.values())).until)
        return max(0.0, min(ends) - monotonic()) if ends else None

    def _accept(self, selector: selectors.BaseSelector) -> None:
        try:
            connection, _ = self._listener.socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # the client has left the queue already
        except OSError as error:
            # Out of descriptors or memory: the queue stays readable, and asking again at once would burn a core.
            error.add_note("while the daemon accepted a connection")
            self._report(error)
            selector.unregister(self._listener.socket)
            self._deaf_until = monotonic() + _PAUSE_WITHOUT_DESCRIPTORS
            return
        token = self._listener.token
        if not token and not endpoint.peer_is_this_user(connection):
            connection.close()
        elif len(self._callers) >= self._limits.waiting:
            turn_away(connection, BUSY)
        else:
            connection.setblocking(False)
            until = monotonic() + self._limits.read_seconds
            self._callers[connection] = _Caller(connection=connection, until=until, token=token, buffer=bytearray())
            selector.register(connection, selectors.EVENT_READ)

    def _read(self, selector: selectors.BaseSelector, caller: _Caller) -> None:
        match caller.read():
            case NeedMore():
                pass
            case Garbage(reason=reason):
                self._dismiss(selector, caller)
                turn_away(caller.connection, Failure(message=f"the daemon did not understand: {reason}", exit_code=70))
            case Request() as request:
                self._dismiss(selector, caller)
                self._take(caller.connection, request)

    def _dismiss(self, selector: selectors.BaseSelector, caller: _Caller) -> None:
        selector.unregister(caller.connection)
        del self._callers[caller.connection]


def turn_away(connection: socket.socket, why: Reply) -> None:
    """Send the reason if that is possible at once, and close the connection."""
    with connection:
        try:
            connection.setblocking(False)
            connection.send(render_reply(why))
        except OSError:
            pass


Handler = Callable[[Request], Reply | HeldReply]

_DEFAULT_LIMITS = Limits()

_Asked = tuple[socket.socket, Request]


class _Waiting:
    """Queue of requests for the workers, urgent ones first. Reserved workers get only urgent ones."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._for_all = threading.Condition(self._lock)
        self._for_reserved = threading.Condition(self._lock)
        self._urgent: deque[_Asked] = deque()
        self._others: deque[_Asked] = deque()
        self._closed = False

    def put(self, asked: _Asked, *, urgent: bool) -> bool:
        """Add a request, and return whether there was room for it. Urgent requests have their own limit."""
        queue = self._urgent if urgent else self._others
        with self._lock:
            if self._closed or len(queue) >= self._limit:
                return False
            queue.append(asked)
            self._for_all.notify()
            if urgent:
                self._for_reserved.notify()
            return True

    def get(self, *, reserved: bool) -> _Asked | None:
        """Wait for a request; return ``None`` once the queue is closed."""
        with self._lock:
            while not self._closed:
                if self._urgent:
                    return self._urgent.popleft()
                if self._others and not reserved:
                    return self._others.popleft()
                (self._for_reserved if reserved else self._for_all).wait()
            return None

    def close(self) -> list[_Asked]:
        """Close the queue, and return the requests left in it."""
        with self._lock:
            self._closed = True
            left = [*self._urgent, *self._others]
            self._urgent.clear()
            self._others.clear()
            self._for_all.notify_all()
            self._for_reserved.notify_all()
            return left


class Server:
    """Serves requests from `start` to `stop`. ``handle`` is called by several threads at once.

    A `KiteError` from ``handle`` is sent to the client. Any other exception is a bug: the client gets a message about that, and
    ``report`` gets the exception, with a note on the operation. A client that has closed its connection before its turn is not
    answered, nor its request handled. ``lost`` is called if a bug has ended the accepting thread. Requests named in ``urgent`` have
    workers of their own and do not wait for the others.
    """

    def __init__(
        self,
        state: Path,
        handle: Handler,
        *,
        report: Report,
        lost: Callable[[], None] = lambda: None,
        urgent: Collection[str] = (),
        limits: Limits = _DEFAULT_LIMITS,
        transport: Transport = "auto",
    ) -> None:
        self._state = state
        self._handle = handle
        self._report = report
        self._lost = lost
        self._limits = limits
        self._transport: Transport = transport
        self._urgent = frozenset(urgent)
        self._waiting = _Waiting(max(limits.waiting, limits.workers))
        self._threads: list[threading.Thread] = []
        self._reception: Acceptor | None = None
        self._moving = threading.Lock()

    def start(self) -> None:
        """Start the server. When this returns, clients can connect. Raises the same errors as `listen`."""
        self._reception = Acceptor(listen(self._state, self._transport), self._limits, self._take, self._report, lost=self._lost)
        self._waiting = _Waiting(max(self._limits.waiting, self._limits.workers))
        self._threads = [threading.Thread(target=self._reception.watch, name="kmem-reception", daemon=True)]
        for number in range(self._limits.workers + (self._limits.reserved if self._urgent else 0)):
            reserved = number >= self._limits.workers
            name = f"kmem-{'hook' if reserved else 'answer'}-{number}"
            self._threads.append(threading.Thread(target=self._work, args=(reserved,), name=name, daemon=True))
        for thread in self._threads:
            thread.start()

    def listen_again(self) -> str:
        """Open the address again if it was removed: systems empty their temporary folders.

        Return why it cannot be opened at the moment, or an empty string.
        """
        with self._moving:
            if self._reception is None or self._reception.is_found():
                return ""
            self._reception.close()
            self._threads[0].join()
            try:
                listener = listen(self._state, self._transport)
            except (KiteError, OSError) as error:
                return str(error)
            self._reception = Acceptor(listener, self._limits, self._take, self._report, lost=self._lost)
            self._threads[0] = threading.Thread(target=self._reception.watch, name="kmem-reception", daemon=True)
            self._threads[0].start()
            return ""

    def stop(self) -> None:
        """Remove the address at once, and give running requests ``stop_seconds`` to end. Can be called twice."""
        with self._moving:
            if self._reception is None:
                return
            self._reception.close()
            reception, *workers = self._threads
            reception.join()
            self._reception = None
        for connection, _ in self._waiting.close():
            connection.close()
        until = monotonic() + self._limits.stop_seconds
        for worker in workers:
            if worker is not threading.current_thread():  # `stop` may be called by a request's own thread
                worker.join(max(0.0, until - monotonic()))

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _take(self, connection: socket.socket, request: Request) -> None:
        if not self._waiting.put((connection, request), urgent=request.name in self._urgent):
            turn_away(connection, BUSY)

    def _work(self, reserved: bool) -> None:
        while (taken := self._waiting.get(reserved=reserved)) is not None:
            connection, request = taken
            with connection:
                if not _has_left(connection):
                    self._attend(connection, request)

    def _attend(self, connection: socket.socket, request: Request) -> None:
        match self._answer(request):
            case HeldReply(reply=reply, arrived=arrived, lost=lost):
                received = self._send(connection, reply) and self._is_acknowledged(connection)
                try:
                    (arrived if received else lost)()
                except Exception as error:  # noqa: BLE001 - the edge of a thread
                    error.add_note(f"after the daemon answered {request.op!r}")
                    self._report(error)
            case reply:
                self._send(connection, reply)

    def _answer(self, request: Request) -> Reply | HeldReply:
        try:
            return self._handle(request)
        except KiteError as error:
            return Failure(message=str(error), hint=error.hint, exit_code=error.exit_code)
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: even a SystemExit may not take a worker away unseen
            error.add_note(f"while the daemon answered {request.op!r}")
            self._report(error)
            return Failure(message=f"the daemon could not answer {request.op!r}: internal error; please report it", exit_code=70)

    def _send(self, connection: socket.socket, reply: Reply) -> bool:
        """Send a reply, and return whether that worked; the client may be gone."""
        try:
            connection.settimeout(self._limits.write_seconds)
            connection.sendall(render_reply(reply))
        except OSError:
            return False
        return True

    def _is_acknowledged(self, connection: socket.socket) -> bool:
        try:
            return connection.recv(len(RECEIVED)) == RECEIVED
        except OSError:
            return False


def _has_left(connection: socket.socket) -> bool:
    """Return whether the client has closed its end: a client that still waits for the reply keeps it open."""
    try:
        connection.setblocking(False)
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
