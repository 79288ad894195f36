import pytest

from metastore.catalog.rules import locations
from metastore.errors import MetaError


@pytest.mark.parametrize(("location", "root", "stored"), [
    ("/a/b", "file:/wh", "file:/a/b"), ("/a//b/", "file:/wh", "file:/a/b"), ("file:///a", "s3a://x/wh", "file:/a"),
    ("file:/a/", "file:/wh", "file:/a"), ("/a", "hdfs://nn:8020/wh", "hdfs://nn:8020/a"), ("/", "file:/wh", "file:/"),
    ("s3a://bucket//k/", "file:/wh", "s3a://bucket/k"), ("s3a://bucket", "file:/wh", "s3a://bucket/"),
    ("/p=a%2Fb c", "/wh", "file:/p=a%2Fb c"), ("/a:b", "file:/wh", "file:/a:b"), ("/x", "file:///wh", "file:/x")])
def test_qualified(location, root, stored):
    assert locations.qualified(location, root) == stored
    assert locations.qualified(stored, root) == stored


@pytest.mark.parametrize("location", ["relative", "", "file:relative", "s3a:"])
def test_refused(location):
    with pytest.raises(MetaError, match="not a location"):
        locations.qualified(location, "file:/wh")


@pytest.mark.parametrize(("location", "directory", "below"), [
    ("file:/a/b", "file:/a", True), ("file:/a", "file:/a", True), ("file:/ab", "file:/a", False),
    ("file:/a", "file:/a/b", False), ("file:/x", "file:/", True)])
def test_below(location, directory, below):
    assert locations.is_below(location, directory) is below


def test_what_a_location_lies_in():
    assert locations.around("s3a://b/wh/t") == ["s3a://b/wh/t", "s3a://b/wh", "s3a://b", "s3a:/", "s3a:"]
    for place in locations.around("s3a://b/wh/t")[:3]:
        assert locations.is_below("s3a://b/wh/t", place)


def test_what_is_below_a_hidden_name_is_seen_from_no_further_up():
    assert locations.seen_from("file:/wh/t/k=1") == ["file:/wh/t/k=1", "file:/wh/t", "file:/wh", "file:"]
    assert locations.seen_from("file:/wh/t/.stage/tasks") == ["file:/wh/t/.stage/tasks", "file:/wh/t/.stage"]
    assert locations.seen_from("file:/wh/_tmp") == ["file:/wh/_tmp"]


def test_child():
    assert [locations.child(root, "t") for root in ("file:/a", "file:/")] == ["file:/a/t", "file:/t"]


@pytest.mark.parametrize(("location", "stored"), [
    ("/wh/../etc", "file:/etc"), ("file:/wh/./a/../b/..", "file:/wh"), ("s3a://b/a/../..x", "s3a://b/..x"), ("/..a", "file:/..a"),
    ("file:///a/..", "file:/")])
def test_one_spelling_without_dots(location, stored):
    assert locations.qualified(location, "file:/wh") == stored


def test_nothing_is_above_a_file_system():
    with pytest.raises(MetaError, match="leads above the root"):
        locations.qualified("s3a://b/a/../../c", "file:/wh")


@pytest.mark.parametrize(("places", "around"), [
    ("file:/w/t", "file:/w/t"), ("file:/w/t file:/w/t/x", "file:/w/t"), ("file:/w/t/x file:/w/t-1/x file:/w/t", "file:/w"),
    ("file:/w/t/a file:/w/t/b/c file:/w/t/a", "file:/w/t"), ("s3://b/x s3://b/y", "s3://b"), ("s3://b/x s3://c/x", "s3:/"),
    ("file:/w s3://b/w", ""), ("file:/w file:/", "file:")])
def test_what_places_have_in_common(places, around):
    assert locations.common(places.split()) == around


def test_places_that_overlap_with_others():
    places = ["file:/w/t", "file:/w/t/x", "file:/w/t-1", "file:/w/t-1/a/b", "file:/w/t0", "s3://b/w", "s3://c", "file:/"]
    for place in places:
        for other in places:
            meet = locations.is_below(place, other) or locations.is_below(other, place)
            assert locations.overlapping([place, "hdfs://n/x"], [other]) == (place if meet else None)
    assert locations.overlapping(places, []) is None
    assert locations.overlapping(places, ["s3://c", "s3://b/w/x"]) == "s3://b/w"
    many = [f"file:/w/t/n={n}" for n in range(20_000)]  # compared with one another they would take a minute
    assert locations.overlapping(many, [f"{place}-/x" for place in many] + ["file:/w/t/n=7/x"]) == "file:/w/t/n=7"


def test_places_that_lie_inside_no_other():
    places = ["file:/w/t", "file:/w/t/x", "file:/w/t-1", "file:/w/t-1/a/b", "file:/w/t0", "file:/w/u/v", "s3://b/w",
              "s3://b/w/x", "s3://c"]
    outer = locations.outermost(places)
    assert outer == sorted(place for place in places
                           if not any(locations.is_below(place, other) for other in places if other != place))
    assert locations.outermost([*places, "file:/"]) == ["file:/", "s3://b/w", "s3://c"]
    assert locations.outermost([]) == []
    many = [f"file:/w/t/n={n}" for n in range(20_000)]  # compared with one another they would take a minute
    assert locations.outermost(many) == sorted(many)
