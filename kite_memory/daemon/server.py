"""The daemon's ear: takes requests at its address, has them answered by a few threads, and outlives every client.

One thread accepts and reads, without ever waiting for any single client, and hands whole requests to the workers; so
a client that connects and falls silent costs a file descriptor for two seconds and nothing else. With nobody calling,
no thread wakes.
"""

import socket
import threading
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from time import monotonic
from types import TracebackType

from kite_memory.daemon.acceptor import BUSY, Limits, Reception, Report, turn_away
from kite_memory.daemon.listener import Transport, listen
from kite_memory.daemon.protocol import Failure, Held, Reply, Request, render_reply
from kite_memory.endpoint import RECEIVED
from kite_memory.errors import KiteError

Handler = Callable[[Request], Reply | Held]

_DEFAULT_LIMITS = Limits()

_Asked = tuple[socket.socket, Request]


class _Waiting:
    """Requests that wait for a worker, urgent ones first; workers that are reserved for these are given no others."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._for_all = threading.Condition(self._lock)
        self._for_reserved = threading.Condition(self._lock)
        self._urgent: deque[_Asked] = deque()
        self._others: deque[_Asked] = deque()
        self._closed = False

    def put(self, asked: _Asked, *, urgent: bool) -> bool:
        """Whether there was room for it; the room of urgent requests is their own."""
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
        """Waits for a request; ``None`` once it is closed."""
        with self._lock:
            while not self._closed:
                if self._urgent:
                    return self._urgent.popleft()
                if self._others and not reserved:
                    return self._others.popleft()
                (self._for_reserved if reserved else self._for_all).wait()
            return None

    def close(self) -> list[_Asked]:
        """What nobody will answer any more."""
        with self._lock:
            self._closed = True
            left = [*self._urgent, *self._others]
            self._urgent.clear()
            self._others.clear()
            self._for_all.notify_all()
            self._for_reserved.notify_all()
            return left


class Server:
    """Listens from `start` to `stop`. ``handle`` is called by several threads at once.

    A `KiteError` from ``handle`` is the client's to read. Anything else it raises is a bug of ours: the client is told
    that much, and ``report`` gets the exception, with a note on the operation. A client that has closed its end
    before its turn comes is not answered, nor its request handled. ``lost`` is called where a bug has made it deaf.
    Requests of the ``urgent`` names have workers of their own: however slow the others are, these do not wait for them.
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
        self._reception: Reception | None = None

    def start(self) -> None:
        """When this returns, clients can connect. Raises as `listener.listen` does."""
        listener = listen(self._state, self._transport)
        self._waiting = _Waiting(max(self._limits.waiting, self._limits.workers))
        self._reception = Reception(listener, self._limits, self._take, self._report, lost=self._lost)
        self._threads = [threading.Thread(target=self._reception.watch, name="kmem-reception", daemon=True)]
        for number in range(self._limits.workers + (self._limits.reserved if self._urgent else 0)):
            reserved = number >= self._limits.workers
            name = f"kmem-{'hook' if reserved else 'answer'}-{number}"
            self._threads.append(threading.Thread(target=self._work, args=(reserved,), name=name, daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """The address is gone at once; requests being answered get ``stop_seconds`` to end. Twice does no harm."""
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
            if worker is not threading.current_thread():  # a request may be what stops us
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
            case Held(reply=reply, arrived=arrived, lost=lost):
                received = self._send(connection, reply) and self._is_acknowledged(connection)
                try:
                    (arrived if received else lost)()
                except Exception as error:  # noqa: BLE001 - the edge of a thread
                    error.add_note(f"after the daemon answered {request.op!r}")
                    self._report(error)
            case reply:
                self._send(connection, reply)

    def _answer(self, request: Request) -> Reply | Held:
        try:
            return self._handle(request)
        except KiteError as error:
            return Failure(message=str(error), hint=error.hint, exit_code=error.exit_code)
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: even a SystemExit may not take a worker away unseen
            error.add_note(f"while the daemon answered {request.op!r}")
            self._report(error)
            return Failure(message=f"the daemon could not answer {request.op!r}: a bug of ours", exit_code=70)

    def _send(self, connection: socket.socket, reply: Reply) -> bool:
        """Whether it is on its way; whoever asked may have gone."""
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
    """Our clients keep their end open until they have read the reply; an end that is closed belongs to one that gave up."""
    try:
        connection.setblocking(False)
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
