"""Settings of transactions and of the notification log."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from metastore.config import values
from metastore.config.keys import inert, key
from metastore.config.values import duration, integer

_S = duration("s")
_D = duration("d")
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
        values.TEXT, "hive.metastore.transactional.event.listeners", "CatalogEventListener",
        "Java classes, two of which are known: CatalogEventListener, which is ours, writes events of the catalog to "
        "the notification log; DbNotificationListener, Hive's, those of transactions and write ids as well, for which "
        "the server that started last decides for all servers of the database. Empty: no events. Hive: empty.")
    plain_listeners: tuple[str, ...] = key(
        values.WORDS, "hive.metastore.event.listeners", "",
        "As hive.metastore.transactional.event.listeners: what is written is always in the change's transaction.")
    message_factory: str = key(
        values.TEXT, "hive.metastore.event.message.factory",
        "org.apache.hadoop.hive.metastore.messaging.json.JSONMessageEncoder",
        "How messages are told: GzipJSONMessageEncoder compresses them (messageFormat gzip(json-2.0), which clients "
        "before Hive 4 do not read), any other class tells plain JSON (json-0.2). Hive 4: GzipJSONMessageEncoder.")
    together: bool = key(
        values.FLAG, "hive.metastore.alterPartitions.notification.v2.enabled", "false",
        "Write one ALTER_PARTITIONS for a call that alters partitions, and not an ALTER_PARTITION for each. Clients "
        "before Hive 4.1 do not know the former. Hive 4.1: true.")
    dml_events: bool = inert(
        values.FLAG, "hive.metastore.dml.events", "true",
        "Told to clients, which then report their inserts: events of inserts are written where the catalog's are.")
    thrift_objects: bool = inert(
        values.FLAG, "hive.metastore.notifications.add.thrift.objects", "true",
        "Messages have the objects always.")
    time_to_live: timedelta = key(
        _S, "hive.metastore.event.db.listener.timetolive", "86400s", "How long events are kept.")
    clean_interval: timedelta = key(
        _S, "hive.metastore.event.db.listener.clean.interval", "7200s", "Pause between removals of older ones.")

    def named_classes(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the keys of listeners, with their classes."""
        yield "hive.metastore.transactional.event.listeners", values.WORDS.parse(self.listeners)
        yield "hive.metastore.event.listeners", self.plain_listeners
