"""Having an operation carried out: by the daemon where one runs, else in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kite_memory import config
from kite_memory.errors import DaemonUnreachable

if TYPE_CHECKING:
    from kite_memory.wiring import House

_PATIENCE = 60.0


def perform(op: str, **arguments: Any) -> Any:
    """The operation's JSON value. The daemon's errors arrive as `KiteError`, as if it had happened here."""
    import orjson

    from kite_memory.daemon import client

    settings = config.load()
    try:
        return orjson.loads(client.call(settings.state, op, orjson.dumps(arguments), _PATIENCE))
    except DaemonUnreachable:
        with house() as here:
            return here.operations.perform(op, arguments)


def daemon_runs() -> bool:
    from kite_memory.daemon import client

    try:
        client.call(config.load().state, "ping", b"", 2.0)
    except DaemonUnreachable:
        return False
    return True


@contextmanager
def house() -> "Iterator[House]":
    """Everything wired up in this process, and closed again. Holds the daemon's lock where it is free."""
    from kite_memory.wiring import open_house

    with open_house(config.load()) as opened:
        yield opened
