"""The events that a full-ACID compaction reads: merged from ordered files, or to be sorted.

Rule: every event of the inputs is read. Events that the compaction must not see are marked; the writing tasks count and
drop them, and count all others too (``compaction.working.rules``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, pairwise
from typing import NamedTuple

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import StructType

from metastore.acid.events import DELETE_EVENT, EVENT_COLUMNS, INSERT_EVENT
from metastore.acid.orc_footer import RowKey
from metastore.acid.snapshots import CompactorWriteIdList
from metastore.acid.state import AcidState
from metastore.acid_tables.sources import DataFile, Sources
from metastore.compaction.merging.rules import MergedFile, by_bucket, open_at_once
from metastore.compaction.working.rules import InputFile
from metastore.spark.compaction.merged import OF_DELETES, Task, merged_events
from metastore.spark.read.conditions import visible
from metastore.spark.read.raw_files import event_type, raw_events
from metastore.spark.write.event_format import HIDDEN_DELETE, HIDDEN_INSERT

_OPERATIONS = ((False, INSERT_EVENT, HIDDEN_INSERT), (True, DELETE_EVENT, HIDDEN_DELETE))
"""For insert and delete events: the operation of an event that the compaction sees, and of one that it does not see."""
_HAS_ROW = "row IS NOT NULL"
_ALL_COLUMNS = " AND ".join(f"{name} >= 0" for name in EVENT_COLUMNS if name != "row")


Range = tuple[RowKey | None, RowKey | None]
"""A range from one ROW__ID to before another; None: from the first, or to the last."""


def ranges(firsts: Sequence[RowKey]) -> list[Range]:
    """Return ranges of ROW__IDs: before the first one, from each one to the next, and from the last one on."""
    return list(pairwise([None, *firsts, None]))


@dataclass(frozen=True)
class CompactionInputs:
    """The inputs of a compaction. ``write_ids``: the write ids whose events the compaction sees."""

    state: AcidState
    sources: Sources
    write_ids: CompactorWriteIdList
    read: tuple[InputFile, ...]
    are_staged: bool = False
    """True if an earlier step of the job has written the inputs; else they are directories of the state."""

    @property
    def rows(self) -> int:
        """The number of events of both kinds."""
        return sum(file.rows for file in self.read)

    @property
    def lowest_write_id(self) -> int:
        """The lowest write id in the names of a minor compaction's outputs."""
        return min((delta.name.min_write_id for delta in self.state.deltas), default=0)


class Events(NamedTuple):
    """The events of an output.

    ``is_routed``, ``is_ordered``: as for ``staged_acid``; ``numbers``: as for ``Counting``.
    """

    rows: DataFrame
    is_routed: bool = False
    is_ordered: bool = False
    numbers: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class InputReading:
    """The way to read the inputs. ``most_open``: the most files of a bucket that a merge may hold open; 0: no merge."""

    spark: SparkSession
    row_type: StructType
    inputs: CompactionInputs
    most_open: int

    def live(self) -> Events:
        """Return the rows, and the delete events by which the writing tasks leave rows out."""
        own = "originalTransaction"
        if (merged := self._merged(self.inputs.read)) is not None:
            by = F.when(F.col(OF_DELETES), F.col("currentTransaction")).otherwise(F.col(own))
            return Events(merged.withColumn("currentTransaction", by), is_ordered=True)
        rows = self.inserts().withColumn("currentTransaction", F.col(own))
        return Events(rows.union(self.deletes()) if self.inputs.sources.deletes else rows)

    def of_kind(self, *, deletes: bool) -> Events:
        """Return the insert events, or the delete events."""
        merged = self._merged([file for file in self.inputs.read if file.is_of_deletes == deletes])
        if merged is not None:
            return Events(merged, is_ordered=True)
        return Events(self.deletes() if deletes else self.inserts())

    def inserts(self) -> DataFrame:
        """Return the insert events, in any order."""
        sources, parts = self.inputs.sources, []
        if sources.plain:
            parts.append(raw_events(self.spark, self._reader(), self.row_type, sources))
        if sources.events or not parts:
            parts.append(self._events(sources.events, deletes=False))
        return reduce(DataFrame.union, parts)

    def deletes(self) -> DataFrame:
        """Return the delete events, in any order."""
        return self._events(self.inputs.sources.deletes, deletes=True)

    def unmarked(self) -> DataFrame:
        """Return all events without marks: none is hidden, none deletes, and Spark reads only the columns asked for."""
        sources, parts = self.inputs.sources, []
        if sources.plain:
            parts.append(raw_events(self.spark, self._reader(), self.row_type, sources))
        if sources.events:
            events = self._reader().schema(event_type(self.row_type)).orc([file.path for file in sources.events])
            parts.append(events.where(_ALL_COLUMNS))
        return reduce(DataFrame.union, parts)

    def buckets(self, read: Sequence[InputFile]) -> list[list[MergedFile]]:
        """Return the files to merge, by bucket; none if their events have to be sorted."""
        buckets = by_bucket(read) if self.most_open and not self.inputs.sources.plain else []
        return buckets if max(map(open_at_once, buckets), default=0) <= self.most_open else []

    def has_ranges(self) -> bool:
        """Return True if the files of all buckets may be merged at once."""
        files = list(chain.from_iterable(self.buckets(self.inputs.read)))
        return bool(files) and open_at_once(files) <= self.most_open

    def are_all_inserts_seen(self) -> bool:
        """Return True if no insert event is of an aborted write id, so that only the rows have to be read."""
        return not self.inputs.sources.plain and self._counts(deletes=False) == [_HAS_ROW]

    def _merged(self, read: Sequence[InputFile]) -> DataFrame | None:
        """Return the events of these files in file order; None if they have to be sorted."""
        buckets = self.buckets(read)
        return self._scanned([Task(bucket) for bucket in buckets]) if buckets else None

    def in_ranges(self, ranges: Sequence[Range], number: str, row_type: StructType | None = None) -> DataFrame:
        """Return the events of all buckets by ROW__ID, one task per range; ``number``: a column for the range's number.

        ``row_type``: what to read of a row, if not all of it.
        """
        files = sorted(chain.from_iterable(self.buckets(self.inputs.read)), key=lambda file: file.lowest)
        return self._scanned([Task(files, *bounds) for bounds in ranges], number, row_type)

    def _scanned(self, tasks: Sequence[Task], number: str = "", row_type: StructType | None = None) -> DataFrame:
        sizes = {file.path: file.size for file in (*self.inputs.sources.events, *self.inputs.sources.deletes)}
        kind = event_type(self.row_type if row_type is None else row_type)
        events = merged_events(self.spark, kind, tasks, sizes, number)
        insert, delete = (
            F.when(F.expr(" AND ".join(self._counts(deletes=deletes))), F.lit(seen)).otherwise(F.lit(unseen))
            for deletes, seen, unseen in _OPERATIONS
        )
        return events.withColumn("operation", F.when(F.col(OF_DELETES), delete).otherwise(insert))

    def _events(self, files: Sequence[DataFile], *, deletes: bool) -> DataFrame:
        """Return the events of files.

        The filter names all columns before ``row``, since Spark misreads pruned ACID files.
        """
        schema = event_type(self.row_type)
        if not files:
            return self.spark.createDataFrame([], schema)
        _, seen, unseen = _OPERATIONS[deletes]
        is_seen = F.expr(" AND ".join(self._counts(deletes=deletes)))
        events = self._reader().schema(schema).orc([file.path for file in files])
        return events.where(_ALL_COLUMNS).withColumns(
            {"operation": F.when(is_seen, F.lit(seen)).otherwise(F.lit(unseen)), "row": F.when(is_seen, F.col("row"))}
        )

    def _counts(self, *, deletes: bool) -> list[str]:
        """Return the conditions, as SQL, for an event that the compaction sees."""
        conditions = visible(
            [self.inputs.state], self.inputs.write_ids, deletes=deletes, operation="operation", by="currentTransaction"
        )
        return [*conditions, "row IS NULL" if deletes else _HAS_ROW]

    def _reader(self) -> DataFrameReader:
        """Return a reader that fails on a lost or damaged file: such a file must never be compacted away."""
        return self.spark.read.option("ignoreMissingFiles", "false").option("ignoreCorruptFiles", "false")
