"""SQL text → statement: what is Hive's own, what is Spark's in other words, what goes to Spark as it stands."""

import pytest

from metastore.errors import InvalidOperationError
from metastore.spark.sql.parsing import hives_own, without_comments
from metastore.spark.sql.spellings import in_sparks_words
from metastore.spark.sql.statements import (
    AbortCompactions,
    AbortTransactions,
    Compact,
    Convert,
    Show,
    ShowCompactions,
    TableRef,
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
    ("alter table t set tblproperties ('Transactional'='true', \"k\"='v')", Convert(TableRef(None, "t"), {"Transactional": "true", "k": "v"})),
    ("USE db", None), ("SELECT 1", None), ("ALTER TABLE db.t RENAME TO db.u", None), ("alter table t set tblproperties ('k'='v')", None),
    ("CREATE TABLE db.t (a INT) USING parquet", None), ("ALTER TABLE t CHANGE a a BIGINT COMMENT 'not null'", None),
])
def test_statements_without_expressions(text, expected):
    assert hives_own(text) == expected


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
        hives_own(text)


@pytest.mark.parametrize(("text", "left"), [
    ("-- yesterday's\nSELECT 1", "SELECT 1"), ("/* a */ -- b\n /**/ DELETE FROM t", "DELETE FROM t"), ("SELECT '--'", "SELECT '--'")])
def test_comments_in_front(text, left):
    assert without_comments(text) == left


ACID = "TBLPROPERTIES ('transactional'='true')"


@pytest.mark.parametrize(("text", "translated"), [
    (f"CREATE TABLE db.t (a INT NOT NULL, b STRING DEFAULT 'x') STORED AS ORC {ACID}", None),
    ("CREATE TABLE db.t (a INT CHECK (a > 0)) USING parquet", None),
    ("create transactional table db.t (a INT) STORED AS ORC", "CREATE table db.t (a INT) TBLPROPERTIES ('transactional'='true') STORED AS ORC"),
    ("CREATE TRANSACTIONAL TABLE t TBLPROPERTIES ('k'='v') AS SELECT 1 AS a",
     "CREATE TABLE t TBLPROPERTIES ('transactional'='true', 'k'='v') AS SELECT 1 AS a"),
    ("CREATE TRANSACTIONAL TABLE t AS SELECT (1) AS a", "CREATE TABLE t TBLPROPERTIES ('transactional'='true') AS SELECT (1) AS a"),
    (f"CREATE TABLE t (b INT) CLUSTERED BY (a) SORTED BY (b DESC, a) INTO 2 BUCKETS {ACID}",
     "CREATE TABLE t (b INT) CLUSTERED BY (a) SORTED BY (`b`, a) INTO 2 BUCKETS TBLPROPERTIES ('acid.descending'='[\"b\"]', 'transactional'='true')"),
    ("ALTER TABLE t ADD COLUMNS (a INT) CASCADE", "ALTER TABLE t ADD COLUMNS (a INT)"),
    ("alter table t change a a BIGINT restrict;", "alter table t change a a BIGINT"), ("ALTER TABLE t DROP COLUMN cascade", None),
    ("MERGE INTO db.t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.a, ')')",
     "MERGE INTO db.t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT (`a`, `p`) VALUES (s.a, ')')"),
    ("MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT (a) VALUES ('insert values')", None),
    ("INSERT INTO t VALUES (1)", None)])
def test_in_sparks_words(text, translated):
    assert in_sparks_words(text, lambda _: ["a", "p"]) == (text if translated is None else translated, None)


def test_constraints_in_hives_words():
    text, created = in_sparks_words(
        "CREATE TABLE IF NOT EXISTS db.t (`Id` DECIMAL(10, 2) COMMENT 'it\\'s' CHECK (id > 0) ENABLE, s STRUCT<a: INT>, PRIMARY KEY (id) "
        f"DISABLE NOVALIDATE) PARTITIONED BY (day DATE) STORED AS ORC {ACID}", lambda _: [])
    assert text.startswith("CREATE TABLE IF NOT EXISTS db.t (`id` decimal(10,2) COMMENT 'it\\'s', `s` struct<a:int>) PARTITIONED BY (day DATE)")
    assert created.types == {"id": "decimal(10,2)", "s": "struct<a:int>", "day": "date"}
    assert [(one.kind.name, one.columns) for one in created.constraints] == [("CHECK", ("id",)), ("PRIMARY_KEY", ("id",))]
    assert '"kind": "CHECK"' in text
