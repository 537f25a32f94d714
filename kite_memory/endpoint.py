# pathlib would cost the hook client milliseconds:
# ruff: noqa: PTH118, PTH123
"""Connection to the daemon, and the frame format of requests and replies.

The hook client imports this module at every prompt, so it uses the bare `_socket`: importing `socket` costs eight milliseconds,
more than the rest of the interpreter's start.
"""

import _socket
import os
import sys
from time import monotonic

from kite_memory.paths import socket_path

LONGEST_REQUEST = 4 << 20
LONGEST_REPLY = 16 << 20

_MAGIC = b"KMEM1 "
_LONGEST_HEAD = 96
_LONGEST_WORD = 64
_MOST_PATIENCE = 10_000
_WORD_LETTERS = b"abcdefghijklmnopqrstuvwxyz0123456789:_-"

Connection = _socket.socket

RECEIVED = b"\x06"
"""Byte that a client sends back once it has used a reply."""

GREETING = b"KMEM1 hello "
NONCE_DIGITS = 32
TOKEN_DIGITS = 64


def frame(word: str, body: bytes) -> bytes:
    """Return ``KMEM1 <word> <length>``, a newline and the body. The word is an operation or, in a reply, ``ok`` or ``error``."""
    return b"%s%s %d\n%s" % (_MAGIC, word.encode("ascii"), len(body), body)


def split_head(buffer: bytes | bytearray, longest: int) -> tuple[str, int, int] | None:
    """Return the word, the body's length and the body's offset, or ``None`` while the first line is incomplete.

    Raises `ValueError` as soon as the bytes cannot be a frame with a body of at most ``longest`` bytes.
    """
    end = buffer.find(b"\n", 0, _LONGEST_HEAD)
    if end < 0:
        if len(buffer) >= _LONGEST_HEAD or not _MAGIC.startswith(bytes(buffer[: len(_MAGIC)])):
            raise ValueError("not a frame")
        return None
    magic, _, rest = bytes(buffer[:end]).partition(b" ")
    word, _, length = rest.partition(b" ")
    if magic + b" " != _MAGIC or not 0 < len(word) <= _LONGEST_WORD or word.translate(None, _WORD_LETTERS):
        raise ValueError("not a frame")
    if not length.isdigit() or len(length) > 9 or int(length) > longest:
        raise ValueError("too long, or not a length")
    return word.decode("ascii"), int(length), end + 1


def port_file(state: str) -> str:
    """Return the path of the file where a daemon without unix sockets stores its port and its token."""
    return os.path.join(state, "daemon.port")


def patience_file(state: str) -> str:
    """Return the path of the file with the milliseconds that the daemon may take longer for a prompt."""
    return os.path.join(state, "daemon.patience")


def patience(state: str) -> float:
    """Return the seconds to add to the hook's deadline, 0 if the file is missing or unreadable."""
    try:
        with open(patience_file(state), "rb") as file:
            return min(max(int(file.read(8)), 0), _MOST_PATIENCE) / 1000
    except (OSError, ValueError):
        return 0.0


def proof(token: str, nonce: bytes) -> bytes:
    """Return the answer to ``nonce`` that only a daemon with the token can give.

    A port can be taken by another program after the daemon ends: without this check, that program would receive the next prompt.
    """
    from _blake2 import blake2s  # loopback only; `hashlib` would cost milliseconds

    return blake2s(nonce, key=bytes.fromhex(token)).hexdigest().encode("ascii")


def peer_is_this_user(connection: Connection) -> bool:
    """Return whether the kernel reports this user at the other end of a unix socket.

    Return true on platforms without such a report; there, the folder's permissions are the protection.
    """
    if sys.platform == "win32":
        return True
    if sys.platform == "linux":
        credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # pid, uid, gid
    elif sys.platform == "darwin" or sys.platform.startswith("freebsd"):
        credentials = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: version, uid, groups
    else:
        return True
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.getuid()


class NoProof(TimeoutError):
    """What has the daemon's port did not show in time that it is the daemon."""


def connect(state: str, deadline: float) -> Connection:
    """Connect to this user's daemon. Raises `OSError` if it is not running, `TimeoutError` past the deadline."""
    if hasattr(_socket, "AF_UNIX"):
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            _bound(connection, deadline)
            connection.connect(socket_path(state))
            if peer_is_this_user(connection):
                return connection
        except (FileNotFoundError, ConnectionRefusedError):
            pass  # the daemon may be listening on a port instead
        except BaseException:
            connection.close()
            raise
        connection.close()
    return _connect_to_port(state, deadline)


def exchange(connection: Connection, word: str, body: bytes, deadline: float, longest: int = LONGEST_REPLY) -> tuple[str, bytes]:
    """Send one request and return the word and the body of its reply. Raises `OSError`, or `ValueError` for an invalid reply."""
    _bound(connection, deadline)
    try:
        connection.sendall(frame(word, body))
    except (BrokenPipeError, ConnectionResetError):
        pass  # a server that refuses early has sent its reason
    reply = bytearray()
    while (head := split_head(reply, longest)) is None:
        reply += _some(connection, _LONGEST_HEAD, deadline)
    answer, length, start = head
    while len(reply) < start + length:
        reply += _some(connection, min(start + length - len(reply), 1 << 18), deadline)
    if len(reply) > start + length:
        raise ValueError("more than was announced")
    return answer, bytes(reply[start:])


def acknowledge(connection: Connection) -> None:
    """Confirm that the reply was delivered. Raises `OSError` if the daemon no longer listens."""
    connection.sendall(RECEIVED)


def _connect_to_port(state: str, deadline: float) -> Connection:
    with open(port_file(state), "rb") as file:
        port, _, token = file.read(256).decode("ascii").strip().partition(" ")
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        _introduce(connection, int(port), token, deadline)
    except TimeoutError as error:
        connection.close()
        raise NoProof from error
    except BaseException:
        connection.close()
        raise
    return connection


def _introduce(connection: Connection, port: int, token: str, deadline: float) -> None:
    """Have the daemon prove itself, and only then send the token."""
    _bound(connection, deadline)
    connection.connect(("127.0.0.1", port))
    nonce = os.urandom(NONCE_DIGITS // 2).hex().encode("ascii")
    connection.sendall(GREETING + nonce + b"\n")
    answer = b""
    while len(answer) <= TOKEN_DIGITS:
        answer += _some(connection, TOKEN_DIGITS + 1 - len(answer), deadline)
    if answer.startswith(_MAGIC):
        raise BlockingIOError("a full house")
    if answer != proof(token, nonce) + b"\n":
        raise ConnectionRefusedError("another program has taken the daemon's port")
    connection.sendall(token.encode("ascii") + b"\n")


def _some(connection: Connection, at_most: int, deadline: float) -> bytes:
    _bound(connection, deadline)
    if not (received := connection.recv(at_most)):
        raise ConnectionResetError("cut in the middle")
    return received


def _bound(connection: Connection, deadline: float) -> None:
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError
    connection.settimeout(left)
