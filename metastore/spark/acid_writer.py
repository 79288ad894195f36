"""Publishing ACID ORC files from Spark: events in, finished ``base_…``, ``delta_…`` and ``delete_delta_…`` out.

Rule: tasks only ever write below a hidden staging directory beside the target (Spark's own committer, so retries and
speculation leave one file per task); the driver checks that there is exactly one file per (partition, bucket), gives
each its footer, writes ``_orc_acid_version`` and renames. Nothing exists under a final name before it is complete.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, DataFrameWriter
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from metastore.acid.bucket import MAX_WRITER_ID, decode
from metastore.acid.events import EVENT_COLUMNS
from metastore.acid.names import VERSION_FILE, VERSION_TEXT, BaseName, DeltaName, bucket_file
from metastore.acid.orc_footer import acid_entries
from metastore.errors import InvalidOperationError, MetaError
from metastore.spark.event_format import event_format
from metastore.spark.hadoop import Hadoop, OrcSummary

_KEY = ("originalTransaction", "bucket", "rowId")

WRITER_COLUMN = "_writer"
"""The column that routes an event: N of the ``bucket_N`` file that it goes to."""

PARTITION_COLUMN = "_partition"
"""The column that routes an event of a partitioned table: its key in ``targets``."""


class RoutingError(MetaError):
    """Events came out of the tasks in files that no ACID directory may have: a fault of the caller's routing."""


class LeftoverError(MetaError):
    """A part of what a statement wrote is there and cannot be removed: its transaction must not be committed."""


@dataclass(frozen=True)
class WrittenFile:
    """A published data file."""

    path: str
    rows: int
    size: int
    bucket: int


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
    def size(self) -> int:
        """Bytes in all files."""
        return sum(file.size for file in self.files)


def write_acid(
    events: DataFrame,
    name: BaseName | DeltaName,
    location: str | Mapping[str, str],
    *,
    staging: str,
    empty: Sequence[str] = (),
    is_routed: bool = False,
    compression: str = "zlib",
) -> list[WrittenDirectory]:
    """Write events into one directory called ``name`` in each ACID directory that gets rows.

    ``events``: exactly ``operation int, originalTransaction bigint, bucket int, rowId bigint, currentTransaction
    bigint, row struct<table columns, lower case, no partition columns>`` (``row`` null for delete events), plus
    ``_writer int`` (N; for delete events the writer id decoded from ``bucket``), plus, when ``location`` is a mapping,
    ``_partition string``, a key of that mapping. Both extra columns are not written.

    ``location``: the ACID directory's URI (unpartitioned table), or {key: ACID directory's URI} for partitions. Several
    partitions are written by one Spark job.

    ``staging``: URI of a hidden directory on the same file system, for example
    ``<table>/.acid_stage_<txn id>_<statement>``; it must not exist and is removed in any case.

    ``empty``: keys (or, unpartitioned, locations) for which a directory with one empty ``bucket_00000`` is published
    when no event goes there (INSERT OVERWRITE, TRUNCATE, MAJOR compaction). Others without events get no directory.

    ``compression``: zlib or snappy; the others are unknown to Hive before 4.

    ``is_routed``: the caller guarantees that all events of one (``_partition``, ``_writer``) are in one Spark partition
    and are already sorted by key (originalTransaction, bucket, rowId ascending, currentTransaction descending), as a
    fresh INSERT has them; otherwise events are shuffled and sorted here.

    Returns what was published, ordered by location. Raises: FileExistsError when a target directory exists (nothing is
    published then), RoutingError when a (partition, writer) pair came out as more than one file, InvalidOperationError
    for a column that Spark would store as another type.
    """
    if '"timestamp_ntz"' in events.schema.json():
        raise InvalidOperationError("Spark would store a timestamp_ntz column as a bigint: cast it to timestamp")
    hadoop = Hadoop(events.sparkSession)
    if hadoop.exists(staging):
        raise FileExistsError(f"{staging} exists already: another attempt of the same statement may be running")
    writing = _Writing(hadoop, events, name, location, staging)
    try:
        writing.run_tasks(is_routed=is_routed, compression=compression)
        writing.collect_files()
        writing.add_empty(empty)
        return writing.publish()
    finally:
        hadoop.delete(staging)


@dataclass
class _Writing:
    """One call's work. Below ``staging``, ``tasks/`` is Spark's output and each ``out/<n>/`` a directory to publish."""

    hadoop: Hadoop
    events: DataFrame
    name: BaseName | DeltaName
    location: str | Mapping[str, str]
    staging: str
    targets: dict[str, list[WrittenFile]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def is_delete(self) -> bool:
        return isinstance(self.name, DeltaName) and self.name.is_delete

    def run_tasks(self, *, is_routed: bool, compression: str) -> None:
        """Let Spark write the files, one for each (partition, writer)."""
        routing = [] if isinstance(self.location, str) else [PARTITION_COLUMN]
        if not is_routed:
            routing.append(WRITER_COLUMN)
        events = self.events
        if not is_routed:
            events = spread(events, routing)
        if routing:
            order = [F.col(column) for column in (*routing, *_KEY)]
            events = events.sortWithinPartitions(*order, F.col("currentTransaction").desc())
        writer = events.select(*EVENT_COLUMNS, *routing).write.option("compression", compression)
        jvm_writer = for_tasks(writer, routing)._jwrite  # noqa: SLF001 - PySpark cannot name a data source of ours
        event_format(events.sparkSession).save(jvm_writer, f"{self.staging}/tasks")

    def collect_files(self) -> None:
        """Find what the tasks wrote; give every file its place and its footer."""
        for key, path in task_files(self.hadoop, f"{self.staging}/tasks"):
            summary = self.hadoop.summary(path)
            if not summary.rows:
                continue
            bucket = _writer_id(path, summary)
            files = self.targets.setdefault(self._location_of(key), [])
            if any(file.bucket == bucket for file in files):
                raise RoutingError(
                    f"Two tasks wrote {bucket_file(bucket)} of {self.name} for {key or self.location}: "
                    "all events of one partition and writer must come from one task"
                )
            out = self._out(self._location_of(key))
            if not files:
                self.hadoop.mkdirs(out)
            self.hadoop.rename(path, f"{out}/{bucket_file(bucket)}")
            entries = acid_entries(summary.stripe_ends, summary.rows, is_delete=self.is_delete)
            self.hadoop.add_footer_entries(f"{out}/{bucket_file(bucket)}", entries)
            size = self.hadoop.size(f"{out}/{bucket_file(bucket)}")
            files.append(WrittenFile(bucket_file(bucket), summary.rows, size, bucket))

    def add_empty(self, keys: Sequence[str]) -> None:
        """Give each of these that got no events a directory with one file without rows."""
        for key in keys:
            location = key if isinstance(self.location, str) else self._location_of(key)
            if location in self.targets:
                continue
            self.targets[location] = []
            path = f"{self._out(location)}/{bucket_file(0)}"
            entries = acid_entries((), 0, is_delete=self.is_delete)
            schema = orc_type(self.events.select(*EVENT_COLUMNS).schema)
            self.hadoop.write_empty_orc(path, schema, entries)
            self.targets[location] = [WrittenFile(bucket_file(0), 0, self.hadoop.size(path), 0)]

    def publish(self) -> list[WrittenDirectory]:
        """Mark everything as ours and rename it to its final name."""
        for location in self.targets:
            self.hadoop.write(f"{self._out(location)}/{VERSION_FILE}", VERSION_TEXT)
        return publish_all(self.hadoop, self.name, {self._out(one): one for one in self.targets}, self.targets)

    def _location_of(self, key: str | None) -> str:
        if isinstance(self.location, str):
            return self.location
        try:
            return self.location[key or ""]
        except KeyError:
            raise RoutingError(f"An event names the partition {key!r}, for which no location was given") from None

    def _out(self, location: str) -> str:
        return f"{self.staging}/out/{self.numbers.setdefault(location, len(self.numbers))}"


def for_tasks(writer: DataFrameWriter, routing: Sequence[str]) -> DataFrameWriter:
    """A writer whose tasks write one file for each value of the routing columns; Spark's own committer places them."""
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
        elif child.startswith("part-"):
            yield key, path


def publish_all(hadoop: Hadoop, name: BaseName | DeltaName, outs: Mapping[str, str],
                targets: Mapping[str, list[WrittenFile]]) -> list[WrittenDirectory]:
    """Rename finished directories (``outs``: path → location) to their final name.

    A rename that fails may have happened in part, where it is a copy of file after file (object stores). So after a
    failure all that may be there is removed again.
    Raises: FileExistsError; LeftoverError when that cannot be removed.
    """
    for location in outs.values():
        if hadoop.exists(f"{location}/{name}"):
            raise FileExistsError(f"{location}/{name} exists already: nothing was published")
    published: list[WrittenDirectory] = []
    try:
        for out, location in sorted(outs.items(), key=lambda pair: pair[1]):
            hadoop.mkdirs(location)
            path = f"{location}/{name}"
            hadoop.rename(out, path)
            final = [replace(file, path=f"{path}/{file.path}") for file in targets[location]]
            final.sort(key=lambda file: (file.bucket, file.path))
            published.append(WrittenDirectory(location, path, tuple(final)))
    except BaseException as error:
        _withdraw(hadoop, [f"{location}/{name}" for location in outs.values()], error)
        raise
    return published


def _withdraw(hadoop: Hadoop, paths: Sequence[str], failure: BaseException) -> None:
    try:
        for path in paths:
            hadoop.delete(path)
    except Exception as error:  # noqa: BLE001 - whatever the store says, the transaction is over
        raise LeftoverError(f"{failure}; and what was written of it cannot be removed: {error}") from failure


def spread(events: DataFrame, routing: Sequence[str]) -> DataFrame:
    """Bring the events of each (partition, writer) together, neighbouring writers in different tasks.

    Writers are few and numbered from 0: hashed they would meet in one task while others idle. A number of tasks that is
    given is one that adaptive execution does not reduce, however small Spark takes the data to be.
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


def _writer_id(path: str, summary: OrcSummary) -> int:
    """The one writer id of all rows of a file, from the file's own statistics (the writer id is the highest part)."""
    low, high = (decode(number or 0).writer_id for number in (summary.min_bucket, summary.max_bucket))
    if low != high:
        raise RoutingError(f"{path} holds events of writers {low} to {high}; a file must hold one writer's")
    return low
