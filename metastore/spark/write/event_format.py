"""Spark's ORC source with a writer for the events of a compaction (``AcidOrcWriter.java``)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrameWriter, SparkSession

from metastore.acid.orc_footer import RowKey
from metastore.compaction.statistics.rules import Tallied
from metastore.compaction.working.rules import Tally
from metastore.spark.jvm.compiled import java_object
from metastore.spark.jvm.messages import from_java, to_java

DELETES_PREFIX = "delete-part-"
"""The prefix of file names with delete events."""


class FileReport(NamedTuple):
    """A task's report of a file that it wrote."""

    rows: int
    lowest_writer: int
    highest_writer: int
    repeated: RowKey
    """The most frequent id of the events."""
    times: int
    """The number of events with that id."""
    unsorted: int
    """The number of events that do not belong behind the event before them."""
    last: RowKey
    """The id of the last event."""
    first_row_id: int
    """The row id of the first event."""
    jumps: int
    """The number of events whose row id is not one above that of the event before them."""
    file: str
    """The file's path below the directory of all files."""

    @property
    def is_of_deletes(self) -> bool:
        """True if the file holds delete events."""
        return self.file.rpartition("/")[2].startswith(DELETES_PREFIX)


class Reports(NamedTuple):
    """The reports of all tasks of a write."""

    files: list[FileReport]
    tallies: list[Tally]
    columns: list[Tallied]


class Counting(NamedTuple):
    """The way to count every event, so that a compaction can be proven.

    Events with HIDDEN_INSERT or HIDDEN_DELETE are not written. ``merges``: a delete event, and the insert event of its
    row behind it, are not written either. ``columns``: those whose written values are tallied too. ``numbers``: of each
    writer the first row id and the bucket of its events, which get new ids; its number is in ``currentTransaction``.
    """

    merges: bool
    columns: Sequence[str] = ()
    numbers: Sequence[tuple[int, int]] = ()


HIDDEN_INSERT, HIDDEN_DELETE = 3, 4
"""Operations of events that a compaction must not see; such events are in no file."""


def write_events(
    spark: SparkSession, writer: DataFrameWriter, path: str, counting: Counting, around: Any = None
) -> Reports:
    """Let tasks write files with events below ``path``; returns their reports.

    ``around``: an ``InPlaceUploads.Write``, or None (see ``AcidOrcWriter.java``).
    """
    jvm_spark, jvm_writer = spark._jsparkSession, writer._jwrite  # noqa: SLF001
    format_, described = java_object(spark, "AcidOrcWriter"), to_java(list(counting.columns))
    numbers = to_java(list(counting.numbers))
    reports = from_java(format_.save(jvm_spark, jvm_writer, path, around, counting.merges, described, numbers))
    return Reports(
        [
            FileReport(**report | {"repeated": RowKey(*report["repeated"]), "last": RowKey(*report["last"])})
            for report in reports
            if "file" in report
        ],
        [Tally(**report) for report in reports if not {"file", "column"} & report.keys()],
        [Tallied(**report) for report in reports if "column" in report],
    )
