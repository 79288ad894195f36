"""Our reader without a metastore: the rows of one directory in a snapshot."""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.listing import Directory, acid_directories
from metastore.acid_tables.partitions import PartitionPlace
from metastore.acid_tables.table import AcidTable, HiveColumn
from metastore.files import Files
from metastore.ids import table_name
from metastore.spark.read.changes import read_changes


def described(directory: Path, columns: dict[str, str], **changes: Any) -> AcidTable:
    """Describe an unpartitioned full ACID table that lies in ``directory``."""
    values: dict[str, Any] = {
        "name": table_name("db", "t"), "kind": TableKind.FULL_ACID, "location": str(directory),
        "columns": tuple(HiveColumn(name, kind) for name, kind in columns.items()), "partition_keys": (),
        "bucket_columns": (), "bucket_count": 0, "bucketing_version": 2, "file_format": "orc", "parameters": {}}
    return AcidTable(**{**values, **changes})


def directories(table: AcidTable, write_ids: ValidWriteIdList) -> list[Directory]:
    return acid_directories(Files(), table, [PartitionPlace("", (), table.location)], write_ids,
                            ValidTxnList.everything())


def snapshot(spark: SparkSession, table: AcidTable, write_ids: ValidWriteIdList, *, row_ids: bool = False) -> DataFrame:
    """Return the inserted rows without the deleted ones: the table's columns, and with ``row_ids`` ``ROW__ID``."""
    changes = read_changes(spark, table, directories(table, write_ids), write_ids, -1)
    inserted, deleted = (changes.where(f"_operation = '{kind}'").drop("_operation", "_write_id") for kind in ("insert", "delete"))
    return inserted.join(deleted.select("ROW__ID"), "ROW__ID", "left_anti").select(*(
        name for name in inserted.columns if row_ids or name != "ROW__ID"))


def ids_and_rows(spark: SparkSession, table: AcidTable, write_ids: ValidWriteIdList) -> list[tuple[Any, tuple[Any, ...]]]:
    """(ROW__ID, values) of each row, sorted."""
    collected = (tuple(row) for row in snapshot(spark, table, write_ids, row_ids=True).collect())
    return sorted(((row[-1] and tuple(row[-1]), row[:-1]) for row in collected), key=repr)
