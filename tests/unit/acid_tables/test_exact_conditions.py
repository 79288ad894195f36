"""Conditions on partition keys where no engine filters after them: decided or refused."""

import pytest

from metastore.acid_tables.exact_conditions import exactly
from metastore.acid_tables.table import HiveColumn
from metastore.errors import InvalidInputError, InvalidOperationError


def meets(kind, value, *condition):
    return exactly([["k", *condition]], [HiveColumn("k", kind)])([value])


@pytest.mark.parametrize(("kind", "value", "holding", "failing"), [
    ("boolean", "true", [("=", "true"), (">", "false")], [("=", "false"), ("<", "true"), ("is null",)]),
    ("double", "1.50", [("=", "1.5"), ("<", "NaN"), (">=", "-1e3")], [("<", "1.5"), ("=", "NaN")]),
    ("double", "NaN", [("=", "NaN"), (">", "1e300")], [("<", "1.5")]),
    ("float", "0.1", [("=", "0.1")], [("=", "0.2")]),
    ("timestamp", "2026-01-02 03:04:05.5", [("=", "2026-01-02 03:04:05.500000"), (">", "2026-01-02")], [("<", "2026-01-02 03:04:05")]),
    ("bigint", "9223372036854775807", [("=", "9223372036854775807"), (">", "9223372036854775806")], [("<", "1")]),
    ("int", "007", [("=", "7"), ("in", "8", "7")], [("in", "8", "9"), (">", "7")]),
    ("decimal(20,10)", "1.5", [("=", "1.50"), (">", "1.4999999999")], [("<", "1.5")]),
    ("char(5)", "ab", [("=", "ab  "), ("<", "b"), ("<=", "ab ")], [("<", "ab "), (">", "ab")]),
    ("string", "a ", [("=", "a "), (">", "a"), ("<", "b")], [("=", "a"), ("<", "Z")]),
    ("date", "2026-01-31", [("=", "2026-01-31"), ("<", "2026-02-01")], [(">", "2026-01-31")]),
])
def test_every_type_is_compared(kind, value, holding, failing):
    assert [meets(kind, value, *one) for one in holding] == [True] * len(holding)
    assert [meets(kind, value, *one) for one in failing] == [False] * len(failing)
    assert [meets(kind, None, *one) for one in (*holding, ("is null",))] == [False] * len(holding) + [True]


@pytest.mark.parametrize(("kind", "text"), [
    ("boolean", "maybe"), ("double", "x"), ("int", "x"), ("int", "3000000000"), ("int", "1.5"), ("date", "2024-5-1"),
    ("date", "2024-02-30"), ("timestamp", "soon"), ("decimal(4,2)", "1.234"), ("bigint", "9223372036854775808")])
def test_what_is_no_value_of_the_type_is_refused(kind, text):
    with pytest.raises(InvalidInputError, match=f"'{text}' is no value of the partition key k, which is a "):
        exactly([["k", "in", text]], [HiveColumn("k", kind)])


def test_a_partition_that_cannot_be_judged_is_named():
    with pytest.raises(InvalidOperationError, match="The partition k=soon cannot be read as date32"):
        meets("date", "soon", "is null")


def test_all_conditions_must_hold():
    keys = [HiveColumn("k", "int"), HiveColumn("l", "string")]
    assert exactly([], keys)(["1", None])
    assert exactly([["k", ">", "0"], ["l", "is null"]], keys)(["1", None])
    assert not exactly([["k", ">", "0"], ["l", "is null"]], keys)(["1", "x"])
    with pytest.raises(InvalidInputError, match="m is not a partition key"):
        exactly([["m", "=", "1"]], keys)
