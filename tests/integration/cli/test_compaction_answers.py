"""`metastore compaction plan` and `explain`: asked as an operator asks, on a whole server."""

import json
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from metastore.cli.compaction_rows import rows_of
from metastore.compaction.measuring import store
from metastore.compaction.measuring.rules import Deltas, DeltasOf
from metastore.compaction.queue.rules.requests import Entity
from metastore.ids import TableName

ROW = 100


class Writers:
    """Tables whose deltas are plain bytes, written through real transactions."""

    def __init__(self, client, folder):
        self.client, self.types = client, client.types
        client.create_database(self.types.Database("db", locationUri=(folder / "db").as_uri()))

    def table(self, name, keys=(), **parameters):
        types = self.types
        self.client.create_table(types.Table(
            tableName=name, dbName="db", owner="ann", tableType="MANAGED_TABLE",
            partitionKeys=[types.FieldSchema(key, "string") for key in keys], parameters={"transactional": "true", **parameters},
            sd=types.StorageDescriptor(
                cols=[types.FieldSchema("a", "int")], inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
                outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat", numBuckets=-1,
                serdeInfo=types.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"))))

    def open(self, user="ann", kind="DEFAULT"):
        return self.client.open_txns(self.types.OpenTxnRequest(
            1, user, "h1", agentInfo="nightly load", txn_type=getattr(self.types.TxnType, kind))).txn_ids[0]

    def begin(self, name, rows=1):
        """Open a transaction, write a delta in it, and return its id."""
        types, txn_id = self.types, self.open()
        [allocated] = self.client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest("db", name, [txn_id])).txnToWriteIds
        self.client.lock(types.LockRequest(
            [types.LockComponent(types.LockType.SHARED_READ, types.LockLevel.TABLE, "db", name, isTransactional=True,
                                 operationType=types.DataOperationType.INSERT)], txnid=txn_id, user="ann", hostname="h1"))
        self.put(name, f"delta_{allocated.writeId:07d}_{allocated.writeId:07d}_0000", rows)
        return txn_id

    def insert(self, name, times, rows=1):
        for _ in range(times):
            self.client.commit_txn(self.types.CommitTxnRequest(self.begin(name, rows)))

    def path(self, name):
        return Path(unquote(urlsplit(self.client.get_table("db", name).sd.location).path))

    def put(self, name, directory, rows):
        place = self.path(name) / directory
        place.mkdir(parents=True)
        (place / "bucket_00000").write_bytes(b"x" * rows * ROW)


@pytest.fixture
def writers(client, tmp_path):
    return Writers(client, tmp_path)


def test_plan(run, asking, writers, client):
    writers.table("t", **{"compactorthreshold.hive.compactor.delta.num.threshold": "3"})
    writers.insert("t", 3)
    early = writers.open("eve")

    code, answer = asking("compaction", "plan", "db.t")
    [each] = answer["entities"]
    assert (code, each["type"], each["reads_bytes"], each["takes_s"]) == (0, None, 300, None)
    assert each["reason"] == "3 deltas, not more than 3"
    assert [(one["kind"], one["bytes"]) for one in each["inputs"]] == [("delta", ROW)] * 3
    assert each["thresholds"][0] == {"name": "hive.compactor.delta.num.threshold", "measured": 3.0, "limit": 3.0,
                                     "exceeded": False, "missed_by": 0.0}
    assert [(one["user"], one["ends_with"]) for one in each["delays_of_cleaning"]] == [("eve", f"metastore txn abort {early}")]
    code, out, _ = run("compaction", "plan", "db.t", "--run")
    assert (code, "Nothing is due" in out) == (1, True)

    writers.insert("t", 1)
    code, out, _ = run("compaction", "plan", "db.t", "--run")
    assert (code, "db.t  MAJOR: 4 deltas, more than 3, and there is no base" in out) == (0, True)
    assert "It would read 400 B and write at most as much; it takes nobody knows how long: no major compaction has been done yet." in out
    assert [(row.tablename, row.state) for row in client.show_compact(client.types.ShowCompactRequest()).compacts] == [
        ("t", "initiated")]
    code, answer = asking("compaction", "plan", "db.t", "--run")  # a second request is refused
    assert (code, answer["requested"][0]["accepted"]) == (1, False)


def test_a_plan_counts_the_rows_of_what_has_footers(run, asking, writers):
    """ORC, Parquet; text has none. Whoever does not ask opens no file."""
    files = {"orcs": orc.write_table, "parquets": pq.write_table, "texts": lambda rows, path: path.write_bytes(b"1\n" * rows.num_rows)}
    for name, write in files.items():
        writers.table(name)
        writers.insert(name, 2)
        for number, path in enumerate(sorted(writers.path(name).glob("delta_*/bucket_00000")), 1):
            write(pa.table({"a": range(number * 10)}), path)

    rows = {name: [part["rows"] for part in asking("compaction", "plan", f"db.{name}", "--rows")[1]["entities"][0]["inputs"]] for name in files}
    assert rows == {"orcs": [10, 20], "parquets": [10, 20], "texts": [None, None]}
    assert [part["rows"] for part in asking("compaction", "plan", "db.orcs")[1]["entities"][0]["inputs"]] == [None, None]
    [first, _] = sorted(writers.path("orcs").glob("delta_*/bucket_00000"))
    first.write_bytes(first.read_bytes()[:100])
    code, _, said = run("compaction", "plan", "db.orcs", "--rows")
    assert (code != 0, "delta_0000001_0000001_0000/bucket_00000 cannot be read" in said) == (True, True)
    assert rows_of([f"{writers.path('orcs')}/cleaned_meanwhile/bucket_00000"]) is None


def test_explain_who_is_in_the_way_of_a_compaction(run, asking, writers):
    writers.table("t")
    writers.insert("t", 2)
    assert asking("compaction", "explain", "db.t") == (1, {"entities": [{
        "entity": "db.t", "waits": False, "held_bytes": 0, "reasons": [{
            "of": "compaction", "text": "Nothing is due: 2 deltas, not more than 10.", "since": None, "holders": [],
            "ends_with": None}]}], "left_out": 0})
    open_txn = writers.begin("t")
    writers.insert("t", 20)

    code, out, _ = run("compaction", "explain", "db.t")
    assert (code, "Write id 3 is open, and nothing from it on can be compacted." in out) == (0, True)
    assert f"`metastore txn abort {open_txn}` ends it" in out
    assert run("txn", "abort", str(open_txn))[0] == 0
    code, out, _ = run("compaction", "explain", "db.t")
    assert (code, "due for a major compaction" in out, "metastore compaction request db.t --type major" in out) == (0, True, True)


def test_explain_who_is_in_the_way_of_a_cleaning(asking, writers, client, test_clock):
    """The reader, since when, the bytes that it holds, and the command that ends it."""
    types = client.types
    writers.table("t")
    writers.insert("t", 4)
    reader = writers.open("eve")
    client.compact2(types.CompactionRequest(dbname="db", tablename="t", type=types.CompactionType.MAJOR))
    claimed = client.find_next_compact2(types.FindNextCompactRequest(workerId="hive-1", workerVersion="4")).ci
    _, waiting = asking("compaction", "explain", "db.t")
    assert "is being done by hive-1." in waiting["entities"][0]["reasons"][0]["text"]
    txn_id = writers.open("hive", "COMPACTION")
    claimed.highestWriteId = 4
    client.update_compactor_state(claimed, txn_id)
    writers.put("t", f"base_0000004_v{txn_id:07d}", 4)
    client.mark_compacted(claimed)
    client.commit_txn(types.CommitTxnRequest(txn_id))

    kept = asking("compaction", "explain", "db.t")[1]["entities"][0]["reasons"][1]
    assert ("are kept for 3600 s" in kept["text"], kept["holders"], kept["ends_with"]) == (True, [], None)
    test_clock.advance(timedelta(hours=1))
    code, answer = asking("compaction", "explain", "db.t")
    [each] = answer["entities"]
    cleaning = each["reasons"][1]
    assert (code, each["held_bytes"], cleaning["of"]) == (0, 4 * ROW, "cleaning")
    assert [(one["txn_id"], one["user"], one["agent_info"]) for one in cleaning["holders"]] == [(reader, "eve", "nightly load")]
    assert cleaning["ends_with"] == f"metastore txn abort {reader}"
    assert f"waiting for transaction {reader} of eve@h1" in cleaning["text"]


def test_partitions_are_looked_at_up_to_a_number(asking, writers, client):
    """Those with something to compact or to clean; a name says one."""
    types = client.types
    writers.table("p", keys=["x"])
    described = client.get_table("db", "p")
    for number in range(3):
        part = types.Partition(values=[str(number)], dbName="db", tableName="p", sd=described.sd, parameters={})
        part.sd.location = None
        client.add_partition(part)
    for number in range(2):
        txn_id = writers.open()
        client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest("db", "p", [txn_id]))
        client.add_dynamic_partitions(types.AddDynamicPartitions(
            txn_id, number + 1, "db", "p", [f"x={number}"], operationType=types.DataOperationType.INSERT))
        client.commit_txn(types.CommitTxnRequest(txn_id))

    assert [each["entity"] for each in asking("compaction", "plan", "db.p")[1]["entities"]] == ["db.p/x=0", "db.p/x=1"]
    _, one = asking("compaction", "plan", "db.p", "--most", "1")
    assert ([each["entity"] for each in one["entities"]], one["left_out"]) == (["db.p/x=0"], 1)
    assert [each["entity"] for each in asking("compaction", "plan", "db.p.x=2")[1]["entities"]] == ["db.p/x=2"]
    assert [each["entity"] for each in asking("compaction", "explain", "db.p/x=2")[1]["entities"]] == ["db.p/x=2"]


def test_table_top(run, database, client):
    assert run("table", "top", "-o", "json")[:2] == (0, "[]\n")
    with database.begin() as pg:
        store.upsert_deltas(pg, [
            DeltasOf(Entity(TableName("hive", "db", "t")), Deltas(2, 0, 1, 2, 4 << 20, 7)),
            DeltasOf(Entity(TableName("other", "db", "t"), "x=1"), Deltas(9, 0, 0, 9, 100))])

    code, out, _ = run("table", "top", "-o", "json")
    cheap = {"table": "db.t", "partition": None, "score": 3.0, "files": 2, "bytes": 4 << 20, "deltas": 2, "obsolete_deltas": 1,
             "usual": 3.0, "trend": 0.0, "obsolete_bytes": 7}
    assert (code, json.loads(out)) == (0, [
        {"table": "other.db.t", "partition": "x=1", "score": 9.0, "files": 9, "bytes": 100, "deltas": 9, "obsolete_deltas": 0,
         "usual": 9.0, "trend": 0.0, "obsolete_bytes": 0}, cheap])
    _, out, _ = run("table", "top", "--most", "1", "-o", "json")
    assert [each["files"] for each in json.loads(out)] == [9]
    assert run("table", "top", "--most", "0")[0] == 2
    with pytest.raises(client.types.MetaException, match="limit is 0"):
        client.metastore_table_top(0)


def test_a_question_that_makes_no_sense(client):
    with pytest.raises(client.types.MetaException, match="needs the names"):
        client.metastore_compaction_examine(client.operators_types.CompactionQuestion(dbname="", tablename="t"))


WRONG = [
    ("t", 2, "is not a table or partition"), ("db.t.", 2, "is not a table or partition"), ("db.t/x", 2, "is not a table"),
    ("d/b.t", 2, "is not a table"), ("db.nothing", 1, "Table db.nothing does not exist"), ("db.plain", 1, "not transactional"),
    ("db.t/x=1", 1, "has no partition")]


def test_what_cannot_be_explained(run, writers):
    writers.table("t")
    writers.table("plain", transactional="false")

    for command in ("plan", "explain"):
        for place, code, said in WRONG:
            answered, _, error = run("compaction", command, place)
            assert (answered, said in error) == (code, True), error
