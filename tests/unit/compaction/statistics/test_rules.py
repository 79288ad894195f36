"""Column statistics out of tallies, as the catalog keeps them (CAT-S1)."""

import base64
import random
from hashlib import sha256

import pytest

from metastore.compaction.statistics.rules import Tallied, Whole, described, distinct, statistics, whole


def sketched(values):
    """As ColumnTallies.java does it, with another hash."""
    registers = bytearray(2048)
    for value in values:
        number = int.from_bytes(sha256(repr(value).encode()).digest()[:8], "big")
        rest = (number << 11 | 1 << 10) & (1 << 64) - 1
        register = number >> 53
        registers[register] = max(registers[register], 64 - rest.bit_length() + 1)
    return base64.b64encode(registers).decode()


def tally(column, *values, nulls=0):
    low, high = (str(choose(values)) if values else None for choose in (min, max))
    return Tallied(column, len(values) + nulls, nulls, 0, 3 * len(values), 3, low, high, sketched(values))


def test_tasks_add_up():
    said = whole([tally("a", 1, 2, 3), tally("b", nulls=3), tally("a", 3, -9, nulls=1), tally("b", 2.5), tally("a")])

    assert said == {"a": Whole(5 + 1, 1, 0, 15, 3, "-9", "3", 4), "b": Whole(4, 3, 0, 3, 3, "2.5", "2.5", 1)}


@pytest.mark.parametrize("number", [0, 1, 100, 3000, 5000, 6000, 50_000])
def test_the_estimate_is_close(number):
    values = random.Random(number).sample(range(10**9), number)

    assert abs(distinct(base64.b64decode(sketched(values))) - number) <= 0.1 * number


VALUES = Whole(10, 2, 5, 24, 7, "-5", "130", 6)


@pytest.mark.parametrize(("hive_type", "expected"), [
    ("boolean", {"booleanStats": {"numTrues": 5, "numFalses": 3, "numNulls": 2}}),
    ("INT", {"longStats": {"lowValue": -5, "highValue": 130, "numNulls": 2, "numDVs": 6}}),
    ("double", {"doubleStats": {"lowValue": -5.0, "highValue": 130.0, "numNulls": 2, "numDVs": 6}}),
    ("varchar(10)", {"stringStats": {"maxColLen": 7, "avgColLen": 2.4, "numNulls": 2, "numDVs": 6}}),
    ("binary", {"binaryStats": {"maxColLen": 7, "avgColLen": 2.4, "numNulls": 2}}),
    ("date", {"dateStats": {"lowValue": {"daysSinceEpoch": -5}, "highValue": {"daysSinceEpoch": 130}, "numNulls": 2, "numDVs": 6}}),
    ("timestamp", {"timestampStats": {"lowValue": {"secondsSinceEpoch": -5}, "highValue": {"secondsSinceEpoch": 130},
                                      "numNulls": 2, "numDVs": 6}}),
    ("decimal(5, 2)", {"decimalStats": {"lowValue": {"unscaled": "+w==", "scale": 2},
                                        "highValue": {"unscaled": "AII=", "scale": 2}, "numNulls": 2, "numDVs": 6}}),
    ("decimal", {"decimalStats": {"lowValue": {"unscaled": "+w==", "scale": 0},
                                  "highValue": {"unscaled": "AII=", "scale": 0}, "numNulls": 2, "numDVs": 6}})])
def test_the_form_of_each_type(hive_type, expected):
    assert statistics({"c": hive_type}, {"c": VALUES}, 10) == {"c": expected}


@pytest.mark.parametrize(("hive_type", "expected"), [
    ("int", {"longStats": {"numNulls": 0, "numDVs": 0}}),
    ("string", {"stringStats": {"maxColLen": 0, "avgColLen": 0.0, "numNulls": 0, "numDVs": 0}})])
def test_a_table_without_rows(hive_type, expected):
    assert statistics({"c": hive_type}, {}, 0) == {"c": expected}


def test_more_values_than_rows_are_an_estimate():
    [said] = statistics({"c": "int"}, {"c": VALUES._replace(distinct=9)}, 10).values()
    assert said["longStats"]["numDVs"] == 8


@pytest.mark.parametrize("rows", [9, 11])
def test_rows_that_were_seen_twice_or_not_at_all(rows):
    assert statistics({"c": "int", "d": "int"}, {"c": VALUES}, rows) == {}


def test_which_types_have_statistics():
    assert [kind for kind in ("int", "char(3)", "DECIMAL(3,1)", "array<int>", "struct<a:int>", "timestamp with local time zone")
            if described(kind)] == ["int", "char(3)", "DECIMAL(3,1)"]
