"""The directory of an insert-only table's compaction: rows in, a complete directory of plain files out.

Rule: as for ACID files (``acid_writer``), nothing exists under a final name before it is complete. Files have the
table's own format, no event columns and no marker, and are named as Hive names them (``000000_0``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import StructType

from metastore.acid.names import BaseName, DeltaName, original_file
from metastore.acid_tables.serde_storage import HiveStorage
from metastore.acid_tables.table import FileFormat
from metastore.errors import InvalidOperationError
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.read.serde_files import require_usable, save_serde, written_rows
from metastore.spark.write.acid_writer import (
    WRITER_COLUMN,
    RoutingError,
    Staged,
    WrittenDirectory,
    WrittenFile,
    for_tasks,
    in_order,
    publish_all,
    spread,
    task_files,
)

WRITABLE = ("orc", "parquet")
_COMPRESSION = {"orc": "zlib", "parquet": "snappy"}
"""The compression of each format.

Spark's own choice for ORC is zstd, which Hive before 4 and Trino with Hive 3.1's code cannot read.
"""


def write_plain(
    rows: DataFrame,
    row_type: StructType,
    name: BaseName | DeltaName,
    location: str,
    *,
    staging: str,
    file_format: FileFormat,
    empty: bool,
    order: Sequence[tuple[str, bool]],
    copied: int,
    orc: Mapping[str, str],
    may_publish: Callable[[], None],
) -> list[WrittenDirectory]:
    """Write rows into a directory called ``name`` in ``location``; returns what was published: none without rows.

    ``rows``: the columns of ``row_type``, and ``WRITER_COLUMN`` when the table is bucketed. ``order``: columns that
    each file is sorted by, and whether they ascend. ``copied``: the number of rows that there must be, or nothing is
    published. ``orc``: settings of ORC's writer, where it writes. The others: as for ``staged_acid`` and
    ``publish_all``.
    """
    if isinstance(file_format, HiveStorage):
        file_format.require_writable(location)
        require_usable(rows.sparkSession, file_format)
    elif file_format not in WRITABLE:
        raise InvalidOperationError("The metastore does not say how this table is stored: write it with Hive.")
    hadoop = Hadoop(rows.sparkSession)
    if hadoop.exists(staging):
        raise FileExistsError(f"{staging} exists already: another attempt of the same statement may be running")
    staged = Staged(location, name, f"{staging}/out")
    writing = _Writing(hadoop, rows, row_type, staged, staging, file_format, order, orc)
    try:
        writing.run_tasks()
        writing.collect_files()
        if empty and not staged.files:
            writing.add_empty()
        written = sum(file.rows for file in staged.files)
        if copied != written:
            raise InvalidOperationError(f"{location} has {copied} rows, and {written} were written: none is published")
        return publish_all(hadoop, [staged] if staged.files else [], may_publish)
    finally:
        hadoop.delete(staging)


@dataclass
class _Writing:
    hadoop: Hadoop
    rows: DataFrame
    row_type: StructType
    staged: Staged
    staging: str
    file_format: FileFormat
    order: Sequence[tuple[str, bool]]
    orc: Mapping[str, str]

    @property
    def is_bucketed(self) -> bool:
        return WRITER_COLUMN in self.rows.columns

    def run_tasks(self) -> None:
        """Run the tasks that write the files: one for each bucket, or one for each task."""
        routing = [WRITER_COLUMN] if self.is_bucketed else []
        rows = spread(self.rows) if self.is_bucketed else self.rows
        order = [F.col(name) if ascends else F.col(name).desc() for name, ascends in self.order]
        if routing or order:
            rows = in_order(rows, routing, order)
        self._save(rows.select(*self.row_type.names, *routing), f"{self.staging}/tasks", routing)

    def collect_files(self) -> None:
        """Move every file with rows to its final name in the directory."""
        for path in task_files(self.hadoop, f"{self.staging}/tasks"):
            if count := self._count(path):
                self._place(path, count)

    def add_empty(self) -> None:
        """Add a file without rows to the directory."""
        place = f"{self.staging}/empty"
        none = self.rows.sparkSession.createDataFrame([], self.row_type)
        self._save(none.coalesce(1), place)
        [path] = task_files(self.hadoop, place)
        self._place(path, 0)

    def _save(self, rows: DataFrame, path: str, routing: Sequence[str] = ()) -> None:
        writer = for_tasks(rows.write, routing)
        if isinstance(self.file_format, HiveStorage):
            save_serde(writer, path, self.file_format, rows.sparkSession)
        else:
            writer.format(self.file_format).options(**self._options(self.file_format)).save(path)

    def _options(self, file_format: str) -> dict[str, str]:
        options = dict(self.orc) if file_format == "orc" else {}
        compression = options.pop("orc.compress", _COMPRESSION[file_format]).lower()
        return {**options, "compression": compression}

    def _count(self, path: str) -> int:
        if isinstance(self.file_format, HiveStorage):
            return written_rows(self.hadoop, path)
        return self.hadoop.rows(path) if self.file_format == "orc" else self.hadoop.parquet_rows(path)

    def _place(self, path: str, rows: int) -> None:
        staged = self.staged
        self.hadoop.mkdirs(staged.out)
        bucket = len(staged.files)
        if self.is_bucketed and rows:
            bucket = int(path.rpartition(f"{WRITER_COLUMN}=")[2].partition("/")[0])
        name = original_file(bucket)
        if any(file.path == name for file in staged.files):
            raise RoutingError(f"Two tasks wrote {name} of {staged.path}: one must write all rows of a bucket")
        size = self.hadoop.size(path)
        self.hadoop.rename(path, f"{staged.out}/{name}")
        staged.files.append(WrittenFile(name, rows, size, bucket))
