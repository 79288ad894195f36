"""Dates and times of ORC files in the two calendars: the values in files, and the values that engines show. Pure.

Rule: files are in the hybrid calendar, Julian before 1582-10-15, unless their footer says proleptic, as Hive and Spark
write and read them. A date keeps its name (year, month, day) from one calendar to the other, not its number of days.
Ten days have no name in the hybrid calendar, 1582-10-05 to 14, and no ORC reader can tell the last second before 1970
from the first after it if there is a fraction of a millisecond or more: such values cannot be stored.
"""

from collections.abc import Callable, Iterator
from datetime import date
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Change: TypeAlias = Callable[[pa.Array], pa.Array]

DAY = 86_400_000_000
"""The length of a day in microseconds."""

UNSTORABLE = (
    "files of Hive's have no days between 1582-10-04 and 1582-10-15, and no ORC reader can tell a fraction of the last "
    "second before 1970 from one of the first second after it"
)
"""The reason why ``unstorable`` values cannot be stored."""

_EPOCH = date(1970, 1, 1).toordinal()
_GREGORIAN = date(1582, 10, 15).toordinal() - _EPOCH
_FIRST_UNNAMED = date(1582, 10, 5).toordinal() - _EPOCH
_UNTELLABLE = (-999_000, -1)
"""Microseconds: between whole seconds, the fraction being a millisecond or more."""


def _switches() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the proleptic days from which the hybrid calendar differs, ascending, with the differences in days."""
    leap_years = [year for year in range(100, 1600, 100) if year % 400]
    first = [date(1, 1, 1).toordinal() - _EPOCH]
    starts = first + [date(year, 3, 1).toordinal() - _EPOCH for year in leap_years]
    return np.array(starts, np.int64), np.arange(-2, len(leap_years) - 1, dtype=np.int64)


_STARTS, _DIFFERENCES = _switches()
_HYBRID_STARTS = _STARTS + _DIFFERENCES


def hybrid(values: pa.Array) -> pa.Array:
    """Convert values with dates and times, at any depth, to the hybrid calendar of files."""
    return mapped(values, values.type, _to_hybrid)


def proleptic(values: pa.Array) -> pa.Array:
    """Convert values of a hybrid file to the proleptic calendar, with times in microseconds."""
    return mapped(values, values.type, _to_proleptic)


def unstorable(values: pa.Array) -> pa.Array:
    """Return a mask of the dates and times that no ORC file of Hive's can hold."""
    if pa.types.is_date(values.type):
        day = values.cast(pa.int32())
        return pc.and_(pc.greater_equal(day, _FIRST_UNNAMED), pc.less(day, _GREGORIAN))
    time, (low, high) = values.cast(pa.int64()), _UNTELLABLE
    is_unnamed = pc.and_(pc.greater_equal(time, _FIRST_UNNAMED * DAY), pc.less(time, _GREGORIAN * DAY))
    return pc.or_(is_unnamed, pc.and_(pc.greater_equal(time, low), pc.less_equal(time, high)))


def has_times(kind: pa.DataType) -> bool:
    """Return True if values of the type contain dates or times."""
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return True
    return any(has_times(kind.field(place).type) for place in range(kind.num_fields))


def has_julian(values: pa.Array) -> bool:
    """Return True if one of an array's dates or times is from before the Gregorian calendar."""
    is_date = pa.types.is_date(values.type)
    lowest = pc.min(values.view(pa.int32() if is_date else pa.int64())).as_py()
    return lowest is not None and lowest < _GREGORIAN * (1 if is_date else DAY)


def mapped(values: pa.Array, kind: pa.DataType, change: Change) -> pa.Array:
    """Return the values with ``change`` applied to dates and times in ``kind``, at any depth."""
    if not has_times(kind):
        return values
    if pa.types.is_struct(kind):
        children = [mapped(child, field.type, change) for child, field in zip(values.flatten(), kind, strict=True)]
        fields = [field.with_type(child.type) for child, field in zip(children, kind, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=values.is_null())
    if pa.types.is_map(kind):
        entries = [mapped(values.keys, kind.key_type, change), mapped(values.items, kind.item_type, change)]
        pairs = pa.StructArray.from_arrays(entries, names=["key", "value"])
        return with_items(values, pa.map_(entries[0].type, entries[1].type), pairs)
    if pa.types.is_list(kind):
        items = mapped(values.values, kind.value_type, change)
        return with_items(values, pa.list_(kind.value_field.with_type(items.type)), items)
    return change(values)


def leaves(values: pa.Array, number: int = 0) -> Iterator[tuple[int, pa.Array]]:
    """Yield the arrays of dates and times as an ORC file has them, without NULLs, with their columns' numbers.

    ``number``: that of the column itself, below which its children are counted.
    """
    kind = values.type
    if pa.types.is_struct(kind):
        number += 1
        for child in values.flatten():
            yield from leaves(child, number)
            number += columns(child.type)
    elif pa.types.is_map(kind):
        pairs = pa.StructArray.from_arrays([values.keys, values.items], names=["key", "value"])
        entries = with_items(values, pa.list_(pairs.type), pairs).flatten()
        yield from leaves(entries, number)  # A map's columns are numbered as those of a struct.
    elif pa.types.is_list(kind):
        yield from leaves(values.flatten(), number + 1)
    elif has_times(kind):
        yield number, values.drop_null()


def columns(kind: pa.DataType) -> int:
    """Count the columns that a type takes in an ORC file."""
    if pa.types.is_map(kind):
        return 1 + columns(kind.key_type) + columns(kind.item_type)
    return 1 + sum(columns(kind.field(place).type) for place in range(kind.num_fields))


def in_microseconds(values: pa.Array) -> pa.Array:
    """Round times down to microseconds, as Spark shows them."""
    if values.type == pa.timestamp("us"):
        return values
    if values.type.unit != "ns":
        return values.cast(pa.timestamp("us"))
    whole = np.floor_divide(_filled(values, pa.int64()), 1000)
    return _like(values, whole).view(pa.timestamp("us"))


def _to_hybrid(values: pa.Array) -> pa.Array:
    return _shifted(values, _STARTS, _DIFFERENCES)


def _to_proleptic(values: pa.Array) -> pa.Array:
    values = values if pa.types.is_date(values.type) else in_microseconds(values)
    return _shifted(values, _HYBRID_STARTS, -_DIFFERENCES)


def _shifted(values: pa.Array, starts: NDArray[np.int64], differences: NDArray[np.int64]) -> pa.Array:
    """Add days to each value from before the Gregorian calendar: from ``starts[i]`` on, ``differences[i]`` days."""
    if not has_julian(values):
        return values
    is_date = pa.types.is_date(values.type)
    numbers = _filled(values, pa.int32() if is_date else pa.int64()).astype(np.int64)
    days = numbers if is_date else np.floor_divide(numbers, DAY)
    shift = differences[np.maximum(np.searchsorted(starts, days, side="right") - 1, 0)]
    shift[days >= _GREGORIAN] = 0
    changed = numbers + shift * (1 if is_date else DAY)
    return _like(values, changed.astype(np.int32) if is_date else changed).view(values.type)


def _filled(values: pa.Array, kind: pa.DataType) -> NDArray[np.int64]:
    return values.view(kind).fill_null(0).to_numpy(zero_copy_only=False)


def _like(values: pa.Array, numbers: NDArray[np.generic]) -> pa.Array:
    """Return numbers as an array with the NULLs of another."""
    return pa.array(numbers, mask=values.is_null().to_numpy(zero_copy_only=False))


def with_items(values: pa.Array, kind: pa.DataType, items: pa.Array) -> pa.Array:
    """Return the lists or maps with new items. ``items``: those of the array of which ``values`` is a slice."""
    return pa.Array.from_buffers(kind, len(values), values.buffers()[:2], values.null_count, values.offset, [items])
