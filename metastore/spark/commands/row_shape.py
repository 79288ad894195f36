"""Rows with the table's columns, order and types; columns are matched by name or by position."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from metastore.acid_tables.table import OURS, AcidTable, quoted
from metastore.client.constraints import Rule
from metastore.errors import InvalidOperationError
from metastore.spark.commands.constraints import TableConstraints, Watch
from metastore.spark.sql.statements import Insert


def by_name(rows: DataFrame, table: AcidTable, defaults: Mapping[str, str]) -> DataFrame:
    """``rows`` with the table's columns in the table's order; a missing column gets its default, or NULL.

    ``defaults``: SQL by column.

    Raises: InvalidOperationError for a column that the table does not have, or a missing partition key.
    """
    present = {name.lower(): name for name in rows.columns}
    wanted = [column.name for column in (*table.columns, *table.partition_keys)]
    if unknown := [name for name in present if name not in wanted]:
        raise InvalidOperationError(f"{table.name} has no column {unknown[0]}. It has: {', '.join(wanted)}.")
    if missing := [name for name in table.partition_names if name not in present and name not in defaults]:
        raise InvalidOperationError(f"The rows have no value for partition key {missing[0]} of {table.name}.")
    values = {name: quoted(present[name]) if name in present else f"({defaults.get(name, 'NULL')})" for name in wanted}
    return rows.selectExpr(
        *(
            f"CAST({values[column.name]} AS {column.sql_type}) AS {quoted(column.name)}"
            for column in (*table.columns, *table.partition_keys)
        )
    )


def by_position(rows: DataFrame, table: AcidTable, statement: Insert, defaults: Mapping[str, str]) -> DataFrame:
    """A query's rows with the table's columns: by position or BY NAME, static partition keys from PARTITION (...).

    Raises: InvalidOperationError for another number of columns, an unknown key, or a key with two values.
    """
    static = static_keys(statement)
    if unknown := [key for key in statement.partition if key not in table.partition_names]:
        raise InvalidOperationError(f"{unknown[0]} is not a partition key of {table.name}.")
    named = rows.columns if statement.by_name else named_columns(table, statement)
    if len(rows.columns) != len(named):
        raise InvalidOperationError(
            f"The query has {len(rows.columns)} columns, and INSERT INTO {table.name} takes "
            f"{len(named)}: {', '.join(named)}."
        )
    if twice := [name for name in named if name.lower() in static]:
        raise InvalidOperationError(
            f"{twice[0]} is given twice, by PARTITION ({twice[0]} = ...) and by the query: leave out one of them."
        )
    renamed = rows.toDF(*named)
    for key, value in static.items():
        renamed = renamed.withColumn(key, F.expr(value))
    return by_name(renamed, table, defaults)


def named_columns(table: AcidTable, statement: Insert) -> list[str]:
    """The columns that the values of an INSERT are for, in order."""
    static = static_keys(statement)
    wanted = [column.name for column in (*table.columns, *table.partition_keys) if column.name not in static]
    return list(statement.columns) or wanted


def static_keys(statement: Insert) -> dict[str, str]:
    """The partition keys with a value in PARTITION (...), as SQL."""
    return {key: value for key, value in statement.partition.items() if value is not None}


def with_constants(rows: DataFrame, table: AcidTable, fixed: Mapping[str, object]) -> tuple[DataFrame, Watch]:
    """``rows`` with the partition keys of a static overwrite as columns, and a watch on rows of other partitions.

    Rows may have those columns too, with the same values. Raises: InvalidOperationError for an unknown key.
    """
    if unknown := [key for key in fixed if key not in table.partition_names]:
        raise InvalidOperationError(f"{unknown[0]} is not a partition key of {table.name}.")
    present = {name.lower(): name for name in rows.columns}
    types = {key.name: key.sql_type for key in table.partition_keys}
    rules = []
    for key, value in fixed.items():
        if key in present:
            rows = rows.withColumn(f"{OURS}{key}", F.lit(value))
            of_row, of_partition = (
                f"try_cast({quoted(name)} AS {types[key]})" for name in (present[key], f"{OURS}{key}")
            )
            rules.append(Rule(f"PARTITION ({key} = {value}), being of another,", f"NOT ({of_row} <=> {of_partition})"))
    watch = Watch(TableConstraints(table.name, tuple(rules)))
    rows = watch.over(rows).drop(*(name for key in fixed if key in present for name in (present[key], f"{OURS}{key}")))
    for key, value in fixed.items():
        rows = rows.withColumn(key, F.lit(value))
    return rows, watch
