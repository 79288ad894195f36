"""What of a statement's conditions is computed before it runs, and that nothing else changes."""

from collections.abc import Sequence
from datetime import date, datetime

import pytest
import sqlglot

from metastore.spark.sql.constant_folding import with_constants
from metastore.spark.sql.dialect import DIALECT

D = "CAST('2024-05-06' AS DATE)"


@pytest.mark.parametrize(("query", "expected"), [
    ("SELECT a FROM t WHERE d > current_date() - 7", f"SELECT a FROM t WHERE d > {D}"), ("SELECT a FROM t WHERE CURRENT_DATE = t.d", f"SELECT a FROM t WHERE {D} = t.d"),
    ("SELECT a FROM t WHERE d BETWEEN add_months(current_date, -1) AND '2024-01-01'", f"SELECT a FROM t WHERE d BETWEEN {D} AND '2024-01-01'"),
    ("SELECT a FROM s JOIN t ON t.d = DATE '2024-05-07' - INTERVAL '1' DAY", f"SELECT a FROM s JOIN t ON t.d = {D}"),
    ("DELETE FROM t WHERE d < CAST(now() AS DATE)", f"DELETE FROM t WHERE d < {D}"),
    ("MERGE INTO t USING s ON t.a = s.a AND t.d >= to_date(now()) WHEN MATCHED THEN DELETE", f"MERGE INTO t USING s ON t.a = s.a AND t.d >= {D} WHEN MATCHED THEN DELETE")])
def test_constants_of_conditions(query: str, expected: str) -> None:
    tree = sqlglot.parse_one(query, dialect=DIALECT)

    assert with_constants(tree, lambda calls: [date(2024, 5, 6) for _ in calls]).sql(DIALECT) == expected
    assert tree == sqlglot.parse_one(query, dialect=DIALECT), "the tree is left as it was"


@pytest.mark.parametrize("query", [
    "SELECT d = current_date() FROM t", "SELECT a FROM t WHERE d = '2024-05-06' AND d = DATE '2024-05-06' AND a = -1", "SELECT a FROM t WHERE x < rand() + 1",
    "SELECT a FROM t WHERE d = to_date(s)", "SELECT a FROM t WHERE d + 1 = current_date()", "SELECT a FROM t WHERE d = my_own(current_date())",
    "SELECT a FROM t WHERE d = (SELECT current_date())", "SELECT a FROM t WHERE d IN (SELECT e = current_date() FROM s)"])
def test_nothing_else_is_computed(query: str) -> None:
    def never(calls: Sequence[str]) -> Sequence[object]:
        raise AssertionError(calls)

    tree = sqlglot.parse_one(query, dialect=DIALECT)
    assert with_constants(tree, never) == tree


@pytest.mark.parametrize(("value", "literal"), [
    ("it's", "'it\\'s'"), (-3, "-3"), (datetime(2024, 5, 6), None), (None, None), (True, None), (1.5, None)])
def test_values_become_literals_of_the_same_type(value: object, literal: str | None) -> None:
    tree = sqlglot.parse_one("SELECT a FROM t WHERE d = now()", dialect=DIALECT)

    assert with_constants(tree, lambda _: [value]).sql(DIALECT) == f"SELECT a FROM t WHERE d = {literal or 'now()'}"
    assert with_constants(tree, lambda _: None) == tree
