"""Every table of the transaction side, in one MetaData; Alembic's migrations must add up to exactly this.

Names are Hive's concepts in lower snake case, without its column prefixes (docs/reference/schema.md maps them). ``""``
means "no table" / "no partition", so that unique keys work without NULL rules. The catalog's tables are in
``metastore.db.catalog_tables``, in the same MetaData.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Interval,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    }
)


def _instant(name: str, *, nullable: bool = False) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


def _object() -> tuple[Column[str], ...]:
    """Return the columns that name the object of a row."""
    return (
        Column("catalog", Text, nullable=False),
        Column("db", Text, nullable=False),
        Column("table", Text, nullable=False, server_default=text("''")),
        Column("partition", Text, nullable=False, server_default=text("''")),
    )


def _table() -> tuple[Column[str], ...]:
    return (
        Column("catalog", Text, nullable=False),
        Column("db", Text, nullable=False),
        Column("table", Text, nullable=False),
    )


# One row: the gap-free transaction counter. The holder of its row lock decides what "before" and "after" mean.
# Ids below reserved_until are on disk as used: opens inside the block need not wait for the disk (ADR 0003).
# The formatter is off: a column stays on its line.
# fmt: off

txn_counter = Table(
    "txn_counter", metadata,
    Column("id", SmallInteger, CheckConstraint("id = 1", name="one_row"), primary_key=True, autoincrement=False),
    Column("next_txn_id", BigInteger, nullable=False, server_default=text("1")),
    Column("reserved_until", BigInteger, nullable=False, server_default=text("1")),
    postgresql_with={"fillfactor": "10"})

# One row while PostgreSQL has not crashed since the block was reserved: unlogged tables are emptied by recovery.
txn_id_block = Table(
    "txn_id_block", metadata,
    Column("id", SmallInteger, CheckConstraint("id = 1", name="one_row"), primary_key=True, autoincrement=False),
    prefixes=["UNLOGGED"])

txns = Table(
    "txns", metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("state", Text, CheckConstraint("state IN ('open', 'aborted', 'committed')", name="state"), nullable=False),
    Column("type", SmallInteger, nullable=False, server_default=text("0")),
    Column("user", Text, nullable=False), Column("host", Text, nullable=False),
    Column("agent_info", Text, nullable=False, server_default=text("'Unknown'")),
    _instant("started_at"), _instant("last_heartbeat_at"),
    Column("heartbeat_count", Integer, nullable=False, server_default=text("0")),
    _instant("ended_at", nullable=True),
    Column("abort_code", Integer), Column("abort_reason", Text),
    Column("commit_id", BigInteger),
    # The transaction is aborted and none of its writes are left, so snapshots need not name it any more.
    Column("emptied", Boolean, nullable=False, server_default=text("false")),
    # This is the longest silence between two signs of life.
    Column("longest_gap", Interval, nullable=False, server_default=text("'0'")),
    # Another process than its owner aborted it, and the owner may still publish its writes.
    Column("may_publish", Boolean, nullable=False, server_default=text("false")),
    # The writer reports its rows: [catalog, db, table, rows inserted, rows deleted] of each table.
    Column("written_rows", JSONB),
    Index(None, "id", postgresql_where=text("state <> 'committed' AND NOT emptied")),
    # An hour's finished transactions stay: a fifth of them as dead rows would slow down readers of the index.
    postgresql_with={"fillfactor": "70", "autovacuum_vacuum_scale_factor": "0.01",
                     "autovacuum_vacuum_threshold": "5000"})

# The outcome of a transaction, kept longer than its own record. Every abort is here from the moment it happens, a
# commit that wrote something from the next round of house-keeping on. Both lists are cut; the counts are not.
txn_history = Table(
    "txn_history", metadata,
    Column("txn_id", BigInteger, primary_key=True, autoincrement=False),
    Column("state", Text, CheckConstraint("state IN ('aborted', 'committed')", name="state"), nullable=False),
    Column("type", SmallInteger, nullable=False),
    Column("user", Text, nullable=False), Column("host", Text, nullable=False),
    Column("agent_info", Text, nullable=False),
    _instant("started_at"), _instant("last_heartbeat_at"),
    Column("heartbeat_count", Integer, nullable=False), Column("longest_gap", Interval, nullable=False),
    _instant("ended_at"),
    Column("abort_code", Integer), Column("abort_reason", Text), Column("commit_id", BigInteger),
    Column("writes", JSONB, nullable=False, server_default=text("'[]'")),
    Column("write_count", Integer, nullable=False, server_default=text("0")),
    Column("locks", JSONB, nullable=False, server_default=text("'[]'")),
    Column("lock_count", Integer, nullable=False, server_default=text("0")),
    Column("written_rows", JSONB),
    Index(None, "state", "ended_at"))

# One row, none at first: every aborted transaction above complete_above is in txn_history or in txns.
txn_history_floor = Table(
    "txn_history_floor", metadata,
    Column("id", SmallInteger, CheckConstraint("id = 1", name="one_row"), primary_key=True, autoincrement=False),
    Column("complete_above", BigInteger, nullable=False))

# Ids that no transaction has: jumped over after a crash of PostgreSQL (ADR 0003), or by seed_txn_id.
skipped_txn_ids = Table(
    "skipped_txn_ids", metadata,
    Column("first_id", BigInteger, primary_key=True, autoincrement=False),
    Column("last_id", BigInteger, nullable=False), _instant("at"))

# The last batch of each streaming query in a table: written by the commit of the rows, gone with the table.
stream_batches = Table(
    "stream_batches", metadata,
    Column("table_id", BigInteger, ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("query_id", Text, primary_key=True),
    Column("batch_id", BigInteger, nullable=False), Column("plan", Text, nullable=False),
    Column("txn_id", BigInteger, nullable=False), _instant("at"))

# One row: the PostgreSQL, and the timeline, on which the metastore works (ADR 0049).
database_origin = Table(
    "database_origin", metadata,
    Column("id", SmallInteger, CheckConstraint("id = 1", name="one_row"), primary_key=True, autoincrement=False),
    Column("system", Text, nullable=False), Column("timeline", BigInteger, nullable=False),
    Column("is_synchronous", Boolean, nullable=False))

# One row: the newest migration of the oldest release that can work on this schema (ADR 57).
oldest_release = Table(
    "oldest_release", metadata,
    Column("id", SmallInteger, CheckConstraint("id = 1", name="one_row"), primary_key=True, autoincrement=False),
    Column("version", Text, nullable=False))

# One row, none at first: the id of the last event. Locked while a reader numbers events.
notification_counter = Table(
    "notification_counter", metadata,
    Column("id", SmallInteger, CheckConstraint("id = 1", name="one_row"), primary_key=True, autoincrement=False),
    Column("last_event_id", BigInteger, nullable=False),
    postgresql_with={"fillfactor": "10"})

# Events that have their number. The text of the catalog's is in ``body``, compressed; ``message`` is then {}.
notification_log = Table(
    "notification_log", metadata,
    Column("event_id", BigInteger, primary_key=True, autoincrement=False), _instant("at"),
    Column("type", Text, nullable=False), Column("catalog", Text), Column("db", Text), Column("table", Text),
    Column("message", Text, nullable=False), Column("body", LargeBinary))

# Events that no reader has asked for yet: of transactions and write ids, written by triggers, and of the catalog,
# written by its services. They get their numbers in the order of ``place`` (ADR 137).
notification_queue = Table(
    "notification_queue", metadata,
    Column("place", BigInteger, Identity(), primary_key=True), _instant("at"),
    Column("type", Text, nullable=False), Column("catalog", Text), Column("db", Text), Column("table", Text),
    Column("message", Text, nullable=False), Column("body", LargeBinary))

# The files that transactions wrote to a table or partition, reported by their writers if the log is on.
write_events = Table(
    "write_events", metadata,
    Column("txn_id", BigInteger, nullable=False), *_object(), Column("write_id", BigInteger, nullable=False),
    Column("files", ARRAY(Text), nullable=False), Column("table_object", Text, nullable=False),
    Column("partition_object", Text), _instant("at"),
    UniqueConstraint("txn_id", "catalog", "db", "table", "partition"), Index(None, "at"))

txn_components = Table(
    "txn_components", metadata,
    Column("txn_id", BigInteger, nullable=False), *_object(),
    Column("operation", Text, CheckConstraint("operation IN ('i', 'u', 'd', 'c')", name="operation"), nullable=False),
    Column("write_id", BigInteger),
    # The Cleaner has removed its files; the row stays because more may appear, or lie among committed rows.
    Column("cleaned", Boolean, nullable=False, server_default=text("false")),
    UniqueConstraint("txn_id", "catalog", "db", "table", "partition", "operation"),
    Index(None, "catalog", "db", "table", "partition"))

completed_txn_components = Table(
    "completed_txn_components", metadata,
    Column("txn_id", BigInteger, nullable=False), *_object(),
    Column("write_id", BigInteger), Column("update_delete", Boolean, nullable=False), _instant("at"),
    Index(None, "catalog", "db", "table", "partition"), Index(None, "txn_id"))

write_sets = Table(
    "write_sets", metadata,
    Column("txn_id", BigInteger, nullable=False), Column("commit_id", BigInteger, nullable=False), *_object(),
    Column("operation", Text, nullable=False),
    # True if its transaction held, until it had committed, a lock that keeps EXCL_WRITE and EXCLUSIVE locks waiting.
    Column("guarded", Boolean, nullable=False, server_default=text("false")),
    Index(None, "catalog", "db", "table", "partition", "commit_id"), Index(None, "commit_id"))

# A name keeps its row when its table is dropped or renamed: no id is ever allocated twice under a name (ADR 0037).
# first_write_id: where the ids of the table that has the name now begin; below next_write_id once it has any.
next_write_ids = Table(
    "next_write_ids", metadata, *_table(),
    Column("next_write_id", BigInteger, nullable=False),
    Column("purged_write_id", BigInteger, nullable=False, server_default=text("0")),
    # Since this instant the time of every commit to the table is on record, in txn_write_ids with txns or in
    # write_id_times.
    Column("known_since", DateTime(timezone=True), nullable=False, server_default=text("now()")),
    Column("first_write_id", BigInteger, nullable=False, server_default=text("1")),
    UniqueConstraint("catalog", "db", "table"))

# Commit times of write ids whose owners are forgotten: two arrays of one length. latest: the last of committed_at.
write_id_times = Table(
    "write_id_times", metadata,
    Column("id", BigInteger, Identity(), primary_key=True), *_table(),
    Column("write_ids", ARRAY(BigInteger), nullable=False),
    Column("committed_at", ARRAY(DateTime(timezone=True)), nullable=False), _instant("latest"),
    Index(None, "catalog", "db", "table", "latest"))

txn_write_ids = Table(
    "txn_write_ids", metadata, Column("txn_id", BigInteger, nullable=False), *_table(),
    Column("write_id", BigInteger, nullable=False),
    UniqueConstraint("catalog", "db", "table", "write_id"),
    UniqueConstraint("txn_id", "catalog", "db", "table"))

repl_txn_map = Table(
    "repl_txn_map", metadata,
    Column("policy", Text, nullable=False), Column("source_txn_id", BigInteger, nullable=False),
    Column("target_txn_id", BigInteger, nullable=False),
    UniqueConstraint("policy", "source_txn_id"), Index(None, "target_txn_id"))

min_history = Table(
    "min_history", metadata, Column("txn_id", BigInteger, nullable=False), *_table(),
    Column("min_write_id", BigInteger, nullable=False),
    UniqueConstraint("txn_id", "catalog", "db", "table"), Index(None, "catalog", "db", "table"))

materialization_locks = Table(
    "materialization_locks", metadata, *_table(),
    Column("txn_id", BigInteger, nullable=False), _instant("last_heartbeat_at"),
    UniqueConstraint("catalog", "db", "table"))

lock_ext_id = Sequence("lock_ext_id", metadata=metadata)

# One row per LockComponent; the rows of one request share ext_id. txn_id 0: a lock without a transaction.
locks = Table(
    "locks", metadata,
    Column("ext_id", BigInteger, nullable=False), Column("int_id", Integer, nullable=False),
    Column("txn_id", BigInteger, nullable=False, server_default=text("0")), *_object(),
    Column("type", Text, CheckConstraint(
        "type IN ('shared_read', 'shared_write', 'excl_write', 'exclusive')", name="type"), nullable=False),
    Column("state", Text, CheckConstraint("state IN ('waiting', 'acquired')", name="state"), nullable=False),
    _instant("acquired_at", nullable=True), _instant("last_heartbeat_at", nullable=True), _instant("requested_at"),
    Column("heartbeat_count", Integer, nullable=False, server_default=text("0")),
    Column("user", Text, nullable=False), Column("host", Text, nullable=False),
    Column("agent_info", Text, nullable=False, server_default=text("'Unknown'")),
    Column("blocked_by_ext_id", BigInteger), Column("blocked_by_int_id", Integer),
    # The process whose calls wait for the release of the row, "*" for several; a trigger tells them (released.sql).
    Column("watched_by", Text),
    # The instant at which the connection of a request without a transaction was lost.
    _instant("orphaned_at", nullable=True),
    # The number of heartbeats that were looks at the lock (check_lock) or repetitions of the request.
    Column("check_count", Integer, nullable=False, server_default=text("0")),
    # For release 0.2, as in compactions.
    Column("wire", LargeBinary),
    UniqueConstraint("ext_id", "int_id"),
    Index(None, "catalog", "db", "table", "type"), Index(None, "txn_id", postgresql_where=text("txn_id <> 0")),
    Index("locks_waiting", "ext_id", postgresql_where=text("state = 'waiting'")),
    Index("locks_orphaned", "orphaned_at", postgresql_where=text("orphaned_at IS NOT NULL")),
    postgresql_with={"fillfactor": "70"})

# The latest deadlocks and their ends. cycle: each wait in it, for people.
deadlocks = Table(
    "deadlocks", metadata,
    Column("id", BigInteger, primary_key=True), _instant("found_at"),
    Column("victim_txn_id", BigInteger, nullable=False),
    Column("victim_lock_ids", ARRAY(BigInteger), nullable=False),
    Column("cycle", JSONB, nullable=False), Column("message", Text, nullable=False))


compaction_id = Sequence("compaction_id", metadata=metadata)


def _compaction_columns() -> tuple[Column[object], ...]:
    return (
        *_object(),
        Column("state", Text, nullable=False),
        Column("type", Text, CheckConstraint(
            "type IN ('major', 'minor', 'rebalance', 'abort_txn_cleanup')", name="type"), nullable=False),
        Column("properties", JSONB, nullable=False, server_default=text("'{}'")), Column("pool", Text),
        Column("number_of_buckets", Integer), Column("order_by", Text),
        Column("worker_id", Text), Column("worker_version", Text),
        Column("initiator_id", Text), Column("initiator_version", Text), Column("run_as", Text),
        _instant("enqueued_at"), _instant("started_at", nullable=True), _instant("ended_at", nullable=True),
        _instant("cleaner_started_at", nullable=True),
        Column("highest_write_id", BigInteger), Column("txn_id", BigInteger), Column("next_txn_id", BigInteger),
        _instant("committed_at", nullable=True),
        Column("hadoop_job_id", Text), Column("error_message", Text))


def _later_compaction_columns() -> tuple[Column[object], ...]:
    """Return columns that were added later. Wire: for release 0.2, which reads it; it goes with release_0_2.sql."""
    return (Column("wire", LargeBinary), Column("meta_info", Text))


# The queue. attempt fences a claim: a worker's later writes repeat (worker_id, attempt) and must touch one row.
# heartbeat_at is the lease of a worker that renews it; failures counts the cleaner's; not_before is its next try.
compaction_queue = Table(
    "compaction_queue", metadata,
    Column("id", BigInteger, compaction_id, server_default=compaction_id.next_value(), primary_key=True),
    *_compaction_columns(),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    _instant("heartbeat_at", nullable=True),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    _instant("not_before", nullable=True),
    # Our own Workers take the lowest first: enqueued_at minus the credited waiting time. Null means enqueued_at.
    _instant("turn_at", nullable=True), *_later_compaction_columns(),
    CheckConstraint("state IN ('initiated', 'working', 'ready_for_cleaning')", name="state"),
    Index("compaction_queue_one_active", "catalog", "db", "table", "partition", unique=True,
          postgresql_where=text("state IN ('initiated', 'working')")),
    Index(None, "catalog", "db", "table", "partition"), Index(None, "state", "id"),
    Index(None, "txn_id", postgresql_where=text("txn_id IS NOT NULL")))

completed_compactions = Table(
    "completed_compactions", metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False), *_compaction_columns(),
    *_later_compaction_columns(),
    CheckConstraint("state IN ('failed', 'succeeded', 'did_not_initiate', 'refused', 'aborted')", name="state"),
    Index(None, "catalog", "db", "table", "partition"))

# The deltas of a table or partition, as the Initiator, or a compactor of Hive's, measured them last.
delta_measures = Table(
    "delta_measures", metadata, *_table(), Column("partition", Text, nullable=False, server_default=text("''")),
    *(Column(name, Integer, nullable=False, server_default=text("0"))
      for name in ("deltas", "small_deltas", "obsolete_deltas")),
    *(Column(name, BigInteger, nullable=False, server_default=text("0"))
      for name in ("files", "bytes")),
    _instant("at"), Column("obsolete_bytes", BigInteger, nullable=False, server_default=text("0")),
    # The mean read cost of the deltas at the time ``at``; older scores count less.
    Column("usual_score", Double, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("catalog", "db", "table", "partition"))

# The result of the Initiator's last listing of a table or partition. high_watermark: write ids up to it had ended then.
listings = Table(
    "listings", metadata, *_table(), Column("partition", Text, nullable=False, server_default=text("''")),
    Column("location", Text, nullable=False), _instant("listed_at"),
    *(Column(name, BigInteger, nullable=False) for name in ("high_watermark", "base_bytes", "delta_bytes")),
    *(Column(name, Integer, nullable=False) for name in ("deltas", "delete_deltas")),
    *(Column(name, Boolean, nullable=False) for name in ("originals", "raw_deltas", "leftover_base")),
    PrimaryKeyConstraint("catalog", "db", "table", "partition"))

# How often a table is read: the sum of its opens, each of which counts half after some hours, as of ``at``.
table_opens = Table(
    "table_opens", metadata, *_table(), Column("opens", Double, nullable=False), _instant("at"),
    PrimaryKeyConstraint("catalog", "db", "table"))

# Delegation tokens. A token's password follows from its identifier and its key, so none is stored.
token_keys = Table(
    "token_keys", metadata, Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("key", LargeBinary, nullable=False), _instant("made_at"))
token_sequence = Sequence("delegation_tokens_sequence_seq", metadata=metadata)
delegation_tokens = Table(
    "delegation_tokens", metadata, Column("identifier", LargeBinary, primary_key=True),
    Column("sequence", BigInteger, nullable=False), Column("renewer", Text, nullable=False),
    _instant("valid_until"), _instant("expires"),
    Column("key_id", BigInteger, ForeignKey("token_keys.id"), nullable=False),
    Index(None, "valid_until"), Index(None, "key_id"))

# What Hive servers keep here for themselves (their DBTokenStore).
hive_tokens = Table(
    "hive_tokens", metadata, Column("identifier", Text, primary_key=True), Column("token", Text, nullable=False))
hive_master_keys = Table(
    "hive_master_keys", metadata, Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False))
