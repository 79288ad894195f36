"""Tables of a few rows, compacted by the job alone, and what Hive reads of them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metastore.acid.names import DeltaName
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid_tables.table import HiveColumn
from metastore.compaction.working.job_specification import CompactionJobResult, CompactionJobSpec
from metastore.spark.compaction import events as compacted_events
from metastore.spark.compaction.job import run
from tests.support.acid.tables import B0, B1, AcidTable
from tests.support.hive_oracle.oracle import HiveOracle, HiveRow

TXN = 20


def compact(table: AcidTable, kind: str, write_ids: str, *, highest: int | None = None, txn_id: int = TXN,
             may_publish: Callable[[], None] = lambda: None, **more: Any) -> CompactionJobResult:
    mark = ValidWriteIdList.parse(f"db.t:{write_ids}").for_compactor().high_watermark
    spec = CompactionJobSpec(
        compaction_id=1, attempt=1, kind=kind, catalog="hive", database="db", table="t", partition="",
        location=str(table.directory), write_ids=f"db.t:{write_ids}", txns="", txn_id=txn_id,
        highest_write_id=mark if highest is None else highest, **more)
    return run(table.spark, spec, [HiveColumn(name, kind) for name, kind in table.columns.items()],
               may_publish=may_publish)


def only(table: AcidTable, *names: str) -> Path:
    """Copy some directories, without the ``_v`` that Hive 2.3 cannot read, and return the directory of the copies."""
    place = table.directory.parent / "only"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in names:
        shutil.copytree(table.directory / name, place / name.partition("_v")[0])
    return place


def hive_rows(oracle: HiveOracle, place: Path, table: AcidTable, write_ids: str) -> list[tuple[tuple[int, int, int], Any]]:
    rows: list[HiveRow] = oracle.rows(place, ValidWriteIdList.parse(f"db.t:{write_ids}"), table.columns)
    return sorted((row.row_id, row.values[0]) for row in rows)


def fill(table: AcidTable) -> None:
    """Two inserts into two buckets, an update, a delete of a row of each bucket."""
    for write_id in (1, 2):
        rows = [(write_id, bucket, row, [f"w{write_id}b{bucket & 0xFFFF0000}r{row}"]) for bucket in (B0, B1) for row in range(4)]
        table.insert(DeltaName(write_id, write_id, 0), rows)
    table.delete(DeltaName(3, 3, 0), [(3, (1, B0, 1)), (3, (2, B1, 3))])
    table.insert(DeltaName(3, 3, 0), [(3, B0, 0, ["new"])])
    table.delete(DeltaName(4, 4, 0), [(4, (1, B0, 3)), (4, (1, B1, 0))])


def not_merged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compacted_events, "by_bucket", lambda _: [])
