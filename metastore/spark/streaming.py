"""Structured Streaming into transactional tables, exactly once.

Rule: the rows of a batch and the note that the table has them are one commit, so neither is ever without the other.
Spark repeats a batch whose end its checkpoint does not know; the note tells that it is there, and it is left out. There
is no other place that could disagree: no directory beside the table, nothing that has to be cleaned up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from pyspark.sql import DataFrame, SparkSession

from metastore.errors import AlreadyExistsError, InvalidOperationError, MetastoreError
from metastore.spark.jvm.hadoop import Hadoop
from metastore.telemetry.logs import get_logger
from metastore.txns.streams.rules import StreamBatch, StreamPosition, is_repetition

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
    """What a batch needs of an ACID session."""

    @property
    def client(self) -> DomainClient:
        """The connection to the metastore."""

    def __enter__(self) -> Self:
        """The session, closed at the end of the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""

    def insert(self, name: str, rows: DataFrame) -> int:
        """Insert rows into a table."""

    def transaction(self, *, batch: tuple[TableName, StreamBatch]) -> AbstractContextManager[Self]:
        """A transaction that is committed together with the note that the table has the batch."""

    def retrying(self, attempt: Callable[[], Result]) -> Result:
        """What ``attempt`` returns; it is called again when it loses a write conflict."""


Session = TypeVar("Session", bound=BatchSession)


class StoppedError(MetastoreError):
    """The query was stopped in the middle of a batch."""

    def __init__(self, table: TableName, batch_id: int) -> None:
        """Spark takes the end of a batch for that of a stop by its text alone, which must have these names in it.

        It looks for them with a pattern that overflows the JVM's stack in a text as long as that of a Py4JJavaError.
        """
        super().__init__(
            f"the query was stopped: batch {batch_id} is read again at its next start, and left out if {table} has it "
            "(py4j.protocol.Py4JJavaError: An error occurred while calling it: java.lang.InterruptedException)"
        )


@dataclass(frozen=True)
class BatchSink(Generic[Session]):
    """What Spark calls with each batch, on a thread and with a Spark session of the query's own."""

    name: TableName
    checkpoint: str
    write: Callable[[Session, DataFrame], object]
    open_session: Callable[[SparkSession], Session]
    query: Future[StreamingQuery] = field(default_factory=Future)
    """The query, as soon as somebody has it who could stop it."""

    @staticmethod
    def inserting(name: str) -> Callable[[Session, DataFrame], object]:
        """Insert the rows of a batch."""
        return lambda session, rows: session.insert(name, rows)

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Bring a batch into the table, unless it is there.

        Raises: InvalidOperationError when the query was set back; StoppedError; whatever writing raises.
        """
        spark = rows.sparkSession
        try:
            batch = StreamBatch(_query_id(spark), batch_id, self._plan(spark, batch_id))
            with self.open_session(spark) as session:
                session.retrying(lambda: self._bring(session, rows, batch))
        except Exception as error:
            if not self._is_stopped():
                raise
            _log.info("stream_stopped", table=str(self.name), batch_id=batch_id, error=type(error).__name__)
            raise StoppedError(self.name, batch_id) from None  # or Spark would take the batch for done

    def _bring(self, session: Session, rows: DataFrame, batch: StreamBatch) -> None:
        if self._is_there(session, batch):
            _log.info("stream_batch_repeated", table=str(self.name), query_id=batch.query_id, batch_id=batch.batch_id)
            return
        try:
            with session.transaction(batch=(self.name, batch)):
                self.write(session, rows)
        except AlreadyExistsError:  # another run of the same query was quicker
            if not self._is_there(session, batch):
                raise

    def _is_there(self, session: Session, batch: StreamBatch) -> bool:
        known = {one.batch.query_id: one for one in positions(session.client, self.name)}
        return is_repetition(known.get(batch.query_id), batch)

    def _is_stopped(self) -> bool:
        """A query that is being stopped says so before its thread is interrupted."""
        return self.query.done() and not self.query.result().isActive

    def _plan(self, spark: SparkSession, batch_id: int) -> str:
        """A digest of what Spark planned for the batch: it writes that down before it runs it, and repeats that."""
        return hashlib.sha256(Hadoop(spark).read(f"{self.checkpoint}/offsets/{batch_id}")).hexdigest()


def start(rows: DataFrame | DataStreamWriter, sink: BatchSink[Session]) -> StreamingQuery:
    """Start a streaming query into the sink."""
    writer = rows.writeStream if isinstance(rows, DataFrame) else rows
    query = writer.foreachBatch(sink).option("checkpointLocation", sink.checkpoint).start()
    sink.query.set_result(query)
    return query


def positions(client: DomainClient, name: TableName) -> list[StreamPosition]:
    """How far each streaming query has come in a table, the latest first."""
    found = client.metastore_stream_positions(name.catalog, name.db, name.table)
    return [
        StreamPosition(
            StreamBatch(one.batch.queryId, one.batch.batchId, one.batch.plan),
            one.txnid,
            datetime.fromtimestamp(one.committedAt / 1000, UTC),
        )
        for one in found
    ]


def _query_id(spark: SparkSession) -> str:
    """The id that a query has for as long as its checkpoint exists, whoever runs it."""
    query_id = spark.sparkContext.getLocalProperty(_QUERY_ID)
    if not query_id:
        raise InvalidOperationError("Batches are brought into a table by a streaming query: use session.stream_into.")
    return query_id
