"""Clients' work as sequences of calls for the load generator.

Each client has tables of its own, with new names in each run: locks that an interrupted run left disturb no other run.
"""

import os
from typing import Any

from benchmarks.load import Steps, Tally, request, result
from benchmarks.messages import (
    LOCK_ID,
    SNAPSHOT,
    TXN,
    WRITE_ID,
    allocated,
    granted,
    opened,
    pieces,
    snapshot_of,
    text,
    void,
    whole_open_txns,
)
from metastore.thrift_gen.hive_metastore import ttypes

DB, PARTITION, FINISHED_TABLE = "bench", "day=2024-05-01", "finished"
OPEN = request("open_txns", ttypes.OpenTxnRequest(1, "ann", "node1"))
OPEN_TXNS = request("get_open_txns")
COMMIT = pieces("commit_txn", ttypes.CommitTxnRequest(TXN))
BEAT = pieces("heartbeat", ttypes.HeartbeatRequest(0, TXN))
UNLOCK = pieces("unlock", ttypes.UnlockRequest(LOCK_ID))


def table_of(index: int) -> str:
    """Return the name of a client's own table."""
    return f"t{os.getpid()}_{index}"


def lock_request(
    table: str,
    kind: int,
    txn_id: int | None,
    *,
    dynamic: bool = False,
    operation: int = ttypes.DataOperationType.INSERT,
) -> tuple[Any, ...]:
    """Return the arguments of ``lock`` for one table."""
    component = ttypes.LockComponent(kind, ttypes.LockLevel.TABLE, DB, table)
    if txn_id is not None:
        component.operationType, component.isTransactional = operation, True
        component.isDynamicPartitionWrite = dynamic
    return (ttypes.LockRequest([component], txn_id, "ann", "node1", "bench"),)


def open_commit(index: int, tally: Tally) -> Steps:
    """Open and commit a transaction again and again."""
    before, after = COMMIT
    while True:
        txn_id = opened((yield OPEN))
        void("commit_txn", (yield before + txn_id + after))
        tally.done()


def write(index: int, tally: Tally) -> Steps:
    """Open, lock, one heartbeat, commit."""
    ask = pieces("lock", *lock_request(table_of(index), ttypes.LockType.SHARED_WRITE, TXN))
    while True:
        txn_id = opened((yield OPEN))
        granted((yield txn_id.join(ask)))
        void("heartbeat", (yield txn_id.join(BEAT)))
        void("commit_txn", (yield txn_id.join(COMMIT)))
        tally.done()


def full_write(index: int, tally: Tally) -> Steps:
    """Send all calls of Hive for an INSERT into a partitioned table."""
    writer = FullWriter(table_of(index))
    while True:
        yield from writer.steps()
        tally.done()


class FullWriter:
    """The messages for one table, encoded once."""

    def __init__(self, table: str) -> None:
        self.lock = pieces("lock", *lock_request(table, ttypes.LockType.SHARED_WRITE, TXN, dynamic=True))
        self.allocate = pieces("allocate_table_write_ids", ttypes.AllocateTableWriteIdsRequest(DB, table, [TXN]))
        self.valid = pieces("get_valid_write_ids", ttypes.GetValidWriteIdsRequest([f"{DB}.{table}"], SNAPSHOT))
        self.add = pieces(
            "add_dynamic_partitions",
            ttypes.AddDynamicPartitions(TXN, WRITE_ID, DB, table, [PARTITION], ttypes.DataOperationType.INSERT),
        )

    def steps(self) -> Steps:
        """Write once: all calls of a statement of Hive."""
        txn_id = opened((yield OPEN))
        snapshot = snapshot_of((yield OPEN_TXNS), int.from_bytes(txn_id, "big"))
        granted((yield txn_id.join(self.lock)))
        write_id = allocated((yield txn_id.join(self.allocate)))
        reply = yield text(snapshot).join(self.valid)
        if len(reply) < 60:
            result("get_valid_write_ids", reply)
        first, second, third = self.add
        void("add_dynamic_partitions", (yield first + txn_id + second + write_id + third))
        void("heartbeat", (yield txn_id.join(BEAT)))
        void("commit_txn", (yield txn_id.join(COMMIT)))


def lock_unlock(index: int, tally: Tally) -> Steps:
    """Lock and unlock as Iceberg does around its commit: an exclusive lock without a transaction."""
    ask = request("lock", *lock_request(table_of(index), ttypes.LockType.EXCLUSIVE, None))
    while True:
        lock_id = granted((yield ask))
        void("unlock", (yield lock_id.join(UNLOCK)))
        tally.done()


def heartbeat(index: int, tally: Tally) -> Steps:
    """Send heartbeats of one transaction."""
    beat = opened((yield OPEN)).join(BEAT)
    while True:
        void("heartbeat", (yield beat))
        tally.done()


def get_open_txns(index: int, tally: Tally, least: int = 0) -> Steps:
    """Ask for the snapshot again and again. Raises: RuntimeError for an answer that is too short."""
    tally.whole = whole_open_txns
    while True:
        reply = yield OPEN_TXNS
        if len(reply) < 8 * least:
            raise RuntimeError(f"too short an answer: {result('get_open_txns', reply)}")
        tally.done()


def get_valid_write_ids(index: int, tally: Tally, table: str = FINISHED_TABLE) -> Steps:
    """Get the write ids of one table, with the list of transactions at the beginning."""
    tally.whole = whole_open_txns
    snapshot = snapshot_of((yield OPEN_TXNS))
    tally.whole = Tally().whole
    message = request("get_valid_write_ids", ttypes.GetValidWriteIdsRequest([f"{DB}.{table}"], snapshot))
    while True:
        reply = yield message
        if len(reply) < 60:
            raise RuntimeError(f"too short an answer: {result('get_valid_write_ids', reply)}")
        tally.done()
