"""A condition on partition keys as it was written, and its meaning for a table's keys.

Filter strings and Hive's serialized expressions are both read into this tree; ``bind`` resolves names and types.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from metastore.catalog.rules.partition_predicate import (
    TEXTS,
    And,
    Comparison,
    KeyKind,
    Literal,
    NullTest,
    Op,
    Or,
    Predicate,
    Unknown,
    parse_date,
    parse_timestamp,
)
from metastore.errors import InvalidRequestError


class PartitionKey(NamedTuple):
    """A partition key of a table: its lower-case name and its type as declared."""

    name: str
    type: str


@dataclass(frozen=True)
class Condition:
    """A comparison of a key with a constant as written, before the table's keys are known."""

    key: str
    op: Op
    constant: Literal


@dataclass(frozen=True)
class AllOf:
    """Conditions joined by AND."""

    parts: tuple["Syntax", ...]


@dataclass(frozen=True)
class AnyOf:
    """Conditions joined by OR."""

    parts: tuple["Syntax", ...]


Syntax = Condition | AllOf | AnyOf | Unknown

NEGATED = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.LE: Op.GT, Op.GT: Op.LE, Op.GE: Op.LT}
MIRRORED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
DEEPEST = 200
_KINDS = {
    "string": KeyKind.TEXT,
    "char": KeyKind.CHAR,
    "varchar": KeyKind.TEXT,
    "tinyint": KeyKind.INTEGER,
    "smallint": KeyKind.INTEGER,
    "int": KeyKind.INTEGER,
    "bigint": KeyKind.INTEGER,
    "date": KeyKind.DATE,
    "timestamp": KeyKind.TIMESTAMP,
}
_TIMES = frozenset({KeyKind.DATE, KeyKind.TIMESTAMP})
_BEYOND = re.compile(r"(?:[+-][0-9]{1,10}|[0-9]{5,10}|0000)-[0-9]{1,2}-[0-9]{1,2}.*|[0-9: -]*\.[0-9]{7,9}", re.DOTALL)
"""Dates and times beyond what is compared here, in range or precision: Spark asks for ``+12345-01-02``."""


def bind(syntax: Syntax, keys: Sequence[PartitionKey], default: str) -> Predicate:
    """Resolve names and types: a predicate over the values of these keys.  Raises: InvalidRequestError."""
    match syntax:
        case AllOf(parts):
            return And(tuple(bind(part, keys, default) for part in parts))
        case AnyOf(parts):
            return Or(tuple(bind(part, keys, default) for part in parts))
        case Condition(name, op, constant):
            column = next((i for i, key in enumerate(keys) if key.name == name.lower()), None)
            if column is None:
                raise InvalidRequestError(f"Specified key <{name}> is not a partitioning key for the table")
            return _compared(column, keys[column], op, constant, default)
        case _:  # The syntax is Unknown.
            return syntax


def all_of(parts: Iterable[Syntax]) -> Syntax:
    """Join conditions by AND; nested terms are flattened, so that depth does not grow with length."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, AllOf) else (part,))]
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(parts: Iterable[Syntax]) -> Syntax:
    """Join conditions by OR, as ``all_of``."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, AnyOf) else (part,))]
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def require_shallow(syntax: Syntax) -> Syntax:
    """Return the condition, if AND and OR alternate no more often than can be followed. Raises: InvalidRequestError."""
    layer = [syntax]
    for _ in range(DEEPEST):
        layer = [part for inner in layer if isinstance(inner, AllOf | AnyOf) for part in inner.parts]
        if not layer:
            return syntax
    raise InvalidRequestError(f"A condition may alternate between AND and OR at most {DEEPEST} levels deep.")


def negation(syntax: Syntax) -> Syntax:
    """Negate a condition: NOT is pushed down to the comparisons.

    The default partition satisfies neither a comparison nor its opposite.
    """
    match syntax:
        case AllOf(parts):
            return any_of(negation(part) for part in parts)
        case AnyOf(parts):
            return all_of(negation(part) for part in parts)
        case Condition(key, op, constant) if op in NEGATED:
            return Condition(key, NEGATED[op], constant)
        case Condition(key, op, _):
            return Unknown(f"not {key} {op}")
        case _:  # The syntax is Unknown.
            return syntax


def _compared(column: int, key: PartitionKey, op: Op, constant: Literal, default: str) -> Predicate:
    """Return the condition with its constant as the key's type. The default partition's token asks for NULL.

    Raises: InvalidRequestError for a constant of another type.
    """
    kind = _KINDS.get(key.type.lower().partition("(")[0].strip())
    if constant == default and kind not in TEXTS and op in {Op.EQ, Op.NE}:
        return NullTest(column, key.type.lower(), op is Op.NE)
    typed = _TYPED[kind](constant) if kind is not None and (op is not Op.LIKE or kind in TEXTS) else None
    if typed is None and ("zone" in key.type.lower() or (kind in _TIMES and _BEYOND.fullmatch(str(constant)))):
        return Unknown(f"{key.name} {op} {constant}")
    if kind is None or typed is None:
        raise InvalidRequestError(
            "Filtering is supported only on partition keys of type string, or with a constant of the key's own type: "
            f"key {key.name} is of type {key.type}, the filter has {op} {constant!r}"
        )
    return Comparison(column, kind, op, typed)


def _as_text(constant: Literal) -> str | None:
    return constant if isinstance(constant, str) else None


def _as_integer(constant: Literal) -> int | None:
    return constant if isinstance(constant, int) else None


def _as_date(constant: Literal) -> date | None:
    if isinstance(constant, str):
        return parse_date(constant)
    return constant if isinstance(constant, date) and not isinstance(constant, datetime) else None


def _as_timestamp(constant: Literal) -> datetime | None:
    if isinstance(constant, date) and not isinstance(constant, datetime):
        constant = constant.isoformat()
    if isinstance(constant, str):
        return parse_timestamp(constant)
    return constant if isinstance(constant, datetime) else None


_TYPED: Mapping[KeyKind, Callable[[Literal], Literal | None]] = {
    KeyKind.TEXT: _as_text,
    KeyKind.CHAR: lambda constant: constant.rstrip(" ") if isinstance(constant, str) else None,
    KeyKind.INTEGER: _as_integer,
    KeyKind.DATE: _as_date,
    KeyKind.TIMESTAMP: _as_timestamp,
}
