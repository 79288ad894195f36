"""The transactions of a session's statements: that of the surrounding block, or one for each statement.

Rule: locks are taken before anything is read. A read's own transaction lives as long as its frame. A write's own is
committed at once, or undone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient, Transaction, TxnManager, WriteConflictError
from metastore.client.lock_plan import Kind, Output, StatementLocks, statement_locks, target_of
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.locks.rules import LockType
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.txn.held_snapshots import HeldFrames
from metastore.spark.txn.joined import JoinedTransaction, has_catalog, require_no_block, session_block
from metastore.spark.txn.kept_reads import KeptRead, KeptReads
from metastore.spark.txn.leases import Lease, Locked, ReadLeases
from metastore.spark.txn.spark_txn import Work
from metastore.spark.write.progress import shown
from metastore.telemetry.logs import get_logger
from metastore.txns.core.rules import TxnType

_log = get_logger(__name__)
Result = TypeVar("Result")


class Transactions:
    """The transactions of a session. ``retries``: how often a statement that lost a write conflict runs again.

    ``is_sparks``: whether the metastore is that of Spark's own catalog.
    """

    def __init__(
        self, spark: SparkSession, client: DomainClient, files: Files, retries: int, *, is_sparks: bool
    ) -> None:
        self.spark = spark
        self.client = client
        self.files = files
        self.retries = retries
        self.is_sparks = is_sparks
        self.block: Work | None = None
        """The transaction of the open block; None outside a block."""
        self._manager = TxnManager(client)
        self._agent = f"spark-{spark.sparkContext.applicationId}"
        self._leases = ReadLeases(HeldFrames(spark))
        self._lease: Lease | None = None
        """The lease of an open snapshot block, whose frames may be read after it."""

    def close(self) -> None:
        """End the transactions of all reads."""
        self._leases.close()
        if kept := self.__dict__.get("_kept"):  # nothing has been read otherwise, and there may be no JVM to ask
            kept.close()

    @cached_property
    def _kept(self) -> KeptReads | None:
        """The reads of a session whose catalog keeps them; None: they are kept here, by leases."""
        return KeptReads(self.spark, self.client) if self.is_sparks and has_catalog(self.spark) else None

    @property
    def keeps_plans(self) -> bool:
        """Whether Spark's own plan can be read now in a snapshot that its frame keeps: not in what a block changes."""
        return self._kept is not None and (self.block is None or isinstance(self.block.txn, KeptRead))

    def keep(self, rows: DataFrame) -> DataFrame:
        """The rows of Spark's own plan, of the snapshot block or as they are now. Only where it ``keeps_plans``."""
        if self.block is not None and isinstance(self.block.txn, KeptRead):
            return self.block.txn.keep(rows)
        require_no_block(self.spark)
        if self._kept is None:
            raise InvalidOperationError("Only a session with the catalog of ACID tables keeps plans of Spark's own.")
        return self._kept.begin().keep(rows)

    @contextmanager
    def exclusively(self, table: AcidTable) -> Iterator[None]:
        """Nobody else reads or writes the table inside the block.

        Raises: InvalidOperationError inside a transaction block, or while an own frame reads the table;
            LockNotAcquiredError.
        """
        if self.block is not None:
            raise InvalidOperationError("A table is altered at once: not inside a transaction or snapshot block.")
        locks = statement_locks(outputs=[Output(target_of(table), Kind.EXCLUSIVE_DDL)])
        self.require_unread((lock.db, lock.table) for lock in locks.locks if lock.type is LockType.EXCLUSIVE)
        with self._manager.locked(locks, agent=self._agent):
            yield

    def reading(self, tables: Sequence[AcidTable], read: Callable[[Work], DataFrame]) -> DataFrame:
        """Run a read in the block's transaction, or in its own, which lives as long as the frame."""
        inputs = [target_of(table) for table in tables]
        locked = _tables(statement_locks(inputs))
        if self.block is not None:
            self.block.txn.lock_statement(inputs)
            if self._lease is not None:
                self._leases.lock(self._lease, locked)
            return read(self.block)
        with self._leased() as (work, lease):
            work.txn.lock_statement(inputs)
            if lease is not None:
                self._leases.lock(lease, locked)
            return read(work)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all statements inside run in one read transaction, which lives as long as the block's frames."""
        with self._leased() as (work, lease), self.as_block(work):
            self._lease = lease
            try:
                yield
            finally:
                self._lease = None

    @contextmanager
    def _leased(self) -> Iterator[tuple[Work, Lease | None]]:
        """A read transaction that lives as long as its frames; its lease, unless the catalog keeps it."""
        if self._kept is not None:
            with self._kept_work(self._kept) as work:
                yield work, None
            return
        work = self._open(TxnType.READ_ONLY)
        lease = self._leases.begin(work.release)
        work.hold = lease.hold
        try:
            yield work, lease
        except BaseException:
            self._leases.withdraw(lease)
            work.txn.abort_quietly()
            raise
        self._leases.complete(lease)

    @contextmanager
    def _kept_work(self, kept: KeptReads) -> Iterator[Work]:
        require_no_block(self.spark)
        read = kept.begin()
        work = self._work(read)
        work.hold = read.hold
        try:
            yield work
        except BaseException:
            read.abort_quietly()
            raise

    def writing(
        self, target: AcidTable, kinds: Sequence[Kind], sources: Sequence[AcidTable], write: Callable[[Work], int]
    ) -> int:
        """Run a write in the block's transaction, or in its own, which commits at once. Returns its number of rows."""
        return self.writing_all([Output(target_of(target, is_written=True), kind) for kind in kinds], sources, write)

    def writing_all(self, outputs: Sequence[Output], sources: Sequence[AcidTable], write: Callable[[Work], int]) -> int:
        """As ``writing``, for several tables."""
        inputs = [target_of(table) for table in sources]
        locks = statement_locks(inputs, outputs)
        self.require_unread((lock.db, lock.table) for lock in locks.locks if lock.type is LockType.EXCLUSIVE)
        if self.block is not None:
            self.block.txn.lock_statement(inputs, outputs)
            with self.block.whole_or_not(), self._shown(outputs, self.block):
                return write(self.block)
        with self.transaction(TxnType.DEFAULT) as work:
            work.txn.lock_statement(inputs, outputs)
            with self._shown(outputs, work):
                return write(work)

    def require_unread(self, tables: Iterable[Locked]) -> None:
        """Raise InvalidOperationError for a table that a frame of this session may still read.

        A statement that locks the table exclusively would wait for this session itself. Drops unused frames first.
        """
        if self._kept is not None:
            self._kept.give_way(tables)
            return
        for db, table in tables:
            if self._leases.keep_locked((db, table)):
                raise InvalidOperationError(
                    f"{db}.{table} is locked by a DataFrame of this session that was read from it and can "
                    "still be used, so it can be neither replaced nor altered: let go of the DataFrame (del rows), or "
                    "read and write in one statement (INSERT OVERWRITE ... SELECT), or in one session.transaction()."
                )

    def _shown(self, outputs: Sequence[Output], work: Work) -> AbstractContextManager[None]:
        names = dict.fromkeys(f"{output.target.db}.{output.target.table}" for output in outputs)
        return shown(self.spark, f"Writing {', '.join(names)}", work.published)

    @contextmanager
    def transaction(self, kind: TxnType) -> Iterator[Work]:
        """A transaction: committed at the end, undone when the block raises."""
        with _ended(self._open(kind)) as work:
            yield work

    @contextmanager
    def of_block(self) -> Iterator[Work]:
        """As ``transaction``, for a block; in a session with the catalog Spark's own statements are in it, too."""
        if not (self.is_sparks and has_catalog(self.spark)):
            with self.transaction(TxnType.DEFAULT) as work:
                yield work
            return
        with session_block(self.spark, self.client) as txn, _ended(self._work(txn)) as work:
            yield work

    def _open(self, kind: TxnType) -> Work:
        require_no_block(self.spark)
        return self._work(self._manager.open(agent=self._agent, kind=kind))

    def _work(self, txn: Transaction | JoinedTransaction) -> Work:
        return Work(self.spark, self.client, self.files, Hadoop(self.spark), txn)

    @contextmanager
    def as_block(self, work: Work) -> Iterator[None]:
        """Let all statements inside run in this transaction. Raises: InvalidOperationError inside another block."""
        if self.block is not None:
            raise InvalidOperationError("A transaction or snapshot block is open already; blocks do not nest.")
        self.block = work
        try:
            yield
        finally:
            self.block = None

    def retrying(self, attempt: Callable[[], Result]) -> Result:
        """The result of ``attempt``, which runs again when it loses a write conflict; inside a block it runs once."""
        for left in reversed(range(self.retries if self.block is None else 0)):
            try:
                return attempt()
            except WriteConflictError as lost:
                _log.info("write_conflict_run_again", winner=lost.winner, attempts_left=left)
        return attempt()


@contextmanager
def _ended(work: Work) -> Iterator[Work]:
    try:
        yield work
    except BaseException:
        work.abort()
        raise
    work.commit()


def _tables(locks: StatementLocks) -> set[Locked]:
    return {(lock.db, lock.table) for lock in locks.locks}
