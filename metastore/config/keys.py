"""The settings, a frozen dataclass per concept: each field is a row of the table of keys.

Rule: a row is all that a key needs (Hive's name, kind, default as Hive writes it, one line of help), and nothing else
in the project knows the name of a key. ``metastore.`` spellings are derived (``names``). Services receive the settings
of their own concept only. The defaults are Hive's, except where a help text says "Hive: ...".
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from metastore.config import values
from metastore.config.values import Kind, choice, duration, integer


@dataclass(frozen=True)
class Key:
    """One key: how it is spelled, read and explained."""

    name: str
    kind: Kind
    default: str
    help: str
    aliases: tuple[str, ...] = ()
    secret: bool = False
    without_effect: str = ""
    """Why it is accepted and changes nothing; "" if it has an effect."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every accepted spelling: Hive's, that under metastore.*, and those of other versions."""
        spellings = dict.fromkeys((self.name, *self.aliases))
        for name in list(spellings):
            if name.startswith("hive.metastore."):
                spellings["metastore." + name.removeprefix("hive.metastore.")] = None
            elif name.startswith("hive."):
                spellings["metastore." + name.removeprefix("hive.")] = None
            elif name.startswith("metastore."):
                spellings["hive." + name] = None
                spellings["hive." + name.removeprefix("metastore.")] = None
        return tuple(spellings)


def key(kind: Kind, name: str, default: str, text: str, *aliases: str, secret: bool = False) -> Any:
    """A dataclass field that is one row of the table of keys."""
    return dataclasses.field(
        default=kind.parse(default), metadata={"key": Key(name, kind, default, text, aliases, secret)}
    )


def inert(kind: Kind, name: str, default: str, reason: str, *aliases: str) -> Any:
    """A field for a key of Hive that is read, checked and told to clients, and changes nothing here."""
    return dataclasses.field(
        default=kind.parse(default), metadata={"key": Key(name, kind, default, "", aliases, without_effect=reason)}
    )


def keys_of(settings: type) -> Iterator[tuple[str, Key]]:
    """The fields of a concept's settings with their keys."""
    for field in dataclasses.fields(settings):
        yield field.name, field.metadata["key"]


_THREADS_OF_POOL = re.compile(r"(?:hive|metastore)(?:\.metastore)?\.compactor\.worker\.([^=,]+)\.threads")


def stored_pool(name: str | None) -> str:
    """A pool as it is compared: "" for the default pool, however it was named."""
    return "" if name is None or name == "default" else name


def of_pools(texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of a source: those of Hive's key for each pool of Workers become one of ours."""
    matches = {name: _THREADS_OF_POOL.fullmatch(name) for name in texts}
    numbers = {name: f"{match[1]}={texts[name]}" for name, match in matches.items() if match}
    rest = {name: text for name, text in texts.items() if name not in numbers}
    if numbers:
        ours = "metastore.compactor.worker.threads.by.pool"
        rest[ours] = ",".join(filter(None, [rest.get(ours, ""), *numbers.values()]))
    return rest


_S, _MS, _H, _D = duration("s"), duration("ms"), duration("h"), duration("d")
_POSITIVE = integer(1)


# A row of the table of keys stays together.
# fmt: off


@dataclass(frozen=True)
class TxnSettings:
    """Transactions: how long they may be silent, and how many there may be."""

    timeout: timedelta = key(
        _S, "hive.txn.timeout", "300s",
        "Silence after which a transaction or a lock expires; equal to the clients' value.")
    repl_timeout: timedelta = key(_D, "hive.repl.txn.timeout", "11d", "The same for transactions made by replication.")
    max_open_txns: int = key(_POSITIVE, "hive.max.open.txns", "100000",
                             "open_txns is refused above this many open ones.")
    max_open_batch: int = key(_POSITIVE, "hive.txn.max.open.batch", "1000",
                              "Most transactions that one open_txns gets.")
    count_open_txns_interval: timedelta = key(
        _S, "hive.count.open.txns.interval", "1s", "How often the open transactions are counted for that limit.")
    reaper_start: timedelta = key(
        _S, "hive.timedout.txn.reaper.start", "100s",
        "For so long after its start a server ends nobody as expired: its clients come back.")
    reaper_interval: timedelta = key(
        _S, "hive.timedout.txn.reaper.interval", "180s",
        "Longest pause between searches for expired transactions and locks; one that is due is looked for at once.")
    housekeeper_interval: timedelta = key(
        _S, "hive.metastore.acid.housekeeper.interval", "60s", "Pause between rounds of the other house-keeping.")
    cleaner_interval: timedelta = key(
        _S, "hive.metastore.acid.txn.cleaner.interval", "10s", "Pause between removals of ended transactions' rows.")
    committed_retention: timedelta = key(
        _S, "metastore.txn.committed.retention", "1h",
        "How long a commit that is repeated for a lost answer is recognised. Hive: no such key.")
    history_retention: timedelta = key(
        _D, "metastore.txn.history.retention", "7d",
        "How long it is remembered what became of a transaction, after its own record is gone. Hive: no such key.")
    history_count: int = key(
        _POSITIVE, "metastore.txn.history.count", "100000",
        "Most aborted transactions, and most commits, that are remembered at all. Hive: no such key.")
    past_retention: timedelta = key(
        _D, "metastore.txn.past.retention", "7d",
        "How far back tables can be read as of an instant: how long the times of commits are kept. Hive: no such key.")
    past_count: int = key(
        _POSITIVE, "metastore.txn.past.count", "1000000",
        "Most commits whose times are kept. Hive: no such key.")
    require_write_ids: bool = key(
        values.FLAG, "metastore.txn.require.write.ids", "true",
        "Refuse commits of clients before 3.0 that wrote to a transactional table without a write id. Hive: accepts.")


@dataclass(frozen=True)
class EventSettings:
    """The notification log."""

    listeners: str = key(
        values.TEXT, "hive.metastore.transactional.event.listeners", "",
        "Java classes; where DbNotificationListener is among them, events of transactions and write ids are written to "
        "the notification log. The server that started last decides for all servers of the database.")
    time_to_live: timedelta = key(
        _S, "hive.metastore.event.db.listener.timetolive", "86400s", "How long events are kept.")
    clean_interval: timedelta = key(
        _S, "hive.metastore.event.db.listener.clean.interval", "7200s", "Pause between removals of older ones.")


@dataclass(frozen=True)
class LockSettings:
    """Locks."""

    check_wait: timedelta = key(
        duration("ms", timedelta(0), timedelta(seconds=5)), "metastore.lock.check.wait", "3000ms",
        "How long check_lock may hold back the answer that the lock is waiting, to answer the moment it is granted; 0: "
        "not at all. Far below any client's socket time-out, of which the shortest is 10 s. Hive: no such key.")
    max_components: int = key(
        _POSITIVE, "metastore.lock.max.components", "10000",
        "Most components of one lock request: whoever needs more locks the table. Hive: no such key.")
    detect_deadlocks: bool = key(
        values.FLAG, "metastore.txn.deadlock.detector.enabled", "true",
        "End a deadlock when a lock request closes it, by aborting its youngest transaction. Hive 4.2: no such "
        "key.")
    deadlock_interval: timedelta = key(
        _S, "metastore.txn.deadlock.detector.interval", "60s",
        "Pause between searches for deadlocks that were not found then, because a server died at that moment.")
    orphan_timeout: timedelta = key(
        duration("s", timedelta(0)), "metastore.lock.orphan.timeout", "40s",
        "How long a lock without a transaction stays after its client broke off the connection, if no heartbeat was "
        "ever sent for it and nobody asks about it; twice as long if the connection carried nothing else. More than "
        "the time to the first heartbeat of clients that send them (Hudi: 30 s). 0: as all others. Hive: no such key.")


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
        """How many compactions of a pool may be worked on; "" is the default pool."""
        return {stored_pool(pool): limit for pool, limit in self.pool_limits}


@dataclass(frozen=True)
class CatalogSettings:
    """The catalog: where tables live, and how names and filters behave."""

    warehouse: str = key(
        values.TEXT, "hive.metastore.warehouse.dir", "",
        "Directory of managed tables; empty: `warehouse` below the data directory.")
    external_warehouse: str = key(
        values.TEXT, "hive.metastore.warehouse.external.dir", "",
        "Directory of external tables; empty: as managed ones.")
    more_roots: tuple[str, ...] = key(
        values.WORDS, "metastore.warehouse.roots", "",
        "More directories, besides the two warehouses, in which this service may make, move, empty and remove what "
        "clients name. Hive: no such key; its server touches every directory that it can reach.")
    storage_classes: tuple[tuple[str, str, str], ...] = key(
        values.STORAGE_CLASSES, "metastore.storage.classes", "",
        "More classes by which insert-only tables may be stored, INPUT_FORMAT:OUTPUT_FORMAT:SERDE separated by commas; "
        "every reader and every compaction loads them. Hive: no such key; any class of any jar.")
    readable: tuple[str, ...] = key(
        values.WORDS, "metastore.warehouse.readable", "",
        "More directories, besides the roots, in which a planner may look at tables' files: those of external tables "
        "and of an upstream. Hive: no such key.")
    schemes: tuple[str, ...] = key(
        values.WORDS, "metastore.warehouse.schemes",
        "file, hdfs, viewfs, s3, s3a, s3n, gs, abfs, abfss, wasb, wasbs",
        "Schemes of locations at which this service looks, makes, moves or removes something; a location with another "
        "one is refused before anything is opened. Hive: no such key; all that Hadoop knows.")
    files_timeout: timedelta = key(
        duration("s", timedelta(seconds=1)), "metastore.files.timeout", "60s",
        "How long a file system may take to say whether something is there, to make a directory or to read a small "
        "file; ten times as long for listing a whole directory tree. What a call moves, empties or removes is "
        "not cut off. Hive: no such key.")
    files_threads: int = key(
        integer(2), "metastore.files.threads", "64",
        "Questions to and changes of file systems that are under way at a time, at most half of them at one host. "
        "They take no place among metastore.server.worker.threads. Hive: no such key.")
    cm_enabled: bool = key(
        values.FLAG, "hive.repl.cm.enabled", "false",
        "Files of managed tables that go are kept for replicas, in databases with `repl.source.for`.")
    cmroot: str = key(
        values.TEXT, "hive.repl.cmrootdir", "",
        "Where they are kept, in the file system of the tables; empty: `.cmroot` in the warehouse. "
        "Hive: /user/<name>/cmroot/.")
    cm_retain: timedelta = key(_H, "hive.repl.cm.retain", "240h", "How long.")
    cm_interval: timedelta = key(
        _S, "hive.repl.cm.interval", "3600s", "Pause between removals of what was kept longer than that.")
    default_partition_name: str = key(
        values.TEXT, "hive.exec.default.partition.name", "__HIVE_DEFAULT_PARTITION__",
        "Partition value that stands for null or the empty string.", "metastore.default.partition.name")
    create_as_acid: bool = key(
        values.FLAG, "hive.create.as.acid", "false", "New managed tables are transactional when nothing else is said.")
    partition_name_whitelist: str = key(
        values.TEXT, "hive.metastore.partition.name.whitelist.pattern", "",
        "Regular expression that partition values must match.")
    partition_inherit_table_properties: str = key(
        values.TEXT, "hive.metastore.partition.inherit.table.properties", "",
        "Table parameters that new partitions start with: names separated by commas, or `*` for all.")
    disallow_incompatible_column_changes: bool = key(
        values.FLAG, "hive.metastore.disallow.incompatible.col.type.changes", "true",
        "Refuse column type changes that existing data cannot be read with.")
    limit_partition_request: int = key(
        integer(-1), "hive.metastore.limit.partition.request", "-1",
        "Most partitions that one request may ask for; -1: no limit.", "hive.metastore.client.limit.partition.request")


@dataclass(frozen=True)
class ServerSettings:
    """The Thrift server and the HTTP port."""

    host: str = key(values.TEXT, "hive.metastore.thrift.bind.host", "127.0.0.1",
                    "Address to listen on; other than loopback needs TLS with client certificates, or "
                    "metastore.server.allow.insecure. Hive: all.")
    port: int = key(integer(0, 65535), "hive.metastore.port", "9083", "Thrift port; 0: a free one.",
                    "hive.metastore.thrift.port")
    http_port: int = key(
        integer(0, 65535), "metastore.http.port", "9084",
        "Port of /metrics, /livez and /readyz; 0: a free one. Hive: no such key.")
    framed: bool = key(values.FLAG, "hive.metastore.thrift.framed.transport.enabled", "false", "Framed transport.")
    compact_protocol: bool = key(values.FLAG, "hive.metastore.thrift.compact.protocol.enabled", "false",
                                 "Compact protocol.")
    max_message_size: int = key(
        values.SIZE, "hive.metastore.server.max.message.size", "104857600", "Largest request in bytes.")
    max_message_objects: int = key(
        _POSITIVE, "metastore.server.max.message.objects", "1000000",
        "Most structs in one request, and most values in one of its lists or maps. Hive: no such key.")
    transfer_timeout: timedelta = key(
        _S, "metastore.server.transfer.timeout", "60s",
        "Close a connection on which half a request or half an answer does not move for so long, or that takes longer "
        "than this and a second for each 64 KB; 0: never. Hive: no such key.")
    max_buffered: int = key(
        values.SIZE, "metastore.server.max.buffered", "512mb",
        "Bytes of half requests and half answers over all connections, beyond which those go that have not moved for "
        "longest. Hive: no such key.")
    max_connections: int = key(
        _POSITIVE, "metastore.server.max.connections", "10000",
        "Connections above this are closed at once, with a line in the log. Hive: server.max.threads.")
    worker_threads: int = key(
        _POSITIVE, "metastore.server.worker.threads", "16",
        "Calls that are worked on at a time. Hive: server.max.threads.")
    idle_timeout: timedelta = key(
        _S, "metastore.server.idle.timeout", "0s",
        "Close a connection after this silence; 0: never. Hive: no such key.")
    tcp_keepalive: bool = key(values.FLAG, "hive.metastore.server.tcp.keepalive", "true", "TCP keep-alive.")
    drain_timeout: timedelta = key(
        _S, "metastore.server.drain.timeout", "20s",
        "How long a stopping server waits for the calls in flight. Hive: no such key.")
    slow_call: timedelta = key(
        _MS, "metastore.server.slow.call.threshold", "1000ms",
        "A call that takes longer is logged. Hive: no such key.")
    execute_setugi: bool = key(values.FLAG, "hive.metastore.execute.setugi", "true",
                               "set_ugi names the connection's user.")


@dataclass(frozen=True)
class DatabaseSettings:
    """The way to PostgreSQL."""

    url: str = key(
        values.DATABASE_URL, "metastore.database.url", "",
        "PostgreSQL to use; empty: the embedded one below the data directory.",
        "javax.jdo.option.ConnectionURL", secret=True)
    user: str = key(
        values.TEXT, "metastore.database.user", "", "User name, where the URL has none.",
        "javax.jdo.option.ConnectionUserName")
    password: str = key(
        values.TEXT, "metastore.database.password", "", "Password, where the URL has none.",
        "javax.jdo.option.ConnectionPassword", secret=True)
    archive: str = key(
        values.TEXT, "metastore.database.embedded.archive", "",
        "Directory in which the embedded PostgreSQL keeps its WAL, to go back to a point in time; empty: not kept.")
    pool_size: int = key(
        _POSITIVE, "metastore.database.pool.size", "20",
        "Connections of threads. Coalesced calls take up to two more for each method. Hive: 10.",
        "datanucleus.connectionPool.maxPoolSize")
    pool_timeout: timedelta = key(
        _MS, "metastore.database.pool.timeout", "30000ms",
        "Longest wait for a free connection before a call is refused.")
    statement_timeout: timedelta = key(
        _S, "metastore.database.statement.timeout", "60s", "Longest run of one statement.")
    lock_timeout: timedelta = key(_S, "metastore.database.lock.timeout", "20s",
                                  "Longest wait for a row or advisory lock.")

    @property
    def archive_dir(self) -> Path | None:
        """Where WAL is kept, if it is."""
        return Path(self.archive) if self.archive else None

    @property
    def full_url(self) -> str:
        """The URL with the user and the password of their own keys, where it has none."""
        scheme, _, rest = self.url.partition("://")
        authority, slash, path = rest.partition("/")
        if "@" in authority or not self.user:
            return self.url
        password = f":{quote(self.password, safe='')}" if self.password else ""
        return f"{scheme}://{quote(self.user, safe='')}{password}@{authority}{slash}{path}"


@dataclass(frozen=True)
class LogSettings:
    """The log."""

    level: str = key(
        choice("debug", "info", "warning", "error"), "metastore.log.level", "info", "Least severity that is logged.")
    format: str = key(
        choice("auto", "json", "console"), "metastore.log.format", "auto",
        "auto: console on a terminal, json elsewhere.")


@dataclass(frozen=True)
class ClientSettings:
    """The clients' keys: what get_config_value tells clients; programs with metastore.client lock and wait by it."""

    strict_locking: bool = key(
        values.FLAG, "hive.txn.strict.locking.mode", "true",
        "INSERT into a table that is not transactional locks it exclusively; false: shared.")
    read_locks: bool = key(values.FLAG, "hive.txn.read.locks", "true", "Lock what is read.")
    nonacid_read_locks: bool = key(
        values.FLAG, "hive.txn.nonacid.read.locks", "true", "Lock what is read of tables that are not transactional.")
    xlock_write: bool = key(
        values.FLAG, "hive.txn.xlock.write", "true", "UPDATE and DELETE exclude each other; false: the commit decides.")
    xlock_iow: bool = key(
        values.FLAG, "hive.txn.xlock.iow", "true", "INSERT OVERWRITE waits for readers; false: readers go on.")
    xlock_mergeinsert: bool = key(
        values.FLAG, "hive.txn.xlock.mergeinsert", "false", "The INSERT of a MERGE excludes other writers.")
    xlock_ctas: bool = key(
        values.FLAG, "hive.txn.xlock.ctas", "true", "Of two CREATE TABLE AS with one name the second is refused.")
    lockless_reads: bool = key(
        values.FLAG, "hive.acid.lockless.reads.enabled", "false", "Transactional tables are read without locks.")
    lock_external: bool = key(
        values.FLAG, "hive.txn.ext.locking.enabled", "false", "Lock external tables, too.")
    max_lock_partitions: int = key(
        integer(-1), "hive.locks.max.partitions", "-1",
        "From so many partitions on that are read, the table is locked instead; -1 and 0: never.")
    lock_retries: int = key(
        integer(0), "hive.lock.numretries", "100", "How often a client asks for a lock that it waits for.")
    lock_sleep: timedelta = key(
        _S, "hive.lock.sleep.between.retries", "60s",
        "Longest pause between those questions; it begins with 100 ms and doubles, and never stays below 15 s.")
    support_concurrency: bool = inert(
        values.FLAG, "hive.support.concurrency", "false", "Transactions and locks are always there.")
    txn_manager: str = inert(
        values.TEXT, "hive.txn.manager", "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
        "A Java class of the client; metastore.client has one TxnManager.")
    readonly_txns: bool = inert(
        values.FLAG, "hive.txn.readonly.enabled", "false", "Who opens a transaction says whether it only reads.")
    heartbeat_threads: int = inert(
        _POSITIVE, "hive.txn.heartbeat.threadpool.size", "5", "metastore.client has a thread for each transaction.")
    unlock_retries: int = inert(
        integer(0), "hive.unlock.numretries", "10", "An unlock is repeated once; then its lock expires.")
    dump_locks: bool = inert(
        values.FLAG, "hive.txn.manager.dump.lock.state.on.acquire.timeout", "false",
        "Who gives up waiting is always told who is in the way.")
    dynamic_partition_mode: str = inert(
        choice("strict", "nonstrict"), "hive.exec.dynamic.partition.mode", "strict",
        "A matter of Hive's SQL; ours takes dynamic partitions as nonstrict does.")
    iceberg_lock_timeout: timedelta = inert(
        _MS, "iceberg.hive.lock-timeout-ms", "180000", "Iceberg reads it from its own configuration.")
    iceberg_min_wait: timedelta = inert(
        _MS, "iceberg.hive.lock-check-min-wait-ms", "50", "Iceberg reads it from its own configuration.")
    iceberg_max_wait: timedelta = inert(
        _MS, "iceberg.hive.lock-check-max-wait-ms", "5000", "Iceberg reads it from its own configuration.")
    iceberg_heartbeat_interval: timedelta = inert(
        _MS, "iceberg.hive.lock-heartbeat-interval-ms", "60000", "Iceberg reads it from its own configuration.")
