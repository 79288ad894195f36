import base64

import pytest

from metastore.acid.snapshots import NO_OPEN, ValidWriteIdList
from metastore.catalog.model import StatisticsOrigin
from metastore.catalog.rules.statistics import (
    DescribedColumn,
    aggregated,
    are_exact,
    is_estimate,
    joined,
    marked_accurate,
    marked_inaccurate,
    merged_origin,
    origin,
)


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
    one = DescribedColumn("a", "int", ["p=1", "p=2"], [{"longStats": {"lowValue": 1, "bitVectors": "x"}}, {"longStats": {"lowValue": 0}}])
    single = DescribedColumn("b", "int", ["p=2"], [{"longStats": {"lowValue": 1, "bitVectors": "x"}}])
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


def seen(ids):
    """Parse a write-id list from a short form: ``5:4`` is up to 5 with 4 open, ``5::4`` with 4 aborted."""
    mark, _, others = ids.partition(":")
    return ValidWriteIdList.parse(f"d.t:{mark}:{NO_OPEN}:{others or ':'}")


@pytest.mark.parametrize(("write_id", "ids", "came"), [
    (None, None, StatisticsOrigin()), (3, None, StatisticsOrigin(3)), (None, str(NO_OPEN), StatisticsOrigin()), (3, str(NO_OPEN), StatisticsOrigin(3)),
    (None, "5", StatisticsOrigin(5, is_whole=True)), (None, "0", StatisticsOrigin(0, is_whole=True)), (None, "5:4", StatisticsOrigin(5)), (None, "5::4", StatisticsOrigin(5, is_whole=True)),
    (None, "5:5", StatisticsOrigin(4, is_whole=True)), (None, "5:3,4,5", StatisticsOrigin(2, is_whole=True)),
    (6, "5", StatisticsOrigin(6, is_whole=True)), (6, "6:6", StatisticsOrigin(6, is_whole=True)), (6, "5:5", StatisticsOrigin(6)), (7, "5", StatisticsOrigin(7)), (4, "5:4", StatisticsOrigin(4))])
def test_the_state_that_statistics_describe(write_id, ids, came):
    assert origin(write_id, ids and seen(ids)) == came


@pytest.mark.parametrize(("of", "ids", "may_guess", "knows"), [
    (StatisticsOrigin(), "5", True, False), (StatisticsOrigin(5, is_whole=True), "5", True, True), (StatisticsOrigin(5), "5", True, False),
    (StatisticsOrigin(5, is_whole=True), "6", True, False), (StatisticsOrigin(5, is_whole=True), "7:6,7", True, True), (StatisticsOrigin(5, is_whole=True), "6::6", True, True),
    (StatisticsOrigin(5, is_whole=True), "4", False, False), (StatisticsOrigin(5, is_whole=True), "5::5", False, False), (StatisticsOrigin(5, is_whole=True), "5:3", True, False),
    (StatisticsOrigin(5, is_whole=True), "5::3", True, True), (StatisticsOrigin(0, is_whole=True), "0", True, True),
    (StatisticsOrigin(5, is_whole=True), str(NO_OPEN), True, False)])
def test_who_may_use_them(of, ids, may_guess, knows):
    assert (is_estimate(of, seen(ids)), are_exact([of], seen(ids))) == (may_guess, knows)


@pytest.mark.parametrize(("new", "stored", "ids", "is_whole"), [
    (StatisticsOrigin(6, is_whole=True), StatisticsOrigin(5, is_whole=True), "5", True), (StatisticsOrigin(6, is_whole=True), StatisticsOrigin(4, is_whole=True), "5", False),
    (StatisticsOrigin(6), StatisticsOrigin(5, is_whole=True), "5", False), (StatisticsOrigin(1, is_whole=True), None, "1:1", True), (StatisticsOrigin(6, is_whole=True), None, "5", False),
    (StatisticsOrigin(6, is_whole=True), StatisticsOrigin(5, is_whole=True), None, False)])
def test_what_is_joined_with_them_describes_the_whole_only_if_both_do(new, stored, ids, is_whole):
    assert merged_origin(new, stored, ids and seen(ids)) == StatisticsOrigin(new.write_id, is_whole)


def test_partitions_whose_statistics_are_of_a_later_state_are_left_out():
    described = DescribedColumn("a", "int", ["p=1", "p=2"], [{"longStats": {"numNulls": 1}}, {"longStats": {"numNulls": 2}}], [StatisticsOrigin(5), StatisticsOrigin(7)])
    assert described.seen(seen("6")) == DescribedColumn("a", "int", ["p=1"], [{"longStats": {"numNulls": 1}}], [StatisticsOrigin(5)])
    assert aggregated([described.seen(seen("4"))], ["a"]) == ([], 0)
