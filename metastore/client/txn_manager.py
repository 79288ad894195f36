"""Transactions for programs that read and write tables: Hive's DbTxnManager.

    with TxnManager(client).transaction(agent="nightly load") as txn:
        txn.lock(statement_locks(inputs, outputs))      # waits; locks first, so that the snapshot is taken under them
        write_id = txn.write_id("sales", "orders")
        snapshot = txn.valid_write_ids(["sales.orders"])["sales.orders"]
        ...                                             # txn.check() now and then in long work
        txn.add_dynamic_partitions("sales", "orders", ["day=1"], Operation.UPDATE)

Leaving the block commits; an exception aborts. Rule: the snapshot is taken once, after the first locks are held, so
under exclusive write locks no change that it misses can be overwritten; the server's conflict check at commit (first
committer wins) decides all other cases.
"""

import getpass
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.client import outcome, txn_calls
from metastore.client.answers import domain_errors
from metastore.client.client import MetastoreClient
from metastore.client.conflicts import lost_while_waiting
from metastore.client.heartbeat import Heartbeater, txn_timeout
from metastore.client.lock_manager import LockManager, LockWait, told_wait
from metastore.client.lock_plan import LockModes, LockPlan, StatementLocks, lock_modes
from metastore.client.outcome import Fence
from metastore.errors import MetastoreError, TxnAbortedError
from metastore.ids import TableName
from metastore.locks.rules import LockType, Operation
from metastore.telemetry.logs import get_logger
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.txns.core.rules import AbortCode, TxnType
from metastore.txns.history.rules import Answer
from metastore.txns.streams.rules import StreamBatch

_log = get_logger(__name__)
_EXCLUDING = frozenset({LockType.EXCL_WRITE, LockType.EXCLUSIVE})
_REOPENINGS = 10


class TxnManager:
    """A factory of transactions through one client, which others may use too: calls take turns on its connection."""

    def __init__(self, client: MetastoreClient, *, wait: LockWait | None = None, host: str | None = None) -> None:
        self.client = client
        self.host = host or socket.gethostname()
        self._wait = wait

    @cached_property
    def locks(self) -> LockManager:
        """The manager that asks for locks, and waits as long as the metastore's settings say, unless set otherwise."""
        return LockManager(self.client, self._wait or told_wait(self._setting))

    @cached_property
    def modes(self) -> LockModes:
        """The switches of the lock plan as the metastore's settings have them."""
        return lock_modes(self._setting)

    def _setting(self, key: str, default: str) -> str:
        with domain_errors():
            return str(self.client.get_config_value(key, default))

    @cached_property
    def timeout(self) -> timedelta:
        """The silence after which the server ends a transaction."""
        return txn_timeout(self.client)

    def outcome(self, txn_id: int) -> Answer:
        """Return the outcome of a transaction: committed, aborted, open, never opened; or unknown, after a long time.

        Raises: MetastoreUnreachableError.
        """
        return outcome.outcome_of(self.client, txn_id)

    def open(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        kind: TxnType = TxnType.DEFAULT,
        cancel: Callable[[str], object] | None = None,
    ) -> "Transaction":
        """Open a transaction and start its heartbeats; the caller commits or aborts it.

        ``cancel``: called with the reason, from another thread, when the transaction is lost: stops the work.
        """
        return Transaction(
            self, user or self.client.user or getpass.getuser(), agent or f"py-{uuid.uuid4()}", kind, cancel
        )

    @contextmanager
    def transaction(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        kind: TxnType = TxnType.DEFAULT,
        cancel: Callable[[str], object] | None = None,
    ) -> Iterator["Transaction"]:
        """Run the block in a transaction: committed at its end, aborted when it raises. ``cancel``: see ``open``."""
        txn = self.open(user=user, agent=agent, kind=kind, cancel=cancel)
        try:
            yield txn
        except BaseException:
            txn.abort_quietly()
            raise
        txn.commit()

    @contextmanager
    def locked(
        self, wanted: StatementLocks, *, user: str | None = None, agent: str | None = None
    ) -> Iterator[Heartbeater]:
        """Hold locks without a transaction around the block, as Iceberg does to commit.

        It yields the heartbeater: its ``check()`` raises when the locks are lost.
        Raises: LockNotAcquiredError.
        """
        lock_id = self.locks.acquire(
            wanted, user=user or self.client.user, host=self.host, agent_info=agent or f"py-{uuid.uuid4()}"
        )
        try:
            with Heartbeater(self.client, self.timeout, lock_id=lock_id) as heartbeater:
                yield heartbeater
        finally:
            self.locks.release(lock_id)


class Transaction:
    """An open transaction. Its id can change while it waits for its first locks; see ``lock``."""

    def __init__(
        self, manager: TxnManager, user: str, agent: str, kind: TxnType, cancel: Callable[[str], object] | None = None
    ) -> None:
        self._manager = manager
        self._client = manager.client
        self._user = user
        self._agent = agent
        self._kind = kind
        self._cancel = cancel
        self._lock_requests: list[StatementLocks] = []
        self._write_ids: dict[tuple[str, str], int] = {}
        self._snapshot: ValidTxnList | None = None
        self._reads: dict[str, None] = {}
        self._says_what_it_reads = self._has_said_it = False
        self._vouched = False
        self.overwritten: set[str] = set()
        """The places with a base of this transaction; the writer of a base adds its place."""
        self._batch: tuple[TableName, StreamBatch] | None = None
        self._is_sent = False
        """True if a commit may be on its way."""

        self._begin()

    def lock(self, wanted: StatementLocks | Sequence[LockPlan]) -> None:
        """Take all locks of a statement, waiting for them.

        If another transaction changed an object that is now locked exclusively, and nothing was read or written yet, a
        transaction with a later id takes its place: the work sees the change instead of conflicting with it.
        Raises: LockNotAcquiredError, TxnAbortedError, WriteConflictError (its snapshot has missed a change).
        """
        request = wanted if isinstance(wanted, StatementLocks) else StatementLocks(tuple(wanted))
        if not request.locks:
            return
        self._acquire(request)
        self._lock_requests.append(request)
        if not any(plan.type in _EXCLUDING for plan in request.locks):
            return
        for _ in range(_REOPENINGS):
            latest = txn_calls.latest_conflict(self._client, self.id)
            if latest is None:
                self._vouched = False
                return
            started = self._snapshot is not None or bool(self._write_ids)
            if started and latest > 0 and not (self._snapshot or ValidTxnList(0)).is_valid(latest):
                raise lost_while_waiting(
                    self._client, self.id, latest, {(lock.db, lock.table) for lock in request.locks}
                )
            self._vouched = self._vouched and not started
            if started or latest <= self.id:
                return
            self._reopen()
        raise TxnAbortedError("Others keep changing what this transaction locks. Start again later.")

    def own_write_id(self, db: str, table: str) -> int | None:
        """Return the write id of this transaction for a table; None if it has none yet."""
        return self._write_ids.get((db.lower(), table.lower()))

    def write_id(self, db: str, table: str) -> int:
        """Return the write id of this transaction for a table; allocate it at the first call."""
        key = (db.lower(), table.lower())
        if key not in self._write_ids:
            self._write_ids[key] = txn_calls.allocate_write_id(self._client, self.id, *key)
        return self._write_ids[key]

    def valid_txns(self) -> ValidTxnList:
        """Return the snapshot, which is taken at the first call and stays the same."""
        if self._snapshot is None:
            self._snapshot = txn_calls.valid_txns(self._client, self.id)
        return self._snapshot

    def valid_write_ids(self, tables: Iterable[str], *, no_others: bool = False) -> dict[str, ValidWriteIdList]:
        """Return the visible write ids of each ``db.table``; the transaction's own write ids count as valid.

        ``no_others``: the transaction reads no other tables, so their cleaning does not wait for it. Raises: MetaError
        if it reads another table nevertheless, and that table was cleaned meanwhile.
        """
        names = list(tables)
        self._reads |= dict.fromkeys(names)
        self._says_what_it_reads |= no_others
        if not self._says_what_it_reads:
            return txn_calls.valid_write_ids(self._client, self.valid_txns(), names)
        self._snapshot, lists, self._has_said_it = txn_calls.read_snapshot(
            self._client, self.id, list(self._reads), self._snapshot, has_said=self._has_said_it
        )
        return {name: lists[name] for name in names}

    def valid_write_ids_at(self, name: TableName, at: datetime) -> ValidWriteIdList:
        """Return the write ids committed to a table at an instant.

        Raises: InvalidOperationError for a write id that is not on record, or still to come.
        """
        return txn_calls.valid_write_ids_at(self._client, name, at)

    def add_dynamic_partitions(self, db: str, table: str, partitions: Sequence[str], operation: Operation) -> None:
        """Report the partitions that a dynamic write has written; an empty list if none."""
        write_id = self.write_id(db, table)
        txn_calls.add_dynamic_partitions(self._client, self.id, write_id, db, table, partitions, operation)

    def record(self, name: TableName, batch: StreamBatch) -> None:
        """Let the commit record, with the table, which batch of a streaming query this is; see ``commit``."""
        self._batch = (name, batch)

    def check(self) -> None:
        """Raise LostError if the transaction is known to be lost."""
        self._heartbeater.check()

    def require_open(self) -> None:
        """Ask the metastore if the transaction is open, right before its files get their names.

        Raises: LostError, TxnAbortedError, NoSuchTxnError; MetastoreUnreachableError, MetaError (unknown).
        """
        self.check()
        self._fence.require_open()

    def commit(self) -> None:
        """Commit. If the answer gets lost, ask the metastore for the outcome.

        Raises: WriteConflictError (a concurrent transaction changed the same and committed first), TxnAbortedError (it
        timed out, or was aborted), MetaError (refused, and aborted then), MetastoreUnreachableError; NoSuchTxnError and
        AnswerLostError (it may be committed). For a recorded batch also AlreadyExistsError (it is committed),
        InvalidOperationError (a later write id is) and NoSuchObjectError: the transaction is still open then.
        """
        self._heartbeater.stop()
        self._is_sent = True
        request = txn_calls.commit_request(self.id, self._kind, is_vouched=self._vouched, batch=self._batch)
        txn_calls.commit(self._client, request)

    def abort(self, code: AbortCode = AbortCode.ROLLBACK) -> None:
        """Abort; an aborted transaction stays aborted.

        Raises: NoSuchTxnError (committed, or unknown), MetastoreUnreachableError.
        """
        self._heartbeater.stop()
        if self._is_sent:
            outcome.abort(self._client, self.id, code)
            return
        with domain_errors():
            self._client.abort_txn(ttypes.AbortTxnRequest(txnid=self.id, errorCode=int(code)))

    def abort_quietly(self) -> bool:
        """Abort during error handling and never hide the first error.

        If the server is unreachable, the transaction times out.

        Returns True if its files may be removed: not those of a transaction that is committed, or may be.
        """
        try:
            self.abort()
        except MetastoreError as error:
            if self._is_sent:
                _log.warning("txn_not_aborted", txn_id=self.id, reason=str(error))
            return not self._is_sent
        return True

    def _begin(self) -> None:
        self.id = txn_calls.open_txn(
            self._client, self._kind, user=self._user, host=self._manager.host, agent=self._agent
        )
        self._vouched = True
        self._fence = Fence(self._client, self.id)
        self._heartbeater = Heartbeater(self._client, self._manager.timeout, txn_id=self.id, cancel=self._cancel)
        self._heartbeater.start()

    def _acquire(self, request: StatementLocks) -> None:
        self._manager.locks.acquire(
            request,
            txn_id=self.id,
            user=self._user,
            host=self._manager.host,
            agent_info=self._agent,
            stop=self._heartbeater.lost,
        )

    def _reopen(self) -> None:
        """Take the same locks with a new transaction, which is later than all for which they waited."""
        self.abort(AbortCode.CONCURRENT_COMMITTED)
        self._begin()
        for request in self._lock_requests:
            self._acquire(request)
