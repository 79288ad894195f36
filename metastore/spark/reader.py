"""A snapshot of an ACID table as a DataFrame: native ORC scans, and one anti-join where there are deletes.

Rules kept here (acid-format.md §12, §20.1). Every scan of ACID files asks for all six event columns and carries a
filter over all six, because Spark's ORC source fails or misreads when one of them is pruned. A row counts when its
write id is visible and no visible delete event of the same ACID directory names it; ROW__IDs are unique only there,
so the directory is part of every join. Spark must not discover partition columns below ACID files: it would add them
to the columns that it asks ORC for, and seven are not six. Delete events are counted before the join, never guessed
from file sizes: five million of them fit in 34 kB. Rows of files without event columns get their ids only where a
delete event or the caller asks for them: that needs their position, and so one task for each file.
"""

import re
from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, StructType

from metastore.acid.events import DELETE_EVENT, INSERT_EVENT
from metastore.acid.snapshots import ValidWriteIdList
from metastore.spark.cut_files import cut_events
from metastore.spark.listing import BROADCAST_LIMIT, Directory, Scan
from metastore.spark.tables import AcidTable, TableKind

MAX_SCANS = 32
"""Partitions up to which each has a scan of its own, so that Spark can leave out those that a filter excludes."""

_DIRECTORY, _FILE = "__directory", "__file"
_POSITION_BITS = (1 << 33) - 1
_WHOLE_FILES = str(1 << 60)
_LOCAL = re.compile("^file:///")  # Hadoop writes file:///x where Spark's metadata column has file:/x
# The ROW__ID of a row version, as columns of a read with ``row_ids``.
ROW_ID = ("__write_id", "__bucket", "__row_id")
ROW_ID_COLUMN = "ROW__ID"
OPERATION_COLUMN, WRITE_ID_COLUMN = "_operation", "_write_id"
_EVENT_IDS = ("originalTransaction", "bucket", "rowId")


def event_type(row: DataType) -> StructType:
    """The schema of an ACID file around the user's row."""
    return StructType([
        StructField("operation", IntegerType()), StructField("originalTransaction", LongType()),
        StructField("bucket", IntegerType()), StructField("rowId", LongType()),
        StructField("currentTransaction", LongType()), StructField("row", row)])


def read_snapshot(spark: SparkSession, table: AcidTable, directories: Sequence[Directory],
                  write_ids: ValidWriteIdList, *, row_ids: bool = False) -> DataFrame:
    """The rows of ``table`` that the snapshot shows; with ``row_ids`` also the ROW__ID columns (full ACID only)."""
    if table.kind is TableKind.INSERT_ONLY:
        frames = _plain_rows(spark, table, [(one, [scan.path for scan in one.sources.events]) for one in directories])
        return frames if frames is not None else spark.createDataFrame([], table.schema)
    clean = [one for one in directories if not one.delete_events]
    dirty = [one for one in directories if one.delete_events]
    shown = [F.col("row").getField(column.name).alias(column.name) for column in table.columns]
    shown += [F.col(name) for name in table.partition_names]
    if row_ids:
        shown += [F.col(event).alias(name) for event, name in zip(_EVENT_IDS, ROW_ID, strict=True)]
    events = []
    if clean or not dirty:
        events.append(_inserts(spark, table, clean, write_ids, numbered=row_ids))
    if dirty:
        events.append(_without_deleted(spark, table, dirty, write_ids))
    rows = reduce(DataFrame.unionByName, events).select(*shown)
    if row_ids:
        return rows
    plain = _plain_rows(spark, table, [(one, one.sources.without_events) for one in clean])
    return rows if plain is None else rows.unionByName(plain)


def read_changes(spark: SparkSession, table: AcidTable, directories: Sequence[Directory],
                 write_ids: ValidWriteIdList, after: int) -> DataFrame:
    """Each row version that write ids above ``after`` inserted or deleted, with which and by whom.

    A row that was updated is in it twice: deleted as it was, and inserted as it is. ``directories`` must have no base
    above ``after``.
    """
    inserts = _inserts(spark, table, directories, write_ids, numbered=True)
    deletes = _events(spark, table, directories, write_ids, deletes=True)
    place = [*_EVENT_IDS, _DIRECTORY]
    first = deletes.groupBy(*place).agg(F.min("currentTransaction").alias(WRITE_ID_COLUMN))
    late = first.where(F.col(WRITE_ID_COLUMN) > after).withColumn(OPERATION_COLUMN, F.lit("delete"))
    gone = inserts.join(late, place)
    new = inserts.where(F.col("currentTransaction") > after).select(
        "*", F.col("currentTransaction").alias(WRITE_ID_COLUMN), F.lit("insert").alias(OPERATION_COLUMN))
    return new.unionByName(gone.select(*new.columns)).select(
        F.col(OPERATION_COLUMN), F.col(WRITE_ID_COLUMN),
        *(F.col("row").getField(column.name).alias(column.name) for column in table.columns),
        *table.partition_names, row_id_column(*_EVENT_IDS))


def with_row_id(rows: DataFrame) -> DataFrame:
    """Rows that were read with ``row_ids``, with Hive's ``ROW__ID`` instead: NULL where a row can have none."""
    return rows.select(*(name for name in rows.columns if name not in ROW_ID), row_id_column())


def row_id_column(write_id: str = ROW_ID[0], bucket: str = ROW_ID[1], row_id: str = ROW_ID[2]) -> Column:
    """Hive's ``ROW__ID`` out of three columns."""
    parts = F.struct(F.col(write_id).alias("writeid"), F.col(bucket).alias("bucketid"), F.col(row_id).alias("rowid"))
    return F.when(F.col(bucket).isNotNull(), parts).alias(ROW_ID_COLUMN)


def _without_deleted(spark: SparkSession, table: AcidTable, directories: Sequence[Directory],
                     write_ids: ValidWriteIdList) -> DataFrame:
    data = _inserts(spark, table, directories, write_ids, numbered=True)
    deleted = _events(spark, table, directories, write_ids, deletes=True).select(*_EVENT_IDS, _DIRECTORY)
    events = sum(directory.delete_events for directory in directories)
    deleted = deleted.hint("broadcast" if events <= BROADCAST_LIMIT else "merge")
    return data.join(deleted, [*_EVENT_IDS, _DIRECTORY], "left_anti")


def _inserts(spark: SparkSession, table: AcidTable, directories: Sequence[Directory], write_ids: ValidWriteIdList, *,
             numbered: bool) -> DataFrame:
    """Insert events of all kinds of files; with ``numbered`` also those that rows of plain files stand for."""
    frames = [_events(spark, table, directories, write_ids, deletes=False)]
    for number, one in enumerate(directories):
        if one.sources.cut:
            half = cut_events(spark, event_type(table.row_type), one.sources.cut)
            frames.append(_placed(half.where(_counts([one], write_ids, deletes=False)), table, number, one))
        if numbered and one.sources.without_events:
            frames.append(_placed(_synthetic_events(spark, table, one), table, number, one))
    return reduce(DataFrame.unionByName, frames)


def _events(spark: SparkSession, table: AcidTable, directories: Sequence[Directory], write_ids: ValidWriteIdList, *,
            deletes: bool) -> DataFrame:
    """Visible events of one kind, with the number of their directory and its partition values beside them."""
    counts = _counts(directories, write_ids, deletes=deletes)
    reader = spark.read.schema(event_type(table.row_type))
    scans = [(number, one, one.sources.deletes if deletes else one.sources.events)
             for number, one in enumerate(directories)]
    scans = [(number, one, found) for number, one, found in scans if found]
    if len(scans) > MAX_SCANS:
        scan = reader.orc([one.path for _, _, found in scans for one in found])
        return _by_file(scan.where(counts), spark, table, scans)
    frames = [_placed(reader.orc([one.path for one in found]).where(counts), table, number, directory)
              for number, directory, found in scans]
    fields = [StructField(_DIRECTORY, IntegerType()), *table.partition_type.fields]
    empty = StructType(event_type(table.row_type).fields + fields)
    return reduce(DataFrame.unionByName, frames) if frames else spark.createDataFrame([], empty)


def _placed(events: DataFrame, table: AcidTable, number: int, directory: Directory) -> DataFrame:
    """Events of one directory, with its number and its partition values."""
    values = zip(table.partition_type.fields, directory.values, strict=True)
    return events.select("*", F.lit(number).alias(_DIRECTORY),
                         *(F.lit(value).cast(key.dataType).alias(key.name) for key, value in values))


def _by_file(events: DataFrame, spark: SparkSession, table: AcidTable,
             scans: Sequence[tuple[int, Directory, Sequence[Scan]]]) -> DataFrame:
    """One scan of many directories: what each file belongs to is looked up by its path."""
    keys = table.partition_type.fields
    rows = [(path, number, *directory.values) for number, directory, found in scans for scan in found
            for path in _spark_paths(spark, scan)]
    names = [f"__value_{position}" for position in range(len(keys))]
    lookup = spark.createDataFrame(rows, StructType(
        [StructField(_FILE, StringType()), StructField(_DIRECTORY, IntegerType()),
         *(StructField(name, StringType()) for name in names)]))
    typed = lookup.select(_FILE, _DIRECTORY, *(F.col(name).cast(key.dataType).alias(key.name)
                                               for name, key in zip(names, keys, strict=True)))
    joined = events.withColumn(_FILE, F.col("_metadata.file_path")).join(F.broadcast(typed), _FILE, "left")
    return joined.where(_is_known(_DIRECTORY)).drop(_FILE)


def _synthetic_events(spark: SparkSession, table: AcidTable, directory: Directory) -> DataFrame:
    """The rows of a directory's plain files as insert events; the rows of files without a bucket get no bucket."""
    lone = spark.newSession()
    for setting in ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"):
        lone.conf.set(setting, _WHOLE_FILES)  # each file is one task, so that a row's place there is its position
    sources = directory.sources
    rows: list[tuple[str, int, int | None, int | None]] = [
        (_spark_paths(spark, Scan(one.path))[0], one.write_id, one.bucket, one.first_row_id) for one in sources.plain]
    rows += [(_spark_paths(spark, Scan(path))[0], 0, None, None) for path in sources.unnamed]
    ids = spark.createDataFrame(rows, f"{_FILE} string, originalTransaction bigint, bucket int, __first bigint")
    plain = lone.read.schema(table.row_type).orc(sources.without_events)
    numbered = plain.select(
        F.struct(*(F.col(name) for name in table.row_type.names)).alias("row"),
        F.col("_metadata.file_path").alias(_FILE),
        F.monotonically_increasing_id().bitwiseAND(_POSITION_BITS).alias("__position"))
    joined = numbered.join(F.broadcast(ids), _FILE, "left").where(_is_known("originalTransaction"))
    return joined.select(
        F.lit(INSERT_EVENT).alias("operation"), "originalTransaction", "bucket",
        (F.col("__first") + F.col("__position")).alias("rowId"),
        F.col("originalTransaction").alias("currentTransaction"), "row")


def _spark_paths(spark: SparkSession, scan: Scan) -> list[str]:
    """The files of a scan as Spark's ``_metadata`` spells their paths."""
    path = spark._jvm.org.apache.hadoop.fs.Path(scan.path)  # noqa: SLF001 - Spark's own class
    file_system = path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
    uri = _LOCAL.sub("file:/", file_system.makeQualified(path).toUri().toString())
    return [f"{uri}/{name}" for name in scan.names] if scan.names else [uri]


def _is_known(column: str) -> Column:
    """True, or the failure of the query: an inner join would drop the rows of a file that is not found in silence."""
    unknown = F.raise_error(F.concat(F.lit("no directory is known for the file "), F.col(_FILE)))
    return F.coalesce(F.col(column), unknown.cast("int")) >= 0


def _counts(directories: Sequence[Directory], write_ids: ValidWriteIdList, *, deletes: bool) -> Column:
    """Which events count; names all six columns on purpose (see the module's rules).

    An update event (operation 1) is found only in bases that Hive before 3 compacted, where it is its row's only event.
    """
    row, current, operation = F.col("row"), F.col("currentTransaction"), F.col("operation")
    counts = ((operation == F.lit(DELETE_EVENT) if deletes else operation < F.lit(DELETE_EVENT))
              & (F.col("originalTransaction") >= 0) & (F.col("bucket") >= 0) & (F.col("rowId") >= 0)
              & (current <= write_ids.high_watermark) & (row.isNull() if deletes else row.isNotNull()))
    hidden: Iterable[int] = set().union(*(one.hidden_write_ids(write_ids) for one in directories))
    return counts & ~current.isin(sorted(hidden)) if hidden else counts


def _plain_rows(spark: SparkSession, table: AcidTable,
                placed: Sequence[tuple[Directory, Sequence[str]]]) -> DataFrame | None:
    """Rows of files that hold nothing but the table's columns; None where there are no files.

    One scan for all partitions that lie where their names say, one more for each that lies elsewhere.
    """
    usual = [(one, paths) for one, paths in placed if one.location == _usual_location(table, one)]
    frames = []
    if paths := [path for _, found in usual for path in found]:
        reader = spark.read.schema(table.schema).format(table.file_format)
        frames.append(reader.option("basePath", table.location).load(paths))
    for one, found in placed:
        if found and one.location != _usual_location(table, one):
            frame = spark.read.schema(table.row_type).format(table.file_format).load(list(found))
            for key, value in zip(table.partition_type.fields, one.values, strict=True):
                frame = frame.withColumn(key.name, F.lit(value).cast(key.dataType))
            frames.append(frame)
    return reduce(DataFrame.unionByName, frames) if frames else None


def _usual_location(table: AcidTable, directory: Directory) -> str:
    return f"{table.location}/{directory.partition}" if directory.partition else table.location
