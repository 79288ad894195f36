"""The changes to a table's rows between two write ids; Spark's own SQL does not show them."""

from pyspark.sql import DataFrame, SparkSession

from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.change_feed import between, require_changes, require_ids, require_no_overwrite
from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient
from metastore.client.partitions import partition_places
from metastore.client.scans import snapshot_directories
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.spark.read.changes import read_changes
from metastore.spark.txn.blocks import OpenTransaction


def changes(
    spark: SparkSession,
    client: DomainClient,
    files: Files,
    txn: OpenTransaction,
    table: AcidTable,
    after: int,
    up_to: int | None,
) -> DataFrame:
    """Return the changes by write ids above ``after``, up to ``up_to`` (None: the last); as ``read_changes``.

    Raises: NotEnoughHistoryError when a base holds some of the changes; InvalidOperationError.
    """
    table.require(TableKind.FULL_ACID, action="Reading changes")
    if after < 0 or (up_to is not None and up_to < after):
        raise InvalidOperationError(f"Changes are read after one write id up to another, not {after} to {up_to}.")
    wanted = between(txn.valid_write_ids(str(table.name)), after + 1, up_to)
    places = partition_places(client, table, None)
    directories = snapshot_directories(
        client, files, table, places, wanted.until, txn.valid_txns(), is_past=True, is_part=False
    )
    require_changes(directories, wanted)
    require_no_overwrite(directories, wanted)
    require_ids(directories)
    return read_changes(spark, table, directories, wanted.until, after)
