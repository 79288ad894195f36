"""What the SQL front makes of texts: nothing reaches Spark that Spark would do wrong; the past, by SQL."""

import pytest

from metastore.errors import InvalidOperationError
from metastore.spark.read.plain_reads import PlainReadWarning, PlainWriteWarning

pytestmark = pytest.mark.spark
ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


def rows(frame):
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture
def table(acid_session, db):
    """The ids 1 and 2 by write id 1, 2 deleted by write id 2, 3 inserted by write id 3."""
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id INT) {ACID}")
    acid_session.sql(f"INSERT INTO {name} VALUES (1), (2)")
    acid_session.sql(f"DELETE FROM {name} WHERE id = 2")
    acid_session.sql(f"-- the third\nINSERT INTO {name} VALUES (3)")
    return name


QUERIES = [
    "SELECT id FROM {t} WHERE floor(log10(1000)) = 3 AND array(1, 2)[0] = 1 AND nvl(id, 0) > 0",
    "-- what is left?\nSELECT * FROM {t}", "/* left */ (SELECT * FROM {t})", "TABLE {t}", "FROM {t} SELECT id",
    "((SELECT id FROM {t}) EXCEPT (SELECT 7))", "--\n--\nWITH w AS (SELECT * FROM {t}) SELECT * FROM w"]
REFUSED = [
    ("LOAD DATA LOCAL INPATH '{f}' INTO TABLE {t}", "no transaction"), ("ANALYZE TABLE {t} COMPUTE STATISTICS", "rows that are deleted"),
    ("CACHE TABLE {t}", "cannot be cached"), ("CACHE LAZY TABLE cached AS SELECT * FROM {t}", "cannot be cached"),
    ("-- for later\nCREATE VIEW {t}_v AS SELECT * FROM {t}", "through a view"),
    ("ALTER TABLE {t} UNSET TBLPROPERTIES ('transactional')", "no way back"),
    ("ALTER TABLE {t} SET TBLPROPERTIES ('transactional'='false')", "no way back"),
    ("ALTER TABLE {t} SET SERDE 'org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe'", "Another SerDe"),
    ("SELECT * FROM {t} VERSION AS OF 'x'", "a version is a write id"), ("SELECT * FROM {t} VERSION AS OF 99", "has write ids up to 3"),
    ("SELECT * FROM {t} TIMESTAMP AS OF NULL", "no instant"), ("SELECT * FROM {t} TIMESTAMP AS OF '2100-01-01'", "still to come")]


def test_nothing_goes_to_spark_that_it_would_do_wrong(acid_session, table, tmp_path):
    for query in QUERIES:
        assert rows(acid_session.sql(query.format(t=table))) == [(1,), (3,)], query
    (tmp_path / "f").write_text("x")
    for text, reason in REFUSED:
        with pytest.raises(InvalidOperationError, match=reason):
            acid_session.sql(text.format(t=table, f=tmp_path / "f"))
    assert rows(acid_session.table(table)) == [(1,), (3,)]


STRINGS = ["'it''s'", '"say ""x"""', "'a''''b'", "\"it''s\"", "'a' 'b'", r"'\\'", r"'\''", r"r'a\b'", r"'\101\u0041\n\%'"]


def test_strings_are_what_spark_reads(acid_session, spark, table, db):
    for text in STRINGS:
        [[read]] = spark.sql(f"SELECT {text}").collect()
        assert [(text, row[0]) for row in acid_session.sql(f"SELECT {text} FROM {table}").collect()] == [(text, read)] * 2
    acid_session.sql(f"CREATE TABLE {db}.said (v STRING) {ACID}")
    acid_session.sql(f"INSERT INTO {db}.said VALUES ('it''s')")
    assert rows(acid_session.table(f"{db}.said")) == [("it's",)]


def test_an_insert_by_name(acid_session, db):
    acid_session.sql(f"CREATE TABLE {db}.named (a INT, b STRING) PARTITIONED BY (p INT) {ACID}")
    acid_session.sql(f"INSERT INTO {db}.named PARTITION (p=1) BY NAME SELECT 'x' AS b, 7 AS A")
    acid_session.sql(f"INSERT INTO {db}.named BY NAME SELECT 2 AS p, 8 AS a")
    assert rows(acid_session.table(f"{db}.named")) == [(7, "x", 1), (8, None, 2)]


@pytest.mark.usefixtures("no_capability_check")
def test_writes_behind_the_sessions_back_are_warned_of(acid_session, db, spark):
    for name, kind in (("full", ACID), ("plain", "STORED AS ORC")):
        acid_session.sql(f"CREATE TABLE {db}.{name} (id INT) {kind}")
    with pytest.warns(PlainWriteWarning, match=f"{db}.full: transactional, and written by Spark itself"):
        spark.sql(f"INSERT INTO {db}.full VALUES (1)")
    rows = spark.createDataFrame([(1,)], "id INT").write
    with pytest.warns(PlainWriteWarning, match=f"{db}.full: transactional, and written by Spark itself") as told:
        rows.insertInto(f"{db}.full")
    assert told[0].filename == __file__, "the line is told that writes"
    with pytest.warns(PlainWriteWarning, match=f"{db}.full: transactional, and written by Spark itself"):
        rows.format("hive").mode("append").saveAsTable(name=f"{db}.FULL")
    with pytest.warns(PlainReadWarning, match=f"{db}.full: transactional, and read by Spark itself") as told:
        spark.read.table(f"{db}.full")
    assert told[0].filename == __file__, "the line is told that reads"
    spark.sql(f"INSERT INTO {db}.plain VALUES (1)")  # a warning is an error in tests
    rows.insertInto(f"{db}.plain")
    rows.mode("append").saveAsTable(f"{db}.fresh")
    assert spark.read.table(f"{db}.plain").count() == 2


def test_create_table_like_is_of_the_same_kind(acid_session, db):
    sql = acid_session.sql
    sql(f"CREATE TABLE {db}.full (id INT NOT NULL, v STRING) PARTITIONED BY (p INT) CLUSTERED BY (id) INTO 2 BUCKETS {ACID}")
    sql(f"CREATE TABLE {db}.text (id INT) STORED AS TEXTFILE TBLPROPERTIES ('transactional'='true', "
        "'transactional_properties'='insert_only')")
    sql(f"INSERT INTO {db}.full VALUES (1, 'a', 1)")
    for name in ("full", "text"):
        sql(f"CREATE TABLE {db}.{name}_2 LIKE {db}.{name} TBLPROPERTIES ('note'='n')")
        sql(f"CREATE TABLE IF NOT EXISTS {db}.{name}_2 LIKE {db}.{name}")
        old, new = (acid_session.client.get_table(db, one) for one in (name, f"{name}_2"))
        assert (new.sd.cols, new.partitionKeys, new.sd.bucketCols, new.sd.numBuckets, new.sd.serdeInfo, new.tableType) == (
            old.sd.cols, old.partitionKeys, old.sd.bucketCols, old.sd.numBuckets, old.sd.serdeInfo, old.tableType)
        kinds = ("transactional", "transactional_properties", "bucketing_version")
        assert [new.parameters.get(key) for key in kinds] == [old.parameters.get(key) for key in kinds]
        assert (new.parameters["note"], new.sd.location) == ("n", f"{old.sd.location}_2")
    sql(f"INSERT INTO {db}.full_2 VALUES (2, 'b', 1), (3, 'c', 2)")
    sql(f"UPDATE {db}.full_2 SET v = 'd' WHERE id = 3")
    sql(f"INSERT INTO {db}.text_2 VALUES (4)")
    assert rows(acid_session.table(f"{db}.full_2")) == [(2, "b", 1), (3, "d", 2)]
    assert rows(acid_session.table(f"{db}.text_2")) == [(4,)]
    assert rows(acid_session.table(f"{db}.full")) == [(1, "a", 1)]
    with pytest.raises(InvalidOperationError, match="by Spark itself"):
        sql(f"CREATE EXTERNAL TABLE {db}.other LIKE {db}.full LOCATION '/other'")


def test_plain_tables_are_left_to_spark(acid_session, db, tmp_path):
    (tmp_path / "f").write_text("7\n")
    acid_session.sql(f"CREATE TABLE {db}.p (id INT) STORED AS TEXTFILE")
    acid_session.sql(f"LOAD DATA LOCAL INPATH '{tmp_path / 'f'}' INTO TABLE {db}.p")
    acid_session.sql(f"ANALYZE TABLE {db}.p COMPUTE STATISTICS")
    acid_session.sql(f"CACHE TABLE {db}.p")
    assert rows(acid_session.sql(f"TABLE {db}.p")) == [(7,)]
    acid_session.sql(f"UNCACHE TABLE {db}.p")
    acid_session.sql(f"CREATE TABLE {db}.q LIKE {db}.p")
    acid_session.sql(f"TRUNCATE TABLE {db}.p")
    assert rows(acid_session.sql(f"TABLE {db}.p")) == []


def test_as_of_in_sql(acid_session, table):
    sql = acid_session.sql
    assert rows(sql(f"SELECT * FROM {table} VERSION AS OF 1")) == [(1,), (2,)]
    assert rows(sql(f"SELECT old.id, new.id FROM {table} FOR VERSION AS OF 1 AS old LEFT JOIN {table} new ON old.id = new.id")) == [
        (1, 1), (2, None)]
    assert rows(sql(f"SELECT ROW__ID.writeid, id FROM {table} VERSION AS OF 2")) == [(1, 1)]
    before = sql("SELECT string(current_timestamp() + INTERVAL 1 MILLISECOND)").first()[0]
    sql(f"INSERT OVERWRITE TABLE {table} SELECT id * 10 FROM {table} VERSION AS OF 1")
    assert rows(acid_session.table(table)) == [(10,), (20,)]
    assert rows(sql(f"SELECT * FROM {table} TIMESTAMP AS OF '{before}'")) == [(1,), (3,)]
    assert rows(sql(f"SELECT * FROM {table} TIMESTAMP AS OF current_timestamp() - INTERVAL 0 SECONDS")) == [(10,), (20,)]


def test_a_sorted_table(acid_session, db):
    acid_session.sql(f"CREATE TABLE {db}.s (k INT, v INT) CLUSTERED BY (k) SORTED BY (v DESC, k) INTO 2 BUCKETS STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    acid_session.sql(f"INSERT INTO {db}.s SELECT id, id % 7 FROM range(100)")
    told = acid_session.client.get_table(db, "s").sd
    assert [(one.col, one.order) for one in told.sortCols] == [("v", 0), ("k", 1)]
    found = acid_session.table(f"{db}.s").selectExpr("_metadata.file_path", "-v", "k").collect()
    assert len({row[0] for row in found}) == 2
    for file in {row[0] for row in found}:
        mine = [tuple(row[1:]) for row in found if row[0] == file]
        assert mine == sorted(mine)
