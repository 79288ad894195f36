"""Another definition of a table by the commit that replaces its rows."""

import pytest

from metastore.client import DomainClient, txn_calls
from metastore.client.client import AnswerLostError
from metastore.errors import TxnAbortedError
from tests.integration.planner.conftest import WHO
from tests.support.acid.creating import create_database

BEFORE = {"db": "d", "table": "t", "columns": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}],
          "partition_keys": [{"name": "day", "type": "date"}], "buckets": {"count": 2, "columns": ["id"]}, "comment": "old",
          "properties": {"mine": "yes", "transactional": "true"}}
AFTER = {**BEFORE, "columns": [{"name": "name", "type": "struct<first:string>"}, {"name": "ID", "type": "int", "comment": "new"}],
         "comment": "anew", "properties": {"yours": "yes"}}


@pytest.fixture(autouse=True)
def table_t(client, call):
    create_database(client)
    call("create", **BEFORE)


def seen(call):
    told = call("table", db="d", table="t")
    return [(one["name"], one["type"], one["comment"]) for one in told["columns"]], told["comment"], {"mine", "yours"} & told["properties"].keys()


OLD = [("id", "int", None), ("name", "string", None)], "old", {"mine"}
NEW = [("name", "struct<first:string>", None), ("id", "int", "new")], "anew", {"yours"}


def begun(call):
    txn = call.begin()
    call("lock", txn=txn, writes=[{"table": "d.t", "kind": kind} for kind in ("DDL_EXCLUSIVE", "INSERT_OVERWRITE")], **WHO)
    call("write", txn=txn, table="d.t", statement=0, kind="INSERT_OVERWRITE", overwrite="all")
    return txn


def test_the_definition_changes_with_the_commit(client, call):
    txn, before = begun(call), call("table", db="d", table="t")
    told = call("replacement", **AFTER)
    assert (told["id"], told["location"], told["kind"]) == (before["id"], before["location"], "full_acid")
    assert [one["name"] for one in told["columns"]] == ["name", "id"]
    assert seen(call) == OLD

    call("commit", txn=txn, replaces=[AFTER])

    assert seen(call) == NEW
    assert client.getMetaConf("hive.metastore.disallow.incompatible.col.type.changes") == "true"
    assert call("table", db="d", table="t")["properties"]["transactional"] == "true"


def test_a_commit_that_fails_gives_the_old_definition_back(client, call, monkeypatch):
    during = []

    def fail(*_):
        during.extend(column.name for column in client.get_table("d", "t").sd.cols)
        raise TxnAbortedError("it was aborted")

    txn = begun(call)
    monkeypatch.setattr(txn_calls, "commit", fail)
    assert call.refused("commit", txn=txn, replaces=[AFTER])[1] == "TxnAbortedError"
    assert during == ["name", "id"]
    assert seen(call) == OLD

    client.abort_txns(client.types.AbortTxnsRequest([txn]))
    monkeypatch.undo()
    assert call.refused("commit", txn=txn, replaces=[AFTER])[1] == "TxnAbortedError"
    assert seen(call) == OLD


def columns_of_partitions(client):
    return [[column.name for column in partition.sd.cols] for partition in client.get_partitions("d", "t", -1)]


def test_partitions_follow_both_ways(client, call, monkeypatch):
    client.append_partition("d", "t", ["2026-01-01"])
    txn = begun(call)
    with monkeypatch.context() as patched:
        during = []

        def fail(*_):
            during.extend(columns_of_partitions(client))
            raise TxnAbortedError("it was aborted")

        patched.setattr(txn_calls, "commit", fail)
        call.refused("commit", txn=txn, replaces=[AFTER])
    assert during == [["name", "id"]]
    assert columns_of_partitions(client) == [["id", "name"]]

    call("commit", txn=txn, replaces=[AFTER])
    assert columns_of_partitions(client) == [["name", "id"]]


@pytest.mark.parametrize(("method", "which"), [("alter_table_with_cascade", 1), ("setMetaConf", 2)])
def test_a_change_whose_answer_is_lost_is_given_back(client, call, monkeypatch, method, which):
    seen_calls, sent = [], DomainClient._call

    def lose(self, name, args, kwargs):
        answer = sent(self, name, args, kwargs)
        seen_calls.append(name)
        if name == method and seen_calls.count(name) == which:
            raise AnswerLostError("the connection broke")
        return answer

    txn = begun(call)
    with monkeypatch.context() as patched:
        patched.setattr(DomainClient, "_call", lose)
        assert call.refused("commit", txn=txn, replaces=[AFTER])[1] == "AnswerLostError"
    assert seen_calls.count("alter_table_with_cascade") == 2
    assert seen(call) == OLD


def test_a_commit_that_is_sent_again_changes_nothing_more(client, call):
    txn, rows = begun(call), [{"table": "d.t", "inserted": 3, "deleted": 0}]
    call("commit", txn=txn, replaces=[AFTER], rows=rows)
    changed = client.get_table("d", "t")
    changed.parameters["comment"] = "of somebody else"
    client.alter_table("d", "t", changed)

    call("commit", txn=txn, replaces=[AFTER], rows=rows)

    assert seen(call) == (NEW[0], "of somebody else", NEW[2])


@pytest.mark.parametrize(("change", "said"), [
    ({"partition_keys": []}, "a table with other partition keys: only its columns"),
    ({"partition_keys": [{"name": "day", "type": "string"}]}, "a table with other partition keys"),
    ({"buckets": {"count": 3, "columns": ["id"]}}, "a table with other buckets"),
    ({"buckets": None}, "a table with other buckets"),
    ({"format": "parquet", "properties": {"transactional_properties": "insert_only"}}, "a table with another format"),
    ({"location": "file:///elsewhere"}, "a table with another location"),
    ({"properties": {"transactional": "false"}}, "a table with other transactional properties: only its columns"),
    ({"columns": []}, "declares no columns"),
    ({"columns": [{"name": "name", "type": "string"}]}, "There is no column id. There is: name."),
    ({"columns": [{"name": "id", "type": "int", "not_null": True}]}, "cannot be replaced with constraints: DROP CONSTRAINT"),
])
def test_what_would_be_another_table_is_refused(call, change, said):
    assert said in call.refused("replacement", **{**AFTER, **change})[2]
    assert seen(call) == OLD


def test_columns_must_suit_the_format_that_stays(call):
    call("create", db="d", table="lines", columns=[{"name": "id", "type": "int"}], format="avro", properties={"transactional_properties": "insert_only"})
    after = {"db": "d", "table": "lines", "columns": [{"name": "id", "type": "bigint"}], "format": None}

    assert call("replacement", **after)["format"] == "serde"
    assert "of d.lines is CHAR or VARCHAR" in call.refused("replacement", **{**after, "columns": [{"name": "id", "type": "varchar(3)"}]})[2]


def test_a_table_with_constraints_is_not_replaced(call):
    call("constrain", db="d", table="t", added=[{"kind": "CHECK", "name": "small", "value": "id < 9", "is_enabled": False}], **WHO)

    assert "DROP CONSTRAINT those that it has" in call.refused("replacement", **AFTER)[2]

    call("constrain", db="d", table="t", dropped=[{"name": "small"}], **WHO)
    assert call("replacement", **AFTER)["kind"] == "full_acid"
