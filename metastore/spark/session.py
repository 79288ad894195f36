"""``acid(spark)``: ACID tables from PySpark, in SQL or DataFrames; each statement or block is a transaction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from metastore.acid_tables.table import AcidTable, TableKind
from metastore.client import DomainClient
from metastore.client.lock_plan import Kind
from metastore.client.streams import positions
from metastore.client.tls import of_values
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.ids import TableName
from metastore.spark.commands.dispatch import Runner
from metastore.spark.commands.insert import append
from metastore.spark.commands.lookup import Tables, sparks_rows, user_rows
from metastore.spark.commands.overwrite import replace_by
from metastore.spark.jvm.versions import require_supported
from metastore.spark.read.plain_reads import require_no_plain_read, watch
from metastore.spark.read.time_travel import instant
from metastore.spark.sql.conditions import conditions_of
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.parsing import parse_condition
from metastore.spark.sql.pruning import restriction
from metastore.spark.sql.statements import dotted
from metastore.spark.streaming import BatchSink, start
from metastore.spark.txn.spark_txn import Work
from metastore.spark.txn.transactions import Transactions
from metastore.tls.contexts import ClientSide
from metastore.txns.streams.rules import StreamBatch, StreamPosition

Result = TypeVar("Result")
_URIS = "hive.metastore.uris"


class AcidSession:
    """ACID reads and writes of one Spark session. Use it from one thread; ``close`` ends its read transactions."""

    def __init__(self, spark: SparkSession, uri: str | None = None, *, retries: int = 0) -> None:
        require_supported(spark.version)
        self.spark = spark
        self.client = DomainClient(uri or _configured_uri(spark), tls=_configured_tls(spark))
        self.files = Files()
        self._tables = Tables(spark, self.client)
        is_sparks = uri is None or uri == _uri_of(spark)
        self._txns = Transactions(spark, self.client, self.files, retries, is_sparks=is_sparks)
        self._runner = Runner(spark, self.client, self.files, self._tables, self._txns)
        watch(spark)

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        self.close()

    def close(self) -> None:
        """End the transactions of all reads and the connection. DataFrames read before lose their protection."""
        self._txns.close()
        self.client.close()

    # -- reading ---------------------------------------------------------------------------------------------------

    def table(
        self,
        name: str,
        *,
        where: str | None = None,
        as_of_write_id: int | None = None,
        as_of_timestamp: datetime | str | None = None,
        row_id: bool = False,
    ) -> DataFrame:
        """The table's rows in one snapshot; ``row_id`` adds Hive's ``ROW__ID`` (writeid, bucketid, rowid).

        ``where``: only these rows, as with the frame's own ``where``; but partitions that it leaves out are not even
        looked up. ``as_of_write_id``, ``as_of_timestamp``: the rows at that point; a timestamp without a zone is in the
        Spark session's. The Cleaner keeps the snapshot's files while the frame, or a frame made from it, is in use; it
        does not keep those of a point in the past.
        Raises: NoSuchObjectError, InvalidOperationError, NotEnoughHistoryError.
        """
        if as_of_write_id is not None and as_of_timestamp is not None:
            raise InvalidOperationError("A table is read as of a write id, or as of a timestamp.")
        as_of = as_of_write_id if as_of_timestamp is None else instant(self.spark, as_of_timestamp)
        table = self._lookup(name)
        table.require(TableKind.FULL_ACID, *([] if row_id else [TableKind.INSERT_ONLY]), action="Reading a snapshot")
        if as_of is None and table.kind is TableKind.FULL_ACID and self._txns.keeps_plans:
            return self._txns.keep(sparks_rows(self.spark, table.name, row_id=row_id, where=where))
        condition = None if where is None else parse_condition(where, self._runner.computed)
        chosen = restriction(conditions_of(condition), table.partition_keys)

        def read(work: Work) -> DataFrame:
            rows = user_rows(work, table, row_id=row_id, as_of=as_of, where=chosen)
            return rows if condition is None else require_no_plain_read(rows.where(condition.sql(DIALECT)))

        return self._txns.reading([table], read)

    def changes(self, name: str, after: int, up_to: int | None = None) -> DataFrame:
        """The changes to the table's rows by write ids above ``after``, up to ``up_to``.

        None: up to the first write id that may still be committed, so that nothing is missed behind it.
        A row per insert and delete: the columns as the row had them, with ``_operation`` (``insert``, ``delete``),
        ``_write_id`` and ``ROW__ID``. An update is a delete and an insert.
        Raises: as ``table``; NotEnoughHistoryError too when the changes have been compacted into a base.
        """
        table = self._lookup(name)
        return self._txns.reading([table], lambda work: work.changes(table, after, up_to))

    def sql(self, text: str) -> DataFrame:
        """Run one statement: those of the module ``statements`` in a transaction, any other by Spark, unchanged.

        A statement that writes answers a single row with the column ``rows``: how many it changed.
        Raises: InvalidOperationError for a statement that cannot be done right, WriteConflictError for a lost
            race (the message names the winner), LockNotAcquiredError.
        """
        return self._runner.run(text)

    # -- writing ---------------------------------------------------------------------------------------------------

    def insert(self, name: str, rows: DataFrame) -> int:
        """Append ``rows``, matched to the table's columns by name; returns the number of rows.

        Raises: ConstraintViolationError, InvalidOperationError, LockNotAcquiredError.
        """
        table = self._lookup(name)
        require_no_plain_read(rows)
        return self._txns.writing(table, [Kind.INSERT], [], lambda work: append(work, table, rows))

    def overwrite(self, name: str, rows: DataFrame, partition: Mapping[str, object] | None = None) -> int:
        """Replace the table, the partition ``partition`` (values by key), or the partitions that ``rows`` has rows for.

        Returns the number of rows written. Raises: as ``insert``; WriteConflictError.
        """
        fixed = {key.lower(): value for key, value in (partition or {}).items()}
        table = self._lookup(name)
        require_no_plain_read(rows)
        return self._txns.writing(table, [Kind.INSERT_OVERWRITE], [], lambda work: replace_by(work, table, rows, fixed))

    def update(self, name: str, set: Mapping[str, str], where: str | None = None) -> int:  # noqa: A002 - SQL's word
        """UPDATE: ``set`` maps columns to SQL expressions. Returns the number of changed rows. Raises: as ``sql``."""
        changes = ", ".join(f"{column} = {value}" for column, value in set.items())
        return self._runner.change(f"UPDATE {name} SET {changes}" + (f" WHERE {where}" if where else ""))

    def delete(self, name: str, where: str | None = None) -> int:
        """DELETE the rows that meet ``where``, SQL. Returns the number of removed rows. Raises: as ``sql``."""
        return self._runner.change(f"DELETE FROM {name}" + (f" WHERE {where}" if where else ""))

    def merge(
        self,
        into: str,
        using: DataFrame | str,
        on: str,
        whens: Sequence[str],
        *,
        alias: str = "t",
        source_alias: str = "s",
    ) -> int:
        """MERGE ``using``, rows or a table's name. ``on`` and the WHEN clauses ``whens`` are SQL over ``t`` and ``s``.

        Returns the number of rows updated, deleted and inserted. Raises: as ``sql``.
        """
        view = None if isinstance(using, str) else f"__source_{uuid4().hex}"
        if view is not None:
            using.createOrReplaceTempView(view)  # type: ignore[union-attr]
        try:
            return self._runner.change(
                f"MERGE INTO {into} AS {alias} USING {view or using} AS {source_alias} ON {on} " + " ".join(whens)
            )
        finally:
            if view is not None:
                self.spark.catalog.dropTempView(view)

    # -- blocks ----------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """Several reads, one snapshot: all frames of the block show the same instant, after the block too."""
        with self._txns.snapshot():
            yield self

    @contextmanager
    def transaction(self, *, batch: tuple[TableName, StreamBatch] | None = None) -> Iterator[Self]:
        """Several statements, one transaction: committed at the end of the block, undone when it raises.

        A statement sees what earlier statements of the block wrote. In a session with the catalog (``configure``) the
        statements of ``spark.sql`` are in it, too. ``batch``: the batch of a streaming query that the
        block writes, and the table that remembers it with the commit. Raises: WriteConflictError when somebody else
        changed the same table or partition and committed first; with ``batch`` see ``Transaction.commit``.
        """
        with self._txns.of_block() as work:
            if batch is not None:
                work.txn.record(*batch)
            with self._txns.as_block(work):
                yield self

    def retrying(self, attempt: Callable[[], Result]) -> Result:
        """The result of ``attempt``, which runs again, ``retries`` times at most, when it loses a write conflict.

        Each run must read what it needs anew, in a transaction of its own. Inside a transaction block it runs once: the
        whole block has lost. UPDATE, DELETE, MERGE and INSERT OVERWRITE in SQL do this by themselves.
        """
        return self._txns.retrying(attempt)

    # -- streaming -------------------------------------------------------------------------------------------------

    def stream_into(
        self,
        rows: DataFrame | DataStreamWriter,
        name: str,
        *,
        checkpoint: str,
        write: "Callable[[AcidSession, DataFrame], object] | None" = None,
    ) -> StreamingQuery:
        """Start a query that writes each of its batches into a table exactly once.

        ``rows``: a streaming DataFrame, or its ``writeStream`` with a trigger, an output mode or a name. ``write``:
        a function of a session and a batch; None: the batch is inserted. It runs in a transaction that commits together
        with the note that the table has the batch. It may run again after a lost conflict.
        """
        table = self._lookup(name)
        table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="Streaming into a table")
        sink = BatchSink(table.name, checkpoint, write or BatchSink.inserting(name), self._beside)
        return start(rows, sink)

    def stream_positions(self, name: str) -> list[StreamPosition]:
        """The last batch of each streaming query that a table has, the latest first."""
        return positions(self.client, self._lookup(name).name)

    def _beside(self, spark: SparkSession) -> "AcidSession":
        """A session like this for the Spark session, and the thread, of a streaming query."""
        return AcidSession(spark, self.client.uri, retries=self._txns.retries)

    def _lookup(self, name: str) -> AcidTable:
        """The table ``db.table`` or ``table``, quoted or not."""
        return self._tables.lookup(dotted(name))


def _configured_tls(spark: SparkSession) -> ClientSide | None:
    """The TLS settings of Spark's own metastore client; None leaves them to the environment."""
    conf = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - PySpark shows no other way
    return of_values(conf.get)


def _configured_uri(spark: SparkSession) -> str | None:
    """The address of the metastore behind the session's own catalog; None leaves it to $METASTORE_URI.

    Spark builds its Hive client from hive-site.xml, spark.hadoop.*, spark.hive.* and the settings of the first
    session's builder. Later settings of a session do not reach it.
    Raises: InvalidOperationError for a catalog that has no server.
    """
    if value := _uri_of(spark):
        return value
    shared = spark._jsparkSession.sharedState()  # noqa: SLF001 - PySpark shows no other way
    if shared.conf().get("spark.sql.catalogImplementation", "in-memory") == "hive":
        raise InvalidOperationError(
            "The catalog of this Spark session has no metastore server, but a database of its own, so its tables are "
            f"others than those of any server. Start Spark with .config('spark.hadoop.{_URIS}', 'thrift://HOST:PORT'), "
            "or name the server here: acid(spark, uri)."
        )
    return None


def _uri_of(spark: SparkSession) -> str | None:
    value = spark._jsparkSession.sharedState().hadoopConf().get(_URIS)  # noqa: SLF001 - as above
    return str(value) if value else None
