"""Conditions on partitions as values, and the one rule that decides whether a condition keeps a partition.

Rule: three answers. ``None`` means "cannot be known here": the caller keeps the partition and says so. It is the answer
for a condition that we do not read (``Unknown``), for one that two clients mean differently (``Readings``), and for a
value that is not spelled as its key's type spells it (`` 7``, ``2020-01-01T00:00``, ``12345-01-01``): engines read more
spellings than this server. The default partition of a key that is not text satisfies no comparison (not even ``!=``).
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
    """Comparisons of a partition's value with a constant."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    LIKE = "like"


class KeyKind(StrEnum):
    """The way in which the values of a partition key are compared; it follows from the key's type."""

    TEXT = "text"
    CHAR = "char"
    """Text in which blanks at the end do not count."""
    INTEGER = "integer"
    DATE = "date"
    TIMESTAMP = "timestamp"


TEXTS = frozenset({KeyKind.TEXT, KeyKind.CHAR})


@dataclass(frozen=True)
class Comparison:
    """``values[column] op constant``; the constant is of the kind's Python type."""

    column: int
    kind: KeyKind
    op: Op
    constant: Literal


@dataclass(frozen=True)
class NullTest:
    """``values[column] IS NULL``, or IS NOT NULL if ``negated``, of a key of another type than text.

    ``type``: the key's type, as declared. A value that the type cannot hold is NULL to an engine.
    """

    column: int
    type: str
    negated: bool


@dataclass(frozen=True)
class And:
    """Every part holds; ``And(())`` keeps everything."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True)
class Or:
    """Some part holds; ``Or(())`` keeps nothing."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True)
class Readings:
    """One condition as different clients mean it; it is decided where all meanings agree."""

    parts: tuple["Predicate", ...]


@dataclass(frozen=True)
class Unknown:
    """A condition that we cannot evaluate."""

    reason: str


Predicate = Comparison | NullTest | And | Or | Readings | Unknown
EVERYTHING = And(())


def keeps(predicate: Predicate, values: Sequence[str], default: str = DEFAULT_PARTITION) -> bool | None:
    """Return True if the condition holds for a partition with these values; None where that cannot be known."""
    match predicate:
        case Comparison(column, _, _, _):
            answer = _compare(predicate, values[column] or default, default)
            if values[column] or predicate.kind not in TEXTS:
                return answer
            # The server treats an empty value as the default partition; an engine may treat it as an empty string.
            return agreed((answer, holds_for_text(predicate, "")))
        case NullTest(column, _, negated):
            if values[column] in {"", default}:
                return not negated
            return negated if _is_surely_of(predicate.type, values[column]) else None
        case And(parts):
            return _all(keeps(part, values, default) for part in parts)
        case Or(parts):
            return _any(keeps(part, values, default) for part in parts)
        case Readings(parts):
            return agreed(keeps(part, values, default) for part in parts)
        case _:  # The predicate is Unknown.
            return None


def leading_texts(predicate: Predicate, default: str = DEFAULT_PARTITION) -> list[str]:
    """Return the texts that the first keys of every kept partition must have, none of them empty or the default."""
    wanted = dict(_equal_texts(predicate))
    texts = (wanted.get(column) for column in range(len(wanted)))
    return list(takewhile(lambda text: text not in {None, "", default}, texts))  # type: ignore[arg-type]


def _equal_texts(predicate: Predicate) -> Iterator[tuple[int, str]]:
    match predicate:
        case Comparison(column, KeyKind.TEXT, Op.EQ, constant):
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


def agreed(answers: Iterable[bool | None]) -> bool | None:
    """Return the answer if all answers are equal; None if they differ."""
    different = set(answers)
    return different.pop() if len(different) == 1 else None


def _compare(comparison: Comparison, value: str, default: str) -> bool | None:
    if comparison.kind in TEXTS:
        return holds_for_text(comparison, value)
    if value == default:
        return False
    typed = _PARSERS[comparison.kind](value)
    return None if typed is None else _HOLDS[comparison.op](typed, comparison.constant)


def holds_for_text(comparison: Comparison, value: str) -> bool | None:
    """Return the answer for a value of a text key; None where a pattern's backslash decides."""
    if comparison.kind is KeyKind.CHAR:
        value = value.rstrip(" ")
    if comparison.op is Op.LIKE:
        # A backslash quotes in Hive's patterns; in Spark's, which come from startswith() and kin, it is a character.
        pattern = str(comparison.constant)
        return agreed(like(each).matches(value) for each in {pattern, pattern.replace("\\", "\\\\")})
    return _HOLDS[comparison.op](value, comparison.constant)


_HOLDS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def parse_integer(text: str) -> int | None:
    """Parse a whole number in decimal digits; None for anything else."""
    return int(text) if INTEGER.fullmatch(text) else None


def parse_date(text: str) -> date | None:
    """Parse ``yyyy-MM-dd``, also without leading zeros; None for anything else and for days that do not exist."""
    match = DATE.fullmatch(text)
    if not match:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None


def parse_timestamp(text: str) -> datetime | None:
    """Parse ``yyyy-MM-dd[ HH:mm:ss[.fffffffff]]``, in whole microseconds; None for anything else."""
    match = _TIMESTAMP.fullmatch(text)
    day = parse_date(match[1]) if match else None
    if not match or not day or (match[5] or "")[6:].strip("0"):
        return None
    micros = int((match[5] or "").ljust(6, "0")[:6])
    try:
        return datetime.combine(day, time(int(match[2] or 0), int(match[3] or 0), int(match[4] or 0), micros))
    except ValueError:
        return None


# A partition's value as the key's type; None if it is spelled otherwise (the catalog does not check values).
_PARSERS: dict[KeyKind, Callable[[str], Literal | None]] = {
    KeyKind.INTEGER: parse_integer,
    KeyKind.DATE: parse_date,
    KeyKind.TIMESTAMP: parse_timestamp,
}

# Spellings that every engine reads as a value of the type, and as one that fits it.
_SURE = {
    "tinyint": re.compile(r"[+-]?[0-9]{1,2}"),
    "smallint": re.compile(r"[+-]?[0-9]{1,4}"),
    "int": re.compile(r"[+-]?[0-9]{1,9}"),
    "bigint": re.compile(r"[+-]?[0-9]{1,18}"),
    "float": re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?"),
    "double": re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?"),
    "boolean": re.compile(r"true|false"),
}


def _is_surely_of(kind: str, value: str) -> bool:
    if kind in _SURE:
        return bool(_SURE[kind].fullmatch(value))
    parse = _PARSERS.get(KeyKind(kind)) if kind in {KeyKind.DATE, KeyKind.TIMESTAMP} else None
    return parse is not None and parse(value) is not None
