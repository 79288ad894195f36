"""Rows of an insert-only table with the columns by which tasks route them: to buckets and partitions."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from metastore.acid.types import parse_type
from metastore.acid_tables.table import AcidTable, HiveColumn, quoted
from metastore.spark.tables.spark_types import type_of
from metastore.spark.write.acid_writer import PARTITION_COLUMN, WRITER_COLUMN
from metastore.spark.write.bucket_hash import bucket


def routed_rows(rows: DataFrame, table: AcidTable) -> DataFrame:
    """Rows for an insert-only table: its columns, then the routing columns (``write_plain``)."""
    columns = [f"{_cast(column)} AS {quoted(column.name)}" for column in table.columns]
    if not table.bucket_count:
        return rows.selectExpr(*columns, *_partition_column(table))
    routed = rows.withColumn(WRITER_COLUMN, _bucket(rows, table).cast("int"))
    return routed.selectExpr(*columns, WRITER_COLUMN, *_partition_column(table))


def _bucket(rows: DataFrame, table: AcidTable) -> Column:
    """The bucket of a row by Hive's hash."""
    types = {column.name: (type_of(column), parse_type(column.type)) for column in table.columns}
    columns = [F.col(name).cast(types[name][0]) for name in table.bucket_columns]
    hive_types = [types[name][1] for name in table.bucket_columns]
    return bucket(rows.sparkSession, columns, hive_types, table.bucket_count, table.bucketing_version)


def _partition_column(table: AcidTable) -> list[str]:
    """The partition values as a single JSON text, NULL included."""
    if not table.partition_keys:
        return []
    values = ", ".join(f"CAST({_cast(key)} AS STRING)" for key in table.partition_keys)
    return [f"to_json(array({values})) AS {PARTITION_COLUMN}"]


def _cast(column: HiveColumn) -> str:
    """A column of rows in the table's type, as SQL: each Column object of PySpark is several calls of the JVM."""
    return f"CAST({quoted(column.name)} AS {column.sql_type})"
