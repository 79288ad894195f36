"""SQL text → statement: what is ours, what is Spark's, what is refused."""

import pytest

from metastore.acid_tables.table import ColumnDefinition
from metastore.errors import InvalidOperationError
from metastore.spark.sql.parsing import parse
from metastore.spark.sql.statements import (
    AbortCompactions,
    AbortTransactions,
    ChangeColumn,
    Compact,
    CreateLike,
    CreateTable,
    Delete,
    DropColumns,
    Insert,
    Merge,
    PassThrough,
    PlainOnly,
    Query,
    ReplaceColumns,
    Show,
    ShowCompactions,
    TableRef,
    Truncate,
    Update,
)

T = TableRef("db", "t")


@pytest.mark.parametrize(("text", "expected"), [
    ("show transactions", Show("transactions")),
    ("SHOW LOCKS;", Show("locks")),
    ("ABORT TRANSACTIONS 1, 2 3", AbortTransactions((1, 2, 3))),
    ("alter table DB.T compact 'MAJOR'", Compact(T, {}, "major", wait=False)),
    ("ALTER TABLE `db`.`t` PARTITION (Day='a,b', n=3) COMPACT 'minor' AND WAIT",
     Compact(T, {"day": "a,b", "n": "3"}, "minor", wait=True)),
    ("ALTER TABLE db.t COMPACT 'rebalance' CLUSTERED INTO 4 BUCKETS ORDER BY a DESC, `b c` POOL 'p q'\nWITH OVERWRITE "  # noqa: ISC004
     "TBLPROPERTIES ('compactor.spark.executor.memory'='1g', \"tblprops.orc.compress\"='ZLIB');",
     Compact(T, {}, "rebalance", wait=False, buckets=4, order="ORDER BY a DESC, `b c`", pool="p q",
             properties={"compactor.spark.executor.memory": "1g", "tblprops.orc.compress": "ZLIB"})),
    ("alter table db.t partition (p='x') compact \"rebalance\" and wait order by a",
     Compact(T, {"p": "x"}, "rebalance", wait=True, order="order by a")),
    ("ALTER TABLE db.t COMPACT 'minor' POOL 'p'", Compact(T, {}, "minor", wait=False, pool="p")),
    ("show compactions", ShowCompactions()),
    ("SHOW COMPACTIONS COMPACTIONID = 7;", ShowCompactions(id=7)),
    ("SHOW COMPACTIONS SCHEMA Db POOL 'p' TYPE 'MINOR' STATUS 'ready for cleaning' ORDER BY cc_table DESC, state LIMIT 42",
     ShowCompactions(database="db", pool="p", kind="minor", state="ready for cleaning", order="cc_table DESC, state", limit=42)),
    ("SHOW COMPACTIONS db.t PARTITION (p=1, Q='b') STATE 'failed'",
     ShowCompactions(table=T, partition={"p": "1", "q": "b"}, state="failed")),
    ("SHOW COMPACTIONS t ORDER BY start", ShowCompactions(table=TableRef(None, "t"), order="start")),
    ("SHOW COMPACTIONS LIMIT 3", ShowCompactions(limit=3)),
    ("ABORT COMPACTIONS 1 2, 3", AbortCompactions((1, 2, 3))),
    ("TRUNCATE TABLE db.t", Truncate(T)),
    ("USE db", PassThrough()),
    ("SET a=b", PassThrough()),
    ("SHOW TABLES", PassThrough()),
    ("ALTER TABLE db.t RENAME TO db.u", PassThrough(takes=T)),
    ("alter table `DB`.t partition (p=1) rename to partition (p=2)", PassThrough(takes=T)),
    ("ALTER TABLE db.t DROP IF EXISTS PARTITION (p=1)", PassThrough(takes=T)),
    ("ALTER TABLE db.t ADD PARTITION (p=1)", PassThrough()),
    ("DROP TABLE IF EXISTS db.t PURGE", PassThrough(takes=T)),
    ("DROP VIEW db.t", PassThrough()),
    ("CREATE TABLE db.t (a INT) USING parquet", PassThrough()),
    ("DROP TABLE db.t", PassThrough(takes=T)),
    ("TRUNCATE TABLE db.t PARTITION (P='x', q=3)", Truncate(T, {"p": "'x'", "q": "3"})),
    ("-- nightly\n/* of\nus */ truncate table db.t", Truncate(T)),
    ("ANALYZE TABLE db.t COMPUTE STATISTICS", PlainOnly(T, "ANALYZE by Spark counts rows that are deleted, and not those of deltas.")),
])
def test_statements_without_expressions(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(("text", "words"), [
    ("ALTER TABLE db.t COMPACT major", "COMPACT 'type'"),
    ("ALTER TABLE db.t COMPACT 'major' POOL 'p' CLUSTERED INTO 4 BUCKETS", "in this order"),
    ("ALTER TABLE db.t COMPACT 'rebalance' CLUSTERED INTO x BUCKETS", "CLUSTERED INTO n BUCKETS"),
    ("SHOW COMPACTIONS STATE failed", "STATUS 's'"),
    ("SHOW COMPACTIONS LIMIT 3 TYPE 'major'", "in this order"),
    ("ABORT COMPACTIONS", "ABORT COMPACTIONS n"),
])
def test_statements_about_compactions_that_are_not_understood(text, words):
    """They are nobody else's: Spark would complain of another word."""
    with pytest.raises(InvalidOperationError, match=words):
        parse(text)


@pytest.mark.parametrize(("text", "kind"), [
    ("SELECT 1", Query), ("WITH c AS (SELECT 1) SELECT * FROM c", Query), ("SELECT 1 UNION ALL SELECT 2", Query),
    ("(SELECT 1) UNION ALL (SELECT 2)", Query), ("((SELECT 1))", Query), ("TABLE db.t", Query), ("FROM db.t SELECT a", Query),
    ("-- yesterday's\nSELECT 1", Query), ("/* a */ -- b\n /**/ DELETE FROM t", Delete), ("--\nINSERT INTO t SELECT 1", Insert),
    ("load data local inpath '/x' overwrite into table db.t partition (p=1)", PlainOnly),
    ("alter table db.t unset tblproperties('transactional_properties', 'transactional')", PlainOnly),
    ("ALTER TABLE db.t UNSET TBLPROPERTIES ('note')", PassThrough),
    ("alter table db.t partition (p='a)b') set serde 'x.Y'", PlainOnly), ("alter table db.t set serdeproperties ('a'='b')", PassThrough),
])
def test_queries(text, kind):
    assert isinstance(parse(text), kind)


def test_insert_forms():
    plain = parse("INSERT INTO db.t SELECT * FROM x")
    assert isinstance(plain, Insert)
    assert (plain.table, plain.columns, plain.partition, plain.overwrite) == (T, (), {}, False)
    named = parse("INSERT INTO T (A, b) VALUES (1, 'x')")
    assert (named.table, named.columns, named.query.sql("spark")) == (
        TableRef(None, "t"), ("a", "b"), "SELECT * FROM VALUES (1, 'x')")
    static = parse("INSERT OVERWRITE TABLE db.t PARTITION (Day='2024-01-01', hour) SELECT 1, 2")
    assert (static.partition, static.overwrite) == ({"day": "'2024-01-01'", "hour": None}, True)
    with_cte = parse("WITH c AS (SELECT 1) INSERT INTO db.t SELECT * FROM c")
    assert with_cte.query.sql("spark") == "WITH c AS (SELECT 1) SELECT * FROM c"


def test_update_and_delete():
    update = parse("UPDATE db.t AS x SET A = a + 1, b = NULL WHERE x.a > (SELECT 1)")
    assert isinstance(update, Update)
    assert (update.table, update.alias, list(update.assignments)) == (T, "x", ["a", "b"])
    assert update.where.sql("spark") == "x.a > (SELECT 1)"
    delete = parse("DELETE FROM db.t")
    assert isinstance(delete, Delete)
    assert (delete.alias, delete.where) == ("t", None)


def test_merge_branches():
    merge = parse("MERGE INTO db.t USING (SELECT * FROM s0) s ON t.id = s.id WHEN MATCHED AND s.op = 'D' THEN DELETE "
                  "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0 "
                  "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)")
    assert isinstance(merge, Merge)
    assert (merge.alias, merge.source_alias) == ("t", "s")
    assert [(one.matched, one.by_source, one.action, list(one.values)) for one in merge.branches] == [
        (True, False, "delete", []), (True, False, "update", ["v"]), (False, True, "update", ["v"]),
        (False, False, "insert", ["id", "v"])]
    star = parse("MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert [one.values for one in star.branches] == [{}, {}]


def test_hives_merge_inserts_without_naming_columns():
    """The only form that Hive 2.2 to 3 has."""
    merge = parse("MERGE INTO db.t USING s ON t.id = s.id WHEN MATCHED THEN DELETE "
                  "WHEN NOT MATCHED AND s.id > 0 THEN INSERT VALUES (s.id, DEFAULT)").named(["id", "v"])
    delete, insert = merge.branches
    assert (delete.values, insert.in_order) == ({}, ())
    assert {name: value.sql() for name, value in insert.values.items()} == {"id": "s.id", "v": "DEFAULT"}
    with pytest.raises(InvalidOperationError, match="gives 2 values, and the table has 1 columns: id"):
        parse("MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 1)").named(["id"])


def test_create_table():
    created = parse("CREATE TABLE IF NOT EXISTS db.T (Id INT COMMENT 'key', s STRUCT<a: INT, b: STRING>, d DECIMAL(10, 2)) "
                    "COMMENT 'x' PARTITIONED BY (day STRING) CLUSTERED BY (id) INTO 4 BUCKETS STORED AS ORC LOCATION '/l' "
                    "TBLPROPERTIES ('transactional'='true', 'k'='v')")
    assert created == CreateTable(
        T, (("id", "int", "key"), ("s", "struct<a:int,b:string>", None), ("d", "decimal(10,2)", None)),
        (("day", "string", None),), ("id",), 4, {"transactional": "true", "k": "v"}, "/l", "x", if_not_exists=True,
        query=None)
    as_select = parse("CREATE TABLE db.t STORED AS ORC TBLPROPERTIES ('transactional'='true') AS SELECT 1 AS a")
    assert as_select.query.sql("spark") == "SELECT 1 AS a"


def test_create_table_like():
    assert parse("CREATE TABLE IF NOT EXISTS db.n LIKE db.t LOCATION '/l' TBLPROPERTIES ('k'='v')") == CreateLike(
        TableRef("db", "n"), T, if_not_exists=True, location="/l", properties={"k": "v"})
    assert isinstance(parse("CREATE EXTERNAL TABLE db.n LIKE db.t LOCATION '/l'"), PassThrough)


def test_hives_short_form_of_create_table():
    short = parse("create transactional table db.t (a INT NOT NULL, `default` INT) TBLPROPERTIES ('k'='v')")
    assert short == parse("CREATE TABLE db.t (a INT NOT NULL, `default` INT) TBLPROPERTIES ('transactional'='true', 'k'='v')")
    assert (short.file_format, [column[0] for column in short.columns]) == ("orc", ["a", "default"])
    assert (short.properties["transactional"], [one.kind.name for one in short.constraints]) == ("true", ["NOT_NULL"])


@pytest.mark.parametrize(("text", "reason"), [
    ("SELECT FROM WHERE", "cannot be understood"),
    ("UPDATE db.t SET a =", "cannot be understood"),
    ("DELETE FROM db.t; DELETE FROM db.u", "One statement at a time"),
    *((text, "VERSION AS OF a write id") for text in (
        "SELECT * FROM t@v1", "SELECT * FROM db.t@20240501000000000", "INSERT INTO a SELECT * FROM t@v99999",
        "DELETE FROM db.t@v1", "UPDATE t@v1 SET a = 1", "SELECT (SELECT max(a) FROM t@v1) FROM u", "SELECT a @ b FROM t",
        "MERGE INTO t@v1 USING s ON t.a = s.a WHEN MATCHED THEN DELETE", "SELECT * FROM t$files", "CACHE TABLE c SELECT * FROM t@v1",
        "FROM t@v1 INSERT INTO a SELECT * INSERT INTO b SELECT *")),
    ("SELECT * FROM t:a", ":a is no name"), ("SELECT * FROM t?", "is no name"), ("SELECT a:b FROM t", ":b is no name"),
    ("DELETE FROM cat.db.t", "names a catalog"),
    ("UPDATE db.t SET a = 1, A = 2", "set twice"),
    ("UPDATE db.t SET a = s.a FROM s WHERE s.id = t.id", "MERGE INTO"),
    ("INSERT OVERWRITE DIRECTORY '/x' SELECT 1", "directory"),
    ("DELETE FROM db.t WHERE a = 1 LIMIT 3", "DELETE ... LIMIT is not supported"),
    ("DELETE FROM db.t USING s WHERE t.a = s.a", "DELETE ... USING"), ("UPDATE db.t SET a = 1 LIMIT 1", "UPDATE ... LIMIT"),
    ("WITH c AS (SELECT 1 AS a) DELETE FROM db.t WHERE a IN (SELECT a FROM c)", "DELETE ... WITH is not supported. Put it into a subquery"),
    ("WITH c AS (SELECT 1 AS a) MERGE INTO db.t USING c ON t.a = c.a WHEN MATCHED THEN DELETE", "MERGE ... WITH"),
    ("INSERT INTO db.t REPLACE WHERE a = 1 SELECT 1", "INSERT ... WHERE"), ("TRUNCATE TABLE IF EXISTS db.t", "TRUNCATE ... EXISTS"),
    ("DELETE FROM db.t VERSION AS OF 3", "must be a table, and is db.t VERSION"),
    ("UPDATE db.t JOIN s ON t.a = s.a SET t.b = 1", "must be a table, and is db.t JOIN s"), ("FROM s INSERT INTO a REPLACE WHERE x = 1 SELECT 1 INSERT INTO b SELECT 2", "INSERT ... WHERE"),
    ("MERGE INTO db.t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)", "1 columns and gives 2"),
    ("MERGE INTO db.t USING (SELECT 1) ON t.id = 1 WHEN MATCHED THEN DELETE", "alias"),
    ("CREATE TABLE db.t (a INT UNIQUE ENABLE) STORED AS ORC TBLPROPERTIES ('transactional'='true')", "keys are not enforced"),
    ("CREATE TABLE db.t (a INT) CLUSTERED BY (a) SORTED BY (a) INTO 2 BUCKETS STORED AS ORC TBLPROPERTIES ('transactional'='true')",
     "cannot be SORTED BY"),
    ("CREATE EXTERNAL TABLE db.t (a INT) STORED AS ORC LOCATION '/t' TBLPROPERTIES ('transactional'='true')", "EXTERNAL tables cannot"),
    ("CREATE TEMPORARY TABLE t (a INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')", "TEMPORARY tables cannot"),
    ("FROM t JOIN (SELECT 1) INSERT INTO a SELECT 1 INSERT INTO b SELECT 2", "needs its own name"),
    ("CREATE TABLE db.t (a INT) STORED AS PARQUET TBLPROPERTIES ('transactional'='true')", "STORED AS ORC"),
])
def test_refused_with_the_reason(text, reason):
    with pytest.raises(InvalidOperationError, match=reason):
        parse(text)


@pytest.mark.parametrize("text", [
    "INSERT INTO TABLE d.t PARTITION (`p` = 'x', `q`) (`a`, `b`) SELECT 1", "INSERT OVERWRITE TABLE t SELECT 1",
    "INSERT INTO TABLE d.t SELECT 1", "INSERT INTO TABLE d.t BY NAME SELECT 1"])
def test_an_insert_is_written_out_as_it_was(text):
    statement = parse(text)

    assert isinstance(statement, Insert)
    assert statement.over("SELECT 1") == text
    assert parse(statement.over("SELECT 1")) == statement


@pytest.mark.parametrize(("text", "expected"), [
    ("ALTER TABLE db.t CHANGE COLUMN A b BIGINT COMMENT 'x' AFTER `C`", ChangeColumn(T, "a", "b", "bigint", "x", "c")),
    ("-- wider\nalter table db.t change a a decimal(12, 2) first cascade;", ChangeColumn(T, "a", "a", "decimal(12,2)", None, "", cascade=True)),
    ("ALTER TABLE db.t CHANGE `first` `first` STRING", ChangeColumn(T, "first", "first", "string")),
    ("ALTER TABLE db.t RENAME COLUMN a TO B", ChangeColumn(T, "a", "b")),
    ("ALTER TABLE db.t ALTER COLUMN a TYPE struct<x: int>", ChangeColumn(T, "a", "a", "struct<x:int>")),
    ("ALTER TABLE db.t DROP COLUMN a", DropColumns(T, ("a",))), ("ALTER TABLE db.t DROP COLUMNS (a, `B`)", DropColumns(T, ("a", "b"))),
    ("ALTER TABLE db.t REPLACE COLUMNS (a INT COMMENT 'k', b STRING) CASCADE",
     ReplaceColumns(T, (ColumnDefinition("a", "int", "k"), ColumnDefinition("b", "string")), cascade=True)),
    ("ALTER TABLE db.t DROP PARTITION (p=1)", PassThrough(takes=T)),
    ("ALTER TABLE db.t ALTER COLUMN a COMMENT 'x'", PassThrough())])
def test_changes_of_columns(text, expected):
    assert parse(text) == expected
