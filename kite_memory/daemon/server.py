"""The daemon's ear: takes requests at its address, has them answered by a few threads, and outlives every client.

One thread accepts and reads, without ever waiting for any single client, and hands whole requests to the workers; so
a client that connects and falls silent costs a file descriptor for two seconds and nothing else. With nobody calling,
no thread wakes.
"""

import queue
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from types import TracebackType

from kite_memory.daemon.listener import Transport, listen
from kite_memory.daemon.protocol import Failure, Reply, Request, render_reply
from kite_memory.daemon.reception import BUSY, Limits, Reception, Report, turn_away
from kite_memory.errors import KiteError

Handler = Callable[[Request], Reply]

_DEFAULT_LIMITS = Limits()


class Server:
    """Listens from `start` to `stop`. ``handle`` is called by several threads at once.

    A `KiteError` from ``handle`` is the client's to read. Anything else it raises is a bug of ours: the client is told
    that much, and ``report`` gets the exception, with a note on the operation. A client that has closed its end
    before its turn comes is not answered, nor its request handled. ``lost`` is called where a bug has made it deaf.
    """

    def __init__(
        self,
        state: Path,
        handle: Handler,
        *,
        report: Report,
        lost: Callable[[], None] = lambda: None,
        limits: Limits = _DEFAULT_LIMITS,
        transport: Transport = "auto",
    ) -> None:
        self._state = state
        self._handle = handle
        self._report = report
        self._lost = lost
        self._limits = limits
        self._transport: Transport = transport
        self._requests: queue.Queue[tuple[socket.socket, Request] | None] = queue.Queue(max(limits.waiting, limits.workers))
        self._threads: list[threading.Thread] = []
        self._reception: Reception | None = None

    def start(self) -> None:
        """When this returns, clients can connect. Raises as `listener.listen` does."""
        listener = listen(self._state, self._transport)
        self._reception = Reception(listener, self._limits, self._take, self._report, lost=self._lost)
        self._threads = [threading.Thread(target=self._reception.watch, name="kmem-reception", daemon=True)]
        for number in range(self._limits.workers):
            self._threads.append(threading.Thread(target=self._work, name=f"kmem-answer-{number}", daemon=True))
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
        while True:
            try:
                waiting = self._requests.get_nowait()
            except queue.Empty:
                break
            if waiting is not None:
                waiting[0].close()
        for _ in workers:
            self._requests.put(None)
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
        try:
            self._requests.put_nowait((connection, request))
        except queue.Full:
            turn_away(connection, BUSY)

    def _work(self) -> None:
        while (taken := self._requests.get()) is not None:
            connection, request = taken
            with connection:
                if not _has_left(connection):
                    self._send(connection, self._answer(request))

    def _answer(self, request: Request) -> Reply:
        try:
            return self._handle(request)
        except KiteError as error:
            return Failure(message=str(error), hint=error.hint, exit_code=error.exit_code)
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: even a SystemExit may not take a worker away unseen
            error.add_note(f"while the daemon answered {request.op!r}")
            self._report(error)
            return Failure(message=f"the daemon could not answer {request.op!r}: a bug of ours", exit_code=70)

    def _send(self, connection: socket.socket, reply: Reply) -> None:
        try:
            connection.settimeout(self._limits.write_seconds)
            connection.sendall(render_reply(reply))
        except OSError:
            pass  # whoever asked has gone; there is nobody left to tell


def _has_left(connection: socket.socket) -> bool:
    """Our clients keep their end open until they have read the reply; an end that is closed belongs to one that gave up."""
    try:
        connection.setblocking(False)
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
