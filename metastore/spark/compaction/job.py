"""The Spark job that compacts an ACID directory; ``process`` runs it where a Worker has asked for it.

Rule: the job reads the files that ``acid_state`` gives to a compactor, never changes an input, and publishes
directories that end in ``_v<txn>``, invisible until the Worker commits that transaction. When all directories are
complete it proves that they hold the inputs' rows (``compaction.working.rules``). Right before the first directory gets
its name it checks that the compaction is still its own (ADR 0038). ROW__IDs stay as they are, since other transactions
may be deleting by them at this moment; only a rebalance changes them, and it keeps such transactions out. A job that is
killed at any point leaves a hidden staging directory or an invisible output.

MAJOR: rows without a delete event → ``base_<H>_v<T>``, even when no row is left (readers must stop looking at deltas).
MINOR: insert and delete events side by side → ``delta_<m>_<H>_v<T>`` and ``delete_delta_<m>_<H>_v<T>``, none applied.
REBALANCE: as MAJOR, with new ids, evenly in the buckets asked for → ``base_<H>_v<T>``.
Files in the order of their ROW__IDs are merged as they lie (``merged``), large stripes copied (``stripes``), else rows
are sorted.
Source: ACID-29, COMP-14, COMP-16.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import StructField, StructType

from metastore.acid.bucket import writer_id_sql
from metastore.acid.names import BaseName, DeltaName, compaction_staging
from metastore.acid.snapshots import CompactorWriteIdList, ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, BaseDirectory, DeltaDirectory, acid_state
from metastore.acid.table_kinds import TableKind
from metastore.acid_tables.sources import DataFile, Sources, acid_sources
from metastore.acid_tables.table import AcidTable, HiveColumn
from metastore.compaction.merging.rules import LARGE_STRIPE
from metastore.compaction.queue.rules.ordering import SortColumn, sort_columns
from metastore.compaction.queue.rules.properties import orc_settings
from metastore.compaction.statistics.rules import MOST_SKETCHES, Tallied, described, statistics, whole
from metastore.compaction.working.job_specification import CompactionJobResult, CompactionJobSpec
from metastore.compaction.working.rules import dealt
from metastore.errors import InvalidOperationError
from metastore.files import Files
from metastore.spark.compaction.events import CompactionInputs, Events, InputReading
from metastore.spark.compaction.live_rows import LiveRows
from metastore.spark.compaction.merged import UNSORTED
from metastore.spark.compaction.plain_rows import compact_rows
from metastore.spark.compaction.proof import JobProof, input_files
from metastore.spark.compaction.rebalance import deal, in_order, require_sortable
from metastore.spark.compaction.stripes import Buckets, copied_stripes, copyable, striped_files
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.read.precision import require_exact
from metastore.spark.read.raw_files import let_each_file_be_a_task
from metastore.spark.tables.spark_types import type_of
from metastore.spark.write.acid_writer import WRITER_COLUMN, StagedWrite, WrittenDirectory, publish_all, staged_acid
from metastore.spark.write.event_format import Counting

_STEP_BEFORE = 9
"""The number of the staging directory in which a rebalance prepares its input."""
_OF_A_STEP = {"orc.compress": "lz4"}
"""The compression of that staging directory: its files are read once."""


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

    Runs in a session of its own (``spark.newSession()``), so that the caller's settings have no effect. May be repeated
    under the same transaction: it replaces an earlier attempt's output. ``may_publish`` is called when all directories
    are complete and none has its name; it raises if the compaction is no longer this job's. ``expects`` is called with
    the number of rows that Spark's stages will take in.

    Raises: InvalidOperationError for a kind, or for files, that this job cannot compact; UnprovenError when the outputs
    do not hold the inputs' rows: nothing is published, and the outputs are kept under a hidden name.
    """
    files = files or Files()
    row_type = StructType([StructField(column.name, type_of(column)) for column in columns])
    job = _Job(_own_session(spark), spec, row_type, files, may_publish, _described(spec, columns))
    write_ids, state = _state(spec, files)
    inputs = job.inputs(state, write_ids)
    expects(job.passes(inputs) * inputs.rows)
    if inputs.sources.plain:
        let_each_file_be_a_task(job.spark)
    try:
        compacted = job.compacted(inputs)
    except Exception as error:
        if UNSORTED not in str(error):
            raise
        job = replace(job, spark=_own_session(spark), merges=False)
        compacted = job.compacted(inputs)
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
    published, rows, seen = compact_rows(_own_session(spark), files, spec, table, state, types, may_publish)
    result = _result(spark, published, rows)
    return replace(result, statistics=statistics(types, seen, result.rows_out))


def _state(spec: CompactionJobSpec, files: Files) -> tuple[CompactorWriteIdList, AcidState]:
    """Return the write ids that the compaction sees, and the state of its location."""
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
    """Return the columns that get statistics, with their types: only a major compaction writes all rows."""
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
    merges: bool = True
    """True if ordered files are merged; else their events are sorted again."""

    def passes(self, inputs: CompactionInputs) -> int:
        """Return how many times Spark's stages read each row: once from the files, and once after each shuffle."""
        of_a_rebalance = 0 if self.spec.kind != "rebalance" else 4 if self.spec.order_by else 1
        return of_a_rebalance + (1 if self._reading(inputs).buckets(inputs.read) else 2)

    def compacted(self, inputs: CompactionInputs) -> _Compacted:
        """Run the compaction."""
        return {"major": self.major, "minor": self.minor, "rebalance": self.rebalance}[self.spec.kind](inputs)

    def inputs(self, state: AcidState, write_ids: CompactorWriteIdList) -> CompactionInputs:
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
        require_exact(
            self.spark, self.files, self.row_type, [file.path for file in sources.events], sources.without_events
        )
        return CompactionInputs(chosen, sources, write_ids, input_files(self.files, sources))

    def major(self, inputs: CompactionInputs) -> _Compacted:
        """Write every live row once. The writing tasks sort delete events before their rows, and leave both out."""
        return self._write(inputs, {self._base: self._reading(inputs).live()}, empty=True)

    def rebalance(self, inputs: CompactionInputs) -> _Compacted:
        """Write every live row once, with a new id.

        The writing tasks leave deleted and invisible rows out. If rows have to be sorted, a major compaction into
        staging does so before.
        """
        order = sort_columns(self.spec.order_by)
        require_sortable(order, self.row_type, f"{self.spec.database}.{self.spec.table}")
        wanted = self.spec.number_of_buckets or len({file.bucket for file in inputs.read if not file.is_of_deletes})
        reading = self._reading(inputs)
        if not order and reading.has_ranges():
            return self._in_order(inputs, reading, wanted)
        if not self._leaves_out(inputs):
            return self._dealt(inputs, order, wanted)
        live: dict[BaseName | DeltaName, Events | Buckets] = {self._base: reading.live()}
        with self._staged(inputs, live, "major", empty=True, in_place=False) as merged:
            rows = [
                DataFile(f"{directory.out}/{file.path}", file.size)
                for directory in merged.directories
                for file in directory.files
            ]
            sources = Sources(events=tuple(rows))
            base = replace(inputs, sources=sources, read=input_files(self.files, sources), are_staged=True)
            deleted = sum(tally.deleted for tally in merged.tallies)
            return self._dealt(base, order, wanted)._replace(deleted=deleted)

    def _dealt(self, inputs: CompactionInputs, order: Sequence[SortColumn], buckets: int) -> _Compacted:
        shares, reading = dealt(inputs.rows, buckets), self._reading(inputs)
        events = Events(reading.inserts())
        if len(shares) > 1:
            dealt_rows = deal(events.rows, reading.unmarked(), self.row_type, order, shares)
            events = Events(dealt_rows, is_routed=True)
        return self._write(inputs, {self._base: events}, empty=True, shares=shares)

    def _in_order(self, inputs: CompactionInputs, reading: InputReading, buckets: int) -> _Compacted:
        """Deal rows in the order of their ROW__IDs. Live rows are counted by their ids before any row is written."""
        inserts = [file for file in inputs.read if not file.is_of_deletes]
        live = LiveRows.counted(reading, striped_files(self.spark, inserts))
        shares = dealt(live.rows, buckets)
        events = in_order(reading, live.at(shares[1:-1]), shares)
        return self._write(inputs, {self._base: events}, empty=True, shares=shares)

    def minor(self, inputs: CompactionInputs) -> _Compacted:
        """Write the visible events of the deltas: a directory for each kind that has events."""
        state, sources, reading = inputs.state, inputs.sources, self._reading(inputs)
        if not state.deltas:
            return _Compacted([])
        ids = (inputs.lowest_write_id, self.spec.highest_write_id)
        if any(delta.name[:3] == (*ids, None) for delta in state.deltas):
            return _Compacted([])  # a delta covers the range already, so readers would read both
        outputs: dict[BaseName | DeltaName, Events | Buckets] = {}
        if sources.deletes:
            outputs[DeltaName(*ids, None, self.spec.txn_id, is_delete=True)] = reading.of_kind(deletes=True)
        if sources.events or sources.plain:
            inserts = self._copied(reading) or reading.of_kind(deletes=False)
            outputs[DeltaName(*ids, None, self.spec.txn_id)] = inserts
        return self._write(inputs, outputs)

    @property
    def _base(self) -> BaseName:
        return BaseName(self.spec.highest_write_id, self.spec.txn_id)

    def _copied(self, reading: InputReading) -> Buckets:
        """Return the files of inserts whose stripes are copied unread, by bucket; none if rows have to be read."""
        inserts = [file for file in reading.inputs.read if not file.is_of_deletes]
        are_large = sum(file.size for file in reading.inputs.sources.events) >= LARGE_STRIPE * len(inserts)
        if not self.merges or not are_large or orc_settings(self.spec.properties) or not reading.are_all_inserts_seen():
            return {}
        return copyable(self.spark, self.spec.location, inserts)

    def _write(
        self,
        inputs: CompactionInputs,
        outputs: Mapping[BaseName | DeltaName, Events | Buckets],
        shares: Sequence[int] = (),
        *,
        empty: bool = False,
    ) -> _Compacted:
        """Complete all directories, prove them, then publish them together."""
        with self._staged(inputs, outputs, self.spec.kind, shares, empty=empty) as staged:
            published = publish_all(Hadoop(self.spark), staged.directories, self.may_publish)
            self._proof(inputs).require_uploaded(staged.directories)
            return _Compacted(published, sum(tally.deleted for tally in staged.tallies), staged.columns)

    @contextmanager
    def _staged(
        self,
        inputs: CompactionInputs,
        outputs: Mapping[BaseName | DeltaName, Events | Buckets],
        kind: str,
        shares: Sequence[int] = (),
        *,
        empty: bool = False,
        in_place: bool = True,
    ) -> Iterator[StagedWrite]:
        """Yield complete, proven directories that are not published. ``in_place`` is False for an intermediate step."""
        hadoop, location = Hadoop(self.spark), self.spec.location
        orc = orc_settings(self.spec.properties) if in_place else _OF_A_STEP.copy()
        compression = orc.pop("orc.compress", "zlib").lower()
        columns = self._tallied(inputs)
        merges = kind == "major" or (kind == "rebalance" and self._leaves_out(inputs))
        staged = StagedWrite([], [], [])
        with ExitStack() as kept:
            for number, (name, events) in enumerate(outputs.items()):
                staging = f"{location}/{compaction_staging(self.spec.txn_id, number if in_place else _STEP_BEFORE)}"
                for leftover in (staging, f"{location}/{name}"):  # left by a failed attempt of this transaction
                    hadoop.delete(leftover)
                written = kept.enter_context(
                    copied_stripes(self.spark, events, name, location, staging)
                    if not isinstance(events, Events)
                    else staged_acid(
                        events.rows.withColumn(WRITER_COLUMN, _writer(events)),
                        name,
                        location,
                        staging=staging,
                        empty=empty,
                        is_routed=events.is_routed,
                        is_ordered=events.is_ordered,
                        compression=compression,
                        orc=orc,
                        counting=Counting(merges, columns, events.numbers),
                        in_place=in_place,
                    )
                )
                staged.directories.extend(written.directories)
                staged.tallies.extend(written.tallies)
                staged.columns.extend(written.columns)
            self._proof(inputs).require_staged(kind, inputs.read, staged.directories, staged.tallies, shares)
            yield staged

    def _leaves_out(self, inputs: CompactionInputs) -> bool:
        """Return True if rows may be deleted, or invisible to the compaction."""
        return bool(inputs.sources.deletes) or self._proof(inputs).may_hide

    def _reading(self, inputs: CompactionInputs) -> InputReading:
        return InputReading(self.spark, self.row_type, inputs, self.spec.max_num_delta if self.merges else 0)

    def _tallied(self, inputs: CompactionInputs) -> tuple[str, ...]:
        """Return the columns whose values the writing tasks tally."""
        types = self.described
        return tuple(types) if len(types) * len({file.bucket for file in inputs.read}) <= MOST_SKETCHES else ()

    def _proof(self, inputs: CompactionInputs) -> JobProof:
        there = [file.path for file in inputs.read] if inputs.are_staged else None
        return JobProof(
            Hadoop(self.spark), self.files, self.spec, inputs.state, inputs.write_ids, inputs.lowest_write_id, there
        )


def _writer(events: Events) -> Column:
    return F.col("currentTransaction").cast("int") if events.numbers else F.expr(writer_id_sql("bucket"))


def _own_session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.orc.impl", "native")
    session.conf.set("spark.sql.caseSensitive", "false")  # files may spell a column's name in another case
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_LTZ")
    session.conf.set("spark.sql.files.maxRecordsPerFile", "0")
    tasks = 2 * session.sparkContext.defaultParallelism  # otherwise a task for each file checks that the file exists
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", str(tasks))
    session.conf.set("spark.sql.files.maxPartitionNum", str(2**31 - 1))  # each bucket is a task, however many there are
    return session


def _without(txns: ValidTxnList, txn_id: int) -> ValidTxnList:
    """Return the list with the compaction's own transaction open, so that an earlier attempt's output is no input."""
    return replace(txns, exceptions=tuple(sorted({*txns.exceptions, txn_id})))


def _require_safe_mark(spec: CompactionJobSpec, state: AcidState, write_ids: CompactorWriteIdList) -> None:
    """Raise if the output's name does not cover its inputs, or covers writes that may still be committed."""
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
