"""The hybrid calendar of ORC files: every day from year 1 on, and times of every kind of column."""

from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest

from metastore.acid_tables.calendars import hybrid, in_microseconds, proleptic, unstorable
from tests.support.acid.time_vectors import time_vectors

FIRST_GREGORIAN = date(1582, 10, 15)


def julian_days(day: date) -> int:
    """Days since 1970 of a name in the Julian calendar, by the usual formula for Julian day numbers."""
    years, months = day.year + 4800 - (14 - day.month) // 12, day.month + 12 * ((14 - day.month) // 12) - 3
    return day.day + (153 * months + 2) // 5 + 365 * years + years // 4 - 32083 - 2440588


def test_every_day_keeps_its_name() -> None:
    days = [date(1, 1, 1) + timedelta(number) for number in range((date(1700, 1, 1) - date(1, 1, 1)).days)]
    days = [day for day in days if not date(1582, 10, 5) <= day < FIRST_GREGORIAN]
    names = pa.array(days)
    expected = [julian_days(day) if day < FIRST_GREGORIAN else (day - date(1970, 1, 1)).days for day in days]
    assert hybrid(names).cast(pa.int32()).to_pylist() == expected
    assert proleptic(hybrid(names)).equals(names)


def test_a_leap_day_that_only_the_julian_calendar_has_is_the_day_after() -> None:
    in_file = pa.array([julian_days(date(300, 2, 28)) + 1], pa.int32()).cast(pa.date32())
    assert proleptic(in_file).to_pylist() == [date(300, 3, 1)]


@pytest.mark.parametrize("kind", [
    pa.timestamp("us"), pa.list_(pa.timestamp("us")), pa.map_(pa.string(), pa.timestamp("us")),
    pa.struct([("a", pa.date32()), ("b", pa.list_(pa.struct([("c", pa.timestamp("us"))])))])])
def test_nested_times_and_nulls_and_slices(kind: pa.DataType) -> None:
    def value(at: datetime) -> object:
        if pa.types.is_struct(kind):
            return {"a": at.date(), "b": [None, {"c": at}]}
        if pa.types.is_map(kind):
            return [("k", at), ("n", None)]
        return [at, None] if pa.types.is_list(kind) else at

    times = [one.time for one in time_vectors() if not one.refusal]
    values = pa.array([each for at in times for each in (value(at), None)], kind)
    for part in (values, values.slice(5, 7)):
        assert proleptic(hybrid(part)).to_pylist() == part.to_pylist()
    assert not hybrid(values).equals(values)


def test_what_no_file_holds() -> None:
    vectors = time_vectors()
    assert unstorable(pa.array([one.time for one in vectors])).to_pylist() == [bool(one.refusal) for one in vectors]
    assert unstorable(pa.array([one.time.date() for one in vectors])).to_pylist() == [one.is_day_refused for one in vectors]


def test_nanoseconds_are_cut_to_the_microsecond_before() -> None:
    values = pa.array([-1, -1000, 1999, None], pa.int64()).cast(pa.timestamp("ns"))
    assert in_microseconds(values).cast(pa.int64()).to_pylist() == [-1, -1, 1, None]
