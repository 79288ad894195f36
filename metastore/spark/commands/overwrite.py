"""INSERT OVERWRITE: a base replaces a table, a partition, or the partitions that get rows."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from metastore.acid.names import BaseName
from metastore.acid_tables.partitions import partition_key
from metastore.acid_tables.table import AcidTable, TableKind
from metastore.spark.commands.constraints import TableConstraints, Watch
from metastore.spark.commands.row_shape import by_name, with_constants
from metastore.spark.tables.spark_types import partition_type
from metastore.spark.txn.spark_txn import Work
from metastore.spark.write.events import insert_events, routed_rows


def replace_by(work: Work, table: AcidTable, rows: DataFrame, fixed: Mapping[str, object]) -> int:
    """INSERT OVERWRITE with rows matched to the table's columns by name. Returns and raises: as ``overwrite``."""
    constraints = TableConstraints.of(work.client, table)
    rows, watch = with_constants(rows, table, fixed)
    count = overwrite(work, table, by_name(rows, table, constraints.defaults), fixed, constraints)
    watch.require_kept()
    return count


def overwrite(
    work: Work, table: AcidTable, rows: DataFrame, fixed: Mapping[str, object], constraints: TableConstraints
) -> int:
    """Replace the table (unpartitioned), the partition whose keys ``fixed`` all has, or the partitions that get rows.

    Returns the number of rows. Raises: ConstraintViolationError.
    """
    table.require(TableKind.FULL_ACID, TableKind.INSERT_ONLY, action="INSERT OVERWRITE")
    keep: list[str] = []
    if not table.partition_keys:
        keep = [table.location]
    elif set(fixed) == set(table.partition_names):
        keep = [_key(work, table, fixed)]
    watch = Watch(constraints)
    count = replace_rows(work, table, watch.over(rows), keep)
    watch.require_kept()
    return count


def replace_rows(work: Work, table: AcidTable, rows: DataFrame, keep_empty: Sequence[str]) -> int:
    """Publish a base where there are rows, and an empty base at the keys (or the location) of ``keep_empty``."""
    statement = work.next_statement(table)
    if table.kind is TableKind.INSERT_ONLY:
        return work.publish_rows(
            table, BaseName(statement.write_id), routed_rows(rows, table), statement=statement, keep_empty=keep_empty
        )
    events, is_routed = insert_events(rows, table, statement)
    return work.publish_base(table, statement, events, keep_empty=keep_empty, is_routed=is_routed)


def _key(work: Work, table: AcidTable, fixed: Mapping[str, object]) -> str:
    """The key of the partition with these values."""
    fields = partition_type(table).fields
    row: Row | None = (
        work.spark.range(1)
        .select(*(F.lit(fixed[field.name]).cast(field.dataType).cast("string") for field in fields))
        .first()
    )
    return partition_key(list(row or ()))
