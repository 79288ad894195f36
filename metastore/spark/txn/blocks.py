"""Blocks and reads of a session's catalog, on Python's side. The JVM has their ids, locks and snapshots."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from metastore import errors
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import NotEnoughHistoryError
from metastore.client import AnswerLostError, LockNotAcquiredError, MetastoreUnreachableError
from metastore.client.conflicts import WriteConflictError, lost_by
from metastore.errors import InvalidOperationError
from metastore.spark.jvm.compiled import catalog_object
from metastore.txns.streams.rules import StreamBatch


class ConstraintViolationError(InvalidOperationError):
    """Some rows broke constraints of the table, so the statement wrote nothing."""


_ERRORS = {
    kind.__name__: kind
    for kind in (
        AnswerLostError,
        ConstraintViolationError,
        LockNotAcquiredError,
        MetastoreUnreachableError,
        NotEnoughHistoryError,
    )
}


class OpenTransaction:
    """An open transaction of a session: its block, or a read of frames. ``java``: the JVM's object."""

    def __init__(self, java: Any) -> None:
        self.java = java

    @property
    def id(self) -> int:
        """The transaction's id; it may change until the first locks are held."""
        with own_errors():
            return int(self.java.id())

    def lock(self, tables: Iterable[str]) -> None:
        """Take the locks of a statement that reads tables, ``db.table``. Raises: LockNotAcquiredError."""
        with own_errors():
            self.java.lock(list(tables))

    def valid_txns(self) -> ValidTxnList:
        """Return the snapshot, which the first call takes; it stays the same."""
        with own_errors():
            return ValidTxnList.parse(self.java.txns())

    def valid_write_ids(self, table: str) -> ValidWriteIdList:
        """Return the visible write ids of ``db.table``, the transaction's own writes included."""
        with own_errors():
            valid = ValidWriteIdList.parse(self.java.writeIds(table))
            own = self.java.ownWriteId(table)
        return valid if own is None else valid.with_own(int(own))


class OpenBlock(OpenTransaction):
    """The session's open block."""

    def record(self, name: object, batch: StreamBatch) -> None:
        """Let the table note a batch of a streaming query with the commit."""
        self.java.brings(str(name), batch.query_id, batch.batch_id, batch.plan)


class OpenRead(OpenTransaction):
    """A read transaction for making frames.

    Later reads of these frames rest on the retention time of replaced files.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._frames = catalog_object(spark, "extension.Frames")
        super().__init__(self._frames.read(spark._jsparkSession))  # noqa: SLF001 - PySpark shows no other way

    def pinned(self, rows: DataFrame) -> DataFrame:
        """Return the rows of Spark's own plan as they are in this transaction, whenever the frame is run."""
        with own_errors():
            return DataFrame(self._frames.pinned(rows._jdf, self.java), rows.sparkSession)  # noqa: SLF001 - as above


@contextmanager
def open_read(spark: SparkSession) -> Iterator[OpenRead]:
    """Open a read transaction, which ends with the block."""
    with own_errors():
        read = OpenRead(spark)
    try:
        yield read
    finally:
        read.java.release()


@contextmanager
def session_block(spark: SparkSession) -> Iterator[OpenBlock]:
    """Open the session's block: committed at the end, rolled back when it raises. Raises: WriteConflictError."""
    with own_errors():
        spark.sql("CALL spark_catalog.system.begin()")
    block = catalog_object(spark, "extension.SessionBlocks").open(spark._jsparkSession)  # noqa: SLF001 - PySpark shows no other way
    try:
        yield OpenBlock(block)
        with own_errors():
            spark.sql("CALL spark_catalog.system.commit()")
    finally:
        with own_errors():
            block.rollback()


def has_block(spark: SparkSession) -> bool:
    """Return True if the session has an open block, whether Python or SQL began it."""
    return catalog_object(spark, "extension.SessionBlocks").open(spark._jsparkSession) is not None  # noqa: SLF001 - as above


@contextmanager
def own_errors() -> Iterator[None]:
    """Convert the connector's errors into ours: raise the Python error of the same class, with the same text."""
    try:
        yield
    except PySparkException as error:
        name, text = error.getCondition() or "", str(error)
        if name == WriteConflictError.__name__:
            raise lost_by(text) from None
        kind = _ERRORS.get(name, getattr(errors, name, InvalidOperationError if name == "UNSUPPORTED" else None))
        if kind is None:
            raise
        raise kind(text) from None
