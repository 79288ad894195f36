"""Settings that clients ask for."""

from dataclasses import dataclass
from datetime import timedelta

from metastore.config import values
from metastore.config.keys import inert, key
from metastore.config.values import choice, duration, integer

_S = duration("s")
_MS = duration("ms")
_POSITIVE = integer(1)


# A row of the table of keys stays together.
# fmt: off


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
