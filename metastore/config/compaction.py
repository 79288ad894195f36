"""Settings of compaction, and names of pools of Workers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from metastore.config import values
from metastore.config.keys import inert, key
from metastore.config.values import choice, duration, integer

_THREADS_OF_POOL = re.compile(r"(?:hive|metastore)(?:\.metastore)?\.compactor\.worker\.([^=,]+)\.threads")


def stored_pool(name: str | None) -> str:
    """Return a pool's name in the spelling used for comparison: "" for the default pool."""
    return "" if name is None or name == "default" else name


def of_pools(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a source, with Hive's key for each pool of Workers converted to one of ours."""
    matches = {name: _THREADS_OF_POOL.fullmatch(name) for name in texts}
    numbers = {name: f"{match[1]}={texts[name]}" for name, match in matches.items() if match}
    rest = {name: text for name, text in texts.items() if name not in numbers}
    if numbers:
        ours = "metastore.compactor.worker.threads.by.pool"
        rest[ours] = ",".join(filter(None, [rest.get(ours, ""), *numbers.values()]))
    return rest


_S = duration("s")
_MS = duration("ms")
_H = duration("h")
_D = duration("d")
_POSITIVE = integer(1)


# A row of the table of keys stays together.
# fmt: off


@dataclass(frozen=True)
class CompactionSettings:
    """Compaction: when it is due, who does it, what is remembered."""

    initiator_on: bool = key(
        values.FLAG, "hive.compactor.initiator.on", "true", "Run the Initiator here. Hive: false.")
    cleaner_on: bool = key(values.FLAG, "hive.compactor.cleaner.on", "true", "Run the Cleaner here. Hive: false.")
    worker_threads: int = key(
        integer(0), "hive.compactor.worker.threads", "1", "Compactions that this process runs at a time. Hive: 0.")
    check_interval: timedelta = key(_S, "hive.compactor.check.interval", "300s",
                                    "Pause between the Initiator's rounds.")
    initiator_checks: int = key(
        _POSITIVE, "hive.compactor.request.queue", "1",
        "Tables and partitions that the Initiator looks at at a time, at most half of metastore.database.pool.size.")
    listing_max_age: timedelta = key(
        duration("h", timedelta(seconds=1)), "metastore.compactor.listing.max.age", "24h",
        "After this the Initiator looks again at everything that was written and not cleaned, and lists directories "
        "though it knows of no change. Hive: no such key; it lists in each round.")
    delta_num_threshold: int = key(
        _POSITIVE, "hive.compactor.delta.num.threshold", "10", "A minor compaction is due above this many deltas.")
    delta_pct_threshold: float = key(
        values.FRACTION, "hive.compactor.delta.pct.threshold", "0.1",
        "A major compaction is due when the deltas are larger than this part of the base.")
    aborted_txn_threshold: int = key(
        _POSITIVE, "hive.compactor.abortedtxn.threshold", "1000",
        "A major compaction is due above this many aborted transactions of a table or partition.")
    aborted_txn_time_threshold: timedelta = key(
        duration("h"), "hive.compactor.aborted.txn.time.threshold", "12h",
        "A compaction is due when the oldest aborted transaction is older; negative: never for that reason.")
    clean_aborts_using_cleaner: bool = key(
        values.FLAG, "hive.compactor.clean.aborts.using.cleaner", "true",
        "The Cleaner removes what aborted transactions wrote; false: the Initiator has it compacted away.")
    use_min_history: bool = key(
        values.FLAG, "hive.txn.use.minhistorywriteid", "true",
        "A transaction that says what it reads holds up the cleaning of those tables only. Hive: false.",
        "hive.txn.use.minhistory.write.id")
    fetch_size: int = key(
        integer(100, 5000), "hive.compactor.fetch.size", "1000",
        "Tables or partitions read from the database at a time.")
    failed_compacts_threshold: int = key(
        integer(1, 20), "hive.compactor.initiator.failed.compacts.threshold", "2",
        "Failures in a row after which the Initiator leaves a table or partition alone. What failed for a cause "
        "outside of it (full disks, lost machines, rights) does not count: it is tried again sooner.")
    failed_retry_time: timedelta = key(
        _D, "hive.compactor.initiator.failed.retry.time", "7d", "When it tries again after that; 0: never.")
    compact_insert_only: bool = key(
        values.FLAG, "hive.compactor.compact.insert.only", "true",
        "Compact insert-only tables too; those that are not ORC or Parquet are left to Hive's Workers.")
    gather_stats: bool = key(
        values.FLAG, "hive.compactor.gather.stats", "true",
        "A major compaction renews the statistics of the columns that have some, from its own pass over the rows.",
        "hive.mr.compactor.gather.stats")
    max_num_delta: int = key(
        _POSITIVE, "hive.compactor.max.num.delta", "500",
        "How many files of a bucket a compaction of a full ACID table has open at a time while it merges them. Where "
        "more would be, it sorts the rows, whatever the number of deltas. Hive: how many deltas one job merges.")
    worker_timeout: timedelta = key(
        _S, "hive.compactor.worker.timeout", "86400s", "A compaction that runs longer is taken from its Worker.")
    worker_lease: timedelta = key(
        _S, "metastore.compactor.worker.lease", "120s",
        "A Worker of ours that gives no sign of life for so long loses its compaction. Hive: no such key.")
    worker_pool_timeout: timedelta = key(
        duration("h"), "hive.compactor.worker.pool.timeout", "12h",
        "A request for a pool that nobody serves falls back to the default pool after this.")
    worker_sleep_time: timedelta = key(
        _MS, "hive.compactor.worker.sleep.time", "10800ms", "Pause of an idle Worker.")
    worker_max_sleep_time: timedelta = inert(
        _MS, "hive.compactor.worker.max.sleep.time", "320000ms", "The pause of an idle Worker does not grow.")
    worker_pools: tuple[str, ...] = key(
        values.WORDS, "metastore.compactor.worker.pools", "",
        "Pools that the Workers of this process serve, in turn where they are more than the threads; empty: the "
        "default pool. Hive: no such key.")
    pool_threads: tuple[tuple[str, int], ...] = key(
        values.NUMBERS, "metastore.compactor.worker.threads.by.pool", "",
        "How many of the threads serve one pool alone, NAME=N separated by commas; the others serve "
        "metastore.compactor.worker.pools. If they are too few, all take turns over all of these pools. Hive: "
        "hive.compactor.worker.NAME.threads, a key for each pool; such keys are read as parts of this one.")
    database_share: float = key(
        values.FRACTION, "metastore.compactor.share.database", "0.75",
        "Of a pool's working compactions those of one database may be this part while others wait. Hive: no such key.")
    table_share: float = key(
        values.FRACTION, "metastore.compactor.share.table", "0.5", "The same for one table. Hive: no such key.")
    pool_limits: tuple[tuple[str, int], ...] = key(
        values.NUMBERS, "metastore.compactor.pool.limits", "",
        "How many compactions of a pool may be worked on at a time, by all Workers of the cluster together, Hive's "
        "among them; 0: none. The same on all servers. Pools that are not named have no limit. Hive: no such key.")
    job_queue: str = key(values.TEXT, "hive.compactor.job.queue", "", "Cluster queue for compaction jobs.")
    run_as_user: str = key(
        values.TEXT, "hive.compactor.run.as.user", "",
        "Whom the queue names as the user of a compaction, where the request names none; empty: the table's owner. A "
        "name and no more: files are read and written as the user of this process. Hive: acts as this user.")
    submit: str = key(
        choice("local", "spark-submit"), "metastore.compactor.submit", "local",
        "How a Worker runs its Spark job: a process here with a local master, or spark-submit. Hive: no such key.")
    spark_master: str = key(
        values.TEXT, "metastore.compactor.spark.master", "local[2]",
        "Spark master for compaction jobs. Hive: no such key.")
    spark_idle: timedelta = key(
        _S, "metastore.compactor.spark.idle", "300s",
        "How long a local Spark waits for the next compaction before it is ended, so that a small one need not start "
        "one; 0: each has a Spark of its own. Hive: no such key.")
    spark_jobs: int = key(
        _POSITIVE, "metastore.compactor.spark.jobs", "100",
        "After so many compactions a local Spark is ended in any case. Hive: no such key.")
    spark_conf: tuple[str, ...] = key(
        values.WORDS, "metastore.compactor.spark.conf", "",
        "More Spark settings for compaction jobs, name=value separated by commas. Hive: no such key.")
    log_dir: str = key(
        values.TEXT, "metastore.compactor.log.dir", "",
        "Where the logs of the last 20 failed compaction jobs of a process are kept; empty: where temporary files are. "
        "Hive: no such key.")
    cleaner_interval: timedelta = key(
        _MS, "hive.compactor.cleaner.run.interval", "5000ms", "Pause between the Cleaner's rounds.")
    cleaner_threads: int = key(
        _POSITIVE, "hive.compactor.cleaner.threads.num", "1",
        "Tables and partitions that the Cleaner works on at a time, at most half of metastore.database.pool.size.")
    cleaner_retention: timedelta = key(
        _S, "hive.compactor.cleaner.retention.time.seconds", "3600s",
        "How long the Cleaner keeps files that a compaction has replaced, for what was planned or cached before it. "
        "Hive: 300 s, and only with hive.compactor.delayed.cleanup.enabled.",
        "hive.compactor.cleaner.retention.time")
    cleaner_retry_maxattempts: int = key(
        integer(0, 10), "hive.compactor.cleaner.retry.maxattempts", "5",
        "Further tries at a cleaning that fails; 0: none.")
    cleaner_retry_retention: timedelta = key(
        _S, "hive.compactor.cleaner.retry.retentionTime", "300s", "First pause before the next try; doubles.")
    history_succeeded: int = key(
        integer(0, 100), "hive.compactor.history.retention.succeeded", "3", "Successes kept per table or partition.")
    history_failed: int = key(
        integer(0, 100), "hive.compactor.history.retention.failed", "3", "Failures kept per table or partition.")
    history_refused: int = key(
        integer(0, 100), "hive.compactor.history.retention.refused", "3", "Refusals kept per table or partition.")
    history_did_not_initiate: int = key(
        integer(0, 100), "hive.compactor.history.retention.did.not.initiate", "2",
        "Not-initiated entries kept per table or partition.", "hive.compactor.history.retention.attempted")
    history_timeout: timedelta = key(
        _D, "hive.compactor.history.retention.timeout", "7d",
        "Failed, refused and not-initiated entries older than this go when a later compaction succeeded.")
    history_interval: timedelta = key(
        _S, "hive.metastore.compaction.housekeeper.interval", "300s", "Pause between purges of the history.")
    metrics_on: bool = key(
        values.FLAG, "hive.metastore.acidmetrics.thread.on", "true",
        "Show counts and ages of compactions, transactions and locks on /metrics.")
    metrics_interval: timedelta = key(
        _S, "hive.metastore.acidmetrics.check.interval", "300s", "How often they are measured.")
    many_aborts: int = key(
        integer(0), "hive.metastore.acidmetrics.table.aborted.txns.threshold", "1500",
        "A table or partition with more aborted transactions counts in metastore_tables_with_many_aborts.")
    metrics_tables: int = key(
        integer(0, 500), "hive.txn.acid.metrics.max.cache.size", "100",
        "How many tables and partitions /metrics names for each of the gauges of deltas.")
    metrics_deltas: int = key(
        integer(0), "hive.txn.acid.metrics.delta.num.threshold", "100",
        "With at least so many deltas, or small deltas, it may be one of them.")
    metrics_obsolete_deltas: int = key(
        integer(0), "hive.txn.acid.metrics.obsolete.delta.num.threshold", "100",
        "With at least so many deltas that wait for the Cleaner, it may be one of them.")
    metrics_workers: timedelta = key(
        _H, "hive.metastore.compactor.worker.detect.multiple.versions.threshold", "24h",
        "How long a Worker and its release count on /metrics after it began a compaction.")
    metrics_small_delta: float = key(
        values.FRACTION, "hive.txn.acid.metrics.delta.pct.threshold", "0.01",
        "A delta below this part of its base is small.")

    @property
    def pools_of_threads(self) -> list[tuple[str, ...]]:
        """The pools that each thread serves in turn; "" is the default pool."""
        threads_of = {stored_pool(pool): threads for pool, threads in self.pool_threads}
        own = [(pool,) for pool, threads in threads_of.items() for _ in range(threads)]
        pools = tuple(pool for pool in map(stored_pool, self.worker_pools) if pool not in threads_of)
        rest = self.worker_threads - len(own)
        if rest < bool(pools):
            pools = (*pools, *(pool for pool, threads in threads_of.items() if threads))
            own, rest = [], self.worker_threads
        pools = pools or ("",)
        return own + [pools[number % len(pools) :: rest] for number in range(rest)]

    @property
    def served_pools(self) -> tuple[str, ...]:
        """The pools whose requests count here; without threads, those that other processes of these settings serve."""
        served = dict.fromkeys(pool for pools in self.pools_of_threads for pool in pools)
        named = map(stored_pool, (*dict(self.pool_threads), *self.worker_pools))
        return tuple(served or dict.fromkeys(named)) or ("",)

    @property
    def limits(self) -> dict[str, int]:
        """The numbers of compactions of a pool that may run at a time; "" is the default pool."""
        return {stored_pool(pool): limit for pool, limit in self.pool_limits}
