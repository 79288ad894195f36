"""Rows and deletes that meet (ACID-18 to ACID-20), as vectors M1 to M13: we write, Hive's OrcInputFormat reads, and so do we."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import ValidWriteIdList
from tests.support.acid.reading import described, ids_and_rows
from tests.support.acid.tables import B0, B1, AcidTable
from tests.support.hive_oracle.oracle import HiveOracle

pytestmark = pytest.mark.spark


class _Vector(NamedTuple):
    write: Callable[[AcidTable], None]
    mark: int
    exceptions: tuple[int, ...]
    rows: str


def _rows(write_id: int, bucket: int, values: str) -> list[tuple[int, int, int, list[str]]]:
    return [(write_id, bucket, position, [value]) for position, value in enumerate(values.split())]


def _delta(low: int, high: int | None = None, statement: int | None = 0) -> DeltaName:
    return DeltaName(low, high or low, None if high else statement)


def _m1(table: AcidTable) -> None:
    table.insert(_delta(1), _rows(1, B0, "a0 a1 a2"))


def _m2(table: AcidTable) -> None:
    _m1(table)
    table.delete(_delta(2), [(2, (1, B0, 1))])
    table.insert(_delta(2), _rows(2, B0, "u0"))


def _m5(table: AcidTable) -> None:
    table.insert(_delta(1), _rows(1, B0, "a0 a1 a2 a3"))
    table.delete(_delta(2, 5), [(2, (1, B0, 0)), (4, (1, B0, 2))])
    table.insert(_delta(2, 5), _rows(3, B0, "c0"))


def _m6(table: AcidTable) -> None:
    _m1(table)
    table.delete(_delta(2), [(2, (1, B0, 1))])
    table.delete(_delta(3), [(3, (1, B0, 1)), (3, (1, B0, 77))])


def _m7(table: AcidTable) -> None:
    table.insert(_delta(1), _rows(1, B0, "a0 a1") + _rows(1, B1, "b0 b1"))
    table.delete(_delta(2), [(2, (1, B0, 0)), (2, (1, B1, 1))])


def _m8(table: AcidTable) -> None:
    table.insert(BaseName(3), _rows(1, B0, "a0 a1") + _rows(2, B0, "b0 b1") + _rows(3, B0, "c0"))
    table.delete(_delta(4), [(4, (2, B0, 0))])
    table.insert(_delta(5), _rows(5, B0, "e0"))


def _m9(table: AcidTable) -> None:
    table.insert(_delta(1), _rows(1, 0, "old0 old1 old2"))
    table.delete(_delta(2), [(2, (1, 0, 1))])


def _m10(table: AcidTable) -> None:
    table.insert(_delta(1), _rows(1, 0, "old0 old1 old2"))
    table.delete(_delta(2), [(2, (1, B0, 1))])


def _m11(table: AcidTable) -> None:
    table.insert(_delta(5), _rows(5, B0, "s0_0 s0_1"))
    table.delete(_delta(5, statement=1), [(5, (5, B0, 1))])
    table.insert(_delta(5, statement=1), _rows(5, B0 + 1, "s1_0 s1_1"))


def _m12(table: AcidTable) -> None:
    table.insert(_delta(1, 4), [row for wid in (1, 2, 3, 4) for row in _rows(wid, B0, f"r{wid}a r{wid}b")])


def _m13(table: AcidTable) -> None:
    table.insert(_delta(40, 60), _rows(45, B0, "x0 x1"))
    table.delete(_delta(50), [(50, (45, B0, 0))])


VECTORS = {
    "M1": _Vector(_m1, 5, (), "a0 a1 a2"),
    "M2": _Vector(_m2, 5, (), "a0 a2 u0"),
    "M3": _Vector(_m2, 1, (), "a0 a1 a2"),
    "M4": _Vector(_m2, 2, (2,), "a0 a1 a2"),
    "M5": _Vector(_m5, 5, (4,), "a1 a2 a3 c0"),
    "M6": _Vector(_m6, 5, (), "a0 a2"),
    "M7": _Vector(_m7, 5, (), "a1 b0"),
    "M8": _Vector(_m8, 5, (), "a0 a1 b1 c0 e0"),
    "M9": _Vector(_m9, 5, (), "old0 old2"),
    "M10": _Vector(_m10, 5, (), "old0 old1 old2"),
    "M11": _Vector(_m11, 5, (), "s0_0 s1_0 s1_1"),
    "M12": _Vector(_m12, 3, (2,), "r1a r1b r3a r3b"),
    "M13": _Vector(_m13, 100, (), "x0 x1"),
}


@pytest.mark.parametrize("name", VECTORS)
def test_hive_and_we_read_what_the_specification_says(
    name: str, spark: SparkSession, oracle: HiveOracle, tmp_path: Path
) -> None:
    write, mark, exceptions, expected = VECTORS[name]
    table = AcidTable(spark, tmp_path / "t")
    table.directory.mkdir()
    write(table)
    snapshot = ValidWriteIdList("db.t", mark, min(exceptions, default=None), exceptions)

    rows = oracle.rows(table.directory, snapshot, table.columns)

    assert sorted(row.values[0] for row in rows) == expected.split()
    ours = ids_and_rows(spark, described(table.directory, table.columns), snapshot)
    assert ours == sorted(((row.row_id, tuple(row.values)) for row in rows), key=repr)
