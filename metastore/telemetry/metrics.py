"""The metrics of the process, declared once; /metrics prints them.

Rule: names begin with ``metastore_`` and labels have few values: never a table, a user or an id. Calls are counted by
``telemetry.calls``, which costs the hot path no lock.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

_TICK_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800)


class Metrics:
    """The registry and its metrics."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        build = Gauge(
            "metastore_build_info", "Always 1; the release is in the label.", ["version"], registry=self.registry
        )
        build.labels(version).set(1)
        self.loops = LoopMetrics(self.registry)
        self._open_txns = Gauge(
            "metastore_open_txns", "Open transactions, as counted for hive.max.open.txns.", registry=self.registry
        )
        self._waiting = Gauge(
            "metastore_compactions_waiting", "Compactions that Workers of ours may claim now.", registry=self.registry
        )
        self._working = Gauge(
            "metastore_compactions_working", "Compactions that Workers of ours work on.", registry=self.registry
        )
        self._wanted = Gauge(
            "metastore_compaction_workers_wanted",
            "Workers that would do what arrives, and what waits within an hour.",
            registry=self.registry,
        )
        self._connections_in_use = Gauge(
            "metastore_database_connections_in_use", "Lent database connections.", registry=self.registry
        )
        self._connections_limit = Gauge(
            "metastore_database_connections_limit", "Most database connections of the process.", registry=self.registry
        )

    def watch_pool(self, lent: Callable[[], int], size: int) -> None:
        """Show the state of the database pool at each scrape."""
        self._connections_in_use.set_function(lent)
        self._connections_limit.set(size)

    def watch_open_txns(self, count: Callable[[], int]) -> None:
        """Show the number of open transactions."""
        self._open_txns.set_function(count)

    def watch_backlog(self, waiting: Callable[[], int], working: Callable[[], int], wanted: Callable[[], int]) -> None:
        """Show the cluster's compactions to do, and the number of Workers that would be enough."""
        self._waiting.set_function(waiting)
        self._wanted.set_function(wanted)
        self._working.set_function(working)

    def add(self, collector: Collector) -> None:
        """Print the metrics of a collector too."""
        self.registry.register(collector)

    def text(self, accept: str) -> tuple[str, bytes]:
        """Return content type and body in the format that the reader asks for."""
        encoder, content_type = choose_encoder(accept)
        return content_type, encoder(self.registry)


class LoopMetrics:
    """The metrics of the background loops.

    A report is a dataclass: its numbers are counts of finished work, lists count by their length, and ``failed`` names
    the steps that could not finish. Or it is one attempt, or a list of them: each with ``is_failure`` and ``step``.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ticks = Counter(
            "metastore_loop_ticks",
            "Passes of the background loops: done, partly, failed.",
            ["loop", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "metastore_loop_tick_seconds",
            "Duration of one pass of a background loop.",
            ["loop"],
            buckets=_TICK_BUCKETS,
            registry=registry,
        )
        self._last = Gauge(
            "metastore_loop_last_tick_timestamp_seconds",
            "When the last pass of a loop ended.",
            ["loop"],
            registry=registry,
        )
        self._done = Counter(
            "metastore_loop_done",
            "What the passes of a background loop did, by kind.",
            ["loop", "what"],
            registry=registry,
        )
        self._failures = Counter(
            "metastore_loop_step_failures",
            "Steps of a background loop that could not finish.",
            ["loop", "step"],
            registry=registry,
        )

    def ticked(self, loop: str, seconds: float, report: object, *, failed: bool) -> None:
        """Record one pass."""
        counts = dict(_counts(report))
        steps = getattr(report, "failed", None)
        tried: list[Any] = [
            attempt for attempt in (report if isinstance(report, list) else [report]) if hasattr(attempt, "is_failure")
        ]
        failures = [attempt.step for attempt in tried if attempt.is_failure] + (
            list(steps) if isinstance(steps, Mapping) else []
        )
        nothing_else = bool(tried) and len(failures) == len(tried)
        outcome = "failed" if failed or nothing_else else "partly" if failures else "done"
        self._ticks.labels(loop, outcome).inc()
        self._seconds.labels(loop).observe(seconds)
        self._last.labels(loop).set_to_current_time()
        for what, count in counts.items():
            self._done.labels(loop, what).inc(count)
        for step in failures:
            self._failures.labels(loop, step).inc()


def _counts(report: object) -> Iterator[tuple[str, int]]:
    if not dataclasses.is_dataclass(report):
        return
    for field in dataclasses.fields(report):
        value = getattr(report, field.name)
        if field.metadata.get("gauge"):
            continue  # The field is a state, not a count of work.
        if isinstance(value, int):
            yield field.name, int(value)
        elif isinstance(value, list | tuple | set | frozenset):
            yield field.name, len(value)
