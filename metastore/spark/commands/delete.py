"""DELETE: a delete event for each deleted row."""

from metastore.acid_tables.table import AcidTable, TableKind
from metastore.locks.rules import Operation
from metastore.spark.commands.views import query, target_view
from metastore.spark.sql import dml_selects
from metastore.spark.sql.binding import Resolve
from metastore.spark.sql.statements import Delete
from metastore.spark.txn.spark_txn import Work
from metastore.spark.write.events import delete_events


def delete(work: Work, table: AcidTable, statement: Delete, resolve: Resolve) -> int:
    """DELETE the rows that meet the condition; returns their number."""
    table.require(TableKind.FULL_ACID, action="DELETE")
    with target_view(work, table, statement.conditions) as (view, _):
        rows = query(work, dml_selects.delete_select(statement, table, view), resolve)
    number = work.next_statement(table)
    return work.publish(table, number, delete_events(rows, table, number), Operation.UPDATE)
