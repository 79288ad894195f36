"""How each statement uses its target, which decides its locks; and what of it may read other tables."""

import pytest

from metastore.client.lock_plan import Kind
from metastore.spark.sql.effects import kinds_of, queries_of
from metastore.spark.sql.parsing import parse

_MERGE = "MERGE INTO t USING s ON t.a = s.a "


@pytest.mark.parametrize(("text", "kinds"), [
    ("INSERT INTO t SELECT 1", [Kind.INSERT]),
    ("INSERT INTO t PARTITION (p) SELECT 1, 2", [Kind.INSERT]),
    ("INSERT OVERWRITE TABLE t SELECT 1", [Kind.INSERT_OVERWRITE]),
    ("INSERT OVERWRITE TABLE t PARTITION (p=1) SELECT 1", [Kind.INSERT_OVERWRITE]),
    ("TRUNCATE TABLE t", [Kind.INSERT_OVERWRITE]),
    ("TRUNCATE TABLE t PARTITION (p=1)", [Kind.INSERT_OVERWRITE]),
    ("UPDATE t SET a = 1", [Kind.UPDATE]),
    ("DELETE FROM t WHERE a = 1", [Kind.DELETE]),
    (_MERGE + "WHEN MATCHED THEN UPDATE SET b = 1", [Kind.UPDATE]),
    (_MERGE + "WHEN MATCHED THEN DELETE", [Kind.DELETE]),
    (_MERGE + "WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)", [Kind.MERGE_INSERT]),
    (_MERGE + "WHEN MATCHED AND t.a = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET b = 1 WHEN NOT MATCHED AND s.a > 1 THEN "
     "INSERT (a) VALUES (s.a) WHEN NOT MATCHED THEN INSERT (a) VALUES (0)", [Kind.DELETE, Kind.UPDATE, Kind.MERGE_INSERT]),
])
def test_how_a_statement_uses_its_target(text, kinds) -> None:
    assert kinds_of(parse(text, lambda expressions: None)) == kinds


@pytest.mark.parametrize(("text", "count"), [
    ("INSERT INTO t SELECT * FROM u", 1), ("UPDATE t SET a = (SELECT max(a) FROM u), b = 1", 2), ("TRUNCATE TABLE t", 0),
    ("UPDATE t SET a = 1 WHERE a IN (SELECT a FROM u)", 2), ("DELETE FROM t", 0), ("DELETE FROM t WHERE a IN (SELECT a FROM u)", 1),
    ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED AND u.a > 1 THEN DELETE", 3),
])
def test_what_may_read_other_tables(text, count) -> None:
    assert len(queries_of(parse(text, lambda expressions: None))) == count
