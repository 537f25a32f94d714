"""What the HTTP server records of requests and calls: lines in an audit log, and Prometheus metrics."""

import errno
import json
import os
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from kite_memory import __version__
from kite_memory.system import utc_now
from kite_memory.system.private_files import make_private_folder

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONGEST_FILE = 8 << 20
_LONGEST_WORD = 200


class MetricsMissing(Exception):
    """The metrics package is not installed."""


class Metrics:
    """Prometheus metrics.

    Thread-safe. Raises `MetricsMissing` without ``prometheus-client``, which comes with ``kite-memory[team]``.
    """

    def __init__(self, *, ready: Callable[[], bool] = lambda: True, waiting: Callable[[], int] = lambda: 0) -> None:
        """Create the metrics. ``waiting`` returns the number of connections that have not sent a request yet."""
        try:
            import prometheus_client as prometheus
        except ModuleNotFoundError as error:
            if error.name != "prometheus_client":
                raise
            raise MetricsMissing from error
        registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=registry)
        prometheus.Info("kmem_build", "Version of kite-memory.", registry=registry).info({"version": __version__})
        prometheus.Gauge("kmem_ready", "1 once the store answers.", registry=registry).set_function(lambda: float(ready()))
        prometheus.Gauge(
            "kmem_connections_waiting", "Connections that have not sent a request yet.", registry=registry
        ).set_function(lambda: float(waiting()))
        self._requests = prometheus.Counter(
            "kmem_http_requests", "HTTP requests, by why they were refused; ok for those let in.", ["outcome"], registry=registry
        )
        self._calls = prometheus.Counter(
            "kmem_tool_calls", "Calls of tools, by how they ended.", ["tool", "outcome"], registry=registry
        )
        self._seconds = prometheus.Histogram(
            "kmem_tool_seconds", "How long a call took.", ["tool"], buckets=_SECONDS, registry=registry
        )
        self._written: Callable[[], bytes] = lambda: prometheus.generate_latest(registry)
        self.content_type = prometheus.CONTENT_TYPE_LATEST

    def request(self, outcome: str) -> None:
        self._requests.labels(outcome).inc()

    def call(self, tool: str, outcome: str, seconds: float) -> None:
        """Count a call. ``tool`` must be a declared tool's name, since arbitrary names would let the labels grow without bound."""
        self._calls.labels(tool, outcome).inc()
        self._seconds.labels(tool).observe(seconds)

    def text(self) -> bytes:
        return self._written()


class Audit:
    """Audit log: lines of JSON in a file readable by its owner only. Thread-safe.

    At 8 MB the file is renamed to ``….1``, replacing the previous one. A full disk does not fail requests; lines that could not be
    written are counted in the next one that is.
    """

    def __init__(self, file: Path, *, clock: Callable[[], datetime] = utc_now, longest: int = _LONGEST_FILE) -> None:
        make_private_folder(file.parent)
        self._file = file
        self._clock = clock
        self._longest = longest
        self._lock = threading.Lock()
        self._lost = 0

    def note(self, *, token: str, address: str, what: str, outcome: str, took_ms: float | None = None) -> None:
        """Write a line. ``token`` is the token's name, empty for a request without one."""
        entry = {"at": self._clock().isoformat(timespec="milliseconds"), "token": token, "address": address, "what": what}
        entry = {name: value[:_LONGEST_WORD] for name, value in {**entry, "outcome": outcome}.items()}
        took = {} if took_ms is None else {"took_ms": round(took_ms, 1)}
        with self._lock:
            lost = {"lost_before": self._lost} if self._lost else {}
            try:
                self._write(json.dumps({**entry, **took, **lost}).encode("ascii") + b"\n")
                self._lost = 0
            except OSError:
                self._lost += 1

    def _write(self, line: bytes) -> None:
        handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            full = os.fstat(handle).st_size + len(line) > self._longest
            if not full and os.write(handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)
        if full:
            self._file.replace(self._file.with_name(f"{self._file.name}.1"))
            self._write(line)
