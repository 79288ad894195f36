"""Definitions over the planner's calls, as the metastore has them afterwards."""

from pathlib import Path

import pytest

from metastore.client.constraints import enabled_constraints
from metastore.ids import table_name
from tests.integration.planner.conftest import WHO
from tests.integration.planner.test_calls import insert
from tests.support.acid.creating import create_database

COLUMNS = [{"name": "ID", "type": "int", "comment": "a number"}, {"name": "name", "type": "string"}]


@pytest.fixture(autouse=True)
def database_d(client):
    create_database(client)


def columns(call, name="t"):
    return [(one["name"], one["type"], one["comment"]) for one in call("table", db="d", table=name)["columns"]]


def test_a_table_is_created_as_it_is_described(client, call):
    wanted = {"db": "D", "table": "T", "columns": COLUMNS, "partition_keys": [{"name": "day", "type": "date"}], "properties": {"owner.team": "x"},
              "comment": "facts", "buckets": {"count": 2, "columns": ["ID"]}, "format": "orc", "user": "ann"}

    assert call("create", **wanted) == {"created": True}

    told = call("table", db="d", table="t")
    assert (told["kind"], told["format"], told["owner"], told["comment"]) == ("full_acid", "orc", "ann", "facts")
    assert columns(call) == [("id", "int", "a number"), ("name", "string", None)]
    assert told["buckets"] == {"count": 2, "columns": ["id"], "sort": [], "version": 2}
    assert told["properties"]["owner.team"] == "x"
    call("create", db="d", table="adds", columns=COLUMNS, format="parquet", properties={"transactional_properties": "insert_only"},
         buckets={"count": 2, "columns": ["id"], "sort": [["ID", "desc"]]})
    told = call("table", db="d", table="adds")
    assert (told["kind"], told["format"], told["buckets"]["sort"]) == ("insert_only", "parquet", [["id", "desc"]])
    call("create", db="d", table="lines", columns=COLUMNS, format="textfile", properties={"transactional_properties": "insert_only"},
         row_format={"serde": None, "properties": {"field.delim": ","}})
    told = call("table", db="d", table="lines")
    assert told["format"] == "serde"
    assert "\\u002c" in told["storage"]  # the delimiter
    assert call("create", **wanted, if_not_exists=True) == {"created": False}
    assert call.refused("create", **wanted)[:2] == (400, "AlreadyExistsError")


WRONG_TABLES = [
    ({"columns": []}, "CREATE TABLE hive.d.t declares no columns."),
    ({"columns": [{"name": "__acid_x", "type": "int"}]}, "hive.d.t has a column __acid_x"),
    ({"format": "csv"}, "Tables are STORED AS ORC, PARQUET"),
    ({"row_format": {"properties": {"field.delim": ","}}}, "ROW FORMAT DELIMITED says nothing about ORC"),
    ({"row_format": {"serde": "x.Y"}}, "ORC files are not read by x.Y"),
    ({"buckets": {"count": 1, "columns": ["id"], "sort": ["id"]}}, "buckets.sort is a list like"),
    ({"properties": {"x": 1}}, "properties must be an object of texts."),
    ({"columns": [{"name": "id"}]}, "columns[0].type is missing: it must be a text."),
]


def test_what_cannot_be_created_is_said(call):
    for changes, said in WRONG_TABLES:
        status, _, message = call.refused("create", **{"db": "d", "table": "t", "columns": COLUMNS, **changes})
        assert status == 400
        assert message.startswith((said, said.replace("hive.", "")))
    assert call("table", db="d", table="t") == {"kind": "absent"}


def test_changes_of_columns_and_properties_are_made_together_or_not_at_all(client, call):
    call("create", db="d", table="t", columns=COLUMNS)
    call("alter", db="d", table="t", changes=[
        {"op": "rename_column", "name": "name", "to": "title"}, {"op": "change_type", "name": "id", "type": "bigint"},
        {"op": "comment", "name": "title", "comment": "said aloud"}, {"op": "add_column", "name": "first", "type": "double", "after": ""},
        {"op": "add_column", "name": "last", "type": "string", "comment": "new"}, {"op": "move_column", "name": "id", "after": "title"},
        {"op": "set", "properties": {"a": "1", "b": "2"}}, {"op": "unset", "keys": ["a"]}], **WHO)

    changed = [("first", "double", None), ("title", "string", "said aloud"), ("id", "bigint", "a number"), ("last", "string", "new")]
    assert columns(call) == changed
    assert {"a", "b"} & call("table", db="d", table="t")["properties"].keys() == {"b"}
    insert(client, "t", {"first": 1.0, "title": "x", "id": 1, "last": "y"})

    for change, said in (({"op": "rename_column", "name": "title", "to": "name"}, "has files that call the column title"),
                         ({"op": "change_type", "name": "id", "type": "int"}, "int does not hold all of its values"),
                         ({"op": "drop_column", "name": "nothing"}, "There is no column nothing."),
                         ({"op": "paint"}, "changes[1].op must be one of set, unset")):
        status, _, message = call.refused("alter", db="d", table="t", changes=[{"op": "set", "properties": {"c": "3"}}, change])
        assert status == 400
        assert said in message
    call("alter", db="d", table="t", changes=[{"op": "drop_column", "name": "last"}])
    assert columns(call) == changed[:3]
    assert "c" not in call("table", db="d", table="t")["properties"]
    assert "still holds values of a column last" in call.refused(
        "alter", db="d", table="t", changes=[{"op": "add_column", "name": "last", "type": "string"}])[2]


def test_fields_are_added_at_the_end_of_their_structs(client, call):
    call("create", db="d", table="t", columns=[{"name": "id", "type": "int"}, {"name": "place", "type": "struct<city:string>", "comment": "where"},
                                               {"name": "tags", "type": "array<struct<a:int>>"}])
    call("alter", db="d", table="t", changes=[
        {"op": "add_column", "name": "place", "field": ["Street"], "type": "string", "comment": None, "after": None},
        {"op": "add_column", "name": "tags", "field": ["element", "b"], "type": "date"}], **WHO)

    assert columns(call) == [("id", "int", None), ("place", "struct<city:string,street:string>", "where"), ("tags", "array<struct<a:int,b:date>>", None)]
    for change, said in (({"op": "add_column", "type": "int", "after": ""}, "place.city is a field of the column place: fields are only added"),
                         ({"op": "add_column", "type": "int", "comment": "what"}, "UPDATE it, and DROP COLUMN place"),
                         ({"op": "add_column", "type": "int"}, "has a field city already"),
                         ({"op": "rename_column", "to": "town"}, "place.city is a field"), ({"op": "drop_column"}, "place.city is a field"),
                         ({"op": "comment", "comment": "x"}, "place.city is a field"),
                         ({"op": "change_type", "type": "int"}, "does not hold all of its values")):
        status, _, message = call.refused("alter", db="d", table="t", changes=[{"name": "place", "field": ["city"], **change}])
        assert status == 400
        assert said in message


def test_which_columns_a_statement_may_widen(call):
    call("create", db="d", table="t", columns=[*COLUMNS, {"name": "n", "type": "smallint"}], buckets={"count": 2, "columns": ["id"]})

    def can_widen(column, to):
        return call("can_widen", table="d.t", column=column, type=to)["can_widen"]

    assert [can_widen(*case) for case in (("n", "int"), ("n", "tinyint"), ("n", "string"), ("id", "bigint"), ("other", "int"))] == [
        True, False, False, False, False]


def test_constraints_are_added_and_dropped_beside_readers(client, call):
    call("create", db="d", table="t", columns=COLUMNS)
    reader = call.begin("READ_ONLY")
    call("lock", txn=reader, reads=["d.t"], **WHO)
    call("constrain", db="d", table="t", **WHO, wait_s=0, added=[
        {"kind": "CHECK", "name": "small", "value": "id < 9", "is_enabled": True, "is_relied_on": False}, {"kind": "PRIMARY_KEY", "name": "pk", "columns": ["id"]}])

    found = enabled_constraints(client, table_name("d", "t"))
    assert (found.checks, found.primary_key) == ((("small", "id < 9"),), ("id",))

    call("constrain", db="d", table="t", dropped=[{"name": "SMALL"}, {"name": "pk"}, {"name": "nothing", "if_exists": True}], **WHO)
    assert not enabled_constraints(client, table_name("d", "t")).checks
    assert "nothing" in call.refused("constrain", db="d", table="t", dropped=[{"name": "nothing"}], **WHO)[2]
    assert call.refused("constrain", db="d", table="t", added=[{"kind": "UNIQUE", "name": "u", "columns": ["z"]}], **WHO)[0] == 400


def test_a_column_has_one_default_which_a_refused_one_leaves(client, call):
    call("create", db="d", table="t", columns=COLUMNS)

    def declare(value, kind="DEFAULT"):
        return {"db": "d", "table": "t", "dropped": [{"kind": kind, "column": "id"}], **WHO,
                "added": [{"kind": kind, "columns": ["id"], "value": value, "is_enabled": True, "is_relied_on": True}] if value else []}

    for value in ("1", "2"):
        call("constrain", **declare(value))
    call("constrain", **declare("NULL", "NOT_NULL"))
    assert "reflect" in call.refused("constrain", **declare("reflect('a', 'b')"))[2]
    found = enabled_constraints(client, table_name("d", "t"))
    assert (found.defaults, [column for _, column in found.not_null]) == ({"id": "2"}, ["id"])
    for kind in ("DEFAULT", "NOT_NULL", "NOT_NULL"):
        call("constrain", **declare(None, kind))
    found = enabled_constraints(client, table_name("d", "t"))
    assert (found.defaults, found.not_null) == ({}, ())


def test_a_table_gets_another_name_and_goes(client, call):
    call("create", db="d", table="t", columns=COLUMNS)
    insert(client, "t", {"id": 1, "name": "x"})
    call("rename", db="d", table="t", to_db="d", to_table="U")
    assert call("table", db="d", table="t") == {"kind": "absent"}
    [file] = call.planned("d.u")["events"]
    reader = call.begin("READ_ONLY")
    call("lock", txn=reader, reads=["d.u"], **WHO)

    status, error, message = call.refused("drop", db="d", table="u", wait_s=0, **WHO)

    assert (status, error) == (409, "LockNotAcquiredError")
    assert f"transaction {reader} of ann@h1" in message
    call("commit", txn=reader)
    assert call("drop", db="d", table="u", purge=True) == {}
    assert call("table", db="d", table="u") == {"kind": "absent"}
    assert not Path(file["path"].removeprefix("file:")).exists()
    assert client.show_locks(client.types.ShowLocksRequest()).locks == []
    assert call.refused("drop", db="d", table="u")[:2] == (404, "NoSuchObjectError")


def test_partitions_come_and_go(call):
    call("create", db="d", table="t", columns=COLUMNS, partition_keys=[{"name": "day", "type": "string"}, {"name": "n", "type": "int"}])
    call("add_partitions", db="d", table="t", partitions=[{"values": ["a b", "1"]}, {"values": [None, "2"]}])

    def names():
        return sorted(one["name"] for one in call("partitions", db="d", table="t")["partitions"])

    assert names() == ["day=__HIVE_DEFAULT_PARTITION__/n=2", "day=a b/n=1"]
    assert call.refused("add_partitions", db="d", table="t", partitions=[{"values": ["a b", "1"]}])[:2] == (400, "AlreadyExistsError")
    assert call("add_partitions", db="d", table="t", partitions=[{"values": ["a b", "1"]}], if_not_exists=True) == {}
    assert call.refused("add_partitions", db="d", table="t", partitions=[{"values": ["a"]}])[:2] == (400, "InvalidInputError")
    assert call("drop_partitions", db="d", table="t", names=["day=a b/n=1"]) == {}
    assert names() == ["day=__HIVE_DEFAULT_PARTITION__/n=2"]
    assert call.refused("drop_partitions", db="d", table="t", names=["day=a b/n=1"])[:2] == (404, "NoSuchObjectError")
    assert call("drop_partitions", db="d", table="t", names=["day=a b/n=1"], if_exists=True) == {}
    assert call("rename_partition", db="d", table="t", partition="day=__HIVE_DEFAULT_PARTITION__/n=2", values=["c/d", "3"]) == {}
    assert names() == ["day=c%2Fd/n=3"]
    assert call.refused("rename_partition", db="d", table="t", partition="day=c%2Fd/n=3", values=["c"])[:2] == (400, "InvalidInputError")
    assert call.refused("rename_partition", db="d", table="t", partition="day=x/n=3", values=["c", "4"])[:2] == (404, "NoSuchObjectError")
    call("add_partitions", db="d", table="t", partitions=[{"values": ["e", "4"]}])
    status, error, _ = call.refused("drop_partitions", db="d", table="t", names=["day=e/n=4", "day=x/n=3"], purge=True)
    assert (status, error) == (404, "NoSuchObjectError")
    assert names() == ["day=c%2Fd/n=3", "day=e/n=4"]


def test_a_table_is_made_like_another_one(client, call):
    call("create", db="d", table="t", columns=COLUMNS, partition_keys=[{"name": "day", "type": "date"}], properties={"mine": "1"},
         buckets={"count": 2, "columns": ["id"]}, comment="facts")

    assert call("create_like", db="d", table="u", like="d.t", properties={"yours": "2"}, **WHO) == {}

    old, new = (call("table", db="d", table=name) for name in "tu")
    same = ("kind", "columns", "partition_keys", "buckets", "format", "comment")
    assert [new[name] for name in same] == [old[name] for name in same]
    assert {"mine", "yours"} & new["properties"].keys() == {"yours"}
    assert (new["owner"], new["location"] == old["location"]) == ("ann", False)
    assert call.refused("create_like", db="d", table="u", like="d.t")[:2] == (400, "AlreadyExistsError")
    assert call.refused("create_like", db="d", table="v", like="d.nothing")[:2] == (404, "NoSuchObjectError")


def test_the_statement_of_a_table_has_its_constraints_and_texts(call):
    call("create", db="d", table="parent", columns=COLUMNS, constraints=[{"kind": "PRIMARY_KEY", "name": "pk", "columns": ["id"], "is_enabled": False}])
    call("create", db="d", table="t", comment="it's\n\x01", columns=[{"name": "1st", "type": "int"}, {"name": "s", "type": "struct<a:int>"}], constraints=[
        {"kind": "FOREIGN_KEY", "name": "fk", "columns": ["1st"], "parent": ["d", "parent"], "parent_columns": ["id"], "is_enabled": False, "is_relied_on": True},
        {"kind": "CHECK", "name": "off", "columns": [], "value": "`1st` > 0", "is_enabled": False}])

    assert call("show_create", db="d", table="t") == {"statement": r"""CREATE TABLE d.t (
  `1st` INT,
  s struct<a:int>,
  CONSTRAINT fk FOREIGN KEY (`1st`) REFERENCES d.parent (id) RELY,
  CONSTRAINT off CHECK (`1st` > 0) NOT ENFORCED)
STORED AS ORC
COMMENT 'it\'s\n\u0001'
TBLPROPERTIES (
  'transactional' = 'true',
  'transactional_properties' = 'default')
"""}
    assert call.refused("show_create", db="d", table="nothing")[:2] == (404, "NoSuchObjectError")


def test_constraints_of_columns_are_declared_with_the_table(client, call):
    call("create", db="d", table="t", columns=[{"name": "ID", "type": "int", "not_null": True}, {"name": "n", "type": "int", "default": "7"}],
         partition_keys=[{"name": "k", "type": "string", "not_null": True, "default": "'x'"}])

    told = call("table", db="d", table="t")

    assert [(one["not_null"], one["default"]) for one in (*told["columns"], *told["partition_keys"])] == [
        (True, None), (False, "7"), (True, "'x'")]
    assert enabled_constraints(client, table_name("d", "t")).checks == ()
