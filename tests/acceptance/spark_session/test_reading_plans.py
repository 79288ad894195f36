"""Rows that a snapshot shows, whatever conditions leave out files and row groups."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_PARTITIONS = 40


@pytest.fixture
def partitioned(acid_session, spark, db) -> str:
    """Two rows in each of many partitions, with the same ROW__IDs in all, one partition the default one."""
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT) PARTITIONED BY (p INT, q STRING) {_ACID}")
    rows = spark.range(_PARTITIONS * 2).selectExpr(
        "id", f"CAST(id % {_PARTITIONS} AS INT) AS p", f"IF(id % {_PARTITIONS} = 7, NULL, 'it''s/' || (id % 2)) AS q")
    acid_session.insert(name, rows.coalesce(1))
    return name


def test_a_condition_on_partition_keys_however_many_partitions_there_are(acid_session, partitioned) -> None:
    assert len(acid_session.table(partitioned).collect()) == _PARTITIONS * 2
    for condition, ids in (("p = 3", [3, 43]), ("q IS NULL", [7, 47]), ("p < 4 AND q = 'it''s/1'", [1, 3, 41, 43])):
        frame = acid_session.table(partitioned).where(condition).select("id")

        assert sorted(row.id for row in frame.collect()) == ids


@pytest.mark.parametrize("setting", ["spark.sql.orc.enableVectorizedReader", "spark.sql.codegen.wholeStage"])
def test_rows_are_the_same_where_spark_takes_no_batches(acid_session, spark, db, setting) -> None:
    name = f"{db}.nested"
    acid_session.sql(f"CREATE TABLE {name} (id INT, inside STRUCT<deep: ARRAY<STRING>, far: MAP<STRING, DECIMAL(9,2)>>) {_ACID}")
    acid_session.insert(name, spark.range(50).selectExpr(
        "CAST(id AS INT) AS id", "struct(array('a', CAST(id AS STRING)) AS deep, map('k', CAST(id / 4 AS DECIMAL(9,2))) AS far) AS inside"))
    acid_session.sql(f"DELETE FROM {name} WHERE id % 7 = 1")
    expected = sorted(map(str, acid_session.table(name, row_id=True).collect()))

    spark.conf.set(setting, "false")
    try:
        found = sorted(map(str, acid_session.table(name, row_id=True).collect()))
        deep = acid_session.table(name).where("inside.deep[1] = '14'").select("inside.far", "id").collect()
    finally:
        spark.conf.unset(setting)

    assert len(found) == 43
    assert found == expected
    assert [(row.id, str(row.far["k"])) for row in deep] == [(14, "3.50")]


def test_tables_with_the_same_columns_are_not_taken_for_each_other(acid_session, spark, db) -> None:
    """Spark runs equal parts of a plan once, and takes what is cached for an equal plan."""
    for table, first in (("a", 0), ("b", 5)):
        acid_session.sql(f"CREATE TABLE {db}.{table} (id BIGINT) {_ACID}")
        acid_session.insert(f"{db}.{table}", spark.range(first, first + 10))
    acid_session.sql(f"DELETE FROM {db}.a WHERE id = 7")
    acid_session.sql(f"DELETE FROM {db}.b WHERE id = 8")
    both = f"SELECT a.id AS a, b.id AS b FROM {db}.a FULL JOIN {db}.b ON a.id = b.id"

    for threshold in ("-1", "10MB"):
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
        rows = acid_session.sql(both).collect()
        assert {row.a for row in rows} - {None} == set(range(10)) - {7}
        assert {row.b for row in rows} - {None} == set(range(5, 15)) - {8}
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    cached = acid_session.table(f"{db}.a").cache()
    try:
        assert cached.count() == 9
        assert {row.id for row in acid_session.table(f"{db}.b").collect()} == set(range(5, 15)) - {8}
        acid_session.sql(f"DELETE FROM {db}.a WHERE id = 9")
        assert acid_session.table(f"{db}.a").count() == 8
        assert acid_session.table(f"{db}.a", as_of_write_id=1).count() == 10
    finally:
        cached.unpersist()


def test_conditions_on_columns_that_row_groups_are_left_out_by(acid_session, spark, db) -> None:
    """Three row groups of 10,000 rows in one file, sorted by every column; one column came later."""
    name = f"{db}.groups"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT, note STRING, inside STRUCT<deep: INT>) {_ACID}")
    acid_session.insert(name, spark.range(0, 30_000, numPartitions=1).selectExpr(
        "id", "'n' || lpad(id, 5, '0') AS note", "struct(CAST(id AS INT) AS deep) AS inside"))
    acid_session.sql(f"DELETE FROM {name} WHERE id = 102")
    acid_session.sql(f"ALTER TABLE {name} ADD COLUMNS (missing INT)")

    for condition, ids in (("id = 25000", [25_000]), ("id BETWEEN 100 AND 103 OR id = 105", [100, 101, 103, 105]),
                           ("id IN (7, 9)", [7, 9]), ("note = 'n29999'", [29_999]), ("NOT id > 1", [0, 1]),
                           ("inside.deep = 29998 AND note LIKE 'n2%'", [29_998]), ("id = 4 AND missing IS NULL", [4])):
        frame = acid_session.table(name).where(condition)

        assert sorted(row.id for row in frame.collect()) == ids


def test_columns_named_like_those_of_events_are_not_taken_for_them(acid_session, spark, db) -> None:
    """ORC would compare the user's columns with what is asked of the events, and leave out whole row groups."""
    name = f"{db}.namesakes"
    acid_session.sql(f"CREATE TABLE {name} (operation INT, originalTransaction BIGINT, bucket INT, rowId BIGINT, "
                     f"currentTransaction BIGINT, `row` INT) {_ACID}")
    acid_session.insert(name, spark.range(0, 20, numPartitions=1).selectExpr(
        "CAST(id + 5 AS INT) AS operation", "-id - 1 AS originalTransaction", "CAST(-id - 1 AS INT) AS bucket",
        "-id - 1 AS rowId", "id + 1000 AS currentTransaction", "CAST(NULL AS INT) AS `row`"))
    acid_session.sql(f"DELETE FROM {name} WHERE rowId = -3")
    acid_session.sql(f"UPDATE {name} SET bucket = 77 WHERE operation = 9")

    rows = acid_session.table(name).collect()

    assert sorted(row.operation for row in rows) == [one for one in range(5, 25) if one != 7]
    assert [row.rowid for row in rows if row.bucket == 77] == [-5]

    # Without the marker of ACID version 2 each event is asked for its operation.
    place = Path(acid_session.client.get_table(db, "namesakes").sd.location.removeprefix("file:").replace("///", "/"))
    for marker in place.glob("*/_orc_acid_version"):
        marker.unlink()
    assert sorted(acid_session.table(name).collect()) == sorted(rows)
    assert [row.rowid for row in acid_session.table(name).where("operation = 9").collect()] == [-5]


def test_row_ids_far_apart_are_told_from_each_other(acid_session, spark, db) -> None:
    """Bits of words of 64 row ids: the first, the last and neighbours of words. Farther ones: test_deleted_rows.py."""
    acid_session.sql(f"CREATE TABLE {db}.wide (id BIGINT) CLUSTERED BY (id) INTO 2 BUCKETS {_ACID}")
    acid_session.insert(f"{db}.wide", spark.range(0, 1000, numPartitions=3))
    gone = [0, 1, 63, 64, 65, 127, 128, 333, 334, 666, 999]
    acid_session.sql(f"DELETE FROM {db}.wide WHERE id IN ({', '.join(map(str, gone))})")
    expected = sorted(set(range(1000)) - set(gone))

    assert sorted(row.id for row in acid_session.table(f"{db}.wide").collect()) == expected
