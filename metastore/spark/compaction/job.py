"""The Spark job that compacts an ACID directory; ``process`` runs it where a Worker has asked for it.

Rule: the job reads what ``acid_state`` gives to a compactor, never touches an input, and publishes directories that end
in ``_v<txn>``, invisible until the Worker commits that transaction. When all of them are complete it proves that they
hold the inputs' rows (``compaction.working.rules``), and asks whether the compaction is still its own, right before
the first gets its name (ADR 0038). ROW__IDs stay as they are, since other
transactions may be deleting by them at this moment; but for a rebalance, which keeps such transactions out. Killed at
any point it leaves a hidden staging directory or an invisible output.

MAJOR: rows without a delete event → ``base_<H>_v<T>``, even when no row is left (readers must stop looking at deltas).
MINOR: insert and delete events side by side → ``delta_<m>_<H>_v<T>`` and ``delete_delta_<m>_<H>_v<T>``, none applied.
REBALANCE: as MAJOR, and then the rows with new ids, evenly in the buckets asked for → ``base_<H>_v<T>``.
Source: ACID-29, COMP-14, COMP-16.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import StructField, StructType

from metastore.acid.events import DELETE_EVENT, EVENT_COLUMNS, INSERT_EVENT
from metastore.acid.names import BaseName, DeltaName, compaction_staging
from metastore.acid.snapshots import CompactorWriteIdList, ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory, acid_state
from metastore.acid_tables.sources import DataFile, Sources, acid_sources
from metastore.acid_tables.table import AcidTable, HiveColumn, TableKind
from metastore.compaction.queue.rules.ordering import SortColumn, sort_columns
from metastore.compaction.queue.rules.properties import orc_settings
from metastore.compaction.statistics.rules import MOST_SKETCHES, Tallied, described, statistics, whole
from metastore.compaction.working.job import CompactionJobResult, CompactionJobSpec
from metastore.compaction.working.rules import InputFile, dealt
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.spark.compaction.plain_rows import compact_rows
from metastore.spark.compaction.proof import Proof, input_files
from metastore.spark.compaction.rebalance import deal, require_sortable
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.read.conditions import visible
from metastore.spark.read.precision import require_exact
from metastore.spark.read.raw_files import event_type, let_each_file_be_a_task, raw_events
from metastore.spark.tables.spark_types import type_of
from metastore.spark.write.acid_writer import (
    WRITER_COLUMN,
    StagedWrite,
    WrittenDirectory,
    publish_all,
    staged_acid,
    writer_id,
)
from metastore.spark.write.event_format import HIDDEN_DELETE, HIDDEN_INSERT, Counting

_STEP_BEFORE = 9
"""The number of the staging directory of what a rebalance makes before its output."""
_PASSES = {"major": 2, "minor": 2, "rebalance": 5}
"""How often Spark's stages take in a row: where it is read, and behind each shuffle; a rebalance has several passes."""
_ALL_COLUMNS = " AND ".join(f"{name} >= 0" for name in EVENT_COLUMNS if name != "row")


@dataclass(frozen=True)
class _Inputs:
    """The inputs of a compaction. ``write_ids``: whose events are visible to it."""

    state: AcidState
    sources: Sources
    write_ids: CompactorWriteIdList
    read: tuple[InputFile, ...]
    are_staged: bool = False
    """Whether they are what an earlier step of the job has written, and not directories of the state."""

    @property
    def rows(self) -> int:
        """Events of either kind."""
        return sum(file.rows for file in self.read)

    @property
    def lowest_write_id(self) -> int:
        """The lowest write id in the names of a minor compaction's outputs."""
        return min((delta.name.min_write_id for delta in self.state.deltas), default=0)


class _Compacted(NamedTuple):
    """The published directories, and the number of deleted rows that they leave out."""

    directories: list[WrittenDirectory]
    deleted: int = 0
    columns: Sequence[Tallied] = ()


def run(
    spark: SparkSession,
    spec: CompactionJobSpec,
    columns: Sequence[HiveColumn],
    files: Files | None = None,
    may_publish: Callable[[], None] = lambda: None,
    expects: Callable[[int], None] = lambda _: None,
) -> CompactionJobResult:
    """Compact one ACID directory of a full ACID table with these columns; returns what was published.

    Runs in a session of its own (``spark.newSession()``), so that the caller's settings neither help nor hurt. May be
    repeated under the same transaction: it replaces an earlier attempt's output. ``may_publish`` is called when all is
    complete and nothing has its name; it raises if the compaction is no longer this job's. ``expects`` is told how many
    rows Spark's stages will take in.

    Raises: InvalidOperationError for a kind, or for files, that this job cannot compact; UnprovenError when the outputs
    do not hold the inputs' rows: nothing is published, and the outputs are kept under a hidden name.
    """
    files = files or Files()
    row_type = StructType([StructField(column.name, type_of(column)) for column in columns])
    job = _Job(_own_session(spark), spec, row_type, files, may_publish, _described(spec, columns))
    write_ids, state = _state(spec, files)
    inputs = job.inputs(state, write_ids)
    expects(_PASSES[spec.kind] * inputs.rows)
    if inputs.sources.plain:
        let_each_file_be_a_task(job.spark)
    compacted = {"major": job.major, "minor": job.minor, "rebalance": job.rebalance}[spec.kind](inputs)
    result = _result(spark, compacted.directories, inputs.rows, compacted.deleted)
    return replace(result, statistics=statistics(job.described, whole(compacted.columns), result.rows_out))


def run_for(
    spark: SparkSession,
    spec: CompactionJobSpec,
    table: AcidTable,
    files: Files | None = None,
    may_publish: Callable[[], None] = lambda: None,
    expects: Callable[[int], None] = lambda _: None,
) -> CompactionJobResult:
    """Compact one directory of a table, full ACID or insert-only. Parameters, result and errors: as ``run``."""
    if table.kind is not TableKind.INSERT_ONLY:
        table.require(TableKind.FULL_ACID, action="Compaction")
        return run(spark, spec, table.columns, files, may_publish, expects)
    if spec.kind == "rebalance":
        raise InvalidOperationError(
            f"{table.name} is insert-only: its rows have no ids; request a major compaction instead of a rebalance"
        )
    files = files or Files()
    write_ids, state = _state(spec, files)
    _require_safe_mark(spec, state, write_ids)
    types = _described(spec, table.columns)
    published, rows, seen = compact_rows(_own_session(spark), spec, table, state, types, may_publish)
    result = _result(spark, published, rows)
    return replace(result, statistics=statistics(types, seen, result.rows_out))


def _state(spec: CompactionJobSpec, files: Files) -> tuple[CompactorWriteIdList, AcidState]:
    """The write ids and the state of the location that the compaction sees."""
    if spec.kind not in ("major", "minor", "rebalance"):
        raise InvalidOperationError(f"Compaction kind {spec.kind!r} is not supported: major, minor and rebalance are")
    if spec.txn_id <= 0:
        raise InvalidOperationError("A compaction needs the id of its transaction, which hides its output")
    write_ids = ValidWriteIdList.parse(spec.write_ids).for_compactor()
    return write_ids, acid_state(
        files.listing(spec.location),
        write_ids,
        _without(ValidTxnList.parse(spec.txns) if spec.txns else ValidTxnList.everything(), spec.txn_id),
        lambda path: files.read(f"{spec.location}/{path}"),
    )


def _described(spec: CompactionJobSpec, columns: Sequence[HiveColumn]) -> dict[str, str]:
    """The columns that get statistics, with their types: only a major compaction writes all rows."""
    wanted = spec.statistics if spec.kind == "major" else ()
    return {column.name: column.type for column in columns if column.name in wanted and described(column.type)}


def _result(
    spark: SparkSession, published: Sequence[WrittenDirectory], rows_in: int, deleted: int = 0
) -> CompactionJobResult:
    return CompactionJobResult(
        directories=tuple(directory.path.rpartition("/")[2] for directory in published),
        rows_in=rows_in,
        rows_out=sum(directory.rows for directory in published),
        rows_deleted=deleted,
        application_id=str(spark.sparkContext.applicationId),
    )


@dataclass(frozen=True)
class _Job:
    spark: SparkSession
    spec: CompactionJobSpec
    row_type: StructType
    files: Files
    may_publish: Callable[[], None]
    described: Mapping[str, str]
    """The columns that get statistics, with their types."""

    def inputs(self, state: AcidState, write_ids: CompactorWriteIdList) -> _Inputs:
        """Sort the files of a state by how they are read. A minor compaction leaves base and original files alone."""
        location = self.spec.location
        _require_safe_mark(self.spec, state, write_ids)
        chosen = replace(state, base=None, originals=()) if self.spec.kind == "minor" else state
        if chosen.base is not None:
            _require_closed(chosen.base, location)
        for delta in chosen.insert_deltas:
            _require_closed(delta, location)
        sources = acid_sources(self.files, location, chosen)
        if sources.unnamed:
            raise InvalidOperationError(
                f"{sources.unnamed[0]} has no bucket number in its name, so its rows can get no ids: rename it like "
                "000000_0"
            )
        require_exact(self.spark, self.row_type, [file.path for file in sources.events], sources.without_events)
        return _Inputs(chosen, sources, write_ids, input_files(Hadoop(self.spark), sources))

    def major(self, inputs: _Inputs) -> _Compacted:
        """Write every live row once. The writing tasks sort delete events before their rows, and leave both out."""
        return self._write(inputs, {self._base: self._live(inputs)}, empty=[self.spec.location])

    def rebalance(self, inputs: _Inputs) -> _Compacted:
        """Write every live row once, with a new id. Deleted and invisible rows are left out by a major one before."""
        order = sort_columns(self.spec.order_by)
        require_sortable(order, self.row_type, f"{self.spec.database}.{self.spec.table}")
        wanted = self.spec.number_of_buckets or len({file.bucket for file in inputs.read if not file.is_of_deletes})
        proof = self._proof(inputs)
        if not inputs.sources.deletes and not proof.may_hide:
            return self._dealt(inputs, order, wanted)
        with self._staged(inputs, {self._base: self._live(inputs)}, "major", in_place=False) as merged:
            rows = [f"{directory.out}/{file.path}" for directory in merged.directories for file in directory.files]
            sources = Sources(events=tuple(DataFile(path, 0) for path in rows))
            base = replace(inputs, sources=sources, read=input_files(Hadoop(self.spark), sources), are_staged=True)
            deleted = sum(tally.deleted for tally in merged.tallies)
            return self._dealt(base, order, wanted)._replace(deleted=deleted)

    def _dealt(self, inputs: _Inputs, order: Sequence[SortColumn], buckets: int) -> _Compacted:
        shares, rows = dealt(inputs.rows, buckets), self._inserts(inputs)
        if len(shares) > 1:
            rows = deal(rows, self._unmarked(inputs), self.row_type, order, shares)
        return self._write(inputs, {self._base: rows}, empty=[self.spec.location], shares=shares)

    def minor(self, inputs: _Inputs) -> _Compacted:
        """Write the visible events of the deltas: a directory for each kind that has events."""
        state, sources = inputs.state, inputs.sources
        if not state.deltas:
            return _Compacted([])
        ids = (inputs.lowest_write_id, self.spec.highest_write_id)
        if any(delta.name[:3] == (*ids, None) for delta in state.deltas):
            return _Compacted([])  # a delta covers the range already: readers would read both
        outputs: dict[BaseName | DeltaName, DataFrame] = {}
        if sources.deletes:
            outputs[DeltaName(*ids, None, self.spec.txn_id, is_delete=True)] = self._deletes(inputs)
        if sources.events or sources.plain:
            outputs[DeltaName(*ids, None, self.spec.txn_id)] = self._inserts(inputs)
        return self._write(inputs, outputs)

    @property
    def _base(self) -> BaseName:
        return BaseName(self.spec.highest_write_id, self.spec.txn_id)

    def _live(self, inputs: _Inputs) -> DataFrame:
        """Rows, and the delete events behind which the tasks that write leave rows out."""
        rows = self._inserts(inputs).withColumn("currentTransaction", F.col("originalTransaction"))
        return rows.union(self._deletes(inputs)) if inputs.sources.deletes else rows

    def _write(
        self,
        inputs: _Inputs,
        outputs: Mapping[BaseName | DeltaName, DataFrame],
        empty: Sequence[str] = (),
        shares: Sequence[int] = (),
    ) -> _Compacted:
        """Complete all directories, prove them, then publish them together."""
        with self._staged(inputs, outputs, self.spec.kind, empty, shares) as staged:
            published = publish_all(Hadoop(self.spark), staged.directories, self.may_publish)
            self._proof(inputs).require_uploaded(staged.directories)
            return _Compacted(published, sum(tally.deleted for tally in staged.tallies), staged.columns)

    @contextmanager
    def _staged(
        self,
        inputs: _Inputs,
        outputs: Mapping[BaseName | DeltaName, DataFrame],
        kind: str,
        empty: Sequence[str] = (),
        shares: Sequence[int] = (),
        *,
        in_place: bool = True,
    ) -> Iterator[StagedWrite]:
        """Complete directories, proven, without their names yet; those of a step between are not ``in_place``."""
        hadoop, location = Hadoop(self.spark), self.spec.location
        orc = orc_settings(self.spec.properties)
        compression = orc.pop("orc.compress", "zlib").lower()
        counting = Counting(merges=kind == "major", columns=self._tallied(inputs))
        staged = StagedWrite([], [], [])
        with ExitStack() as kept:
            for number, (name, events) in enumerate(outputs.items()):
                staging = f"{location}/{compaction_staging(self.spec.txn_id, number if in_place else _STEP_BEFORE)}"
                for leftover in (staging, f"{location}/{name}"):  # of an attempt that died, under the same transaction
                    hadoop.delete(leftover)
                written = kept.enter_context(
                    staged_acid(
                        events.withColumn(WRITER_COLUMN, writer_id(F.col("bucket"))),
                        name,
                        location,
                        staging=staging,
                        empty=empty,
                        is_routed=len(shares) > 1,
                        compression=compression,
                        orc=orc,
                        counting=counting,
                        in_place=in_place,
                    )
                )
                staged.directories.extend(written.directories)
                staged.tallies.extend(written.tallies)
                staged.columns.extend(written.columns)
            self._proof(inputs).require_staged(kind, inputs.read, staged.directories, staged.tallies, shares)
            yield staged

    def _tallied(self, inputs: _Inputs) -> tuple[str, ...]:
        """The columns of which the tasks that write tally the values."""
        types = self.described
        return tuple(types) if len(types) * len({file.bucket for file in inputs.read}) <= MOST_SKETCHES else ()

    def _proof(self, inputs: _Inputs) -> Proof:
        there = [file.path for file in inputs.read] if inputs.are_staged else None
        return Proof(
            Hadoop(self.spark), self.files, self.spec, inputs.state, inputs.write_ids, inputs.lowest_write_id, there
        )

    def _inserts(self, inputs: _Inputs) -> DataFrame:
        sources, parts = inputs.sources, []
        if sources.plain:
            parts.append(raw_events(self.spark, self._reader(), self.row_type, sources))
        if sources.events or not parts:
            parts.append(self._events(inputs, sources.events, deletes=False))
        return reduce(DataFrame.union, parts)

    def _deletes(self, inputs: _Inputs) -> DataFrame:
        return self._events(inputs, inputs.sources.deletes, deletes=True)

    def _events(self, inputs: _Inputs, files: Sequence[DataFile], *, deletes: bool) -> DataFrame:
        """All events. Events that the compaction must not see are marked: the writing tasks count and drop them.

        The filter names all columns before ``row`` on purpose: Spark misreads pruned ACID files.
        """
        schema = event_type(self.row_type)
        if not files:
            return self.spark.createDataFrame([], schema)
        counts = visible(
            [inputs.state], inputs.write_ids, deletes=deletes, operation="operation", by="currentTransaction"
        )
        counts.append("row IS NULL" if deletes else "row IS NOT NULL")
        seen, unseen = (DELETE_EVENT, HIDDEN_DELETE) if deletes else (INSERT_EVENT, HIDDEN_INSERT)
        is_seen = F.expr(" AND ".join(counts))
        events = self._reader().schema(schema).orc([file.path for file in files])
        return events.where(_ALL_COLUMNS).withColumns(
            {"operation": F.when(is_seen, F.lit(seen)).otherwise(F.lit(unseen)), "row": F.when(is_seen, F.col("row"))}
        )

    def _unmarked(self, inputs: _Inputs) -> DataFrame:
        """All events, of which Spark reads only what is asked for: where none is hidden, and none deletes."""
        sources, parts = inputs.sources, []
        if sources.plain:
            parts.append(raw_events(self.spark, self._reader(), self.row_type, sources))
        if sources.events:
            events = self._reader().schema(event_type(self.row_type)).orc([file.path for file in sources.events])
            parts.append(events.where(_ALL_COLUMNS))
        return reduce(DataFrame.union, parts)

    def _reader(self) -> DataFrameReader:
        """A reader that fails on a lost or damaged file, which must never be compacted away."""
        return self.spark.read.option("ignoreMissingFiles", "false").option("ignoreCorruptFiles", "false")


def _own_session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.orc.impl", "native")
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_LTZ")
    session.conf.set("spark.sql.files.maxRecordsPerFile", "0")
    return session


def _without(txns: ValidTxnList, txn_id: int) -> ValidTxnList:
    """The list with the compaction's own transaction open, so that an earlier attempt's output is no input."""
    return replace(txns, exceptions=tuple(sorted({*txns.exceptions, txn_id})))


def _require_safe_mark(spec: CompactionJobSpec, state: AcidState, write_ids: CompactorWriteIdList) -> None:
    """The output's name must cover its inputs, and nothing that may still be committed."""
    highest = max((delta.name.max_write_id for delta in state.deltas), default=0)
    if not highest <= spec.highest_write_id <= write_ids.high_watermark:
        raise InvalidOperationError(
            f"The output would reach to write id {spec.highest_write_id}, but must lie between its inputs' highest, "
            f"{highest}, and the highest that is settled, {write_ids.high_watermark}"
        )


def _require_closed(directory: BaseDirectory | DeltaDirectory, location: str) -> None:
    if directory.side_files:
        raise InvalidOperationError(
            f"{location}/{directory.path} belongs to a streaming client that has not closed it: "
            "it can be compacted when its transactions have ended and the files are complete"
        )
