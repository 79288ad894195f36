"""A metastore table's columns in Spark's types."""

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from pyspark.sql.types import DataType, StructField, StructType

from metastore.acid_tables.table import AcidTable, HiveColumn, quoted


def type_of(column: HiveColumn) -> DataType:
    """Return a column's type. Raises: InvalidOperationError for a type that Spark does not have."""
    return DataType.fromDDL(column.sql_type)


def row_type(table: AcidTable) -> StructType:
    """Return the struct ``row`` of the table's ACID files: its columns. Raises: as ``type_of``."""
    return _struct(table.columns)


@lru_cache(maxsize=256)
def _struct(columns: Sequence[HiveColumn]) -> StructType:
    """Return the columns as a struct. Spark's JVM parses types, so all are parsed by a single call."""
    if not columns:
        return StructType([])
    parsed = StructType.fromDDL(", ".join(f"{quoted(column.name)} {column.sql_type}" for column in columns))
    fields = cast(StructType, parsed).fields  # PySpark declares the type of DDL for a single type
    return StructType([StructField(column.name, field.dataType) for column, field in zip(columns, fields, strict=True)])
