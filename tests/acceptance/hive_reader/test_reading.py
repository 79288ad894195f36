"""What others wrote is read by us as Hive reads it: Hive's own writer, files without row ids, open batches, old files."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyorc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from metastore.acid.bucket import encode
from metastore.acid.names import BaseName, DeltaName
from metastore.acid.side_files import MalformedSideFileError
from metastore.acid.snapshots import ValidWriteIdList
from metastore.errors import InvalidOperationError
from tests.support.acid.reading import described, directories, ids_and_rows, snapshot
from tests.support.acid.tables import B0, B1, AcidTable
from tests.support.hive_oracle.oracle import HiveOracle, hive_2_text

pytestmark = pytest.mark.spark

COLUMNS = {"v": "string"}
_EVENT = ("struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,currentTransaction:bigint,"
          "row:struct<v:string>>")


def _orc(path: Path, schema: str, rows: Sequence[tuple[Any, ...]], **notes: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out, pyorc.Writer(out, schema) as writer:
        writer.writerows(rows)
        writer.set_user_metadata(**notes)


def _plain(path: Path, *values: str) -> None:
    _orc(path, "struct<v:string>", [(value,) for value in values])


def _values(spark: SparkSession, place: Path, write_ids: ValidWriteIdList) -> list[str]:
    return sorted(row[0] for row in snapshot(spark, described(place, COLUMNS), write_ids).collect())


def test_original_files_get_the_ids_of_the_specification(spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    place = tmp_path / "t"
    _plain(place / "000000_0", "o0", "o1")
    _plain(place / "000000_0_copy_10", "ten")
    _plain(place / "000000_0_copy_2", "two")
    _plain(place / "000001_0", "other")
    _plain(place / "HIVE_UNION_SUBDIR_1" / "000000_0", "sub")
    (place / "000002_0").touch()
    table, all_of_it = AcidTable(spark, place), ValidWriteIdList("db.t", 5)
    named = described(place, COLUMNS)

    assert ids_and_rows(spark, named, all_of_it) == [
        ((0, B0, 0), ("o0",)), ((0, B0, 1), ("o1",)), ((0, B0, 2), ("ten",)), ((0, B0, 3), ("two",)),
        ((0, B0, 4), ("sub",)), ((0, B1, 0), ("other",))]
    theirs = oracle.ask("rows", directory=str(place), snapshot=hive_2_text(all_of_it), columns="v", types="string")
    assert _values(spark, place, all_of_it) == sorted(row["row"][0] for row in theirs["rows"])

    table.delete(DeltaName(1, 1, 0), [(1, (0, B0, 3)), (1, (0, B1, 0))])
    table.insert(DeltaName(2, 2, 0), [(2, B0, 0, ["new"])])

    assert _values(spark, place, all_of_it) == ["new", "o0", "o1", "sub", "ten"]
    assert _values(spark, place, ValidWriteIdList("db.t", 0)) == ["o0", "o1", "other", "sub", "ten", "two"]
    assert ids_and_rows(spark, named, all_of_it)[-2:] == [((0, B0, 4), ("sub",)), ((2, B0, 0), ("new",))]


def test_rows_of_a_file_that_spark_would_split_are_numbered_through(spark: SparkSession, tmp_path: Path) -> None:
    place, texts = tmp_path / "t", random.Random(1)
    place.mkdir()
    rows = [(texts.randbytes(100).hex(),) for _ in range(90_000)]
    with (place / "000000_0").open("wb") as out, pyorc.Writer(out, "struct<v:string>", stripe_size=1 << 20) as writer:
        writer.writerows(rows)
    gone = [0, 44_444, 89_999]
    AcidTable(spark, place).delete(DeltaName(1, 1, 0), [(1, (0, B0, row)) for row in gone])
    assert spark.read.orc(str(place / "000000_0")).rdd.getNumPartitions() > 1

    left = snapshot(spark, described(place, COLUMNS), ValidWriteIdList("db.t", 1), row_ids=True).collect()

    assert {row.ROW__ID.rowid: row.v for row in left} == {
        number: value for number, (value,) in enumerate(rows) if number not in gone}


def test_a_file_of_an_odd_name_is_read_and_its_rows_have_no_ids(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "t"
    _plain(place / "000000_0", "a", "b")
    _plain(place / "random", "c")
    AcidTable(spark, place).delete(DeltaName(1, 1, 0), [(1, (0, B0, 0))])
    write_ids = ValidWriteIdList("db.t", 1)

    assert _values(spark, place, write_ids) == ["b", "c"]
    assert ids_and_rows(spark, described(place, COLUMNS), write_ids) == [
        ((0, B0, 1), ("b",)), (None, ("c",))]


def test_what_load_data_put_there(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "t"
    _plain(place / "delta_0000003_0000003_0000" / "000000_0", "a0", "a1")
    _plain(place / "delta_0000003_0000003_0001" / "000002_0", "b")
    _plain(place / "delta_0000004_0000004_0000" / "000000_0", "open")
    AcidTable(spark, place).insert(DeltaName(5, 5, 0), [(5, B0, 0, ["new"])])
    write_ids = ValidWriteIdList("db.t", 6, 4, (4,))

    assert _values(spark, place, write_ids) == ["a0", "a1", "b", "new"]
    AcidTable(spark, place).delete(DeltaName(6, 6, 0), [(6, (3, B0, 1)), (6, (3, encode(2, 1), 0))])
    assert ids_and_rows(spark, described(place, COLUMNS), write_ids) == [((3, B0, 0), ("a0",)), ((5, B0, 0), ("new",))]

    _plain(place / "base_0000007" / "000000_0", "x", "y")
    assert ids_and_rows(spark, described(place, COLUMNS), ValidWriteIdList("db.t", 7)) == [
        ((7, B0, 0), ("x",)), ((7, B0, 1), ("y",))]


def test_an_open_batch_is_read_up_to_its_last_flush(spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    place, columns = tmp_path / "t", {"v": "string", "n": "int"}
    place.mkdir()
    oracle.stream(place, columns, 1, [[["a", 1], ["b", 2]], [["c", 3]], [["d", 4]]], last=10)
    batch = place / "delta_0000001_0000010" / "bucket_00000"
    whole = batch.stat().st_size
    batch.write_bytes(batch.read_bytes() + b"half a stripe" * 40)
    side = batch.with_name("bucket_00000_flush_length")
    lengths = side.read_bytes()
    assert int.from_bytes(lengths[-8:], "big") == whole
    AcidTable(spark, place, columns).insert(DeltaName(11, 11, 0), [(11, B0, 0, ["new", 9])])
    wider = described(place, {"n": "bigint", "v": "string", "more": "timestamp"})

    def read(write_ids: ValidWriteIdList) -> list[Any]:
        return ids_and_rows(spark, wider, write_ids)

    new = ((11, B0, 0), (9, "new", None))
    first = [((1, 0, 0), (1, "a", None)), ((1, 0, 1), (2, "b", None))]
    assert read(ValidWriteIdList("db.t", 11)) == [
        *first[:1], *first[1:], new, ((2, 0, 0), (3, "c", None)), ((3, 0, 0), (4, "d", None))]
    assert read(ValidWriteIdList("db.t", 11, 3, (2, 3), frozenset({2}))) == [*first, new]
    events = oracle.events(place, ValidWriteIdList("db.t", 11), columns, 0, base=None, deltas=["delta_0000001_0000010"],
                           collapse=True)
    assert [event["event"][5][0] for event in events] == ["a", "b", "c", "d"]

    side.write_bytes(lengths[:8] + b"\0\0\0")
    assert read(ValidWriteIdList("db.t", 11)) == [*first, new]
    side.write_bytes(b"\0" * 8)
    assert read(ValidWriteIdList("db.t", 11)) == [new]
    side.write_bytes(b"\0" * 3)
    with pytest.raises(MalformedSideFileError, match="bucket_00000_flush_length says no length"):
        read(ValidWriteIdList("db.t", 11))
    side.write_bytes((10**9).to_bytes(8, "big"))
    with pytest.raises(PySparkException, match="the file is damaged"):
        read(ValidWriteIdList("db.t", 11))
    side.unlink()
    with pytest.raises(OSError, match="bucket_00000"):
        read(ValidWriteIdList("db.t", 11))


def test_a_closed_batch_shows_no_aborted_or_open_write_id(spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    place = tmp_path / "t"
    place.mkdir()
    oracle.stream(place, COLUMNS, 1, [[[f"w{one}"]] for one in range(1, 6)], last=5, close=True)
    assert not list(place.rglob("*_flush_length"))
    write_ids = ValidWriteIdList("db.t", 5, 4, (2, 4), frozenset({2}))

    assert _values(spark, place, write_ids) == ["w1", "w3", "w5"]
    assert sorted(row.values[0] for row in oracle.rows(place, write_ids, COLUMNS)) == ["w1", "w3", "w5"]
    shutil.rmtree(place / "delta_0000001_0000005")
    assert _values(spark, place, write_ids) == []


def test_columns_are_found_however_a_file_spells_them(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "t"
    _orc(place / "delta_0000001_0000001_0000" / "bucket_00000", _EVENT.replace("v:", "V:"), [(0, 1, B0, 0, 1, ("upper",))])
    _orc(place / "delta_0000002_0000002_0000" / "bucket_00000", _EVENT, [(0, 2, B0, 0, 2, ("lower",))])

    assert _values(spark, place, ValidWriteIdList("db.t", 2)) == ["lower", "upper"]


def test_columns_of_original_files_are_found_by_name(spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    place, columns = tmp_path / "t", {"v": "string", "more": "int", "n": "int"}
    _orc(place / "000000_0", "struct<n:int,gone:int,v:string>", [(1, 8, "a"), (2, 9, "b")])
    table, all_of_it = described(place, columns), ValidWriteIdList("db.t", 5)

    theirs = [tuple(row.values) for row in oracle.rows(place, all_of_it, columns)]

    assert sorted(theirs) == [("a", None, 1), ("b", None, 2)]
    assert sorted(tuple(row) for row in snapshot(spark, table, all_of_it).collect()) == sorted(theirs)
    assert ids_and_rows(spark, table, all_of_it) == [((0, B0, at), values) for at, values in enumerate(sorted(theirs))]


def test_bases_of_old_compactors_keep_rows_that_were_updated(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "t"
    events = [(0, 1, 0, 0, 1, ("inserted",)), (1, 1, 0, 1, 2, ("updated",))]
    _orc(place / "base_0000002" / "bucket_00000", _EVENT, events)
    (place / "base_0000002" / "_metadata_acid").write_text('{"thisFileVersion": "0", "dataFormat": "compacted"}')

    assert _values(spark, place, ValidWriteIdList("db.t", 2)) == ["inserted", "updated"]


@pytest.mark.parametrize("with_notes", [False, True], ids=["without stats", "with stats"])
@pytest.mark.parametrize(("event", "counted"), [((1, 1, 0, 0, 2, ("new",)), b"0,1,0"), ((2, 1, 0, 0, 2, None), b"0,0,1")],
                         ids=["update", "delete"])
def test_events_of_acid_version_1_that_change_rows_are_refused(
    event: tuple[Any, ...], counted: bytes, with_notes: bool, tmp_path: Path
) -> None:
    place, notes = tmp_path / "t", {"hive.acid.stats": counted} if with_notes else {}
    _orc(place / "delta_0000001_0000001_0000" / "bucket_00000", _EVENT, [(0, 1, 0, 0, 1, ("old",))])
    directories(described(place, COLUMNS), ValidWriteIdList("db.t", 2))
    _orc(place / "delta_0000002_0000002_0000" / "bucket_00000", _EVENT, [event], **notes)

    with pytest.raises(InvalidOperationError, match=r"delta_0000002_0000002_0000/bucket_00000 holds .* ACID version 1"):
        directories(described(place, COLUMNS), ValidWriteIdList("db.t", 2))
    directories(described(place, COLUMNS), ValidWriteIdList("db.t", 1))


def test_values_of_every_type_that_hive_wrote(spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    columns = {
        "a_boolean": "boolean", "a_tinyint": "tinyint", "a_smallint": "smallint", "an_int": "int", "a_bigint": "bigint",
        "a_float": "float", "a_double": "double", "a_decimal": "decimal(38,10)", "a_string": "string",
        "a_varchar": "varchar(5)", "a_char": "char(5)", "a_binary": "binary", "a_date": "date", "a_timestamp": "timestamp",
        "an_array": "array<int>", "a_map": "map<string,bigint>", "a_struct": "struct<x:int,y:string>"}
    place = tmp_path / "t"
    place.mkdir()
    oracle.write(place, columns, write_id=1, inserts=[
        [True, -128, -32768, -(2**31), -(2**63), 1.5, 0.1, "-9999999999999999999999999999.0123456789", "größe", "vier", "c",
         "AP8Q", "2013-03-10", "2013-03-10 02:30:00.123456", [1, None], [["k", 1]], [1, "y"]],
        [None] * len(columns)])
    table = described(place, columns)

    [full, empty] = snapshot(spark, table, ValidWriteIdList("db.t", 1)).orderBy("an_int", ascending=False).collect()

    assert set(empty) == {None}
    assert [str(value) for value in full] == [
        "True", "-128", "-32768", str(-(2**31)), str(-(2**63)), "1.5", "0.1",
        "-9999999999999999999999999999.0123456789", "größe", "vier", "c", "b'\\x00\\xff\\x10'",
        "2013-03-10", "2013-03-10 02:30:00.123456", "[1, None]", "{'k': 1}", "Row(x=1, y='y')"]


def test_texts_of_fixed_length_that_hive_padded_meet_conditions(spark: SparkSession, oracle: HiveOracle, tmp_path: Path) -> None:
    """What ORC notes of a group of rows is padded, what a condition compares with is not."""
    place, columns = tmp_path / "t", {"c": "char(5)", "v": "varchar(5)"}
    place.mkdir()
    oracle.write(place, columns, write_id=1, inserts=[["ab", "ab"], ["ab", "ab "]])
    rows = snapshot(spark, described(place, columns), ValidWriteIdList("db.t", 1))

    for condition, count in (("c = 'ab'", 2), ("c IN ('ab', 'x')", 2), ("c <= 'ab'", 2), ("c > 'ab'", 0), ("c <> 'ab'", 0),
                             ("v = 'ab'", 1), ("v = 'ab '", 1), ("v > 'ab'", 1)):
        assert (condition, len(rows.where(condition).collect())) == (condition, count)


def test_a_base_name_needs_no_compaction_to_be_raw(tmp_path: Path) -> None:
    place = tmp_path / "t"
    _plain(place / "base_0000001" / "000000_0", "a")

    [found] = directories(described(place, COLUMNS), ValidWriteIdList("db.t", 1))

    assert found.state.base
    assert found.state.base.name == BaseName(1)
    assert [one.first_row_id for one in found.sources.plain] == [0]
