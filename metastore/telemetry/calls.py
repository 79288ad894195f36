"""Counts and durations of calls, cheap enough for the hot path.

Rule: recording takes no lock. Each thread counts in cells of its own and a scrape adds them up, so no count is lost and
no thread waits.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_Cells = dict[tuple[str, str], list[float]]


class Gauges(Protocol):
    """The server's present figures."""

    @property
    def connections(self) -> int:
        """The number of open client connections."""

    @property
    def in_flight(self) -> int:
        """The number of calls in progress."""

    @property
    def refused_connections(self) -> int:
        """The number of connections closed at once since the start because there were too many."""

    @property
    def limits_reached(self) -> Mapping[str, int]:
        """The number of times that clients of an address reached each limit, by the limit."""

    @property
    def failed_handshakes(self) -> int:
        """The number of TLS handshakes since the start that ended without a connection."""

    @property
    def certificate_expires(self) -> float:
        """The seconds since 1970 at which the Thrift port's certificate ends; infinite without TLS."""

    @property
    def refused_logins(self) -> int:
        """The number of clients since the start that could not prove who they are."""


class CallStats:
    """Calls by method and outcome, durations by method; a prometheus collector."""

    def __init__(self, name: str = "metastore_call", what: str = "Thrift calls answered.") -> None:
        """Prepare counters; ``name``: prefix of the metrics' names; ``what``: the counted things."""
        self._name, self._what = name, what
        self._own = threading.local()
        self._all: list[_Cells] = []
        self.server: Gauges | None = None

    def record(self, method: str, outcome: str, seconds: float) -> None:
        """Count one call."""
        try:
            cells: _Cells = self._own.cells
        except AttributeError:
            cells = self._own.cells = {}
            self._all.append(cells)
        cell = cells.get((method, outcome))
        if cell is None:  # A cell holds seconds, then calls by bucket.
            cell = cells[method, outcome] = [0.0] * (len(BUCKETS) + 2)
        cell[0] += seconds
        cell[bisect_left(BUCKETS, seconds) + 1] += 1

    def cells(self) -> dict[tuple[str, str], list[float]]:
        """Return total seconds and calls by bucket, for each method and outcome."""
        total: dict[tuple[str, str], list[float]] = {}
        for cells in list(self._all):
            for key, cell in list(cells.items()):
                total[key] = [a + b for a, b in zip(total.get(key, [0.0] * len(cell)), cell, strict=True)]
        return total

    def counts(self) -> dict[str, int]:
        """Return calls by method."""
        totals: dict[str, int] = {}
        for (method, _), cell in self.cells().items():
            totals[method] = totals.get(method, 0) + int(sum(cell[1:]))
        return totals

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics for prometheus_client."""
        cells = self.cells()
        calls = CounterMetricFamily(f"{self._name}s", self._what, labels=["method", "outcome"])
        for (method, outcome), cell in sorted(cells.items()):
            calls.add_metric([method, outcome], sum(cell[1:]))
        yield calls
        durations: dict[str, list[float]] = {}
        for (method, _), cell in cells.items():
            durations[method] = [a + b for a, b in zip(durations.get(method, [0.0] * len(cell)), cell, strict=True)]
        histogram = HistogramMetricFamily(
            f"{self._name}_seconds", "From the decoded request to the encoded answer.", labels=["method"]
        )
        for method, cell in sorted(durations.items()):
            histogram.add_metric([method], buckets=list(_cumulative(cell[1:])), sum_value=cell[0])
        yield histogram
        if self.server is not None:
            yield GaugeMetricFamily("metastore_connections", "Open client connections.", self.server.connections)
            yield GaugeMetricFamily("metastore_calls_in_flight", "Calls being worked on.", self.server.in_flight)
            yield CounterMetricFamily(
                "metastore_connections_refused",
                "Connections closed at once because there were too many.",
                self.server.refused_connections,
            )
            reached = CounterMetricFamily(
                "metastore_limit_reached",
                "Times that the clients of an address reached a metastore.limit.",
                labels=["limit"],
            )
            for kind, times in self.server.limits_reached.items():
                reached.add_metric([kind], times)
            yield reached
            yield CounterMetricFamily(
                "metastore_tls_handshakes_failed",
                "TLS handshakes that ended without a connection.",
                self.server.failed_handshakes,
            )
            yield GaugeMetricFamily(
                "metastore_certificate_expires_timestamp_seconds",
                "When the Thrift port's certificate ends; +Inf without TLS.",
                self.server.certificate_expires,
            )
            yield CounterMetricFamily(
                "metastore_logins_refused",
                "Clients that could not prove who they are (Kerberos, delegation token).",
                self.server.refused_logins,
            )


def _cumulative(counts: Iterable[float]) -> Iterator[tuple[str, float]]:
    total = 0.0
    for bound, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
        total += count
        yield bound, total
