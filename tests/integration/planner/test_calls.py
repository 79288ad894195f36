"""The planner's calls over HTTP against a real metastore; tables are written without Spark."""

import base64

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

from metastore.streaming import connect, mutate
from tests.integration.planner.conftest import WHO
from tests.support.acid.creating import create_database, create_table


@pytest.fixture(autouse=True)
def database_d(client):
    create_database(client)


def insert(client, table, *rows):
    with connect(f"d.{table}", client=client) as stream, stream.transaction():
        stream.write(pa.Table.from_pylist(list(rows)))


def delete(server, table, *records):
    with mutate(f"d.{table}", uri=server.thrift_uri) as mutation:
        mutation.worker().delete(list(records))


def read(plan):
    """Values of the column ``id`` of all event files: what executors see before deletes."""
    return sorted(one["id"] for file in plan["events"] for one in orc.read_table(file["path"].removeprefix("file:"))["row"].to_pylist())


def test_a_table_of_each_kind(client, call):
    create_table(client, "t", {"ID": "int", "name": "varchar(10)"}, keys={"day": "string"}, buckets=("id",), bucket_count=2, comment="facts")
    create_table(client, "plain", {"id": "int"}, transactional="false")
    create_table(client, "adds", {"id": "int"}, transactional_properties="insert_only")

    told = call("table", db="D", table="T")

    assert told["kind"] == "full_acid"
    assert told["columns"] == [
        {"name": "id", "type": "int", "sql_type": "int", "comment": None, "default": None, "not_null": False},
        {"name": "name", "type": "varchar(10)", "sql_type": "string", "comment": None, "default": None, "not_null": False}]
    assert [one["name"] for one in told["partition_keys"]] == ["day"]
    assert told["buckets"] == {"count": 2, "columns": ["id"], "sort": [], "version": 2}
    assert (told["format"], told["comment"], told["owner"]) == ("orc", "facts", "ann")
    assert told["statistics"] == {"rows": None, "bytes": None}
    assert call("table", db="d", table="adds")["kind"] == "insert_only"
    assert call("table", db="d", table="plain") == {"kind": "plain"}
    assert call("table", db="d", table="nothing") == {"kind": "absent"}
    assert call("table", db="nowhere", table="nothing") == {"kind": "absent"}


def test_an_identity_is_another_one_after_drop_and_create(client, call):
    create_table(client, "t", {"id": "int"})
    before = call("table", db="d", table="t")["id"]
    client.drop_table("d", "t", True)
    create_table(client, "t", {"id": "int"})

    assert call("table", db="d", table="t")["id"] != before


def test_a_transaction_from_begin_to_commit(client, call):
    create_table(client, "t", {"id": "int"})
    begun = call("begin", kind="DEFAULT", **WHO)
    txn = begun["txn"]
    assert begun["timeout_s"] == 300
    held = call("lock", txn=txn, reads=["d.t"], writes=[{"table": "d.t", "kind": "UPDATE"}], wait_s=0, **WHO)
    assert held["txn"] == txn
    assert held["vouched"]
    [row] = client.show_locks(client.types.ShowLocksRequest(dbname="d")).locks
    assert (row.txnid, row.user, row.hostname, row.agentInfo) == (txn, "ann", "h1", "spark 4.3.0")
    assert call("snapshot", txn=txn, tables=["d.t"])["write_ids"]["d.t"].startswith("d.t:0:")
    assert call("heartbeat", txn=txn) == {}
    client.allocate_table_write_ids(client.types.AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[txn]))
    assert call("commit", txn=txn, vouched=held["vouched"]) == {}

    assert call("abort", txn=txn) == {"aborted": False}
    assert call.refused("heartbeat", txn=txn)[:2] == (409, "NoSuchTxnError")
    other = call.begin()
    assert call("abort", txn=other) == {"aborted": True}
    assert call("abort", txn=other) == {"aborted": True}
    assert call.refused("commit", txn=other)[:2] == (409, "TxnAbortedError")


def test_inserts_and_deletes_in_a_plan(client, server, call):
    create_table(client, "t", {"id": "int"})
    insert(client, "t", {"id": 1}, {"id": 2}, {"id": 3})
    plan = call.planned("d.t", count=True)
    assert plan["directories"] == [{"partition": "", "key": "[]", "values": [], "location": call("table", db="d", table="t")["location"],
                                    "format": "orc", "deletes": False}]
    assert read(plan) == [1, 2, 3]
    assert plan["visible"] == {"not_delete": False, "high_watermark": None, "hidden": []}
    assert (plan["deleted"], plan["row_count"], plan["cut"], plan["plain"]) == (None, 3, [], [])
    assert plan["bytes"] == sum(file["size"] for file in plan["events"]) > 0

    delete(server, "t", {"ROW__ID": (1, 536870912, 1)})
    plan = call.planned("d.t", count=True)

    assert plan["row_count"] is None
    assert plan["directories"][0]["deletes"]
    arrays = []
    content = base64.b64decode(plan["deleted"]["bits"])
    while content:
        size = int.from_bytes(content[:8], "big") * 8
        arrays.append(np.frombuffer(content[8:8 + size], ">i8"))
        content = content[8 + size:]
    assert [len(arrays), int(arrays[4][0])] == [5, 0b10]
