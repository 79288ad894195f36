"""Structured Streaming into transactional tables, exactly once.

Rule: the rows of a batch and the note that the table has them are one commit, so neither ever exists without the other.
Spark repeats a batch whose end is not in its checkpoint; the note shows that the table has the batch, which is then
skipped. The note has no second copy that could disagree: there is no directory beside the table, and nothing to clean
up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from pyspark.sql import DataFrame, SparkSession

from metastore.client.streams import has_batch
from metastore.errors import AlreadyExistsError, InvalidOperationError, MetastoreError
from metastore.spark.jvm.hadoop import Hadoop
from metastore.telemetry.logs import get_logger
from metastore.txns.streams.rules import StreamBatch

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import TracebackType

    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from metastore.client import DomainClient
    from metastore.ids import TableName

_log = get_logger(__name__)
_QUERY_ID = "sql.streaming.queryId"
Result = TypeVar("Result")


class BatchSession(Protocol):
    """The part of an ACID session that a batch uses."""

    @property
    def client(self) -> DomainClient:
        """The connection to the metastore."""

    def __enter__(self) -> Self:
        """Return the session, which is closed at the end of the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""

    def insert(self, name: str, rows: DataFrame) -> int:
        """Insert rows into a table."""

    def transaction(self, *, batch: tuple[TableName, StreamBatch]) -> AbstractContextManager[Self]:
        """Open a transaction that commits together with the note that the table has the batch."""

    def retrying(self, attempt: Callable[[], Result]) -> Result:
        """Return the result of ``attempt``; run it again when it loses a write conflict."""


Session = TypeVar("Session", bound=BatchSession)


class StoppedError(MetastoreError):
    """The query was stopped in the middle of a batch."""

    def __init__(self, table: TableName, batch_id: int) -> None:
        """Name the batch in the error's text.

        Spark recognizes a stop by the text alone, so the text must contain these names. Spark's pattern overflows the
        JVM's stack on a text as long as that of a Py4JJavaError, so this one is short.
        """
        super().__init__(
            f"the query was stopped: batch {batch_id} is read again at its next start, and left out if {table} has it "
            "(py4j.protocol.Py4JJavaError: An error occurred while calling it: java.lang.InterruptedException)"
        )


@dataclass(frozen=True)
class BatchSink(Generic[Session]):
    """The function that Spark calls with each batch, on the query's own thread and in its own Spark session."""

    name: TableName
    checkpoint: str
    write: Callable[[Session, DataFrame], object]
    open_session: Callable[[SparkSession], Session]
    query: Future[StreamingQuery] = field(default_factory=Future)
    """The query, once ``start`` has it; before that it cannot be stopped."""

    @staticmethod
    def inserting(name: str) -> Callable[[Session, DataFrame], object]:
        """Insert the rows of a batch."""
        return lambda session, rows: session.insert(name, rows)

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Write a batch into the table, unless the table has it.

        Raises: InvalidOperationError when the query was set back; StoppedError; the errors of ``write``.
        """
        spark = rows.sparkSession
        try:
            batch = StreamBatch(_query_id(spark), batch_id, self._plan(spark, batch_id))
            with self.open_session(spark) as session:
                session.retrying(lambda: self._write_once(session, rows, batch))
        except Exception as error:
            if not self._is_stopped():
                raise
            _log.info("stream_stopped", table=str(self.name), batch_id=batch_id, error=type(error).__name__)
            raise StoppedError(self.name, batch_id) from None  # otherwise Spark would take the batch for done

    def _write_once(self, session: Session, rows: DataFrame, batch: StreamBatch) -> None:
        if has_batch(session.client, self.name, batch):
            _log.info("stream_batch_repeated", table=str(self.name), query_id=batch.query_id, batch_id=batch.batch_id)
            return
        try:
            with session.transaction(batch=(self.name, batch)):
                self.write(session, rows)
        except AlreadyExistsError:  # another run of the same query committed the batch first
            if not has_batch(session.client, self.name, batch):
                raise

    def _is_stopped(self) -> bool:
        """Return True if the query is being stopped: it is inactive before its thread is interrupted."""
        return self.query.done() and not self.query.result().isActive

    def _plan(self, spark: SparkSession, batch_id: int) -> str:
        """Return a digest of Spark's plan of the batch; Spark first writes the plan to the checkpoint."""
        return hashlib.sha256(Hadoop(spark).read(f"{self.checkpoint}/offsets/{batch_id}")).hexdigest()


def start(rows: DataFrame | DataStreamWriter, sink: BatchSink[Session]) -> StreamingQuery:
    """Start a streaming query into the sink."""
    writer = rows.writeStream if isinstance(rows, DataFrame) else rows
    query = writer.foreachBatch(sink).option("checkpointLocation", sink.checkpoint).start()
    sink.query.set_result(query)
    return query


def _query_id(spark: SparkSession) -> str:
    """Return the query's id, which lasts as long as its checkpoint."""
    query_id = spark.sparkContext.getLocalProperty(_QUERY_ID)
    if not query_id:
        raise InvalidOperationError("Batches are brought into a table by a streaming query: use session.stream_into.")
    return query_id
