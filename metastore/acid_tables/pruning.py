"""Conditions on partition keys, and the partitions that they exclude from look-up, listing and reading. Pure.

Rule: a partition is left out only if no row of it can meet the conditions, whatever Spark's settings are. A value in
another spelling than that of its type (`` 7``, ``2024-1-5``) may meet any condition.
"""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

from metastore.acid.types import HiveType

Constant: TypeAlias = str | int | date | Decimal
Values: TypeAlias = Sequence[str | None]

_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SIMPLE = re.compile(r"[A-Za-z0-9_-]+")
"""Texts that nothing escapes in partition names, and that metastores with patterns take literally."""
BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_TEXT = ("string", "varchar")


@dataclass(frozen=True)
class KeyComparison:
    """``values[key] holds constant``; the constant is of the key's type."""

    key: int
    type: HiveType
    holds: Callable[[Any, Any], bool]
    constant: Constant

    def may_hold(self, values: Values) -> bool:
        """Return True if the condition can hold in a partition with these values."""
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
        """Return True if the condition can hold in a partition with these values.

        It holds for NULL, and for text that the type cannot read.
        """
        text = values[self.key]
        return text is None or typed(text, self.type) is None


@dataclass(frozen=True)
class AndRestriction:
    """Conditions joined by AND."""

    parts: tuple["Restriction", ...]

    def may_hold(self, values: Values) -> bool:
        """Return True if the condition can hold in a partition with these values."""
        return all(part.may_hold(values) for part in self.parts)


@dataclass(frozen=True)
class OrRestriction:
    """Conditions joined by OR."""

    parts: tuple["Restriction", ...]

    def may_hold(self, values: Values) -> bool:
        """Return True if the condition can hold in a partition with these values."""
        return any(part.may_hold(values) for part in self.parts)


Restriction: TypeAlias = KeyComparison | Missing | AndRestriction | OrRestriction


def exact_texts(where: Restriction, count: int) -> list[str]:
    """Return the text that each partition key must equal, for a look-up in the metastore.

    The list has ``count`` texts; an empty one means that any value is possible.
    """
    texts = [""] * count
    for part in where.parts if isinstance(where, AndRestriction) else (where,):
        if isinstance(part, KeyComparison) and part.holds is operator.eq and is_text(part.type):
            texts[part.key] = str(part.constant) if _SIMPLE.fullmatch(str(part.constant)) else ""
    return texts


def is_text(kind: HiveType) -> bool:
    """Return True if a value of the type is its text. A CHAR has several texts: blanks at the end do not count."""
    return kind.kind in _TEXT


def typed(text: str, kind: HiveType) -> Constant | None:
    """Parse a text as a value of its type; None for an unusual spelling, or a value that does not fit."""
    if is_text(kind):
        return text
    if kind.kind == "char":
        return text.rstrip(" ")
    if kind.kind == "date":
        return _day(text)
    if _NUMBER.fullmatch(text) and kind.kind in BITS and "." not in text:
        bound = 1 << BITS[kind.kind]
        return number if -bound <= (number := int(text)) < bound else None
    if _NUMBER.fullmatch(text) and kind.kind == "decimal":
        precision, scale = kind.precision_and_scale
        whole, _, fraction = text.lstrip("-").partition(".")
        fits = len(fraction) <= scale and len(whole.lstrip("0")) <= precision - scale
        return Decimal(text) if fits else None
    return None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def all_of(parts: Sequence[Restriction]) -> Restriction | None:
    """Return the conditions joined by AND; None for no condition."""
    return AndRestriction(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None
