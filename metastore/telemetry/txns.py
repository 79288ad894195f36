"""Metrics of transactions' ends in this process; the loop that ends expired ones counts those."""

from collections.abc import Iterator

from prometheus_client import Counter
from prometheus_client.core import Metric


class TxnStats:
    """Counters; a prometheus collector."""

    def __init__(self) -> None:
        self.committed = Counter(
            "metastore_txns_committed", "Commits answered without an error, repeated ones among them.", registry=None
        )
        self.aborted = Counter(
            "metastore_txns_aborted",
            "Transactions aborted because somebody asked for it, or because they lost a write conflict.",
            ["why"],
            registry=None,
        )
        for why in ("asked", "conflict"):
            self.aborted.labels(why)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics for prometheus_client."""
        yield from self.committed.collect()
        yield from self.aborted.collect()
