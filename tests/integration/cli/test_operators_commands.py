"""The operator's commands against a real server, as a shell sees them: answer, message, exit code."""

import json
import os
import re
import socket
import subprocess
import sys

import pytest
import yaml

from metastore.cli import connected
from metastore.cli.main import main
from metastore.client import TxnManager
from metastore.client.lock_plan import Kind, Output, Target, statement_locks

TABLE = Target("db", "t")


@pytest.fixture
def run(server):
    """Run a command line; (exit code, stdout, stderr)."""
    def ran(*arguments):
        done = subprocess.run([sys.executable, "-m", "metastore", *map(str, arguments)], capture_output=True, text=True,
                              env={**os.environ, "METASTORE_URI": server.thrift_uri}, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr
    return ran


@pytest.fixture
def txns(client):
    return TxnManager(client, host="h1")


@pytest.fixture
def acid_table(client, tmp_path):
    types = client.types
    client.create_database(types.Database("db", locationUri=(tmp_path / "db").as_uri()))
    client.create_table(types.Table(
        tableName="t", dbName="db", owner="ann", tableType="MANAGED_TABLE", partitionKeys=[],
        parameters={"transactional": "true"},
        sd=types.StorageDescriptor(
            cols=[types.FieldSchema("a", "int")], inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat", numBuckets=-1,
            serdeInfo=types.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"))))


def test_show_transactions(run, txns, client):
    txn = txns.open(user="ann", agent="nightly load")
    client.abort_txn(client.types.AbortTxnRequest(txns.open(user="bob").id))

    code, out, _ = run("show", "transactions", "-o", "json")
    both = json.loads(out)
    _, only_open, _ = run("show", "transactions", "--state", "open", "-o", "yaml")

    assert code == 0
    assert [(row["txn_id"], row["state"], row["user"], row["host"]) for row in both] == [
        (txn.id, "OPEN", "ann", "h1"), (txn.id + 1, "ABORTED", "bob", "h1")]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", both[0]["started_at"])
    assert yaml.safe_load(only_open) == [both[0]]
    txn.abort()


def test_show_locks(run, txns):
    with txns.transaction(user="ann", agent="nightly load") as txn:
        txn.lock(statement_locks(outputs=[Output(TABLE, Kind.EXCLUSIVE_DDL)]))

        code, out, _ = run("show", "locks")
        _, filtered, _ = run("show", "locks", "--db", "DB", "--table", "T", "--state", "acquired", "-o", "json")
        _, none, _ = run("show", "locks", "--txn", "0", "-o", "json")

    heading, line = out.splitlines()
    assert code == 0
    assert re.split(r"\s{2,}", heading) == [
        "LOCK ID", "DATABASE", "TABLE", "PARTITION", "STATE", "BLOCKED BY", "TYPE", "TRANSACTION ID", "LAST HEARTBEAT",
        "ACQUIRED AT", "USER", "HOSTNAME", "AGENT INFO"]
    assert line.startswith("1.1")
    assert line.endswith("nightly load")
    [row] = json.loads(filtered)
    assert (row["type"], row["state"], row["txn_id"], row["last_heartbeat_at"]) == ("EXCLUSIVE", "ACQUIRED", txn.id, None)
    assert json.loads(none) == []


def test_a_waiting_lock_shows_what_it_waits_for(run, client):
    types = client.types
    for _ in range(2):
        client.lock(types.LockRequest([types.LockComponent(types.LockType.EXCLUSIVE, types.LockLevel.TABLE, "db", "t")],
                                      user="u", hostname="h"))

    _, out, _ = run("show", "locks", "--state", "waiting", "-o", "json")

    assert [(row["lock_id"], row["blocked_by"]) for row in json.loads(out)] == [("2.1", "1.1")]


def test_abort(run, txns, client):
    txn = txns.open()

    code, out, _ = run("txn", "abort", txn.id, "-o", "json")
    assert code == 0
    assert json.loads(out) == [{"txn_id": txn.id, "aborted": True, "answer": "aborted"}]
    with pytest.raises(client.types.TxnAbortedException):
        client.heartbeat(client.types.HeartbeatRequest(txnid=txn.id))

    code, out, _ = run("txn", "abort", txn.id, 4711)
    assert code == 1
    assert "No such transaction txnid:4711" in out


def test_an_abort_says_whether_the_owner_may_go_on(run, txns, database):
    txn = txns.open()

    def may_publish():
        return database.once("SELECT may_publish FROM txns WHERE id = %s", [txn.id]) == [(True,)]

    run("txn", "abort", txn.id)
    assert may_publish()
    code, _, _ = run("txn", "abort", "--owner-gone", txn.id)
    assert (code, may_publish()) == (0, False)


def test_release(run, txns, client):
    types = client.types
    lock_id = client.lock(types.LockRequest(
        [types.LockComponent(types.LockType.EXCLUSIVE, types.LockLevel.TABLE, "db", "u")], user="u", hostname="h")).lockid
    with txns.transaction() as txn:
        txn.lock(statement_locks(outputs=[Output(TABLE, Kind.INSERT)]))

        code, out, _ = run("lock", "release", f"{lock_id}.1", lock_id + 1, 4711)

        assert code == 1
        assert [line.split(maxsplit=2) for line in out.splitlines()[1:]] == [
            [str(lock_id), "yes", "released"],
            [str(lock_id + 1), "no", (f"Lock {lock_id + 1} is held by transaction {txn.id} and goes with it: "
                                      f"`metastore txn abort {txn.id}` ends both.")],
            ["4711", "no", "There is no lock 4711; it may have been released already."]]
        assert [row.txnid for row in client.show_locks(types.ShowLocksRequest()).locks] == [txn.id]


def test_release_by_agent(run, client):
    types = client.types
    ids = [client.lock(types.LockRequest([types.LockComponent(types.LockType.EXCLUSIVE, types.LockLevel.TABLE, "db", name)],
                                         user="ann", hostname="h1", agentInfo=agent)).lockid
           for name, agent in (("a", "Iceberg-1"), ("a", "Iceberg-1"), ("b", "Iceberg-2"))]

    code, out, _ = run("lock", "release", "--agent", "Iceberg-1")

    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [[str(lock_id), "yes"] for lock_id in ids[:2]]
    assert [row.lockid for row in client.show_locks(types.ShowLocksRequest()).locks] == ids[2:]
    code, _, complaint = run("lock", "release", "--agent", "Iceberg-1")
    assert (code, complaint) == (1, "Nobody has a lock with the agent info Iceberg-1.\n")


def test_compactions(run, acid_table, client):
    code, out, _ = run("compaction", "request", "db.t", "--type", "major", "-o", "json")
    assert code == 0
    [requested] = json.loads(out)
    assert requested["state"] == "initiated"

    code, out, _ = run("compaction", "request", "db.t", "--type", "minor")
    assert code == 1
    assert "already scheduled" in out

    _, out, _ = run("show", "compactions", "--db", "db", "--type", "major", "-o", "json")
    [row] = json.loads(out)
    assert (row["compaction_id"], row["table"], row["type"], row["state"]) == (
        requested["compaction_id"], "t", "MAJOR", "initiated")

    code, out, _ = run("compaction", "abort", requested["compaction_id"], 4711, "-o", "json")
    assert code == 1
    assert [answer["aborted"] for answer in json.loads(out)] == [True, False]
    _, out, _ = run("show", "compactions", "--state", "aborted", "-o", "json")
    assert len(json.loads(out)) == 1


def test_describe(run, acid_table, txns):
    with txns.transaction() as txn:
        txn.lock(statement_locks(outputs=[Output(TABLE, Kind.INSERT)]))
        txn.write_id("db", "t")

        code, out, _ = run("table", "describe", "db.t", "-o", "json")

    found = json.loads(out)
    assert code == 0
    assert {key: found[key] for key in ("table", "kind", "columns", "last_write_id", "open_or_aborted_write_ids", "locks")} == {
        "table": "db.t", "kind": "full ACID", "columns": "a int", "last_write_id": 1, "open_or_aborted_write_ids": 1, "locks": 1}


def test_describe_of_a_table_that_is_not_there(run):
    code, out, err = run("table", "describe", "db.gone")

    assert (code, out) == (1, "")
    assert err.startswith("metastore: ")
    assert "gone" in err


@pytest.mark.parametrize("arguments", [
    ["txn", "abort"], ["txn", "abort", "x"], ["txn", "abort", "0"], ["lock", "release", "1.x"],
    ["lock", "release"],
    ["compaction", "request", "a.b.c", "--type", "major"], ["compaction", "request", "db.t"],
    ["compaction", "request", "db.t", "--type", "tiny"],
    ["compaction", "request", "db.t", "--type", "minor", "--property", "x"],
    ["show", "locks", "--uri", "http://somewhere"], ["show", "nothing"], ["show", "locks", "-o", "xml"]])
def test_wrong_use(arguments, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(arguments)

    printed = capsys.readouterr()
    assert leaving.value.code == 2
    assert printed.out == ""
    assert "Error: " in printed.err


def test_nobody_there(capsys):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        uri = f"thrift://127.0.0.1:{unused.getsockname()[1]}"

    with pytest.raises(SystemExit) as leaving:
        main(["show", "locks", "--uri", uri])

    printed = capsys.readouterr()
    assert (leaving.value.code, printed.out) == (3, "")
    assert printed.err == (f"metastore: No metastore answers ({uri}: connection refused). Is it running, and is the address "
                   "right?\n")


def test_watching_survives_a_server_that_restarts(capsys):
    class Pauses:
        left = 3

        def wait(self, seconds):
            assert seconds == 0.5
            self.left -= 1
            return self.left == 0

    shown = []

    def show():
        shown.append(len(shown))
        if len(shown) == 2:
            raise connected.MetastoreUnreachableError("No metastore answers.")

    connected.repeated(show, watch=True, every=0.5, pause=Pauses())

    assert len(shown) == 3
    assert "metastore: No metastore answers." in capsys.readouterr().err


def test_watching_ends_when_interrupted():
    def show():
        raise KeyboardInterrupt

    connected.repeated(show, watch=True, every=0.5)
