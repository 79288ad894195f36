"""A partition condition as SQL that keeps at least what the rule keeps.

Rule: the SQL keeps every partition for which ``rules.partition_predicate.keeps`` is not False, and no other if
`is_exact` (a property test compares them). Where PostgreSQL cannot say it safely (a date that may not exist, a LIKE in
two dialects) the SQL keeps more, and the rule decides on the rows that are read.
"""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from metastore.catalog.rules.like import like_prefix
from metastore.catalog.rules.partition_predicate import (
    TEXTS,
    And,
    Comparison,
    KeyKind,
    Op,
    Or,
    Predicate,
    Readings,
    holds_for_text,
)
from metastore.partition_names import make_name

Sql = tuple[str, list[Any]]

_INTEGER = "^[+-]?[0-9]{1,40}$"
_PADDED_DATE = "^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])$"
_ANYTHING: Sql = ("true", [])
_EXACT = TEXTS | {KeyKind.INTEGER}
# Text nested deeper than this is not worth a plan; PostgreSQL's own limit is far above.
_MOST_TERMS = 2000


def prefilter(predicate: Predicate, default: str) -> Sql:
    """Return a condition on ``p."values"`` and its parameters."""
    if _terms(predicate) > _MOST_TERMS:
        return _ANYTHING
    return _sql(predicate, default)


def is_exact(predicate: Predicate) -> bool:
    """Return True if the SQL keeps no more than what the rule keeps or leaves undecided."""
    return _says_all(predicate) and _terms(predicate) <= _MOST_TERMS


def is_decided(predicate: Predicate, default: str) -> bool:
    """Return True if the rule decides every value: only texts are compared, and "" as the default partition."""
    match predicate:
        case Comparison(_, kind, _, _):
            return kind in TEXTS and holds_for_text(predicate, "") is holds_for_text(predicate, default) is not None
        case And(parts) | Or(parts):
            return all(is_decided(part, default) for part in parts)
        case _:
            return False


def leading(keys: Sequence[str], values: Sequence[str]) -> Sql:
    """Return a condition on ``p.name`` for partitions whose first key values are ``values``, none of them empty.

    The condition is a range of names.
    """
    if not values:
        return _ANYTHING
    prefix = make_name(keys[: len(values)], values)
    if len(values) == len(keys):
        return "p.name = %s", [prefix]
    # "0" follows "/": every name that goes on after the prefix is between them.
    return "p.name >= %s AND p.name < %s", [f"{prefix}/", f"{prefix}0"]


def _terms(predicate: Predicate) -> int:
    return sum(_terms(part) for part in predicate.parts) if isinstance(predicate, And | Or | Readings) else 1


def _says_all(predicate: Predicate) -> bool:
    match predicate:
        case Comparison(_, kind, op, _):
            return kind in _EXACT and op is not Op.LIKE
        case And(parts) | Or(parts) | Readings(parts):
            return all(map(_says_all, parts))
        case _:  # The predicate is a NullTest or Unknown.
            return False


def _sql(predicate: Predicate, default: str) -> Sql:
    match predicate:
        case Comparison():
            return _comparison(predicate, default)
        case And(parts):
            return _joined(" AND ", parts, default) if parts else _ANYTHING
        case Or(parts) | Readings(parts):
            return _joined(" OR ", parts, default) if parts else ("false", [])
        case _:  # The predicate is a NullTest or Unknown.
            return _ANYTHING


def _joined(word: str, parts: tuple[Predicate, ...], default: str) -> Sql:
    pieces = [_sql(part, default) for part in parts]
    return f"({word.join(text for text, _ in pieces)})", [value for _, values in pieces for value in values]


def _comparison(comparison: Comparison, default: str) -> Sql:
    return _BY_KIND[comparison.kind](comparison, f'p."values"[{comparison.column + 1}]', default)


def _text(comparison: Comparison, value: str, default: str) -> Sql:
    shown = f"coalesce(nullif({value}, ''), %s)"
    if comparison.kind is KeyKind.CHAR:
        shown = f"rtrim({shown}, ' ')"
    if comparison.op is Op.LIKE:
        condition, constant = f"starts_with({shown}, %s)", like_prefix(str(comparison.constant))
    else:
        condition, constant = f'{shown} COLLATE "C" {comparison.op} %s', str(comparison.constant)
    if holds_for_text(comparison, "") is not False:
        condition = f"({condition} OR {value} = '')"
    return condition, [default, constant]


def _integer(comparison: Comparison, value: str, default: str) -> Sql:
    condition = (
        f"CASE WHEN {value} IN ('', %s) THEN false WHEN {value} ~ '{_INTEGER}' "
        f"THEN {value}::numeric {comparison.op} %s ELSE true END"
    )
    return condition, [default, comparison.constant]


def _date(comparison: Comparison, value: str, default: str) -> Sql:
    """Return a condition on dates.

    Dates in full length and in every month compare as text; the rule decides the others.
    """
    constant = comparison.constant
    text = constant.isoformat() if isinstance(constant, date) else str(constant)
    condition = (
        f"CASE WHEN {value} ~ '{_PADDED_DATE}' THEN {value} COLLATE \"C\" {comparison.op} %s "
        f"ELSE {value} NOT IN ('', %s) END"
    )
    return condition, [text, default]


def _timestamp(_comparison: Comparison, value: str, default: str) -> Sql:
    return f"{value} NOT IN ('', %s)", [default]


_BY_KIND: dict[KeyKind, Callable[[Comparison, str, str], Sql]] = {
    KeyKind.TEXT: _text,
    KeyKind.CHAR: _text,
    KeyKind.INTEGER: _integer,
    KeyKind.DATE: _date,
    KeyKind.TIMESTAMP: _timestamp,
}
