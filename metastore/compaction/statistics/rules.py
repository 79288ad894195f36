"""Column statistics of what a major compaction has written, from what its own tasks have tallied.

ANALYZE makes them by the same rule, of what an engine has counted. Rule: statistics are Hive's for a column of the
type, in the form in which the catalog keeps them. Distinct values are estimated, as Hive does: sketches of tasks are
joined register by register (HyperLogLog, 2.3 % off on average).
Source: Hive's StatsUpdater and compute_stats; CAT-S1.
"""

import base64
import math
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, NamedTuple

Json = dict[str, Any]

SKETCH_BITS = 11
"""The sketch has 2 to the power of this many registers: ``BITS`` in ColumnTallies.java."""
_REGISTERS = 1 << SKETCH_BITS
MOST_SKETCHES = 20_000
"""Sketches that tasks may send to the driver: 55 MB. A compaction with more leaves statistics as they are."""

WHOLE = ("tinyint", "smallint", "int", "integer", "bigint")
FRACTIONS = ("float", "double", "double precision")
TEXTS = ("string", "char", "varchar")


class Tallied(NamedTuple):
    """What the rows that a task has written say of a column. The bounds and lengths: as in `Whole`."""

    column: str
    rows: int
    nulls: int
    trues: int
    length: int
    longest: int
    low: str | None
    high: str | None
    sketch: str
    """Of its values, in base64."""


class Whole(NamedTuple):
    """What all rows say of a column.

    ``low`` and ``high``: whole numbers as text, but for fractions: decimals have no point, dates are days and
    timestamps seconds since 1970. ``length``: of all values together, in characters or bytes.
    """

    rows: int
    nulls: int = 0
    trues: int = 0
    length: int = 0
    longest: int = 0
    low: str | None = None
    high: str | None = None
    distinct: int = 0


def described(hive_type: str) -> bool:
    """Return True if there are statistics of columns of this type."""
    return base_type(hive_type) in {*WHOLE, *FRACTIONS, *TEXTS, "boolean", "binary", "date", "timestamp", "decimal"}


def whole(tallied: Iterable[Tallied]) -> dict[str, Whole]:
    """Return what several tasks say together, of each column."""
    by_column: dict[str, list[Tallied]] = {}
    for tally in tallied:
        by_column.setdefault(tally.column, []).append(tally)
    joined = {column: reduce(_joined, tallies) for column, tallies in by_column.items()}
    return {column: Whole(*tally[1:-1], distinct(base64.b64decode(tally.sketch))) for column, tally in joined.items()}


def statistics(types: Mapping[str, str], seen: Mapping[str, Whole], rows: int) -> dict[str, Json]:
    """Return the statistics of columns with these types (of Hive's) of a table with so many rows.

    A column of which not all rows were seen, or some twice, gets none.
    """
    known = {column: seen.get(column, Whole(0)) for column in types}
    return {column: _statistics(types[column], values) for column, values in known.items() if values.rows == rows}


def distinct(sketch: bytes) -> int:
    """Return how many different values a sketch has seen, about."""
    estimate = 0.7213 / (1 + 1.079 / _REGISTERS) * _REGISTERS**2 / sum(2.0**-rank for rank in sketch)
    empty = sketch.count(0)
    return round(_REGISTERS * math.log(_REGISTERS / empty) if empty and estimate <= 2.5 * _REGISTERS else estimate)


def _joined(one: Tallied, other: Tallied) -> Tallied:
    return Tallied(
        other.column,
        one.rows + other.rows,
        one.nulls + other.nulls,
        one.trues + other.trues,
        one.length + other.length,
        max(one.longest, other.longest),
        _bound(min, one.low, other.low),
        _bound(max, one.high, other.high),
        base64.b64encode(bytes(map(max, base64.b64decode(one.sketch), base64.b64decode(other.sketch)))).decode(),
    )


def _bound(choose: Callable[..., str], one: str | None, other: str | None) -> str | None:
    """Return the lower or higher of two numbers."""
    values = [value for value in (one, other) if value is not None]
    return choose(values, key=_number) if values else None


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _statistics(hive_type: str, tally: Whole) -> Json:
    base, values = base_type(hive_type), tally.rows - tally.nulls
    nulls: Json = {"numNulls": tally.nulls}
    if base == "boolean":
        return {"booleanStats": {"numTrues": tally.trues, "numFalses": values - tally.trues, **nulls}}
    different = {"numDVs": min(values, tally.distinct)}
    lengths = {"maxColLen": tally.longest, "avgColLen": tally.length / tally.rows if tally.rows else 0.0}
    if base == "binary":
        return {"binaryStats": {**lengths, **nulls}}
    if base in TEXTS:
        return {"stringStats": {**lengths, **nulls, **different}}
    kind, shown = _kind(hive_type)
    bounds = (("lowValue", tally.low), ("highValue", tally.high))
    return {kind: {**{name: shown(text) for name, text in bounds if text is not None}, **nulls, **different}}


def _kind(hive_type: str) -> tuple[str, Callable[[str], Any]]:
    """Return the kind of statistics with a range, and the form of a bound."""
    base = base_type(hive_type)
    if base in FRACTIONS:
        return "doubleStats", float
    if base == "decimal":
        scale = int(hive_type.partition(",")[2].rstrip(") ") or 0)
        return "decimalStats", lambda text: {"unscaled": _bytes(int(text)), "scale": scale}
    if base == "date":
        return "dateStats", lambda text: {"daysSinceEpoch": int(text)}
    if base == "timestamp":
        return "timestampStats", lambda text: {"secondsSinceEpoch": int(text)}
    return "longStats", int


def _bytes(unscaled: int) -> str:
    """Two's complement, the highest byte first."""
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return base64.b64encode(unscaled.to_bytes(length, "big", signed=True)).decode()


def base_type(hive_type: str) -> str:
    """Without precision or length."""
    return hive_type.strip().lower().partition("(")[0].strip()
