"""Every metric of the process, declared once; /metrics prints them.

Rule: names begin with ``metastore_`` and labels have few values: never a table, a user or an id. Calls are counted by
``telemetry.calls``, which costs the hot path no lock.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

_TICK_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800)


class Metrics:
    """The registry and what is recorded into it."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        build = Gauge("metastore_build_info", "Always 1; the release is in the label.", ["version"],
                      registry=self.registry)
        build.labels(version).set(1)
        self.loop_ticks = Counter("metastore_loop_ticks", "Passes of the background loops.", ["loop", "outcome"],
                                  registry=self.registry)
        self.loop_seconds = Histogram("metastore_loop_tick_seconds", "Duration of one pass of a background loop.",
                                      ["loop"],
                                      buckets=_TICK_BUCKETS, registry=self.registry)
        self._connections_in_use = Gauge("metastore_database_connections_in_use", "Lent database connections.",
                                         registry=self.registry)
        self._connections_limit = Gauge("metastore_database_connections_limit",
                                        "Most database connections of the process.",
                                        registry=self.registry)

    def watch_pool(self, lent: Callable[[], int], size: int) -> None:
        """Show the database pool as it is when asked."""
        self._connections_in_use.set_function(lent)
        self._connections_limit.set(size)

    def add(self, collector: Collector) -> None:
        """Print the metrics of a collector too."""
        self.registry.register(collector)

    def text(self, accept: str) -> tuple[str, bytes]:
        """Content type and body in the format that the reader asks for."""
        encoder, content_type = choose_encoder(accept)
        return content_type, encoder(self.registry)
