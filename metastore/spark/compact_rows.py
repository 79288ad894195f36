"""The compaction of insert-only tables: rows of plain files, copied into one directory.

Rule: as for full ACID (``compact_job``): inputs are what ``acid_state`` gives to a compactor and are never touched, the
output ends in ``_v<txn>``. A directory is visible whole or not at all, so that aborted writes are left out with their
directories. As many rows come out as went in, or nothing is published.

MAJOR: base and deltas → ``base_<H>_v<T>``. MINOR: deltas → ``delta_<m>_<H>_v<T>``, statements of one write id together.
"""

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from metastore.acid.names import BaseName, DeltaName
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory
from metastore.compaction.job import CompactionJobSpec
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.spark.acid_writer import WrittenDirectory
from metastore.spark.events import routed_rows
from metastore.spark.hadoop import Hadoop
from metastore.spark.plain_writer import WRITABLE, count_rows, write_plain
from metastore.spark.precision import require_exact
from metastore.spark.tables import AcidTable


def compact_rows(spark: SparkSession, spec: CompactionJobSpec, table: AcidTable, state: AcidState,
                 files: Files) -> tuple[list[WrittenDirectory], int]:
    """Copy the rows of a location; returns what was published and how many rows were read.

    Raises: InvalidOperationError for files that cannot be copied exactly.
    """
    _require_copyable(table, spec.location, state)
    name = _output(spec, state)
    if name is None:
        return [], 0
    chosen: list[BaseDirectory | DeltaDirectory] = list(state.insert_deltas)
    if isinstance(name, BaseName) and state.base is not None:
        chosen.append(state.base)
    paths = [f"{spec.location}/{file.path}" for one in chosen for file in one.files if file.size]
    if table.file_format == "orc":
        require_exact(spark, table.row_type, [], paths)
    count = sum(count_rows(files, table.file_format, path) for path in paths)
    hadoop, staging = Hadoop(spark), f"{spec.location}/.compaction_{spec.txn_id}"
    for leftover in (staging, f"{spec.location}/{name}"):  # of an attempt that died: only this job writes under the txn
        hadoop.delete(leftover)
    here = replace(table, partition_keys=())
    published = write_plain(routed_rows(_rows(spark, table, paths), here), table.row_type, name, spec.location,
                            staging=staging, file_format=table.file_format, files=files,
                            empty=[spec.location] if isinstance(name, BaseName) else [], order=table.order)
    written = sum(directory.rows for directory in published)
    if written != count:
        for directory in published:
            hadoop.delete(directory.path)
        raise InvalidOperationError(f"{spec.location} has {count} rows, and {written} were written: "
                                    "nothing is compacted")
    return published, count


def _output(spec: CompactionJobSpec, state: AcidState) -> BaseName | DeltaName | None:
    """The directory to write; None where one directory covers the range already."""
    if spec.kind == "major":
        return BaseName(spec.highest_write_id, spec.txn_id)
    if not state.deltas:
        return None
    ids = (min(delta.name.min_write_id for delta in state.deltas), spec.highest_write_id)
    if any(delta.name[:3] == (*ids, None) for delta in state.deltas):
        return None
    return DeltaName(*ids, None, spec.txn_id)


def _rows(spark: SparkSession, table: AcidTable, paths: list[str]) -> DataFrame:
    """Read all or fail: a file that is lost or damaged must never be compacted away."""
    if not paths:
        return spark.createDataFrame([], table.row_type)
    reader = spark.read.schema(table.row_type).format(table.file_format)
    return reader.option("ignoreMissingFiles", "false").option("ignoreCorruptFiles", "false").load(paths)


def _require_copyable(table: AcidTable, location: str, state: AcidState) -> None:
    if outside := [file.path for file in state.originals if file.size]:
        raise InvalidOperationError(f"{location} holds files outside of bases and deltas, which Hive does not show in "
                                    f"insert-only tables; a base would hide them for ever: {outside[0]}")
    if table.file_format not in WRITABLE:
        formats = " or ".join(WRITABLE).upper()
        raise InvalidOperationError(f"{table.name} is not stored as {formats}: use a Worker of Hive")
    if table.file_format == "parquet" and "timestamp" in table.row_type.simpleString():
        raise InvalidOperationError(f"{table.name} has timestamps in Parquet, whose nanoseconds Spark would cut: use a "
                                    "Worker of Hive")
