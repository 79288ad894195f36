"""Queries of a statement over temporary views of snapshots, which last until the statement is analysed."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel
from sqlglot import exp

from metastore.acid_tables.table import AcidTable
from metastore.spark.read.plain_reads import checked_sql
from metastore.spark.read.reader import row_id_column
from metastore.spark.sql.binding import Resolve, bound_sql
from metastore.spark.sql.conditions import Conditions
from metastore.spark.sql.pruning import restriction
from metastore.spark.txn.spark_txn import View, Work


def query(work: Work, tree: exp.Expr, resolve: Resolve) -> DataFrame:
    """A query over snapshots. Raises: InvalidOperationError if it reads a transactional table past them."""
    return checked_sql(work.spark, bound_sql(tree, resolve))


@contextmanager
def target_view(work: Work, table: AcidTable, conditions: Conditions) -> Iterator[tuple[str, View]]:
    """A temporary view over the target's rows with their ROW__IDs, while a statement is analysed; and its files.

    Raises: InvalidOperationError for files whose rows can have no ids.
    """
    seen = work.view(table, where=restriction(conditions, table.partition_keys))
    seen.require_named_rows()
    with view_of(seen.frame(work.spark, row_ids=True).select("*", row_id_column())) as view:
        yield view, seen


@contextmanager
def view_of(rows: DataFrame) -> Iterator[str]:
    """A temporary view, while a statement is analysed."""
    view = f"__rows_{uuid4().hex}"
    rows.createOrReplaceTempView(view)
    try:
        yield view
    finally:
        rows.sparkSession.catalog.dropTempView(view)


@contextmanager
def evaluated_once(rows: DataFrame) -> Iterator[None]:
    """Keep the rows: both jobs of a statement must see the same, even with ``rand()`` or a changing source."""
    rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield
    finally:
        rows.unpersist()
