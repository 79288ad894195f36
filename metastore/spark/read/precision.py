"""Values that Spark cannot carry from one file to the next unchanged: timestamps with nanoseconds.

Rule: a compaction changes no value, and UPDATE and MERGE change only values that they assign, so they refuse such
timestamps. (A SELECT shows them cut to microseconds.) Only files of other writers can hold them, so only those are
read, and only in tables with timestamp columns. They are read as text, which ORC converts in full: a fraction of more
than six digits tells.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, TimestampType

from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid_tables.footers import orc_tails
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.sources import Sources
from metastore.acid_tables.table import AcidTable, HiveColumn
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.read.raw_files import event_type
from metastore.spark.read.reader import read_snapshot
from metastore.spark.tables.row_id import ROW_ID
from metastore.spark.tables.spark_types import row_type

_TIMESTAMP = re.compile(r"\btimestamp\b", re.IGNORECASE)
_FINER_THAN_MICROSECONDS = r"\.[0-9]{7,9}\""


def require_exact(spark: SparkSession, row_type: StructType, acid: Sequence[str], plain: Sequence[str]) -> None:
    """Raise InvalidOperationError when Spark would cut a timestamp of these files.

    ``acid``, ``plain``: paths of files with and without the event columns.
    """
    timed = [field for field in row_type.fields if _holds_timestamp(field.dataType)]
    row = StructType([StructField(field.name, as_text(field.dataType)) for field in timed])
    if not row.fields:
        return
    hadoop = Hadoop(spark)
    foreign = [path for path in acid if not hadoop.is_written_by_spark(path)]
    loaded = [path for path in plain if not hadoop.is_written_by_spark(path)]
    frames = []
    if foreign:
        events = spark.read.schema(event_type(row)).orc(foreign)
        ids = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction")
        whole = events.where(" AND ".join(f"{name} >= 0" for name in ids) + " AND row IS NOT NULL")
        frames.append(whole.select("row", F.input_file_name().alias("file")))
    if loaded:
        rows = spark.read.schema(row).orc(loaded)
        frames.append(rows.select(F.struct(*row.names).alias("row"), F.input_file_name().alias("file")))
    for frame in frames:
        if fine := frame.where(F.to_json("row").rlike(_FINER_THAN_MICROSECONDS)).head(1):
            raise InvalidOperationError(
                f"{fine[0].file} holds timestamps with nanoseconds, which Spark would cut to microseconds: "
                "compact this table with Hive, or rewrite the column"
            )


def require_exact_moves(
    files: Files,
    spark: SparkSession,
    table: AcidTable,
    directories: Sequence[Directory],
    write_ids: ValidWriteIdList,
    moved: DataFrame,
    kept: Collection[str],
) -> None:
    """Raise InvalidOperationError when writing rows anew would cut a timestamp in one of the columns ``kept``.

    ``moved``: the ROW__IDs and partition keys of the rows.
    """
    timed = [field.name for field in row_type(table).fields if field.name in kept and _holds_timestamp(field.dataType)]
    foreign = [_foreign(files, directory) for directory in directories] if timed else []
    if any(directory.sources.cut for directory in foreign):
        raise InvalidOperationError(
            f"A streaming writer has not closed its files of {table.name}: before it has, it "
            "is not known whether their timestamps can be rewritten exactly."
        )
    if not any(directory.sources.events or directory.sources.plain for directory in foreign):
        return
    columns = tuple(HiveColumn(column.name, _TIMESTAMP.sub("string", column.type)) for column in table.columns)
    rows = read_snapshot(spark, replace(table, columns=columns), foreign, write_ids, row_ids=True)
    fine = rows.where(F.to_json(F.struct(*timed)).rlike(_FINER_THAN_MICROSECONDS))
    names = [*ROW_ID, *table.partition_names]
    if lost := fine.select(*names).intersect(moved.select(*names)).head(1):
        row_id = [lost[0][name] for name in ROW_ID]
        raise InvalidOperationError(
            f"The row {row_id} of {table.name} holds a timestamp with nanoseconds ({', '.join(timed)}), which Spark "
            "would cut to microseconds: assign the column as well, or change the row with Hive"
        )


def _foreign(files: Files, directory: Directory) -> Directory:
    """The directory with only the files that Spark did not write, and without deletes."""
    sources = directory.sources
    events = [file.path for file in sources.events]
    plain = {file.path: file for file in sources.plain}
    foreign = {tail.path for tail in orc_tails(files, [*events, *plain]) if not tail.is_by_spark}
    kept = Sources(
        events=tuple(file for file in sources.events if file.path in foreign),
        cut=sources.cut,
        plain=tuple(file for path, file in plain.items() if path in foreign),
    )
    return replace(directory, sources=kept)


def as_text(kind: DataType) -> DataType:
    """The type with every timestamp as a string."""
    match kind:
        case TimestampType():
            return StringType()
        case ArrayType():
            return ArrayType(as_text(kind.elementType))
        case MapType():
            return MapType(as_text(kind.keyType), as_text(kind.valueType))
        case StructType():
            return StructType([StructField(field.name, as_text(field.dataType)) for field in kind.fields])
        case _:
            return kind


def _holds_timestamp(kind: DataType) -> bool:
    return '"timestamp"' in kind.json()
