"""The state of compactions, transactions, locks and the catalog as metrics. Hive calls most of them acid metrics.

Rule: a loop measures the figures; a reader of /metrics never asks the database. Pools are few, and a label.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

STATES = ("initiated", "working", "ready_for_cleaning", "succeeded", "failed", "did_not_initiate", "refused", "aborted")
Measures = Sequence[tuple[str, str, float]]
"""Measures as (figure, object, value)."""


class _Gauge(NamedTuple):
    name: str
    help: str
    label: str = ""
    always: tuple[str, ...] = ()
    """The labels for which it is 0 if nothing was measured."""


_QUEUED = STATES[:3]
_KINDS = ("replication", "other")
GAUGES = {
    "compactions": _Gauge(
        "metastore_compactions", "Tables and partitions by the state of their newest compaction.", "state", STATES
    ),
    "oldest": _Gauge(
        "metastore_compaction_oldest_age_seconds", "How long the oldest compaction is in a state.", "state", _QUEUED
    ),
    "pool_waiting": _Gauge("metastore_compaction_pool_waiting", "Compactions that wait for Workers of a pool.", "pool"),
    "pool_working": _Gauge("metastore_compaction_pool_working", "Compactions that Workers of a pool work on.", "pool"),
    "pool_oldest": _Gauge(
        "metastore_compaction_pool_oldest_age_seconds", "How long the oldest has waited for a pool.", "pool"
    ),
    "cleaning": _Gauge(
        "metastore_compaction_oldest_cleaning_age_seconds", "Age of the oldest cleaning that was begun and is not done."
    ),
    "workers": _Gauge(
        "metastore_compaction_workers",
        "Workers by release that began a compaction within hive.metastore.compactor.worker.detect.multiple.versions."
        "threshold.",
        "version",
    ),
    "initiators": _Gauge(
        "metastore_compaction_initiators", "Initiators by release that asked for a compaction within that.", "version"
    ),
    "unattended_writes": _Gauge(
        "metastore_compaction_unattended_writes",
        "Commits of a day to tables whose automatic compaction is switched off, of those with most.",
        "table",
    ),
    "open_txns": _Gauge("metastore_open_txns_by_kind", "Open transactions, as last measured.", "kind", _KINDS),
    "open_txn_id": _Gauge(
        "metastore_oldest_open_txn_id", "Lowest id of an open transaction; 0: there is none.", "kind", _KINDS
    ),
    "open_txn": _Gauge("metastore_oldest_open_txn_age_seconds", "Age of the oldest open transaction.", "kind", _KINDS),
    "aborted_txns": _Gauge("metastore_aborted_txns", "Aborted transactions that have left something to clean."),
    "aborted_txn_id": _Gauge("metastore_oldest_aborted_txn_id", "Lowest id of them; 0: there is none."),
    "aborted_txn": _Gauge("metastore_oldest_aborted_txn_age_seconds", "Age of the oldest of them."),
    "many_aborts": _Gauge(
        "metastore_tables_with_many_aborts",
        "Tables and partitions with more aborted transactions than hive.metastore.acidmetrics.table.aborted.txns."
        "threshold.",
    ),
    "locks": _Gauge("metastore_locks", "Locks that are held or requested."),
    "lock": _Gauge("metastore_oldest_lock_age_seconds", "Age of the oldest lock that is held."),
    "lock_wait": _Gauge("metastore_oldest_lock_wait_seconds", "How long the oldest waiting lock request has waited."),
    "databases": _Gauge("metastore_databases", "Databases of all catalogs."),
    "tables": _Gauge("metastore_tables", "Tables and views of all catalogs."),
    "partitions": _Gauge("metastore_partitions", "Partitions of all catalogs, as PostgreSQL estimates them."),
    "deltas": _Gauge("metastore_compaction_deltas", "Deltas that readers read, of those with most.", "table"),
    "small_deltas": _Gauge("metastore_compaction_small_deltas", "Those far smaller than their base.", "table"),
    "obsolete_deltas": _Gauge("metastore_compaction_obsolete_deltas", "Deltas that wait for the Cleaner.", "table"),
    "obsolete_bytes": _Gauge(
        "metastore_compaction_obsolete_bytes", "Bytes of files that no new reader reads, as seen last."
    ),
    "rows": _Gauge("metastore_transaction_rows", "Rows of a table that housekeeping trims, estimated.", "table"),
}


class CompactionCollector(Collector):
    """A collector of the last measures; empty before the first."""

    def __init__(self, seen: Callable[[], Measures]) -> None:
        """Prepare a collector; ``seen``: the last measures."""
        self._seen = seen

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield all gauges."""
        seen = self._seen()
        for what, gauge in GAUGES.items() if seen else ():
            labels = [gauge.label] if gauge.label else []
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=labels)
            values = dict.fromkeys(gauge.always, 0.0)
            values.update({which: value for measured, which, value in seen if measured == what})
            for which, value in values.items():
                family.add_metric([which] if labels else [], value)
            yield family
