"""Transactions, write ids and locks on a database, without a server in front: short words for long requests."""

from datetime import timedelta

from metastore.config import TxnSettings
from metastore.db import catalog_tables
from metastore.housekeeping.service import PurgeService
from metastore.ids import TableName, table_name
from metastore.locks.rules import LockObject, LockRequest, LockState, LockType, WantedLock
from metastore.locks.rules import Operation as LockOperation
from metastore.locks.service import LockService
from metastore.loops.reaper import Reaper
from metastore.txns.commit.service import CommitRequest, CommitService
from metastore.txns.core.rules import AbortCode, Operation, TxnType
from metastore.txns.core.service import AbortRequest, DynamicPartitions, Heartbeat, OpenRequest, TxnService
from metastore.write_ids.rules import Allocation
from metastore.write_ids.service import Reading, WriteIdService

LOCK_OPERATIONS = {Operation.INSERT: LockOperation.INSERT, Operation.UPDATE: LockOperation.UPDATE,
                   Operation.DELETE: LockOperation.DELETE}


# As after the migrations: far quicker than a new database.
EMPTY = "".join(f'DELETE FROM "{table.name}"; ' for table in reversed(catalog_tables.metadata.sorted_tables)) + """
    INSERT INTO txn_counter (id) VALUES (1); ALTER SEQUENCE lock_ext_id RESTART; UPDATE test_clock SET ahead = '0'"""


def raised(answers):
    """Return the answer of a batch with a single member, or raise its error."""
    [answer] = answers
    if isinstance(answer, Exception):
        raise answer
    return answer


class Transactions:
    """What a client does, one call at a time."""

    def __init__(self, database, settings=None):
        settings = settings or TxnSettings()
        self.db = database
        self.txns = TxnService(database, settings)
        self.commits = CommitService(database, settings)
        self.write_ids = WriteIdService(database)
        self.locks = LockService(database)
        self.purges = PurgeService(database, settings)
        self.reaper = Reaper(self.purges)

    def open(self, size=1, kind=TxnType.DEFAULT):
        ids = list(raised(self.txns.open_txns([OpenRequest(size, "ann", "h1", txn_type=kind)])))
        return ids[0] if size == 1 else ids

    def commit(self, *txn_ids, excl=None):
        for txn_id in txn_ids:
            raised(self.commits.commit_txn([CommitRequest(txn_id, excl)]))

    def abort(self, txn_id, code=AbortCode.NONE):
        raised(self.txns.abort_txn([AbortRequest(txn_id, code, "ann at h1")]))

    def heartbeat(self, txn_id=0, lock_id=0):
        raised(self.txns.heartbeat([Heartbeat(txn_id, lock_id)]))

    def allocate(self, table, *txn_ids, reallocate=False):
        return raised(self.write_ids.allocate_table_write_ids([Allocation(named(table), txn_ids, reallocate)]))

    def lock(self, txn_id, table, operation, kind=LockType.SHARED_WRITE, *, dynamic=False, transactional=True):
        """Request a lock on ``db.table`` or ``db.table/partition``; return its id, negative if it waits."""
        table, _, partition = table.partition("/")
        component = WantedLock(kind, LockObject(*named(table), partition), LOCK_OPERATIONS.get(operation, operation),
                               is_transactional=transactional, is_dynamic_partition_write=dynamic)
        result = raised(self.locks.lock([LockRequest((component,), txn_id)]))
        return result.lock_id if result.state is LockState.ACQUIRED else -result.lock_id

    def partitions(self, txn_id, table, *partitions, operation=Operation.UPDATE, write_id=None):
        raised(self.txns.add_dynamic_partitions(
            [DynamicPartitions(txn_id, named(table), partitions, operation, write_id)]))

    def write(self, table, operation=Operation.UPDATE, txn_id=None, **lock):
        """Write a table in a transaction, with a write id and a lock that declares the write; return the transaction."""
        txn_id = txn_id or self.open()
        self.allocate(table.partition("/")[0], txn_id)
        self.lock(txn_id, table, operation, **lock)
        return txn_id

    def reads(self, table, txns=None, write_id=None):
        """Return the one table's write-id list."""
        [known] = self.lists([table], txns, write_id)
        return known

    def reads_only(self, txn_id, *tables, txns=None):
        """Return the snapshot of a transaction that says what it reads: (transactions, lists of write ids)."""
        return self.write_ids.read_snapshot(txn_id, tables, txns)

    def lists(self, tables, txns=None, write_id=None):
        """Return the tables' write-id lists."""
        return raised(self.write_ids.get_valid_write_ids([Reading(tuple(tables), txns, write_id)]))

    def rows(self, query, *parameters):
        return self.db.once(query, parameters)

    def count(self, table):
        return self.rows(f"SELECT count(*) FROM {table}")[0][0]

    def state(self, txn_id):
        rows = self.rows("SELECT state FROM txns WHERE id = %s", txn_id)
        return rows[0][0] if rows else None


def named(text):
    """``db.table`` as it is stored."""
    return table_name(*text.split(".")) if text.count(".") == 1 else TableName(*text.split("."))


def seconds(number):
    return timedelta(seconds=number)
