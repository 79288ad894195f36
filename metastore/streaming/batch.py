"""Batches of transactions that are opened, kept alive and given write ids together, and used one after the other.

Rule: the ids of a batch are opened by one call and heartbeat together, so a transaction costs a lock and a commit. If a
later transaction of it is lost, the whole batch is lost: its write ids are part of the names of its files.
"""

import socket
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic

from metastore.client import DomainClient, TxnManager, outcome
from metastore.client.heartbeat import BatchHeartbeater
from metastore.client.lock_plan import Kind, Output, StatementLocks, Target, statement_locks
from metastore.client.outcome import Fence
from metastore.errors import MetaError, MetastoreError
from metastore.streaming.table import StreamTable
from metastore.telemetry.logs import get_logger
from metastore.txns.core.rules import AbortCode

_log = get_logger(__name__)


class Batch:
    """A batch of ``count`` transactions on one table, as many as the metastore opens at a time."""

    def __init__(
        self,
        client: DomainClient,
        manager: TxnManager,
        table: StreamTable,
        count: int,
        *,
        agent: str,
        partition: str = "",
        is_dynamic: bool = False,
    ) -> None:
        self._manager = manager
        self._client = client
        self._table = table
        self._agent = agent
        target = Target(table.name.db, table.name.table, partition, is_dynamic=is_dynamic)
        self._locks: StatementLocks = statement_locks(outputs=[Output(target, Kind.INSERT)], modes=manager.modes)
        types = self._client.types
        opened = sorted(
            self._client.open_txns(
                types.OpenTxnRequest(num_txns=count, user=self._client.user, hostname=manager.host, agentInfo=agent)
            ).txn_ids
        )
        self._heartbeater = BatchHeartbeater(self._client, manager.timeout, opened)
        self._heartbeater.start()
        try:
            self._waiting = deque(self._with_write_ids(opened))
        except BaseException:
            self._give_up(opened)
            raise
        self.min_write_id = self._waiting[0][1]
        self.max_write_id = self._waiting[-1][1]
        self.txn_id = self.write_id = 0
        self._is_sent = False
        """Whether a commit of the present transaction may be on its way."""

    @property
    def is_used_up(self) -> bool:
        """True if no transaction is left to begin."""
        return not self._waiting

    @property
    def remaining(self) -> int:
        """The number of transactions that are left to begin."""
        return len(self._waiting)

    def begin(self) -> None:
        """Go on to the next transaction, under its lock. Raises: LostError, LockNotAcquiredError."""
        self.check()
        self.txn_id, self.write_id = self._waiting.popleft()
        self._is_sent = False
        self._fence = Fence(self._client, self.txn_id, asked_at=monotonic())
        try:
            self._manager.locks.acquire(
                self._locks,
                txn_id=self.txn_id,
                user=self._client.user,
                host=self._manager.host,
                agent_info=self._agent,
                stop=self._heartbeater.lost,
            )
        except BaseException:
            self.abort()
            raise

    def check(self) -> None:
        """Raise LostError if the transactions are known to be lost."""
        self._heartbeater.check()

    def require_open(self) -> None:
        """Ask the metastore if the present transaction is open, right before its files appear or grow.

        Raises: LostError, TxnAbortedError, NoSuchTxnError; MetastoreUnreachableError, MetaError (unknown).
        """
        self.check()
        self._fence.require_open()

    def commit(self, partitions: Sequence[str] | None) -> None:
        """Commit the present transaction; ``partitions``: those that a dynamic write has written.

        Raises: TxnAbortedError, MetaError, MetastoreUnreachableError; NoSuchTxnError and AnswerLostError (it may be
        committed).
        """
        types, name = self._client.types, self._table.name
        if partitions is not None:
            self._client.add_dynamic_partitions(
                types.AddDynamicPartitions(
                    txnid=self.txn_id,
                    writeid=self.write_id,
                    dbname=name.db,
                    tablename=name.table,
                    partitionnames=list(partitions),
                    operationType=types.DataOperationType.INSERT,
                )
            )
        self._heartbeater.finish(self.txn_id)
        self._is_sent = True
        outcome.commit(self._client, types.CommitTxnRequest(txnid=self.txn_id))

    def abort(self) -> bool:
        """Abort the present transaction; if the metastore is unreachable, it times out.

        Returns True if its files may be removed: not those of a transaction that is committed, or may be.
        """
        if not self._is_sent:
            self._give_up([self.txn_id])
            return True
        try:
            outcome.abort(self._client, self.txn_id)
        except MetastoreError as error:
            _log.warning("txn_not_aborted", txn_id=self.txn_id, reason=str(error))
            return False
        return True

    def close(self) -> None:
        """Abort the transactions that were not begun, and end the heartbeats."""
        self._give_up([txn_id for txn_id, _ in self._waiting])
        self._waiting.clear()
        self._heartbeater.stop()

    def _give_up(self, txn_ids: Sequence[int]) -> None:
        for txn_id in txn_ids:
            self._heartbeater.finish(txn_id)
        if txn_ids:
            with suppress(MetastoreError):
                self._client.abort_txns(
                    self._client.types.AbortTxnsRequest(txn_ids=list(txn_ids), errorCode=int(AbortCode.ROLLBACK))
                )

    def _with_write_ids(self, txn_ids: Sequence[int]) -> list[tuple[int, int]]:
        request = self._client.types.AllocateTableWriteIdsRequest(
            dbName=self._table.name.db, tableName=self._table.name.table, txnIds=list(txn_ids)
        )
        pairs = self._client.allocate_table_write_ids(request).txnToWriteIds
        pairs_by_txn = sorted((int(pair.txnId), int(pair.writeId)) for pair in pairs)
        low, high = pairs_by_txn[0][1], pairs_by_txn[-1][1]
        if [write_id for _, write_id in pairs_by_txn] != list(range(low, high + 1)):
            raise MetaError(f"The write ids {low} to {high} of {self._table.name} were not given out in one piece")
        return pairs_by_txn


def default_agent() -> str:
    """Return the name under which operators see the transactions of this process."""
    return f"streaming-{socket.gethostname()}"
