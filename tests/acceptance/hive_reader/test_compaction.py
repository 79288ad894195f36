"""The compaction job: what it writes is read by Hive, and says the same as what it was written from."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.compaction_memory import events, write
from metastore.acid.bucket import encode
from metastore.acid.events import DELETE_EVENT, INSERT_EVENT
from metastore.acid.names import BaseName, DeltaName
from metastore.acid.orc_footer import RowKey
from metastore.acid.snapshots import NO_OPEN, ValidWriteIdList
from metastore.acid_tables.table import HiveColumn
from metastore.compaction.merging import rules as merging
from metastore.compaction.merging.rules import open_at_once
from metastore.compaction.working.job import CompactionJobResult, CompactionJobSpec
from metastore.compaction.working.rules import UnprovenError
from metastore.errors import ClaimLostError, InvalidOperationError
from metastore.files import Files
from metastore.spark.check.file_check import check_file
from metastore.spark.compaction import events as compacted_events
from metastore.spark.compaction import job as compact_job
from metastore.spark.compaction import rebalance, stripes
from metastore.spark.compaction.job import run
from metastore.spark.compaction.live_rows import LiveRows
from metastore.spark.compaction.merged import OF_DELETES
from metastore.spark.write import acid_writer
from tests.support.acid.tables import B0, B1, AcidTable
from tests.support.hive_oracle.oracle import HiveOracle, HiveRow

pytestmark = pytest.mark.spark

TXN = 20


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> AcidTable:
    (tmp_path / "t").mkdir()
    return AcidTable(spark, tmp_path / "t")


def _compact(table: AcidTable, kind: str, write_ids: str, *, highest: int | None = None, txn_id: int = TXN,
             may_publish: Callable[[], None] = lambda: None, **more: Any) -> CompactionJobResult:
    mark = ValidWriteIdList.parse(f"db.t:{write_ids}").for_compactor().high_watermark
    spec = CompactionJobSpec(
        compaction_id=1, attempt=1, kind=kind, catalog="hive", database="db", table="t", partition="",
        location=str(table.directory), write_ids=f"db.t:{write_ids}", txns="", txn_id=txn_id,
        highest_write_id=mark if highest is None else highest, **more)
    return run(table.spark, spec, [HiveColumn(name, kind) for name, kind in table.columns.items()],
               may_publish=may_publish)


def _only(table: AcidTable, *names: str) -> Path:
    """A copy of some directories, without the ``_v`` that Hive 2.3 cannot read."""
    place = table.directory.parent / "only"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in names:
        shutil.copytree(table.directory / name, place / name.partition("_v")[0])
    return place


def _hive(oracle: HiveOracle, place: Path, table: AcidTable, write_ids: str) -> list[tuple[tuple[int, int, int], Any]]:
    rows: list[HiveRow] = oracle.rows(place, ValidWriteIdList.parse(f"db.t:{write_ids}"), table.columns)
    return sorted((row.row_id, row.values[0]) for row in rows)


def _fill(table: AcidTable) -> None:
    """Two inserts into two buckets, an update, a delete of a row of each bucket."""
    for write_id in (1, 2):
        rows = [(write_id, bucket, row, [f"w{write_id}b{bucket & 0xFFFF0000}r{row}"]) for bucket in (B0, B1) for row in range(4)]
        table.insert(DeltaName(write_id, write_id, 0), rows)
    table.delete(DeltaName(3, 3, 0), [(3, (1, B0, 1)), (3, (2, B1, 3))])
    table.insert(DeltaName(3, 3, 0), [(3, B0, 0, ["new"])])
    table.delete(DeltaName(4, 4, 0), [(4, (1, B0, 3)), (4, (1, B1, 0))])


def test_minor_and_major_keep_what_hive_reads(table: AcidTable, oracle: HiveOracle) -> None:
    _fill(table)
    inputs = table.names()
    before = _hive(oracle, table.directory, table, f"4:{NO_OPEN}::")
    assert len(before) == 13

    minor = _compact(table, "minor", f"4:{NO_OPEN}::")

    assert minor.directories == ("delete_delta_0000001_0000004_v0000020", "delta_0000001_0000004_v0000020")
    assert (minor.rows_in, minor.rows_out) == (21, 21)
    assert _hive(oracle, _only(table, *minor.directories), table, f"4:{NO_OPEN}::") == before
    assert _hive(oracle, _only(table, *minor.directories), table, "4:4:4:") == _hive(oracle, _only(table, *inputs), table, "4:4:4:")

    major = _compact(table, "major", f"4:{NO_OPEN}::", txn_id=21)

    assert major.directories == ("base_0000004_v0000021",)
    assert (major.rows_in, major.rows_out, major.rows_deleted) == (21, 13, 4)
    assert _hive(oracle, _only(table, *major.directories), table, f"4:{NO_OPEN}::") == before
    assert set(inputs) < set(table.names()), "inputs are the Cleaner's"
    assert not [child.name for child in table.directory.iterdir() if child.name.startswith(".")]
    state = table.state(ValidWriteIdList("db.t", 4))
    assert state.base
    assert state.base.name == BaseName(4, 21)
    assert state.deltas == ()


def _dealt(name: str, change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    real = getattr(compact_job, name)
    return lambda patch: patch.setattr(compact_job, name, lambda *given: change(real(*given)))


def _counted(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    real = LiveRows.counted
    return lambda patch: patch.setattr(
        LiveRows, "counted", lambda *given: replace(live := real(*given), counts=change(live.counts)))


def _not_merged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compacted_events, "by_bucket", lambda _: [])


def _sorted_and(plant: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
    def planted(patch: pytest.MonkeyPatch) -> None:
        _not_merged(patch)
        plant(patch)
    return planted


def _many(table: AcidTable) -> None:
    """11 deltas of three rows, and 12 of deletes, each of a row and the last of two; in one bucket."""
    for write_id in range(1, 12):
        rows = pa.array(range(3), pa.int64())
        write(table.directory / str(DeltaName(write_id, write_id, 0)), 0, iter([events(INSERT_EVENT, write_id, 0, rows, write_id)]))
    for write_id in range(12, 24):
        rows = pa.array([0, 2] if write_id == 23 else [1], pa.int64())
        name = DeltaName(write_id, write_id, 0, is_delete=True)
        write(table.directory / str(name), 0, iter([events(DELETE_EVENT, 1 + write_id % 11, 0, rows, write_id)]))


def test_more_files_than_may_be_open_are_sorted_instead_of_merged(
        spark: SparkSession, tmp_path: Path, oracle: HiveOracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """COMP-W33. Deltas of inserts are open one after the other, those of deletes together."""
    table = AcidTable(spark, tmp_path / "t", {"id": "int"})
    table.directory.mkdir()
    _many(table)
    merged, limits = compacted_events.merged_events, []

    def noted(*given: Any) -> DataFrame:
        limits.append(max(open_at_once(task.files) for task in given[2]))
        return merged(*given)

    monkeypatch.setattr(compacted_events, "merged_events", noted)
    minor = _compact(table, "minor", f"23:{NO_OPEN}::", max_num_delta=5)
    assert limits == [1], "deletes are sorted"
    before = _hive(oracle, _only(table, *minor.directories), table, f"23:{NO_OPEN}::")
    assert (len(before), minor.rows_in, minor.rows_out) == (20, 46, 46)

    for limit in (5, 13):
        for name in table.names():
            if "_v" in name:
                shutil.rmtree(table.directory / name)
        major = _compact(table, "major", f"23:{NO_OPEN}::", max_num_delta=limit)
        assert (major.rows_in, major.rows_out, major.rows_deleted) == (46, 20, 13)
        assert _hive(oracle, _only(table, *major.directories), table, f"23:{NO_OPEN}::") == before
    assert limits == [1, 13]


def test_a_minor_compaction_copies_large_stripes_as_they_lie(
        table: AcidTable, oracle: HiveOracle, monkeypatch: pytest.MonkeyPatch) -> None:
    for rules in (merging, compact_job):
        monkeypatch.setattr(rules, "LARGE_STRIPE", 1)
    _fill(table)
    inputs = table.names()
    before = _hive(oracle, table.directory, table, f"4:{NO_OPEN}::")
    with monkeypatch.context() as planted:
        planted.setattr(stripes, "in_one_file", lambda bucket, files: merging.in_one_file(bucket, files)[1:])
        with pytest.raises(UnprovenError, match=r"Bucket 0: the input files have 9 insert events, and 5 were read"):
            _compact(table, "minor", f"4:{NO_OPEN}::")

    minor = _compact(table, "minor", f"4:{NO_OPEN}::", txn_id=21)

    inserts = minor.directories[1]
    assert (minor.rows_in, minor.rows_out) == (21, 21)
    with (table.directory / inserts / "bucket_00000").open("rb") as file:
        copied = pyorc.Reader(file)
        assert (len(copied), copied.num_of_stripes) == (9, 3), "a stripe for each file"
        assert copied.user_metadata["hive.acid.key.index"].count(b";") == 3
        assert copied.user_metadata["hive.acid.stats"] == b"9,0,0"
    for name in inputs:
        shutil.rmtree(table.directory / name)
    assert _hive(oracle, _only(table, *minor.directories), table, f"4:{NO_OPEN}::") == before
    delta = table.state(ValidWriteIdList("db.t", 4)).insert_deltas[0]
    assert [found for file in delta.bucket_files for found in check_file(Files(), str(table.directory), file.path, delta)] == []


def test_files_in_another_order_are_sorted(table: AcidTable, oracle: HiveOracle, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        order = acid_writer._Writing._order
        patched.setattr(acid_writer._Writing, "_order", lambda self: [F.col("rowId").desc(), *order(self)])
        _fill(table)

    major = _compact(table, "major", f"4:{NO_OPEN}::")

    assert (major.rows_in, major.rows_out, major.rows_deleted) == (21, 13, 4)
    assert len(_hive(oracle, _only(table, *major.directories), table, f"4:{NO_OPEN}::")) == 13


@pytest.mark.parametrize(("most", "deleted"), [(rebalance._MOST, 0), (0, 0), (0, 4)], ids=["by footers", "surveyed", "counted by ids"])
def test_a_rebalance_gives_new_ids_and_even_buckets(
        table: AcidTable, oracle: HiveOracle, monkeypatch: pytest.MonkeyPatch, most: int, deleted: int) -> None:
    """COMP-W18: deletes are applied, write ids are kept, row ids ascend over the buckets."""
    surveys: list[object] = []
    survey = rebalance._survey
    monkeypatch.setattr(rebalance, "_survey", lambda *rows: surveys.append(rows) or survey(*rows))
    monkeypatch.setattr(rebalance, "_MOST", most)
    _fill(table)
    for name in table.names():
        if name.startswith("delete_") and not deleted:
            shutil.rmtree(table.directory / name)
    before = _hive(oracle, table.directory, table, f"4:{NO_OPEN}::")

    result = _compact(table, "rebalance", f"4:{NO_OPEN}::", number_of_buckets=3)

    assert bool(surveys) == (most == 0 and not deleted)
    assert result.directories == ("base_0000004_v0000020",)
    assert (result.rows_in, result.rows_out, result.rows_deleted) == (17 + deleted, 17 - deleted, deleted)
    rows = _hive(oracle, _only(table, *result.directories), table, f"4:{NO_OPEN}::")
    shares = (5, 4, 4) if deleted else (6, 6, 5)
    buckets = [encode(bucket) for bucket, share in enumerate(shares) for _ in range(share)]
    assert [(row_id, value) for row_id, value in sorted(rows, key=lambda row: row[0][2])] == [
        ((row_id[0], bucket, number), value) for number, (bucket, (row_id, value)) in enumerate(zip(buckets, before, strict=True))]
    assert not [child.name for child in table.directory.iterdir() if child.name.startswith(".")]
    base = table.state(ValidWriteIdList("db.t", 4)).base
    assert base
    assert [found for file in base.bucket_files for found in check_file(Files(), str(table.directory), file.path, base)] == []


def test_a_rebalance_into_one_bucket(table: AcidTable, oracle: HiveOracle) -> None:
    _fill(table)

    result = _compact(table, "rebalance", f"4:{NO_OPEN}::", number_of_buckets=1)

    rows = _hive(oracle, _only(table, *result.directories), table, f"4:{NO_OPEN}::")
    assert sorted(row_id[1:] for row_id, _ in rows) == [(B0, number) for number in range(13)]


def test_a_rebalance_of_deleted_rows_is_an_empty_base(table: AcidTable, oracle: HiveOracle) -> None:
    """COMP-W34."""
    table.insert(DeltaName(1, 1, 0), [(1, B0, 0, ["a"]), (1, B0, 1, ["b"])])
    table.delete(DeltaName(2, 2, 0), [(2, (1, B0, 0)), (2, (1, B0, 1))])

    result = _compact(table, "rebalance", f"2:{NO_OPEN}::", number_of_buckets=2)

    assert (result.directories, result.rows_out, result.rows_deleted) == (("base_0000002_v0000020",), 0, 2)
    assert _hive(oracle, _only(table, *result.directories), table, f"2:{NO_OPEN}::") == []


@pytest.mark.robustness
def test_a_rebalance_sorts_as_it_is_told(spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    """Into fewer buckets than there were; all rows get the highest write id. NULLs stand where Hive 4 has them."""
    table = AcidTable(spark, tmp_path, {"n": "int", "v": "string"})
    values: list[tuple[int | None, str | None]] = [(3, "x"), (None, "a"), (1, "y"), (3, None), (None, None), (2, "ü"), (3, "z")]
    for number, pair in enumerate(values, 1):
        table.insert(DeltaName(number, number, 0), [(number, encode(number % 3), 0, list(pair))])

    result = _compact(table, "rebalance", f"7:{NO_OPEN}::", order_by="ORDER BY `N` DESC, v", number_of_buckets=2,
                      properties={"orc.compress": "SNAPPY", "orc.row.index.stride": "1000", "orc.bloom.filter.columns": "v,w"})

    rows = oracle.rows(_only(table, *result.directories), ValidWriteIdList("db.t", 7), table.columns)
    ordered = sorted((row.row_id[2], row.row_id, tuple(row.values)) for row in rows)
    assert [pair for _, _, pair in ordered] == [
        (None, "a"), (None, None), (3, "x"), (3, "z"), (3, None), (2, "ü"), (1, "y")]
    assert [row_id for _, row_id, _ in ordered] == [(7, encode(number // 4), number) for number in range(7)]
    with (tmp_path / result.directories[0] / "bucket_00000").open("rb") as file:
        written = pyorc.Reader(file)
        assert (written.compression, written.row_index_stride) == (pyorc.CompressionKind.SNAPPY, 1000)
        assert written.schema.find_column_id("row.v") in written.read_stripe(0).bloom_filter_columns


@pytest.mark.robustness
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
    _fill(table)
    before = table.names()
    plant(monkeypatch)

    with pytest.raises(UnprovenError, match=said):
        _compact(table, "rebalance", f"4:{NO_OPEN}::")

    assert table.names() == before


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_a_job_without_its_claim_publishes_nothing(table: AcidTable, kind: str) -> None:
    """It asks once, when every directory is complete and none has its name."""
    _fill(table)
    before, staged = table.names(), []

    def lost() -> None:
        assert table.names() == before
        staged.extend(sorted(one.name for one in table.directory.glob(".compaction_*/out/bucket_*")))
        raise ClaimLostError("somebody else's by now")

    with pytest.raises(ClaimLostError):
        _compact(table, kind, f"4:{NO_OPEN}::", may_publish=lost)

    assert staged == ["bucket_00000", "bucket_00001"] if kind == "major" else ["bucket_00000"] * 2 + ["bucket_00001"] * 2
    assert sorted(one.name for one in table.directory.iterdir()) == sorted(before)


def test_hives_compactor_would_write_the_same_events(table: AcidTable, oracle: HiveOracle) -> None:
    _fill(table)
    snapshot = ValidWriteIdList("db.t", 4).for_compactor()
    deltas = [delta.path for delta in table.state(snapshot).deltas]

    minor = _compact(table, "minor", f"4:{NO_OPEN}::")
    major = _compact(table, "major", f"4:{NO_OPEN}::", txn_id=21)

    for bucket in (0, 1):
        theirs = oracle.events(table.directory, snapshot, table.columns, bucket, base=None, deltas=deltas, collapse=False)
        ours = oracle.events(_only(table, *minor.directories), snapshot, table.columns, bucket, base=None,
                             deltas=[name.partition("_v")[0] for name in minor.directories], collapse=False)
        assert ours == theirs
        theirs = oracle.events(table.directory, snapshot, table.columns, bucket, base=None, deltas=deltas, collapse=True)
        live = [(event["id"], event["event"][5]) for event in theirs if not event["delete"]]
        place = _only(table, *major.directories)
        ours = oracle.events(place, snapshot, table.columns, bucket, base="base_0000004", deltas=[], collapse=True)
        assert [(event["id"], event["event"][5]) for event in ours] == live
        assert all(event["event"][4] == event["id"][0] for event in ours), "currentTransaction = originalTransaction"


def test_of_several_deletes_of_one_row_the_newest_comes_first(table: AcidTable, oracle: HiveOracle) -> None:
    table.insert(DeltaName(1, 1, 0), [(1, B0, row, [f"r{row}"]) for row in range(3)])
    for deleter, gone in ((2, (0, 1)), (3, (1,)), (4, (1, 2))):
        table.delete(DeltaName(deleter, deleter, 0), [(deleter, (1, B0, row)) for row in gone])

    snapshot = ValidWriteIdList("db.t", 4).for_compactor()
    deltas = [delta.path for delta in table.state(snapshot).deltas]
    theirs = oracle.events(table.directory, snapshot, table.columns, 0, base=None, deltas=deltas, collapse=False)

    minor = _compact(table, "minor", f"4:{NO_OPEN}::")

    ours = oracle.events(_only(table, *minor.directories), snapshot, table.columns, 0, base=None, collapse=False,
                         deltas=[name.partition("_v")[0] for name in minor.directories])
    assert ours == theirs
    with (table.directory / minor.directories[0] / "bucket_00000").open("rb") as file:
        assert [(event[3], event[4]) for event in pyorc.Reader(file)] == [(0, 2), (1, 4), (1, 3), (1, 2), (2, 4)]
    assert check_file(Files(), str(table.directory), f"{minor.directories[0]}/bucket_00000",
                      table.state(ValidWriteIdList("db.t", 4)).delete_deltas[0]) == []


def test_nothing_of_an_aborted_or_open_write_id_gets_in(table: AcidTable, oracle: HiveOracle) -> None:
    """COMP-W09."""
    table.insert(DeltaName(1, 5), [(wid, B0, row, [f"w{wid}r{row}"]) for wid in range(1, 6) for row in (0, 1)])
    table.delete(DeltaName(6, 7), [(6, (1, B0, 0)), (7, (1, B0, 1))])
    table.insert(DeltaName(8, 8, 0), [(8, B0, 0, ["open"])])
    lists = "8:8:8:2,4,7"
    expected = _hive(oracle, table.directory, table, "7:2:2,4,7:")
    assert [value for _, value in expected] == ["w1r1", "w3r0", "w3r1", "w5r0", "w5r1"]

    minor = _compact(table, "minor", lists)
    major = _compact(table, "major", lists, txn_id=21)

    assert minor.directories == ("delete_delta_0000001_0000007_v0000020", "delta_0000001_0000007_v0000020")
    assert (minor.rows_in, minor.rows_out) == (12, 7)
    assert _hive(oracle, _only(table, *minor.directories), table, f"7:{NO_OPEN}::") == expected
    assert major.directories == ("base_0000007_v0000021",)
    assert _hive(oracle, _only(table, *major.directories), table, f"7:{NO_OPEN}::") == expected


def test_the_cases_of_the_specification(table: AcidTable, oracle: HiveOracle) -> None:
    """One after the other in the same directory. COMP-W34: in the end all rows are deleted."""
    table.insert(DeltaName(1, 1, 0), [(1, B0, 0, ["a"])])
    table.insert(DeltaName(2, 2, 0), [(2, B0, 0, ["b"])])
    table.insert(DeltaName(3, 3, 0), [(3, B0, 0, ["c"])])

    without_2 = _compact(table, "minor", f"3:{NO_OPEN}::2", txn_id=5)
    assert without_2.directories == ("delta_0000001_0000003_v0000005",)
    assert [value for _, value in _hive(oracle, _only(table, *without_2.directories), table, f"3:{NO_OPEN}::")] == ["a", "c"]

    table.delete(DeltaName(4, 4, 0), [(4, (wid, B0, 0)) for wid in (1, 2, 3)])
    empty = _compact(table, "major", f"5:{NO_OPEN}::2", txn_id=6)
    assert empty.directories == ("base_0000005_v0000006",)
    assert sorted(file.name for file in (table.directory / empty.directories[0]).iterdir() if file.name[0] != ".") == [
        "_orc_acid_version", "bucket_00000"
    ]
    assert _hive(oracle, _only(table, *empty.directories), table, f"5:{NO_OPEN}::") == []
    assert _compact(table, "minor", f"5:{NO_OPEN}::2", txn_id=7).directories == (), "the base has all of it"


def test_a_second_minor_of_one_range_is_not_written(table: AcidTable) -> None:
    table.insert(DeltaName(1, 3, None, 9), [(1, B0, 0, ["a"])])

    assert _compact(table, "minor", f"3:{NO_OPEN}::").directories == ()
    assert table.names() == ["delta_0000001_0000003_v0000009"]


def test_rows_from_before_the_conversion_get_their_ids(table: AcidTable, spark: SparkSession, oracle: HiveOracle) -> None:
    """COMP-W21: not every input has every bucket, and each bucket has its own rows. COMP-W22: a statement's number stays in its rows."""

    def put(path: str, *values: str) -> None:
        target = table.directory / path
        target.parent.mkdir(exist_ok=True)
        spark.createDataFrame([(value,) for value in values], "v string").coalesce(1).write.orc(str(target.parent / "tmp"))
        next((target.parent / "tmp").glob("part-*")).rename(target)
        shutil.rmtree(target.parent / "tmp")

    put("000000_0", *(f"o{one}" for one in range(2)))
    put("000000_0_copy_10", "ten")
    put("000000_0_copy_2", "two")
    put("000001_0", "other")
    put("HIVE_UNION_SUBDIR_1/000000_0", "sub")
    put("delta_0000001_0000001_0001/000002_0", "loaded")
    table.delete(DeltaName(2, 2, 0), [(2, (0, B0, 1)), (2, (0, B0, 3))])

    major = _compact(table, "major", f"2:{NO_OPEN}::")

    assert major.directories == ("base_0000002_v0000020",)
    assert _hive(oracle, _only(table, *major.directories), table, f"2:{NO_OPEN}::") == [
        ((0, B0, 0), "o0"),
        ((0, B0, 2), "ten"),
        ((0, B0, 4), "sub"),
        ((0, B1, 0), "other"),
        ((1, encode(2, 1), 0), "loaded"),
    ]


def test_a_repeated_attempt_replaces_the_first_ones_output(table: AcidTable, oracle: HiveOracle) -> None:
    _fill(table)
    first = _compact(table, "major", f"4:{NO_OPEN}::")
    (table.directory / first.directories[0] / "bucket_00000").write_bytes(b"half")
    (table.directory / f".compaction_{TXN}" / "tasks").mkdir(parents=True)

    second = _compact(table, "major", f"4:{NO_OPEN}::")

    assert second == first
    assert len(_hive(oracle, _only(table, *second.directories), table, f"4:{NO_OPEN}::")) == 13


def test_a_failure_leaves_nothing_behind(table: AcidTable, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(table)
    before = sorted(path.name for path in table.directory.iterdir())
    publish = acid_writer.Staged.publish

    def fail_at_the_second(staged: acid_writer.Staged, hadoop: Any) -> None:
        if not str(staged.name).startswith("delete_"):
            raise OSError("disk full")
        publish(staged, hadoop)

    monkeypatch.setattr(acid_writer.Staged, "publish", fail_at_the_second)
    with pytest.raises(OSError, match="disk full"):
        _compact(table, "minor", f"4:{NO_OPEN}::")

    assert sorted(path.name for path in table.directory.iterdir()) == before


def test_a_damaged_input_stops_the_job(table: AcidTable) -> None:
    _fill(table)
    table.spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        victim = table.directory / "delta_0000001_0000001_0000" / "bucket_00000"
        victim.write_bytes(victim.read_bytes()[:-40])
        with pytest.raises(Exception, match="(?i)orc|tail|footer|malformed"):
            _compact(table, "major", f"4:{NO_OPEN}::")
    finally:
        table.spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_what_cannot_be_compacted_is_said(table: AcidTable) -> None:
    table.insert(DeltaName(1, 2), [(1, B0, 0, ["a"])])
    with pytest.raises(InvalidOperationError, match="highest that is settled, 3"):
        _compact(table, "major", f"3:{NO_OPEN}::", highest=4)
    with pytest.raises(InvalidOperationError, match="its inputs' highest, 2"):
        _compact(table, "major", f"3:{NO_OPEN}::", highest=1)
    with pytest.raises(InvalidOperationError, match="'smooth' is not supported"):
        _compact(table, "smooth", f"3:{NO_OPEN}::")
    with pytest.raises(InvalidOperationError, match="needs the id of its transaction"):
        _compact(table, "major", f"3:{NO_OPEN}::", txn_id=0)
    (table.directory / "delta_0000001_0000002" / "bucket_00000_flush_length").write_bytes(b"\0" * 8)
    with pytest.raises(InvalidOperationError, match="streaming client"):
        _compact(table, "major", f"3:{NO_OPEN}::")


def test_values_of_every_type_that_hive_wrote_survive(spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    columns = {
        "a_boolean": "boolean", "a_tinyint": "tinyint", "a_smallint": "smallint", "an_int": "int", "a_bigint": "bigint",
        "a_float": "float", "a_double": "double", "a_decimal": "decimal(38,10)", "a_string": "string",
        "a_varchar": "varchar(5)", "a_char": "char(5)", "a_binary": "binary", "a_date": "date", "a_timestamp": "timestamp",
        "an_array": "array<int>", "a_map": "map<string,bigint>", "a_struct": "struct<x:int,y:string>"}
    table = AcidTable(spark, tmp_path / "t", columns)
    table.directory.mkdir()
    oracle.write(table.directory, columns, write_id=1, inserts=[
        [True, -128, -32768, -(2**31), -(2**63), 1.5, 0.1, "-9999999999999999999999999999.0123456789", "größe", "vier", "c",
         "AP8Q", "2013-03-10", "2013-03-10 02:30:00.123456", [1, None], [["k", 1]], [1, "y"]],
        [None] * len(columns),
        [False, 0, 0, 0, 0, 0.0, 0.0, "0", "", "", "", "", "1582-10-04", "1400-02-28 23:59:59", [], [], [None, None]],
        [False, 0, 0, 0, 0, 0.0, 0.0, "1.5", "x", "x", "x", "eA==", "1969-12-31", "1969-12-31 23:59:59", [], [], [2, ""]]])
    oracle.write(table.directory, columns, write_id=2, inserts=[[None] * len(columns)])
    before = oracle.rows(table.directory, ValidWriteIdList("db.t", 2), columns)

    major = _compact(table, "major", f"2:{NO_OPEN}::")

    after = oracle.rows(_only(table, *major.directories), ValidWriteIdList("db.t", 2), columns)
    assert sorted(after, key=lambda row: row.row_id) == sorted(before, key=lambda row: row.row_id)


def test_timestamps_that_spark_would_cut_are_not_compacted(spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    for place, columns, value in [
        ("flat", {"v": "timestamp", "s": "string"}, "2013-03-10 02:30:00.1234567"),
        ("nested", {"v": "array<timestamp>", "s": "string"}, ["2013-03-10 02:30:00", "2013-03-10 02:30:00.000000001"]),
    ]:
        table = AcidTable(spark, tmp_path / place, columns)
        table.directory.mkdir()
        oracle.write(table.directory, columns, write_id=1, inserts=[[value, 'a ".1234567"']])
        before = table.names()

        with pytest.raises(InvalidOperationError, match=r"delta_0000001_0000001_0000/bucket_00000 holds timestamps"):
            _compact(table, "major", f"1:{NO_OPEN}::")

        assert table.names() == before


def _sources(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    real = compact_job.acid_sources
    return lambda patch: patch.setattr(compact_job, "acid_sources", lambda *given: change(real(*given)))


def _named(change: Callable[[int, int], BaseName]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(compact_job, "BaseName", change)


def _unsorted(patch: pytest.MonkeyPatch) -> None:
    _not_merged(patch)
    order = acid_writer._Writing._order
    patch.setattr(acid_writer._Writing, "_order", lambda self: [F.col("rowId").desc(), *order(self)])


def _no_deletes(patch: pytest.MonkeyPatch) -> None:
    _not_merged(patch)
    deletes = compacted_events.Reading.deletes
    patch.setattr(compacted_events.Reading, "deletes", lambda self: deletes(self).where("rowId < 0"))


def _no_merged_deletes(patch: pytest.MonkeyPatch) -> None:
    merged = compacted_events.merged_events
    patch.setattr(compacted_events, "merged_events", lambda *given: merged(*given).where(~F.col(OF_DELETES)))


_LONG = pytest.mark.robustness  # a job each: the rule itself has its cases in tests/unit/compaction/working


@pytest.mark.parametrize(("plant", "said"), [
    pytest.param(_sources(lambda one: replace(one, events=one.events[1:])),
                 "delta_0000001_0000001_0000/bucket_00000 was not read", id="lost bucket"),
    pytest.param(_sources(lambda one: replace(one, events=(*one.events, one.events[0]))),
                 "bucket_00000 was read 2 times", id="doubled delta", marks=_LONG),
    pytest.param(_no_deletes, "Bucket 0: the input files have 2 delete events, and 0 were read", id="delete not applied", marks=_LONG),
    pytest.param(_no_merged_deletes, "Bucket 0: the input files have 2 delete events, and 0 were read", id="delete not merged"),
    pytest.param(_unsorted, "events that do not belong behind the ones before them", id="unsorted", marks=_LONG),
    pytest.param(_named(lambda write_id, _: BaseName(write_id)),
                 "base_0000004 was written, where only base_0000004_v0000020 may be", id="no visibility", marks=_LONG),
    pytest.param(lambda patch: patch.setattr(compacted_events, "visible", lambda *_, **__: ["currentTransaction < 4"]),
                 "Bucket 0: 1 delete events were left out as invisible, and none is", id="cut off by one", marks=_LONG),
])
def test_a_planted_fault_is_found_before_anything_has_its_name(
        table: AcidTable, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], said: str) -> None:
    _fill(table)
    before = table.names()
    (table.directory / ".unproven_0000019").mkdir()
    plant(monkeypatch)

    with pytest.raises(UnprovenError) as raised:
        _compact(table, "major", f"4:{NO_OPEN}::")

    assert said in str(raised.value)
    assert table.names() == before
    [aside] = [child for child in table.directory.iterdir() if child.name.startswith(".")]
    assert aside.name == ".unproven_0000020", "instead of an earlier attempt's"
    [kept] = aside.iterdir()
    assert kept.name.startswith("base_000000")
    assert sorted(one.name for one in kept.glob("bucket_*")) == ["bucket_00000", "bucket_00001"]
