"""The rows of a compaction by their numbers, as the writer will count them: deleted and hidden rows have no number.

Rule: a row's number depends on how many rows before it are deleted. So ranges of ROW__IDs are merged by ids alone,
together with delete events, and the writer's own code leaves rows out (``AcidOrcWriter.Tally``). The driver gets the
count of each range. If the writer counts differently, the proof fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from pyspark.sql.types import StructType

from metastore.acid.events import ID_COLUMNS
from metastore.acid.orc_footer import RowKey
from metastore.acid_tables.table import OURS
from metastore.compaction.merging.rules import StripedFile, parts
from metastore.errors import MetaError
from metastore.spark.compaction.events import InputReading, Range, ranges
from metastore.spark.jvm.compiled import java_object
from metastore.spark.jvm.messages import from_java, to_java

_RANGE = f"{OURS}range"
_NO_COLUMN = StructType()


@dataclass(frozen=True)
class LiveRows:
    """Ranges of ROW__IDs, with the number of rows in each."""

    reading: InputReading
    ranges: Sequence[Range]
    counts: Sequence[int]

    @classmethod
    def counted(cls, reading: InputReading, striped: Sequence[StripedFile]) -> "LiveRows":
        """Count the rows; ``striped``: the files with rows, whose footers show where a task can begin."""
        found = ranges(parts(striped, 2 * reading.spark.sparkContext.defaultParallelism))
        counted = _counted(reading, found, [() for _ in found])
        return cls(reading, found, [counted.get(place, {"rows": 0})["rows"] for place in range(len(found))])

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return sum(self.counts)

    def at(self, numbers: Sequence[int]) -> list[RowKey]:
        """Return the ROW__IDs of the rows with these numbers, ascending from 0; only ranges with one are read."""
        befores = [0, *accumulate(self.counts)]
        wanted = [
            (bounds, [number - before for number in numbers if before <= number < end])
            for bounds, (before, end) in zip(self.ranges, pairwise(befores), strict=True)
        ]
        chosen = [(bounds, places) for bounds, places in wanted if places]
        if not chosen:
            return []
        counted = _counted(self.reading, [bounds for bounds, _ in chosen], [places for _, places in chosen])
        found = [RowKey(*key) for _, report in sorted(counted.items()) for key in report["keys"]]
        if len(found) != len(numbers):
            raise MetaError(f"Of {len(numbers)} rows by their numbers, {len(found)} were found: the files have changed")
        return found


def _counted(
    reading: InputReading, found: Sequence[Range], wanted: Sequence[Sequence[int]]
) -> dict[int, dict[str, Any]]:
    """Return the report of each range with events, by its number (``LiveRows.java``)."""
    events = reading.in_ranges(found, _RANGE, _NO_COLUMN).select(_RANGE, "operation", *ID_COLUMNS)
    rows = events._jdf.queryExecution().toRdd()  # noqa: SLF001 - PySpark shows no other way
    reports = from_java(java_object(reading.spark, "LiveRows").counted(rows, to_java([list(one) for one in wanted])))
    return {report["range"]: report for report in reports}
