"""Events of a compaction in the order of their ROW__IDs, merged from the files without a shuffle or a sort.

Rule: a task merges the files of a bucket, or in the files of all buckets a range of ROW__IDs; its output is again the
file of a bucket (``compaction.merging.rules``; ``MergedReader.java``). An unordered file ends the merge with an error,
and the caller sorts instead.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from metastore.acid.orc_footer import RowKey
from metastore.acid_tables.delete_files import SMALL
from metastore.acid_tables.table import OURS
from metastore.compaction.merging.rules import MergedFile, open_at_once
from metastore.spark.jvm.compiled import java_object
from metastore.spark.jvm.messages import to_java
from metastore.spark.read.scans import DIRECTORY_NUMBER, NOWHERE, NumberedFile, file_statuses

OF_DELETES = f"{OURS}of_deletes"
"""One more column: True for an event out of a file of delete events."""
UNSORTED = "is not in the order of its ROW__IDs"
"""The part of ``MergedReader.java``'s error that names a file that cannot be merged."""
_BATCH, _LEAST = 4096, 64
_A_TASK = 1 << 40
"""A size above which Spark gives a file its own task; the largest tasks begin first."""


class Task(NamedTuple):
    """Files to merge, in the order in which they are opened, and the range of ROW__IDs of the events to take."""

    files: Sequence[MergedFile]
    begins: RowKey | None = None
    ends: RowKey | None = None


def merged_events(
    spark: SparkSession, events: StructType, tasks: Sequence[Task], sizes: Mapping[str, int], number: str = ""
) -> DataFrame:
    """Return the events, with the column ``OF_DELETES``.

    ``sizes``: the files' sizes, by path; ``number``: the name of a column for a task's number.
    """
    described = to_java(
        [
            [
                [[file.path, sizes[file.path], file.lowest, int(file.is_of_deletes)] for file in task.files],
                task.begins or (),
                task.ends or (),
            ]
            for task in tasks
        ]
    )
    root = f"{NOWHERE}/{sha256(described.encode()).hexdigest()}"
    shown = [
        NumberedFile(f"{root}/{place}", _A_TASK + sum(sizes[file.path] for file in task.files), place)
        for place, task in enumerate(tasks)
    ]
    frame = java_object(spark, "MergedEvents").scan(
        spark._jsparkSession,  # noqa: SLF001
        root,
        file_statuses(shown),
        events.json(),
        OF_DELETES,
        described,
        max(_LEAST, _BATCH // max(open_at_once(task.files) for task in tasks)),
        SMALL,
    )
    merged = DataFrame(frame, spark)
    return merged.withColumn(number, F.expr(DIRECTORY_NUMBER)) if number else merged
