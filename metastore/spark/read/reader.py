"""A snapshot of an ACID table as a DataFrame: a native ORC scan without the deleted rows.

Rules (ACID-18, ACID-23, ACID-30, ACID-31). A row counts when its write id is visible and no visible delete event of the
same ACID directory names it. ROW__IDs are unique only there, so the directory is a part of the look-up. Rows are not
asked what the names of directories say: write ids are read only where a delta has invisible among visible write ids,
operations only where Hive before version 3 may have written. Deleted rows are looked up as bits. Where bits would take
too much space, an anti-join removes the rows. It broadcasts the delete events when they are few: they are counted,
never guessed from file sizes, since five million fit in 34 kB. Rows of files without event columns get ids only where
a delete event or the caller needs them: an id needs the row's position, and so a task for each file.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from metastore.acid.events import EVENT_COLUMNS
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid_tables.delete_files import BROADCAST_LIMIT, DeleteFiles
from metastore.acid_tables.deleted import DeletedRows, deleted_rows
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.serde_storage import HiveStorage
from metastore.acid_tables.sources import DataFile
from metastore.acid_tables.table import OURS, AcidTable, FileFormat, TableKind, quoted
from metastore.files import Files
from metastore.spark.read.conditions import visible
from metastore.spark.read.cut_files import cut_events
from metastore.spark.read.deleted_column import is_deleted
from metastore.spark.read.raw_files import event_type, let_each_file_be_a_task, raw_events
from metastore.spark.read.scans import DELETED, DIRECTORY_NUMBER, NumberedFile, scan_files, text_value, value_by_number
from metastore.spark.read.serde_files import partitioned_rows
from metastore.spark.tables.row_id import BUCKET, BY, OPERATION, ROW_ID, ROW_ID_COLUMN, ROW_NUMBER, WRITE_ID
from metastore.spark.tables.spark_types import partition_type, row_type, schema_of

_DIRECTORY, _MIXED = f"{OURS}directory", f"{OURS}mixed"
OPERATION_COLUMN, WRITE_ID_COLUMN = "_operation", "_write_id"
_MIX = (
    f"{ROW_NUMBER} ^ shiftleft(CAST({BUCKET} AS BIGINT), 20) ^ shiftleft({WRITE_ID}, 44)"
    f" ^ shiftleft(CAST({_DIRECTORY} AS BIGINT), 52)"
)
"""A bigint: equal for the same row, and seldom for different rows."""


def read_snapshot(
    spark: SparkSession,
    table: AcidTable,
    directories: Sequence[Directory],
    write_ids: ValidWriteIdList,
    *,
    row_ids: bool = False,
) -> DataFrame:
    """The rows of ``table`` in a snapshot: columns, then partition keys.

    ``row_ids``: add the columns ``ROW_ID`` (full ACID only). ``directories``: the snapshot's, with their sources.
    """
    if table.kind is TableKind.INSERT_ONLY:
        return _insert_only_rows(spark, table, directories)
    deletes = DeleteFiles.of(Files(), [file for directory in directories for file in directory.sources.deletes])
    clean: list[Directory] = []
    dirty: list[Directory] = []
    for directory in directories:
        (clean if deletes.events(directory.sources.deletes) == 0 else dirty).append(directory)
    kept = ROW_ID if row_ids else ()
    versions = _inserts(spark, table, clean, write_ids, kept, numbered=row_ids)
    if dirty:
        versions += _without_deleted(spark, table, dirty, write_ids, kept, deletes)
    if not row_ids:
        plain = _plain_rows(spark, table, "orc", [(directory, directory.sources.without_events) for directory in clean])
        versions += [] if plain is None else [plain]
    return _united(spark, table, kept, versions)


def read_changes(
    spark: SparkSession, table: AcidTable, directories: Sequence[Directory], write_ids: ValidWriteIdList, after: int
) -> DataFrame:
    """Each row version that write ids above ``after`` inserted or deleted.

    Columns: ``_operation``, ``_write_id`` (who), the table's, ``ROW__ID``. An updated row is in it twice: deleted as it
    was, and inserted as it is. ``directories`` must have no base above ``after``.
    """
    place = [*ROW_ID, _DIRECTORY]
    kept = (*place, BY)
    inserts = _united(spark, table, kept, _inserts(spark, table, directories, write_ids, kept, numbered=True))
    deletes = _deletes(spark, directories, write_ids, kept)
    first = deletes.groupBy(*place).agg(F.min(BY).alias(WRITE_ID_COLUMN))
    late = first.where(F.col(WRITE_ID_COLUMN) > after).withColumn(OPERATION_COLUMN, F.lit("delete"))
    gone = inserts.join(late, place)
    new = inserts.where(F.col(BY) > after).select(
        "*", F.col(BY).alias(WRITE_ID_COLUMN), F.lit("insert").alias(OPERATION_COLUMN)
    )
    return new.unionByName(gone.select(*(quoted(name) for name in new.columns))).select(
        F.col(OPERATION_COLUMN),
        F.col(WRITE_ID_COLUMN),
        *(quoted(column.name) for column in table.columns),
        *map(quoted, table.partition_names),
        row_id_column(),
    )


def with_row_id(rows: DataFrame) -> DataFrame:
    """Rows of ``read_snapshot`` with ``row_ids``: a column ``ROW__ID`` replaces them, NULL where a row has no id."""
    return rows.select(*(quoted(name) for name in rows.columns if name not in ROW_ID), row_id_column())


def row_id_column(write_id: str = ROW_ID[0], bucket: str = ROW_ID[1], row_id: str = ROW_ID[2]) -> Column:
    """Hive's ``ROW__ID``, a struct, out of three columns."""
    parts = F.struct(F.col(write_id).alias("writeid"), F.col(bucket).alias("bucketid"), F.col(row_id).alias("rowid"))
    return F.when(F.col(bucket).isNotNull(), parts).alias(ROW_ID_COLUMN)


def _without_deleted(
    spark: SparkSession,
    table: AcidTable,
    directories: Sequence[Directory],
    write_ids: ValidWriteIdList,
    kept: Sequence[str],
    deletes: DeleteFiles,
) -> list[DataFrame]:
    rows = deleted_rows(Files(), directories, write_ids, deletes)
    if rows is not None:
        return _inserts(spark, table, directories, write_ids, kept, numbered=True, deleted=rows)
    place = (*ROW_ID, _DIRECTORY)
    versions = _united(spark, table, place, _inserts(spark, table, directories, write_ids, place, numbered=True))
    deleted = _deletes(spark, directories, write_ids, place)
    count = deletes.events(file for directory in directories for file in directory.sources.deletes)
    if count is not None and count <= BROADCAST_LIMIT:
        left = _unless_named(versions, deleted)
    else:
        left = versions.join(deleted.hint("merge"), list(place), "left_anti")
    return [left.drop(*(name for name in place if name not in kept))]


def _unless_named(versions: DataFrame, deleted: DataFrame) -> DataFrame:
    """The rows that ``deleted`` does not name; ``deleted`` is broadcast.

    Spark looks up a single bigint several times faster than four columns, so the join is on a mix of them. Its second
    condition compares the columns themselves, in a form that Spark does not take for join keys.
    """
    place = (*ROW_ID, _DIRECTORY)
    named = deleted.select(F.expr(_MIX).alias(_MIXED), *(F.col(name).alias(f"{name}_of_event") for name in place))
    differs = " | ".join(f"CAST({name} ^ {name}_of_event AS BIGINT)" for name in place)
    return versions.join(F.broadcast(named), (F.expr(_MIX) == F.col(_MIXED)) & F.expr(f"{differs} = 0L"), "left_anti")


def _inserts(
    spark: SparkSession,
    table: AcidTable,
    directories: Sequence[Directory],
    write_ids: ValidWriteIdList,
    kept: Sequence[str],
    *,
    numbered: bool,
    deleted: DeletedRows | None = None,
) -> list[DataFrame]:
    """Row versions of all kinds of files, without the ``deleted``; with ``numbered`` also those of plain files.

    Each frame has the event's columns in ``kept``, then the table's.
    """
    files = _numbered_files([directory.sources.events for directory in directories])
    conditions = _visible(directories, write_ids, deletes=False) + ([] if deleted is None else [f"NOT {DELETED}"])
    frames = []
    for number, directory in enumerate(directories):
        others = []
        if directory.sources.cut:
            half = _flat(table, cut_events(spark, event_type(row_type(table)), directory.sources.cut))
            others.append(_where(half, _visible([directory], write_ids, deletes=False)))
        if numbered and directory.sources.without_events:
            others.append(_flat(table, _raw_events(spark, table, directory)))
        for other in others:
            left = other if deleted is None else other.where(~is_deleted(deleted, spark, *ROW_ID, str(number)))
            frames.append(
                left.selectExpr(
                    *_event_columns(kept, str(number)),
                    *(quoted(c.name) for c in table.columns),
                    *_keys(table, [directory]),
                )
            )
    if files or frames:  # a union is in its first frame's session, and plain files have their own
        frames.insert(
            0,
            scan_files(
                spark, table.columns, files, _event_columns(kept), _keys(table, directories), conditions, deleted
            ),
        )
    return frames


def _deletes(
    spark: SparkSession, directories: Sequence[Directory], write_ids: ValidWriteIdList, kept: Sequence[str]
) -> DataFrame:
    """Visible delete events."""
    files = _numbered_files([directory.sources.deletes for directory in directories])
    return scan_files(spark, (), files, _event_columns(kept), where=_visible(directories, write_ids, deletes=True))


def _numbered_files(files: Sequence[Sequence[DataFile]]) -> list[NumberedFile]:
    """The files of each directory, with its number."""
    return [
        NumberedFile(file.path, file.size, number) for number, of_directory in enumerate(files) for file in of_directory
    ]


def _united(spark: SparkSession, table: AcidTable, kept: Sequence[str], frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames; without frames: no rows, with the same columns."""
    frames = frames or [scan_files(spark, table.columns, [], _event_columns(kept), _keys(table, []))]
    return reduce(DataFrame.unionByName, frames)


def _keys(table: AcidTable, directories: Sequence[Directory]) -> list[str]:
    """The partition keys of a frame, as SQL: looked up by the directory's number where there are several."""
    keys = []
    for place, key in enumerate(table.partition_keys):
        values = [directory.values[place] for directory in directories] or [None]
        value = (
            value_by_number(values, key.sql_type)
            if len(values) > 1
            else (f"CAST({text_value(values[0])} AS {key.sql_type})")
        )
        keys.append(f"{value} AS {quoted(key.name)}")
    return keys


def _event_columns(kept: Sequence[str], number: str = DIRECTORY_NUMBER) -> list[str]:
    """The columns ``kept`` of the event, as SQL."""
    return [f"{number} AS {_DIRECTORY}" if name == _DIRECTORY else name for name in kept]


def _flat(table: AcidTable, events: DataFrame) -> DataFrame:
    """Events with the fields of ``row`` as columns, all with the names that a scan gives them."""
    names = [f"{event} AS {name}" for event, name in zip(EVENT_COLUMNS, (OPERATION, *ROW_ID, BY), strict=False)]
    columns = [f"`row`.{quoted(column.name)} AS {quoted(column.name)}" for column in table.columns]
    return events.selectExpr(*names, *columns)


def _raw_events(spark: SparkSession, table: AcidTable, directory: Directory) -> DataFrame:
    lone = spark.newSession()
    let_each_file_be_a_task(lone)
    return raw_events(lone, lone.read, row_type(table), directory.sources)


def _visible(directories: Sequence[Directory], write_ids: ValidWriteIdList, *, deletes: bool) -> list[str]:
    states = [state.state for state in directories]
    return visible(states, write_ids, deletes=deletes, operation=OPERATION, by=BY)


def _where(events: DataFrame, conditions: Sequence[str]) -> DataFrame:
    return events.where(" AND ".join(conditions)) if conditions else events


def _insert_only_rows(spark: SparkSession, table: AcidTable, directories: Sequence[Directory]) -> DataFrame:
    """The rows of an insert-only table: a scan for each format that its partitions have."""
    ways: dict[FileFormat, list[Directory]] = defaultdict(list)
    for directory in directories:
        if directory.sources.events:
            ways[directory.stored_as or table.file_format].append(directory)
    frames: list[DataFrame | None] = []
    for way, group in ways.items():
        if isinstance(way, HiveStorage):
            files = [
                NumberedFile(file.path, file.size, number)
                for number, directory in enumerate(group)
                for file in directory.sources.events
            ]
            frames.append(
                partitioned_rows(
                    spark, way, row_type(table), partition_type(table), files, [directory.values for directory in group]
                )
            )
        else:
            placed = [(directory, [file.path for file in directory.sources.events]) for directory in group]
            frames.append(_plain_rows(spark, table, way, placed))
    rows = [frame for frame in frames if frame is not None]
    return reduce(DataFrame.unionByName, rows) if rows else spark.createDataFrame([], schema_of(table))


def _plain_rows(
    spark: SparkSession, table: AcidTable, way: str, placed: Sequence[tuple[Directory, Sequence[str]]]
) -> DataFrame | None:
    """Rows of files that hold only the table's columns; None where there are no files.

    A single scan reads all partitions in their usual locations; each partition elsewhere gets its own.
    """
    usual = [
        (directory, paths) for directory, paths in placed if directory.location == _usual_location(table, directory)
    ]
    frames = []
    if paths := [path for _, of_directory in usual for path in of_directory]:
        reader = spark.read.schema(schema_of(table)).format(way)
        frames.append(reader.option("basePath", table.location).load(paths))
    for directory, own in placed:
        if own and directory.location != _usual_location(table, directory):
            frame = spark.read.schema(row_type(table)).format(way).load(list(own))
            for key, value in zip(partition_type(table).fields, directory.values, strict=True):
                frame = frame.withColumn(key.name, F.lit(value).cast(key.dataType))
            frames.append(frame)
    return reduce(DataFrame.unionByName, frames) if frames else None


def _usual_location(table: AcidTable, directory: Directory) -> str:
    return f"{table.location}/{directory.partition}" if directory.partition else table.location
