"""Paths of state, configuration, vault, socket, and the data folders that come with the code.

Standard library only and cheap to import: the hook client needs it at every prompt.
"""

import os
import sys

_SOCKET_PATH_LIMIT = 100
"""Longest socket path that is used, in bytes. Unix socket addresses end at 104 bytes (macOS) or 108 (Linux)."""


def _home() -> str:
    return os.path.expanduser("~")


def _kmem_home() -> str:
    return os.environ.get("KMEM_HOME", "")


def state_dir() -> str:
    """Return the state folder as an absolute, normalised path, since the socket's name may be a hash of it."""
    root = _kmem_home()
    if root:
        return os.path.join(os.path.abspath(root), "state")
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(_home(), ".local", "state")
    return os.path.abspath(os.path.join(base, "kite-memory"))


def config_file() -> str:
    root = _kmem_home()
    if root:
        return os.path.join(os.path.abspath(root), "config.toml")
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(_home(), ".config")
    return os.path.abspath(os.path.join(base, "kite-memory", "config.toml"))


def default_vault() -> str:
    root = _kmem_home()
    return os.path.join(os.path.abspath(root), "memory") if root else os.path.join(_home(), ".kite", "memory")


def socket_path(state: str) -> str:
    """Return the path of the daemon's socket.

    It is in the state folder, or in a runtime folder if that path is too long for a socket.
    """
    path = os.path.join(state, "daemon.sock")
    if len(os.fsencode(path)) <= _SOCKET_PATH_LIMIT:
        return path
    tag = f"{_stable_hash(state):016x}"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if not runtime or len(os.fsencode(runtime)) > 60:
        uid = os.getuid() if sys.platform != "win32" else 0
        runtime = f"/tmp/kmem-{uid}"  # noqa: S108 - the daemon checks owner and mode before it binds
    return os.path.join(runtime, f"kmem-{tag}.sock")


def _stable_hash(text: str) -> int:
    """Return the FNV-1a hash, 64 bits. `hashlib` would cost the hook client five milliseconds."""
    value = 0xCBF29CE484222325
    for byte in os.fsencode(text):
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def asset_folder(name: str) -> str:
    """Return a data folder: prompts, hooks or vault_template. It is inside the package of a wheel, and beside it in a checkout."""
    package = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(package, "assets", name)
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(package), name)
