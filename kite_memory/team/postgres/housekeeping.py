"""What a serving process does for the team's store while nobody waits for it."""

import logging
import threading
from typing import Final

from kite_memory.errors import KiteError
from kite_memory.team.postgres.store import PostgresStore

_PAUSE: Final = 600.0
_AT_ONCE: Final = 500

log = logging.getLogger("kite_memory.team")


class Housekeeping:
    """A thread: vectors for notes that have none in this space, and an end to what nobody refers to. Several servers may do so."""

    def __init__(self, store: PostgresStore, *, pause: float = _PAUSE) -> None:
        self._store = store
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="team-housekeeping", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                while not self._stop.is_set() and self._store.catch_up(_AT_ONCE):
                    pass
                self._store.sweep()
            except KiteError as error:
                log.warning("the team's store could not be tidied: %s", error)
            except Exception:  # the edge of a thread: the next time may go well
                log.exception("the team's store could not be tidied: a bug of ours")
            self._stop.wait(self._pause)
