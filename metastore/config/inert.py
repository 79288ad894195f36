"""Keys of Hive's server that are read, checked and told to clients, but change nothing here, with the reasons.

Rule: a settings file of Hive can be used as it is, and the list of keys tells the fate of each. A key that another
setting replaces names it.
"""

from dataclasses import dataclass
from datetime import timedelta

from metastore.config import values
from metastore.config.keys import inert
from metastore.config.values import choice, duration, integer

_S, _MS, _H, _D = duration("s"), duration("ms"), duration("h"), duration("d")
_POSITIVE = integer(1)
_ALERT = "Prometheus warns: the threshold stands in the Helm chart's rules/alerts.yaml."
_RARE = "They go with the statistics of runs: hive.metastore.runtime.stats.clean.frequency."
_LEADER = "The servers that share a database elect who runs each loop, by locks in it."


# A row of the table of keys stays together.
# fmt: off


@dataclass(frozen=True)
class InertSettings:
    """Accepted without effect: keys of Hive's server that have nothing to change here; its files can be used."""

    open_txn_window: timedelta = inert(
        _MS, "hive.txn.opentxn.timeout", "1000ms",
        "Transaction ids become visible in order: no snapshot waits for openers that are late.")
    use_min_history_level: bool = inert(
        values.FLAG, "hive.txn.use.minhistorylevel", "true",
        "The open transactions themselves say what is still read, and hive.txn.use.minhistorywriteid of which tables.")
    retryable_errors: str = inert(
        values.TEXT, "hive.txn.retryable.sqlex.regex", "", "PostgreSQL's error codes say what may be repeated.")
    txn_store: str = inert(
        values.TEXT, "hive.metastore.txn.store.impl", "org.apache.hadoop.hive.metastore.txn.CompactionTxnHandler",
        "There is one store.")
    event_access: bool = inert(
        values.FLAG, "hive.metastore.event.db.notification.api.auth", "true",
        "Whoever may connect may read the notification log.")
    write_set_interval: timedelta = inert(
        _S, "hive.writeset.reaper.interval", "60s", "hive.metastore.acid.housekeeper.interval says when.")
    history_reaper_interval: timedelta = inert(
        duration("m"), "hive.compactor.history.reaper.interval", "2m",
        "hive.metastore.compaction.housekeeper.interval says when.")
    initiator_cache: bool = inert(
        values.FLAG, "hive.compactor.initiator.tablecache.on", "true", "Tables are looked up in this database.")
    cleaner_cache: bool = inert(
        values.FLAG, "hive.compactor.cleaner.tablecache.on", "true", "Tables are looked up in this database.")
    query_based: bool = inert(
        values.FLAG, "hive.compactor.crud.query.based", "false", "Spark does every compaction.")
    merge_compactor: bool = inert(
        values.FLAG, "hive.compaction.merge.enabled", "false", "Rows are always read, counted and proven.")
    wait_timeout: timedelta = inert(
        _MS, "hive.compactor.wait.timeout", "300000ms", "COMPACT ... AND WAIT looks every two seconds at most.")
    handler_retries: int = inert(
        integer(0), "hive.hmshandler.retry.attempts", "10",
        "A call that PostgreSQL undid is run again at once, three times in all.",
        "hive.metastore.hmshandler.retry.attempts")
    handler_retry_interval: timedelta = inert(
        _MS, "hive.hmshandler.retry.interval", "2000ms", "As for hive.hmshandler.retry.attempts.",
        "hive.metastore.hmshandler.retry.interval")
    batch_size: int = inert(
        _POSITIVE, "metastore.jdbc.max.batch.size", "1000", "A list goes to PostgreSQL as one array.")
    multiple_leaders: bool = inert(
        values.FLAG, "hive.metastore.have.multiple.leaders", "false",
        "Every house-keeping step is safe on all replicas.")
    pool_of_compactor: bool = inert(
        values.FLAG, "hive.compactor.use.custom.pool", "false", "All of a process share metastore.database.pool.size.")
    pool_of_compactor_size: int = inert(
        _POSITIVE, "hive.compactor.connectionPool.maxPoolSize", "5",
        "All of a process share metastore.database.pool.size.")
    workers_in: str = inert(
        choice("hs2", "metastore"), "hive.metastore.runworker.in", "hs2",
        "Workers run in each `metastore serve` and `metastore worker` with hive.compactor.worker.threads above 0; "
        "HiveServer2's may run beside them.")
    housekeeping_on: bool = inert(values.FLAG, "hive.metastore.housekeeping.threads.on", "false", _LEADER)
    leader_host: str = inert(values.TEXT, "hive.metastore.housekeeping.leader.hostname", "", _LEADER)
    leader_election: str = inert(choice("host", "lock"), "metastore.housekeeping.leader.election", "host", _LEADER)
    table_optimizers: str = inert(
        values.TEXT, "hive.compactor.table.optimizers", "", "Java classes; the Initiator looks at ACID tables.",
        "compactor.table.optimizers")
    split_grouping: str = inert(
        choice("query", "compactor"), "hive.split.grouping.mode", "query",
        "For Hive's own jobs; ours give each bucket to one task.")
    stats_compression: bool = inert(
        values.FLAG, "metastore.compactor.enable.stats.compression", "true",
        "What a minor compaction writes has indexes and is compressed; the table's or the request's orc.* say how.")
    initiator_duration_interval: timedelta = inert(
        _S, "hive.compactor.initiator.duration.update.interval", "60s",
        "metastore_loop_tick_seconds has each round when it ends.")
    cleaner_duration_interval: timedelta = inert(
        _S, "hive.compactor.cleaner.duration.update.interval", "60s",
        "metastore_loop_tick_seconds has each round when it ends.")
    metrics_ext: bool = inert(
        values.FLAG, "hive.metastore.acidmetrics.ext.on", "true",
        "hive.metastore.acidmetrics.thread.on switches all of these metrics.")
    metrics_log: timedelta = inert(
        duration("m"), "hive.compactor.acid.metrics.logger.frequency", "360m",
        "Nothing is logged by the clock: /metrics has the numbers, and the alerts of the Helm chart the thresholds.")
    delayed_cleanup: bool = inert(
        values.FLAG, "hive.compactor.delayed.cleanup.enabled", "false",
        "Replaced files are always kept for hive.compactor.cleaner.retention.time.seconds; 0s keeps none.")
    alert_repl_txn: timedelta = inert(_D, "hive.compactor.oldest.replication.open.txn.threshold.warning", "14d", _ALERT)
    alert_repl_txn_error: timedelta = inert(
        _D, "hive.compactor.oldest.replication.open.txn.threshold.error", "21d", _ALERT)
    alert_txn: timedelta = inert(_H, "hive.compactor.oldest.open.txn.threshold.warning", "24h", _ALERT)
    alert_txn_error: timedelta = inert(_H, "hive.compactor.oldest.open.txn.threshold.error", "72h", _ALERT)
    alert_aborted: timedelta = inert(
        _H, "hive.compactor.oldest.uncleaned.aborted.txn.time.threshold.warning", "24h", _ALERT)
    alert_aborted_error: timedelta = inert(
        _H, "hive.compactor.oldest.uncleaned.aborted.txn.time.threshold.error", "48h", _ALERT)
    alert_many_aborts: int = inert(integer(0), "hive.compactor.tables.with.aborted.txn.threshold", "1", _ALERT)
    alert_cleaning: timedelta = inert(_H, "hive.compactor.oldest.uncleaned.compaction.time.threshold", "24h", _ALERT)
    alert_failures: float = inert(values.FRACTION, "hive.compactor.failed.compaction.ratio.threshold", "0.01", _ALERT)
    alert_waiting: timedelta = inert(
        _H, "hive.compactor.oldest.initiated.compaction.time.threshold.warning", "1h", _ALERT)
    alert_waiting_error: timedelta = inert(
        _H, "hive.compactor.oldest.initiated.compaction.time.threshold.error", "12h", _ALERT)
    alert_initiator: timedelta = inert(_H, "hive.compactor.long.running.initiator.threshold.warning", "6h", _ALERT)
    alert_initiator_error: timedelta = inert(_H, "hive.compactor.long.running.initiator.threshold.error", "12h", _ALERT)
    alert_components: int = inert(
        integer(0), "hive.compactor.completed.txn.components.record.threshold.warning", "500000", _ALERT)
    alert_components_error: int = inert(
        integer(0), "hive.compactor.completed.txn.components.record.threshold.error", "1000000", _ALERT)
    alert_write_ids: int = inert(integer(0), "hive.compactor.txn.to.writeid.record.threshold.warning", "500000", _ALERT)
    alert_write_ids_error: int = inert(
        integer(0), "hive.compactor.txn.to.writeid.record.threshold.error", "1000000", _ALERT)
    alert_disabled: int = inert(
        integer(0), "hive.compactor.number.of.disabled.compaction.tables.threshold", "1", _ALERT)
    replication_metrics_pause: timedelta = inert(
        _D, "hive.metastore.repl.metrics.cleanup.frequency", "1d", _RARE)
    partition_marks_pause: timedelta = inert(_S, "hive.metastore.event.clean.freq", "0s", _RARE)
