"""Publishing ACID ORC files from Spark: events in, complete ``base_…``, ``delta_…`` and ``delete_delta_…`` out.

Rule: tasks write only below a hidden staging directory beside the target, by Spark's own committer: retries and
speculation leave one set of files per task. The driver checks that the files are those that the tasks reported, one for
each (partition, bucket) (ACID-10), adds ``_orc_acid_version`` and renames, deletes before inserts. Nothing exists under
a final name before it is complete. On S3, where a rename is a copy, tasks upload to the final names instead
(``in_place``).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, DataFrameWriter
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from metastore.acid.bucket import MAX_WRITER_ID
from metastore.acid.events import EVENT_COLUMNS, ID_COLUMNS
from metastore.acid.names import VERSION_FILE, VERSION_TEXT, BaseName, DeltaName, bucket_file
from metastore.acid.orc_footer import RowKey, acid_entries
from metastore.acid_tables.table import OURS
from metastore.compaction.statistics.rules import Tallied
from metastore.compaction.working.rules import Tally
from metastore.errors import InvalidOperationError, MetaError
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.write.event_format import DELETES_PREFIX, Counting, FileReport, Reports, write_changes
from metastore.spark.write.in_place import Below, ElsewhereError, InPlaceWrite, Upload, abort, complete

WRITER_COLUMN = f"{OURS}writer"
"""The column that routes an event: N of the ``bucket_N`` file that it goes to."""

PARTITION_COLUMN = f"{OURS}partition"
"""The column that routes an event of a partitioned table: its key in ``targets``."""


_UNSORTED_WRITERS = "spark.sql.maxConcurrentOutputFileWriters"
"""With it Spark does not sort by the routing columns what a task writes, if they have no more values than that."""


class RoutingError(MetaError):
    """Tasks wrote files that no ACID directory may have: a fault of the caller's routing."""


class ChangedTwiceError(MetaError):
    """A statement has several delete events for one row."""

    def __init__(self, row_id: RowKey, times: int) -> None:
        super().__init__(f"{times} delete events of one statement name the row {list(row_id)}")
        self.row_id = row_id
        self.times = times


class LeftoverError(MetaError):
    """Some of a statement's files cannot be removed: its transaction must not be committed."""


class Deletes(NamedTuple):
    """The place of the delete events of a statement that writes both kinds: as its ``name`` and ``location``."""

    name: DeltaName
    location: str | Mapping[str, str]


@dataclass(frozen=True)
class WrittenFile:
    """A published data file."""

    path: str
    rows: int
    size: int
    bucket: int
    updates: int = 0
    """The number of its rows that are new versions of rows that the same statement deleted."""

    report: FileReport | None = None
    """Its task's report; None for a file without rows, which no task wrote."""


@dataclass(frozen=True)
class WrittenDirectory:
    """A published base, delta or delete delta."""

    location: str
    """The ACID directory (a partition's or an unpartitioned table's location)."""

    path: str
    """The directory itself: ``location`` + ``/`` + its name."""

    files: tuple[WrittenFile, ...]

    @property
    def rows(self) -> int:
        """Events in all files."""
        return sum(file.rows for file in self.files)

    @property
    def updates(self) -> int:
        """New versions of rows in all files."""
        return sum(file.updates for file in self.files)

    @property
    def size(self) -> int:
        """Bytes in all files."""
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
        """Its final path."""
        return f"{self.location}/{self.name}"

    def publish(self, hadoop: Hadoop) -> None:
        """Give it its final name."""
        if self.uploads:
            hadoop.write(f"{self.path}/{VERSION_FILE}", VERSION_TEXT)
            complete(hadoop.spark, self.uploads)
        else:
            hadoop.mkdirs(self.location)
            hadoop.rename(self.out, self.path)


class StagedWrite(NamedTuple):
    """The directories of a write, and its tasks' tallies where they counted."""

    directories: list[Staged]
    tallies: list[Tally]
    columns: list[Tallied]


def write_acid(
    events: DataFrame,
    name: BaseName | DeltaName,
    location: str | Mapping[str, str],
    *,
    staging: str,
    below: Below | None = None,
    deletes: Deletes | None = None,
    empty: Sequence[str] = (),
    is_routed: bool = False,
    compression: str = "zlib",
    may_publish: Callable[[], None] = lambda: None,
) -> list[WrittenDirectory]:
    """Write events into one directory called ``name`` in each ACID directory that gets rows.

    ``events``: exactly ``operation int, originalTransaction bigint, bucket int, rowId bigint, currentTransaction
    bigint, row struct<table columns, lower case, no partition columns>`` (``row`` null for delete events), plus
    ``WRITER_COLUMN``, an int (N; for delete events the writer id decoded from ``bucket``), plus, when ``location`` is a
    mapping, ``PARTITION_COLUMN``, a string, a key of that mapping. These two columns are not written. An insert event
    without ``rowId`` gets the next of its file. An update (operation 1) is two events: the deletion of the row with its
    id, and the insertion of its ``row`` with a new id.

    ``location``: the ACID directory's URI (unpartitioned table), or {key: ACID directory's URI} for partitions. Several
    partitions are written by one Spark job.

    ``staging``: URI of a hidden directory on the same file system, for example
    ``<table>/.acid_stage_<txn id>_<statement>``; it must not exist and is removed in any case.

    ``below``: the usual place of a mapping's partitions. Without it they are not written in place.

    ``deletes``: the place of delete events; without it all ``events`` are of the kind of ``name``. With it they are a
    single statement's, which may change a row only once.

    ``empty``: keys (or, unpartitioned, locations) that get a directory with an empty ``bucket_00000`` when they get no
    event (INSERT OVERWRITE, TRUNCATE, MAJOR compaction). Others without events get no directory.

    ``compression``: zlib or snappy; Hive before 4 reads no others.

    ``is_routed``: the caller guarantees that all events of one (partition, writer) are in one Spark partition
    and are already sorted by key (originalTransaction, bucket, rowId ascending, currentTransaction descending), as a
    fresh INSERT has them; otherwise events are shuffled and sorted here.

    ``may_publish``: called when everything is complete, right before the first directory gets its name; raises if the
    caller may no longer publish for the transaction.

    Returns what was published, delete deltas first, ordered by location. Raises, and publishes nothing:
    FileExistsError when a target directory exists, RoutingError when a (partition, writer) pair came out as more than
    one file, ChangedTwiceError, InvalidOperationError for a column that Spark would store as another type.
    """
    with staged_acid(
        events,
        name,
        location,
        staging=staging,
        below=below,
        deletes=deletes,
        empty=empty,
        is_routed=is_routed,
        compression=compression,
    ) as staged:
        return publish_all(Hadoop(events.sparkSession), staged.directories, may_publish)


@contextmanager
def staged_acid(
    events: DataFrame,
    name: BaseName | DeltaName,
    location: str | Mapping[str, str],
    *,
    staging: str,
    below: Below | None = None,
    deletes: Deletes | None = None,
    empty: Sequence[str] = (),
    is_routed: bool = False,
    compression: str = "zlib",
    orc: Mapping[str, str] | None = None,
    counting: Counting | None = None,
    in_place: bool = True,
    is_ordered: bool = False,
) -> Iterator[StagedWrite]:
    """As ``write_acid``, up to the names: complete directories, for the block to publish.

    ``orc``: more settings of ORC's writer. ``counting``: as for ``write_changes``. ``in_place``: whether files may
    be uploads without a name until they are published; otherwise they are files below ``staging``, which can be read
    inside the block. ``is_ordered``: each task has the events of one writer, in the order of its file.
    """
    if '"timestamp_ntz"' in events.schema.json():
        raise InvalidOperationError("Spark would store a timestamp_ntz column as a bigint: cast it to timestamp")
    hadoop = Hadoop(events.sparkSession)
    if hadoop.exists(staging):
        raise FileExistsError(f"{staging} exists already: another attempt of the same statement may be running")

    def complete_files(write: InPlaceWrite | None) -> StagedWrite:
        writing = _Writing(hadoop, events, name, location, deletes, staging, write, counting)
        with write.aborted_on_failure() if write else nullcontext():
            reports = writing.run_tasks(
                is_routed=is_routed, is_ordered=is_ordered, options={**(orc or {}), "compression": compression}
            )
            writing.collect_files(reports.files)
            writing.add_empty(empty)
            return StagedWrite(writing.complete(), reports.tallies, reports.columns)

    try:
        root = Below(location) if isinstance(location, str) else below
        write: InPlaceWrite | None = None
        if root is not None and in_place:
            write = InPlaceWrite.into(events.sparkSession, root, name, deletes.name if deletes else name)
        try:
            staged = complete_files(write)
        except ElsewhereError:
            write, staged = None, complete_files(None)
        with write.aborted_on_failure() if write else nullcontext():
            yield staged
    finally:
        hadoop.delete(staging)


class _TaskFile(NamedTuple):
    """A file in staging."""

    key: str | None
    path: str


@dataclass
class _Writing:
    """A call's work. Below ``staging``, ``tasks/`` is Spark's output and each ``out/<n>/`` a directory to publish.

    ``write``: uploads the tasks' files to their final names; None: they are in staging.
    """

    hadoop: Hadoop
    events: DataFrame
    name: BaseName | DeltaName
    location: str | Mapping[str, str]
    deletes: Deletes | None
    staging: str
    write: InPlaceWrite | None
    counting: Counting | None
    staged: dict[tuple[bool, str], Staged] = field(default_factory=dict)
    """By whether they are delete deltas, and by location."""

    def run_tasks(self, *, is_routed: bool, is_ordered: bool, options: Mapping[str, str]) -> Reports:
        """Let Spark write the files: one of each kind per (partition, writer)."""
        settings = self.events.sparkSession.conf
        if is_ordered:
            settings.set(_UNSORTED_WRITERS, "1")
        try:
            return self._written(is_routed=is_routed, is_ordered=is_ordered, options=options)
        finally:
            if is_ordered:
                settings.unset(_UNSORTED_WRITERS)

    def _written(self, *, is_routed: bool, is_ordered: bool, options: Mapping[str, str]) -> Reports:
        routing = [] if isinstance(self.location, str) else [PARTITION_COLUMN]
        if not is_routed:
            routing.append(WRITER_COLUMN)
        events = self.events
        if not is_routed and not is_ordered:
            events = spread(events, routing)
        if routing and not is_ordered:
            events = in_order(events, routing, self._order())
        writer = for_tasks(events.select(*EVENT_COLUMNS, *routing).write.options(**options), routing)
        statement = self.name.statement_id if isinstance(self.name, DeltaName) else None
        spark, number = events.sparkSession, statement or 0
        if self.write is None:
            return write_changes(spark, writer, f"{self.staging}/tasks", number, counting=self.counting)
        with TemporaryDirectory(prefix="in-place-") as nothing:  # Spark's committer finds nothing to commit there
            return write_changes(
                spark, writer, Path(nothing, "tasks").as_uri(), number, self.write.write, self.counting
            )

    def _order(self) -> list[Column]:
        """The order of Hive's files; where deletes are merged, they come before the row that they name."""
        deletes_first = [F.col("operation").desc()] if self.counting and self.counting.merges else []
        return [*map(F.col, ID_COLUMNS), *deletes_first, F.col("currentTransaction").desc()]

    def collect_files(self, reports: Sequence[FileReport]) -> None:
        """Assign every file of the tasks to a directory. Raises: RoutingError, ChangedTwiceError, ElsewhereError."""
        by_file: dict[str, _TaskFile | Upload]
        if self.write is None:
            tasks = f"{self.staging}/tasks"
            staged = task_files(self.hadoop, tasks)
            by_file = {path.removeprefix(f"{tasks}/"): _TaskFile(key, path) for key, path in staged}
        else:
            by_file = {upload.file: upload for upload in self.write.uploads()}
        if other := by_file.keys() ^ {report.file for report in reports}:
            raise RoutingError(f"The files that tasks reported are not those that there are: {sorted(other)}")
        for report in sorted(reports, key=lambda report: not report.is_of_deletes):  # deletes last
            self._place(by_file[report.file], report)

    def add_empty(self, keys: Sequence[str]) -> None:
        """Give each place of ``keys`` that got no events a directory with a file without rows."""
        for key in keys:
            location = key if isinstance(self.location, str) else _location(self.location, key)
            if (self.is_delete, location) in self.staged:
                continue
            staged = self._staged(self.name, location, is_delete=self.is_delete)
            path = f"{staged.out}/{bucket_file(0)}"
            entries = acid_entries((), 0, is_delete=self.is_delete)
            schema = orc_type(self.events.select(*EVENT_COLUMNS).schema)
            self.hadoop.write_empty_orc(path, schema, entries)
            staged.files.append(WrittenFile(bucket_file(0), 0, self.hadoop.size(path), 0))

    def complete(self) -> list[Staged]:
        """Add the version files: the directories need only their names now. Returns delete deltas first."""
        for staged in self.staged.values():
            if not staged.uploads:
                self.hadoop.write(f"{staged.out}/{VERSION_FILE}", VERSION_TEXT)
        ordered = sorted(self.staged.items(), key=lambda item: (not item[0][0], item[0][1]))
        return [staged for _, staged in ordered]

    @property
    def is_delete(self) -> bool:
        """Whether all events are delete events."""
        return isinstance(self.name, DeltaName) and self.name.is_delete

    def _place(self, file: _TaskFile | Upload, report: FileReport) -> None:
        key = file.key
        if report.lowest_writer != report.highest_writer:
            raise RoutingError(
                f"{report.file} holds events of writers {report.lowest_writer} to "
                f"{report.highest_writer}; a file must hold one writer's"
            )
        bucket, name, location = report.lowest_writer, self.name, self.location
        is_delete = report.is_of_deletes
        if is_delete and self.deletes is not None:
            name, location = self.deletes
            if report.times > 1:
                raise ChangedTwiceError(report.repeated, report.times)
        elif is_delete != self.is_delete:
            raise RoutingError(f"{report.file} holds events of the other kind than {self.name}")
        staged = self._staged(name, _location(location, key), is_delete=is_delete)
        if any(other.bucket == bucket for other in staged.files):
            raise RoutingError(
                f"Two tasks wrote {bucket_file(bucket)} of {name} for {key or location}: "
                "all events of one partition and writer must come from one task"
            )
        if isinstance(file, _TaskFile):
            target = f"{staged.out}/{bucket_file(bucket)}"
            self.hadoop.rename(file.path, target)
            size = self.hadoop.size(target)
        else:
            if file.target != f"{staged.path}/{bucket_file(bucket)}":
                raise ElsewhereError(f"{file.target} was to be {bucket_file(bucket)} of {staged.path}")
            staged.uploads.append(file)
            size = int(file.size)
        staged.files.append(WrittenFile(bucket_file(bucket), report.rows, size, bucket, report.updates, report))

    def _staged(self, name: BaseName | DeltaName, location: str, *, is_delete: bool) -> Staged:
        if (is_delete, location) not in self.staged:
            staged = Staged(location, name, f"{self.staging}/out/{len(self.staged)}")
            if self.write is None:
                self.hadoop.mkdirs(staged.out)
            self.staged[is_delete, location] = staged
        return self.staged[is_delete, location]


def _location(location: str | Mapping[str, str], key: str | None) -> str:
    if isinstance(location, str):
        return location
    try:
        return location[key or ""]
    except KeyError:
        raise RoutingError(f"An event names the partition {key!r}, for which no location was given") from None


def for_tasks(writer: DataFrameWriter, routing: Sequence[str]) -> DataFrameWriter:
    """A writer whose tasks write a file for each value of the routing columns; Spark's own committer places it."""
    writer = writer.option("maxRecordsPerFile", 0)
    return writer.partitionBy(*routing) if routing else writer


def task_files(hadoop: Hadoop, directory: str, key: str | None = None) -> Iterator[tuple[str | None, str]]:
    """(partition key, path) of every file that Spark committed below ``directory``."""
    for child, is_directory in hadoop.children(directory):
        path = f"{directory}/{child}"
        if is_directory and child.startswith(f"{PARTITION_COLUMN}="):
            yield from task_files(hadoop, path, unquote(child.partition("=")[2]))
        elif is_directory and child.startswith(f"{WRITER_COLUMN}="):
            yield from task_files(hadoop, path, key)
        elif child.startswith(("part-", DELETES_PREFIX)):
            yield key, path


def publish_all(
    hadoop: Hadoop, staged: Sequence[Staged], may_publish: Callable[[], None] = lambda: None
) -> list[WrittenDirectory]:
    """Give complete directories their final names, in this order, if ``may_publish`` does not raise.

    A failure may leave a part: uploads are completed one by one, and on object stores a rename copies file by file. So
    after a failure everything that may be there is removed.
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


def spread(events: DataFrame, routing: Sequence[str]) -> DataFrame:
    """Bring the events of each (partition, writer) together, neighbouring writers in different tasks.

    Writers are few and numbered from 0: hashed they would meet in one task while others idle. Adaptive execution does
    not reduce an explicit number of tasks, however small Spark takes the data to be.
    """
    tasks = 2 * events.sparkSession.sparkContext.defaultParallelism
    others = [F.hash(column) for column in routing if column != WRITER_COLUMN]
    place = reduce(Column.__add__, others, F.col(WRITER_COLUMN).cast("bigint"))
    return events.repartitionById(tasks, F.pmod(place, F.lit(tasks)).cast("int"))


def writer_id(bucket: Column) -> Column:
    """The writer id in a ROW__ID's bucket number: bits 16 to 27 of version 1, the whole number in version 0."""
    is_version_1 = F.shiftrightunsigned(bucket, 29) == 1
    return F.when(is_version_1, F.shiftrightunsigned(bucket, 16).bitwiseAND(MAX_WRITER_ID)).otherwise(bucket)


def orc_type(kind: DataType) -> str:
    """A Spark type in ORC's type language."""
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
