"""Metrics of lock requests that are contended or given up; uncontended requests are not counted here."""

from collections.abc import Callable, Iterator

from prometheus_client import Counter, Gauge
from prometheus_client.core import Metric


class LockStats:
    """Counters of the lock manager; a prometheus collector."""

    def __init__(self) -> None:
        self._waiters = Gauge(
            "metastore_lock_waiters", "check_lock calls that wait for their lock here.", registry=None
        )
        self.wakes = Counter(
            "metastore_lock_wakes", "Waiting check_lock calls that were woken because a lock went.", registry=None
        )
        self.deadlocks = Counter("metastore_deadlocks", "Deadlocks that were ended.", registry=None)
        self.withdrawn = Counter(
            "metastore_locks_withdrawn",
            "Lock requests undone because the client was gone before it was answered.",
            registry=None,
        )
        self.repeated = Counter(
            "metastore_locks_repeated", "Lock requests that were recognised as repeated.", registry=None
        )
        self.orphans = Counter(
            "metastore_locks_orphaned", "Locks removed early because their client was gone.", registry=None
        )

    def watch_waiters(self, count: Callable[[], int]) -> None:
        """Show the number of waiters at each scrape."""
        self._waiters.set_function(count)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics for prometheus_client."""
        for metric in (self._waiters, self.wakes, self.deadlocks, self.withdrawn, self.repeated, self.orphans):
            yield from metric.collect()
