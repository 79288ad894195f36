"""Files whose row ids follow one another: a row's place in its file tells its id, and ids are read only where it does not.

In each case the columns of ids are destroyed: the answer has to come all the same, or none at all.
"""

import random
from itertools import accumulate
from pathlib import Path

import pyorc
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from metastore.acid.bucket import encode
from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import ValidWriteIdList
from metastore.acid_tables import deleted
from metastore.spark.tables.row_id import ROW_ID
from tests.support.acid.orc_streams import columns, destroy, without_statistics
from tests.support.acid.reading import described, snapshot
from tests.support.acid.tables import AcidTable

pytestmark = pytest.mark.spark

_B, _OTHER = encode(0), encode(0, 1)
RUNS = {
    "from the first": [(1, _B, number) for number in range(200)],
    "of the second statement": [(2, _OTHER, number) for number in range(70, 300)],
    "on both sides of a chunk's border": [(2, _B, number) for number in range((1 << 22) - 100, (1 << 22) + 100)],
    "of one row": [(1, _B, 77)],
}
OTHERS = {
    "one is missing": [(1, _B, number) for number in range(200) if number != 50],
    "two write ids": [(1, _B, number) for number in range(100)] + [(2, _B, number) for number in range(100, 200)],
    "two statements": [(1, _B, number) for number in range(100)] + [(1, _OTHER, number) for number in range(100, 200)],
    "as many as numbers between": [(1, _B, 0), (1, _B, 1), (2, _B, 1), (2, _B, 3)],
}
"""The ids of the rows of one file."""


def _table(spark, directory: Path, ids) -> tuple[AcidTable, Path, set[str]]:
    """A base with these rows, of which every third is deleted, and others that are not there; its file; what is left."""
    table = AcidTable(spark, directory / "t", {"v": "string", "w": "string"})
    table.directory.mkdir()
    table.insert(BaseName(2), [(*row, [str(row), "w"]) for row in ids])
    gone = ids[::3] if len(ids) > 1 else []
    elsewhere = {(write_id, bucket, number) for write_id in (1, 2) for bucket in (_B, _OTHER)
                 for number in (0, 64, 99, 100, 198)} - {*ids}
    table.delete(DeltaName(3, 3, 0), [(3, row) for row in sorted({*gone, *elsewhere})])
    [file] = (table.directory / "base_0000002").glob("bucket_*")
    return table, file, {str(row) for row in ids} - {str(row) for row in gone}


def _asked(spark, table: AcidTable) -> set[str]:
    return {row.v for row in snapshot(spark, described(table.directory, table.columns), ValidWriteIdList("db.t", 3)).collect()}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("case", RUNS)
def test_ids_that_are_a_run_are_not_read(spark, tmp_path, case) -> None:
    table, file, left = _table(spark, tmp_path, RUNS[case])
    assert destroy(file, columns(file, {"row.v", "row.w"})) > 0

    assert _asked(spark, table) == left


@pytest.mark.parametrize("case", OTHERS)
def test_ids_that_are_none_are_read(spark, tmp_path, case) -> None:
    table, file, left = _table(spark, tmp_path, OTHERS[case])
    assert _asked(spark, table) == left

    destroy(file, columns(file, {"row.v", "row.w"}))
    with pytest.raises((PySparkException, Py4JJavaError), match="bucket_00000"):
        _asked(spark, table)


def test_ids_are_read_where_the_footer_does_not_tell_them(spark, tmp_path) -> None:
    table, file, left = _table(spark, tmp_path, RUNS["from the first"])
    without_statistics(file)

    assert _asked(spark, table) == left


@pytest.mark.parametrize("words", [1 << 20, 0], ids=["bits", "join"])
def test_ids_that_are_asked_for_are_those_of_the_file(spark, tmp_path, monkeypatch, words) -> None:
    monkeypatch.setattr(deleted, "MAX_WORDS", words)
    table, _, left = _table(spark, tmp_path, RUNS["of the second statement"])
    frame = snapshot(spark, described(table.directory, table.columns), ValidWriteIdList("db.t", 3), row_ids=True)

    rows = frame.collect()

    assert {row.v for row in rows} == left
    assert all(row.v == str(tuple(row[name] for name in ROW_ID)) for row in rows)


@pytest.mark.usefixtures("small")
def test_places_are_right_behind_row_groups_stripes_and_splits_that_are_left_out(acid_session, spark, db) -> None:
    """Conditions that take the first, the last or no row group of a stripe; rows are deleted all over the file."""
    name, hadoop = f"{db}.long", spark._jsc.hadoopConfiguration()
    settings = {"orc.stripe.size": "200000", "orc.row.index.stride": "1000"}
    acid_session.sql(f"CREATE TABLE {name} (n BIGINT, text STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    for key, value in settings.items():
        hadoop.set(key, value)
    try:
        acid_session.insert(name, spark.range(0, 20_000, numPartitions=1).selectExpr("id AS n", "sha2(string(id), 512) AS text"))
    finally:
        for key in settings:
            hadoop.unset(key)
    location = Path(acid_session.client.get_table(*name.split(".")).sd.location.removeprefix("file:").replace("///", "/"))
    with (location / "delta_0000001_0000001_0000" / "bucket_00000").open("rb") as file:
        borders = [0, *accumulate(len(stripe) for stripe in pyorc.Reader(file).iter_stripes())]
    assert len(borders) > 4
    gone = {*random.Random(7).sample(range(20_000), 3000), *borders[:-1], 19_999}
    acid_session.delete(name, f"n IN ({', '.join(map(str, sorted(gone)))})")
    conditions = {
        "true": range(20_000),
        "n > 19500": range(19_501, 20_000),
        f"n >= {borders[2]} AND n < {borders[3]}": range(borders[2], borders[3]),
        f"n BETWEEN {borders[1] - 5} AND {borders[1] + 5}": range(borders[1] - 5, borders[1] + 6),
        f"n < 700 OR n IN ({borders[2] + 2500}, {borders[3] + 1500}) OR n BETWEEN 17000 AND 17010":
            {*range(700), borders[2] + 2500, borders[3] + 1500, *range(17_000, 17_011)},
    }

    for split in ("134217728", "30000"):
        spark.conf.set("spark.sql.files.maxPartitionBytes", split)
        try:
            for condition, numbers in conditions.items():
                rows = acid_session.sql(f"SELECT n FROM {name} WHERE {condition}").collect()
                assert (condition, sorted(row.n for row in rows)) == (condition, sorted({*numbers} - gone))
        finally:
            spark.conf.unset("spark.sql.files.maxPartitionBytes")
