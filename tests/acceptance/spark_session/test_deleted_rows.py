"""Rows whose ids are neighbours in every way: of several write ids, statements and buckets in one file, on both sides of
the borders of words and chunks. What a scan shows is what a plain list says, however it finds the deleted ones."""

import random
from itertools import product

import pytest

from metastore.acid.bucket import encode
from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid_tables import deleted
from metastore.spark.read import reader
from tests.support.acid.reading import described, ids_and_rows, snapshot
from tests.support.acid.tables import AcidTable

pytestmark = pytest.mark.spark

_BORDERS = [0, 1, 63, 64, 127, (1 << 21) - 1, 1 << 21, (1 << 21) + 64, (1 << 22) - 1, 1 << 22, (1 << 22) + 63,
            (1 << 22) + (1 << 21), (1 << 23) + 5, (1 << 33) + 1, (1 << 40) + 5]
# What a join mixes of these ids is what it mixes of deleted ones: of another statement, writer, write id.
MIXED_ALIKE = [(1, encode(0), 1 << 20), (2, encode(0), 1 << 22 | 1 << 36), (2, encode(0), 3 << 44)]
ROWS = [*MIXED_ALIKE, *product((1, 2), (encode(0), encode(0, 1), encode(1)), _BORDERS),
        *((1, encode(0, statement), 3) for statement in range(2, 9))]
FIRST = [(1, encode(0), 0), (1, encode(0, 1), 0), (1, encode(0, 1), 64), (1, encode(0, 4), 3), (2, encode(1), 1 << 22)]
THIRD = random.Random(4).sample(ROWS, len(ROWS) // 3)
_OTHERS = [row for row in ROWS if row not in {*FIRST, *THIRD}]
LATER = list(zip((5, 6, 7), _OTHERS, strict=False))
SEEN = [(ValidWriteIdList("db.t", 3), {*FIRST}), (ValidWriteIdList("db.t", 4), {*FIRST, *THIRD}),
        (ValidWriteIdList("db.t", 7, 6, (6,)), {*FIRST, *THIRD, _OTHERS[0], _OTHERS[2]}),
        (ValidWriteIdList("db.t", 6), {*FIRST, *THIRD, _OTHERS[0], _OTHERS[1]})]
"""Snapshots, and which rows are deleted in each."""


@pytest.fixture(scope="module")
def far(spark, tmp_path_factory):
    """A base with all rows, deletes of a few of them, then of a third, then of three by as many transactions in one."""
    table = AcidTable(spark, tmp_path_factory.mktemp("far") / "t", {"v": "string"})
    table.directory.mkdir()
    table.insert(BaseName(2), [(*row, [str(row)]) for row in ROWS])
    table.delete(DeltaName(3, 3, 0), [(3, row) for row in FIRST])
    table.delete(DeltaName(4, 4, 0), [(4, row) for row in THIRD])
    table.delete(DeltaName(5, 7), LATER)
    return table


@pytest.mark.parametrize(("words", "one_by_one", "settings", "join"), [
    (1 << 22, 0, {}, None),
    (1 << 22, 0, {"spark.sql.orc.enableVectorizedReader": "false"}, None),
    (0, 1000, {}, "BroadcastHashJoin"),
    (0, 0, {}, "SortMergeJoin"),
], ids=["bits", "bits, row by row", "broadcast", "merge"])
def test_the_rows_that_are_left(spark, far, monkeypatch, words, one_by_one, settings, join):
    monkeypatch.setattr(deleted, "MAX_WORDS", words)
    monkeypatch.setattr(reader, "BROADCAST_LIMIT", one_by_one)
    for setting, value in settings.items():
        spark.conf.set(setting, value)
    try:
        table = described(far.directory, far.columns)
        for write_ids, named in SEEN:
            left = [(row, (str(row),)) for row in ROWS if row not in named]
            assert ids_and_rows(spark, table, write_ids) == sorted(left, key=repr)
            frame = snapshot(spark, table, write_ids)
            assert sorted(row.v for row in frame.collect()) == sorted(str(row) for row in ROWS if row not in named)
            plan = frame._jdf.queryExecution().executedPlan().toString()
            assert [name for name in ("BroadcastHashJoin", "SortMergeJoin") if name in plan] == ([join] if join else [])
    finally:
        for setting in settings:
            spark.conf.unset(setting)
