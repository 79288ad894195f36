"""Which partitions a condition keeps: the conditions as values, and the one rule that judges a partition by them.

Rule: three answers. ``None`` means "cannot be known here", which only arises from a part of a serialized Hive
expression that we do not read (``Unknown``); the caller must then keep the partition and say so. A value that is
not of its key's type, and the default partition of a key that is not text, satisfy no comparison (not even ``!=``).
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum
from itertools import takewhile
from typing import Any

from metastore.catalog.rules.like import like
from metastore.partition_names import DEFAULT_PARTITION

Literal = str | int | date | datetime

INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})(?:[ T]([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?)?"
)


class Op(StrEnum):
    """How a partition's value is compared with a constant."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    LIKE = "like"


class Kind(StrEnum):
    """How the values of a key are compared, after the key's type."""

    TEXT = "text"
    INTEGER = "integer"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class Comparison:
    """``values[column] op constant``; the constant is of the kind's Python type."""

    column: int
    kind: Kind
    op: Op
    constant: Literal


@dataclass(frozen=True)
class And:
    """Every part holds; ``And(())`` keeps everything."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True)
class Or:
    """Some part holds; ``Or(())`` keeps nothing."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True)
class Unknown:
    """A condition that we cannot evaluate."""

    reason: str


Predicate = Comparison | And | Or | Unknown
EVERYTHING = And(())


def keeps(predicate: Predicate, values: Sequence[str], default: str = DEFAULT_PARTITION) -> bool | None:
    """Whether the condition holds for a partition with these values; None where that cannot be known."""
    match predicate:
        case Comparison():
            return _compare(predicate, values[predicate.column] or default, default)
        case And(parts):
            return _all(keeps(part, values, default) for part in parts)
        case Or(parts):
            return _any(keeps(part, values, default) for part in parts)
        case _:  # Unknown
            return None


def leading_texts(predicate: Predicate, default: str = DEFAULT_PARTITION) -> list[str]:
    """What the first keys of every partition that is kept must be: texts, none of them empty or the default."""
    wanted = dict(_equal_texts(predicate))
    texts = (wanted.get(column) for column in range(len(wanted)))
    return list(takewhile(lambda text: text not in {None, "", default}, texts))  # type: ignore[arg-type]


def _equal_texts(predicate: Predicate) -> Iterator[tuple[int, str]]:
    match predicate:
        case Comparison(column, Kind.TEXT, Op.EQ, constant):
            yield column, str(constant)
        case And(parts):
            for part in parts:
                yield from _equal_texts(part)


def _all(answers: Iterable[bool | None]) -> bool | None:
    result: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        if answer is None:
            result = None
    return result


def _any(answers: Iterable[bool | None]) -> bool | None:
    result: bool | None = False
    for answer in answers:
        if answer:
            return True
        if answer is None:
            result = None
    return result


def _compare(comparison: Comparison, value: str, default: str) -> bool:
    if comparison.op is Op.LIKE:  # of text only
        return like(str(comparison.constant)).matches(value)
    holds = _HOLDS[comparison.op]
    if comparison.kind is Kind.TEXT:
        return holds(value, comparison.constant)
    typed = None if value == default else _PARSERS[comparison.kind](value)
    return typed is not None and holds(typed, comparison.constant)


_HOLDS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def parse_integer(text: str) -> int | None:
    """A whole number in decimal digits; None for anything else."""
    return int(text) if INTEGER.fullmatch(text) else None


def parse_date(text: str) -> date | None:
    """``yyyy-MM-dd``, also without leading zeros; None for anything else and for days that do not exist."""
    match = DATE.fullmatch(text)
    if not match:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None


def parse_timestamp(text: str) -> datetime | None:
    """``yyyy-MM-dd[ HH:mm:ss[.fffffffff]]``, to the microsecond; None for anything else."""
    match = _TIMESTAMP.fullmatch(text)
    day = parse_date(match[1]) if match else None
    if not match or not day:
        return None
    micros = int((match[5] or "").ljust(6, "0")[:6])
    try:
        return datetime.combine(day, time(int(match[2] or 0), int(match[3] or 0), int(match[4] or 0), micros))
    except ValueError:
        return None


# A partition's value as the key's type; None if it is of another type (the catalog does not check values).
_PARSERS: dict[Kind, Callable[[str], Literal | None]] = {
    Kind.INTEGER: parse_integer,
    Kind.DATE: parse_date,
    Kind.TIMESTAMP: parse_timestamp,
}
