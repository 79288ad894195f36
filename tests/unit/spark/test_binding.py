"""How a query's tables become views: aliases, databases in front of columns, ROW__ID."""

import pytest
import sqlglot

from metastore.errors import InvalidOperationError
from metastore.spark.commands.multi_insert import of_joined
from metastore.spark.sql.binding import bound_sql
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.parsing import parse
from metastore.spark.sql.statements import TableRef


@pytest.mark.parametrize(("query", "expected"), [
    ("SELECT * FROM db.t", "SELECT * FROM v_t AS t"),
    ("SELECT db.t.a FROM db.t WHERE t.b = 1", "SELECT t.a FROM v_t AS t WHERE t.b = 1"),
    ("WITH t AS (SELECT 1 AS a) SELECT a FROM t", "WITH t AS (SELECT 1 AS a) SELECT a FROM t"),
    ("SELECT a FROM other.x", "SELECT a FROM other.x"),
    ("SELECT *, ROW__ID FROM db.t", "SELECT * EXCEPT (t.ROW__ID), ROW__ID FROM v_t AS t"),
    ("SELECT a.*, b.k, b.ROW__ID.rowid FROM db.t a JOIN db.u b ON a.k = b.k",
     "SELECT a.* EXCEPT (a.ROW__ID), b.k, b.ROW__ID.rowid FROM v_t AS a JOIN v_u AS b ON a.k = b.k"),
    ("SELECT * FROM db.t JOIN db.u USING (k) WHERE t.row__id.writeid = 3",
     "SELECT * EXCEPT (t.ROW__ID, u.ROW__ID) FROM v_t AS t JOIN v_u AS u USING (k) WHERE t.row__id.writeid = 3"),
    ("SELECT log10(a), to_date(b, 'yyyy-MM-dd'), nvl(a, b), array(1, 2)[0], named_struct('x', 1), first(a, TRUE) FROM db.t",
     "SELECT log10(a), to_date(b, 'yyyy-MM-dd'), nvl(a, b), array(1, 2)[0], named_struct('x', 1), first(a, TRUE) FROM v_t AS t"),
    ("SELECT 'it''s', 'a''''b', 'a' 'b', '\\'' FROM db.t", r"SELECT 'it\'s', 'a\'\'b', CONCAT('a', 'b'), '\'' FROM v_t AS t"),
    ('SELECT "say ""x""", "it\'\'s" FROM db.t', r"SELECT 'say " + '"x"' + r"', 'it\'\'s' FROM v_t AS t"),
    ("SELECT COUNT(*) FROM db.t WHERE ROW__ID.rowid = 3", "SELECT COUNT(*) FROM v_t AS t WHERE ROW__ID.rowid = 3"),
    ("SELECT * FROM db.t VERSION AS OF 3 JOIN other.x TIMESTAMP AS OF 'y' AS z",
     "SELECT * FROM v_t3 AS t JOIN other.x TIMESTAMP AS OF 'y' AS z ON TRUE"),
    ("SELECT * FROM (SELECT ROW__ID AS r FROM db.t) AS x", "SELECT * FROM (SELECT ROW__ID AS r FROM v_t AS t) AS x"),
])
def test_tables_become_views(query: str, expected: str) -> None:
    tree = sqlglot.parse_one(query, dialect=DIALECT)

    assert bound_sql(tree, lambda ref: None if ref.db == "other" else view(ref)) == expected
    assert tree == sqlglot.parse_one(query, dialect=DIALECT), "the tree is left as it was"


def view(ref: TableRef) -> str:
    return f"v_{ref.table}{ref.version.expression.name if ref.version else ''}"


COLUMNS = {"a": ["id", "v"], "b": ["id", "w", "s"]}


@pytest.mark.parametrize(("query", "expected"), [
    ("SELECT a.id, B.w", "SELECT a.id, B.w"), ("SELECT v, s.x.y WHERE w > 1", "SELECT a.v, b.s.x.y WHERE b.w > 1"),
    ("SELECT *, a.*", "SELECT a.*, b.*, a.*"), ("SELECT db.a.id", "SELECT a.id"),
    ("SELECT v WHERE EXISTS(SELECT 1 FROM c WHERE id = 1)", "SELECT a.v WHERE EXISTS(SELECT 1 FROM c WHERE id = 1)"),
])
def test_columns_of_joined_tables(query: str, expected: str) -> None:
    assert of_joined(sqlglot.parse_one(query, dialect=DIALECT), COLUMNS).sql(DIALECT) == expected


@pytest.mark.parametrize(("query", "reason"), [("SELECT id", "a and of b"), ("SELECT 1 WHERE z", "of none of a, b")])
def test_columns_of_no_one_table(query: str, reason: str) -> None:
    with pytest.raises(InvalidOperationError, match=reason):
        of_joined(sqlglot.parse_one(query, dialect=DIALECT), COLUMNS)


def test_what_would_be_left_out_is_refused():
    with pytest.raises(InvalidOperationError, match="FOR UPDATE"):
        bound_sql(parse("SELECT * FROM t FOR UPDATE").tree, lambda _: None)


def test_sparks_variables_are_its_own():
    query = "SELECT * FROM t WHERE a = ${hiveconf:x} AND b = ${y}"
    assert bound_sql(parse(query).tree, lambda _: None) == query
