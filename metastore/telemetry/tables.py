"""Metrics of requests for tables."""

from collections.abc import Iterator

from prometheus_client import Counter
from prometheus_client.core import Metric


class TableStats:
    """Counters; a prometheus collector."""

    def __init__(self) -> None:
        self.refused = Counter(
            "metastore_tables_refused",
            "Transactional tables refused to clients that cannot handle them.",
            ["kind"],
            registry=None,
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics for prometheus_client."""
        yield from self.refused.collect()
