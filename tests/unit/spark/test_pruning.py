"""Which partitions a statement's conditions leave out; that no row of them could have mattered, as SQLite has it."""

import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from itertools import product

import pytest
import sqlglot
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from metastore.acid.types import parse_type
from metastore.acid_tables.pruning import typed
from metastore.acid_tables.table import HiveColumn
from metastore.spark.sql.conditions import Conditions, conditions_on
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.sql.pruning import restriction

KEYS = (HiveColumn("p", "int"), HiveColumn("q", "string"), HiveColumn("d", "date"), HiveColumn("n", "decimal(6,2)"))
VALUES = (["3", "07", "-1", "x", " 3", None], ["a", "it's", "a/b=c%", "07", "", None], ["2024-02-29", "2024-2-9", "2023-12-31", None],
          ["1.50", "-0.2", "1", "1e1", None])


def _kept(condition: str, key: int) -> list[str | None]:
    tree = sqlglot.parse_one(condition, dialect=DIALECT)
    asked = restriction(Conditions((tree,), frozenset({"", "t"})), KEYS)
    return [value for value in VALUES[key] if asked is None or asked.may_hold([value if at == key else None for at in range(len(KEYS))])]


ODD_WHOLE, ODD_DAY, ODD_NUMBER = ["x", " 3"], ["2024-2-9"], ["1e1"]  # nobody knows what Spark makes of these


@pytest.mark.parametrize(("condition", "key", "kept"), [
    ("p = 3", 0, ["3", *ODD_WHOLE]), ("7 <= P", 0, ["07", *ODD_WHOLE]), ("t.p = '7'", 0, ["07", *ODD_WHOLE]), ("p <=> 07L", 0, ["07", *ODD_WHOLE]),
    ("p IN (3, '-1')", 0, ["3", "-1", *ODD_WHOLE]), ("p BETWEEN -1 AND 3", 0, ["3", "-1", *ODD_WHOLE]), ("p < 0", 0, ["-1", *ODD_WHOLE]),
    ("p IS NULL", 0, [*ODD_WHOLE, None]), ("(p = 3 AND f(x)) OR (p = -1)", 0, ["3", "-1", *ODD_WHOLE]), ("p = 3 AND x > 4", 0, ["3", *ODD_WHOLE]),
    ("q = 'it''s'", 1, ["it's"]), ("q = 'it\\'s'", 1, ["it's"]), ("q >= 'a/b'", 1, ["it's", "a/b=c%"]), ("q IN ('07', 'a')", 1, ["a", "07"]), ("q = '7'", 1, []),
    ("d = DATE '2024-02-29'", 2, ["2024-02-29", *ODD_DAY]), ("d < '2024-01-01'", 2, [*ODD_DAY, "2023-12-31"]),
    ("d BETWEEN DATE '2024-01-01' AND current_date()", 2, ["2024-02-29", *ODD_DAY]),
    ("n = 1.5", 3, ["1.50", *ODD_NUMBER]), ("n < 1", 3, ["-0.2", *ODD_NUMBER]), ("n >= -.2 AND n <= 1", 3, ["-0.2", "1", *ODD_NUMBER])])
def test_partitions_are_left_out(condition: str, key: int, kept: list[str | None]) -> None:
    assert _kept(condition, key) == kept


@pytest.mark.parametrize(("condition", "key"), [
    ("p = 3 OR x = 1", 0), ("NOT p = 3", 0), ("p <> 3", 0), ("p + 1 = 3", 0), ("p = q", 0), ("s.p = 3", 0), ("p = 3.5", 0), ("p = '3.0'", 0),
    ("p = 3e0", 0), ("p IN (SELECT 3)", 0), ("p = NULL", 0), ("p NOT IN (3)", 0), ("p = '3 '", 0), ("p = 9999999999", 0), ("p IS NOT NULL", 0),
    ("q = 7", 1), ("q = DATE '2024-01-01'", 1), ("q = 'a\\\\b'", 1), ("q LIKE 'a%'", 1), ("q = 'a' COLLATE UTF8_LCASE", 1), ("upper(q) = 'A'", 1),
    ("d = '2024-2-29'", 2), ("d = TIMESTAMP '2024-02-29 00:00:00'", 2), ("d = '2024-02-30'", 2), ("d > current_date()", 2),
    ("n = 1.505", 3), ("n = '1.5'", 3), ("n = 12345", 3), ("n = 1.5D", 3)])
def test_what_may_mean_anything_leaves_out_nothing(condition: str, key: int) -> None:
    assert _kept(condition, key) == VALUES[key]


@pytest.mark.parametrize(("text", "kind", "value"), [
    ("127", "tinyint", 127), ("128", "tinyint", None), ("-007", "bigint", -7), ("9" * 19, "bigint", None), ("1.0", "int", None),
    ("99", "decimal(2,0)", Decimal(99)), ("100", "decimal(2,0)", None), ("1.25", "decimal(4,1)", None), ("0012.5", "decimal(3,1)", Decimal("12.5")),
    ("0000-01-01", "date", None), ("x", "varchar(3)", "x"), ("1", "double", None), ("1", "boolean", None), ("\N{ARABIC-INDIC DIGIT ONE}", "int", None)])
def test_values_are_read_only_where_nobody_can_read_them_otherwise(text: str, kind: str, value: object) -> None:
    assert typed(text, parse_type(kind)) == value


@pytest.mark.parametrize(("query", "conditions", "names"), [
    ("SELECT * FROM db.t WHERE p = 3 AND (q = 1 AND r)", ["p = 3", "q = 1", "r"], {"", "t"}),
    ("SELECT * FROM db.t AS X JOIN s ON x.p = 3 WHERE q = 1", ["x.p = 3", "q = 1"], {"", "x"}),
    ("SELECT * FROM s LEFT JOIN t ON t.p = 3 JOIN u ON u.a = 1 RIGHT JOIN v ON v.b = 1", ["t.p = 3", "u.a = 1"], {"", "t"}),
    ("SELECT * FROM s JOIN r ON p = 3 JOIN t ON s.a = t.a", ["s.a = t.a"], {"", "t"}),
    ("SELECT * FROM s LEFT SEMI JOIN t ON t.p = 3 JOIN u ON p = 4 WHERE p = 5", ["t.p = 3"], {"", "t"}),
    ("SELECT * FROM t LEFT JOIN s ON t.p = 3 FULL JOIN u ON t.p = 4", [], {"", "t"}),
    ("SELECT * FROM t ANTI JOIN s ON t.p = 3 WHERE p = 4", ["p = 4"], {"", "t"}),
    ("SELECT * FROM t JOIN s USING (p) WHERE p = 3", ["p = 3"], {"t"}), ("SELECT * FROM t NATURAL JOIN s WHERE p = 3", ["p = 3"], {"t"}),
    ("SELECT * FROM t VERSION AS OF 3", [], {"", "t"}), ("SELECT 1 WHERE EXISTS (SELECT 1 FROM t WHERE p = 3)", ["p = 3"], {"", "t"}),
    ("SELECT * FROM t TABLESAMPLE (3 ROWS) WHERE p = 3", None, None), ("SELECT * FROM t AS x (a, p) WHERE p = 3", None, None),
    ("SELECT * FROM (s JOIN t ON t.a = 1) WHERE p = 3", None, None), ("SELECT * FROM x.t JOIN y.t ON 1 = 1 WHERE t.p = 3", None, None),
    ("SELECT * FROM t PIVOT (sum(x) FOR y IN (1, 2)) WHERE p = 3", None, None), ("CACHE TABLE x AS SELECT * FROM (TABLE t)", None, None)])
def test_where_conditions_stand(query: str, conditions: list[str] | None, names: set[str] | None) -> None:
    tables = [one for one in sqlglot.parse_one(query, dialect=DIALECT).find_all(exp.Table) if one.name == "t"]
    found = conditions_on(tables[-1]) if tables else None

    assert found is None if conditions is None else (
        found is not None and [one.sql(DIALECT) for one in found.trees] == conditions and found.names == names)


# -- against SQLite: a query's answer does not change when the rows of partitions that are left out are not there ------------

_P, _Q = (None, 0, 1), (None, "a", "it's")
_ALL_ROWS = list(product((0, 1), _P, _Q))
_ROWS = st.sets(st.sampled_from(_ALL_ROWS), min_size=4)
_JOINS = ["JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]


@st.composite
def _condition(draw, names: list[str], depth: int = 2) -> str:
    name = draw(st.sampled_from(names))
    kind = draw(st.sampled_from(["p", "q", "q", "id", "join", "in", "between", "null", "null", *(["and", "or", "or", "not"] if depth else [])]))
    number, text = draw(st.integers(0, 1)), draw(st.sampled_from(["'a'", "'it\\'s'"]))
    op = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]))
    if kind in {"and", "or"}:
        return f"({draw(_condition(names, depth - 1))} {kind} {draw(_condition(names, depth - 1))})"
    if kind == "not":
        return f"NOT ({draw(_condition(names, depth - 1))})"
    return {"p": f"{name}.p {op} {number}", "q": f"{text} {op} {name}.q", "id": f"{name}.id = {number}",
            "join": f"{name}.p = {draw(st.sampled_from(names))}.p", "in": f"{name}.p IN ({number}, '1')",
            "between": f"{name}.p BETWEEN {number} AND 1", "null": f"{name}.{'pq'[number % 2]} IS NULL"}[kind]


@st.composite
def _query(draw) -> str:
    names = ["a", *(name for name in "bc" if draw(st.booleans()))]
    text = "SELECT * FROM a"
    for number, name in enumerate(names[1:], 2):
        join = draw(st.sampled_from(_JOINS))
        text += f" {join} {name}" + ("" if join == "CROSS JOIN" else f" ON {draw(_condition(names[:number]))}")
    return text + (f" WHERE {draw(_condition(names))}" if draw(st.booleans()) else "")


def _left_out(query: str) -> Iterator[tuple[str, list[tuple]]]:
    """(table, partitions of it that are left out)"""
    for table in sqlglot.parse_one(query, dialect=DIALECT).find_all(exp.Table):
        asked = restriction(conditions_on(table), (HiveColumn("p", "int"), HiveColumn("q", "string")))
        if asked is not None:
            yield table.name, [(p, q) for p, q in product(_P, _Q) if not asked.may_hold([None if p is None else f"0{p}", q])]


@settings(max_examples=250)
@given(_query(), st.tuples(_ROWS, _ROWS, _ROWS))
def test_no_row_that_matters_is_left_out(query: str, rows: tuple[set[tuple], ...]) -> None:
    sql = sqlglot.parse_one(query, dialect=DIALECT).sql("sqlite")
    with sqlite3.connect(":memory:") as lite:
        for name, content in zip("abc", rows, strict=True):
            lite.execute(f"CREATE TABLE {name} (id INTEGER, p INTEGER, q TEXT)")
            lite.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", content)
        whole = sorted(lite.execute(sql).fetchall(), key=repr)
        gone = sum(lite.executemany(f"DELETE FROM {name} WHERE p IS ? AND q IS ?", out).rowcount for name, out in _left_out(query))
        rest = sorted(lite.execute(sql).fetchall(), key=repr)
    lite.close()
    assume(gone)

    assert rest == whole
