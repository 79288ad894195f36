"""Read costs of the deltas of tables and partitions, and files that only wait for the Cleaner.

Rule: a score is in files: opening one costs as much as reading 4 MiB (Spark's spark.sql.files.openCostInBytes), so it
is the files of the deltas, and their bytes divided by that. 0: readers open the base alone. A delta is small below a
part of the base (``hive.txn.acid.metrics.delta.pct.threshold``), and never without a base. Source: Hive's
DeltaFilesMetricReporter.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from metastore.acid.names import DELETE_DELTA_PREFIX, DELTA_PREFIX
from metastore.acid.state import AcidState
from metastore.compaction.queue.rules.requests import Entity
from metastore.ids import TableName

OPEN_COST = 4 << 20
"""The bytes that could be read while a file is opened."""
HALF_LIFE_OF_SCORES = timedelta(hours=12)
"""A score of so long ago counts half as much as that of now, in the mean that is usual."""
FORGOTTEN_BELOW = 1.0
"""The limit of a usual score below which the row of an entity without deltas is removed."""


class Counted(StrEnum):
    """The figures that Hive's compactors count of a table or partition; the value is the stored text."""

    DELTAS = "deltas"
    SMALL_DELTAS = "small_deltas"
    OBSOLETE_DELTAS = "obsolete_deltas"


class Deltas(NamedTuple):
    """The delta files of a table or partition. ``files`` and ``size``: of the deltas that readers read.

    ``obsolete_size``: the bytes of files that no new reader reads.
    """

    deltas: int = 0
    small_deltas: int = 0
    obsolete_deltas: int = 0
    files: int = 0
    size: int = 0
    obsolete_size: int = 0

    @property
    def score(self) -> float:
        """The read amplification: the cost of reading the deltas, as a number of files."""
        return self.files + self.size / OPEN_COST


class Writes(NamedTuple):
    """The number of recent writers to a table, and the parameters of its database and its own."""

    table: TableName
    number: int
    of_database: Mapping[str, str]
    of_table: Mapping[str, str]


class DeltasOf(NamedTuple):
    """A table or partition, and its deltas. ``usual``: the mean of its score by `HALF_LIFE_OF_SCORES`."""

    entity: Entity
    deltas: Deltas
    usual: float = 0.0


def deltas_of(state: AcidState, small: float) -> Deltas:
    """Count the directories that a reader chooses. ``small``: a delta below this part of the base is small."""
    base = sum(file.size for file in (state.base.files if state.base else state.originals))
    sizes = [sum(file.size for file in delta.files) for delta in state.deltas]
    return Deltas(
        len(sizes),
        sum(size < small * base for size in sizes),
        sum(path.startswith((DELTA_PREFIX, DELETE_DELTA_PREFIX)) for path in state.obsolete),
        sum(len(delta.files) for delta in state.deltas),
        sum(sizes),
        state.held_size,
    )
