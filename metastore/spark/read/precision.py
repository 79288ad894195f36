"""Values that Spark cannot carry from one file to the next unchanged: timestamps with nanoseconds.

Rule: a compaction changes no value, so it refuses such timestamps. (A SELECT shows them cut to microseconds.) Only
files of other writers can hold them, so only those are read, and only in tables with timestamp columns. They are read
as text, since ORC converts timestamps to text in full: more than six digits of a second show the case.
"""

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, TimestampType

from metastore.acid.events import EVENT_COLUMNS
from metastore.acid_tables.footers import orc_tails
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.spark.read.raw_files import event_type

_FINER_THAN_MICROSECONDS = r"\.[0-9]{7,9}\""


def require_exact(
    spark: SparkSession, files: Files, row_type: StructType, acid: Sequence[str], plain: Sequence[str]
) -> None:
    """Raise InvalidOperationError when Spark would cut a timestamp of these files.

    ``acid``, ``plain``: paths of files with and without the event columns.
    """
    timed = [field for field in row_type.fields if _holds_timestamp(field.dataType)]
    row = StructType([StructField(field.name, as_text(field.dataType)) for field in timed])
    if not row.fields:
        return
    foreign, loaded = (
        [tail.path for tail in orc_tails(files, paths) if not tail.is_by_spark] for paths in (acid, plain)
    )
    frames = []
    if foreign:
        events = spark.read.schema(event_type(row)).orc(foreign)
        whole = events.where(" AND ".join(f"{name} >= 0" for name in EVENT_COLUMNS[:-1]) + " AND row IS NOT NULL")
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


def as_text(kind: DataType) -> DataType:
    """Return the type with every timestamp as a string."""
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
