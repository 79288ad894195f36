"""Publishing ACID ORC files from Spark: events in, finished ``delta_…`` / ``delete_delta_…`` / ``base_…`` directories out.

Rule: tasks only ever write below a hidden staging directory beside the target (Spark's own committer, so retries and
speculation leave one file per task); the driver checks that there is exactly one file per (partition, bucket), gives each
its footer, writes ``_orc_acid_version`` and renames. Nothing exists under a final name before it is complete.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from metastore.acid.names import BaseName, DeltaName

WRITER_COLUMN = "_writer"
"""The column that routes an event: N of the ``bucket_N`` file that it goes to."""

PARTITION_COLUMN = "_partition"
"""The column that routes an event of a partitioned table: its key in ``targets``."""


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
) -> list[WrittenDirectory]:
    """Write events into one directory called ``name`` in each ACID directory that gets rows.

    ``events``: exactly ``operation int, originalTransaction bigint, bucket int, rowId bigint, currentTransaction bigint,
    row struct<table columns, lower case, no partition columns>`` (``row`` null for delete events), plus ``_writer int``
    (N; for delete events the writer id decoded from ``bucket``), plus, when ``location`` is a mapping, ``_partition
    string``, a key of that mapping. Both extra columns are not written.

    ``location``: the ACID directory's URI (unpartitioned table), or {key: ACID directory's URI} for partitions. Several
    partitions are written by one Spark job.

    ``staging``: URI of a hidden directory on the same file system, for example
    ``<table>/.acid_stage_<txn id>_<statement>``; it must not exist and is removed in any case.

    ``empty``: keys (or, unpartitioned, locations) for which a directory with one empty ``bucket_00000`` is published
    when no event goes there (INSERT OVERWRITE, TRUNCATE, MAJOR compaction). Others without events get no directory.

    ``is_routed``: the caller guarantees that all events of one (``_partition``, ``_writer``) are in one Spark partition
    and are already sorted by key (originalTransaction, bucket, rowId ascending, currentTransaction descending), as a fresh
    INSERT has them; otherwise events are shuffled and sorted here.

    Returns what was published, ordered by location. Raises: FileExistsError when a target directory exists (nothing is
    published then), RoutingError when a (partition, writer) pair came out as more than one file.
    """
    raise NotImplementedError
