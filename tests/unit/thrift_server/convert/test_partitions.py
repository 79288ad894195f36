"""Partitions of a request: descriptors that are alike are converted once."""

import pytest

from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.partitions import drafts_of


def sd(location, **fields):
    return ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("a", "int", "")], location=location,
                                    serdeInfo=ttypes.SerDeInfo("t", "lib", {"k": "v"}), **fields)


def draft_sds(*sds):
    drafts = drafts_of([ttypes.Partition([str(n)], "db", "t", sd=one) for n, one in enumerate(sds)])
    return [draft.sd for draft in drafts], [draft.location for draft in drafts]


def test_alike_but_for_the_location():
    (first, second), locations = draft_sds(sd("/1"), sd("/2"))

    assert first is second
    assert "location" not in first
    assert locations == ["/1", "/2"]


def test_the_request_keeps_its_locations():
    mine = sd("/1")
    draft_sds(mine)

    assert mine.location == "/1"


@pytest.mark.parametrize("other", [
    sd("/2", parameters={"a": "b"}), sd("/2", numBuckets=4), sd("/2", compressed=True),
    sd("/2", skewedInfo=ttypes.SkewedInfo(["a"], [["1"]], {("1",): "/x"})), sd("/2", sortCols=[ttypes.Order("a", 1)])])
def test_unlike(other):
    (first, second), _ = draft_sds(sd("/1"), other)

    assert first != second


def test_a_partition_without_a_descriptor_stands_between():
    (first, none, third), _ = draft_sds(sd("/1"), None, sd("/3"))

    assert none is None
    assert first == third
