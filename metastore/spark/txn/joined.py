"""A block in a session whose own SQL knows ACID tables: Spark's statements and ours are one transaction.

Rule: the transaction is that of the block in the session's catalog (``Block.java``), with its id, locks, snapshot,
write ids and numbers of statements. A statement of ours takes them from there, and removes its files itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from metastore import errors
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.client import AnswerLostError, DomainClient, LockNotAcquiredError, MetastoreUnreachableError, txn_calls
from metastore.client.conflicts import WriteConflictError, lost_by
from metastore.client.fence import Fence
from metastore.client.lock_plan import Output, Target
from metastore.ids import TableName
from metastore.locks.rules import Operation
from metastore.spark.jvm.compiled import catalog_object
from metastore.telemetry.logs import get_logger
from metastore.txns.streams.rules import StreamBatch

_log = get_logger(__name__)
_ERRORS = {kind.__name__: kind for kind in (AnswerLostError, LockNotAcquiredError, MetastoreUnreachableError)}


def has_catalog(spark: SparkSession) -> bool:
    """Whether the session's own SQL knows ACID tables."""
    blocks = catalog_object(spark, "SessionBlocks")
    return blocks is not None and bool(blocks.hasCatalog(spark._jsparkSession))  # noqa: SLF001 - PySpark shows no other way


def require_no_block(spark: SparkSession) -> None:
    """Raise InvalidOperationError where the session has a block open that a statement of ours would not be part of."""
    blocks = catalog_object(spark, "SessionBlocks")
    if blocks is not None and blocks.open(spark._jsparkSession) is not None:  # noqa: SLF001 - as above
        raise errors.InvalidOperationError(
            "CALL system.begin() has opened a transaction in this session, and a statement of acid(spark) would not be "
            "part of it: use `with session.transaction()` instead, or CALL system.commit() first."
        )


@contextmanager
def session_block(spark: SparkSession, client: DomainClient) -> Iterator["JoinedTransaction"]:
    """The session's block, from here on; whatever has not ended at the end of this is rolled back."""
    with own_errors():
        spark.sql("CALL spark_catalog.system.begin()")
    block = catalog_object(spark, "SessionBlocks").open(spark._jsparkSession)  # noqa: SLF001 - as above
    try:
        yield JoinedTransaction(spark, client, block)
    finally:
        with own_errors():
            block.rollback()


class JoinedTransaction:
    """What ``Transaction`` is, in the session's block; ``overwritten``: the places that have a base of it."""

    def __init__(self, spark: SparkSession, client: DomainClient, block: Any) -> None:
        self._spark = spark
        self._client = client
        self._block = block
        self.overwritten = _Overwritten(block)

    @property
    def id(self) -> int:
        """The transaction's id; it may change until the first locks are held."""
        with own_errors():
            return int(self._block.id())

    def lock_statement(self, inputs: Sequence[Target], outputs: Sequence[Output] = ()) -> None:
        """Take all locks of a statement. Raises: as ``Transaction.lock``."""
        reads = [f"{target.db}.{target.table}" for target in inputs]
        writes = [f"{output.target.db}.{output.target.table}" for output in outputs]
        with own_errors():
            self._block.lock(reads, writes, [output.kind.name for output in outputs])

    def next_statement(self) -> int:
        """The number of a new statement."""
        return int(self._block.nextStatement())

    def write_id(self, db: str, table: str) -> int:
        """The write id for a table, allocated when first asked for."""
        write_id = txn_calls.allocate_write_id(self._client, self.id, db, table)
        self._block.hasWriteId(f"{db}.{table}", write_id)
        return write_id

    def own_write_id(self, db: str, table: str) -> int | None:
        """The write id by which it has written a table; None where it has not."""
        write_id = self._block.ownWriteId(f"{db}.{table}")
        return None if write_id is None else int(write_id)

    def valid_txns(self) -> ValidTxnList:
        """The snapshot, which is taken at the first call and stays the same."""
        with own_errors():
            return ValidTxnList.parse(self._block.txns())

    def valid_write_ids(self, tables: Iterable[str]) -> dict[str, ValidWriteIdList]:
        """What may be read of each ``db.table``."""
        with own_errors():
            return {table: ValidWriteIdList.parse(self._block.writeIds(table)) for table in tables}

    def valid_write_ids_at(self, name: TableName, at: datetime) -> ValidWriteIdList:
        """As ``Transaction.valid_write_ids_at``."""
        return txn_calls.valid_write_ids_at(self._client, name, at)

    def add_dynamic_partitions(self, db: str, table: str, partitions: Sequence[str], operation: Operation) -> None:
        """As ``Transaction.add_dynamic_partitions``."""
        write_id = self.write_id(db, table)
        txn_calls.add_dynamic_partitions(self._client, self.id, write_id, db, table, partitions, operation)

    def record(self, name: TableName, batch: StreamBatch) -> None:
        """As ``Transaction.record``."""
        self._block.brings(str(name), batch.query_id, batch.batch_id, batch.plan)

    def check(self) -> None:
        """Raise TxnAbortedError if the transaction is known to be lost."""
        _ = self.id

    def require_open(self) -> None:
        """As ``Transaction.require_open``."""
        Fence(self._client, self.id).require_open()

    def commit(self) -> None:
        """Commit. Raises: as ``Transaction.commit``."""
        with own_errors():
            self._spark.sql("CALL spark_catalog.system.commit()")

    def abort_quietly(self) -> bool:
        """As ``Transaction.abort_quietly``; what Spark's statements have written goes at the end of the block."""
        try:
            with own_errors():
                return bool(self._block.giveUp("A statement of acid(spark) failed."))
        except (errors.MetastoreError, PySparkException) as error:
            _log.warning("block_not_aborted", reason=str(error))
            return False


class _Overwritten:
    """The places that have a base of the transaction, whoever has written it."""

    def __init__(self, block: Any) -> None:
        self._block = block

    def __contains__(self, location: str) -> bool:
        return bool(self._block.hasOverwritten(location))

    def add(self, location: str) -> None:
        """A base is there."""
        self._block.overwrites(location)

    def discard(self, location: str) -> None:
        """None is there any more."""
        self._block.overwritesNoMore(location)


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise the error that the connector has a sentence of, where it has one of ours."""
    try:
        yield
    except PySparkException as error:
        name, text = error.getCondition() or "", str(error)
        if name == WriteConflictError.__name__:
            raise lost_by(text) from None
        kind = _ERRORS.get(name, getattr(errors, name, None))
        if kind is None:
            raise
        raise kind(text) from None
