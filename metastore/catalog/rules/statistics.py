"""Column statistics: joining those of several partitions, their validity, and the parameter that marks all as accurate.

Statistics are the JSON form of Thrift's ColumnStatisticsData: one member, named after the kind. Those of a
transactional table have an origin. A reader that sees its write id may take them for an estimate; they are exact for a
reader that sees the same write ids as they describe, which only lists of write ids can tell.
Source: CAT-S1 to CAT-S4.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from metastore.acid.snapshots import NO_OPEN, ValidWriteIdList
from metastore.catalog.model import ColumnStatistics, Json, Parameters, StatisticsOrigin

ACCURATE = "COLUMN_STATS_ACCURATE"
_SUMS = ("numNulls", "numTrues", "numFalses")
_MAXIMA = ("maxColLen", "avgColLen", "numDVs")  # The least number of distinct values that all can have together.


def joined(descriptions: Sequence[Json]) -> Json:
    """Return the joined statistics; those from before a change of the column's kind do not count.

    Sketches are left out: an estimate of distinct values must not claim to be mergeable any further.
    """
    [kind] = descriptions[-1]
    others = (place for place in reversed(range(len(descriptions))) if kind not in descriptions[place])
    sides = [each[kind] for each in descriptions[next(others, -1) + 1 :]]
    if len(sides) == 1:
        return descriptions[-1]
    both: Json = {name: sum(side.get(name, 0) for side in sides) for name in _SUMS if _has(sides, name)}
    both |= {name: max(side.get(name, 0) for side in sides) for name in _MAXIMA if _has(sides, name)}
    for name, choose in (("lowValue", min), ("highValue", max)):
        if values := [side[name] for side in sides if name in side]:
            both[name] = choose(values, key=_comparable)
    return {kind: both}


class DescribedColumn(NamedTuple):
    """The statistics of one column in some partitions, by partition."""

    column: str
    type: str | None
    partitions: Sequence[str]
    descriptions: Sequence[Json]
    origins: Sequence[StatisticsOrigin] = ()

    def seen(self, seen: ValidWriteIdList) -> "DescribedColumn":
        """Return the column without the partitions whose statistics describe a state that the reader does not see."""
        kept = [place for place, origin in enumerate(self.origins) if is_estimate(origin, seen)]
        return self._replace(
            partitions=[self.partitions[place] for place in kept],
            descriptions=[self.descriptions[place] for place in kept],
            origins=[self.origins[place] for place in kept],
        )


def origin(write_id: int | None, seen: ValidWriteIdList | None) -> StatisticsOrigin:
    """Return the origin of statistics by a transaction.

    ``seen``: its list of write ids; ``write_id``: its own, if it writes.
    """
    if seen is None or seen.high_watermark == NO_OPEN:
        return StatisticsOrigin(write_id)
    if write_id is None:
        return StatisticsOrigin(seen.highest_valid, _is_settled(seen))
    own = seen.with_own(write_id)
    return StatisticsOrigin(write_id, own.highest_valid == write_id and _is_settled(own))


def merged_origin(
    new: StatisticsOrigin, stored: StatisticsOrigin | None, seen: ValidWriteIdList | None
) -> StatisticsOrigin:
    """Return the origin of statistics that were joined with the stored ones, by a transaction that sees ``seen``."""
    is_whole = seen is not None and (are_exact([stored], seen) if stored else seen.highest_valid == 0)
    return new._replace(is_whole=new.is_whole and is_whole)


def is_estimate(origin: StatisticsOrigin, seen: ValidWriteIdList) -> bool:
    """Return True if a reader may use statistics as an estimate: it sees their state, or that state is unknown."""
    return origin.write_id is None or seen.is_valid(origin.write_id)


def are_exact(origins: Iterable[StatisticsOrigin], seen: ValidWriteIdList) -> bool:
    """Return True if all of these statistics describe exactly what a reader sees."""
    here = origin(None, seen)
    return here.is_whole and all(each == here for each in origins)


def _is_settled(seen: ValidWriteIdList) -> bool:
    """Return True if no write id up to the last that is seen can still be committed."""
    return next(iter(seen.open), NO_OPEN) > seen.highest_valid


def aggregated(described: Iterable[DescribedColumn], columns: Sequence[str]) -> tuple[list[ColumnStatistics], int]:
    """Return a result for each column, and the number of partitions that have all of the columns."""
    by_column = {each.column: each for each in described if each.partitions}
    results = []
    for each in (by_column[column] for column in columns if column in by_column):
        data = joined([_nothing_like(each.descriptions[0]), *each.descriptions])
        results.append(ColumnStatistics(each.column, each.type, data))
    having = [set(by_column[column].partitions) if column in by_column else set() for column in columns]
    return results, len(set.intersection(*having)) if having else 0


def marked_accurate(parameters: Parameters, columns: Iterable[str]) -> Parameters:
    """Return the parameters, changed to say that these columns' statistics hold."""
    state = _state(parameters)
    state["COLUMN_STATS"] = dict(sorted({**state.get("COLUMN_STATS", {}), **dict.fromkeys(columns, "true")}.items()))
    return {**parameters, ACCURATE: _text(state)}


def marked_inaccurate(parameters: Parameters, columns: Iterable[str]) -> Parameters:
    """Return the parameters, changed to say no longer that these columns' statistics hold."""
    if ACCURATE not in parameters:
        return parameters
    state = _state(parameters)
    gone = set(columns)
    left = {column: value for column, value in state.pop("COLUMN_STATS", {}).items() if column not in gone}
    state |= {"COLUMN_STATS": left} if left else {}
    rest = {key: value for key, value in parameters.items() if key != ACCURATE}
    return {**rest, ACCURATE: _text(state)} if state else rest


def marked_basic(parameters: Parameters, *, accurate: bool) -> Parameters:
    """Return the parameters, changed to say whether the numbers of files, bytes and rows hold."""
    state = {name: value for name, value in _state(parameters).items() if name != "BASIC_STATS"}
    state |= {"BASIC_STATS": "true"} if accurate else {}
    rest = {key: value for key, value in parameters.items() if key != ACCURATE}
    return {**rest, ACCURATE: _text(state)} if state else rest


def _state(parameters: Parameters) -> dict[str, Any]:
    """Return the parameter's JSON; its oldest form was the word TRUE, for the basic statistics alone."""
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


def _has(sides: Iterable[Json], name: str) -> bool:
    return any(name in side for side in sides)


def _nothing_like(data: Json) -> Json:
    [kind] = data
    return {kind: {}}


def _comparable(value: Any) -> Any:
    """Return a low or high value in a form that orders: dates and timestamps hold one number, decimals two."""
    if not isinstance(value, dict):
        return value
    if "unscaled" in value:
        return int.from_bytes(base64.b64decode(value["unscaled"]), "big", signed=True) * Fraction(10) ** -value["scale"]
    return next(iter(value.values()))
