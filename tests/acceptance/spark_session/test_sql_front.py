"""What Spark makes of texts, by the session: nothing is done wrong to a transactional table; the past, by SQL."""

import pytest
from pyspark.errors import PySparkException

from metastore.errors import MetastoreError
from tests.support.spark_sessions import is_before

pytestmark = pytest.mark.spark
ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


def rows(frame):
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture
def table(acid_session, db):
    """Create a table: write id 1 inserts the ids 1 and 2, 2 deletes 2, 3 inserts 3."""
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
    ("LOAD DATA LOCAL INPATH '{f}' INTO TABLE {t}", "LOAD DATA is not supported"),
    ("ALTER TABLE {t} UNSET TBLPROPERTIES ('transactional')", "cannot be unset"),
    ("ALTER TABLE {t} SET TBLPROPERTIES ('transactional'='false')", "cannot be unset"),
    ("ALTER TABLE {t} SET SERDE 'org.apache.hadoop.hive.serde2.columnar.ColumnarSerDe'", "SERDE"),
    ("SELECT * FROM {t} VERSION AS OF 'x'", "write id"), ("SELECT * FROM {t} VERSION AS OF 99", "has write ids up to 3"),
    ("SELECT * FROM {t} TIMESTAMP AS OF NULL", "INVALID_TIME_TRAVEL"), ("SELECT * FROM {t} TIMESTAMP AS OF '2100-01-01'", "still to come")]


def test_nothing_is_done_wrong(acid_session, table, tmp_path):
    for query in QUERIES:
        assert rows(acid_session.sql(query.format(t=table))) == [(1,), (3,)], query
    (tmp_path / "f").write_text("x")
    for text, reason in REFUSED:
        with pytest.raises((MetastoreError, PySparkException), match=reason):
            acid_session.sql(text.format(t=table, f=tmp_path / "f")).collect()
    assert rows(acid_session.table(table)) == [(1,), (3,)]


STRINGS = ["'it''s'", '"say ""x"""', "'a''''b'", "\"it''s\"", "'a' 'b'", r"'\\'", r"'\''", r"r'a\b'", r"'\101\u0041\n\%'"]


def test_strings_are_what_spark_reads(acid_session, spark, table, db):
    texts = ", ".join(STRINGS)
    [read] = spark.sql(f"SELECT {texts}").collect()
    assert len(read) == len(STRINGS)
    assert acid_session.sql(f"SELECT {texts} FROM {table}").collect() == [read] * 2
    acid_session.sql(f"CREATE TABLE {db}.said (v STRING) {ACID}")
    acid_session.sql(f"INSERT INTO {db}.said VALUES ('it''s')")
    assert rows(acid_session.table(f"{db}.said")) == [("it's",)]


def test_an_insert_by_name(acid_session, db):
    acid_session.sql(f"CREATE TABLE {db}.named (a INT, b STRING) PARTITIONED BY (p INT) {ACID}")
    acid_session.sql(f"INSERT INTO {db}.named PARTITION (p=1) BY NAME SELECT 'x' AS b, 7 AS A")
    acid_session.sql(f"INSERT INTO {db}.named BY NAME SELECT 2 AS p, 8 AS a")
    assert rows(acid_session.table(f"{db}.named")) == [(7, "x", 1), (8, None, 2)]


def test_create_table_like_is_of_the_same_kind(acid_session, db):
    if is_before(acid_session.spark, "4.2"):
        pytest.skip("what is LIKE an ACID table needs Spark 4.2; that it is refused before, test_definitions shows")
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


def test_a_sorted_table(acid_session, db, lakehouse, spark):
    acid_session.sql(f"CREATE TABLE {db}.s (k INT, v INT) CLUSTERED BY (k) SORTED BY (v, k) INTO 2 BUCKETS STORED AS ORC "
                     "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only', 'acid.descending'='V')")
    acid_session.sql(f"INSERT INTO {db}.s SELECT id, id % 7 FROM range(100)")
    told = acid_session.client.get_table(db, "s").sd
    assert [(one.col, one.order) for one in told.sortCols] == [("v", 0), ("k", 1)]
    files = list((lakehouse.warehouse / f"{db}.db" / "s").glob("delta_*/0*_0"))
    assert len(files) == 2
    for file in files:
        mine = [(-row.v, row.k) for row in spark.read.orc(str(file)).coalesce(1).collect()]
        assert mine == sorted(mine)
