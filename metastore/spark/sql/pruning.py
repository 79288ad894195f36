"""Which partitions the conditions on a table leave out: they need not be asked for, listed or read. Pure.

Rule: a partition is left out only where no row of it can meet the conditions, whatever Spark's settings are. So only
that is understood which means the same in all of them: a partition key compared with a literal of its own kind. All
else may hold, and so may everything for a value that is not written as its type is written (`` 7``, ``2024-1-5``).
Nothing is ever negated, so what may hold too often only keeps too much.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

from metastore.acid.types import HiveType, parse_type
from metastore.acid_tables.pruning import (
    BITS,
    AnyOf,
    Comparison,
    Constant,
    Missing,
    Restriction,
    all_of,
    is_text,
    typed,
)
from metastore.acid_tables.table import HiveColumn
from metastore.spark.sql.conditions import Conditions
from metastore.spark.sql.dialect import DIALECT

_ODD = re.compile(r"[\\\x00-\x1f\x7f]")
_COMPARED: Mapping[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NullSafeEQ: operator.eq,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
_MIRRORED: Mapping[type[exp.Expr], Callable[[Any, Any], bool]] = {
    **_COMPARED,
    exp.LT: operator.gt,
    exp.LTE: operator.ge,
    exp.GT: operator.lt,
    exp.GTE: operator.le,
}


def restriction(conditions: Conditions | None, keys: Sequence[HiveColumn]) -> Restriction | None:
    """What the conditions say of partition values; None: nothing."""
    if conditions is None or not keys:
        return None
    reader = _Reader({key.name: (at, parse_type(key.type)) for at, key in enumerate(keys)}, conditions.names)
    parts = [part for tree in conditions.trees if (part := reader.read(tree)) is not None]
    if conditions.may_be_missing:
        parts = [part for part in parts if not part.may_hold([None] * len(keys))]
    return all_of(parts)


@dataclass(frozen=True)
class _Reader:
    """Reads conditions: what it does not understand is None, which may hold."""

    keys: Mapping[str, tuple[int, HiveType]]
    names: frozenset[str]

    def read(self, tree: exp.Expr) -> Restriction | None:
        tree = tree.unnest()
        match tree:
            case exp.And():
                return all_of([part for part in map(self.read, (tree.this, tree.expression)) if part is not None])
            case exp.Or():
                return self._any([self.read(tree.this), self.read(tree.expression)])
            case exp.In() if tree.expressions and not any(tree.args.get(part) for part in ("query", "unnest", "field")):
                return self._any([self._compared(tree.this, operator.eq, item) for item in tree.expressions])
            case exp.Between() if not tree.args.get("symmetric"):
                bounds = ((operator.ge, tree.args["low"]), (operator.le, tree.args["high"]))
                compared = (self._compared(tree.this, holds, bound) for holds, bound in bounds)
                return all_of([part for part in compared if part is not None])
            case exp.Is() if isinstance(tree.expression, exp.Null) and (key := self._key(tree.this)) is not None:
                return Missing(*key)
            case exp.Binary() if type(tree) in _COMPARED:
                return self._compared(tree.this, _COMPARED[type(tree)], tree.expression) or self._compared(
                    tree.expression, _MIRRORED[type(tree)], tree.this
                )
        return None

    @staticmethod
    def _any(parts: Sequence[Restriction | None]) -> Restriction | None:
        known = tuple(part for part in parts if part is not None)
        return AnyOf(known) if len(known) == len(parts) else None

    def _compared(self, column: exp.Expr, holds: Callable[[Any, Any], bool], literal: exp.Expr) -> Restriction | None:
        key = self._key(column)
        constant = _constant(literal, key[1]) if key else None
        return partial(Comparison, *key)(holds, constant) if key and constant is not None else None

    def _key(self, column: exp.Expr) -> tuple[int, HiveType] | None:
        column = column.unnest()
        if not isinstance(column, exp.Column) or column.table.lower() not in self.names:
            return None
        return self.keys.get(column.name.lower())


def _constant(tree: exp.Expr, kind: HiveType) -> Constant | None:
    """A literal as a value of the type; None for one of another kind, and for all that is not a literal."""
    tree = tree.unnest()
    if isinstance(tree, exp.Cast) and tree.to.is_type("bigint") and not tree.this.is_string:  # 2L
        tree = tree.this
    is_day = isinstance(tree, exp.Cast) and tree.to.is_type("date") and tree.this.is_string  # DATE '2024-01-01'
    if is_day:
        tree = tree.this
    sign = "-" if isinstance(tree, exp.Neg) else ""
    tree = tree.this if sign else tree
    if not isinstance(tree, exp.Literal) or (sign and tree.is_string) or (is_day and kind.kind != "date"):
        return None
    text = sign + tree.name
    if not tree.is_string:
        return typed(text, kind) if kind.kind in BITS or kind.kind == "decimal" else None
    if is_text(kind) and (_ODD.search(text) or tree.sql(DIALECT) != "'" + text.replace("'", "\\'") + "'"):
        return None  # not sure that Spark reads the same
    return None if kind.kind == "decimal" else typed(text, kind)
