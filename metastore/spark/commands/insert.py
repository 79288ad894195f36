"""INSERT: the rows become a new delta."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame

from metastore.acid.names import DeltaName
from metastore.acid_tables.table import AcidTable, TableKind
from metastore.locks.rules import Operation
from metastore.spark.commands.constraints import TableConstraints, Watch
from metastore.spark.commands.overwrite import overwrite
from metastore.spark.commands.row_shape import by_name, by_position, named_columns, static_keys
from metastore.spark.commands.views import query
from metastore.spark.sql.binding import Resolve
from metastore.spark.sql.statements import Insert
from metastore.spark.txn.spark_txn import Work
from metastore.spark.write.events import insert_events, routed_rows


def append(work: Work, table: AcidTable, rows: DataFrame) -> int:
    """Append rows, matched to the table's columns by name; returns their number. Raises: as ``insert``."""
    constraints = TableConstraints.of(work.client, table)
    return insert(work, table, by_name(rows, table, constraints.defaults), constraints)


def insert(work: Work, table: AcidTable, rows: DataFrame, constraints: TableConstraints) -> int:
    """Append rows that have the table's columns and types; returns their number. Raises: ConstraintViolationError."""
    table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="INSERT")
    statement, watch = work.next_statement(table), Watch(constraints)
    watched = watch.over(rows)
    if table.kind is TableKind.INSERT_ONLY:
        name = DeltaName(statement.write_id, statement.write_id, statement.statement)
        count = work.publish_rows(table, name, routed_rows(watched, table), statement=statement)
    else:
        events, is_routed = insert_events(watched, table, statement)
        count = work.publish(table, statement, events, Operation.INSERT, is_routed=is_routed)
    watch.require_kept()
    return count


def insert_all(work: Work, table: AcidTable, statements: Sequence[Insert], resolve: Resolve) -> int:
    """INSERT INTO or OVERWRITE with a query; or several that overwrite the same partitions, with the rows of all."""
    constraints, first = TableConstraints.of(work.client, table), statements[0]
    several = [constraints.in_insert(statement, named_columns(table, statement)) for statement in statements]
    rows = reduce(
        DataFrame.union,
        (
            by_position(query(work, statement.query, resolve), table, statement, constraints.defaults)
            for statement in several
        ),
    )
    if not first.overwrite:
        return insert(work, table, rows, constraints)
    static = static_keys(first)
    fixed = work.spark.sql(f"SELECT {', '.join(static.values())}").collect()[0] if static else ()
    return overwrite(work, table, rows, dict(zip(static, fixed, strict=True)), constraints)
