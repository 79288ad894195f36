"""Values that Spark cannot carry from one file to the next unchanged: timestamps with nanoseconds.

Rule: a compaction changes no value, and UPDATE and MERGE none that they do not assign, so they refuse such timestamps.
(A SELECT shows them cut to microseconds.) Only files of other writers can hold them, and they are looked for only in
tables with timestamp columns: read as text, which ORC converts in full, a fraction of more than six digits gives them
away.
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
    """Look through files with (``acid``) and without the event columns (``plain``).

    Raises: InvalidOperationError when a timestamp would lose digits.
    """
    timed = [one for one in row_type.fields if _holds_timestamp(one.dataType)]
    row = StructType([StructField(one.name, as_text(one.dataType)) for one in timed])
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
        if found := frame.where(F.to_json("row").rlike(_FINER_THAN_MICROSECONDS)).head(1):
            raise InvalidOperationError(
                f"{found[0].file} holds timestamps with nanoseconds, which Spark would cut to microseconds: "
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
    """Before rows are written anew with the values of the columns ``kept``; ``moved`` has their ROW__IDs.

    Raises: InvalidOperationError when a timestamp of such a row would lose digits.
    """
    timed = [one.name for one in row_type(table).fields if one.name in kept and _holds_timestamp(one.dataType)]
    foreign = [_foreign(files, one) for one in directories] if timed else []
    if any(one.sources.cut for one in foreign):
        raise InvalidOperationError(
            f"A streaming writer has not closed its files of {table.name}: before it has, it "
            "cannot be seen whether their timestamps can be rewritten exactly."
        )
    if not any(one.sources.events or one.sources.plain for one in foreign):
        return
    columns = tuple(HiveColumn(one.name, _TIMESTAMP.sub("string", one.type)) for one in table.columns)
    rows = read_snapshot(spark, replace(table, columns=columns), foreign, write_ids, row_ids=True)
    fine = rows.where(F.to_json(F.struct(*timed)).rlike(_FINER_THAN_MICROSECONDS))
    names = [*ROW_ID, *table.partition_names]
    if found := fine.select(*names).intersect(moved.select(*names)).head(1):
        row_id = [found[0][name] for name in ROW_ID]
        raise InvalidOperationError(
            f"The row {row_id} of {table.name} holds a timestamp with nanoseconds ({', '.join(timed)}), which Spark "
            "would cut to microseconds: assign the column as well, or change the row with Hive"
        )


def _foreign(files: Files, directory: Directory) -> Directory:
    """The directory with those of its files that Spark did not write, and no deletes."""
    sources = directory.sources
    events = [file.path for file in sources.events]
    plain = {one.path: one for one in sources.plain}
    foreign = {tail.path for tail in orc_tails(files, [*events, *plain]) if not tail.is_by_spark}
    kept = Sources(
        events=tuple(file for file in sources.events if file.path in foreign),
        cut=sources.cut,
        plain=tuple(one for path, one in plain.items() if path in foreign),
    )
    return replace(directory, sources=kept)


def as_text(kind: DataType) -> DataType:
    """The same type with every timestamp as a string."""
    match kind:
        case TimestampType():
            return StringType()
        case ArrayType():
            return ArrayType(as_text(kind.elementType))
        case MapType():
            return MapType(as_text(kind.keyType), as_text(kind.valueType))
        case StructType():
            return StructType([StructField(one.name, as_text(one.dataType)) for one in kind.fields])
        case _:
            return kind


def _holds_timestamp(kind: DataType) -> bool:
    return '"timestamp"' in kind.json()
