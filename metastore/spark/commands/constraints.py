"""Constraints of a table from Spark's side: the metastore has their declarations, the catalog's writes enforce them.

Rule: what is declared must be such that rows can be written with it. Keys are declared, and not enforced.
"""

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.table import AcidTable, HiveColumn
from metastore.catalog.model import ConstraintKind
from metastore.client import DomainClient, constraints
from metastore.client.constraints import RowRule
from metastore.client.declared_constraints import Declaration
from metastore.errors import InvalidOperationError
from metastore.ids import TableName
from metastore.spark.tables.spark_types import type_of


def require_sound(
    spark: SparkSession, table: TableName, columns: Sequence[HiveColumn], declared: Sequence[Declaration]
) -> None:
    """Raise InvalidOperationError for a DEFAULT or a CHECK with which no row could be written."""
    types = {column.name: column.sql_type for column in columns}
    none = spark.createDataFrame([], StructType([StructField(column.name, type_of(column)) for column in columns]))
    for constraint in declared:
        if unknown := [name for name in constraint.columns if name not in types]:
            raise InvalidOperationError(f"{table} has no column {unknown[0]}. It has: {', '.join(types)}.")
        try:
            if constraint.kind is ConstraintKind.DEFAULT:
                spark.sql(f"SELECT CAST({constraint.value} AS {types[constraint.columns[0]]})").collect()
            elif constraint.kind is ConstraintKind.CHECK:
                _ = none.select(*_counters([RowRule("", f"NOT ({constraint.value})")])).schema
        except PySparkException as error:
            reason = (error.getMessage() or str(error)).splitlines()[0]
            raise InvalidOperationError(f"{constraint.kind.upper()} {constraint.value} of {table}: {reason}") from error


def add_constraints(
    spark: SparkSession,
    client: DomainClient,
    table: AcidTable,
    declared: Sequence[Declaration],
    column: tuple[str, str] | None,
) -> None:
    """Add constraints to an existing table; ``column``: name and type as CHANGE COLUMN repeats them.

    Raises: InvalidOperationError for another type than the column's, an unsound condition, or a refused constraint.
    """
    table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="A constraint")
    known = {column.name: column.type for column in (*table.columns, *table.partition_keys)}
    if column is not None and known.get(column[0], column[1]) != column[1]:
        raise InvalidOperationError(
            f"Column {column[0]} of {table.name} is {known[column[0]]}, not {column[1]}: "
            "change its type first, then add its constraint."
        )
    require_sound(spark, table.name, (*table.columns, *table.partition_keys), declared)
    constraints.add_constraints(client, table.name, declared)


def _counters(rules: Sequence[RowRule]) -> list[Column]:
    return [F.count_if(F.expr(rule.broken)).alias(f"broken_{number}") for number, rule in enumerate(rules)]
