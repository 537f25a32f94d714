"""Having a bridge's tool carried out: by the daemon where one runs, else in this process."""

import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import orjson

from kite_memory.config import Config
from kite_memory.daemon import client
from kite_memory.errors import DaemonUnreachable
from kite_memory.tools import wire
from kite_memory.tools.access import Asker
from kite_memory.tools.wire import Json

if TYPE_CHECKING:
    from kite_memory.wiring import House

_PATIENCE = 60.0
_FRESH_SECONDS = 2.0
"""Without a daemon nobody tells us of what people do to the vault; so often, at most, is looked."""


class LocalBridge:
    """This machine's memory. Thread-safe. A daemon that comes or goes is noticed at the next call."""

    def __init__(self, settings: Config) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._closing = ExitStack()
        self._house: House | None = None
        self._compared = 0.0

    def close(self) -> None:
        self._closing.close()

    def perform(self, tool: str, arguments: Json, asker: Asker) -> Json:
        body = wire.asked(tool, arguments, asker)
        try:
            answer = orjson.loads(client.call(self._settings.state, "bridge", body, _PATIENCE))
        except DaemonUnreachable:
            answer = self._here().operations.perform("bridge", orjson.loads(body))
        return wire.result_of(answer)

    def _here(self) -> "House":
        """With its index in step with the vault, as a daemon's is."""
        from kite_memory.wiring import open_house  # half a second, and only without a daemon

        with self._lock:
            if self._house is None:
                self._house = self._closing.enter_context(open_house(self._settings))
                self._house.lay_out()
            if time.monotonic() - self._compared > _FRESH_SECONDS:
                self._house.pipeline.compare_vault()
                self._compared = time.monotonic()
            return self._house
