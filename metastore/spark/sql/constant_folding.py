"""Conditions like ``day > current_date() - 7``: the constant is computed once, when the statement is read.

Rule: Spark computes it, and the statement runs with the value, so that partitions are chosen by the very value that
rows are compared with, however late the frame is run. Only calls of functions that are known to have a single value at
a moment are computed, in conditions, and in nothing that gives a column its name.
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime

from sqlglot import exp

from metastore.spark.sql.dialect import DIALECT

Compute = Callable[[Sequence[str]], Sequence[object] | None]
"""The values of expressions without columns; None where they have none."""

_COMPARISONS = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
_CONDITIONS = (exp.Where, exp.Join, exp.Merge)
_FUNCTIONS = frozenset(
    (
        "current_date",
        "curdate",
        "current_timestamp",
        "now",
        "to_date",
        "date",
        "date_sub",
        "date_add",
        "add_months",
        "trunc",
        "date_trunc",
        "last_day",
        "next_day",
        "make_date",
        "date_format",
        "year",
        "quarter",
        "month",
        "day",
        "dayofmonth",
        "hour",
        "concat",
        "lpad",
    )
)
_CALLS = (exp.Anonymous, exp.CurrentDate, exp.CurrentTimestamp, exp.Add, exp.Sub)
_OTHERS = (exp.Literal, exp.Neg, exp.Paren, exp.Interval, exp.Var, exp.Cast, exp.DataType)


def with_constants(tree: exp.Expr, compute: Compute) -> exp.Expr:
    """The statement with the values of what columns are compared with."""
    tree = tree.copy()
    calls = [
        side
        for comparison in tree.find_all(*_COMPARISONS)
        if isinstance(comparison.find_ancestor(*_CONDITIONS, exp.Select), _CONDITIONS)
        for side in _sides(comparison)
        if _is_call(side)
    ]
    values = compute([call.sql(DIALECT) for call in calls]) if calls else None
    for call, value in zip(calls, values or (), strict=False):
        if (literal := _literal(value)) is not None:
            call.replace(literal)
    return tree


def _sides(comparison: exp.Expr) -> list[exp.Expr]:
    """What a column is compared with."""
    if isinstance(comparison, exp.Between):
        column, others = comparison.this, [comparison.args["low"], comparison.args["high"]]
    else:
        column, others = comparison.this, [comparison.expression]
        if isinstance(others[0], exp.Column):
            column, others = others[0], [column]
    return others if isinstance(column, exp.Column) else []


def _is_call(tree: exp.Expr) -> bool:
    nodes = list(tree.walk())
    return any(isinstance(node, _CALLS) for node in nodes) and all(
        node.name.lower() in _FUNCTIONS if isinstance(node, exp.Anonymous) else isinstance(node, _CALLS + _OTHERS)
        for node in nodes
    )


def _literal(value: object) -> exp.Expr | None:
    match value:
        case bool() | datetime():
            return None
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "date", dialect=DIALECT)
        case str():
            return exp.Literal.string(value)
        case int():
            return exp.Literal.number(value)
    return None
