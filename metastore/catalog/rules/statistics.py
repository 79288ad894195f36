"""Column statistics: joining those of several partitions, and the parameter that says which are accurate.

Statistics are the JSON form of Thrift's ColumnStatisticsData: one member, named after the kind.
Source: CAT-S1 to CAT-S3.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from metastore.catalog.model import ColumnStatistics, Json, Parameters

ACCURATE = "COLUMN_STATS_ACCURATE"
_SUMS = ("numNulls", "numTrues", "numFalses")
_MAXIMA = ("maxColLen", "avgColLen", "numDVs")  # distinct values: the least that all can have together


def joined(first: Json, second: Json) -> Json:
    """Statistics of what both describe; the later statistics where the kinds differ.

    Sketches are left out: an estimate of distinct values must not claim to be mergeable any further.
    """
    [(kind, left)], [(other, right)] = first.items(), second.items()
    if kind != other:
        return second
    both: Json = {name: left.get(name, 0) + right.get(name, 0) for name in _SUMS if name in left or name in right}
    both |= {name: max(left.get(name, 0), right.get(name, 0)) for name in _MAXIMA if name in left or name in right}
    for name, choose in (("lowValue", min), ("highValue", max)):
        values = [side[name] for side in (left, right) if name in side]
        if values:
            both[name] = choose(values, key=_comparable)
    return {kind: both}


def aggregated(statistics: Iterable[ColumnStatistics], columns: Sequence[str]) -> tuple[list[ColumnStatistics], int]:
    """(a result for each column, how many partitions have all of the columns)."""
    by_column: dict[str, ColumnStatistics] = {}
    columns_of: dict[str, set[str]] = {}
    for statistic in statistics:
        columns_of.setdefault(statistic.partition, set()).add(statistic.column)
        before = by_column.get(statistic.column)
        data = joined(before.data, statistic.data) if before else joined(statistic.data, _nothing_like(statistic.data))
        by_column[statistic.column] = replace(statistic, partition="", data=data)
    complete = sum(1 for has in columns_of.values() if has.issuperset(columns))
    return [by_column[column] for column in columns if column in by_column], complete


def marked_accurate(parameters: Parameters, columns: Iterable[str]) -> Parameters:
    """The parameters saying that these columns' statistics hold."""
    state = _state(parameters)
    state["COLUMN_STATS"] = dict(sorted({**state.get("COLUMN_STATS", {}), **dict.fromkeys(columns, "true")}.items()))
    return {**parameters, ACCURATE: _text(state)}


def marked_inaccurate(parameters: Parameters, columns: Iterable[str]) -> Parameters:
    """The parameters no longer saying so."""
    if ACCURATE not in parameters:
        return parameters
    state = _state(parameters)
    gone = set(columns)
    left = {column: value for column, value in state.pop("COLUMN_STATS", {}).items() if column not in gone}
    state |= {"COLUMN_STATS": left} if left else {}
    rest = {key: value for key, value in parameters.items() if key != ACCURATE}
    return {**rest, ACCURATE: _text(state)} if state else rest


def _state(parameters: Parameters) -> dict[str, Any]:
    """The parameter's JSON; its oldest form was the word TRUE, for the basic statistics alone."""
    text = parameters.get(ACCURATE, "")
    if text.upper() == "TRUE":
        return {"BASIC_STATS": "true"}
    try:
        state = json.loads(text)
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


def _text(state: dict[str, Any]) -> str:
    return json.dumps(dict(sorted(state.items())), separators=(",", ":"))


def _nothing_like(data: Json) -> Json:
    [kind] = data
    return {kind: {}}


def _comparable(value: Any) -> Any:
    """A low or high value as something that orders: dates and timestamps hold one number, decimals two."""
    if not isinstance(value, dict):
        return value
    if "unscaled" in value:
        return int.from_bytes(base64.b64decode(value["unscaled"]), "big", signed=True) * Fraction(10) ** -value["scale"]
    return next(iter(value.values()))
