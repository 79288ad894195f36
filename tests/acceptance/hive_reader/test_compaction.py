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
from metastore.acid.snapshots import NO_OPEN, ValidWriteIdList
from metastore.compaction.merging import rules as merging
from metastore.compaction.merging.rules import open_at_once
from metastore.compaction.working.rules import UnprovenError
from metastore.errors import ClaimLostError, InvalidOperationError
from metastore.files import Files
from metastore.spark.check.file_check import check_file
from metastore.spark.compaction import events as compacted_events
from metastore.spark.compaction import job as compact_job
from metastore.spark.compaction import stripes
from metastore.spark.compaction.merged import OF_DELETES
from metastore.spark.write import acid_writer
from tests.support.acid.compacted import TXN, compact, fill, hive_rows, not_merged, only
from tests.support.acid.tables import B0, B1, AcidTable
from tests.support.hive_oracle.oracle import HiveOracle

pytestmark = pytest.mark.spark

def test_minor_and_major_keep_what_hive_reads(table: AcidTable, oracle: HiveOracle) -> None:
    fill(table)
    inputs = table.names()
    before = hive_rows(oracle, table.directory, table, f"4:{NO_OPEN}::")
    assert len(before) == 13

    minor = compact(table, "minor", f"4:{NO_OPEN}::")

    assert minor.directories == ("delete_delta_0000001_0000004_v0000020", "delta_0000001_0000004_v0000020")
    assert (minor.rows_in, minor.rows_out) == (21, 21)
    assert hive_rows(oracle, only(table, *minor.directories), table, f"4:{NO_OPEN}::") == before
    assert hive_rows(oracle, only(table, *minor.directories), table, "4:4:4:") == hive_rows(oracle, only(table, *inputs), table, "4:4:4:")

    major = compact(table, "major", f"4:{NO_OPEN}::", txn_id=21)

    assert major.directories == ("base_0000004_v0000021",)
    assert (major.rows_in, major.rows_out, major.rows_deleted) == (21, 13, 4)
    assert hive_rows(oracle, only(table, *major.directories), table, f"4:{NO_OPEN}::") == before
    assert set(inputs) < set(table.names()), "inputs are the Cleaner's"
    assert not [child.name for child in table.directory.iterdir() if child.name.startswith(".")]
    state = table.state(ValidWriteIdList("db.t", 4))
    assert state.base
    assert state.base.name == BaseName(4, 21)
    assert state.deltas == ()


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
    minor = compact(table, "minor", f"23:{NO_OPEN}::", max_num_delta=5)
    assert limits == [1], "deletes are sorted"
    before = hive_rows(oracle, only(table, *minor.directories), table, f"23:{NO_OPEN}::")
    assert (len(before), minor.rows_in, minor.rows_out) == (20, 46, 46)

    for limit in (5, 13):
        for name in table.names():
            if "_v" in name:
                shutil.rmtree(table.directory / name)
        major = compact(table, "major", f"23:{NO_OPEN}::", max_num_delta=limit)
        assert (major.rows_in, major.rows_out, major.rows_deleted) == (46, 20, 13)
        assert hive_rows(oracle, only(table, *major.directories), table, f"23:{NO_OPEN}::") == before
    assert limits == [1, 13]


def test_a_minor_compaction_copies_large_stripes_as_they_lie(
        table: AcidTable, oracle: HiveOracle, monkeypatch: pytest.MonkeyPatch) -> None:
    for rules in (merging, compact_job):
        monkeypatch.setattr(rules, "LARGE_STRIPE", 1)
    fill(table)
    inputs = table.names()
    before = hive_rows(oracle, table.directory, table, f"4:{NO_OPEN}::")
    with monkeypatch.context() as planted:
        planted.setattr(stripes, "in_one_file", lambda bucket, files: merging.in_one_file(bucket, files)[1:])
        with pytest.raises(UnprovenError, match=r"Bucket 0: the input files have 9 insert events, and 5 were read"):
            compact(table, "minor", f"4:{NO_OPEN}::")

    minor = compact(table, "minor", f"4:{NO_OPEN}::", txn_id=21)

    inserts = minor.directories[1]
    assert (minor.rows_in, minor.rows_out) == (21, 21)
    with (table.directory / inserts / "bucket_00000").open("rb") as file:
        copied = pyorc.Reader(file)
        assert (len(copied), copied.num_of_stripes) == (9, 3), "a stripe for each file"
        assert copied.user_metadata["hive.acid.key.index"].count(b";") == 3
        assert copied.user_metadata["hive.acid.stats"] == b"9,0,0"
    for name in inputs:
        shutil.rmtree(table.directory / name)
    assert hive_rows(oracle, only(table, *minor.directories), table, f"4:{NO_OPEN}::") == before
    delta = table.state(ValidWriteIdList("db.t", 4)).insert_deltas[0]
    assert [found for file in delta.bucket_files for found in check_file(Files(), str(table.directory), file.path, delta)] == []


def test_files_in_another_order_are_sorted(table: AcidTable, oracle: HiveOracle, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        order = acid_writer._Writing._order
        patched.setattr(acid_writer._Writing, "_order", lambda self: [F.col("rowId").desc(), *order(self)])
        fill(table)

    major = compact(table, "major", f"4:{NO_OPEN}::")

    assert (major.rows_in, major.rows_out, major.rows_deleted) == (21, 13, 4)
    assert len(hive_rows(oracle, only(table, *major.directories), table, f"4:{NO_OPEN}::")) == 13


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_a_job_without_its_claim_publishes_nothing(table: AcidTable, kind: str) -> None:
    """It asks once, when every directory is complete and none has its name."""
    fill(table)
    before, staged = table.names(), []

    def lost() -> None:
        assert table.names() == before
        staged.extend(sorted(one.name for one in table.directory.glob(".compaction_*/out/bucket_*")))
        raise ClaimLostError("somebody else's by now")

    with pytest.raises(ClaimLostError):
        compact(table, kind, f"4:{NO_OPEN}::", may_publish=lost)

    assert staged == ["bucket_00000", "bucket_00001"] if kind == "major" else ["bucket_00000"] * 2 + ["bucket_00001"] * 2
    assert sorted(one.name for one in table.directory.iterdir()) == sorted(before)


def test_hives_compactor_would_write_the_same_events(table: AcidTable, oracle: HiveOracle) -> None:
    fill(table)
    snapshot = ValidWriteIdList("db.t", 4).for_compactor()
    deltas = [delta.path for delta in table.state(snapshot).deltas]

    minor = compact(table, "minor", f"4:{NO_OPEN}::")
    major = compact(table, "major", f"4:{NO_OPEN}::", txn_id=21)

    for bucket in (0, 1):
        theirs = oracle.events(table.directory, snapshot, table.columns, bucket, base=None, deltas=deltas, collapse=False)
        ours = oracle.events(only(table, *minor.directories), snapshot, table.columns, bucket, base=None,
                             deltas=[name.partition("_v")[0] for name in minor.directories], collapse=False)
        assert ours == theirs
        theirs = oracle.events(table.directory, snapshot, table.columns, bucket, base=None, deltas=deltas, collapse=True)
        live = [(event["id"], event["event"][5]) for event in theirs if not event["delete"]]
        place = only(table, *major.directories)
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

    minor = compact(table, "minor", f"4:{NO_OPEN}::")

    ours = oracle.events(only(table, *minor.directories), snapshot, table.columns, 0, base=None, collapse=False,
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
    expected = hive_rows(oracle, table.directory, table, "7:2:2,4,7:")
    assert [value for _, value in expected] == ["w1r1", "w3r0", "w3r1", "w5r0", "w5r1"]

    minor = compact(table, "minor", lists)
    major = compact(table, "major", lists, txn_id=21)

    assert minor.directories == ("delete_delta_0000001_0000007_v0000020", "delta_0000001_0000007_v0000020")
    assert (minor.rows_in, minor.rows_out) == (12, 7)
    assert hive_rows(oracle, only(table, *minor.directories), table, f"7:{NO_OPEN}::") == expected
    assert major.directories == ("base_0000007_v0000021",)
    assert hive_rows(oracle, only(table, *major.directories), table, f"7:{NO_OPEN}::") == expected


def test_the_cases_of_the_specification(table: AcidTable, oracle: HiveOracle) -> None:
    """One after the other in the same directory. COMP-W34: in the end all rows are deleted."""
    table.insert(DeltaName(1, 1, 0), [(1, B0, 0, ["a"])])
    table.insert(DeltaName(2, 2, 0), [(2, B0, 0, ["b"])])
    table.insert(DeltaName(3, 3, 0), [(3, B0, 0, ["c"])])

    without_2 = compact(table, "minor", f"3:{NO_OPEN}::2", txn_id=5)
    assert without_2.directories == ("delta_0000001_0000003_v0000005",)
    assert [value for _, value in hive_rows(oracle, only(table, *without_2.directories), table, f"3:{NO_OPEN}::")] == ["a", "c"]

    table.delete(DeltaName(4, 4, 0), [(4, (wid, B0, 0)) for wid in (1, 2, 3)])
    empty = compact(table, "major", f"5:{NO_OPEN}::2", txn_id=6)
    assert empty.directories == ("base_0000005_v0000006",)
    assert sorted(file.name for file in (table.directory / empty.directories[0]).iterdir() if file.name[0] != ".") == [
        "_orc_acid_version", "bucket_00000"
    ]
    assert hive_rows(oracle, only(table, *empty.directories), table, f"5:{NO_OPEN}::") == []
    assert compact(table, "minor", f"5:{NO_OPEN}::2", txn_id=7).directories == (), "the base has all of it"


def test_a_second_minor_of_one_range_is_not_written(table: AcidTable) -> None:
    table.insert(DeltaName(1, 3, None, 9), [(1, B0, 0, ["a"])])

    assert compact(table, "minor", f"3:{NO_OPEN}::").directories == ()
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

    major = compact(table, "major", f"2:{NO_OPEN}::")

    assert major.directories == ("base_0000002_v0000020",)
    assert hive_rows(oracle, only(table, *major.directories), table, f"2:{NO_OPEN}::") == [
        ((0, B0, 0), "o0"),
        ((0, B0, 2), "ten"),
        ((0, B0, 4), "sub"),
        ((0, B1, 0), "other"),
        ((1, encode(2, 1), 0), "loaded"),
    ]


def test_a_repeated_attempt_replaces_the_first_ones_output(table: AcidTable, oracle: HiveOracle) -> None:
    fill(table)
    first = compact(table, "major", f"4:{NO_OPEN}::")
    (table.directory / first.directories[0] / "bucket_00000").write_bytes(b"half")
    (table.directory / f".compaction_{TXN}" / "tasks").mkdir(parents=True)

    second = compact(table, "major", f"4:{NO_OPEN}::")

    assert second == first
    assert len(hive_rows(oracle, only(table, *second.directories), table, f"4:{NO_OPEN}::")) == 13


def test_a_failure_leaves_nothing_behind(table: AcidTable, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(table)
    before = sorted(path.name for path in table.directory.iterdir())
    publish = acid_writer.Staged.publish

    def fail_at_the_second(staged: acid_writer.Staged, hadoop: Any) -> None:
        if not str(staged.name).startswith("delete_"):
            raise OSError("disk full")
        publish(staged, hadoop)

    monkeypatch.setattr(acid_writer.Staged, "publish", fail_at_the_second)
    with pytest.raises(OSError, match="disk full"):
        compact(table, "minor", f"4:{NO_OPEN}::")

    assert sorted(path.name for path in table.directory.iterdir()) == before


def test_a_damaged_input_stops_the_job(table: AcidTable) -> None:
    fill(table)
    table.spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        victim = table.directory / "delta_0000001_0000001_0000" / "bucket_00000"
        victim.write_bytes(victim.read_bytes()[:-40])
        with pytest.raises(Exception, match="(?i)orc|tail|footer|malformed"):
            compact(table, "major", f"4:{NO_OPEN}::")
    finally:
        table.spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_what_cannot_be_compacted_is_said(table: AcidTable) -> None:
    table.insert(DeltaName(1, 2), [(1, B0, 0, ["a"])])
    with pytest.raises(InvalidOperationError, match="highest that is settled, 3"):
        compact(table, "major", f"3:{NO_OPEN}::", highest=4)
    with pytest.raises(InvalidOperationError, match="its inputs' highest, 2"):
        compact(table, "major", f"3:{NO_OPEN}::", highest=1)
    with pytest.raises(InvalidOperationError, match="'smooth' is not supported"):
        compact(table, "smooth", f"3:{NO_OPEN}::")
    with pytest.raises(InvalidOperationError, match="needs the id of its transaction"):
        compact(table, "major", f"3:{NO_OPEN}::", txn_id=0)
    (table.directory / "delta_0000001_0000002" / "bucket_00000_flush_length").write_bytes(b"\0" * 8)
    with pytest.raises(InvalidOperationError, match="streaming client"):
        compact(table, "major", f"3:{NO_OPEN}::")


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

    major = compact(table, "major", f"2:{NO_OPEN}::")

    after = oracle.rows(only(table, *major.directories), ValidWriteIdList("db.t", 2), columns)
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
            compact(table, "major", f"1:{NO_OPEN}::")

        assert table.names() == before


def _sources(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    real = compact_job.acid_sources
    return lambda patch: patch.setattr(compact_job, "acid_sources", lambda *given: change(real(*given)))


def _named(change: Callable[[int, int], BaseName]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(compact_job, "BaseName", change)


def _unsorted(patch: pytest.MonkeyPatch) -> None:
    not_merged(patch)
    order = acid_writer._Writing._order
    patch.setattr(acid_writer._Writing, "_order", lambda self: [F.col("rowId").desc(), *order(self)])


def _no_deletes(patch: pytest.MonkeyPatch) -> None:
    not_merged(patch)
    deletes = compacted_events.InputReading.deletes
    patch.setattr(compacted_events.InputReading, "deletes", lambda self: deletes(self).where("rowId < 0"))


def _no_merged_deletes(patch: pytest.MonkeyPatch) -> None:
    merged = compacted_events.merged_events
    patch.setattr(compacted_events, "merged_events", lambda *given: merged(*given).where(~F.col(OF_DELETES)))


_LONG = pytest.mark.slow  # a job each: the rule itself has its cases in tests/unit/compaction/working


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
    fill(table)
    before = table.names()
    (table.directory / ".unproven_0000019").mkdir()
    plant(monkeypatch)

    with pytest.raises(UnprovenError) as raised:
        compact(table, "major", f"4:{NO_OPEN}::")

    assert said in str(raised.value)
    assert table.names() == before
    [aside] = [child for child in table.directory.iterdir() if child.name.startswith(".")]
    assert aside.name == ".unproven_0000020", "instead of an earlier attempt's"
    [kept] = aside.iterdir()
    assert kept.name.startswith("base_000000")
    assert sorted(one.name for one in kept.glob("bucket_*")) == ["bucket_00000", "bucket_00001"]
