"""Decisions about tables that need neither database nor directory; the cases of catalog.md run over Thrift."""

from dataclasses import replace

import pytest

from metastore.catalog.model import Database, Table
from metastore.catalog.rules import tables, transactional
from metastore.catalog.rules.descriptors import digest, normalised, split_location, with_location
from metastore.errors import InvalidOperationError, MetaError
from metastore.ids import DatabaseName, TableName

ORC = {"inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
       "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"}
DB = Database(DatabaseName("hive", "d"), "file:/wh/d.db")


def table(name="t", db="d", catalog="hive", location=None, sd=None, **fields):
    descriptor = normalised({"cols": [{"name": "id", "type": "int"}], **(sd or {})})
    return Table(TableName(catalog, db, name), with_location(descriptor, location), **fields)


def test_equal_descriptors_have_equal_digests():
    one = normalised({"location": "file:/a", "cols": [{"name": "A", "type": "int"}], "serdeInfo": {"parameters": {"x": "1", "y": "2"}}})
    two = normalised({"serdeInfo": {"parameters": {"y": "2", "x": "1"}}, "cols": [{"type": "int", "name": "a"}], "location": "file:/b"})
    assert digest(split_location(one)[1]) == digest(split_location(two)[1])
    assert split_location(one)[0] == "file:/a"
    other = normalised({"cols": [{"name": "a", "type": "bigint"}]})
    assert digest(other) != digest(split_location(one)[1])


def test_only_the_default_catalog_knows_transactional_tables():
    asked = {"transactional": "true"}
    with pytest.raises(MetaError, match="ACID compliant"):
        tables.new_table(table(parameters=asked), {}, 1)
    assert tables.new_table(table(catalog="c", parameters=asked), {}, 1).parameters["transactional"] == "true"
    old = table(catalog="c")
    assert tables.altered_table(old, replace(old, parameters=asked), {}, 1).parameters["transactional"] == "true"


@pytest.mark.parametrize(("fields", "becomes"), [
    ({"sd": ORC}, "true"), ({"sd": ORC, "parameters": {"transactional": "false"}}, None), ({}, None),
    ({"sd": ORC, "parameters": {"EXTERNAL": "TRUE"}}, None), ({"sd": ORC, "type": "VIRTUAL_VIEW"}, None),
    ({"sd": {**ORC, "sortCols": [{"col": "ID", "order": 1}]}}, None)])
def test_create_as_acid(fields, becomes):
    made = tables.new_table(table(**fields), {}, 1, create_as_acid=True)
    assert made.parameters.get("transactional") == becomes


@pytest.mark.parametrize(("change", "target"), [
    ({}, None), ({"name": TableName("hive", "d", "new")}, "file:/wh/d.db/new"),
    ({"name": TableName("hive", "d", "new"), "location": "file:/else"}, None),
    ({"name": TableName("hive", "d", "new"), "location": None}, "file:/wh/d.db/new")])
def test_where_a_renamed_directory_goes(change, target):
    old = table(location="file:/wh/d.db/t")
    location = change.pop("location", old.location)
    altered = replace(tables.with_location(old, location), **change)
    assert tables.new_location(old, altered, DB, DB) == target


@pytest.mark.parametrize("old", [
    table(location=None), table(location="file:/custom"), table(location="file:/wh/d.db/t", type="EXTERNAL_TABLE"),
    table(location="file:/wh/d.db/t", parameters={"table_type": "iceberg"})], ids=["none", "custom", "external", "iceberg"])
def test_directories_that_stay(old):
    assert tables.new_location(old, replace(old, name=TableName("hive", "d", "new")), DB, DB) is None


def test_a_translated_table_follows_its_name():
    old = table(location="file:/wh/d.db/t", type="EXTERNAL_TABLE", parameters={"TRANSLATED_TO_EXTERNAL": "TRUE"})
    assert tables.new_location(old, replace(old, name=TableName("hive", "d", "n")), DB, DB) == "file:/wh/d.db/n"


def test_managed_location():
    database = replace(DB, managed_location="file:/managed")
    assert tables.default_location(table(), database) == "file:/managed/t"
    assert tables.default_location(table(type="EXTERNAL_TABLE"), database) == "file:/wh/d.db/t"
    assert tables.default_location(table(type="VIRTUAL_VIEW"), database) is None


def test_check_of_types_may_be_off():
    old = table()
    new = replace(old, sd={**old.sd, "cols": [{"name": "id", "type": "boolean"}]})
    with pytest.raises(InvalidOperationError, match="respective positions : id"):
        tables.altered_table(old, new, {}, 1)
    assert tables.altered_table(old, new, {}, 1, check_types=False).sd["cols"] == new.sd["cols"]
    iceberg = replace(new, parameters={"table_type": "iceberg"})
    assert tables.altered_table(old, iceberg, {}, 1).sd["cols"] == new.sd["cols"]


@pytest.mark.parametrize(("before", "after", "stored"), [
    ({"transactional": "true", "transactional_properties": "insert_only"}, {"transactional": "true", "transactional_properties": "default"}, "default"),
    ({"transactional": "true"}, {"transactional": "true"}, None), ({"transactional": "true"}, {}, None)])
def test_transactional_properties_on_alter(before, after, stored):
    old = table(sd=ORC, parameters=before)
    assert transactional.validated_altered(old, replace(old, parameters=after)).parameters.get("transactional_properties") == stored


@pytest.mark.parametrize(("paths", "foreign"), [
    (["000000_0", "p=1/000001_0_copy_2", "_SUCCESS", ".hidden", "_tmp/data.txt", "p=1/.x/y"], None),
    (["000000_0", "data.txt"], "data.txt"), (["p=1/part-0.orc"], "p=1/part-0.orc"), ([], None)])
def test_foreign_file(paths, foreign):
    assert transactional.foreign_file(paths) == foreign


def test_kinds_of_tables():
    full, insert_only = {"transactional": "TRUE"}, {"transactional": "true", "transactional_properties": "INSERT_ONLY"}
    assert [transactional.is_full_acid(one) for one in (full, insert_only, {})] == [True, False, False]
    assert [tables.data_is_deletable(one) for one in (
        table(), table(type="VIRTUAL_VIEW"), table(type="EXTERNAL_TABLE"),
        table(type="EXTERNAL_TABLE", parameters={"external.table.purge": "TRUE"}))] == [True, False, False, True]
