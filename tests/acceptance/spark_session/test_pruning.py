"""Partitions that a statement's conditions leave out are neither asked for nor listed; its rows and effects are the same."""

import datetime as dt
from copy import copy
from decimal import Decimal
from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F

from metastore.files import Files

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_DAYS = 20


@pytest.fixture
def days(acid_session, spark, db) -> str:
    """Two rows in each of many partitions."""
    name = f"{db}.days"
    acid_session.sql(f"CREATE TABLE {name} (id INT, v STRING) PARTITIONED BY (day DATE, hour INT) {_ACID}")
    acid_session.insert(name, spark.range(2 * _DAYS).selectExpr(
        "CAST(id AS INT) AS id", "'new' AS v", f"date_add(DATE '2024-02-20', CAST(id % {_DAYS} AS INT)) AS day", "CAST(id % 2 AS INT) AS hour"))
    return name


@pytest.fixture
def seen(monkeypatch) -> SimpleNamespace:
    """Record in ``listed`` the directories in which the planner, which is in this process, has listed anything."""
    found = SimpleNamespace(listed=set())
    listing = Files.listing

    def noted(files, uri):
        entries = listing(files, uri)
        found.listed |= {f"{uri}/{entry.path}".partition("/day=")[2].partition("/bucket_")[0].rpartition("/")[0]
                         for entry in entries if "/bucket_" in entry.path}
        return entries

    monkeypatch.setattr(Files, "listing", noted)
    return found


def _days(*numbers: int) -> set[str]:
    return {f"{dt.date(2024, 2, 20) + dt.timedelta(number)}/hour={number % 2}" for number in numbers}


QUERIES = [
    ("SELECT id FROM {t} WHERE day = '2024-02-29'", [9, 29], _days(9)),
    ("SELECT t.id FROM {t} t WHERE t.day BETWEEN DATE '2024-02-21' AND '2024-02-24' AND hour = 1 AND id > 2", [3, 21, 23], _days(1, 3)),
    ("SELECT id FROM {t} WHERE (day = '2024-02-20' AND v = 'new') OR (day = '2024-02-22' AND id = 2)", [0, 2, 20], _days(*range(_DAYS))),
    ("SELECT id FROM {t} WHERE day > '2030-01-01'", [], set()),
    ("WITH w AS (SELECT * FROM {t} WHERE day IN ('2024-02-20', '2024-02-25')) SELECT id FROM w", [0, 5, 20, 25], _days(0, 5)),
    ("SELECT b.id FROM {t} a LEFT JOIN {t} b ON a.id = b.id AND b.day = '2024-02-22' WHERE a.day = '2024-02-22'", [2, 22], _days(2)),
    ("SELECT id FROM {t} WHERE day <= date_add(DATE '2024-02-20', 1) AND day > current_date() - 100000", [0, 1, 20, 21], _days(0, 1)),
    ("SELECT id FROM {t} TIMESTAMP AS OF current_timestamp() WHERE day = '2024-02-20'", [0, 20], _days(0)),
    ("SELECT ROW__ID.writeid + id FROM {t} WHERE day = '2024-02-20'", [1, 21], _days(0))]


def test_only_partitions_that_match_are_listed(acid_session, days, seen) -> None:
    for query, ids, listed in QUERIES:
        seen.listed = set()
        assert (query, sorted(row[0] for row in acid_session.sql(query.format(t=days)).collect())) == (query, ids)
        assert (query, seen.listed) == (query, listed)

    seen.listed = set()
    frame = acid_session.table(days, where="day = date_add('2024-02-19', 1) AND id > 7", row_id=True)
    assert [row.id for row in frame.collect()] == [20]
    assert seen.listed == _days(0)
    for frame in (acid_session.sql(f"SELECT * FROM (SELECT * FROM {days}) WHERE day = '2024-02-20'"),
                  acid_session.table(days).where("day = '2024-02-20'")):
        seen.listed = set()
        assert sorted(row.id for row in frame.collect()) == [0, 20]
        assert seen.listed == _days(0)


def test_changes_ask_for_the_partitions_that_they_change(acid_session, spark, days, seen) -> None:
    sql = acid_session.sql
    merge = (f"MERGE INTO {days} t USING (SELECT explode(array(3, 100)) AS id) s ON t.id = s.id AND t.day = '2024-02-23' "
             "WHEN MATCHED THEN UPDATE SET v = 'merged' WHEN NOT MATCHED THEN INSERT (id, v, day, hour) VALUES (s.id, 'in', DATE '2024-02-21', 1)")
    for change, listed, count in [
            (f"UPDATE {days} SET v = 'changed' WHERE day = '2024-02-21' AND id = 21", _days(1), 1),
            (f"DELETE FROM {days} AS x WHERE x.day IN ('2024-02-22', '2024-02-24')", _days(2, 4), 4), (merge, _days(3), 2),
            (f"INSERT INTO {days} PARTITION (day='2024-02-25', hour=1) VALUES (200, 'in')", set(), 1),
            (f"INSERT OVERWRITE TABLE {days} PARTITION (day='2024-02-26', hour=0) VALUES (300, 'over')", set(), 1),
            (f"TRUNCATE TABLE {days} PARTITION (day='2024-02-27')", _days(7), 2)]:
        seen.listed = set()
        assert sql(change).first()["rows"] == count, change
        assert (change, seen.listed) == (change, listed)

    expected = {(id_, "new") for id_ in range(2 * _DAYS)} - {(id_, "new") for id_ in (2, 22, 4, 24, 21, 3, 6, 26, 7, 27)}
    expected |= {(21, "changed"), (3, "merged"), (100, "in"), (200, "in"), (300, "over")}
    assert {(row.id, row.v) for row in acid_session.table(days).collect()} == expected
    by_source = f"MERGE INTO {days} t USING (SELECT 1 AS id) s ON t.id = s.id AND t.day = '2024-02-21' WHEN NOT MATCHED BY SOURCE THEN DELETE"
    assert sql(by_source).first()["rows"] == len(expected) - 1


@pytest.fixture
def spelled(acid_session, spark, db) -> str:
    """Partitions as others may have spelled them; each holds one row."""
    name = f"{db}.spelled"
    types = acid_session.client.types
    acid_session.sql(f"CREATE TABLE {name} (id INT) PARTITIONED BY (p INT, n DECIMAL(6,2), q STRING) {_ACID}")
    sd = acid_session.client.get_table(db, "spelled").sd
    for place, values in enumerate([["03", "1.5", "it's/a=b%"], ["-1", "-0.25", "07"], ["7", "1", "a"]]):
        one = copy(sd)
        one.location = f"{sd.location}/lies{place}"
        acid_session.client.add_partition(types.Partition(values=values, dbName=db, tableName="spelled", sd=one, parameters={}))
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 3, 1.5, 'it\\'s/a=b%'), (2, -1, -0.25, '07'), (3, 7, 1, 'a'), (4, 7, 1, NULL), (5, NULL, 2, '7')")
    assert sorted(acid_session.client.get_partition_names(db, "spelled", -1)) == [
        "p=-1/n=-0.25/q=07", "p=03/n=1.5/q=it%27s%2Fa%3Db%25", "p=7/n=1.00/q=__HIVE_DEFAULT_PARTITION__", "p=7/n=1/q=a",
        "p=__HIVE_DEFAULT_PARTITION__/n=2.00/q=7"]
    return name


CONDITIONS = [
    "p = 3", "p = '03'", "p = '3'", "p IN ('03', 7)", "p IN ('3')", "p <=> 7", "p IS NULL", "p IS NULL OR p < '0'", "7 > p", "p = 3.0", "p BETWEEN '-2' AND 3",
    "n = 1.5", "n = 1.50", "n < 1.25", "n IN (1, 2)", "n = '1.5'", "n >= 1.5 AND p IS NOT NULL", "NOT n = 1.5", "p <> 7",
    "q = 'it\\'s/a=b%'", "q = '07'", "q = '7'", "q = 7", "q < 'a'", "q >= 'a' AND p = 7", "q IS NULL", "q LIKE '%7'", "q IN ('a', '07') OR n = 2"]


def test_conditions_mean_what_they_mean_to_spark_and_changes_stay_where_rows_are(acid_session, spark, db, spelled) -> None:
    sql = acid_session.sql
    schema = acid_session.table(spelled).schema
    content = spark.createDataFrame(acid_session.table(spelled).collect(), schema).coalesce(1)
    before = spark.conf.get("spark.sql.ansi.enabled")
    try:
        for is_ansi, conditions in (("true", [each for each in CONDITIONS if each != "q = 7"]), ("false", CONDITIONS)):  # 'a' is no number
            spark.conf.set("spark.sql.ansi.enabled", is_ansi)
            meant = content.select("id", *(F.expr(condition).alias(condition) for condition in conditions)).collect()
            # One statement, in which each condition has a scan of its own.
            found = sql(" UNION ALL ".join(f"SELECT {place} AS place, id FROM {spelled} WHERE {condition}" for place, condition in enumerate(conditions))).collect()
            for place, condition in enumerate(conditions):
                expected = sorted(row.id for row in meant if row[condition])
                assert (condition, sorted(row.id for row in found if row.place == place)) == (condition, expected)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)

    names = acid_session.client.get_partition_names(db, "spelled", -1)
    assert sql(f"UPDATE {spelled} SET id = 10 WHERE p = 3").first()["rows"] == 1
    assert sql(f"DELETE FROM {spelled} WHERE n <= 1 AND id <> 4").first()["rows"] == 2
    sql(f"INSERT OVERWRITE TABLE {spelled} PARTITION (p=3, n=1.5, q='it\\'s/a=b%') VALUES (11)")
    assert sql(f"TRUNCATE TABLE {spelled} PARTITION (n=2)").first()["rows"] == 1

    assert sorted(tuple(row) for row in acid_session.table(spelled).select("id", "p", "n").collect()) == [
        (4, 7, Decimal("1.00")), (11, 3, Decimal("1.50"))]
    assert acid_session.client.get_partition_names(db, "spelled", -1) == names


@pytest.fixture
def oddly_spelled(acid_session, db) -> str:
    """Two partitions whose values are not spelled as Spark does it; a row in each."""
    name, types = f"{db}.odd", acid_session.client.types
    acid_session.sql(f"CREATE TABLE {name} (id INT) PARTITIONED BY (at TIMESTAMP, day DATE) {_ACID}")
    sd = acid_session.client.get_table(db, "odd").sd
    for place, values in enumerate([["2024-01-05 10:00:00.0", "2024-1-5"], ["2024-02-01", "2024-01-07"]]):
        one = copy(sd)
        one.location = f"{sd.location}/lies{place}"
        acid_session.client.add_partition(types.Partition(values=values, dbName=db, tableName="odd", sd=one, parameters={}))
    acid_session.sql(f"INSERT INTO {name} VALUES (1, TIMESTAMP '2024-01-05 10:00:00', DATE '2024-01-05'), "
                     "(3, TIMESTAMP '2024-02-01 00:00:00', DATE '2024-01-07')")
    assert len(acid_session.client.get_partition_names(db, "odd", -1)) == 2
    return name


def test_rows_are_changed_where_they_are_in_partitions_that_only_spark_can_read(acid_session, db, oddly_spelled) -> None:
    sql = acid_session.sql
    names = acid_session.client.get_partition_names(db, "odd", -1)

    def rows():
        return sorted(tuple(row) for row in acid_session.table(oddly_spelled).selectExpr("id", "date_format(at, 'MM-dd HH:mm')", "day(day)").collect())

    assert sql(f"UPDATE {oddly_spelled} SET id = 10 WHERE day = '2024-01-05'").first()["rows"] == 1
    merge = (f"MERGE INTO {oddly_spelled} t USING (SELECT explode(array(3, 4)) AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 20 WHEN NOT MATCHED "
             "THEN INSERT (id, at, day) VALUES (s.id, TIMESTAMP '2024-02-01 00:00:00', DATE '2024-01-07')")
    assert sql(merge).first()["rows"] == 2
    assert sql(f"DELETE FROM {oddly_spelled} WHERE id = 20").first()["rows"] == 1

    assert rows() == [(4, "02-01 00:00", 7), (10, "01-05 10:00", 5)]
    sql(f"INSERT OVERWRITE TABLE {oddly_spelled} PARTITION (at='2024-01-05 10:00:00', day='2024-01-05') VALUES (11)")
    assert rows() == [(4, "02-01 00:00", 7), (11, "01-05 10:00", 5)]
    assert sql(f"TRUNCATE TABLE {oddly_spelled} PARTITION (at='2024-02-01 00:00:00')").first()["rows"] == 1
    assert rows() == [(11, "01-05 10:00", 5)]
    assert acid_session.client.get_partition_names(db, "odd", -1) == names
