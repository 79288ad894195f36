"""Which partitions a condition keeps: the conditions as values, and the one rule that judges a partition by them.

Rule: three answers. ``None`` means "cannot be told here", which only arises from a part of a serialized Hive
expression that we do not read (``Unknown``); whoever asks must then keep the partition and say so. A value that is
not of its key's type, and the default partition of a key that is not text, satisfy no comparison (not even ``!=``).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum
from functools import lru_cache

from metastore.catalog.partition_names import DEFAULT_PARTITION

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
    """Whether the condition holds for a partition with these values; None where that cannot be told."""
    match predicate:
        case Comparison():
            return _compare(predicate, values[predicate.column] or default, default)
        case And(parts):
            return _all(keeps(part, values, default) for part in parts)
        case Or(parts):
            return _any(keeps(part, values, default) for part in parts)
        case Unknown():
            return None


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
    if comparison.kind is Kind.TEXT:
        if comparison.op is Op.LIKE:
            return bool(like_pattern(str(comparison.constant)).fullmatch(value))
        return _holds(comparison.op, _order(value, str(comparison.constant)))
    typed = None if value == default else parse_value(comparison.kind, value)
    if typed is None:
        return False
    return _holds(comparison.op, _order(typed, comparison.constant))


def _order(left: Literal, right: Literal) -> int:
    """-1, 0 or 1; both sides are of one kind."""
    return (left > right) - (left < right)  # type: ignore[operator]


def _holds(op: Op, order: int) -> bool:
    match op:
        case Op.EQ:
            return order == 0
        case Op.NE:
            return order != 0
        case Op.LT:
            return order < 0
        case Op.LE:
            return order <= 0
        case Op.GT:
            return order > 0
        case Op.GE:
            return order >= 0
        case Op.LIKE:
            return False


def parse_value(kind: Kind, value: str) -> Literal | None:
    """A partition's value as the key's type; None if it is not one (the catalog does not check values)."""
    match kind:
        case Kind.TEXT:
            return value
        case Kind.INTEGER:
            return int(value) if INTEGER.fullmatch(value) else None
        case Kind.DATE:
            return parse_date(value)
        case Kind.TIMESTAMP:
            return parse_timestamp(value)


def parse_date(text: str) -> date | None:
    """``yyyy-MM-dd``, also without leading zeros; None for anything else and for days that do not exist."""
    found = DATE.fullmatch(text)
    if not found:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None


def parse_timestamp(text: str) -> datetime | None:
    """``yyyy-MM-dd[ HH:mm:ss[.fffffffff]]``, to the microsecond; None for anything else."""
    found = _TIMESTAMP.fullmatch(text)
    day = parse_date(found[1]) if found else None
    if not found or not day:
        return None
    micros = int((found[5] or "").ljust(6, "0")[:6])
    try:
        return datetime.combine(day, time(int(found[2] or 0), int(found[3] or 0), int(found[4] or 0), micros))
    except ValueError:
        return None


@lru_cache(maxsize=256)
def like_pattern(pattern: str) -> re.Pattern[str]:
    """LIKE in both dialects at once: ``%`` and ``.*`` are any run, ``_`` and ``.`` any character, a backslash quotes.

    2.3 and 3.x clients write regular expressions, 4.x clients SQL patterns, and nothing tells them apart. Reading
    both can only keep too much (clients filter again), never too little.
    """
    parts = [
        _LIKE.get(token) or re.escape(token.removeprefix("\\") or token)
        for token in re.findall(r"\\.|\.\*|.|\n", pattern, re.DOTALL)
    ]
    return re.compile("".join(parts), re.DOTALL)


_LIKE = {"%": ".*", ".*": ".*", "_": ".", ".": "."}


def like_prefix(pattern: str) -> str:
    """The characters that every value that matches the LIKE pattern begins with."""
    found = re.match(r"[^%_.\\]*", pattern)
    return found[0] if found else ""
