"""The daemon's address: taken privately, given back without a trace."""

import errno
import os
import secrets
import socket
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Literal

from kite_memory import endpoint
from kite_memory.errors import DaemonRunning, KiteError
from kite_memory.paths import socket_path
from kite_memory.system.private_files import NotPrivate, make_private_folder, replace_file

Transport = Literal["auto", "unix", "port"]

_BACKLOG = 64
_NO_SOCKETS_HERE = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EAFNOSUPPORT}
_SECONDS_TO_ANSWER = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """``token`` is empty for a unix socket, where the kernel tells who calls."""

    socket: socket.socket
    address: Path
    identity: tuple[int, int]
    token: str = ""

    def close(self) -> None:
        """Removes the address only while it is still this listener's."""
        self.socket.close()
        try:
            found = self.address.lstat()
            if (found.st_dev, found.st_ino) == self.identity:
                self.address.unlink()
        except FileNotFoundError:
            pass


def listen(state: Path, transport: Transport = "auto") -> Listener:
    """Raises `DaemonRunning` if somebody answers there, `KiteError` if the address cannot be taken safely.

    What nobody answers is a leftover and is replaced. Whoever calls holds the `DaemonLock`: two that look at one
    leftover at the same time would not see each other.
    """
    make_private_folder(state)
    _refuse_if_answered(state)
    if transport == "port" or (transport == "auto" and not hasattr(socket, "AF_UNIX")):
        return _listen_on_port(state)
    try:
        listener = _listen_on_socket(state)
    except OSError as error:
        if transport == "auto" and error.errno in _NO_SOCKETS_HERE:
            return _listen_on_port(state)
        at = socket_path(str(state))
        raise KiteError(f"cannot listen at {at}: {error.strerror or error}", hint="is the disk full or read-only?") from error
    Path(endpoint.port_file(str(state))).unlink(missing_ok=True)
    return listener


def _refuse_if_answered(state: Path) -> None:
    try:
        endpoint.connect(str(state), monotonic() + _SECONDS_TO_ANSWER).close()
    except (BlockingIOError, TimeoutError):
        pass  # hung, or a full house: still somebody's
    except (OSError, ValueError):
        return
    raise DaemonRunning(f"another process answers at {socket_path(str(state))}", hint="`kmem down` stops it")


def _listen_on_socket(state: Path) -> Listener:
    path = Path(socket_path(str(state)))
    if path.parent != state:
        _make_runtime_folder(path.parent)
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise KiteError(f"{path} is in the way: it is not a socket", hint="move it away")
        path.unlink()
    except FileNotFoundError:
        pass
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))  # nobody else can come near it, whatever the umask: the folder is closed
        path.chmod(0o600)
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    found = path.lstat()
    return Listener(socket=listening, address=path, identity=(found.st_dev, found.st_ino))


def _make_runtime_folder(folder: Path) -> None:
    """Its parent may be everybody's: another user could have put a folder or a link of theirs in its place."""
    if sys.platform == "win32":
        raise KiteError(f"{folder} is no place for a socket")
    try:
        folder.mkdir(0o700)
        folder.chmod(0o700)
    except FileExistsError:
        pass
    except FileNotFoundError as error:
        raise KiteError(f"cannot make the runtime folder {folder}", hint="set KMEM_HOME to a shorter path") from error
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise NotPrivate(f"{folder} is not a folder of yours alone", hint="remove it, or set KMEM_HOME to a shorter path")


def _listen_on_port(state: Path) -> Listener:
    """Where there are no unix sockets: loopback, and a secret that only this user can read."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    path = Path(endpoint.port_file(str(state)))
    try:
        listening.bind(("127.0.0.1", 0))
        listening.listen(_BACKLOG)
        token = secrets.token_hex(endpoint.TOKEN_DIGITS // 2)
        replace_file(path, f"{listening.getsockname()[1]} {token}\n".encode())
    except BaseException:
        listening.close()
        raise
    found = path.lstat()
    return Listener(socket=listening, address=path, identity=(found.st_dev, found.st_ino), token=token)
