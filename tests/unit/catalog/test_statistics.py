import base64

import pytest

from metastore.catalog.rules.statistics import Described, aggregated, joined, marked_accurate, marked_inaccurate


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
    assert joined([first, second]) == both


def test_what_precedes_another_kind_does_not_count():
    kinds = [{"longStats": {"numNulls": 1}}, {"stringStats": {"numNulls": 2}},
             {"longStats": {"numNulls": 4}}, {"longStats": {"numNulls": 8}}]
    assert joined(kinds) == {"longStats": {"numNulls": 12}}
    assert joined(kinds[:3]) == kinds[2]


def test_many_are_joined_as_one_after_the_other():
    many = [{"longStats": {"lowValue": n * 7 % 11, "numNulls": n, "numDVs": n * 5 % 13, "bitVectors": "x"}} for n in range(20)]
    one_by_one = many[0]
    for each in many[1:]:
        one_by_one = joined([one_by_one, each])
    assert joined(many) == one_by_one == {"longStats": {"lowValue": 0, "numNulls": 190, "numDVs": 12}}


def test_aggregated():
    one = Described("a", "int", ["p=1", "p=2"], [{"longStats": {"lowValue": 1, "bitVectors": "x"}}, {"longStats": {"lowValue": 0}}])
    single = Described("b", "int", ["p=2"], [{"longStats": {"lowValue": 1, "bitVectors": "x"}}])
    columns, complete = aggregated([one, single], ["b", "a"])
    assert [(column.column, column.partition, column.data) for column in columns] == [
        ("b", "", {"longStats": {"lowValue": 1}}), ("a", "", {"longStats": {"lowValue": 0}})]
    assert complete == 1
    assert aggregated([one], ["a", "b"])[1] == 0
    assert aggregated([], ["a"]) == ([], 0)
    assert aggregated([], []) == ([], 0)


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
