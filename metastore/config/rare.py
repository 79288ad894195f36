"""Settings of rare concepts."""

from dataclasses import dataclass
from datetime import timedelta

from metastore.config import values
from metastore.config.keys import key
from metastore.config.values import duration, integer

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
    default_pool_size: int = key(
        integer(-1), "hive.metastore.wm.default.pool.size", "4",
        "Queries that run together in the pool `default` of a new resource plan; 0 or less: no such pool is made.")
    scheduled_queries: bool = key(
        values.FLAG, "hive.metastore.scheduled.queries.enabled", "true",
        "Answer calls about scheduled queries. Their schedules are in the time zone of the server's process (`TZ`).")
    execution_timeout: timedelta = key(
        _S, "metastore.scheduled.queries.execution.timeout", "120s",
        "Silence after which an execution of a scheduled query is TIMED_OUT; below 0: never.",
        "hive.metastore.scheduled.queries.progress.timeout")
    execution_interval: timedelta = key(
        _S, "metastore.scheduled.queries.execution.maint.task.frequency", "60s",
        "Pause between searches for such executions, and for those that are too old.",
        "hive.metastore.scheduled.queries.execution.clean.frequency")
    execution_age: timedelta = key(
        _S, "hive.metastore.scheduled.queries.execution.max.age", "2592000s",
        "How long executions of scheduled queries that ended are kept; 0 or less: for ever.")
    disable_after: int = key(
        integer(-1), "metastore.scheduled.queries.autodisable.count", "0",
        "Failures in a row after which a scheduled query is disabled; 0 or less: never.")
    skip_after: int = key(
        integer(-1), "metastore.scheduled.queries.skip.opportunities.after.failures", "0",
        "A scheduled query that failed n times in a row leaves out n - 1 of its next times, but not more than this "
        "less one; 0 or less: none.")
