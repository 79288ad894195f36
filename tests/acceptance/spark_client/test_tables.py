"""Tables and views as Spark sees them."""

import getpass
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def described(sql, name):
    """DESCRIBE EXTENDED as {first column: second column}."""
    return {row[0]: row[1] for row in sql(f"DESCRIBE TABLE EXTENDED {name}")}


def directory(hive, db, table):
    return Path(hive.get_table(db, table).sd.location.removeprefix("file:"))


def test_a_data_source_table(sql, refused, hive, lakehouse, db):
    sql(f"CREATE TABLE {db}.T (Id INT COMMENT 'the key', `Größe` DOUBLE, m MAP<STRING, ARRAY<INT>>) USING parquet "
        "COMMENT 'what for' TBLPROPERTIES ('Key' = 'Value')")
    stored = hive.get_table(db, "t")
    assert stored.tableName == "t"
    assert stored.tableType == "MANAGED_TABLE"
    assert stored.owner == getpass.getuser()
    assert stored.sd.location == f"file:{lakehouse.warehouse}/{db}.db/t"
    assert stored.parameters["Key"] == "Value"
    assert stored.parameters["comment"] == "what for"
    assert stored.parameters["spark.sql.sources.provider"] == "parquet"
    assert stored.sd.serdeInfo.parameters["path"] == stored.sd.location

    sql(f"INSERT INTO {db}.t VALUES (1, 1.5, map('a', array(1, 2))), (2, NULL, NULL)")
    assert sorted(sql(f"SELECT ID, `größe`, m FROM {db}.T")) == [(1, 1.5, {"a": [1, 2]}), (2, None, None)]
    sql(f"INSERT OVERWRITE {db}.t VALUES (3, 0.0, map())")
    assert sql(f"SELECT * FROM {db}.t") == [(3, 0.0, {})]

    shown = described(sql, f"{db}.t")
    assert (shown["Id"], shown["Größe"], shown["m"]) == ("int", "double", "map<string,array<int>>")    # in Spark's case
    assert (shown["Type"], shown["Provider"], shown["Comment"]) == ("MANAGED", "parquet", "what for")
    assert "Key=Value" in shown["Table Properties"]
    assert shown["Owner"] == getpass.getuser()
    [(statement,)] = sql(f"SHOW CREATE TABLE {db}.t")
    assert "Id INT COMMENT 'the key'" in statement
    assert sql(f"SHOW COLUMNS IN {db}.t") == [("Id",), ("Größe",), ("m",)]

    assert refused(f"CREATE TABLE {db}.t (a INT) USING parquet") == "TABLE_OR_VIEW_ALREADY_EXISTS"
    sql(f"CREATE TABLE IF NOT EXISTS {db}.t (a INT) USING parquet")
    assert refused(f"SELECT * FROM {db}.missing") == "TABLE_OR_VIEW_NOT_FOUND"
    assert refused(f"DROP TABLE {db}.missing") == "TABLE_OR_VIEW_NOT_FOUND"
    sql(f"DROP TABLE IF EXISTS {db}.missing")


def test_hive_serde_tables(sql, hive, db):
    sql(f"CREATE TABLE {db}.orc (Id INT, `b c` STRING) STORED AS ORC")
    sql(f"CREATE TABLE {db}.text (id INT, b STRING) ROW FORMAT DELIMITED FIELDS TERMINATED BY '|' STORED AS TEXTFILE "
        "TBLPROPERTIES ('skip.header.line.count' = '0')")
    for table in ("orc", "text"):
        assert sql(f"SELECT * FROM {db}.{table}") == []         # its directory is there
        sql(f"INSERT INTO {db}.{table} VALUES (1, 'ä'), (2, NULL)")
        assert sorted(sql(f"SELECT * FROM {db}.{table}")) == [(1, "ä"), (2, None)]
        sql(f"INSERT OVERWRITE TABLE {db}.{table} SELECT 7, 'x'")
        assert sql(f"SELECT * FROM {db}.{table}") == [(7, "x")]
    orc, text = hive.get_table(db, "orc"), hive.get_table(db, "text")
    assert [(column.name, column.type) for column in orc.sd.cols] == [("id", "int"), ("b c", "string")]
    assert orc.sd.serdeInfo.serializationLib == "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
    assert text.sd.serdeInfo.parameters["field.delim"] == "|"
    assert [file.read_text().strip() for file in directory(hive, db, "text").glob("part-*")] == ["7|x"]

    sql(f"CREATE TABLE {db}.bucketed (id INT, b STRING) CLUSTERED BY (id) SORTED BY (b) INTO 4 BUCKETS STORED AS ORC")
    bucketed = hive.get_table(db, "bucketed").sd
    assert (bucketed.numBuckets, bucketed.bucketCols) == (4, ["id"])
    assert [(one.col, one.order) for one in bucketed.sortCols] == [("b", 1)]
    assert described(sql, f"{db}.bucketed")["Sort Columns"] == "[`b`]"


def test_tables_from_queries_and_from_tables(sql, refused, hive, db):
    sql(f"CREATE TABLE {db}.one USING parquet AS SELECT id AS Number, concat('v', id) AS v FROM range(5)")
    sql(f"CREATE TABLE {db}.two STORED AS ORC TBLPROPERTIES ('a' = 'b') AS SELECT * FROM {db}.one WHERE number > 2")
    assert sorted(sql(f"SELECT number, v FROM {db}.one")) == [(n, f"v{n}") for n in range(5)]
    assert sorted(sql(f"SELECT * FROM {db}.two")) == [(3, "v3"), (4, "v4")]
    assert hive.get_table(db, "two").parameters["a"] == "b"
    assert refused(f"CREATE TABLE {db}.one USING parquet AS SELECT 1 AS x") == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert len(sql(f"SELECT * FROM {db}.one")) == 5

    sql(f"CREATE TABLE {db}.three LIKE {db}.two")
    assert sql(f"SELECT * FROM {db}.three") == []
    assert [column.name for column in hive.get_table(db, "three").sd.cols] == ["number", "v"]


def test_external_tables_keep_their_files(sql, hive, db, tmp_path):
    sql(f"CREATE TABLE {db}.one USING parquet LOCATION '{(tmp_path / 'one').as_uri()}' AS SELECT 1 AS a")
    sql(f"CREATE EXTERNAL TABLE {db}.two (a INT) STORED AS TEXTFILE LOCATION '{(tmp_path / 'two').as_uri()}'")
    sql(f"INSERT INTO {db}.two VALUES (5)")
    for table, value in (("one", 1), ("two", 5)):
        stored = hive.get_table(db, table)
        assert (stored.tableType, stored.parameters["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
        assert described(sql, f"{db}.{table}")["Type"] == "EXTERNAL"
        sql(f"ALTER TABLE {db}.{table} RENAME TO {db}.new_{table}")
        assert hive.get_table(db, f"new_{table}").sd.location == stored.sd.location
        assert sql(f"SELECT * FROM {db}.new_{table}") == [(value,)]
        sql(f"DROP TABLE {db}.new_{table}")
        assert list((tmp_path / table).glob("part-*"))
    sql(f"CREATE TABLE {db}.again USING parquet LOCATION '{(tmp_path / 'one').as_uri()}'")
    assert sql(f"SELECT a FROM {db}.again") == [(1,)]


@pytest.mark.parametrize("form", ["USING parquet", "STORED AS ORC"])
def test_altering_a_table(sql, refused, hive, db, form, tmp_path):
    sql(f"CREATE TABLE {db}.t (a INT, B STRING) {form} TBLPROPERTIES ('x' = '1', 'y' = '1')")
    sql(f"INSERT INTO {db}.t VALUES (1, 'one')")
    created = hive.get_table(db, "t")

    sql(f"ALTER TABLE {db}.t ADD COLUMNS (C ARRAY<STRING> COMMENT 'new')")
    sql(f"ALTER TABLE {db}.t ALTER COLUMN b COMMENT 'second'")
    sql(f"INSERT INTO {db}.t VALUES (2, 'two', array('z'))")
    assert sorted(sql(f"SELECT a, b, c FROM {db}.t")) == [(1, "one", None), (2, "two", ["z"])]
    assert [(column.name, column.type, column.comment) for column in hive.get_table(db, "t").sd.cols] == [
        ("a", "int", None), ("b", "string", "second"), ("c", "array<string>", "new")]

    sql(f"ALTER TABLE {db}.t SET TBLPROPERTIES ('x' = '2', 'Z' = 'ü')")
    sql(f"ALTER TABLE {db}.t UNSET TBLPROPERTIES IF EXISTS ('y', 'missing')")
    sql(f"ALTER TABLE {db}.t SET TBLPROPERTIES ('comment' = 'changed')")
    sql(f"ALTER TABLE {db}.t SET SERDEPROPERTIES ('s' = 't')")
    stored = hive.get_table(db, "t")
    assert {key: stored.parameters.get(key) for key in ("x", "y", "Z", "comment")} == {
        "x": "2", "y": None, "Z": "ü", "comment": "changed"}
    assert stored.sd.serdeInfo.parameters["s"] == "t"
    assert (stored.createTime, stored.owner) == (created.createTime, created.owner)

    sql(f"ALTER TABLE {db}.t RENAME TO {db}.Moved")
    assert not directory(hive, db, "moved").with_name("t").exists()
    assert directory(hive, db, "moved").name == "moved"
    assert len(sql(f"SELECT * FROM {db}.moved")) == 2
    assert sql(f"SHOW TABLES IN {db}") == [(db, "moved", False)]
    sql(f"CREATE TABLE {db}.t (a INT) {form}")
    assert sql(f"SELECT * FROM {db}.t") == []
    assert refused(f"ALTER TABLE {db}.moved RENAME TO {db}.t") == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert refused(f"ALTER TABLE {db}.missing RENAME TO {db}.x") == "TABLE_OR_VIEW_NOT_FOUND"
    assert refused(f"ALTER TABLE {db}.missing SET TBLPROPERTIES ('a' = 'b')") == "TABLE_OR_VIEW_NOT_FOUND"

    (tmp_path / "there").mkdir()
    sql(f"ALTER TABLE {db}.t SET LOCATION '{(tmp_path / 'there').as_uri()}'")
    sql(f"INSERT INTO {db}.t VALUES (9)")
    assert list((tmp_path / "there").glob("part-*"))
    assert sql(f"SELECT * FROM {db}.t") == [(9,)]


def test_views(sql, refused, hive, db):
    sql(f"CREATE TABLE {db}.t USING parquet AS SELECT id FROM range(10)")
    sql(f"CREATE VIEW {db}.V (Number COMMENT 'n') COMMENT 'a view' TBLPROPERTIES ('k' = 'v') AS SELECT id FROM {db}.t")
    stored = hive.get_table(db, "v")
    assert (stored.tableType, stored.sd.location) == ("VIRTUAL_VIEW", None)
    assert stored.viewOriginalText == f"SELECT id FROM {db}.t"
    assert sql(f"SELECT max(number) FROM {db}.v") == [(9,)]
    assert refused(f"CREATE VIEW {db}.v AS SELECT 1 AS a") == "TABLE_OR_VIEW_ALREADY_EXISTS"

    sql(f"ALTER VIEW {db}.v AS SELECT id FROM {db}.t WHERE id < 5")
    assert sql(f"SELECT count(*) FROM {db}.v") == [(5,)]
    sql(f"ALTER VIEW {db}.v SET TBLPROPERTIES ('k' = 'w')")
    assert hive.get_table(db, "v").parameters["k"] == "w"
    sql(f"CREATE OR REPLACE VIEW {db}.v AS SELECT id, 'new' AS what FROM {db}.t WHERE id = 3")
    assert sql(f"SELECT * FROM {db}.v") == [(3, "new")]
    assert described(sql, f"{db}.v")["Type"] == "VIEW"

    sql(f"CREATE VIEW {db}.other AS SELECT 1 AS a")
    assert sorted(sql(f"SHOW VIEWS IN {db}")) == [(db, "other", False), (db, "v", False)]
    assert sql(f"SHOW VIEWS IN {db} LIKE 'o*'") == [(db, "other", False)]
    sql(f"ALTER VIEW {db}.other RENAME TO {db}.renamed")
    assert sql(f"SELECT * FROM {db}.renamed") == [(1,)]
    assert refused(f"DROP VIEW {db}.t")
    assert refused(f"INSERT INTO {db}.v VALUES (1, 'a')")
    sql(f"DROP VIEW {db}.v")
    assert refused(f"DROP VIEW {db}.v") == "TABLE_OR_VIEW_NOT_FOUND"
    assert len(sql(f"SELECT * FROM {db}.t")) == 10


def test_listing_tables(sql, refused, db):
    for name in ("alpha", "beta", "bet_a"):
        sql(f"CREATE TABLE {db}.{name} (a INT) USING parquet")
    sql(f"CREATE VIEW {db}.gamma AS SELECT 1 AS a")

    def listed(pattern=""):
        return sorted(row[1] for row in sql(f"SHOW TABLES IN {db} {pattern}"))

    assert listed() == ["alpha", "bet_a", "beta", "gamma"]
    assert listed("LIKE 'BET*'") == ["bet_a", "beta"]
    assert listed("LIKE '*a|nothing'") == ["alpha", "bet_a", "beta", "gamma"]
    assert listed("LIKE 'alpha|gam*'") == ["alpha", "gamma"]
    assert listed("LIKE 'bet_'") == []       # _ stands for itself
    extended = {row[1]: row[3] for row in sql(f"SHOW TABLE EXTENDED IN {db} LIKE '*et*'")}
    assert set(extended) == {"bet_a", "beta"}
    assert f"Database: {db}" in extended["beta"]
    assert "Provider: parquet" in extended["beta"]
    sql(f"CREATE TABLE {db}.parted (a INT, p STRING) USING parquet PARTITIONED BY (p)")
    sql(f"INSERT INTO {db}.parted VALUES (1, 'a b')")
    [(_, _, _, shown)] = sql(f"SHOW TABLE EXTENDED IN {db} LIKE 'parted' PARTITION (p = 'a b')")
    assert "Partition Values: [p=a b]" in shown
    assert refused(f"SHOW TABLE EXTENDED IN {db} LIKE 'parted' PARTITION (p = 'c')") == "PARTITIONS_NOT_FOUND"


def test_statistics_live_in_parameters(sql, hive, db):
    sql(f"CREATE TABLE {db}.t USING parquet AS SELECT id, concat('name ', id % 7) AS Name FROM range(100)")
    sql(f"ANALYZE TABLE {db}.t COMPUTE STATISTICS FOR ALL COLUMNS")
    parameters = hive.get_table(db, "t").parameters
    assert parameters["spark.sql.statistics.numRows"] == "100"
    assert parameters["spark.sql.statistics.colStats.id.max"] == "99"
    assert parameters["spark.sql.statistics.colStats.Name.distinctCount"] == "7"     # keys keep their case
    shown = dict(sql(f"DESCRIBE EXTENDED {db}.t id"))
    assert (shown["min"], shown["max"], shown["num_nulls"]) == ("0", "99", "0")

    sql(f"ALTER TABLE {db}.t SET TBLPROPERTIES ('a' = 'b')")
    sql(f"ALTER TABLE {db}.t RENAME TO {db}.u")
    assert dict(sql(f"DESCRIBE EXTENDED {db}.u id"))["max"] == "99"
    sql(f"INSERT INTO {db}.u VALUES (500, 'x')")
    assert "spark.sql.statistics.numRows" not in hive.get_table(db, "u").parameters     # Spark took its own statistics back
    sql(f"ANALYZE TABLE {db}.u COMPUTE STATISTICS")
    assert "101 rows" in described(sql, f"{db}.u")["Statistics"]


def test_truncate_and_drop(sql, refused, hive, db, tmp_path):
    for form in ("USING parquet", "STORED AS ORC"):
        sql(f"CREATE TABLE {db}.t (a INT) {form}")
        sql(f"INSERT INTO {db}.t VALUES (1), (2)")
        sql(f"TRUNCATE TABLE {db}.t")
        assert sql(f"SELECT * FROM {db}.t") == []
        sql(f"INSERT INTO {db}.t VALUES (3)")
        where = directory(hive, db, "t")
        assert where.is_dir()
        sql(f"DROP TABLE {db}.t PURGE")
        assert not where.exists()
        assert sql(f"SHOW TABLES IN {db}") == []
    sql(f"CREATE TABLE {db}.out (a INT) USING parquet LOCATION '{(tmp_path / 'out').as_uri()}'")
    sql(f"INSERT INTO {db}.out VALUES (1)")
    assert refused(f"TRUNCATE TABLE {db}.out")      # external
    assert sql(f"SELECT * FROM {db}.out") == [(1,)]
    assert refused(f"TRUNCATE TABLE {db}.missing") == "TABLE_OR_VIEW_NOT_FOUND"


def test_a_wide_and_deep_table_comes_back_whole(sql, spark, hive, db):
    columns = ", ".join(f"column_{n:04} STRUCT<value: DECIMAL(38, 18), tags: ARRAY<MAP<STRING, STRING>>>" for n in range(400))
    sql(f"CREATE TABLE {db}.wide ({columns}) USING parquet")
    fields = spark.table(f"{db}.wide").schema.fields
    assert [field.name for field in fields] == [f"column_{n:04}" for n in range(400)]
    assert {field.dataType.simpleString() for field in fields} == {
        "struct<value:decimal(38,18),tags:array<map<string,string>>>"}
    # not in the layout with one column that Spark falls back to when a server refuses the real columns
    assert len(hive.get_table(db, "wide").sd.cols) == 400
