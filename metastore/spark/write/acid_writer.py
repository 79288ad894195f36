"""The ACID directories of a compaction: events in, complete ``base_…``, ``delta_…`` and ``delete_delta_…`` out.

Rule: tasks write only below a hidden staging directory beside the target, by Spark's own committer: retries and
speculation leave one set of files per task. The driver checks that the files are those that the tasks reported, one for
each bucket (ACID-10), adds ``_orc_acid_version`` and renames. Nothing exists under a final name before it is complete.
On S3, where a rename is a copy, tasks upload to the final names instead (``in_place``). ``EventFile.java`` writes the
content of files, for statements and compactions alike.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, DataFrameWriter
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from metastore.acid.events import EVENT_COLUMNS, ID_COLUMNS
from metastore.acid.names import VERSION_FILE, VERSION_TEXT, BaseName, DeltaName, bucket_file
from metastore.acid.orc_footer import acid_entries
from metastore.acid_tables.table import OURS
from metastore.compaction.statistics.rules import Tallied
from metastore.compaction.working.rules import Tally
from metastore.errors import InvalidOperationError, MetaError
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.write.event_format import DELETES_PREFIX, Counting, FileReport, Reports, write_events
from metastore.spark.write.in_place import ElsewhereError, InPlaceWrite, Upload, abort, complete

WRITER_COLUMN = f"{OURS}writer"
"""The column that routes an event: N of the ``bucket_N`` file that it goes to."""


_UNSORTED_WRITERS = "spark.sql.maxConcurrentOutputFileWriters"
"""A setting that keeps Spark from sorting a task's rows by the routing columns, if they have fewer values than this."""


class RoutingError(MetaError):
    """Tasks wrote files that no ACID directory may have, because the caller routed events wrongly."""


class LeftoverError(MetaError):
    """Some of the files cannot be removed: the transaction must not be committed."""


@dataclass(frozen=True)
class WrittenFile:
    """A published data file."""

    path: str
    rows: int
    size: int
    bucket: int
    report: FileReport | None = None
    """The report of the task that wrote the file; None for a file without rows."""


@dataclass(frozen=True)
class WrittenDirectory:
    """A published base, delta or delete delta."""

    location: str
    """The ACID directory (a partition's or an unpartitioned table's location)."""

    path: str
    """The directory's own path: ``location`` + ``/`` + its name."""

    files: tuple[WrittenFile, ...]

    @property
    def rows(self) -> int:
        """The number of events in all files."""
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """The number of bytes in all files."""
        return sum(file.size for file in self.files)


@dataclass
class Staged:
    """A complete directory, not yet published: in staging, with ``files`` by their names; or a set of ``uploads``."""

    location: str
    name: BaseName | DeltaName
    out: str
    files: list[WrittenFile] = field(default_factory=list)
    uploads: list[Upload] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The final path of the directory."""
        return f"{self.location}/{self.name}"

    def publish(self, hadoop: Hadoop) -> None:
        """Give the directory its final name."""
        if self.uploads:
            hadoop.write(f"{self.path}/{VERSION_FILE}", VERSION_TEXT)
            complete(hadoop.spark, self.uploads)
        else:
            hadoop.mkdirs(self.location)
            hadoop.rename(self.out, self.path)


class StagedWrite(NamedTuple):
    """The directories of a write, and the tallies of its tasks if they counted."""

    directories: list[Staged]
    tallies: list[Tally]
    columns: list[Tallied]


@contextmanager
def staged_acid(
    events: DataFrame,
    name: BaseName | DeltaName,
    location: str,
    *,
    staging: str,
    counting: Counting,
    empty: bool = False,
    is_routed: bool = False,
    compression: str = "zlib",
    orc: Mapping[str, str] | None = None,
    in_place: bool = True,
    is_ordered: bool = False,
) -> Iterator[StagedWrite]:
    """Write events into a complete directory, for the block to publish under its ``name`` in the ACID ``location``.

    ``events``: exactly ``operation int, originalTransaction bigint, bucket int, rowId bigint, currentTransaction
    bigint, row struct<table columns, lower case, no partition columns>`` (``row`` null for delete events), plus
    ``WRITER_COLUMN``, an int (N; for delete events the writer id decoded from ``bucket``), which is not written. All
    are of the kind of ``name``.

    ``staging``: URI of a hidden directory on the same file system, for example
    ``<table>/.acid_stage_<txn id>_<statement>``; it must not exist and is removed in any case.

    ``empty``: without events there is a directory with an empty ``bucket_00000`` (MAJOR compaction), instead of none.

    ``compression``: zlib or snappy; Hive before 4 reads no others. ``orc``: more settings of ORC's writer.
    ``counting``: as for ``write_events``.

    ``is_routed``: the caller guarantees that all events of one writer are in one Spark partition and are already sorted
    by key (originalTransaction, bucket, rowId ascending, currentTransaction descending); otherwise events are
    shuffled and sorted here, unless ``is_ordered``: each task has the events of one writer, in the order of its file.

    ``in_place``: whether files may be uploads without a name until they are published; otherwise they are files below
    ``staging``, which can be read inside the block.

    Raises: FileExistsError for ``staging``, RoutingError when a writer came out as more than one file,
    InvalidOperationError for a column that Spark would store as another type.
    """
    if '"timestamp_ntz"' in events.schema.json():
        raise InvalidOperationError("Spark would store a timestamp_ntz column as a bigint: cast it to timestamp")
    hadoop = Hadoop(events.sparkSession)
    if hadoop.exists(staging):
        raise FileExistsError(f"{staging} exists already: another attempt of the same statement may be running")

    def complete_files(write: InPlaceWrite | None) -> StagedWrite:
        writing = _Writing(hadoop, events, name, location, staging, write, counting)
        with write.aborted_on_failure() if write else nullcontext():
            reports = writing.run_tasks(
                is_routed=is_routed, is_ordered=is_ordered, options={**(orc or {}), "compression": compression}
            )
            writing.collect_files(reports.files)
            if empty:
                writing.add_empty()
            return StagedWrite(writing.complete(), reports.tallies, reports.columns)

    try:
        write: InPlaceWrite | None = None
        if in_place:
            write = InPlaceWrite.into(events.sparkSession, location, name)
        try:
            staged = complete_files(write)
        except ElsewhereError:
            write, staged = None, complete_files(None)
        with write.aborted_on_failure() if write else nullcontext():
            yield staged
    finally:
        hadoop.delete(staging)


@dataclass
class _Writing:
    """The state of a write. Below ``staging``, ``tasks/`` is Spark's output and ``out/`` the directory to publish.

    ``write``: uploads the tasks' files to their final names; None: they are in staging.
    """

    hadoop: Hadoop
    events: DataFrame
    name: BaseName | DeltaName
    location: str
    staging: str
    write: InPlaceWrite | None
    counting: Counting
    staged: Staged | None = None

    def run_tasks(self, *, is_routed: bool, is_ordered: bool, options: Mapping[str, str]) -> Reports:
        """Let Spark write the files: one for each writer."""
        settings = self.events.sparkSession.conf
        if is_ordered:
            settings.set(_UNSORTED_WRITERS, "2")
        try:
            return self._written(is_routed=is_routed, is_ordered=is_ordered, options=options)
        finally:
            if is_ordered:
                settings.unset(_UNSORTED_WRITERS)

    def _written(self, *, is_routed: bool, is_ordered: bool, options: Mapping[str, str]) -> Reports:
        routing = [] if is_routed else [WRITER_COLUMN]
        events = self.events
        if routing and not is_ordered:
            events = in_order(spread(events), routing, self._order())
        writer = for_tasks(events.select(*EVENT_COLUMNS, *routing).write.options(**options), routing)
        if self.write is None:
            return write_events(events.sparkSession, writer, f"{self.staging}/tasks", self.counting)
        with TemporaryDirectory(prefix="in-place-") as nothing:  # tasks upload their files, so Spark commits none
            place = Path(nothing, "tasks").as_uri()
            return write_events(events.sparkSession, writer, place, self.counting, self.write.write)

    def _order(self) -> list[Column]:
        """Return the order of Hive's files; where deletes are merged, they come before the row that they name."""
        deletes_first = [F.col("operation").desc()] if self.counting.merges else []
        return [*map(F.col, ID_COLUMNS), *deletes_first, F.col("currentTransaction").desc()]

    def collect_files(self, reports: Sequence[FileReport]) -> None:
        """Bring every file of the tasks into the directory. Raises: RoutingError, ElsewhereError."""
        by_file: dict[str, str | Upload]
        if self.write is None:
            tasks = f"{self.staging}/tasks"
            by_file = {path.removeprefix(f"{tasks}/"): path for path in task_files(self.hadoop, tasks)}
        else:
            by_file = {upload.file: upload for upload in self.write.uploads()}
        if other := by_file.keys() ^ {report.file for report in reports}:
            raise RoutingError(f"The files that tasks reported are not those that there are: {sorted(other)}")
        for report in reports:
            self._place(by_file[report.file], report)

    def add_empty(self) -> None:
        """Give the directory a file without rows if there are no events."""
        if self.staged is not None:
            return
        staged = self._staged()
        path = f"{staged.out}/{bucket_file(0)}"
        schema = orc_type(self.events.select(*EVENT_COLUMNS).schema)
        self.hadoop.write_empty_orc(path, schema, acid_entries((), 0, is_delete=self.is_delete))
        staged.files.append(WrittenFile(bucket_file(0), 0, self.hadoop.size(path), 0))

    def complete(self) -> list[Staged]:
        """Add the version file; return the directory, which then lacks only its final name, or nothing without rows."""
        if self.staged is None:
            return []
        if not self.staged.uploads:
            self.hadoop.write(f"{self.staged.out}/{VERSION_FILE}", VERSION_TEXT)
        return [self.staged]

    @property
    def is_delete(self) -> bool:
        """True if all events are delete events."""
        return isinstance(self.name, DeltaName) and self.name.is_delete

    def _place(self, file: str | Upload, report: FileReport) -> None:
        if report.lowest_writer != report.highest_writer:
            raise RoutingError(
                f"{report.file} holds events of writers {report.lowest_writer} to "
                f"{report.highest_writer}; a file must hold one writer's"
            )
        if report.is_of_deletes != self.is_delete:
            raise RoutingError(f"{report.file} holds events of the other kind than {self.name}")
        bucket, staged = report.lowest_writer, self._staged()
        if any(other.bucket == bucket for other in staged.files):
            raise RoutingError(
                f"Two tasks wrote {bucket_file(bucket)} of {staged.path}: one must write all events of a writer"
            )
        if isinstance(file, str):
            target = f"{staged.out}/{bucket_file(bucket)}"
            self.hadoop.rename(file, target)
            size = self.hadoop.size(target)
        else:
            if file.target != f"{staged.path}/{bucket_file(bucket)}":
                raise ElsewhereError(f"{file.target} was to be {bucket_file(bucket)} of {staged.path}")
            staged.uploads.append(file)
            size = int(file.size)
        staged.files.append(WrittenFile(bucket_file(bucket), report.rows, size, bucket, report))

    def _staged(self) -> Staged:
        if self.staged is None:
            self.staged = Staged(self.location, self.name, f"{self.staging}/out")
            if self.write is None:
                self.hadoop.mkdirs(self.staged.out)
        return self.staged


def for_tasks(writer: DataFrameWriter, routing: Sequence[str]) -> DataFrameWriter:
    """Return a writer whose tasks write a file for each value of the routing columns; Spark commits the files."""
    writer = writer.option("maxRecordsPerFile", 0)
    return writer.partitionBy(*routing) if routing else writer


def task_files(hadoop: Hadoop, directory: str) -> Iterator[str]:
    """Yield the path of every file that Spark committed below ``directory``."""
    for child, is_directory in hadoop.children(directory):
        path = f"{directory}/{child}"
        if is_directory and child.startswith(f"{WRITER_COLUMN}="):
            yield from task_files(hadoop, path)
        elif child.startswith(("part-", DELETES_PREFIX)):
            yield path


def publish_all(
    hadoop: Hadoop, staged: Sequence[Staged], may_publish: Callable[[], None] = lambda: None
) -> list[WrittenDirectory]:
    """Give complete directories their final names, in this order, if ``may_publish`` does not raise.

    A failure may leave some directories: uploads are completed one by one, and on object stores a rename copies file by
    file. So after a failure everything that may exist is removed.
    Raises: FileExistsError; LeftoverError when that cannot be removed.
    """
    for directory in staged:
        if hadoop.exists(directory.path):
            raise FileExistsError(
                f"{directory.path} exists already: nothing was published. A transaction can overwrite a "
                "table or partition once."
            )
    may_publish()
    published: list[WrittenDirectory] = []
    try:
        for directory in staged:
            directory.publish(hadoop)
            final = [replace(file, path=f"{directory.path}/{file.path}") for file in directory.files]
            final.sort(key=lambda file: (file.bucket, file.path))
            published.append(WrittenDirectory(directory.location, directory.path, tuple(final)))
    except BaseException as error:
        _withdraw(hadoop, staged, error)
        raise
    return published


def _withdraw(hadoop: Hadoop, staged: Sequence[Staged], failure: BaseException) -> None:
    try:
        abort(hadoop.spark, [upload for directory in staged for upload in directory.uploads])
        for directory in staged:
            hadoop.delete(directory.path)
    except Exception as error:  # noqa: BLE001 - after any error of the store the transaction is over
        raise LeftoverError(f"{failure}; and what was written of it cannot be removed: {error}") from failure


def in_order(rows: DataFrame, routing: Sequence[str], order: Sequence[Column]) -> DataFrame:
    """Sort each task's rows by the routing columns, and the rows of a file in ``order``.

    The routing columns are replaced by expressions that Spark cannot evaluate beforehand. Spark drops a column with a
    known value (all rows are of one partition) from the order; its writer then takes the rows for unsorted, and sorts
    them again by the routing columns alone: ``order`` is lost.
    """
    unknown = {column: F.when(F.spark_partition_id() >= 0, F.col(column)) for column in routing}
    return rows.withColumns(unknown).sortWithinPartitions(*routing, *order)


def spread(rows: DataFrame) -> DataFrame:
    """Bring the rows of each writer together, neighbouring writers in different tasks.

    Writers are few and numbered from 0: hashed they would meet in one task while others idle. Adaptive execution does
    not reduce an explicit number of tasks, however small Spark takes the data to be.
    """
    tasks = 2 * rows.sparkSession.sparkContext.defaultParallelism
    return rows.repartitionById(tasks, F.pmod(F.col(WRITER_COLUMN).cast("bigint"), F.lit(tasks)).cast("int"))


def orc_type(kind: DataType) -> str:
    """Return a Spark type in ORC's type language."""
    match kind:
        case StructType():
            fields = ",".join(f"`{field.name.replace('`', '``')}`:{orc_type(field.dataType)}" for field in kind.fields)
            return f"struct<{fields}>"
        case ArrayType():
            return f"array<{orc_type(kind.elementType)}>"
        case MapType():
            return f"map<{orc_type(kind.keyType)},{orc_type(kind.valueType)}>"
        case _:
            return str(kind.simpleString())
