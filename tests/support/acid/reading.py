"""Our reader without a metastore: the rows of one directory in a snapshot."""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid_tables.listing import Directory, acid_directories
from metastore.acid_tables.partitions import PartitionPlace
from metastore.acid_tables.table import AcidTable, HiveColumn, TableKind
from metastore.files import Files
from metastore.ids import table_name
from metastore.spark.read.reader import read_snapshot
from metastore.spark.tables.row_id import ROW_ID


def described(directory: Path, columns: dict[str, str], **changes: Any) -> AcidTable:
    """An unpartitioned full ACID table that lies in ``directory``."""
    values: dict[str, Any] = {
        "name": table_name("db", "t"), "kind": TableKind.FULL_ACID, "location": str(directory),
        "columns": tuple(HiveColumn(name, kind) for name, kind in columns.items()), "partition_keys": (),
        "bucket_columns": (), "bucket_count": 0, "bucketing_version": 2, "file_format": "orc", "parameters": {}}
    return AcidTable(**{**values, **changes})


def directories(table: AcidTable, write_ids: ValidWriteIdList) -> list[Directory]:
    return acid_directories(Files(), table, [PartitionPlace("", (), table.location)], write_ids,
                            ValidTxnList.everything())


def snapshot(spark: SparkSession, table: AcidTable, write_ids: ValidWriteIdList, *, row_ids: bool = False) -> DataFrame:
    return read_snapshot(spark, table, directories(table, write_ids), write_ids, row_ids=row_ids)


def ids_and_rows(spark: SparkSession, table: AcidTable, write_ids: ValidWriteIdList) -> list[tuple[Any, tuple[Any, ...]]]:
    """(ROW__ID, values) of each row, sorted."""
    names = [column.name for column in table.columns]
    collected = snapshot(spark, table, write_ids, row_ids=True).collect()
    return sorted(((tuple(row[name] for name in ROW_ID), tuple(row[name] for name in names)) for row in collected), key=repr)
