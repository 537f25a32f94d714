# pathlib would cost the hook client milliseconds:
# ruff: noqa: PTH118, PTH123
"""How a process of ours reaches the daemon, and the frame that both sides speak.

The hook client pays for this module at every prompt, so it takes the bare `_socket`: the dressed-up `socket` costs eight
milliseconds, more than the rest of the interpreter's start.
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
"""What an asker sends back once a reply has been put to use."""

GREETING = b"KMEM1 hello "
NONCE_DIGITS = 32
TOKEN_DIGITS = 64


def frame(word: str, body: bytes) -> bytes:
    """``KMEM1 <word> <length>``, a newline, the body. The word is an operation, or, coming back, ``ok`` or ``error``."""
    return b"%s%s %d\n%s" % (_MAGIC, word.encode("ascii"), len(body), body)


def split_head(buffer: bytes | bytearray, longest: int) -> tuple[str, int, int] | None:
    """The word, the body's length and where the body starts; ``None`` while the first line is on its way.

    Raises `ValueError` as soon as the bytes cannot be a frame of at most ``longest`` bytes of body.
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
    """Where a daemon without unix sockets leaves its port and its secret."""
    return os.path.join(state, "daemon.port")


def patience_file(state: str) -> str:
    """Where a daemon that may think longer about a prompt says how many milliseconds longer."""
    return os.path.join(state, "daemon.patience")


def patience(state: str) -> float:
    """Seconds to add to the hook's deadline; none where nobody asked for any."""
    try:
        with open(patience_file(state), "rb") as file:
            return min(max(int(file.read(8)), 0), _MOST_PATIENCE) / 1000
    except (OSError, ValueError):
        return 0.0


def proof(token: str, nonce: bytes) -> bytes:
    """What only a daemon that knows the token can answer.

    A port outlives the daemon that held it: without this, whoever took it over would be handed the next prompt.
    """
    from _blake2 import blake2s  # loopback only; `hashlib` would cost milliseconds

    return blake2s(nonce, key=bytes.fromhex(token)).hexdigest().encode("ascii")


def peer_is_this_user(connection: Connection) -> bool:
    """Asks the kernel who holds the other end of a unix socket. Where it cannot say, the folder's mode has to do."""
    if sys.platform == "win32":
        return True
    if sys.platform == "linux":
        credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # pid, uid, gid
    elif sys.platform == "darwin" or sys.platform.startswith("freebsd"):
        credentials = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: version, uid, groups
    else:
        return True
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.getuid()


def connect(state: str, deadline: float) -> Connection:
    """A connection to this user's daemon. Raises `OSError` where there is none, `TimeoutError` past the deadline."""
    if hasattr(_socket, "AF_UNIX"):
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            _bound(connection, deadline)
            connection.connect(socket_path(state))
            if peer_is_this_user(connection):
                return connection
        except (FileNotFoundError, ConnectionRefusedError):
            pass  # this daemon may be one that had to do without a unix socket
        except BaseException:
            connection.close()
            raise
        connection.close()
    return _connect_to_port(state, deadline)


def exchange(connection: Connection, word: str, body: bytes, deadline: float, longest: int = LONGEST_REPLY) -> tuple[str, bytes]:
    """One request, one reply: its word and its body, whole. Raises `OSError`, or `ValueError` for a reply that isn't one."""
    _bound(connection, deadline)
    try:
        connection.sendall(frame(word, body))
    except (BrokenPipeError, ConnectionResetError):
        pass  # a server that refuses early has said why
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
    """Say that the reply has reached whom it was for. Raises `OSError` where the daemon no longer listens."""
    connection.sendall(RECEIVED)


def _connect_to_port(state: str, deadline: float) -> Connection:
    with open(port_file(state), "rb") as file:
        port, _, token = file.read(256).decode("ascii").strip().partition(" ")
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        _bound(connection, deadline)
        connection.connect(("127.0.0.1", int(port)))
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
    except BaseException:
        connection.close()
        raise
    return connection


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
