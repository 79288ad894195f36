"""``acid(spark)``: the features that Spark's SQL lacks for ACID tables: blocks, snapshots, retries, row counts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import reduce
from types import TracebackType
from typing import Self, TypeVar
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from metastore.acid.events import ROW_ID_COLUMN
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.table import quoted
from metastore.client import DomainClient
from metastore.client.streams import positions
from metastore.client.tls import of_values
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.ids import TableName
from metastore.spark.catalog import with_catalog
from metastore.spark.changes import changes
from metastore.spark.jvm.compiled import catalog_object
from metastore.spark.jvm.versions import require_supported
from metastore.spark.statements import Runner
from metastore.spark.streaming import BatchSink, start
from metastore.spark.txn.blocks import own_errors
from metastore.spark.txn.transactions import Transactions
from metastore.tls.contexts import ClientSide
from metastore.txns.streams.rules import StreamBatch, StreamPosition

Result = TypeVar("Result")
_URIS = "hive.metastore.uris"


class AcidSession:
    """ACID reads and writes of one Spark session. Use it from one thread."""

    def __init__(self, spark: SparkSession, uri: str | None = None, *, retries: int = 0) -> None:
        require_supported(spark.version)
        self.client = DomainClient(uri or _configured_uri(spark), tls=_configured_tls(spark))
        self.spark = with_catalog(spark, None if uri is None or uri == _uri_of(spark) else uri)
        self.files = Files()
        self._txns = Transactions(self.spark, self.client, retries)
        self._runner = Runner(self.spark, self.client, self._txns)

    def __enter__(self) -> Self:
        """Return the session; nothing has to be opened."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the session."""
        self.close()

    def close(self) -> None:
        """Close the connection. DataFrames that were read before stay readable."""
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
        """Return the table's rows in one snapshot; ``row_id`` adds Hive's ``ROW__ID`` (writeid, bucketid, rowid).

        ``where``: only these rows, as with the frame's own ``where``. ``as_of_write_id``, ``as_of_timestamp``: the rows
        at that point; a timestamp without a zone is in the Spark session's zone. The Cleaner keeps the snapshot's files
        while an action of the frame runs. Between actions it keeps replaced files for its retention time.
        Raises: NoSuchObjectError, InvalidOperationError, NotEnoughHistoryError.
        """
        if as_of_write_id is not None and as_of_timestamp is not None:
            raise InvalidOperationError("A table is read as of a write id, or as of a timestamp.")
        table = self._runner.lookup(name)
        table.require(TableKind.FULL_ACID, *([] if row_id else [TableKind.INSERT_ONLY]), action="Reading a snapshot")
        reader = self.spark.read
        if as_of_write_id is not None:
            reader = reader.option("versionAsOf", str(as_of_write_id))
        elif as_of_timestamp is not None:
            reader = reader.option("timestampAsOf", str(as_of_timestamp))
        with own_errors():
            rows = reader.table(_sql(table.name))
            if row_id:
                rows = rows.select("*", ROW_ID_COLUMN)
            pinned = self._txns.pinned(rows if where is None else rows.where(where))
            if as_of_write_id is not None or as_of_timestamp is not None:
                _require_files(pinned)
            return pinned

    def changes(self, name: str, after: int, up_to: int | None = None) -> DataFrame:
        """Return the changes to the table's rows by write ids above ``after``, up to ``up_to``.

        None: up to the first write id that may still be committed; beyond it, changes may still arrive.
        A row per insert and delete: the columns as the row had them, with ``_operation`` (``insert``, ``delete``),
        ``_write_id`` and ``ROW__ID``. An update is a delete and an insert.
        Raises: as ``table``; NotEnoughHistoryError too when the changes have been compacted into a base.
        """
        table = self._runner.lookup(name)
        return self._txns.reading(
            table, lambda txn: changes(self.spark, self.client, self.files, txn, table, after, up_to)
        )

    def sql(self, text: str) -> DataFrame:
        """Run one statement as ``spark.sql`` does, and again after a lost write conflict; the result differs.

        A SELECT shows the rows of the moment at which its frame was made. A write of a transactional table returns a
        single row with the column ``rows``: the number of changed rows.
        Raises: InvalidOperationError for a statement that cannot be done right, WriteConflictError for a lost
            race (the message names the winner), LockNotAcquiredError; Spark's own errors.
        """
        return self._runner.run(text)

    # -- writing ---------------------------------------------------------------------------------------------------

    def insert(self, name: str, rows: DataFrame) -> int:
        """Append ``rows``, matched to the table's columns by name; returns the number of rows.

        Raises: ConstraintViolationError, InvalidOperationError, LockNotAcquiredError.
        """
        target = _sql(self._runner.lookup(name).name)
        return self._write(rows, lambda source: f"INSERT INTO {target} BY NAME SELECT * FROM {source}")

    def overwrite(self, name: str, rows: DataFrame, partition: Mapping[str, object] | None = None) -> int:
        """Replace the table, the partition ``partition`` (values by key), or the partitions that ``rows`` has rows for.

        Returns the number of rows written. Raises: as ``insert``; WriteConflictError.
        """
        table = self._runner.lookup(name)
        fixed = {key.lower(): value for key, value in (partition or {}).items()}
        types = {key.name: key.sql_type for key in table.partition_keys}
        if unknown := [key for key in fixed if key not in types]:
            raise InvalidOperationError(f"{unknown[0]} is not a partition key of {table.name}.")
        if not fixed:
            target = _sql(table.name)
            return self._write(rows, lambda source: f"INSERT OVERWRITE {target} BY NAME SELECT * FROM {source}")
        present = {column.lower() for column in rows.columns}
        for key, value in fixed.items():  # a value of another type than the key's is in no partition of this name
            of_row = F.expr(f"try_cast({quoted(key)} AS {types[key]})") if key in present else F.lit(value)
            rows = rows.withColumn(key, of_row.cast(types[key]))
        named = (F.col(key).eqNullSafe(F.lit(value).cast(types[key])) for key, value in fixed.items())
        condition = reduce(Column.__and__, named)
        own = self._own(rows)
        return self._runner.counted(lambda: own.writeTo(_sql(table.name)).overwrite(condition)) or 0

    def update(self, name: str, set: Mapping[str, str], where: str | None = None) -> int:  # noqa: A002 - SQL's word
        """Run UPDATE: ``set`` maps columns to SQL expressions.

        Return the number of changed rows. Raises: as ``sql``.
        """
        changed = ", ".join(f"{column} = {value}" for column, value in set.items())
        return self._change(f"UPDATE {name} SET {changed}" + (f" WHERE {where}" if where else ""))

    def delete(self, name: str, where: str | None = None) -> int:
        """Run DELETE for rows that meet ``where``, SQL. Return the number of removed rows. Raises: as ``sql``."""
        return self._change(f"DELETE FROM {name}" + (f" WHERE {where}" if where else ""))

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
        """Run MERGE of ``using``, rows or a table's name.

        ``on`` and the clauses ``whens`` are SQL over ``t`` and ``s``.

        Returns the number of rows updated, deleted and inserted. Raises: as ``sql``.
        """

        def statement(source: str) -> str:
            return f"MERGE INTO {into} AS {alias} USING {source} AS {source_alias} ON {on} " + " ".join(whens)

        return self._change(statement(using)) if isinstance(using, str) else self._write(using, statement)

    def _own(self, rows: DataFrame) -> DataFrame:
        """Return the rows of a frame of any Spark session, as a frame of this session."""
        made = catalog_object(self.spark, "extension.Frames").of(self.spark._jsparkSession, rows._jdf)  # noqa: SLF001 - PySpark shows no other way
        return DataFrame(made, self.spark)

    def _change(self, text: str) -> int:
        [[rows]] = self._runner.run(text).collect()
        return int(rows)

    def _write(self, rows: DataFrame, statement: Callable[[str], str]) -> int:
        """Run a statement over a view of the rows."""
        view = f"__source_{uuid4().hex}"
        self._own(rows).createOrReplaceTempView(view)
        try:
            return self._change(statement(view))
        finally:
            self.spark.catalog.dropTempView(view)

    # -- blocks ----------------------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """Show all reads of the block the same snapshot. Its frames keep the snapshot after the block."""
        with self._txns.snapshot():
            yield self

    @contextmanager
    def transaction(self, *, batch: tuple[TableName, StreamBatch] | None = None) -> Iterator[Self]:
        """Run all statements of the block in one transaction: committed at its end, undone when it raises.

        A statement sees the writes of earlier statements of the block; statements of ``spark.sql`` are part of it, too.
        ``batch``: the batch of a streaming query that the block writes, and the table that stores it with the commit.
        Raises: WriteConflictError when another transaction changed the same table or partition and committed first;
        with ``batch`` AlreadyExistsError when another run of the query has committed it.
        """
        with self._txns.block() as block:
            if batch is not None:
                block.record(*batch)
            yield self

    def retrying(self, attempt: Callable[[], Result]) -> Result:
        """Return the result of ``attempt``; run it again, at most ``retries`` times, when it loses a write conflict.

        Each run must read its input again, in a transaction of its own. Inside a transaction block it runs once, since
        the whole block has lost. UPDATE, DELETE, MERGE and INSERT OVERWRITE in SQL retry by themselves.
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
        table = self._runner.lookup(name)
        table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="Streaming into a table")
        sink = BatchSink(table.name, checkpoint, write or BatchSink.inserting(name), self._beside)
        return start(rows, sink)

    def stream_positions(self, name: str) -> list[StreamPosition]:
        """Return the last batch of each streaming query that a table has, the latest first."""
        return positions(self.client, self._runner.lookup(name).name)

    def _beside(self, spark: SparkSession) -> "AcidSession":
        """Return a session like this one for the Spark session, and the thread, of a streaming query."""
        return AcidSession(spark, self.client.uri, retries=self._txns.retries)


def _require_files(rows: DataFrame) -> None:
    """Raise Spark's error for a read of old files that are gone; the table may be of the past."""
    leaves = rows._jdf.queryExecution().sparkPlan().collectLeaves()  # noqa: SLF001 - PySpark shows no other way
    for place in range(leaves.size()):
        leaves.apply(place).inputPartitions()


def _sql(name: TableName) -> str:
    return f"{quoted(name.db)}.{quoted(name.table)}"


def _configured_tls(spark: SparkSession) -> ClientSide | None:
    """Return the TLS settings of Spark's own metastore client; None leaves them to the environment."""
    conf = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - PySpark shows no other way
    return of_values(conf.get)


def _configured_uri(spark: SparkSession) -> str | None:
    """Return the address of the session catalog's metastore; None leaves it to $METASTORE_URI.

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
