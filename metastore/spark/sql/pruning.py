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
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

from sqlglot import exp

from metastore.acid.types import HiveType, parse_type
from metastore.spark.sql.conditions import Conditions
from metastore.spark.sql.dialect import DIALECT
from metastore.spark.tables.acid_table import HiveColumn

Constant: TypeAlias = str | int | date | Decimal
Values: TypeAlias = Sequence[str | None]

_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SIMPLE = re.compile(r"[A-Za-z0-9_-]+")
"""Texts that are the same in names, and to metastores that take them for patterns."""
_ODD = re.compile(r"[\\\x00-\x1f\x7f]")
_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_TEXT = ("string", "varchar", "char")
_DECIMAL = (10, 0)
"""DECIMAL without precision and scale."""
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


@dataclass(frozen=True)
class Comparison:
    """``values[key] holds constant``; the constant is of the key's type."""

    key: int
    type: HiveType
    holds: Callable[[Any, Any], bool]
    constant: Constant

    def may_hold(self, values: Values) -> bool:
        """Whether the condition can hold in a partition with these values."""
        text = values[self.key]
        if text is None:
            return False
        value = typed(text, self.type)
        return value is None or self.holds(value, self.constant)


@dataclass(frozen=True)
class Missing:
    """``values[key] IS NULL``."""

    key: int
    type: HiveType

    def may_hold(self, values: Values) -> bool:
        """Whether the condition can hold in a partition with these values: NULL, or nothing that the type can read."""
        text = values[self.key]
        return text is None or typed(text, self.type) is None


@dataclass(frozen=True)
class AllOf:
    """Conditions joined by AND."""

    parts: tuple["Restriction", ...]

    def may_hold(self, values: Values) -> bool:
        """Whether the condition can hold in a partition with these values."""
        return all(part.may_hold(values) for part in self.parts)


@dataclass(frozen=True)
class AnyOf:
    """Conditions joined by OR."""

    parts: tuple["Restriction", ...]

    def may_hold(self, values: Values) -> bool:
        """Whether the condition can hold in a partition with these values."""
        return any(part.may_hold(values) for part in self.parts)


Restriction: TypeAlias = Comparison | Missing | AllOf | AnyOf


def restriction(conditions: Conditions | None, keys: Sequence[HiveColumn]) -> Restriction | None:
    """What the conditions say of partition values; None: nothing."""
    if conditions is None or not keys:
        return None
    reader = _Reader({key.name: (at, parse_type(key.type)) for at, key in enumerate(keys)}, conditions.names)
    parts = [part for tree in conditions.trees if (part := reader.read(tree)) is not None]
    if conditions.may_be_missing:
        parts = [part for part in parts if not part.may_hold([None] * len(keys))]
    return _all(parts)


def exact_texts(where: Restriction, count: int) -> list[str]:
    """For each key the text that it has to be, where the metastore can be asked for it; "": any."""
    texts = [""] * count
    for part in where.parts if isinstance(where, AllOf) else (where,):
        if isinstance(part, Comparison) and part.holds is operator.eq and is_text(part.type):
            texts[part.key] = str(part.constant) if _SIMPLE.fullmatch(str(part.constant)) else ""
    return texts


def is_text(kind: HiveType) -> bool:
    """Whether values of the type are what is written."""
    return kind.kind in _TEXT


def typed(text: str, kind: HiveType) -> Constant | None:
    """A value as its type has it; None for a spelling that is not the usual one, or a value that does not fit."""
    if is_text(kind):
        return text
    if kind.kind == "date":
        return _day(text)
    if _NUMBER.fullmatch(text) and kind.kind in _BITS and "." not in text:
        bound = 1 << _BITS[kind.kind]
        return number if -bound <= (number := int(text)) < bound else None
    if _NUMBER.fullmatch(text) and kind.kind == "decimal":
        precision, scale = (*kind.arguments, *_DECIMAL[len(kind.arguments) :])
        whole, _, fraction = text.lstrip("-").partition(".")
        fits = len(fraction) <= scale and len(whole.lstrip("0")) <= precision - scale
        return Decimal(text) if fits else None
    return None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def _all(parts: Sequence[Restriction]) -> Restriction | None:
    return AllOf(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None


@dataclass(frozen=True)
class _Reader:
    """Reads conditions: what it does not understand is None, which may hold."""

    keys: Mapping[str, tuple[int, HiveType]]
    names: frozenset[str]

    def read(self, tree: exp.Expr) -> Restriction | None:
        tree = tree.unnest()
        match tree:
            case exp.And():
                return _all([part for part in map(self.read, (tree.this, tree.expression)) if part is not None])
            case exp.Or():
                return self._any([self.read(tree.this), self.read(tree.expression)])
            case exp.In() if tree.expressions and not any(tree.args.get(one) for one in ("query", "unnest", "field")):
                return self._any([self._compared(tree.this, operator.eq, one) for one in tree.expressions])
            case exp.Between() if not tree.args.get("symmetric"):
                bounds = ((operator.ge, tree.args["low"]), (operator.le, tree.args["high"]))
                found = (self._compared(tree.this, holds, bound) for holds, bound in bounds)
                return _all([part for part in found if part is not None])
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
        return typed(text, kind) if kind.kind in _BITS or kind.kind == "decimal" else None
    if is_text(kind) and (_ODD.search(text) or tree.sql(DIALECT) != "'" + text.replace("'", "\\'") + "'"):
        return None  # not sure that Spark reads the same
    return None if kind.kind == "decimal" else typed(text, kind)
