"""The planner's calls over HTTP against a real metastore; tables are written without Spark."""

import base64
import json
import re
import shutil
import threading
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

from metastore.acid_tables import deleted
from metastore.planner import calls
from metastore.planner import server as planner_server
from metastore.planner.call import Method
from metastore.streaming import connect
from tests.integration.planner.conftest import WHO, Caller
from tests.support.acid.changing import change
from tests.support.acid.creating import create_database, create_table
from tests.support.thrift_server import until


@pytest.fixture(autouse=True)
def database_d(client):
    create_database(client)


def insert(client, table, *rows):
    with connect(f"d.{table}", client=client) as stream, stream.transaction():
        stream.write(pa.Table.from_pylist(list(rows)))


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


def test_inserts_and_deletes_in_a_plan(client, call):
    create_table(client, "t", {"id": "int"})
    insert(client, "t", {"id": 1}, {"id": 2}, {"id": 3})
    plan = call.planned("d.t", count=True)
    assert plan["directories"] == [{"partition": "", "key": "[]", "values": [], "location": call("table", db="d", table="t")["location"],
                                    "format": "orc", "storage": None, "deletes": False}]
    assert read(plan) == [1, 2, 3]
    assert plan["visible"] == {"not_delete": False, "high_watermark": None, "hidden": []}
    assert (plan["deleted"], plan["row_counts"], plan["cut"], plan["plain"]) == (None, [3], [], [])
    assert plan["bytes"] == sum(file["size"] for file in plan["events"]) > 0

    change(client, "d.t", delete=[{"ROW__ID": (1, 536870912, 1)}])
    plan = call.planned("d.t", count=True)

    assert plan["row_counts"] is None
    assert plan["directories"][0]["deletes"]
    arrays = []
    content = base64.b64decode(plan["deleted"]["bits"])
    while content:
        size = int.from_bytes(content[:8], "big") * 8
        arrays.append(np.frombuffer(content[8:8 + size], ">i8"))
        content = content[8 + size:]
    assert [len(arrays), int(arrays[4][0])] == [5, 0b10]


def test_a_limit_leaves_out_files_that_are_not_needed(client, call):
    create_table(client, "t", {"id": "int"})
    for first in (0, 2, 4, 6):
        insert(client, "t", {"id": first}, {"id": first + 1})
    whole = call.planned("d.t")
    for limit, files in ((0, 0), (1, 1), (2, 1), (3, 2), (7, 4), (8, 4), (9, 4)):
        plan = call.planned("d.t", limit=limit)
        assert plan["events"] == whole["events"][:files]
        assert plan["bytes"] == sum(file["size"] for file in plan["events"])
    assert {**plan, "bytes": 0} == {**whole, "bytes": 0}

    change(client, "d.t", delete=[{"ROW__ID": (1, 536870912, 0)}])
    assert call.planned("d.t", limit=1)["events"] == whole["events"], "footers do not say which rows are left"


def test_large_deletes_go_as_files(client, call, monkeypatch):
    create_table(client, "t", {"id": "int"})
    insert(client, "t", {"id": 1}, {"id": 2})
    change(client, "d.t", delete=[{"ROW__ID": (1, 536870912, 0)}])
    monkeypatch.setattr(deleted, "MAX_EVENTS", 0)

    [file] = call.planned("d.t")["deleted"].pop("files")

    assert (file["dir"], file["bucket"]) == (0, 0)
    assert orc.read_table(file["path"].removeprefix("file:"))["operation"].to_pylist() == [2]


def test_partitions_are_pruned_by_conditions_that_all_hold(client, call):
    create_table(client, "t", {"id": "int"}, keys={"day": "date", "n": "int"})
    for place, (day, number) in enumerate((("2026-01-01", 1), ("2026-01-02", 2), ("2026-01-02", 3))):
        insert(client, "t", {"id": place, "day": day, "n": number})

    def names(*conditions):
        found = [one["partition"] for one in call.planned("d.t", partitions=list(conditions))["directories"]]
        assert sorted(found) == sorted(one["name"] for one in call("partitions", db="d", table="t", filter=list(conditions))["partitions"])
        return [name.rpartition("=")[2] for name in sorted(found)]

    assert names() == ["1", "2", "3"]
    insert(client, "t", {"id": 3, "day": "2026-01-02", "n": 3})
    counted = call.planned("d.t", count=True)
    assert sorted(zip((one["partition"][-1] for one in counted["directories"]), counted["row_counts"], strict=True)) == [("1", 1), ("2", 1), ("3", 2)]
    assert names(["day", "=", "2026-01-02"], ["n", "<", "3"]) == ["2"]
    assert names(["n", "in", "1", "3"]) == ["1", "3"]
    assert names(["n", "is null"]) == []
    assert names(["n", ">=", "two"]) == ["1", "2", "3"]   # the engine looks itself
    [one] = call.planned("d.t", partitions=[["n", "=", "1"]])["directories"]
    assert (one["key"], one["values"]) == ('["2026-01-01","1"]', ["2026-01-01", "1"])
    named = call.planned("d.t", count=True, named=["day=2026-01-02/n=3", "day=2026-01-09/n=9"])
    assert ([one["partition"] for one in named["directories"]], named["row_counts"]) == (["day=2026-01-02/n=3"], [2])
    assert call.planned("d.t", named=[], limit=1)["directories"] == []
    assert call.refused("partitions", db="d", table="t", filter=[["m", "=", "1"]]) == (
        400, "InvalidInputError", "m is not a partition key: those are day, n.")


def test_the_past_and_what_changed_since(client, call, test_clock):
    create_table(client, "t", {"id": "int"})
    insert(client, "t", {"id": 1})
    test_clock.advance(timedelta(minutes=1))
    [[now]] = test_clock.database.once("SELECT metastore_now()")
    between = int(now.timestamp() * 1000)
    test_clock.advance(timedelta(minutes=1))
    insert(client, "t", {"id": 2})
    change(client, "d.t", delete=[{"ROW__ID": (1, 536870912, 0)}])

    assert read(call.planned("d.t", as_of={"write_id": 1})) == [1]
    at = call.planned("d.t", as_of={"timestamp_ms": between})
    assert (read(at), at["deleted"]) == ([1], None)
    assert call.refused("plan", table="d.t", txns="9:9223372036854775807::", write_ids="d.t:9:9223372036854775807::", as_of={"write_id": 99})[:2] == (
        400, "InvalidOperationError")


def test_changes_have_files_and_who_made_them_and_when(client, call, test_clock):
    create_table(client, "t", {"id": "int"})
    insert(client, "t", {"id": 1})
    insert(client, "t", {"id": 2})
    test_clock.advance(timedelta(minutes=1))
    [[then]] = test_clock.database.once("SELECT metastore_now()")
    test_clock.advance(timedelta(minutes=1))
    change(client, "d.t", delete=[{"ROW__ID": (1, 536870912, 0)}])

    def planned(**more):
        plan = call.planned("d.t", "changes", **more)
        made = plan["changes"]
        return len(plan["events"]), len(plan["deleted"]["files"]), made["after"], [number for number, _ in made["times"]]

    assert planned(first=2, last=2) == (1, 0, 1, [2])
    assert planned(first=3) == (2, 1, 2, [3])
    assert planned(after_ms=int(then.timestamp() * 1000)) == (2, 1, 2, [3])
    assert planned(first=4) == (0, 1, 3, [])
    assert call.refused("changes", table="d.t", txns="9:9223372036854775807::", write_ids="d.t:3:9223372036854775807::", last=2)[:2] == (
        400, "InvalidInputError")


def test_files_without_event_columns_have_ids_or_none(client, call):
    location = Path(create_table(client, "t", {"id": "int"}))
    location.mkdir(parents=True, exist_ok=True)
    orc.write_table(pa.table({"id": [1, 2]}), location / "000000_0")
    orc.write_table(pa.table({"id": [3]}), location / "000000_0_copy_1")
    orc.write_table(pa.table({"id": [4]}), location / "part-7")

    plain = call.planned("d.t", count=True)

    assert [(Path(one["path"]).name, one["write_id"], one["bucket"], one["first_row_id"]) for one in plain["plain"]] == [
        ("000000_0", 0, 536870912, 0), ("000000_0_copy_1", 0, 536870912, 2), ("part-7", None, None, None)]
    assert all(one["size"] == Path(one["path"].removeprefix("file:")).stat().st_size for one in plain["plain"])
    assert plain["row_counts"] == [4]


def test_what_a_transaction_wrote_itself_counts_in_its_plan(client, call):
    location = create_table(client, "t", {"id": "int"})
    insert(client, "t", {"id": 1})
    txn = call.begin()
    seen = call("snapshot", txn=txn, tables=["d.t"])
    request = client.types.AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[txn])
    [pair] = client.allocate_table_write_ids(request).txnToWriteIds
    shutil.copytree(f"{location}/delta_0000001_0000001_0000", f"{location}/delta_0000002_0000002_0000")

    def files(**more):
        return len(call("plan", table="d.t", txns=seen["txns"], write_ids=seen["write_ids"]["d.t"], **more)["events"])

    assert files() == 1
    assert files(own_write_id=pair.writeId) == 2
    call("abort", txn=txn)


def test_further_tables_of_a_snapshot_are_as_they_were_then(client, call):
    for name in ("t", "u"):
        create_table(client, name, {"id": "int"})
    with connect("d.u", client=client) as stream:
        stream.begin_transaction()
        txn = call.begin("READ_ONLY")
        first = call("snapshot", txn=txn, tables=["d.t"])
        stream.write(pa.Table.from_pylist([{"id": 1}]))
        stream.commit_transaction()

    then = call("snapshot", txn=txn, tables=["d.u"], txns=first["txns"])
    now = call("snapshot", txn=txn, tables=["d.u"])

    assert then["txns"] == first["txns"]
    assert read(call("plan", table="d.u", txns=then["txns"], write_ids=then["write_ids"]["d.u"])) == []
    assert read(call("plan", table="d.u", txns=now["txns"], write_ids=now["write_ids"]["d.u"])) == [1]


def test_who_says_what_it_reads_gets_the_same_snapshot(client, server, call):
    for name in ("t", "u"):
        create_table(client, name, {"id": "int"})
        insert(client, name, {"id": 1})
    txn = call.begin("READ_ONLY")
    plain = call("snapshot", txn=txn, tables=["d.t"])
    said = call("snapshot", txn=txn, tables=["d.t"], reads=["d.t"])
    insert(client, "u", {"id": 2})
    later = call("snapshot", txn=txn, tables=["D.u"], reads=["D.T", "D.u"], txns=said["txns"], said=said["said"])

    assert (plain["said"], said) == (False, {**plain, "said": True})
    assert later["txns"] == said["txns"]
    assert read(call("plan", table="d.u", txns=later["txns"], write_ids=later["write_ids"]["d.u"])) == [1]
    assert server.database.once('SELECT "table" FROM min_history WHERE txn_id = %s ORDER BY 1', [txn]) == [("t",), ("u",)]
    call("commit", txn=txn)
    status, error, _ = call.refused("snapshot", txn=txn, tables=["d.t"], reads=["d.t"])
    assert (status, error) == (409, "NoSuchTxnError")


def test_who_waited_for_a_change_goes_on_with_a_later_transaction(client, call):
    """The change is committed between begin and lock: with the transaction of begin the commit would be a conflict."""
    create_table(client, "t", {"id": "int"})
    insert(client, "t", {"id": 1})
    update = [{"table": "d.t", "kind": "UPDATE"}]
    txn, unlucky, late = call.begin(), call.begin(), call.begin()
    seen = call("snapshot", txn=late, tables=["d.t"])
    change(client, "d.t", delete=[{"ROW__ID": (1, 536870912, 0)}])

    status, error, message = call.refused("lock", txn=late, writes=update, txns=seen["txns"], **WHO)
    assert (status, error) == (409, "WriteConflictError")
    assert re.match(rf"Transaction \d+ of \S+@\S+ \(.*\), at .* UTC, changed and committed d/t first\. Transaction {late} has locked that now", message)
    assert "Start again" in message
    call("abort", txn=late)
    assert not call("lock", txn=unlucky, writes=update, **WHO)["vouched"]   # it may not be replaced: its commit tells
    call("abort", txn=unlucky)
    held = call("lock", txn=txn, writes=update, reopen={"kind": "DEFAULT", **WHO}, **WHO)

    assert held["txn"] > late
    assert held["vouched"]
    assert call.refused("heartbeat", txn=txn)[1] == "TxnAbortedError"
    call("abort", txn=held["txn"])


def test_a_lock_is_waited_for_as_long_as_the_caller_says(client, call):
    create_table(client, "t", {"id": "int"})
    first, second = call.begin(), call.begin()
    call("lock", txn=first, writes=[{"table": "d.t", "kind": "DDL_EXCLUSIVE"}], **WHO)

    status, error, message = call.refused("lock", txn=second, reads=["d.t"], wait_s=0, **WHO)

    assert (status, error) == (409, "LockNotAcquiredError")
    assert f"transaction {first} of ann@h1" in message
    assert [one.txnid for one in client.show_locks(client.types.ShowLocksRequest(dbname="d")).locks] == [first]


def test_who_goes_away_waits_for_no_lock(client, planner, call):
    create_table(client, "t", {"id": "int"})
    first, second = call.begin(), call.begin()
    call("lock", txn=first, writes=[{"table": "d.t", "kind": "DDL_EXCLUSIVE"}], **WHO)
    waiting = Caller(planner.address)
    waiting.connection.request("POST", "/v1/lock", json.dumps({"txn": second, "reads": ["d.t"], "wait_s": 3600, **WHO}),
                               {"Content-Type": "application/json"})

    def requests():
        return len(client.show_locks(client.types.ShowLocksRequest(dbname="d")).locks)

    until(lambda: requests() == 2)
    waiting.connection.close()
    until(lambda: requests() == 1)


WRONG_BODIES = [
    ("table", b"{", "The body is not JSON"),
    ("table", b"\xff", "The body is not JSON"),
    ("table", b"[" * 100_000, "The body is not JSON"),
    ("table", b"[]", "The body must be a JSON object, like {}."),
    ("table", b"{}", "db is missing: it must be a text."),
    ("table", b'{"db": 1, "table": "t"}', "db must be a text, not 1."),
    ("table", b'{"db": "", "table": "t"}', "db and table must not be empty."),
    ("begin", b'{"kind": "SOME"}', "kind must be one of DEFAULT"),
    ("commit", b'{"txn": -1}', "txn must be a whole number from 0 to"),
    ("commit", b'{"txn": true}', "txn must be a whole number from 0 to"),
    ("commit", b'{"txn": 1, "vouched": "yes"}', 'vouched must be true or false, not "yes".'),
    ("lock", b'{"txn": 1, "reads": [1]}', "reads must be a list of texts, not [1]."),
    ("lock", b'{"txn": 1, "writes": ["d.t"]}', 'writes must be a list of objects, not ["d.t"].'),
    ("lock", b'{"txn": 1, "writes": [{"table": "t", "kind": "INSERT"}]}', 'writes[0].table must be a table\'s name, like db.table, not "t".'),
    ("plan", b'{"table": "default.nothing", "txns": "1:2::", "write_ids": "x"}', None),
]


def test_what_is_wrong_with_a_body_is_said(call):
    for name, body, said in WRONG_BODIES:
        status, answer = call.post(f"/v1/{name}", body)
        if said is None:
            assert (status, answer["error"]) == (404, "NoSuchObjectError")
        else:
            assert (status, answer["error"]) == (400, "InvalidInputError"), body
            assert answer["message"].startswith(said)
        assert call("table", db="default", table="nothing") == {"kind": "absent"}   # on the same connection


def test_bodies_that_are_too_large_or_of_no_length_are_not_read(planner):
    for headers, said in (({"Content-Length": str((64 << 20) + 1)}, "The body is too large: 67108865 bytes"),
                          ({"Content-Length": "many"}, "This is no request of HTTP/1.1: bad Content-Length."),
                          ({"Transfer-Encoding": "chunked"}, "A call must say how long its body is")):
        caller = Caller(planner.address)
        caller.connection.putrequest("POST", "/v1/table", skip_accept_encoding=True)
        caller.connection.putheader("Content-Type", "application/json")
        for name, value in headers.items():
            caller.connection.putheader(name, value)
        caller.connection.endheaders()
        answer = caller.connection.getresponse()
        assert answer.status == 400
        assert json.loads(answer.read())["message"].startswith(said)
        caller.connection.close()


def test_the_end_waits_for_what_is_being_answered(planner, monkeypatch):
    monkeypatch.setattr(planner_server, "_DRAIN_S", 600)
    began, may_end, order = threading.Event(), threading.Event(), []

    def slow(_):
        began.set()
        may_end.wait()
        order.append("answered")
        return {"done": True}

    def stop():
        planner.stop()
        order.append("stopped")

    monkeypatch.setitem(calls.CALLS, "table", Method(slow))
    caller = Caller(planner.address)
    calling = threading.Thread(target=lambda: order.append(caller("table")))
    calling.start()
    began.wait()
    stopping = threading.Thread(target=stop)
    stopping.start()
    until(lambda: planner._http._accepting.done() or order)
    may_end.set()
    stopping.join()
    calling.join()
    caller.connection.close()

    assert order[0] == "answered"
    assert {"done": True} in order
    planner.start("127.0.0.1", 0)   # for the fixture, which stops it


def test_calls_that_there_are_not(call):
    status, answer = call.post("/v1/nothing", "{}")
    assert (status, answer["error"]) == (404, "NoSuchObjectError")
    assert "There is no call /v1/nothing" in answer["message"]


def test_plans_beyond_what_runs_at_a_time_wait_and_are_refused_in_the_end(client, planner, call):
    create_table(client, "t", {"id": "int"})
    planner.turns.longest_wait_s = 0
    planner.turns._free = 0
    assert call.refused("partitions", db="d", table="t")[:2] == (503, "LimitReachedError")
    assert call("table", db="d", table="t")["kind"] == "full_acid"   # what is quick is not held up
    planner.turns._give()
    assert call("partitions", db="d", table="t")["partitions"][0]["name"] == ""


def test_a_metastore_that_is_away_is_said_to_be(planner, call, server):
    assert call("table", db="default", table="nothing") == {"kind": "absent"}
    server.stop()
    status, error, message = call.refused("table", db="default", table="nothing")
    assert (status, error) == (502, "MetastoreUnreachableError")
    assert "No metastore answers" in message


def test_what_nobody_foresaw_is_our_fault_and_says_no_more(call, monkeypatch):
    monkeypatch.setitem(calls.CALLS, "table", Method(lambda _: {}["secret"]))
    assert call.refused("table") == (500, "PlannerError", "The planner failed (KeyError); its log says more.")
