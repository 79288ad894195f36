import base64

import pytest

from metastore.catalog.model import ColumnStatistics
from metastore.catalog.rules.statistics import aggregated, joined, marked_accurate, marked_inaccurate


def decimal(unscaled, scale):
    return {"unscaled": base64.b64encode(unscaled.to_bytes(4, "big", signed=True)).decode(), "scale": scale}


@pytest.mark.parametrize(("first", "second", "both"), [
    ({"longStats": {"lowValue": 1, "highValue": 5, "numNulls": 2, "numDVs": 3, "bitVectors": "x"}},
     {"longStats": {"lowValue": -1, "numNulls": 1, "numDVs": 9}},
     {"longStats": {"lowValue": -1, "highValue": 5, "numNulls": 3, "numDVs": 9}}),
    ({"booleanStats": {"numTrues": 1, "numFalses": 2, "numNulls": 3}}, {"booleanStats": {"numTrues": 4, "numFalses": 5, "numNulls": 6}},
     {"booleanStats": {"numTrues": 5, "numFalses": 7, "numNulls": 9}}),
    ({"stringStats": {"maxColLen": 3, "avgColLen": 2.5}}, {"stringStats": {"maxColLen": 2, "avgColLen": 3.5}},
     {"stringStats": {"maxColLen": 3, "avgColLen": 3.5}}),
    ({"dateStats": {"lowValue": {"daysSinceEpoch": 5}, "highValue": {"daysSinceEpoch": 6}}},
     {"dateStats": {"lowValue": {"daysSinceEpoch": -5}, "highValue": {"daysSinceEpoch": 1}}},
     {"dateStats": {"lowValue": {"daysSinceEpoch": -5}, "highValue": {"daysSinceEpoch": 6}}}),
    ({"decimalStats": {"lowValue": decimal(150, 2), "highValue": decimal(20, 1)}},
     {"decimalStats": {"lowValue": decimal(-1, 0), "highValue": decimal(199, 2)}},
     {"decimalStats": {"lowValue": decimal(-1, 0), "highValue": decimal(20, 1)}}),
    ({"longStats": {"numNulls": 1}}, {"stringStats": {"numNulls": 2}}, {"stringStats": {"numNulls": 2}})],
    ids=["long", "boolean", "string", "date", "decimal", "another kind"])
def test_joined(first, second, both):
    assert joined(first, second) == both


def test_aggregated():
    one = ColumnStatistics("a", "int", {"longStats": {"lowValue": 1, "bitVectors": "x"}}, "p=1")
    columns, complete = aggregated([one], ["a", "b"])
    assert [(column.column, column.partition, column.data) for column in columns] == [("a", "", {"longStats": {"lowValue": 1}})]
    assert complete == 0


@pytest.mark.parametrize(("before", "after"), [
    (None, '{"COLUMN_STATS":{"a":"true","b":"true"}}'), ("TRUE", '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}'),
    ("no json", '{"COLUMN_STATS":{"a":"true","b":"true"}}'), ("[]", '{"COLUMN_STATS":{"a":"true","b":"true"}}'),
    ('{"COLUMN_STATS":{"z":"true"}}', '{"COLUMN_STATS":{"a":"true","b":"true","z":"true"}}')])
def test_marked_accurate(before, after):
    parameters = {"x": "y"} if before is None else {"x": "y", "COLUMN_STATS_ACCURATE": before}
    assert marked_accurate(parameters, ["b", "a"]) == {"x": "y", "COLUMN_STATS_ACCURATE": after}


@pytest.mark.parametrize(("before", "after"), [
    (None, None), ('{"COLUMN_STATS":{"a":"true"}}', None), ("no json", None),
    ('{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}', '{"BASIC_STATS":"true"}'),
    ('{"COLUMN_STATS":{"a":"true","b":"true"}}', '{"COLUMN_STATS":{"b":"true"}}')])
def test_marked_inaccurate(before, after):
    parameters = {} if before is None else {"COLUMN_STATS_ACCURATE": before}
    assert marked_inaccurate(parameters, ["a"]).get("COLUMN_STATS_ACCURATE") == after
