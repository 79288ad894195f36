"""Partitions as Spark sees them: names, specs, and filters that the server answers."""

import copy
import datetime as dt
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

# Everything that a partition name escapes, and what it does not.
AWKWARD = ("a/b", "x=y", "50%", "%41", "it's", "# : * ? [ ] { } ^", "ä ö", "ß+&,<>|", "a\\b", "日本", "tab\there", "Case", "case")


def partitions(sql, table, spec=""):
    return [name for (name,) in sql(f"SHOW PARTITIONS {table} {spec}")]


@pytest.mark.parametrize("form", ["(v INT, day STRING, n INT) USING parquet PARTITIONED BY (day, n)",
                                  "(v INT) PARTITIONED BY (day STRING, n INT) STORED AS TEXTFILE"])
def test_writing_partitions(sql, hive, db, form):
    table = f"{db}.t"
    sql(f"CREATE TABLE {table} {form}")
    assert [key.name for key in hive.get_table(db, "t").partitionKeys] == ["day", "n"]
    sql(f"INSERT INTO {table} PARTITION (day = 'x', n = 1) VALUES (1)")                 # static
    sql(f"INSERT INTO {table} PARTITION (day = 'x', n) VALUES (2, 1), (3, 2)")          # mixed, one is new
    sql(f"INSERT INTO {table} PARTITION (day, n) VALUES (4, 'y', 1), (5, 'a/b', 7)")    # dynamic
    sql(f"INSERT INTO {table} VALUES (6, NULL, NULL)")
    null = "__HIVE_DEFAULT_PARTITION__"
    assert partitions(sql, table) == [f"day={null}/n={null}", "day=a%2Fb/n=7", "day=x/n=1", "day=x/n=2", "day=y/n=1"]
    assert partitions(sql, table, "PARTITION (day = 'x')") == ["day=x/n=1", "day=x/n=2"]
    assert partitions(sql, table, "PARTITION (n = 1)") == ["day=x/n=1", "day=y/n=1"]
    assert partitions(sql, table, "PARTITION (DAY = 'a/b')") == ["day=a%2Fb/n=7"]
    # Spark's reader of text files cannot read a null key of type INT (CAST_INVALID_INPUT), so no null is among these
    assert sorted(sql(f"SELECT v, day, n FROM {table} WHERE n > 0")) == [
        (1, "x", 1), (2, "x", 1), (3, "x", 2), (4, "y", 1), (5, "a/b", 7)]
    assert sql(f"SELECT v FROM {table} WHERE day IS NULL") == [(6,)]

    sql(f"INSERT OVERWRITE TABLE {table} PARTITION (day = 'x', n = 1) VALUES (10)")
    assert sorted(sql(f"SELECT v FROM {table} WHERE day = 'x'")) == [(3,), (10,)]
    assert len(partitions(sql, table)) == 5
    [stored] = hive.get_partitions_by_names(db, "t", ["day=a%2Fb/n=7"])
    assert stored.values == ["a/b", "7"]
    assert stored.sd.location.endswith("/t/day=a%2Fb/n=7")


def test_overwriting_only_the_partitions_that_are_written(sql, spark, db):
    sql(f"CREATE TABLE {db}.t (v INT, p STRING) USING parquet PARTITIONED BY (p)")
    sql(f"INSERT INTO {db}.t VALUES (1, 'a'), (2, 'b')")
    before = spark.conf.get("spark.sql.sources.partitionOverwriteMode")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        sql(f"INSERT OVERWRITE {db}.t VALUES (3, 'b'), (4, 'c')")
    finally:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", before)
    assert sorted(sql(f"SELECT * FROM {db}.t")) == [(1, "a"), (3, "b"), (4, "c")]
    sql(f"INSERT OVERWRITE {db}.t VALUES (5, 'c')")
    assert partitions(sql, f"{db}.t") == ["p=c"]


@pytest.mark.parametrize("form", ["(v INT, day STRING, n INT) USING parquet PARTITIONED BY (day, n)",
                                  "(v INT) PARTITIONED BY (day STRING, n INT) STORED AS ORC"])
def test_changing_partitions(sql, refused, hive, db, form, tmp_path):
    table = f"{db}.t"
    sql(f"CREATE TABLE {table} {form}")
    sql(f"ALTER TABLE {table} ADD PARTITION (day = 'x', n = 1) PARTITION (day = 'x', n = 2) "
        f"LOCATION '{(tmp_path / 'two').as_uri()}'")
    assert refused(f"ALTER TABLE {table} ADD PARTITION (day = 'new', n = 1) PARTITION (day = 'x', n = 2)") == "PARTITIONS_ALREADY_EXIST"
    assert partitions(sql, table) == ["day=x/n=1", "day=x/n=2"]         # all or nothing
    sql(f"ALTER TABLE {table} ADD IF NOT EXISTS PARTITION (day = 'x', n = 2) PARTITION (day = 'y', n = 3)")
    assert sql(f"SELECT * FROM {table}") == []                          # a partition without files is read
    sql(f"INSERT INTO {table} PARTITION (day = 'x', n = 2) VALUES (22)")
    assert list((tmp_path / "two").glob("part-*"))

    sql(f"INSERT INTO {table} PARTITION (day = 'x', n = 1) VALUES (11)")
    sql(f"ALTER TABLE {table} PARTITION (day = 'x', n = 1) RENAME TO PARTITION (day = 'x/z', n = 1)")
    assert partitions(sql, table) == ["day=x%2Fz/n=1", "day=x/n=2", "day=y/n=3"]
    assert sql(f"SELECT v FROM {table} WHERE day = 'x/z'") == [(11,)]
    renamed = hive.get_partition(db, "t", ["x/z", "1"])
    assert renamed.sd.location.endswith("/t/day=x%2Fz/n=1")
    assert refused(f"ALTER TABLE {table} PARTITION (day = 'x', n = 2) RENAME TO PARTITION (day = 'y', n = 3)") == "PARTITIONS_ALREADY_EXIST"
    assert refused(f"ALTER TABLE {table} PARTITION (day = 'none', n = 2) RENAME TO PARTITION (day = 'y', n = 4)") == "PARTITIONS_NOT_FOUND"

    other = tmp_path / "other"
    shutil.copytree(tmp_path / "two", other)
    sql(f"ALTER TABLE {table} PARTITION (day = 'y', n = 3) SET LOCATION '{other.as_uri()}'")
    assert sql(f"SELECT v FROM {table} WHERE n = 3") == [(22,)]
    shown = [row[:2] for row in sql(f"DESCRIBE EXTENDED {table} PARTITION (day = 'y', n = 3)")]
    assert ("Location", f"file:{other}") in shown
    assert ("Partition Values", "[day=y, n=3]") in shown
    assert refused(f"DESCRIBE {table} PARTITION (day = 'y', n = 4)") == "PARTITIONS_NOT_FOUND"

    sql(f"ANALYZE TABLE {table} PARTITION (day = 'y', n) COMPUTE STATISTICS")
    assert hive.get_partition(db, "t", ["y", "3"]).parameters["spark.sql.statistics.numRows"] == "1"
    sql(f"TRUNCATE TABLE {table} PARTITION (day = 'x/z')")
    assert sorted(sql(f"SELECT v FROM {table}")) == [(22,), (22,)]

    assert refused(f"ALTER TABLE {table} DROP PARTITION (day = 'none', n = 1)") == "PARTITIONS_NOT_FOUND"
    sql(f"ALTER TABLE {table} DROP IF EXISTS PARTITION (day = 'none', n = 1)")
    sql(f"ALTER TABLE {table} ADD PARTITION (day = 'x', n = 5)")
    sql(f"ALTER TABLE {table} DROP PARTITION (day = 'x'), PARTITION (day = 'y', n = 3)")      # the first names only one key
    assert partitions(sql, table) == ["day=x%2Fz/n=1"]


def test_finding_partitions_that_are_only_directories(sql, db, hive, spark):
    sql(f"CREATE TABLE {db}.t (v INT, day STRING, n INT) USING parquet PARTITIONED BY (day, n)")
    where = hive.get_table(db, "t").sd.location
    spark.range(1).selectExpr("CAST(1 AS INT) AS v", "'a/b' AS day", "1 AS n").union(
        spark.range(1).selectExpr("CAST(2 AS INT) AS v", "'c' AS day", "2 AS n")).write.partitionBy("day", "n").mode(
        "append").parquet(where)
    assert partitions(sql, f"{db}.t") == []
    sql(f"MSCK REPAIR TABLE {db}.t")
    assert partitions(sql, f"{db}.t") == ["day=a%2Fb/n=1", "day=c/n=2"]
    assert sorted(sql(f"SELECT * FROM {db}.t")) == [(1, "a/b", 1), (2, "c", 2)]
    sql(f"ALTER TABLE {db}.t RECOVER PARTITIONS")
    shutil.rmtree(Path(where.removeprefix("file:")) / "day=c")
    sql(f"MSCK REPAIR TABLE {db}.t SYNC PARTITIONS")
    assert partitions(sql, f"{db}.t") == ["day=a%2Fb/n=1"]


def test_awkward_values(sql, spark, db, hive):
    rows = [(number, value) for number, value in enumerate(AWKWARD)]
    spark.createDataFrame(rows, "v INT, p STRING").write.partitionBy("p").saveAsTable(f"{db}.t")
    sql(f"CREATE TABLE {db}.u (v INT) PARTITIONED BY (p STRING) STORED AS TEXTFILE")
    sql(f"INSERT INTO {db}.u SELECT v, p FROM {db}.t")
    for table in ("t", "u"):
        assert sorted(sql(f"SELECT v, p FROM {db}.{table}")) == rows
        assert len(partitions(sql, f"{db}.{table}")) == len(AWKWARD)
        assert sorted(one.values for one in hive.get_partitions(db, table, -1)) == sorted([value] for value in AWKWARD)
        for number, value in rows:
            assert spark.table(f"{db}.{table}").where(f"p = {literal(value)}").collect() == [(number, value)]


def literal(value):
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\t", "\\t")
    return f"'{escaped}'"


ROWS, NULL_ROWS = 13, 2     # of the fixture below; NULL_ROWS have no s


@pytest.fixture
def pruned(spark, sql, db):
    """``pruned(*predicates)``: of each the values of ``v``, and how many partitions the server sent for it.

    The same rows are in a table without partitions: what Spark finds there is the right answer.
    """
    days = [dt.date(2019, 12, 31), dt.date(2020, 1, 1), dt.date(2020, 2, 29), dt.date(2021, 1, 1)]
    names = ["2020-01", "2020-02", "a/b", "it's", None]
    rows = [(number, names[number % 5], number - 3, days[number % 4]) for number in range(ROWS - 1)]
    rows.append((12, "big", 2**40, None))
    spark.createDataFrame(rows, "v INT, s STRING, n BIGINT, d DATE").createOrReplaceTempView("pruning_rows")
    sql(f"CREATE TABLE {db}.flat USING parquet AS SELECT * FROM pruning_rows")
    sql(f"CREATE TABLE {db}.parts (v INT) PARTITIONED BY (S STRING, n BIGINT, d DATE) STORED AS TEXTFILE")
    sql(f"INSERT INTO {db}.parts SELECT * FROM {db}.flat")
    spark.catalog.dropTempView("pruning_rows")
    fetched = spark._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics.METRIC_PARTITIONS_FETCHED()

    def run(*predicates):
        of_all, answers = sql(f"SELECT v, {', '.join(predicates)} FROM {db}.flat"), []
        for place, predicate in enumerate(predicates, 1):
            before = fetched.getCount()
            found = sorted(v for (v,) in sql(f"SELECT v FROM {db}.parts WHERE {predicate}"))
            sent = fetched.getCount() - before
            assert found == sorted(row[0] for row in of_all if row[place]), predicate
            answers.append((predicate, found, sent))
        return answers

    return run


def test_only_the_partitions_that_can_match_are_sent(pruned, hive, db):
    """Every predicate of which Spark makes a filter: right rows always, and no partition too many."""
    assert len(hive.get_partition_names(db, "parts", -1)) == ROWS
    assert all(name.startswith("s=") for name in hive.get_partition_names(db, "parts", -1))
    for predicate, rows, sent in pruned(
            "s = '2020-01'", "S = '2020-01'", "'2020-01' = s", "s = 'a/b'", "s = \"it's\"", "s = 'nothing'",
            "s IN ('2020-01', 'a/b')", "s IN ('2020-01', \"it's\") AND n IN (-3, 0, 5)",
            "s LIKE '2020%'", "s LIKE '%b'", "s LIKE '%20-0%'", "s BETWEEN '2020' AND '2021'",
            "n = 4", "n < 0", "n >= 7", "n > 4000000000", "n = 99",
            "n IN (-3, -1, 8)", "n NOT IN (1, 2) AND n < 3", "n = -3 OR s = 'big'",
            "d = DATE'2020-02-29'", "d > DATE'2020-01-01'", "d IN (DATE'2020-01-01', DATE'2021-01-01')",
            "d BETWEEN DATE'2020-01-01' AND DATE'2020-12-31'",
            "(s = '2020-01' AND n > 0) OR (s = '2020-02' AND d < DATE'2020-06-01')"):
        assert sent == len(rows), predicate
    # to a filter on strings the name of the null partition is a string like others, as it is to Hive
    for predicate, rows, sent in pruned("s != '2020-01' AND s != '2020-02'", "s > '2020-01' AND s <= 'a/b'"):
        assert sent == len(rows) + NULL_ROWS, predicate


def test_what_cannot_be_pruned_is_read_right(pruned):
    answers = pruned(
        "s IS NULL", "d IS NULL", "length(s) = 3", "n % 2 = 0 AND s = '2020-01'", "NOT (s = '2020-01' OR n > 3)", "s <=> NULL", "year(d) = 2020",
        "v > 5", "v > 5 AND s = '2020-02'", "s != '2020-01' OR s IS NULL", "s IN ('2020-01', NULL)", "CAST(n AS STRING) = '4'", "n = 4.0",
        "s = '2020-01' AND v > 5", "true")
    assert answers[-2] == ("s = '2020-01' AND v > 5", [10], 3)       # the part that can be asked for is asked for
    assert answers[-1][2] == ROWS


# Values that catalogs of others hold: what Spark writes for far years, what JDBC and shells wrote, what nobody can read.
ODD = {
    "DATE": ("1965-09-12", "1965-09-12 23:59:59", " 1965-09-12", "1965-09-12T00:00:00", "1965-9-12", "1965-09", "+12345-01-02", "12345-01-02",
             "0000-01-01", "-0044-03-15", "2020-01-05", "2020-02-30", "soon", "9999-12-31"),
    "INT": ("7", "007", "+7", " 7", "-3", "3.5", "99999999999", "abc", "1e3"),
    "STRING": ("a", "a'b", 'a"b', "a\\", 'a\\"b', "a\\'b", "\\a", "a.*", "ab", "a b", ""),
}
ASKED = {
    "DATE": ("k = DATE'1965-09-12'", "k <> DATE'1965-09-12'", "k < DATE'1965-09-13'", "k > DATE'1965-09-11'", "k IN (DATE'1965-09-12', DATE'2020-01-05')",
             "k BETWEEN DATE'1965-09-12' AND DATE'1965-09-13'", "NOT k IN (DATE'1965-09-12')", "k NOT BETWEEN DATE'1965-09-12' AND DATE'1965-09-13'",
             "k = DATE'+12345-01-02'", "k < DATE'+12345-01-02'", "k = DATE'-0044-03-15'", "k = DATE'0000-01-01'", "k > DATE'9999-12-30'"),
    "INT": ("k = 7", "k <> 7", "k < 8", "k > 6", "k IN (7, 3)", "NOT k = 7", "k BETWEEN 3 AND 7"),
    "STRING": (r"k = 'a\\'", r"""k = 'a\\"b'""", r"k = 'a\\\'b'", r"""k <> 'a\\"b'""", r"""k NOT IN ('a\\"b')""", r"k IN ('a\\', 'ab')", r"k = '\\a'",
               r"startswith(k, 'a\\')", r"contains(k, '\\')", r"endswith(k, '\\')", "contains(k, '\"')", "startswith(k, 'a.')", "k = ''", "k <> 'a'"),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_filter_loses_no_partition_whose_value_is_odd(sql, spark, hive, db, kind):
    """As without pruning: what the server cannot read as the key's type is for Spark to judge."""
    sql(f"CREATE TABLE {db}.t (v INT) PARTITIONED BY (k {kind}) STORED AS TEXTFILE")
    table = hive.get_table(db, "t")
    for number, value in enumerate(ODD[kind]):
        place = Path(table.sd.location.removeprefix("file:")) / f"p{number}"
        place.mkdir()
        (place / "rows").write_text(f"{number}\n")
        sd = copy.deepcopy(table.sd)
        sd.location = f"{table.sd.location}/p{number}"
        hive.add_partition(hive.types.Partition([value], db, "t", 0, 0, sd, {}))
    settings = {"spark.sql.ansi.enabled": "false", "spark.sql.hive.metastorePartitionPruning": "true"}
    before = {key: spark.conf.get(key) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        answers = {condition: sorted(sql(f"SELECT v FROM {db}.t WHERE {condition}")) for condition in ASKED[kind]}
        spark.conf.set("spark.sql.hive.metastorePartitionPruning", "false")
        assert answers == {condition: sorted(sql(f"SELECT v FROM {db}.t WHERE {condition}")) for condition in ASKED[kind]}
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    assert all(answers.values())
