"""Rows of an insert-only table with the column by which tasks route them to buckets."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from metastore.acid.types import parse_type
from metastore.acid_tables.table import AcidTable, HiveColumn, quoted
from metastore.spark.tables.spark_types import type_of
from metastore.spark.write.acid_writer import WRITER_COLUMN
from metastore.spark.write.bucket_hash import bucket


def routed_rows(rows: DataFrame, table: AcidTable) -> DataFrame:
    """Return rows for a place of an insert-only table: its columns, then the routing column (``write_plain``)."""
    columns = [f"{_cast(column)} AS {quoted(column.name)}" for column in table.columns]
    if not table.bucket_count:
        return rows.selectExpr(*columns)
    routed = rows.withColumn(WRITER_COLUMN, _bucket(rows, table).cast("int"))
    return routed.selectExpr(*columns, WRITER_COLUMN)


def _bucket(rows: DataFrame, table: AcidTable) -> Column:
    """Return the bucket of a row by Hive's hash."""
    types = {column.name: (type_of(column), parse_type(column.type)) for column in table.columns}
    columns = [F.col(name).cast(types[name][0]) for name in table.bucket_columns]
    hive_types = [types[name][1] for name in table.bucket_columns]
    return bucket(rows.sparkSession, columns, hive_types, table.bucket_count, table.bucketing_version)


def _cast(column: HiveColumn) -> str:
    """Return a column in the table's type, as SQL: each Column object of PySpark costs several calls of the JVM."""
    return f"CAST({quoted(column.name)} AS {column.sql_type})"
