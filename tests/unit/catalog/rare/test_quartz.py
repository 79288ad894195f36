"""When a schedule in Quartz's words is due next, as cron-utils 9.1.6 says, which Hive 4 asks."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from metastore.catalog.rare.rules.quartz import next_execution
from metastore.errors import InvalidInputError

VECTORS = [line.split("\t") for line in (Path(__file__).parent / "quartz.tsv").read_text().splitlines()]
"""Schedule, seconds, and the next due second, ``none`` or ``invalid``: random ones that cron-utils answered, in UTC."""


def due(schedule, after="2023-11-14T22:13:20"):
    found = next_execution(schedule, datetime.fromisoformat(after).replace(tzinfo=UTC))
    return None if found is None else datetime.fromtimestamp(found, UTC).isoformat()[:19]


def answer(schedule, after):
    try:
        found = next_execution(schedule, datetime.fromtimestamp(int(after), UTC))
    except InvalidInputError:
        return "invalid"
    return "none" if found is None else str(found)


def test_as_cron_utils_says():
    wrong = {schedule: (answer(schedule, after), expected) for schedule, after, expected in VECTORS if answer(schedule, after) != expected}
    assert wrong == {}
    assert len(VECTORS) > 100


@pytest.mark.parametrize(("schedule", "expected"), [
    ("0 */2 * * * ? *", "2023-11-14T22:14:00"), ("0 0 12 L-3 * ?", "2023-11-27T12:00:00"), ("0 0 12 l-3 feb ?", "2024-02-26T12:00:00"),
    ("0 0 12 L-28 2 ?", "2024-02-01T12:00:00"), ("0 0 12 L-28 2 ? 2025-2027", None), ("0 0 12 LW * ?", "2023-11-30T12:00:00"),
    ("0 0 12 LW 12 ?", "2023-12-29T12:00:00"), ("0 0 12 2W 12 ?", "2023-12-01T12:00:00"), ("0 0 0 1W,L * ?", "2023-11-30T00:00:00"),
    ("0 0 12 ? * 6L", "2023-11-24T12:00:00"), ("0 0 12 ? * FRI#2", "2023-12-08T12:00:00"), ("0 0 0 ? * L", "2023-11-18T00:00:00"),
    ("0 0 0 ? * FRI-MON", "2023-11-17T00:00:00"), ("0 0 22-2 ? * *", "2023-11-14T23:00:00"), ("0 0 0 1 1 ? 2020", None),
    ("0 0 0 30 2 ?", None), ("13 13 22 14 11 ? 2023", None)])
def test_days_that_have_words(schedule, expected):
    assert due(schedule) == expected


@pytest.mark.parametrize("schedule", [
    "", "foo", "* * * * *", "0 0 0 * * *", "0 0 0 ? * ?", "0 0 0 1 * MON", "60 0 0 * * ?", "0 0 24 * * ?", "0 0 0 0 * ?", "0 0 0 32 * ?",
    "0 0 0 ? * 8", "0 0 0 ? * 0", "0 0 0 ? * MON#6", "0 0 0 * 13 ?", "0 0 0 * * ? 1969", "0 0 0 * * ? 2100", "*/0 * * * * ?", "*/60 * * * * ?",
    "0 0 0 32W * ?", "0 0 0 L3 * ?", "0 0 0 ? * FOOL", "0 -1 * * * ?", "0 1- * * * ?", "0 1,,2 * * * ?", "@daily", "R R R * * ?", "0 0 H * * ?",
    "0 0 0 * * ? * *", "0 0 0 LL * ?", "٣ * * * * ?"])
def test_what_is_no_schedule_is_refused(schedule):
    with pytest.raises(InvalidInputError, match="Invalid QUARTZ schedule expression"):
        due(schedule)


def test_times_are_those_of_the_server_where_the_instant_has_no_zone(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        summer = next_execution("0 0 12 26 3 ?", datetime(2023, 3, 25, 13))
        assert datetime.fromtimestamp(summer, UTC).isoformat() == "2023-03-26T10:00:00+00:00"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_long_schedule_is_refused():
    with pytest.raises(InvalidInputError, match="at most 256 characters, this one has 300"):
        due("1" * 300)
