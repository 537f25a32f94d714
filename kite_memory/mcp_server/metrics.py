"""What `kmem serve` counts, for Prometheus: how many, how they ended and how long they took. Never who asked, nor what for."""

from collections.abc import Callable

from kite_memory import __version__

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class MetricsMissing(Exception):
    """The package that counts is not installed."""


class Metrics:
    """Thread-safe. Raises `MetricsMissing` without ``prometheus-client``, which comes with ``kite-memory[team]``."""

    def __init__(self, *, ready: Callable[[], bool] = lambda: True, waiting: Callable[[], int] = lambda: 0) -> None:
        """``waiting`` is the number of connections whose request has not come yet."""
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
            "kmem_tool_seconds", "How long a call took.", ["tool"], buckets=SECONDS, registry=registry
        )
        self._written: Callable[[], bytes] = lambda: prometheus.generate_latest(registry)
        self.content_type = prometheus.CONTENT_TYPE_LATEST

    def request(self, outcome: str) -> None:
        self._requests.labels(outcome).inc()

    def call(self, tool: str, outcome: str, seconds: float) -> None:
        """``tool`` is one of ours: what others make up would grow the labels without bound."""
        self._calls.labels(tool, outcome).inc()
        self._seconds.labels(tool).observe(seconds)

    def text(self) -> bytes:
        return self._written()
