"""numFiles, totalSize and COLUMN_STATS_ACCURATE, as Hive's own servers 4.0.1 and 2.3.10 answered to the same calls.

The two agree but for numFilesErasureCoded, which 4.0.1 has. Every directory has 11 bytes in three files that count.
"""

import pytest

from metastore.catalog.rules import basic_statistics as rules
from metastore.config import CatalogSettings
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.integration.catalog.conftest import ORC

FOUND = {"numFiles": "3", "totalSize": "11", "numFilesErasureCoded": "0"}
ACCURATE = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
TASK, USER, KEEP = {"STATS_GENERATED": "TASK"}, {"STATS_GENERATED": "USER"}, {"DO_NOT_UPDATE_STATS": "true"}


def context(properties):
    return T.EnvironmentContext(properties=dict(properties))


def fill(directory):
    (directory / "sub").mkdir(parents=True, exist_ok=True)
    for name, text in (("f", "abc"), ("g", "abc"), ("sub/h", "abcde"), (".hidden", "x"), ("_temporary", "x")):
        (directory / name).write_text(text)
    return f"file:{directory}"


def shown(struct):
    return {key: value for key, value in struct.parameters.items() if key not in {"transient_lastDdlTime", "EXTERNAL"}}


@pytest.fixture
def place(d):
    return lambda name: fill(d.warehouse / "at" / name)


@pytest.mark.parametrize(("properties", "parameters", "expected"), [
    ({}, {}, FOUND), (TASK, {}, {**FOUND, **ACCURATE}), (USER, {}, FOUND), (KEEP, {}, {}), ({}, KEEP, {}),
    ({}, {"numFiles": "77", "numRows": "5"}, {**FOUND, "numRows": "5"}),
    ({}, {**FOUND, "numFiles": "77"}, {**FOUND, "numFiles": "77"}),
    ({}, {"transactional": "true", "transactional_properties": "insert_only"}, None), ({}, {"table_type": "ICEBERG"}, None)])
def test_a_table_is_created_where_files_are(d, place, properties, parameters, expected):
    """Iceberg's and transactional tables have snapshots of their own: ours counts no files there; Hive counts all."""
    kind = {} if "transactional" in parameters else {"tableType": "EXTERNAL_TABLE"}
    parameters = parameters if "transactional" in parameters else {**parameters, "EXTERNAL": "TRUE"}
    d.create_table_with_environment_context(
        d.table(sd={"location": place("t")}, parameters=parameters, **kind), context(properties))
    found = shown(d.get_table("d", "t"))
    if expected is None:
        assert not FOUND.keys() & found.keys()
    else:
        assert found == expected


def test_nothing_is_counted_of_what_was_just_made_of_views_and_of_partitioned_tables(d, place):
    d.create("made")
    d.create("asked", sd={"location": f"file:{d.warehouse}/new"})
    d.create("keys", keys="p:string", sd={"location": place("keys")})
    d.create("view", tableType="VIRTUAL_VIEW", viewOriginalText="q", sd={"location": place("view")})
    for name in ("made", "asked", "keys", "view"):
        assert shown(d.get_table("d", name)) == {}


@pytest.mark.parametrize(("properties", "change", "expected"), [
    ({}, {}, FOUND), ({}, {"a": "1"}, {**FOUND, "a": "1"}), (TASK, {"numRows": "5"}, {**FOUND, **ACCURATE, "numRows": "5"}),
    (USER, {}, FOUND), (KEEP, {}, {}), ({}, KEEP, {}), ({}, {"numFiles": "77", "totalSize": "99"}, FOUND),
    ({}, ACCURATE, FOUND), (TASK, {"COLUMN_STATS_ACCURATE": '{"COLUMN_STATS":{"id":"true"}}'},
                            {**FOUND, "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true"}}'})])
def test_an_unpartitioned_table_is_altered(d, properties, change, expected):
    table = d.create("t")
    fill(d.path(table.sd.location))
    table.parameters |= change
    d.alter_table_with_environment_context("d", "t", table, context(properties))
    assert shown(d.get_table("d", "t")) == expected
    table.tableName = "u"
    table.parameters.pop("DO_NOT_UPDATE_STATS", None)
    d.alter_table("d", "t", table)
    assert shown(d.get_table("d", "u")).items() >= FOUND.items()


def test_a_transactional_table_whose_client_leaves_that_out_is_not_counted(d):
    d.create("t", parameters={"transactional": "true", "transactional_properties": "insert_only"}, sd=ORC)
    table = d.get_table("d", "t")
    table.parameters = {"new": "1"}
    d.alter_table("d", "t", table)
    assert not FOUND.keys() & shown(d.get_table("d", "t")).keys()


def test_a_partitioned_table_is_altered(d):
    table = d.create("t", keys="p:string")
    fill(d.path(table.sd.location))
    d.alter_table("d", "t", table)
    assert shown(d.get_table("d", "t")) == {}


def partition(d, location=None, value="1", **parameters):
    return T.Partition([value], "d", "t", sd=d.sd(location=location), parameters=parameters)


@pytest.mark.parametrize(("properties", "parameters", "expected"), [
    ({}, {}, FOUND), (TASK, {}, {**FOUND, **ACCURATE}), ({}, {"numFiles": "9"}, FOUND),
    ({}, {**FOUND, "numFiles": "9"}, {**FOUND, "numFiles": "9"})])
def test_a_partition_is_added_where_files_are(d, place, properties, parameters, expected):
    """TASK: 4.0.1; 2.3.10 does not mark a new partition."""
    d.create("t", keys="p:string")
    d.add_partition_with_environment_context(partition(d, place("p"), **parameters), context(properties))
    d.add_partitions_req(T.AddPartitionsRequest(
        "d", "t", [partition(d, place("q"), "2", **parameters)], True, environmentContext=context(properties)))
    assert [shown(one) for one in d.get_partitions("d", "t", -1)] == [expected] * 2


def test_partitions_are_appended_and_added_by_name_of_their_directory(d):
    table = d.create("t", keys="p:string")
    for value in ("1", "2"):
        fill(d.path(table.sd.location) / f"p={value}")
    d.append_partition("d", "t", ["1"])
    d.append_partition_by_name_with_environment_context("d", "t", "p=2", context(TASK))
    d.append_partition("d", "t", ["3"])
    assert [shown(one) for one in d.get_partitions("d", "t", -1)] == [FOUND, {**FOUND, **ACCURATE}, {}]


def test_partitions_are_altered(d, place):
    """Check that statistics which a partition has are kept, whatever lies there meanwhile, and missing ones counted."""
    d.create("t", keys="p:string")
    new = d.add_partition(partition(d, place("p")))
    (d.warehouse / "at" / "p" / "more").write_text("1234567")
    for properties, change, expected in (
            ({}, {}, FOUND), (TASK, {}, {**FOUND, **ACCURATE}), (USER, {}, FOUND), ({}, ACCURATE, {**FOUND, **ACCURATE}),
            ({}, {"numFiles": "7"}, {**FOUND, "numFiles": "7"}), (KEEP, {"numFiles": None}, {"totalSize": "11", "numFilesErasureCoded": "0"}),
            ({}, {"numFiles": None}, {**FOUND, "numFiles": "4", "totalSize": "18"})):
        new.parameters = {key: value for key, value in {**FOUND, **change}.items() if value is not None}
        d.alter_partition_with_environment_context("d", "t", new, context(properties))
        assert shown(d.get_partition("d", "t", ["1"])) == expected, (properties, change)


def test_a_place_outside_of_the_roots_or_out_of_reach_is_not_counted(d, place, monkeypatch):
    def refuse(*_):
        raise OSError("gone")

    monkeypatch.setattr("metastore.files.Files.listing", refuse)
    assert shown(d.create("t", sd={"location": place("t")})) == {}


class TestOff:
    """hive.stats.autogather=false."""

    @pytest.fixture
    def catalog_settings(self, tmp_path):
        return CatalogSettings(warehouse=str(tmp_path / "wh"), gather_statistics=False)

    def test_nothing_is_counted(self, d, place):
        table = d.create("t", sd={"location": place("t")})
        d.alter_table("d", "t", table)
        assert shown(d.get_table("d", "t")) == {}


def test_hidden_files_do_not_count():
    assert rules.counted([("a", 1), ("_b/c", 2), ("d/.e", 4), ("d/f", 8)]) == {
        "numFiles": "2", "totalSize": "9", "numFilesErasureCoded": "0"}
