"""Being told that somebody has written."""

import hashlib
import threading
from collections.abc import Callable
from typing import Final

import psycopg

from kite_memory.team.postgres.connections import Connection, Connections

_LOOK_UP: Final = 0.5
_RECONNECT: Final = 2.0


class Listener:
    """A thread and a connection of its own. What comes in at once is told once; after a reconnection it tells, in case."""

    def __init__(self, connections: Connections, on_change: Callable[[], None]) -> None:
        self._connections = connections
        self._on_change = on_change
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="team-listener", daemon=True)
        self._thread.start()

    @staticmethod
    def channel(tenant: str) -> str:
        return "kite_" + hashlib.sha256(tenant.encode()).hexdigest()[:32]

    def wait_until_ready(self, timeout: float) -> bool:
        """Whether what is written from now on is heard."""
        return self._ready.wait(timeout)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        again = False
        while not self._stop.is_set():
            try:
                with self._connections.connect() as connection:
                    self._heed(connection, again)
            except psycopg.Error:
                self._ready.clear()
            again = True
            self._stop.wait(_RECONNECT)

    def _heed(self, connection: Connection, again: bool) -> None:
        connection.execute(f'LISTEN "{self.channel(self._connections.tenant)}"'.encode())
        self._ready.set()
        if again:
            self._on_change()
        while not self._stop.is_set():
            if list(connection.notifies(timeout=_LOOK_UP, stop_after=1)):
                self._on_change()
