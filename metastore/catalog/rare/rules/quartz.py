"""Schedules in Quartz's words, as Hive's scheduled queries have them: when one is due next.

Rule: croniter finds the date. Here an expression is checked and said in croniter's words. Its fields are second,
minute, hour, day of month, month, day of week with SUN = 1, and perhaps a year; one of the two days is ``?``.
"""

import re
from calendar import isleap
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from metastore.errors import InvalidInputError


class _Field(NamedTuple):
    """The least and greatest value of a field, and names that stand for its values."""

    least: int
    greatest: int
    names: tuple[str, ...] = ()

    def value(self, text: str) -> int:
        """Return the value that a name or number stands for. Raises: ValueError."""
        value = self.least + self.names.index(text) if text in self.names else int(text)
        if not self.least <= value <= self.greatest:
            raise ValueError(f"{text} is not among {self.least} to {self.greatest}")
        return value

    def values(self, text: str) -> set[int]:
        """Return the values of a list of ranges. Raises: ValueError."""
        return {value for part in text.split(",") for value in self._range(part)}

    def _range(self, part: str) -> Iterator[int]:
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(part)
        first = self.value(match["first"] or str(self.least))
        alone = match["first"] and not match["last"] and not match["step"]
        last = first if alone else self.value(match["last"] or str(self.greatest))
        around = self.greatest - self.least + 1 if last < first else 0  # FRI-MON goes on after SAT.
        for value in range(first, last + around + 1, self.step(match["step"])):
            yield self.least + (value - self.least) % (self.greatest - self.least + 1)

    def step(self, text: str | None) -> int:
        """Return the width of a step. Raises: ValueError."""
        step = int(text or 1)
        if not 0 < step <= self.greatest:
            raise ValueError(f"/{text} is not a step")
        return step


_LONGEST = 256
_RANGE = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?", re.ASCII)
_TIME = (_Field(0, 59), _Field(0, 59), _Field(0, 23))
_DAY = _Field(1, 31)
_MONTH = _Field(1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"))
_WEEKDAY = _Field(1, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
_YEAR = _Field(1970, 2099)
_FROM_LAST_DAY = re.compile(r"L-(\d+)", re.ASCII)
_NEAR_DAY = re.compile(r"(\d+)W", re.ASCII)
_LAST_OR_NTH = re.compile(r"(\w+?)(L|#[1-5])", re.ASCII)
_LONG_MONTHS, _FEBRUARY = {1, 3, 5, 7, 8, 10, 12}, {2}
_LEAP_YEARS = {year for year in range(_YEAR.least, _YEAR.greatest + 1) if isleap(year)}


def next_execution(schedule: str, after: datetime) -> int | None:
    """Return the first due time after an instant, in seconds since the epoch; None if there is none.

    Times are those of the zone of ``after``, or of this process if that has none. Raises: InvalidInputError.
    """
    from croniter import CroniterBadDateError, croniter

    if len(schedule) > _LONGEST:
        raise InvalidInputError(f"A schedule has at most {_LONGEST} characters, this one has {len(schedule)}")
    try:
        due = [croniter(form, after, second_at_beginning=True) for form in _forms(schedule.upper().split())]
    except (ValueError, KeyError) as error:
        raise InvalidInputError(
            f"Invalid QUARTZ schedule expression: '{schedule}': {error}. Write second, minute, hour, day of month, "
            "month, day of week from 1 = SUN, and a year or none; one of the two days is ?"
        ) from error
    seconds = []
    for each in due:
        with suppress(CroniterBadDateError):
            seconds.append(int(each.get_next(datetime).timestamp()))
    return min(seconds, default=None)


def _forms(fields: list[str]) -> Iterator[str]:
    """Return croniter expressions; the given expression is due whenever one of them is. Raises: ValueError."""
    *time, day, month, weekday, year = fields if len(fields) == 7 else [*fields, "*"]  # noqa: PLR2004 - with a year
    if len(time) != len(_TIME):
        raise ValueError(f"there are {len(fields)} fields")
    if (day == "?") == (weekday == "?"):
        raise ValueError("of day of month and day of week one is ?, and the other is not")
    begin = " ".join(_list(field.values(text)) for field, text in zip(_TIME, time, strict=True))
    weekdays = "*" if weekday == "?" else ",".join(map(_weekday, weekday.split(",")))
    all_months, all_years = _MONTH.values(month), _YEAR.values(year)
    for days, months, years in (days for part in day.split(",") for days in _days(part)):
        if months & all_months and years & all_years:
            yield f"{begin} {days} {_list(months & all_months)} {weekdays} {_list(years & all_years)}"


def _list(values: set[int]) -> str:
    return ",".join(map(str, sorted(values)))


def _days(text: str) -> Iterator[tuple[str, set[int], set[int]]]:
    """Yield days of the month in croniter's syntax, each with the months and years in which it holds."""
    months, years = _MONTH.values("*"), _YEAR.values("*")
    if before := _FROM_LAST_DAY.fullmatch(text):
        for length, of, within in (
            (31, _LONG_MONTHS, years),
            (30, months - _LONG_MONTHS - _FEBRUARY, years),
            (29, _FEBRUARY, _LEAP_YEARS),
            (28, _FEBRUARY, years - _LEAP_YEARS),
        ):
            if int(before[1]) < length:
                yield str(length - int(before[1])), of, within
    elif near := _NEAR_DAY.fullmatch("31W" if text == "LW" else text):
        yield f"{_DAY.value(near[1])}W", months, years  # croniter takes the last day where a month has no such day.
    else:
        yield "*" if text == "?" else "l" if text == "L" else _list(_DAY.values(text)), months, years


def _weekday(text: str) -> str:
    """Return a day of the week in croniter's numbering, where SUN is 0."""
    if match := _LAST_OR_NTH.fullmatch(text):
        day = _WEEKDAY.value(match[1]) - 1
        return f"L{day}" if match[2] == "L" else f"{day}{match[2]}"
    return _list({day - 1 for day in _WEEKDAY.values("SAT" if text == "L" else text)})
