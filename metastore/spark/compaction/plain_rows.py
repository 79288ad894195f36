"""The compaction of insert-only tables: rows of plain files, copied into one directory.

Rule: as for full ACID (``job``), inputs are those that ``acid_state`` gives to a compactor and are never changed; the
output ends in ``_v<txn>``. A directory is visible as a whole or not at all, so aborted writes are left out with their
directories. Nothing is published unless the outputs have as many rows as the inputs.

MAJOR: base and deltas → ``base_<H>_v<T>``. MINOR: deltas → ``delta_<m>_<H>_v<T>``, statements of one write id together.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from metastore.acid.names import NO_BUCKET, BaseName, DeltaName, compaction_staging, parse_file
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory
from metastore.acid_tables.footers import orc_tails
from metastore.acid_tables.serde_storage import AVRO, HiveStorage
from metastore.acid_tables.sources import DataFile
from metastore.acid_tables.table import AcidTable, FileFormat
from metastore.compaction.queue.rules.properties import orc_settings
from metastore.compaction.statistics.rules import Whole
from metastore.compaction.working.job_specification import CompactionJobSpec
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.spark.compaction.observed import Observed
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.read.precision import require_exact
from metastore.spark.read.scans import DIRECTORY_NUMBER, NumberedFile
from metastore.spark.read.serde_files import RAW, scan_serde
from metastore.spark.tables.spark_types import row_type
from metastore.spark.write.acid_writer import WRITER_COLUMN, WrittenDirectory
from metastore.spark.write.events import routed_rows
from metastore.spark.write.plain_writer import write_plain


def compact_rows(
    spark: SparkSession,
    files: Files,
    spec: CompactionJobSpec,
    table: AcidTable,
    state: AcidState,
    described: Mapping[str, str],
    may_publish: Callable[[], None],
) -> tuple[list[WrittenDirectory], int, dict[str, Whole]]:
    """Copy the rows of a location; return the published directories, the number of rows read, and the columns' tallies.

    ``described``: the columns to tally on the way, with their types; lines that are copied unread have no tallies.
    ``may_publish``: as for ``publish_all``.
    Raises: InvalidOperationError for files that cannot be copied exactly.
    """
    _require_copyable(table, spec.location, state)
    name = _output(spec, state)
    if name is None:
        return [], 0, {}
    chosen: list[BaseDirectory | DeltaDirectory] = list(state.insert_deltas)
    if isinstance(name, BaseName) and state.base is not None:
        chosen.append(state.base)
    inputs = [
        DataFile(f"{spec.location}/{file.path}", file.size)
        for directory in chosen
        for file in directory.files
        if file.size
    ]
    here = replace(table, partition_keys=())
    copies = (
        _stored_by_hive(spark, here, table.file_format, inputs)
        if isinstance(table.file_format, HiveStorage)
        else _stored_by_spark(spark, files, here, table.file_format, [file.path for file in inputs])
    )
    hadoop, staging = Hadoop(spark), f"{spec.location}/{compaction_staging(spec.txn_id)}"
    for leftover in (staging, f"{spec.location}/{name}"):  # left by a failed attempt: only this job writes here
        hadoop.delete(leftover)
    seen = Observed.of(copies.rows, described if copies.columns is not RAW and copies.read else {})
    published = write_plain(
        seen.rows,
        copies.columns,
        name,
        spec.location,
        staging=staging,
        file_format=copies.file_format,
        empty=isinstance(name, BaseName),
        order=table.order,
        copied=copies.read,
        orc=orc_settings(spec.properties),
        may_publish=may_publish,
    )
    return published, copies.read, seen.columns()


class _Copies(NamedTuple):
    """Rows to write: ``rows`` has ``columns`` and a column with the bucket; ``read``: the required number of rows."""

    rows: DataFrame
    columns: StructType
    file_format: FileFormat
    read: int


def _stored_by_spark(
    spark: SparkSession, files: Files, table: AcidTable, file_format: str, paths: list[str]
) -> _Copies:
    if file_format == "orc":
        require_exact(spark, files, row_type(table), [], paths)
        count = sum(tail.rows for tail in orc_tails(files, paths))
    else:
        hadoop = Hadoop(spark)
        count = sum(hadoop.parquet_rows(path) for path in paths)
    return _Copies(routed_rows(_rows(spark, table, file_format, paths), table), row_type(table), file_format, count)


def _stored_by_hive(spark: SparkSession, table: AcidTable, storage: HiveStorage, inputs: list[DataFile]) -> _Copies:
    """Return the rows of files of Hive's classes: lines are copied unread, other records go through the SerDe."""
    storage.require_writable(table.name)
    if not storage.is_text or not inputs:
        _require_whole_timestamps(table, storage)
        rows = (
            scan_serde(spark, storage, row_type(table), [NumberedFile(*file, 0) for file in inputs])
            if inputs
            else (spark.createDataFrame([], row_type(table)))
        )
        return _Copies(routed_rows(rows, table), row_type(table), storage, rows.count())
    if table.order:
        raise InvalidOperationError(
            f"{table.name} is SORTED BY columns, which copied lines would not be: use a Worker of Hive"
        )
    lines = scan_serde(spark, storage.raw(), RAW, [NumberedFile(*file, _bucket(table, file.path)) for file in inputs])
    count = lines.count()
    if table.bucket_count:
        lines = lines.selectExpr("*", f"{DIRECTORY_NUMBER} AS {WRITER_COLUMN}")
    return _Copies(lines, RAW, storage.raw(), count)


def _bucket(table: AcidTable, path: str) -> int:
    """Return the bucket in a file's name; 0 in a table without buckets."""
    if not table.bucket_count:
        return 0
    bucket = parse_file(path.rpartition("/")[2].partition(".")[0]).bucket  # a name such as 000000_0.gz
    if bucket == NO_BUCKET:
        raise InvalidOperationError(f"{path} has no bucket number in its name: rename it like 000000_0")
    return bucket


def _require_whole_timestamps(table: AcidTable, storage: HiveStorage) -> None:
    if storage.serde != AVRO and "timestamp" in row_type(table).simpleString():
        raise InvalidOperationError(
            f"{table.name} has timestamps in files of {storage.serde}, whose nanoseconds Spark "
            "would cut: use a Worker of Hive"
        )


def _output(spec: CompactionJobSpec, state: AcidState) -> BaseName | DeltaName | None:
    """Return the directory to write; None if a delta covers the range already."""
    if spec.kind == "major":
        return BaseName(spec.highest_write_id, spec.txn_id)
    if not state.deltas:
        return None
    ids = (min(delta.name.min_write_id for delta in state.deltas), spec.highest_write_id)
    if any(delta.name[:3] == (*ids, None) for delta in state.deltas):
        return None
    return DeltaName(*ids, None, spec.txn_id)


def _rows(spark: SparkSession, table: AcidTable, file_format: str, paths: list[str]) -> DataFrame:
    """Return the files' rows. Reading fails on a lost or damaged file, which must never be compacted away."""
    if not paths:
        return spark.createDataFrame([], row_type(table))
    reader = spark.read.schema(row_type(table)).format(file_format)
    return reader.option("ignoreMissingFiles", "false").option("ignoreCorruptFiles", "false").load(paths)


def _require_copyable(table: AcidTable, location: str, state: AcidState) -> None:
    if outside := [file.path for file in state.originals if file.size]:
        raise InvalidOperationError(
            f"{location} holds files outside of bases and deltas, which Hive does not show in "
            f"insert-only tables; a base would hide them for ever: {outside[0]}"
        )
    if not table.file_format:
        raise InvalidOperationError(f"The metastore does not tell how {location} is stored: use a Worker of Hive")
    if table.file_format == "parquet" and "timestamp" in row_type(table).simpleString():
        raise InvalidOperationError(
            f"{table.name} has timestamps in Parquet, whose nanoseconds Spark would cut: use a Worker of Hive"
        )
