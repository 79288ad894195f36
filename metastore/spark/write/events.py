"""Rows → ACID events: which ROW__ID, which writer and which partition each insert and delete event gets.

Rules (ACID-12 to ACID-14, ACID-27, ACID-32). A new row version's id is (write id, codec(writer, statement), rowId). As
in Hive, the task counts the rowIds in the writer's file, and a writer has a single file in a directory. A delete event
copies the row's id verbatim and goes to the writer named in it. A row's change by UPDATE or MERGE is a single record
until a task makes both events from it: both are of the same row, and the row is shuffled once.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from metastore.acid.bucket import MAX_WRITER_ID, encode
from metastore.acid.events import DELETE_EVENT, INSERT_EVENT, UPDATE_EVENT
from metastore.acid.types import parse_type
from metastore.acid_tables.table import AcidTable, HiveColumn, quoted
from metastore.spark.sql.dml_selects import ACTION, DELETE, INSERT, UPDATE
from metastore.spark.tables.row_id import ROW_ID
from metastore.spark.tables.spark_types import type_of
from metastore.spark.write.acid_writer import PARTITION_COLUMN, WRITER_COLUMN, writer_id
from metastore.spark.write.bucket_hash import bucket

MAX_WRITERS = MAX_WRITER_ID + 1


@dataclass(frozen=True)
class StatementId:
    """The mark of all that a statement writes: the table's write id, and the statement's number in the transaction."""

    write_id: int
    statement: int


def insert_events(rows: DataFrame, table: AcidTable, statement: StatementId) -> tuple[DataFrame, bool]:
    """Insert events for ``rows`` (columns and partition keys of the table), and whether they are routed already.

    Unbucketed tables have a writer per Spark task: no shuffle. In bucketed tables Hive's hash chooses the writer.
    """
    if table.bucket_count:
        return _bucketed(rows, table, statement), False
    apart = rows.where(F.spark_partition_id() >= 0)  # else Spark drops an earlier coalesce of the caller
    numbered = apart.coalesce(MAX_WRITERS).withColumn(WRITER_COLUMN, F.spark_partition_id())
    return _as_events(numbered, table, statement), True


def routed_rows(rows: DataFrame, table: AcidTable) -> DataFrame:
    """Rows for an insert-only table: its columns, then the routing columns (``write_plain``)."""
    columns = [f"{_cast(column)} AS {quoted(column.name)}" for column in table.columns]
    if not table.bucket_count:
        return rows.selectExpr(*columns, *_partition_column(table))
    routed = rows.withColumn(WRITER_COLUMN, _bucket(rows, table).cast("int"))
    return routed.selectExpr(*columns, WRITER_COLUMN, *_partition_column(table))


def changes_of(rows: DataFrame, table: AcidTable, statement: StatementId) -> DataFrame:
    """The events of an UPDATE or a MERGE. ``rows``: ACTION, the old ROW__ID, the new values.

    New rows of an unbucketed table share a few writers, so that there are not many small files.
    """
    write_id, bucket, row_id = ROW_ID
    is_new = f"{ACTION} = '{INSERT}'"
    tasks = rows.sparkSession.sparkContext.defaultParallelism
    new_writer = _bucket(rows, table) if table.bucket_count else F.spark_partition_id() % tasks
    writer = F.when(F.expr(is_new), new_writer).otherwise(writer_id(F.col(bucket)))
    return rows.withColumn(WRITER_COLUMN, writer).selectExpr(
        f"CASE {ACTION} WHEN '{INSERT}' THEN {INSERT_EVENT} WHEN '{UPDATE}' THEN {UPDATE_EVENT} "
        f"WHEN '{DELETE}' THEN {DELETE_EVENT} END AS operation",
        f"IF({is_new}, {statement.write_id}L, {write_id}) AS originalTransaction",
        f"IF({is_new}, {_codec(statement)}, {bucket}) AS bucket",
        f"IF({is_new}, NULL, {row_id}) AS rowId",
        f"{statement.write_id}L AS currentTransaction",
        f"IF({ACTION} = '{DELETE}', NULL, {_row(table)}) AS `row`",
        f"CAST({WRITER_COLUMN} AS INT) AS {WRITER_COLUMN}",
        *_partition_column(table),
    )


def delete_events(rows: DataFrame, table: AcidTable, statement: StatementId) -> DataFrame:
    """Delete events for ``rows``, which have their ROW__ID columns."""
    write_id, bucket, row_id = ROW_ID
    row = ", ".join(f"{quoted(column.name)}: {column.sql_type}" for column in table.columns)
    return rows.withColumn(WRITER_COLUMN, writer_id(F.col(bucket))).selectExpr(
        f"{DELETE_EVENT} AS operation",
        f"{write_id} AS originalTransaction",
        f"{bucket} AS bucket",
        f"{row_id} AS rowId",
        f"{statement.write_id}L AS currentTransaction",
        f"CAST(NULL AS struct<{row}>) AS `row`",
        WRITER_COLUMN,
        *_partition_column(table),
    )


def _bucketed(rows: DataFrame, table: AcidTable, statement: StatementId) -> DataFrame:
    return _as_events(rows.withColumn(WRITER_COLUMN, _bucket(rows, table)), table, statement)


def _bucket(rows: DataFrame, table: AcidTable) -> Column:
    """The bucket of a row by Hive's hash."""
    types = {column.name: (type_of(column), parse_type(column.type)) for column in table.columns}
    columns = [F.col(name).cast(types[name][0]) for name in table.bucket_columns]
    hive_types = [types[name][1] for name in table.bucket_columns]
    return bucket(rows.sparkSession, columns, hive_types, table.bucket_count, table.bucketing_version)


def _as_events(numbered: DataFrame, table: AcidTable, statement: StatementId) -> DataFrame:
    write_id = f"{statement.write_id}L"
    return numbered.selectExpr(
        f"{INSERT_EVENT} AS operation",
        f"{write_id} AS originalTransaction",
        f"{_codec(statement)} AS bucket",
        "CAST(NULL AS BIGINT) AS rowId",
        f"{write_id} AS currentTransaction",
        f"{_row(table)} AS `row`",
        f"CAST({WRITER_COLUMN} AS INT) AS {WRITER_COLUMN}",
        *_partition_column(table),
    )


def _codec(statement: StatementId) -> str:
    return f"CAST(shiftleft({WRITER_COLUMN}, 16) | {encode(0, statement.statement)} AS INT)"


def _row(table: AcidTable) -> str:
    return f"struct({', '.join(f'{_cast(column)} AS {quoted(column.name)}' for column in table.columns)})"


def _partition_column(table: AcidTable) -> list[str]:
    """The partition values as a single JSON text, NULL included."""
    if not table.partition_keys:
        return []
    values = ", ".join(f"CAST({_cast(key)} AS STRING)" for key in table.partition_keys)
    return [f"to_json(array({values})) AS {PARTITION_COLUMN}"]


def _cast(column: HiveColumn) -> str:
    """A column of rows in the table's type, as SQL: each Column object of PySpark is several calls of the JVM."""
    return f"CAST({quoted(column.name)} AS {column.sql_type})"
