"""Rebalances: Hive reads the same rows with new ids, and a wrong one is found before anything has its name."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyorc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from metastore.acid.bucket import encode
from metastore.acid.names import DeltaName
from metastore.acid.orc_footer import RowKey
from metastore.acid.snapshots import NO_OPEN, ValidWriteIdList
from metastore.compaction.working.rules import UnprovenError
from metastore.files import Files
from metastore.spark.check.file_check import check_file
from metastore.spark.compaction import job as compact_job
from metastore.spark.compaction import rebalance
from metastore.spark.compaction.live_rows import LiveRows
from tests.support.acid.compacted import compact, fill, hive_rows, not_merged, only
from tests.support.acid.tables import B0, AcidTable
from tests.support.hive_oracle.oracle import HiveOracle

pytestmark = pytest.mark.spark


def _dealt(name: str, change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    real = getattr(compact_job, name)
    return lambda patch: patch.setattr(compact_job, name, lambda *given: change(real(*given)))


def _counted(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    real = LiveRows.counted
    return lambda patch: patch.setattr(
        LiveRows, "counted", lambda *given: replace(live := real(*given), counts=change(live.counts)))


def _sorted_and(plant: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
    def planted(patch: pytest.MonkeyPatch) -> None:
        not_merged(patch)
        plant(patch)
    return planted


@pytest.mark.parametrize(("merged", "deleted"), [(True, 0), (False, 0), (True, 4)], ids=["merged", "surveyed", "merged with deletes"])
def test_a_rebalance_gives_new_ids_and_even_buckets(
        table: AcidTable, oracle: HiveOracle, monkeypatch: pytest.MonkeyPatch, merged: bool, deleted: int) -> None:
    """COMP-W18: deletes are applied, write ids are kept, row ids ascend over the buckets."""
    surveys: list[object] = []
    survey = rebalance._survey
    monkeypatch.setattr(rebalance, "_survey", lambda *rows: surveys.append(rows) or survey(*rows))
    if not merged:
        not_merged(monkeypatch)
    fill(table)
    for name in table.names():
        if name.startswith("delete_") and not deleted:
            shutil.rmtree(table.directory / name)
    before = hive_rows(oracle, table.directory, table, f"4:{NO_OPEN}::")

    result = compact(table, "rebalance", f"4:{NO_OPEN}::", number_of_buckets=3)

    assert bool(surveys) != merged
    assert result.directories == ("base_0000004_v0000020",)
    assert (result.rows_in, result.rows_out, result.rows_deleted) == (17 + deleted, 17 - deleted, deleted)
    rows = hive_rows(oracle, only(table, *result.directories), table, f"4:{NO_OPEN}::")
    shares = (5, 4, 4) if deleted else (6, 6, 5)
    buckets = [encode(bucket) for bucket, share in enumerate(shares) for _ in range(share)]
    assert [(row_id, value) for row_id, value in sorted(rows, key=lambda row: row[0][2])] == [
        ((row_id[0], bucket, number), value) for number, (bucket, (row_id, value)) in enumerate(zip(buckets, before, strict=True))]
    assert not [child.name for child in table.directory.iterdir() if child.name.startswith(".")]
    base = table.state(ValidWriteIdList("db.t", 4)).base
    assert base
    assert [found for file in base.bucket_files for found in check_file(Files(), str(table.directory), file.path, base)] == []


@pytest.mark.slow  # beside three buckets
def test_a_rebalance_into_one_bucket(table: AcidTable, oracle: HiveOracle) -> None:
    fill(table)

    result = compact(table, "rebalance", f"4:{NO_OPEN}::", number_of_buckets=1)

    rows = hive_rows(oracle, only(table, *result.directories), table, f"4:{NO_OPEN}::")
    assert sorted(row_id[1:] for row_id, _ in rows) == [(B0, number) for number in range(13)]


def test_a_rebalance_of_deleted_rows_is_an_empty_base(table: AcidTable, oracle: HiveOracle) -> None:
    """COMP-W34."""
    table.insert(DeltaName(1, 1, 0), [(1, B0, 0, ["a"]), (1, B0, 1, ["b"])])
    table.delete(DeltaName(2, 2, 0), [(2, (1, B0, 0)), (2, (1, B0, 1))])

    result = compact(table, "rebalance", f"2:{NO_OPEN}::", number_of_buckets=2)

    assert (result.directories, result.rows_out, result.rows_deleted) == (("base_0000002_v0000020",), 0, 2)
    assert hive_rows(oracle, only(table, *result.directories), table, f"2:{NO_OPEN}::") == []


@pytest.mark.slow
def test_a_rebalance_sorts_as_it_is_told(spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    """Into fewer buckets than there were; all rows get the highest write id. NULLs stand where Hive 4 has them."""
    table = AcidTable(spark, tmp_path, {"n": "int", "v": "string"})
    values: list[tuple[int | None, str | None]] = [(3, "x"), (None, "a"), (1, "y"), (3, None), (None, None), (2, "ü"), (3, "z")]
    for number, pair in enumerate(values, 1):
        table.insert(DeltaName(number, number, 0), [(number, encode(number % 3), 0, list(pair))])

    result = compact(table, "rebalance", f"7:{NO_OPEN}::", order_by="ORDER BY `N` DESC, v", number_of_buckets=2,
                      properties={"orc.compress": "SNAPPY", "orc.row.index.stride": "1000", "orc.bloom.filter.columns": "v,w"})

    rows = oracle.rows(only(table, *result.directories), ValidWriteIdList("db.t", 7), table.columns)
    ordered = sorted((row.row_id[2], row.row_id, tuple(row.values)) for row in rows)
    assert [pair for _, _, pair in ordered] == [
        (None, "a"), (None, None), (3, "x"), (3, "z"), (3, None), (2, "ü"), (1, "y")]
    assert [row_id for _, row_id, _ in ordered] == [(7, encode(number // 4), number) for number in range(7)]
    with (tmp_path / result.directories[0] / "bucket_00000").open("rb") as file:
        written = pyorc.Reader(file)
        assert (written.compression, written.row_index_stride) == (pyorc.CompressionKind.SNAPPY, 1000)
        assert written.schema.find_column_id("row.v") in written.read_stripe(0).bloom_filter_columns


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "said"), [
    pytest.param(lambda patch: patch.setattr(LiveRows, "at", lambda *_: [RowKey(9, 0, 0)]),
                 "Bucket 0 has 13 rows instead of 7", id="uneven"),
    pytest.param(_counted(lambda counts: [*counts[:-1], counts[-1] + 1]),
                 "14 rows were dealt to buckets, and the input files have 13", id="counted too many"),
    pytest.param(_counted(lambda counts: [*counts[:-1], counts[-1] - 1]),
                 "12 rows were dealt to buckets, and the input files have 13", id="counted too few"),
    pytest.param(_dealt("in_order", lambda events: events._replace(numbers=[(0, number) for _, number in events.numbers])),
                 "The row ids of bucket 1 begin with 0 instead of 7", id="ids given twice"),
    pytest.param(_dealt("in_order", lambda events: events._replace(rows=events.rows.where("rowId > 0"))),
                 "The input files have 17 rows, and 12 were read", id="lost rows"),
    pytest.param(_dealt("in_order", lambda events: events._replace(rows=events.rows.where("operation = 0"))),
                 "The input files have 4 delete events, and 0 were read", id="lost deletes"),
    pytest.param(_sorted_and(lambda patch: patch.setattr(rebalance, "_bucket", lambda *_: F.lit(0))),
                 "Bucket 0 has 13 rows instead of 7", id="sorted, uneven"),
    pytest.param(_sorted_and(_dealt("deal", lambda rows: rows.withColumn("rowId", F.col("rowId").bitwiseAND(3)))),
                 "do not follow the one before them", id="sorted, ids given twice"),
    pytest.param(_sorted_and(_dealt("deal", lambda rows: rows.where("rowId > 0"))),
                 "The input files have 13 rows, and 12 were read", id="sorted, lost rows"),
])
def test_a_planted_fault_of_a_rebalance_is_found(
        table: AcidTable, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], said: str) -> None:
    fill(table)
    before = table.names()
    plant(monkeypatch)

    with pytest.raises(UnprovenError, match=said):
        compact(table, "rebalance", f"4:{NO_OPEN}::")

    assert table.names() == before
