"""Who asked for what, and how it ended. Never what was said: no arguments, no results, no tokens."""

import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from kite_memory.system.private_files import make_private_folder

_LONGEST_FILE = 8 << 20
_LONGEST_WORD = 200


class Audit:
    """Lines of JSON in a file for its owner alone. At 8 MB it becomes ``….1``, and the one before that goes. Thread-safe.

    A full disk must not keep anybody from their memory: what cannot be written is counted in the next line that can.
    """

    def __init__(
        self, file: Path, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC), longest: int = _LONGEST_FILE
    ) -> None:
        make_private_folder(file.parent)
        self._file = file
        self._clock = clock
        self._longest = longest
        self._lock = threading.Lock()
        self._lost = 0

    def note(self, *, token: str, address: str, what: str, outcome: str, took_ms: float | None = None) -> None:
        """``token`` is its name, empty for nobody's."""
        told = {"at": self._clock().isoformat(timespec="milliseconds"), "token": token, "address": address, "what": what}
        told = {name: value[:_LONGEST_WORD] for name, value in {**told, "outcome": outcome}.items()}
        took = {} if took_ms is None else {"took_ms": round(took_ms, 1)}
        with self._lock:
            lost = {"lost_before": self._lost} if self._lost else {}
            try:
                self._write(json.dumps({**told, **took, **lost}).encode("ascii") + b"\n")
                self._lost = 0
            except OSError:
                self._lost += 1

    def _write(self, line: bytes) -> None:
        handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            full = os.fstat(handle).st_size + len(line) > self._longest
            if not full:
                os.write(handle, line)
        finally:
            os.close(handle)
        if full:
            self._file.replace(self._file.with_name(f"{self._file.name}.1"))
            self._write(line)
