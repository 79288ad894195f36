"""A snapshot of an ACID table as a DataFrame: native ORC scans, and one anti-join where there are deletes.

Rules kept here (acid-format.md §12, §20.1). Every scan of ACID files asks for all six event columns and carries a
filter over all six, because Spark's ORC source fails or misreads when one of them is pruned. A row counts when its
write id is visible and no visible delete event of the same ACID directory names it; ROW__IDs are unique only there,
so the directory is part of every join. Spark must not discover partition columns below ACID files: it would add them
to the columns that it asks ORC for, and seven are not six. Delete events are counted before the join, never guessed
from file sizes: five million of them fit in 34 kB.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField, StructType

from metastore.acid.snapshots import RangeState, ValidWriteIdList
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory
from metastore.errors import InvalidOperationError
from metastore.spark.tables import AcidTable, TableKind

INSERT_EVENT, DELETE_EVENT = 0, 2
BROADCAST_LIMIT = 1_000_000
"""Delete events up to which the anti-join broadcasts them; above it both sides are sorted and merged."""

MAX_SCANS = 32
"""Partitions up to which each has a scan of its own, so that Spark can leave out those that a filter excludes."""

_DIRECTORY, _FILE = "__directory", "__file"
_LOCAL = re.compile("^file:///")  # Hadoop writes file:///x where Spark's metadata column has file:/x
# The ROW__ID of a row version, as columns of a read with ``row_ids``.
ROW_ID = ("__write_id", "__bucket", "__row_id")
_EVENT_IDS = ("originalTransaction", "bucket", "rowId")


@dataclass(frozen=True)
class Directory:
    """An ACID directory: a partition's location, or an unpartitioned table's; ``values`` are None for the default."""

    partition: str
    values: tuple[str | None, ...]
    location: str
    state: AcidState
    delete_events: int

    def paths(self, *, deletes: bool) -> list[str]:
        """Absolute paths of the directories that hold events of one kind."""
        return [f"{self.location}/{one.path}" for one in self._directories(deletes=deletes) if one.files]

    def _directories(self, *, deletes: bool) -> list[BaseDirectory | DeltaDirectory]:
        if deletes:
            return list(self.state.delete_deltas)
        return [*([self.state.base] if self.state.base is not None else []), *self.state.insert_deltas]

    def files(self, spark: SparkSession, *, deletes: bool) -> list[tuple[str, str]]:
        """(directory URI as Spark's ``_metadata`` spells it, file name) of each data file with events of one kind."""
        path_of = spark._jvm.org.apache.hadoop.fs.Path  # noqa: SLF001 - Spark's own class
        found = []
        for path in self.paths(deletes=deletes):
            hadoop_path = path_of(path)
            file_system = hadoop_path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
            uri = _LOCAL.sub("file:/", file_system.makeQualified(hadoop_path).toUri().toString())
            name = path.rsplit("/", 1)[-1]
            found += [(uri, file.path.rsplit("/", 1)[-1]) for one in self._directories(deletes=deletes)
                      if one.path == name for file in one.files]
        return found

    def hidden_write_ids(self, write_ids: ValidWriteIdList) -> set[int]:
        """Write ids inside the deltas whose rows must be filtered out one by one."""
        some = [delta.name for delta in self.state.deltas if delta.visible is RangeState.SOME]
        return {write_id for name in some for write_id in write_ids.invalid
                if name.min_write_id <= write_id <= name.max_write_id}


def event_type(row: DataType) -> StructType:
    """The schema of an ACID file around the user's row."""
    return StructType([
        StructField("operation", IntegerType()), StructField("originalTransaction", LongType()),
        StructField("bucket", IntegerType()), StructField("rowId", LongType()),
        StructField("currentTransaction", LongType()), StructField("row", row)])


def read_snapshot(spark: SparkSession, table: AcidTable, directories: Sequence[Directory],
                  write_ids: ValidWriteIdList, *, row_ids: bool = False) -> DataFrame:
    """The rows of ``table`` that the snapshot shows; with ``row_ids`` also the ROW__ID columns (full ACID only).

    Raises: InvalidOperationError for files that this reader does not understand.
    """
    for directory in directories:
        _require_readable(table, directory)
    if table.kind is TableKind.INSERT_ONLY:
        return _insert_only(spark, table, directories)
    clean = [one for one in directories if not one.delete_events]
    dirty = [one for one in directories if one.delete_events]
    parts = []
    if clean or not dirty:
        parts.append(_events(spark, table, clean, write_ids, deletes=False))
    if dirty:
        parts.append(_without_deleted(spark, table, dirty, write_ids))
    rows = reduce(DataFrame.unionByName, parts)
    shown = [F.col("row").getField(column.name).alias(column.name) for column in table.columns]
    shown += [F.col(name) for name in table.partition_names]
    if row_ids:
        shown += [F.col(event).alias(name) for event, name in zip(_EVENT_IDS, ROW_ID, strict=True)]
    return rows.select(*shown)


def _without_deleted(spark: SparkSession, table: AcidTable, directories: Sequence[Directory],
                     write_ids: ValidWriteIdList) -> DataFrame:
    data = _events(spark, table, directories, write_ids, deletes=False)
    deleted = _events(spark, table, directories, write_ids, deletes=True).select(*_EVENT_IDS, _DIRECTORY)
    events = sum(directory.delete_events for directory in directories)
    deleted = deleted.hint("broadcast" if events <= BROADCAST_LIMIT else "merge")
    return data.join(deleted, [*_EVENT_IDS, _DIRECTORY], "left_anti")


def _events(spark: SparkSession, table: AcidTable, directories: Sequence[Directory], write_ids: ValidWriteIdList, *,
            deletes: bool) -> DataFrame:
    """Visible events of one kind, with the number of their directory and its partition values beside them."""
    hidden = set().union(*(one.hidden_write_ids(write_ids) for one in directories)) if directories else set()
    counts = _event_filter(write_ids, hidden, deletes=deletes)
    reader = spark.read.schema(event_type(table.row_type))
    placed = [(number, one, paths) for number, one in enumerate(directories) if (paths := one.paths(deletes=deletes))]
    if len(placed) > MAX_SCANS:
        scan = reader.orc([path for _, _, paths in placed for path in paths])
        return _by_file(scan.where(counts), spark, table, placed, deletes=deletes)
    scans = []
    for number, directory, paths in placed:
        values = zip(table.partition_type.fields, directory.values, strict=True)
        scans.append(reader.orc(paths).where(counts).select(
            "*", F.lit(number).alias(_DIRECTORY),
            *(F.lit(value).cast(key.dataType).alias(key.name) for key, value in values)))
    fields = [StructField(_DIRECTORY, IntegerType()), *table.partition_type.fields]
    empty = StructType(event_type(table.row_type).fields + fields)
    return reduce(DataFrame.unionByName, scans) if scans else spark.createDataFrame([], empty)


def _by_file(events: DataFrame, spark: SparkSession, table: AcidTable,
             placed: Sequence[tuple[int, Directory, list[str]]], *, deletes: bool) -> DataFrame:
    """One scan of many directories: what each file belongs to is looked up by its path."""
    keys = table.partition_type.fields
    rows = [(f"{uri}/{name}", number, *directory.values) for number, directory, _ in placed
            for uri, name in directory.files(spark, deletes=deletes)]
    names = [f"__value_{position}" for position in range(len(keys))]
    lookup = spark.createDataFrame(rows, StructType(
        [StructField(_FILE, StringType()), StructField(_DIRECTORY, IntegerType()),
         *(StructField(name, StringType()) for name in names)]))
    typed = lookup.select(_FILE, _DIRECTORY, *(F.col(name).cast(key.dataType).alias(key.name)
                                               for name, key in zip(names, keys, strict=True)))
    joined = events.withColumn(_FILE, F.col("_metadata.file_path")).join(F.broadcast(typed), _FILE, "left")
    # A file that is not found would lose its rows in silence, were this an inner join.
    unknown = F.raise_error(F.concat(F.lit("no directory is known for the file "), F.col(_FILE)))
    return joined.where(F.coalesce(F.col(_DIRECTORY), unknown.cast("int")) >= 0).drop(_FILE)


def _event_filter(write_ids: ValidWriteIdList, hidden: Iterable[int], *, deletes: bool) -> Column:
    """Which events count; names all six columns on purpose (see the module's rules)."""
    row, current = F.col("row"), F.col("currentTransaction")
    counts = ((F.col("operation") == F.lit(DELETE_EVENT if deletes else INSERT_EVENT))
              & (F.col("originalTransaction") >= 0) & (F.col("bucket") >= 0) & (F.col("rowId") >= 0)
              & (current <= write_ids.high_watermark) & (row.isNull() if deletes else row.isNotNull()))
    hidden = sorted(hidden)
    return counts & ~current.isin(hidden) if hidden else counts


def _plain_scans(spark: SparkSession, table: AcidTable, directories: Sequence[Directory]) -> list[DataFrame]:
    """One scan for all partitions that lie where their names say, one more for each that lies elsewhere."""
    usual = [one for one in directories if one.location == _usual_location(table, one)]
    frames = []
    if paths := [path for one in usual for path in one.paths(deletes=False)]:
        reader = spark.read.schema(table.schema).format(table.file_format)
        frames.append(reader.option("basePath", table.location).load(paths))
    for one in directories:
        if one not in usual and (paths := one.paths(deletes=False)):
            frame = spark.read.schema(table.row_type).format(table.file_format).load(paths)
            for key, value in zip(table.partition_type.fields, one.values, strict=True):
                frame = frame.withColumn(key.name, F.lit(value).cast(key.dataType))
            frames.append(frame)
    return frames


def _usual_location(table: AcidTable, directory: Directory) -> str:
    return f"{table.location}/{directory.partition}" if directory.partition else table.location


def _insert_only(spark: SparkSession, table: AcidTable, directories: Sequence[Directory]) -> DataFrame:
    frames = _plain_scans(spark, table, directories)
    return reduce(DataFrame.unionByName, frames) if frames else spark.createDataFrame([], table.schema)


def _require_readable(table: AcidTable, directory: Directory) -> None:
    """Refuse what would be read wrongly, with what makes it readable."""
    state = directory.state
    advice = f"Run ALTER TABLE {table.name} COMPACT 'major' in Hive first."
    if any(file.size for file in state.originals):
        raise InvalidOperationError(f"{directory.location} holds files from before the table became transactional, "
                                    f"which have no row ids yet. {advice}")
    chosen: list[BaseDirectory | DeltaDirectory] = [*([state.base] if state.base else []), *state.deltas]
    for one in chosen:
        if table.kind is TableKind.FULL_ACID and one.may_be_raw:
            raise InvalidOperationError(f"{directory.location}/{one.path} was made by LOAD DATA: its files have no row "
                                        f"ids yet. {advice}")
        if one.side_files:
            raise InvalidOperationError(f"{directory.location}/{one.path} is being written by a streaming client; its "
                                        "files can be read when the client has closed its batch.")
        if table.kind is TableKind.INSERT_ONLY and not table.file_format:
            raise InvalidOperationError(f"{table.name} is stored in a format that Spark has no reader for.")
