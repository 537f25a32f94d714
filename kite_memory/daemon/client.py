"""Requests to the running daemon from another process."""

from contextlib import suppress
from pathlib import Path
from threading import Event
from time import monotonic

from kite_memory import endpoint
from kite_memory.daemon.protocol import Failure, Garbage, Ok, reply_from
from kite_memory.errors import DaemonUnreachable, KiteError

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
            raise DaemonSilent("the daemon takes no more requests", hint=_RESTART) from error
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise DaemonUnreachable("no daemon is running", hint="`kmem up` starts it") from error
        except (OSError, ValueError) as error:
            raise DaemonUnreachable(f"the daemon cannot be reached: {error}", hint=_RESTART) from error
