"""The daemon as a process of its own, which outlives the command that starts it."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kite_memory.app.launch import daemon_command, daemon_environment
from kite_memory.cli.backend import daemon_runs
from kite_memory.config import Config
from kite_memory.daemon.client import DaemonSilent
from kite_memory.errors import KiteError
from kite_memory.system.private_files import make_private_folder

_SECONDS = 20.0
_LOG_SHOWN = 1 << 16


def start(settings: Config) -> None:
    """Returns when the daemon answers. Raises `KiteError` with its own last words if it does not come to that."""
    log = settings.state / "logs" / "start.log"
    make_private_folder(log.parent)
    detached: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        detached = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        started = subprocess.Popen(
            daemon_command(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **daemon_environment(settings)},
            cwd=Path.home() if Path.home().is_dir() else "/",  # no folder of the person's is kept busy
            **detached,
        )
    deadline = time.monotonic() + _SECONDS
    while not _answers():
        if started.poll() is not None or time.monotonic() > deadline:
            raise _failure(log, started.poll())
        time.sleep(0.05)


def _answers() -> bool:
    try:
        return daemon_runs()
    except DaemonSilent:  # there, but still busy with itself
        return False


def _failure(log: Path, code: int | None) -> KiteError:
    with log.open("rb") as file:
        told = file.read(_LOG_SHOWN).decode("utf-8", "replace").splitlines()
    said = {word: line.partition(": ")[2] for line in told for word in ("error", "hint") if line.startswith(f"{word}: ")}
    reason = said.get("error") or ("it takes too long" if code is None else f"it ended with exit code {code}")
    return KiteError(f"the daemon did not start: {reason}", hint=said.get("hint") or f"`kmem up --foreground` says more, and {log}")
