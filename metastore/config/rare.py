"""Settings of rare concepts."""

from dataclasses import dataclass
from datetime import timedelta

from metastore.config.keys import key
from metastore.config.values import duration

_S, _D = duration("s"), duration("d")


# A row of the table of keys stays together.
# fmt: off


@dataclass(frozen=True)
class RareSettings:
    """Rare concepts: for how long objects are kept that nobody removes. 0: for ever."""

    runtime_statistics_age: timedelta = key(
        _S, "hive.metastore.runtime.stats.max.age", "259200s",
        "How long statistics of runs are kept, which HiveServer2 stores for planning a query again.")
    clean_interval: timedelta = key(
        _S, "hive.metastore.runtime.stats.clean.frequency", "3600s",
        "Pause between removals of older ones, and of all else here.")
    replication_metrics_age: timedelta = key(
        _D, "hive.metastore.repl.metrics.max.age", "7d", "How long metrics of a replication are kept.")
    partition_marks_age: timedelta = key(
        _S, "hive.metastore.event.expiry.duration", "0s", "How long marks of markPartitionForEvent are kept.")
