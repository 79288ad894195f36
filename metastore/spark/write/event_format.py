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
    file: str
    """Its path below the directory of all."""

    @property
    def is_of_deletes(self) -> bool:
        """Whether it holds delete events."""
        return self.file.rpartition("/")[2].startswith(DELETES_PREFIX)


def write_changes(
    spark: SparkSession, writer: DataFrameWriter, path: str, statement: int, around: Any = None
) -> list[FileReport]:
    """Let tasks write files with events below ``path``; returns what is in them. ``statement`` marks new versions.

    ``around``: what ``AcidOrcWriter.java`` says of it.
    """
    jvm_spark, jvm_writer = spark._jsparkSession, writer._jwrite  # noqa: SLF001
    reports = java_object(spark, "AcidOrcWriter").save(jvm_spark, jvm_writer, path, statement, around)
    return [FileReport(**report | {"repeated": RowKey(*report["repeated"])}) for report in from_java(reports)]
