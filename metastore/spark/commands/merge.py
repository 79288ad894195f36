"""MERGE: a source's rows change, remove and add rows of a table in a single statement."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from metastore.acid_tables.delete_files import BROADCAST_LIMIT
from metastore.acid_tables.table import AcidTable, TableKind
from metastore.errors import InvalidOperationError
from metastore.locks.rules import Operation
from metastore.spark.commands.constraints import TableConstraints, Watch
from metastore.spark.commands.views import evaluated_once, query, target_view, view_of
from metastore.spark.sql import dml_selects
from metastore.spark.sql.binding import Resolve
from metastore.spark.sql.statements import Merge
from metastore.spark.txn.spark_txn import Work
from metastore.spark.write.acid_writer import ChangedTwiceError
from metastore.spark.write.events import changes_of


def merge(work: Work, table: AcidTable, statement: Merge, resolve: Resolve) -> int:
    """MERGE; returns the number of changed rows. The source is evaluated once.

    Raises: InvalidOperationError when two source rows change the same target row; ConstraintViolationError.
    """
    table.require(TableKind.FULL_ACID, action="MERGE")
    constraints = TableConstraints.of(work.client, table)
    named = statement.named([column.name for column in (*table.columns, *table.partition_keys)])
    statement, watch = constraints.in_merge(named), Watch(constraints)
    source = query(work, dml_selects.merge_source(statement), resolve)
    with evaluated_once(source):
        is_small = source.count() <= BROADCAST_LIMIT
        with target_view(work, table, statement.conditions) as (view, seen), view_of(source) as name:
            select = dml_selects.merge_select(statement, table, view, name, source.columns, is_small=is_small)
            rows = query(work, select, resolve)
        seen.require_exact_moves(work, _updated(rows), dml_selects.kept_columns(statement, table, source.columns))
        number = work.next_statement(table)
        new = watch.over(rows, f"{dml_selects.ACTION} <> '{dml_selects.DELETE}'")
        try:
            count = work.publish(table, number, changes_of(new, table, number), Operation.UPDATE)
        except ChangedTwiceError as error:
            raise InvalidOperationError(
                f"MERGE: {error.times} source rows match the same row of {table.name} (ROW__ID {list(error.row_id)}). "
                "Make the source unique on the ON condition."
            ) from error
    watch.require_kept()
    return count


def _updated(rows: DataFrame) -> DataFrame:
    return rows.where(F.col(dml_selects.ACTION) == dml_selects.UPDATE)
