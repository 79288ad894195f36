"""UPDATE: a delete event and a new version for each row that changes."""

from metastore.acid_tables.table import AcidTable, TableKind
from metastore.locks.rules import Operation
from metastore.spark.commands.constraints import TableConstraints, Watch
from metastore.spark.commands.views import query, target_view
from metastore.spark.sql import dml_selects
from metastore.spark.sql.binding import Resolve
from metastore.spark.sql.statements import Update
from metastore.spark.txn.spark_txn import Work
from metastore.spark.write.events import changes_of


def update(work: Work, table: AcidTable, statement: Update, resolve: Resolve) -> int:
    """UPDATE the rows that meet the condition; returns their number. Raises: ConstraintViolationError."""
    table.require(TableKind.FULL_ACID, action="UPDATE")
    constraints = TableConstraints.of(work.client, table)
    statement, watch = constraints.in_update(statement), Watch(constraints)
    with target_view(work, table, statement.conditions) as (view, seen):
        rows = query(work, dml_selects.update_select(statement, table, view), resolve)
    kept = {column.name for column in table.columns} - set(statement.assignments)
    seen.require_exact_moves(work, rows, kept)
    number = work.next_statement(table)
    count = work.publish(table, number, changes_of(watch.over(rows), table, number), Operation.UPDATE)
    watch.require_kept()
    return count
