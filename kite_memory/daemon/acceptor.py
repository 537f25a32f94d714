"""The thread that accepts connections and reads requests, without ever waiting for any single client."""

import hmac
import selectors
import socket
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from kite_memory import endpoint
from kite_memory.daemon.listener import Listener
from kite_memory.daemon.protocol import Failure, Garbage, NeedMore, Reply, Request, parse_request, render_reply

_PIECE = 1 << 18
_PAUSE_WITHOUT_DESCRIPTORS = 0.5

Take = Callable[[socket.socket, Request], None]
Report = Callable[[BaseException], None]

BUSY = Failure(message="the daemon is busy", hint="try again in a moment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``waiting`` bounds both the requests read but not yet answered and the connections still being read. Beside the ``workers``
    for all requests there are those ``reserved`` for urgent ones.
    """

    workers: int = 8
    reserved: int = 4
    waiting: int = 64
    read_seconds: float = 2.0
    write_seconds: float = 2.0
    stop_seconds: float = 5.0


@dataclass(slots=True, kw_only=True, eq=False)
class _Caller:
    """One connection until its request is whole. A port's callers are strangers until they have named the token."""

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


class Reception:
    """From `watch` to `close`. Whole requests go to ``take``, which must not wait either.

    ``lost`` is called where an error that no one expected ends it before its time: nobody hears any caller then.
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
            pass  # it has ended already

    def watch(self) -> None:
        """Returns after `close`, with the address given back."""
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
                self._listener.close()
                for caller in self._callers.values():
                    caller.connection.close()
                self._callers.clear()
                self._woken.close()
                self._wake.close()

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
        """``None``, for ever, while nobody is being read: an idle daemon does not wake."""
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
    """Says so if that can be said at once, and ends the connection."""
    with connection:
        try:
            connection.setblocking(False)
            connection.send(render_reply(why))
        except OSError:
            pass
