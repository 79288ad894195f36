"""Rows → ACID events: which ROW__ID, which writer and which partition each insert and delete event gets.

Rules kept here (acid-format.md §6-§8, §17, §20.2). A new row version's id is (write id, codec(writer, statement),
rowId), and rowId comes from ``monotonically_increasing_id``, unique over the whole statement, so any routing of rows to
writers keeps ids unique. A delete event copies the id of the row verbatim and goes to the writer named in it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from metastore.acid.events import DELETE_EVENT, INSERT_EVENT
from metastore.acid.types import parse_type
from metastore.catalog.partition_names import make_name
from metastore.spark.acid_writer import PARTITION_COLUMN, WRITER_COLUMN, writer_id
from metastore.spark.bucket_hash import bucket
from metastore.spark.reader import ROW_ID
from metastore.spark.tables import AcidTable

MAX_WRITERS = 4096
_ROW_ID_BITS = (1 << 33) - 1
_CODEC_V1 = 1 << 29


@dataclass(frozen=True)
class StatementId:
    """What marks everything that one statement writes: the table's write id, and the statement's number in the txn."""

    write_id: int
    statement: int


def insert_events(rows: DataFrame, table: AcidTable, statement: StatementId) -> tuple[DataFrame, bool]:
    """New row versions for ``rows`` (columns and partition keys of the table), and whether they are routed already.

    Unbucketed tables take one writer per Spark task: no shuffle. Bucketed ones go where Hive's hash sends them.
    """
    if table.bucket_count:
        return _bucketed(rows, table, statement), False
    numbered = rows.coalesce(MAX_WRITERS).withColumn(WRITER_COLUMN, F.spark_partition_id()).withColumn(
        ROW_ID[2], F.monotonically_increasing_id().bitwiseAND(_ROW_ID_BITS))
    return _as_events(numbered, table, statement), True


def routed_rows(rows: DataFrame, table: AcidTable) -> DataFrame:
    """Rows for an insert-only table: its columns, and where each row goes."""
    columns = [F.col(field.name).cast(field.dataType).alias(field.name) for field in table.row_type.fields]
    writer = [_bucket(rows, table).cast("int").alias(WRITER_COLUMN)] if table.bucket_count else []
    return rows.select(*columns, *writer, *_partition_column(table))


def moved_events(rows: DataFrame, table: AcidTable, statement: StatementId) -> DataFrame:
    """New row versions for updated ``rows``, which still carry the ROW__ID of the version that they replace.

    Unbucketed: the writer stays that of the old version, as Hive keeps it.
    """
    if table.bucket_count:
        return _bucketed(rows, table, statement)
    numbered = rows.withColumn(WRITER_COLUMN, writer_id(F.col(ROW_ID[1]))).withColumn(
        ROW_ID[2], F.monotonically_increasing_id())
    return _as_events(numbered, table, statement)


def delete_events(rows: DataFrame, table: AcidTable, statement: StatementId) -> DataFrame:
    """Delete events for ``rows``, which carry their ROW__ID."""
    write_id, bucket, row_id = (F.col(name) for name in ROW_ID)
    return rows.select(
        F.lit(DELETE_EVENT).alias("operation"), write_id.alias("originalTransaction"), bucket.alias("bucket"),
        row_id.alias("rowId"), F.lit(statement.write_id).cast("bigint").alias("currentTransaction"),
        F.lit(None).cast(table.row_type).alias("row"), writer_id(bucket).alias(WRITER_COLUMN),
        *_partition_column(table))


def partition_key(values: Sequence[str | None]) -> str:
    """The ``_partition`` key of a partition: what ``to_json`` makes of its values."""
    return json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))


def partition_values(key: str) -> list[str | None]:
    """The partition values that a ``_partition`` key stands for."""
    values: list[str | None] = json.loads(key)
    return values


def partition_name(table: AcidTable, values: Sequence[str | None]) -> str:
    """The partition's name; NULL and "" are the default partition."""
    return make_name(table.partition_names, values)


def _bucketed(rows: DataFrame, table: AcidTable, statement: StatementId) -> DataFrame:
    numbered = rows.withColumn(ROW_ID[2], F.monotonically_increasing_id())
    numbered = numbered.withColumn(WRITER_COLUMN, _bucket(rows, table))
    return _as_events(numbered, table, statement)


def _bucket(rows: DataFrame, table: AcidTable) -> Column:
    """The bucket of a row by Hive's hash."""
    types = {column.name: (column.spark_type(), parse_type(column.type)) for column in table.columns}
    columns = [F.col(name).cast(types[name][0]) for name in table.bucket_columns]
    hive_types = [types[name][1] for name in table.bucket_columns]
    return bucket(rows.sparkSession, columns, hive_types, table.bucket_count, table.bucketing_version)


def _as_events(numbered: DataFrame, table: AcidTable, statement: StatementId) -> DataFrame:
    write_id = F.lit(statement.write_id).cast("bigint")
    codec = F.shiftleft(F.col(WRITER_COLUMN), 16).bitwiseOR(F.lit(_CODEC_V1 | statement.statement))
    row = F.struct(*(F.col(field.name).cast(field.dataType).alias(field.name) for field in table.row_type.fields))
    return numbered.select(
        F.lit(INSERT_EVENT).alias("operation"), write_id.alias("originalTransaction"),
        codec.cast("int").alias("bucket"), F.col(ROW_ID[2]).cast("bigint").alias("rowId"),
        write_id.alias("currentTransaction"), row.alias("row"), F.col(WRITER_COLUMN).cast("int").alias(WRITER_COLUMN),
        *_partition_column(table))


def _partition_column(table: AcidTable) -> list[Column]:
    """The partition values as JSON text, so that one string says them all, NULL included."""
    if not table.partition_keys:
        return []
    values = F.array(*(F.col(key.name).cast(key.dataType).cast("string") for key in table.partition_type.fields))
    return [F.to_json(values).alias(PARTITION_COLUMN)]
