"""CHAR and VARCHAR columns: what Spark does with those of its own tables, also where rows of before lack blanks or are too long."""

import copy
from contextlib import closing

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from metastore.client import scan
from tests.support.compacting import Compacting
from tests.support.spark_sessions import is_before, skip_where_inserts_give_all_columns

pytestmark = pytest.mark.spark

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
COLUMNS = """(n INT, c CHAR(5), v VARCHAR(3), st STRUCT<c: CHAR(3), v: VARCHAR(2)>, a ARRAY<VARCHAR(2)>, m MAP<CHAR(2), VARCHAR(2)>)
             PARTITIONED BY (kc CHAR(3), kv VARCHAR(3))"""
BOTH = [
    "INSERT INTO {t} VALUES (1, 'ab', 'x', named_struct('c', 'q', 'v', 'w'), array('a', 'bb'), map('k', 'v'), 'a', 'b')",
    """INSERT INTO {t} VALUES (2, 'abcde  ', 'xyz  ', named_struct('c', 'q    ', 'v', 'w    '), array('a  ', 'bb'), map('k   ', 'v   '), 'a   ', 'b   '),
       (3, NULL, '', NULL, NULL, NULL, '', NULL)""",
    *(f"INSERT INTO {{t}} VALUES (4, {row})" for row in (
        "'abcdef', 'x', NULL, NULL, NULL, 'a', 'b'", "'a', 'xyzz', NULL, NULL, NULL, 'a', 'b'", "'a', 'x', named_struct('c', 'qqqq', 'v', 'w'), NULL, NULL, 'a', 'b'",
        "'a', 'x', NULL, array('aaa'), NULL, 'a', 'b'", "'a', 'x', NULL, NULL, map('aaa', 'v'), 'a', 'b'", "'a', 'x', NULL, NULL, NULL, 'aaaa', 'b'",
        "'a', 'x', NULL, NULL, NULL, 'a', 'bbbb'")),
    "INSERT INTO {t} PARTITION (kc = 'c', kv = 'd') VALUES (5, 'größe', 'äöü', NULL, NULL, NULL)",
    "INSERT INTO {t} PARTITION (kc = 'cccc', kv = 'd') VALUES (6, NULL, NULL, NULL, NULL, NULL)",
    "SELECT * FROM {t} ORDER BY n",
    "SELECT n, length(c), length(v), length(kc), length(kv), concat('[', st.c, st.v, ']'), length(a[0]) FROM {t} ORDER BY n",
    # One statement, in which each condition has a scan of its own.
    " UNION ALL ".join(f"SELECT {place} AS place, n FROM {{t}} WHERE {condition}" for place, condition in enumerate((
        "c = 'ab'", "c = 'ab   '", "c = 'ab      '", "c IN ('ab', 'z')", "c > 'ab'", "v = 'xyz'", "st.c = 'q'", "kc = 'a'", "kc = 'a  '", "kc IN ('a', 'e')",
        "kc > 'a'", "kc LIKE 'a'", "kv = 'b'", "kv IS NULL", "kc = ''", "c = kc", "kc IN (SELECT kc FROM {t} WHERE n = 1)"))) + " ORDER BY place, n",
    "SELECT max(c), min(c), count(c), max(kc), min(kv) FROM {t}",
    "SELECT kc, kv, count(*) FROM {t} GROUP BY kc, kv ORDER BY 1, 2",
    "SELECT a.n, b.n FROM {t} a JOIN {t} b ON a.kc = b.kc AND a.kv = b.kv OR a.c = b.v ORDER BY 1, 2",
    "SHOW PARTITIONS {t} PARTITION (kc = 'a')", "DESCRIBE {t}", "DESCRIBE {t} c",
    "INSERT OVERWRITE {t} PARTITION (kc = 'c', kv = 'd') VALUES (7, 'w', NULL, NULL, NULL, NULL)",
    "INSERT OVERWRITE {t} PARTITION (kc = 'c', kv) SELECT 8, 'w', NULL, NULL, NULL, NULL, 'd'", "SELECT n, c FROM {t} ORDER BY n",
    "ALTER TABLE {t} ADD PARTITION (kc = 'n', kv = 'o')", "ALTER TABLE {t} ADD PARTITION (kc = 'n  ', kv = 'o')", "ALTER TABLE {t} ADD PARTITION (kc = 'nnnn', kv = 'o')",
    "ALTER TABLE {t} ADD PARTITION (kc = 'n', kv = 'oooo')", "ALTER TABLE {t} PARTITION (kc = 'n', kv = 'o') RENAME TO PARTITION (kc = 'p', kv = 'q')",
    "SHOW PARTITIONS {t} PARTITION (kc = 'p')", "ALTER TABLE {t} DROP PARTITION (kc = 'p', kv = 'q')", "TRUNCATE TABLE {t} PARTITION (kc = 'c', kv = 'd')",
    "CREATE TABLE {t}_of {how} AS SELECT * FROM {t}", "DESCRIBE {t}_of", "SELECT n, c, length(kc) FROM {t}_of ORDER BY n",
    "ALTER TABLE {t} ADD COLUMNS (v2 VARCHAR(2), c2 CHAR(2))", "SELECT n, v2, c2 FROM {t} ORDER BY n", "DESCRIBE {t}",
]
"""Run on an ACID table and on a plain one, with the same answers and the same refusals."""

SOME_COLUMNS = ["INSERT INTO {t} (n, kc, kv, c) VALUES (10, 'c', 'd', 'z')", "INSERT INTO {t} (n, kc, kv, c) VALUES (11, 'c', 'd', 'zzzzzz')",
                "INSERT INTO {t} BY NAME SELECT 'zz' c, 12 n, 'e' kc, '' kv", "INSERT INTO {t} BY NAME SELECT 'zzzzzz' c, 13 n, 'e' kc, 'f' kv",
                "SELECT * FROM {t} ORDER BY n"]


def answers(catalog, statements, name, how):
    """Return the rows of each statement, or the beginning of its error up to the table's name."""
    found = []
    for statement in statements:
        try:
            found.append([str(row.asDict(recursive=True)) for row in catalog.sql(statement.format(t=name, how=how)).collect()])
        except PySparkException as error:
            words = str(error).splitlines()[0].split(" in table ")[0]
            assert "EXCEED_LIMIT_LENGTH" in words or "ALREADY_EXIST" in words, (statement, words)
            found.append(words)
    return found


def rows(catalog, query):
    return sorted(map(tuple, catalog.sql(query).collect()), key=repr)


def refused(catalog, statement):
    with pytest.raises(PySparkException, match="EXCEED_LIMIT_LENGTH"):
        catalog.sql(statement)


@pytest.fixture
def unchecked(catalog):
    """Return a function that runs statements as sessions did to which CHAR and VARCHAR were STRING."""
    def run(statement):
        catalog.conf.set("spark.sql.legacy.charVarcharAsString", "true")
        try:
            return catalog.sql(statement)
        finally:
            catalog.conf.unset("spark.sql.legacy.charVarcharAsString")
    return run


def test_statements_do_what_they_do_in_a_plain_table(catalog, db) -> None:
    statements = [f"CREATE TABLE {{t}} {COLUMNS} {{how}}", *BOTH, *([] if is_before(catalog, "4.1") else SOME_COLUMNS)]
    ours = answers(catalog, statements, f"{db}.ours", ACID)
    plain = answers(catalog, statements, f"{db}.plain", "STORED AS ORC")
    for statement, one, other in zip(statements, ours, plain, strict=True):
        assert one == other, statement


def test_rows_are_changed_by_what_fits(catalog, db) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (n INT, c CHAR(5), v VARCHAR(3), st STRUCT<c: CHAR(2)>) PARTITIONED BY (k CHAR(3)) {ACID}")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'a', 'v', named_struct('c', 's'), 'k'), (2, 'b', 'w', NULL, 'l')")

    for statement in ("UPDATE {t} SET c = 'toolong' WHERE n = 1", "UPDATE {t} SET v = concat(v, 'long')", "UPDATE {t} SET st.c = 'long' WHERE n = 1",
                      "MERGE INTO {t} USING (SELECT 1 AS x) ON n = x WHEN MATCHED THEN UPDATE SET c = 'toolong'",
                      "MERGE INTO {t} USING (SELECT 9 AS x) ON n = x WHEN NOT MATCHED THEN INSERT (n, c, v, st, k) VALUES (9, 'c', 'long', NULL, 'k')"):
        refused(catalog, statement.format(t=name))
    catalog.sql(f"UPDATE {name} SET c = 'u', v = 'x     ', st.c = 't' WHERE c = 'a' AND k = 'k'")
    catalog.sql(f"MERGE INTO {name} t USING (SELECT 2 AS n, 'm' AS c, 'l' AS k UNION ALL SELECT 3, 'new', 'l') s ON t.n = s.n "
                "WHEN MATCHED THEN UPDATE SET c = s.c, k = s.k WHEN NOT MATCHED THEN INSERT (n, c, v, st, k) VALUES (s.n, s.c, NULL, NULL, s.k)")
    assert rows(catalog, f"SELECT n, c, v, st.c, k FROM {name}") == [
        (1, "u    ", "x  ", "t ", "k  "), (2, "m    ", "w", None, "l  "), (3, "new  ", None, None, "l  ")]
    catalog.sql(f"DELETE FROM {name} WHERE c = 'u' OR k = 'k'")
    assert rows(catalog, f"SELECT n FROM {name}") == [(2,), (3,)]


def test_rows_of_before_without_blanks_or_too_long_are_found_and_changed(catalog, db, lakehouse, unchecked, spark) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (n INT, c CHAR(5), v VARCHAR(3), st STRUCT<x: INT, c: CHAR(2)>) PARTITIONED BY (k CHAR(3)) {ACID}")
    unchecked(f"""INSERT INTO {name} VALUES (1, 'a', 'v', named_struct('x', 1, 'c', 's'), 'k'), (2, 'b', 'toolong', NULL, 'k'), (3, 'c', 'v', NULL, 'k'),
                  (4, 'toolong', 'v', NULL, 'k')""")
    assert sorted(row["c"] for row in scan(name, uri=lakehouse.uri).to_arrow().to_pylist()) == ["a", "b", "c", "toolo"]  # as Hive shows it

    assert rows(catalog, f"SELECT n, c FROM {name} WHERE c IN ('a', 'toolong')") == [(1, "a    "), (4, "toolong")]
    catalog.sql(f"UPDATE {name} SET n = 10 WHERE c = 'a'")
    catalog.sql(f"UPDATE {name} SET n = 11 WHERE st.c = 's '")
    catalog.sql(f"UPDATE {name} SET n = n + 10 WHERE v = 'toolong' OR c = 'toolong'")
    catalog.sql(f"MERGE INTO {name} t USING {name} s ON t.c = s.c WHEN MATCHED THEN UPDATE SET n = t.n + 100 "
                "WHEN NOT MATCHED THEN INSERT (n, c, v, st, k) VALUES (0, 'again', '', NULL, 'k')")
    catalog.sql(f"DELETE FROM {name} WHERE c = 'c'")
    left = [(111, "a    ", "v"), (112, "b    ", "toolong"), (114, "toolong", "v")]
    assert rows(catalog, f"SELECT n, c, v FROM {name}") == left
    refused(catalog, f"UPDATE {name} SET v = concat(v, '') WHERE n = 112")

    with closing(Compacting(lakehouse.database_url, lakehouse.uri, spark)) as compacting:
        assert compacting.compact(db, "t", "major", "k=k") == "compacted", compacting.report
    assert rows(catalog, f"SELECT n, c, v FROM {name}") == left
    catalog.sql(f"UPDATE {name} SET v = left(v, 3), c = left(c, 5)")
    assert rows(catalog, f"SELECT n, c, v FROM {name}") == [(111, "a    ", "v"), (112, "b    ", "too"), (114, "toolo", "v")]


def test_a_partition_is_that_of_its_char_however_its_name_spells_it(catalog, db, client) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (n INT, c STRING) PARTITIONED BY (k CHAR(3)) {ACID}")
    sd, types = copy.copy(client.get_table(db, "t").sd), client.types
    sd.location += "/k=o"
    client.add_partitions_req(types.AddPartitionsRequest(dbName=db, tblName="t", ifNotExists=False, needResult=False, parts=[
        types.Partition(values=["o"], dbName=db, tableName="t", sd=sd, parameters={}, createTime=0, lastAccessTime=0)]))

    def left(statement):
        catalog.sql(statement.format(t=name))
        assert rows(catalog, f"SHOW PARTITIONS {name}") == [("k=o",)], statement
        return rows(catalog, f"SELECT n, c, k FROM {name} WHERE k = 'o'")

    assert left("INSERT INTO {t} VALUES (1, 'a', 'o'), (2, 'b', 'o  ')") == [(1, "a", "o  "), (2, "b", "o  ")]
    assert left("UPDATE {t} SET c = 'u' WHERE k = 'o' AND n = 1") == [(1, "u", "o  "), (2, "b", "o  ")]
    assert left("MERGE INTO {t} t USING (SELECT 2 n, 'm' c, 'o' k) s ON t.n = s.n WHEN MATCHED THEN UPDATE SET c = s.c, k = s.k") == [
        (1, "u", "o  "), (2, "m", "o  ")]
    assert left("DELETE FROM {t} WHERE k = 'o' AND n = 1") == [(2, "m", "o  ")]
    assert left("INSERT OVERWRITE {t} PARTITION (k = 'o') VALUES (3, 'c')") == [(3, "c", "o  ")]
    assert left("INSERT INTO {t} REPLACE WHERE k = 'o' SELECT 4, 'd', 'o'") == [(4, "d", "o  ")]
    assert left("ALTER TABLE {t} ADD IF NOT EXISTS PARTITION (k = 'o')") == [(4, "d", "o  ")]
    assert left("TRUNCATE TABLE {t} PARTITION (k = 'o')") == []
    catalog.sql(f"ALTER TABLE {name} DROP PARTITION (k = 'o')")
    assert rows(catalog, f"SHOW PARTITIONS {name}") == []


def test_frames_write_what_fits(catalog, db) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (n INT, c CHAR(5)) PARTITIONED BY (k CHAR(3)) {ACID}")
    frame = catalog.sql("SELECT 1 AS n, 'a' AS c, 'k' AS k")
    frame.writeTo(name).append()
    frame.withColumn("c", F.lit("b")).writeTo(name).overwrite(F.col("k") == "k")
    frame.write.insertInto(name)
    assert rows(catalog, f"SELECT * FROM {name}") == [(1, "a    ", "k  "), (1, "b    ", "k  ")]
    for write in (lambda long: long.writeTo(name).append(), lambda long: long.writeTo(name).overwritePartitions(), lambda long: long.write.insertInto(name)):
        with pytest.raises(PySparkException, match="EXCEED_LIMIT_LENGTH"):
            write(frame.withColumn("c", F.lit("toolong")))
    assert [field.dataType.simpleString() for field in catalog.table(name).schema] == ["int", "string", "string"]


def test_a_column_holds_more_when_it_is_altered(catalog, db, client) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (n INT, c CHAR(5), v VARCHAR(3), w VARCHAR(3)) {ACID}")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'a', 'b', 'c')")
    for statement in ("CHANGE v v VARCHAR(2)", "CHANGE c c CHAR(6)", "CHANGE c c VARCHAR(6)", "ALTER COLUMN v TYPE CHAR(3)"):
        with pytest.raises(PySparkException, match=r"NOT_SUPPORTED_CHANGE_COLUMN|does not hold all of its values"):
            catalog.sql(f"ALTER TABLE {name} {statement}")
    for statement in ("CHANGE v v VARCHAR(10)", "ALTER COLUMN w TYPE STRING", "CHANGE c c STRING", "ADD COLUMNS (x CHAR(2))"):
        catalog.sql(f"ALTER TABLE {name} {statement}")
    assert [(one.name, one.type) for one in client.get_table(db, "t").sd.cols] == [
        ("n", "int"), ("c", "string"), ("v", "varchar(10)"), ("w", "string"), ("x", "char(2)")]
    catalog.sql(f"INSERT INTO {name} VALUES (2, 'any length', '0123456789', 'any length', 'y')")
    assert rows(catalog, f"SELECT * FROM {name}") == [(1, "a    ", "b", "c", None), (2, "any length", "0123456789", "any length", "y ")]
    assert "v VARCHAR(10)" in catalog.sql(f"SHOW CREATE TABLE {name}").head()[0]


def test_statements_add_columns_to_tables_with_them(catalog, db) -> None:
    if is_before(catalog, "4.1"):
        pytest.skip("Spark 4.0 adds no columns")
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (n INT, c CHAR(5), v VARCHAR(3)) {ACID}")
    merge = ("MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 1 AS n, '{c}' AS c, 'v' AS v, 'x' AS {new}) s ON t.n = s.n "
             "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    catalog.sql(merge.format(t=name, c="a", new="more"))
    catalog.sql(merge.format(t=name, c="b", new="most"))
    refused(catalog, merge.format(t=name, c="toolong", new="most"))
    assert rows(catalog, f"SELECT * FROM {name}") == [(1, "b    ", "v", "x", "x")]
    if is_before(catalog, "4.2"):
        return
    catalog.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} BY NAME SELECT 2 AS n, 'c' AS c, 'v' AS v, 1 AS number")
    refused(catalog, f"INSERT WITH SCHEMA EVOLUTION INTO {name} BY NAME SELECT 2 AS n, 'c' AS c, 'long' AS v, 1 AS number")
    assert rows(catalog, f"SELECT n, c, v, number FROM {name}") == [(1, "b    ", "v", None), (2, "c    ", "v", 1)]


def test_checks_and_defaults_know_a_chars_blanks(catalog, db, session) -> None:
    skip_where_inserts_give_all_columns(catalog)
    name = f"{db}.t"
    session.sql(f"CREATE TABLE {name} (n INT, c CHAR(5) DEFAULT 'd', v VARCHAR(3) DEFAULT 'e', CONSTRAINT few CHECK (c IN ('ab', 'd'))) {ACID}")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'ab', 'x'), (2, DEFAULT, DEFAULT)")
    catalog.sql(f"INSERT INTO {name} (n) VALUES (3)")
    catalog.sql(f"UPDATE {name} SET c = DEFAULT WHERE n = 1")
    with pytest.raises(PySparkException, match="CHECK few"):
        catalog.sql(f"UPDATE {name} SET c = 'abc'")
    assert rows(catalog, f"SELECT * FROM {name}") == [(1, "d    ", "x"), (2, "d    ", "e"), (3, "d    ", "e")]


@pytest.mark.parametrize("kind", ["CHAR(5)", "VARCHAR(5)"])
def test_buckets_and_joins_of_texts(catalog, db, kind, unchecked) -> None:
    for name in ("a", "b"):
        catalog.sql(f"CREATE TABLE {db}.{name} (k {kind}, n INT) CLUSTERED BY (k) INTO 4 BUCKETS {ACID}")
        catalog.sql(f"INSERT INTO {db}.{name} SELECT concat('r', id), id FROM range(20)")
        unchecked(f"INSERT INTO {db}.{name} SELECT concat('s', id), id FROM range(20)")
    settings = {"spark.sql.sources.v2.bucketing.enabled": "true", "spark.sql.autoBroadcastJoinThreshold": "-1"}
    for setting, value in settings.items():
        catalog.conf.set(setting, value)
    try:
        assert rows(catalog, f"SELECT count(*), sum(a.n) FROM {db}.a JOIN {db}.b ON a.k = b.k") == [(40, 380)]
        catalog.sql(f"DELETE FROM {db}.b WHERE n >= 10")
        catalog.sql(f"MERGE INTO {db}.a USING {db}.b ON a.k = b.k WHEN MATCHED THEN UPDATE SET k = b.k, n = -1 WHEN NOT MATCHED THEN INSERT *")
        assert rows(catalog, f"SELECT count(*), sum(n) FROM {db}.a") == [(40, 2 * sum(range(10, 20)) - 20)]
    finally:
        for setting in settings:
            catalog.conf.unset(setting)


def test_streams_hold_and_pad_texts(catalog, db, tmp_path, unchecked) -> None:
    def run(frame, name, checkpoint):
        catalog._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(catalog._jsparkSession)
        query = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / checkpoint)).toTable(name)
        query.awaitTermination(300)

    def add(number, c, v, k):
        catalog.sql(f"SELECT {number} AS n, '{c}' AS c, '{v}' AS v, named_struct('c', 's') AS st, '{k}' AS k").write.json(str(tmp_path / f"source{number}"))
        source = catalog.readStream.schema("n INT, c STRING, v STRING, st STRUCT<c: STRING>, k STRING").json(str(tmp_path / f"source{number}"))
        run(source, f"{db}.a", f"checkpoint{number}")

    for name in ("a", "b"):
        catalog.sql(f"CREATE TABLE {db}.{name} (n INT, c CHAR(5), v VARCHAR(3), st STRUCT<c: CHAR(2)>) PARTITIONED BY (k CHAR(3)) {ACID}")
    unchecked(f"INSERT INTO {db}.a VALUES (0, 'a', 'v', NULL, 'k')")
    add(1, "a      ", "v      ", "k")
    for number, texts in enumerate([("toolong", "v", "k"), ("a", "long", "k"), ("a", "v", "long")], 2):
        with pytest.raises(PySparkException, match="EXCEED_LIMIT_LENGTH"):
            add(number, *texts)
    run(catalog.readStream.table(f"{db}.a").where("c = 'a' AND k = 'k'"), f"{db}.b", "last")
    assert rows(catalog, f"SELECT n, c, v, st.c, k FROM {db}.b") == [(0, "a    ", "v", None, "k  "), (1, "a    ", "v  ", "s ", "k  ")]


@pytest.mark.parametrize("stored", ["ORC", "PARQUET", "TEXTFILE"])
def test_insert_only_tables_hold_and_pad_texts(catalog, db, stored) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (n INT, c CHAR(5), v VARCHAR(3)) PARTITIONED BY (k CHAR(3)) STORED AS {stored} "
                "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'a', 'v', 'k')")
    refused(catalog, f"INSERT INTO {name} VALUES (1, 'toolong', 'v', 'k')")
    assert rows(catalog, f"SELECT * FROM {name} WHERE c = 'a' AND k = 'k'") == [(1, "a    ", "v", "k  ")]


@pytest.mark.parametrize("setting", ["spark.sql.readSideCharPadding=false", "spark.sql.legacy.charVarcharAsString=true"])
def test_a_session_may_see_texts_as_files_have_them(catalog, db, setting, unchecked) -> None:
    name, (key, value) = f"{db}.t", setting.split("=")
    catalog.sql(f"CREATE TABLE {name} (n INT, c CHAR(5)) PARTITIONED BY (k CHAR(3)) {ACID}")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'a', 'k')")
    unchecked(f"INSERT INTO {name} VALUES (2, 'a', 'k')")
    catalog.conf.set(key, value)
    try:
        assert rows(catalog, f"SELECT * FROM {name}") == [(1, "a    ", "k  "), (2, "a", "k  ")]
        catalog.sql(f"UPDATE {name} SET n = n + 10 WHERE c LIKE 'a%'")
        catalog.sql(f"MERGE INTO {name} t USING (SELECT 12 AS n) s ON t.n = s.n WHEN MATCHED THEN UPDATE SET n = 22")
    finally:
        catalog.conf.unset(key)
    assert rows(catalog, f"SELECT * FROM {name} WHERE c = 'a' AND k = 'k'") == [(11, "a    ", "k  "), (22, "a    ", "k  ")]
