"""Changes of an ACID table as a DataFrame: the row versions that statements inserted and deleted.

Rules (ACID-18, ACID-23, ACID-30, ACID-31). A change counts when its write id is visible. ROW__IDs are unique only in
their ACID directory, so look-ups use the directory too. Rows are not read for facts that directory names show: write
ids are read only where a delta has both visible and invisible ones, and operations only where Hive before version 3 may
have written.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from metastore.acid.events import EVENT_COLUMNS, ROW_ID_COLUMN
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid_tables.listing import Directory
from metastore.acid_tables.sources import DataFile
from metastore.acid_tables.table import OURS, AcidTable, quoted
from metastore.spark.read.conditions import visible
from metastore.spark.read.cut_files import cut_events
from metastore.spark.read.raw_files import event_type, let_each_file_be_a_task, raw_events
from metastore.spark.read.scans import DIRECTORY_NUMBER, NumberedFile, scan_files, text_value, value_by_number
from metastore.spark.tables.row_id import BY, OPERATION, ROW_ID
from metastore.spark.tables.spark_types import row_type

_DIRECTORY = f"{OURS}directory"
OPERATION_COLUMN, WRITE_ID_COLUMN = "_operation", "_write_id"


def read_changes(
    spark: SparkSession, table: AcidTable, directories: Sequence[Directory], write_ids: ValidWriteIdList, after: int
) -> DataFrame:
    """Return each row version that write ids above ``after`` inserted or deleted.

    Columns: ``_operation``, ``_write_id`` (of the change), the table's, ``ROW__ID``. An updated row appears twice: its
    old version as deleted, and its new version as inserted. ``directories`` must have no base above ``after``.
    """
    place = [*ROW_ID, _DIRECTORY]
    kept = (*place, BY)
    inserts = _united(spark, table, kept, _inserts(spark, table, directories, write_ids, kept))
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


def row_id_column(write_id: str = ROW_ID[0], bucket: str = ROW_ID[1], row_id: str = ROW_ID[2]) -> Column:
    """Return Hive's ``ROW__ID``, a struct, made of three columns."""
    parts = F.struct(F.col(write_id).alias("writeid"), F.col(bucket).alias("bucketid"), F.col(row_id).alias("rowid"))
    return F.when(F.col(bucket).isNotNull(), parts).alias(ROW_ID_COLUMN)


def _inserts(
    spark: SparkSession,
    table: AcidTable,
    directories: Sequence[Directory],
    write_ids: ValidWriteIdList,
    kept: Sequence[str],
) -> list[DataFrame]:
    """Return the row versions of all kinds of files: the event's columns in ``kept``, then the table's."""
    files = _numbered_files([directory.sources.events for directory in directories])
    conditions = _visible(directories, write_ids, deletes=False)
    frames = []
    for number, directory in enumerate(directories):
        others = []
        if directory.sources.cut:
            half = _flat(table, cut_events(spark, event_type(row_type(table)), directory.sources.cut))
            others.append(_where(half, _visible([directory], write_ids, deletes=False)))
        if directory.sources.without_events:
            others.append(_flat(table, _raw_events(spark, table, directory)))
        frames += [
            other.selectExpr(
                *_event_columns(kept, str(number)),
                *(quoted(column.name) for column in table.columns),
                *_keys(table, [directory]),
            )
            for other in others
        ]
    if files or frames:  # a union runs in the session of its first frame, and plain files have a session of their own
        keys = _keys(table, directories)
        frames.insert(0, scan_files(spark, table.columns, files, _event_columns(kept), keys, conditions))
    return frames


def _deletes(
    spark: SparkSession, directories: Sequence[Directory], write_ids: ValidWriteIdList, kept: Sequence[str]
) -> DataFrame:
    """Return the visible delete events."""
    files = _numbered_files([directory.sources.deletes for directory in directories])
    return scan_files(spark, (), files, _event_columns(kept), where=_visible(directories, write_ids, deletes=True))


def _numbered_files(files: Sequence[Sequence[DataFile]]) -> list[NumberedFile]:
    """Return the files of all directories, each with the number of its directory."""
    return [
        NumberedFile(file.path, file.size, number) for number, of_directory in enumerate(files) for file in of_directory
    ]


def _united(spark: SparkSession, table: AcidTable, kept: Sequence[str], frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames; without frames: no rows, with the same columns."""
    frames = frames or [scan_files(spark, table.columns, [], _event_columns(kept), _keys(table, []))]
    return reduce(DataFrame.unionByName, frames)


def _keys(table: AcidTable, directories: Sequence[Directory]) -> list[str]:
    """Return the partition keys of a frame, as SQL: looked up by the directory's number if there are several."""
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
    """Return the event's columns ``kept``, as SQL."""
    return [f"{number} AS {_DIRECTORY}" if name == _DIRECTORY else name for name in kept]


def _flat(table: AcidTable, events: DataFrame) -> DataFrame:
    """Return events with the fields of ``row`` as columns, under the names that a scan gives them."""
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
