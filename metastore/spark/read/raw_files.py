"""Rows of files without event columns, as insert events; and the schema of files with event columns.

Rule: a row's id is derived from its position in its file (``acid.originals``), so each file must be one task.
"""

import re

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, IntegerType, LongType, StructField, StructType

from metastore.acid.events import EVENT_COLUMNS, EVENT_TYPES, INSERT_EVENT
from metastore.acid_tables.sources import Sources
from metastore.acid_tables.table import OURS
from metastore.spark.jvm.compiled import jvm_of

_FILE, _FIRST, _POSITION = f"{OURS}file", f"{OURS}first", f"{OURS}position"
_LOCAL = re.compile("^file:///")  # Hadoop writes file:///x where Spark's metadata column has file:/x
POSITION_BITS = (1 << 33) - 1
_WHOLE_FILES = str(1 << 60)


def event_type(row: DataType) -> StructType:
    """Return the schema of an ACID file around the user's row."""
    numbers = {"int": IntegerType(), "bigint": LongType()}
    types = [*(numbers[name] for name in EVENT_TYPES), row]
    return StructType([StructField(*field) for field in zip(EVENT_COLUMNS, types, strict=True)])


def let_each_file_be_a_task(spark: SparkSession) -> None:
    """Set up a session in which a row's place in its task is its position in its file."""
    for setting in ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"):
        spark.conf.set(setting, _WHOLE_FILES)


def raw_events(spark: SparkSession, reader: DataFrameReader, row_type: StructType, sources: Sources) -> DataFrame:
    """Return the rows of files without event columns, as insert events. A file's name may lack their bucket.

    ``spark``: a session after ``let_each_file_be_a_task``.
    """
    rows: list[tuple[str, int, int | None, int | None]] = [
        (_spark_path(spark, file.path), file.write_id, file.bucket, file.first_row_id) for file in sources.plain
    ]
    rows += [(_spark_path(spark, path), 0, None, None) for path in sources.unnamed]
    ids = spark.createDataFrame(rows, f"{_FILE} string, originalTransaction bigint, bucket int, {_FIRST} bigint")
    plain = reader.schema(row_type).orc(sources.without_events)
    numbered = plain.select(
        F.struct(*(F.col(name) for name in row_type.names)).alias("row"),
        F.col("_metadata.file_path").alias(_FILE),
        F.monotonically_increasing_id().bitwiseAND(POSITION_BITS).alias(_POSITION),
    )
    joined = numbered.join(F.broadcast(ids), _FILE, "left").where(_is_known("originalTransaction"))
    return joined.select(
        F.lit(INSERT_EVENT).alias("operation"),
        "originalTransaction",
        "bucket",
        (F.col(_FIRST) + F.col(_POSITION)).alias("rowId"),
        F.col("originalTransaction").alias("currentTransaction"),
        "row",
    )


def _spark_path(spark: SparkSession, uri: str) -> str:
    """Return a file's path in the spelling of Spark's ``_metadata``."""
    path = jvm_of(spark).org.apache.hadoop.fs.Path(uri)
    file_system = path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
    return _LOCAL.sub("file:/", file_system.makeQualified(path).toUri().toString())


def _is_known(column: str) -> Column:
    """Return True, or fail the query: an inner join would silently drop the rows of an unknown file."""
    unknown = F.raise_error(F.concat(F.lit("no directory is known for the file "), F.col(_FILE)))
    return F.coalesce(F.col(column), unknown.cast("int")) >= 0
