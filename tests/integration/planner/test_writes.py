"""The calls of a write over HTTP against a real metastore; the files are names only: whoever wrote them renames them."""

import pytest

from tests.integration.planner.conftest import WHO
from tests.support.acid.creating import create_database, create_table


@pytest.fixture(autouse=True)
def database_d(client):
    create_database(client)


def staged(path, key=None, *, bucket=0, is_delete=False):
    return {"path": path, "key": key, "bucket": bucket, "statement": 0, "is_delete": is_delete, "rows": 1, "updates": 0}


def begun(call, kind="INSERT"):
    """Begin a transaction that holds the lock for a write; return it and the answer of ``write``."""
    txn = call.begin()
    call("lock", txn=txn, reads=[], writes=[{"table": "d.t", "kind": kind}], wait_s=0, **WHO)
    return txn, call("write", txn=txn, table="d.t", statement=0, kind=kind)


def names(client):
    return sorted(client.get_partition_names("d", "t", -1))


def test_a_write_is_told_its_write_id_and_where_to_stage_files(client, call):
    create_table(client, "t", {"id": "int"})
    txn, told = begun(call)

    assert told["write_id"] == 1
    assert told["staging"] == f"{told['location']}/.acid_stage_{txn}_0"
    assert call("write", txn=txn, table="d.t", statement=1, kind="INSERT")["write_id"] == 1
    published = call("publish", txn=txn, table="d.t", statement=0, overwrite=None, files=[staged("s/i"), staged("s/d", is_delete=True)])
    assert [one["to"].removeprefix(told["location"]) for kind in ("deletes", "inserts") for one in published[kind]] == [
        "/delete_delta_0000001_0000001_0000", "/delta_0000001_0000001_0000"]
    assert published["inserts"][0]["files"] == [["s/i", "bucket_00000"]]


def test_a_write_is_told_what_its_rows_must_keep(client, call):
    create_table(client, "t", {"id": "int", "n": "int"})
    types, place = client.types, {"table_db": "d", "table_name": "t", "enable_cstr": True}
    client.add_not_null_constraint(types.AddNotNullConstraintRequest([types.SQLNotNullConstraint(column_name="id", nn_name="given", **place)]))
    client.add_check_constraint(types.AddCheckConstraintRequest([types.SQLCheckConstraint(
        column_name=None, check_expression="n > id", dc_name="order", **place)]))
    client.add_check_constraint(types.AddCheckConstraintRequest([types.SQLCheckConstraint(
        column_name=None, check_expression="false", dc_name="off", **{**place, "enable_cstr": False})]))

    assert begun(call)[1]["rules"] == [
        {"label": "NOT NULL given (id)", "broken": "`id` IS NULL"}, {"label": "CHECK order (n > id)", "broken": "NOT (n > id)"}]


@pytest.mark.parametrize("kind", ["check", "default"])
def test_what_a_constraint_of_before_calls_is_not_evaluated(client, call, monkeypatch, kind):
    """Of a table of an older release or of an upstream. It can be read, and Spark is not told the DEFAULT."""
    create_table(client, "t", {"id": "int", "n": "int"})
    types, place = client.types, {"table_db": "d", "table_name": "t", "enable_cstr": True, "dc_name": "evil"}
    monkeypatch.setattr("metastore.catalog.rules.constraints.refused_expression", lambda _text: None)
    if kind == "check":
        client.add_check_constraint(types.AddCheckConstraintRequest([types.SQLCheckConstraint(check_expression="reflect('a', 'b') = 1", **place)]))
    else:
        client.add_default_constraint(types.AddDefaultConstraintRequest([types.SQLDefaultConstraint(
            column_name="n", default_value="reflect('a', 'b')", **place)]))

    described = call("table", db="d", table="t")
    assert [column["default"] for column in described["columns"]] == [None, None]
    status, _, message = call.refused("write", txn=call.begin(), table="d.t", statement=0, kind="INSERT")
    assert status == 400
    assert "the function reflect is none that may be called when others write" in message


def test_new_partitions_are_registered_and_all_announced(client, call):
    create_table(client, "t", {"id": "int"}, keys={"n": "int", "d": "date"})
    txn, told = begun(call)
    keys = ['["3","2024-01-05"]', '[null,"2024-01-05"]']
    published = call("publish", txn=txn, table="d.t", statement=0, overwrite=None, files=[staged(f"s/{key}", key) for key in keys])
    call("announce", txn=txn, table="d.t", statement=0, operation="INSERT", keys=keys, overwrite=None)
    call("commit", txn=txn)

    assert names(client) == ["n=3/d=2024-01-05", "n=__HIVE_DEFAULT_PARTITION__/d=2024-01-05"]
    assert {one["to"].removeprefix(told["location"]) for one in published["inserts"]} == {
        f"/{name}/delta_0000001_0000001_0000" for name in names(client)}


def test_rows_go_to_the_partition_that_spells_the_same_otherwise(client, call):
    create_table(client, "t", {"id": "int"}, keys={"n": "int", "d": "date"})
    types = client.types
    table = client.get_table("d", "t")
    client.add_partition(types.Partition(values=["03", "2024-1-5"], dbName="d", tableName="t", sd=table.sd, parameters={}))
    txn, _ = begun(call, "UPDATE")
    files = [staged("s/i", '["3","2024-01-05"]'), staged("s/d", '["03","2024-1-5"]', is_delete=True)]
    published = call("publish", txn=txn, table="d.t", statement=0, overwrite=None, files=files)
    call("announce", txn=txn, table="d.t", statement=0, operation="UPDATE", keys=[one["key"] for one in files], overwrite=None)
    call("commit", txn=txn)

    places = {one["to"].rpartition("/")[0] for kind in ("deletes", "inserts") for one in published[kind]}
    assert places == {client.get_partition("d", "t", ["03", "2024-1-5"]).sd.location}
    assert len(names(client)) == 1


def test_an_overwrite_empties_all_that_has_some_values_however_they_are_spelled(client, call):
    create_table(client, "t", {"id": "int"}, keys={"n": "int", "d": "date"})
    types, sd = client.types, client.get_table("d", "t").sd
    sd.location = None
    for values in (["03", "2024-1-5"], ["3", "2024-01-06"], ["4", "2024-01-05"], ["3", "__HIVE_DEFAULT_PARTITION__"]):
        client.add_partition(types.Partition(values=values, dbName="d", tableName="t", sd=sd, parameters={}))
    txn, _ = begun(call, "INSERT_OVERWRITE")

    def emptied(**values):
        published = call("publish", txn=txn, table="d.t", statement=0, overwrite={"values": values}, files=[])
        return sorted(one["to"].rpartition("/base")[0].partition("/t/")[2] for one in published["inserts"])

    def places(*of):
        return sorted(client.get_partition("d", "t", list(values)).sd.location.partition("/t/")[2] for values in of)

    assert emptied(n="3") == places(("03", "2024-1-5"), ("3", "2024-01-06"), ("3", "__HIVE_DEFAULT_PARTITION__"))
    assert emptied(d="2024-01-05") == places(("03", "2024-1-5"), ("4", "2024-01-05"))
    assert emptied(d=None) == places(("3", "__HIVE_DEFAULT_PARTITION__"))
    assert emptied(n="9") == []


def test_who_knows_another_definition_neither_reads_nor_writes(client, call):
    create_table(client, "t", {"id": "int", "name": "string"}, keys={"k": "int"})
    known = {"columns": [["id", "int"], ["name", "string"]], "partition_keys": [["k", "int"]], "buckets": [0]}
    changed = [{"columns": [["id", "int"]]}, {"columns": [["name", "string"], ["id", "int"]]}, {"columns": [["id", "bigint"], ["name", "string"]]},
               {"partition_keys": []}, {"buckets": [4, "id"]}]
    txn = call.begin()
    call("lock", txn=txn, reads=["d.t"], writes=[{"table": "d.t", "kind": "INSERT"}], wait_s=0, **WHO)
    for other in changed:
        status, error, message = call.refused("write", txn=txn, table="d.t", statement=0, kind="INSERT", known=known | other)
        assert (status, error) == (409, "WriteConflictError")
        assert message.startswith("d.t was altered or replaced after this statement had begun")
        assert "now it has (id int, name string, k int)" in message
    assert call("write", txn=txn, table="d.t", statement=0, kind="INSERT", known=known)["write_id"] == 1
    call("commit", txn=txn)

    assert call.planned("d.t", columns=[["k", "int"], ["id", "int"]])["events"] == []
    with pytest.raises(AssertionError, match="altered or replaced"):
        call.planned("d.t", columns=[["id", "bigint"]])
    with pytest.raises(AssertionError, match="altered or replaced"):
        call.planned("d.t", columns=[["id", "int"], ["gone", "string"]])


def test_an_overwrite_empties_what_it_is_about(client, call):
    create_table(client, "t", {"id": "int"}, keys={"n": "int"})
    for number in "12":
        txn, _ = begun(call)
        key = f'["{number}"]'
        call("publish", txn=txn, table="d.t", statement=0, overwrite=None, files=[staged("s/i", key)])
        call("announce", txn=txn, table="d.t", statement=0, operation="INSERT", keys=[key], overwrite=None)
        call("commit", txn=txn)
    txn, told = begun(call, "INSERT_OVERWRITE")

    def bases(overwrite, *files):
        found = call("publish", txn=txn, table="d.t", statement=0, overwrite=overwrite, files=list(files))["inserts"]
        return {one["to"].removeprefix(told["location"]): one["empty"] for one in found}

    assert bases("dynamic") == {}
    assert bases("all") == {"/n=1/base_0000003": ["bucket_00000"], "/n=2/base_0000003": ["bucket_00000"]}
    assert bases({"key": '["9"]'}) == {"/n=9/base_0000003": ["bucket_00000"]}
    assert bases({"key": '["2"]'}, staged("s/i", '["2"]')) == {"/n=2/base_0000003": []}
    assert bases({"keys": ['["2"]', '["1"]']}) == {"/n=2/base_0000003": ["bucket_00000"], "/n=1/base_0000003": ["bucket_00000"]}
    assert bases({"values": {"n": "1"}}, staged("s/i", '["1"]')) == {"/n=1/base_0000003": []}
    assert bases({"values": {"n": None}}) == {}
    status, error, message = call.refused("publish", txn=txn, table="d.t", statement=0, overwrite="some", files=[])
    assert (status, error) == (400, "InvalidInputError")
    assert "overwrite must be null" in message
    call("announce", txn=txn, table="d.t", statement=0, operation="UPDATE", keys=[], overwrite={"key": '["9"]'})
    call("commit", txn=txn)
    assert names(client) == ["n=1", "n=2", "n=9"]


def test_nothing_is_published_of_a_transaction_that_has_ended(client, call):
    create_table(client, "t", {"id": "int"})
    txn, _ = begun(call)
    client.abort_txns(client.types.AbortTxnsRequest([txn]))

    status, error, _ = call.refused("publish", txn=txn, table="d.t", statement=0, overwrite=None, files=[staged("s/i")])

    assert (status, error) == (409, "TxnAbortedError")


def test_files_of_insert_only_tables_have_their_own_names_and_no_marker(client, call):
    create_table(client, "t", {"id": "int"}, transactional_properties="insert_only")
    txn, told = begun(call)

    published = call("publish", txn=txn, table="d.t", statement=0, overwrite=None, files=[staged("s/i", bucket=5)])
    assert published["deletes"] == []
    [directory] = published["inserts"]
    assert directory["to"] == f"{told['location']}/delta_0000001_0000001_0000"
    assert (directory["files"], directory["write"]) == ([["s/i", "000005_0"]], [])
    [base] = call("publish", txn=txn, table="d.t", statement=1, overwrite="all", files=[])["inserts"]
    assert (base["to"], base["empty"]) == (f"{told['location']}/base_0000001", ["000000_0"])
    status, error, message = call.refused(
        "publish", txn=txn, table="d.t", statement=2, overwrite=None, files=[staged("s/d", is_delete=True)])
    assert (status, error) == (400, "InvalidOperationError")
    assert "have no ids" in message


def test_a_table_that_would_not_read_its_rows_back_is_not_written(client, call):
    call("create", db="d", table="t", columns=[{"name": "id", "type": "int"}], format="textfile",
         properties={"transactional_properties": "insert_only", "skip.header.line.count": "1"})

    status, _, message = call.refused("write", txn=call.begin(), table="d.t", statement=0, kind="INSERT")

    assert status == 400
    assert "leaves out the first lines of each file" in message


def test_a_table_that_is_stored_in_an_unknown_way_is_not_written(client, call):
    create_table(client, "t", {"id": "int"}, transactional_properties="insert_only")
    table = client.get_table("d", "t")
    table.sd.inputFormat = None
    client.alter_table("d", "t", table)

    status, _, message = call.refused("write", txn=call.begin(), table="d.t", statement=0, kind="INSERT")

    assert status == 400
    assert "does not say how" in message
