"""An ACID directory written event by event, for tests of readers, of the compaction job and of Hive's reader."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from metastore.acid.bucket import encode, writer_id_sql
from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import AcidState, acid_state
from metastore.files import Files
from metastore.spark.jvm.hadoop import Hadoop
from metastore.spark.write.acid_writer import WRITER_COLUMN, WrittenDirectory, publish_all, staged_acid
from metastore.spark.write.event_format import Counting

RowId = tuple[int, int, int]
B0, B1 = encode(0), encode(1)


def write_acid(events: DataFrame, name: BaseName | DeltaName, directory: Path, **options: Any) -> list[WrittenDirectory]:
    """Publish events, as for ``staged_acid``, in a directory of an ACID directory."""
    with staged_acid(events, name, str(directory), staging=f"{directory}/.stage", counting=Counting(merges=False), **options) as staged:
        return publish_all(Hadoop(events.sparkSession), staged.directories)


@dataclass
class AcidTable:
    """Columns as Hive names their types; every row is a tuple in that order."""

    spark: SparkSession
    directory: Path
    columns: dict[str, str] = field(default_factory=lambda: {"v": "string"})

    def insert(self, name: BaseName | DeltaName, rows: Sequence[tuple[int, int, int, Sequence[Any]]],
               **options: Any) -> list[WrittenDirectory]:
        """Write insert events, each given as (write id, bucket, row id, values)."""
        events = [(0, wid, bucket, row, wid, tuple(values)) for wid, bucket, row, values in rows]
        return self._write(events, name, **options)

    def delete(self, name: DeltaName, events: Sequence[tuple[int, RowId]]) -> list[WrittenDirectory]:
        """Write delete events, each given as (write id of the deleter, ROW__ID)."""
        return self._write([(2, *row_id, current, None) for current, row_id in events], name._replace(is_delete=True))

    def state(self, write_ids: ValidWriteIdList) -> AcidState:
        """Return the state that our own rules choose."""
        files = Files()
        return acid_state(files.listing(str(self.directory)), write_ids, ValidTxnList.everything(),
                          lambda path: files.read(f"{self.directory}/{path}"))

    def names(self) -> list[str]:
        """Return the names of the directories that readers may see."""
        return sorted(child.name for child in self.directory.iterdir() if child.name[0] not in "._")

    @property
    def schema(self) -> str:
        row = ",".join(f"{name}:{kind}" for name, kind in self.columns.items())
        return ("operation int, originalTransaction bigint, bucket int, rowId bigint, currentTransaction bigint, "
                f"row struct<{row}>")

    def _write(self, events: list[tuple[Any, ...]], name: BaseName | DeltaName, **options: Any) -> list[WrittenDirectory]:
        frame: DataFrame = self.spark.createDataFrame(events, self.schema)
        frame = frame.withColumn(WRITER_COLUMN, F.expr(writer_id_sql("bucket")))
        return write_acid(frame, name, self.directory, **options)
