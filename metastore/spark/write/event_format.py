"""Spark's ORC source with a writer for changes of ACID tables (``AcidOrcWriter.java``)."""

from typing import Any, NamedTuple

from pyspark.sql import DataFrameWriter, SparkSession

from metastore.acid.orc_footer import RowKey
from metastore.spark.jvm.compiled import java_object
from metastore.spark.jvm.messages import from_java

DELETES_PREFIX = "delete-part-"
"""What the names of files with delete events begin with."""


class FileReport(NamedTuple):
    """What the task that wrote a file says of it."""

    rows: int
    lowest_writer: int
    highest_writer: int
    updates: int
    """How many of its insert events are new versions of rows."""
    repeated: RowKey
    """The id that most of its events have."""
    times: int
    """How many that are."""
    unsorted: int
    """How many of its events do not belong behind the ones before them."""
    last: RowKey
    """The id of its last event."""
    file: str
    """Its path below the directory of all."""

    @property
    def is_of_deletes(self) -> bool:
        """Whether it holds delete events."""
        return self.file.rpartition("/")[2].startswith(DELETES_PREFIX)


class Tally(NamedTuple):
    """What a task says of all events that came to it for one writer, whether or not they are in a file."""

    lowest_writer: int
    highest_writer: int
    inserts: int
    deletes: int
    hidden_inserts: int
    hidden_deletes: int
    deleted: int
    """Insert events that were left out, because a delete event names their row."""
    found: int
    """Rows that delete events name and that came."""
    highest_named: int
    """The highest write id of a row that a delete event names."""


class Reports(NamedTuple):
    """What the tasks of a write say."""

    files: list[FileReport]
    tallies: list[Tally]


class Counting(NamedTuple):
    """That every event is counted, so that a compaction can be proven.

    Those with HIDDEN_INSERT or HIDDEN_DELETE are not written. ``merges``: neither is an insert event that comes behind
    a delete event of its row, nor that delete event.
    """

    merges: bool


HIDDEN_INSERT, HIDDEN_DELETE = 3, 4
"""Operations of events that are not to be seen by the one who compacts; they are in no file."""


def write_changes(
    spark: SparkSession,
    writer: DataFrameWriter,
    path: str,
    statement: int,
    around: Any = None,
    counting: Counting | None = None,
) -> Reports:
    """Let tasks write files with events below ``path``; returns what is in them. ``statement`` marks new versions.

    ``around``: what ``AcidOrcWriter.java`` says of it.
    """
    jvm_spark, jvm_writer = spark._jsparkSession, writer._jwrite  # noqa: SLF001
    merges = counting is not None and counting.merges
    format_ = java_object(spark, "AcidOrcWriter")
    reports = from_java(format_.save(jvm_spark, jvm_writer, path, statement, around, counting is not None, merges))
    return Reports(
        [
            FileReport(**one | {"repeated": RowKey(*one["repeated"]), "last": RowKey(*one["last"])})
            for one in reports
            if "file" in one
        ],
        [Tally(**one) for one in reports if "file" not in one],
    )
