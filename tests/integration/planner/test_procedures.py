"""Procedures over HTTP: what CALL does, and how its arguments are refused."""

import shutil
from contextlib import closing
from datetime import date
from pathlib import Path

import psycopg2
import pyarrow as pa
import pytest

from metastore.client import TxnManager
from metastore.locks.rules import Operation
from metastore.planner.procedures.registry import PROCEDURES
from metastore.streaming import connect
from metastore.thrift_gen.hive_metastore import ttypes
from tests.integration.planner.conftest import WHO
from tests.support.acid.changing import change
from tests.support.acid.creating import create_database, create_table


@pytest.fixture(autouse=True)
def database_d(client):
    create_database(client)


@pytest.fixture
def run(call):
    """Return a function for the rows of a procedure, by the names of its columns; absent arguments are null, as Spark sends them."""
    def rows(name, **arguments):
        listed = {one["name"]: one for one in call("procedures")["procedures"]}[name]
        whole = {one["name"]: None for one in listed["parameters"]} | arguments
        columns = [one["name"] for one in listed["columns"]]
        return [dict(zip(columns, row, strict=True)) for row in call("procedure", procedure=name, arguments=whole, **WHO)["rows"]]

    return rows


def test_each_has_all_that_spark_must_know(call):
    listed = call("procedures")["procedures"]
    assert [one["name"] for one in listed] == list(PROCEDURES)
    assert listed[0]["parameters"][1] == {
        "name": "type", "type": "string", "default": "'major'", "comment": listed[0]["parameters"][1]["comment"]}
    assert all(one["comment"] for procedure in listed for one in (procedure, *procedure["parameters"]))


def test_compactions_are_asked_for_and_shown(client, run):
    create_table(client, "t", {"id": "int"})
    assert run("compact", table="d.t", type="minor") == [
        {"compaction_id": 1, "accepted": True, "partition": None, "state": "initiated", "message": None}]
    [again] = run("compact", table="d.t", type="major")
    assert again["accepted"] is False
    assert again["message"]
    [shown] = run("show_compactions", table="D.T", state="initiated")
    assert (shown["compaction_id"], shown["type"], shown["started_at"]) == (1, "MINOR", None)
    assert run("show_compactions", state="failed") == []


def test_a_compaction_is_asked_for_with_all_that_it_may_be_told_and_taken_back(client, run, call, database_url):
    create_table(client, "t", {"id": "int"})
    run("compact", table="d.t", type="rebalance", buckets=4, order_by="id DESC", properties=["compactor.spark.executor.memory=1g", "a=b=c"])
    with closing(psycopg2.connect(database_url)) as session, session.cursor() as cursor:
        cursor.execute("SELECT number_of_buckets, order_by, properties FROM compaction_queue")
        assert cursor.fetchall() == [(4, "id DESC", {"compactor.spark.executor.memory": "1g", "a": "b=c"})]
    assert run("abort_compactions", compaction_ids=[1]) == [{"compaction_id": 1, "aborted": True, "answer": "Successfully aborted compaction"}]
    [again] = run("abort_compactions", compaction_ids=[1])
    assert again["aborted"] is False
    everything = {"table": "d.t", "type": "minor"}
    for name, arguments, said in (("compact", {**everything, "properties": ["x"]}, "array('compactor.x=y'), not 'x'"),
                                  ("abort_compactions", {"compaction_ids": []}, "must be ids of compactions")):
        assert said in call.refused("procedure", procedure=name, arguments=arguments, **WHO)[2]


def test_who_waits_for_a_compaction_is_told_that_it_failed(client, call, run, monkeypatch):
    create_table(client, "t", {"id": "int"})
    ended = client.types.ShowCompactResponseElement(id=1, dbname="d", tablename="t", state="failed", errorMessage="no more room")
    monkeypatch.setattr("metastore.planner.procedures.compact.wait_until_done", lambda *_: [ended])
    arguments = {"table": "d.t", "type": "major", "wait": True}
    assert call.refused("procedure", procedure="compact", arguments=arguments) == (
        400, "InvalidOperationError", "Compaction 1 of d.t is failed: no more room. `metastore show compactions` lists it.")


def test_transactions_are_shown_and_aborted(client, call, run):
    create_table(client, "t", {"id": "int"})
    txn = call.begin()
    call("lock", txn=txn, reads=["d.t"], writes=[], wait_s=0, **WHO)
    [shown] = run("show_transactions", state="open", user="ann")
    assert (shown["txn_id"], shown["host"]) == (txn, "h1")
    [lock] = run("show_locks", table="d.t", txn_id=txn)
    assert (lock["state"], lock["type"], lock["txn_id"]) == ("ACQUIRED", "SHARED_READ", txn)

    assert run("abort_transactions", txn_ids=[txn, 4711]) == [
        {"txn_id": txn, "aborted": True, "answer": "aborted"},
        {"txn_id": 4711, "aborted": False, "answer": run("abort_transactions", txn_ids=[4711])[0]["answer"]}]
    assert run("show_transactions", state="open") == []


def test_history_tells_who_did_what(client, run):
    create_table(client, "t", {"id": "int"}, keys={"k": "int"})
    create_table(client, "other", {"id": "int"}, keys={"k": "int"})
    with TxnManager(client, host="h2").transaction(user="ben", agent="etl") as txn:
        txn.add_dynamic_partitions("d", "t", ["k=1", "k=2"], Operation.INSERT)
        txn.add_dynamic_partitions("d", "other", ["k=1"], Operation.INSERT)
    with TxnManager(client, host="h2").transaction(user="ben", agent="etl") as txn:
        txn.add_dynamic_partitions("d", "t", ["k=1"], Operation.DELETE)

    deleted, inserted = run("history", table="d.t")
    assert (inserted["write_id"], inserted["operations"], inserted["partitions"]) == (1, "insert", 2)
    assert (deleted["write_id"], deleted["operations"], deleted["partitions"]) == (2, "delete", 1)
    assert {inserted[name] for name in ("user", "host", "agent_info")} == {"ben", "h2", "etl"}
    assert inserted["started_at"] <= inserted["committed_at"] <= deleted["committed_at"]
    assert [one["write_id"] for one in run("history", table="d.t", limit=1)] == [2]
    assert [one["partitions"] for one in run("history", table="d.other")] == [1]


def test_history_tells_how_many_rows_were_written(client, call, run):
    """What the last commit said counts, so that one that is sent again changes nothing; an older service is not asked twice."""
    create_table(client, "t", {"id": "int"})
    txn = call.begin()
    call("write", txn=txn, table="d.t", statement=0)
    call("lock", txn=txn, reads=[], writes=[{"table": "d.t", "kind": "INSERT"}], wait_s=0, **WHO)
    rows = [{"table": "d.t", "inserted": 5, "deleted": 2}]
    for _ in range(2):
        call("commit", txn=txn, vouched=True, rows=rows)
    [one] = run("history", table="d.t")
    assert (one["rows_inserted"], one["rows_deleted"]) == (5, 2)
    call("commit", txn=txn, vouched=True, rows=[{"table": "d.t", "inserted": 7, "deleted": 7}])
    assert run("history", table="d.t") == [one]
    assert "rows[0].inserted must be a whole number" in call.refused("commit", txn=txn, rows=[{"table": "d.t", "inserted": -1}])[2]


def test_analyze_notes_rows_and_bytes(client, call, run):
    create_table(client, "t", {"id": "int"})
    for rows in ([{"id": 1}, {"id": 2}], [{"id": 3}]):
        with connect("d.t", client=client) as stream, stream.transaction():
            stream.write(pa.Table.from_pylist(rows))
    change(client, "d.t", delete=[{"ROW__ID": (1, 536870912, 0)}])
    table = client.get_table("d", "t")
    table.parameters["COLUMN_STATS_ACCURATE"] = '{"BASIC_STATS":"true"}'
    client.alter_table("d", "t", table)

    [one] = run("analyze", table="d.t")
    assert (one["table"], one["rows"]) == ("d.t", 2)
    assert one["bytes"] == call.planned("d.t")["bytes"] > 0
    parameters = client.get_table("d", "t").parameters
    assert (parameters["numRows"], parameters["totalSize"]) == ("2", str(one["bytes"]))
    assert "COLUMN_STATS_ACCURATE" not in parameters
    assert call("table", db="d", table="t")["statistics"] == {"rows": 2, "bytes": one["bytes"]}
    assert client.get_open_txns().open_txns == []


_ANALYZED = {  # type, the row of the query, what an optimizer gets
    "id": ("int", ["0", "0", "0", "0", "1", "2", "2"], {"distinct": 2, "nulls": 0, "low": "1", "high": "2"}),
    "name": ("varchar(9)", ["1", "0", "5", "5", None, None, "1"], {"distinct": 1, "nulls": 1, "average_length": 2.5, "longest": 5}),
    "day": ("date", ["0", "0", "0", "0", "19723", "19724", "2"], {"distinct": 2, "nulls": 0, "low": "2024-01-01", "high": "2024-01-02"}),
    "x": ("double", ["0", "0", "0", "0", "-1.5", "1.0E10", "2"], {"distinct": 2, "nulls": 0, "low": "-1.5", "high": "10000000000.0"}),
    "n": ("decimal(5,2)", ["0", "0", "0", "0", "-0.05", "12.50", "2"], {"distinct": 2, "nulls": 0, "low": "-0.05", "high": "12.50"}),
    "at": ("timestamp", ["0", "0", "0", "0", "1704067200", "1704067201", "2"],
           {"distinct": 2, "nulls": 0, "low": "2024-01-01 00:00:00", "high": "2024-01-01 00:00:01"}),
    "b": ("boolean", ["0", "1", "0", "0", None, None, "0"], {"distinct": 2, "nulls": 0, "low": "false", "high": "true"}),
    "raw": ("binary", ["2", "0", "0", "0", None, None, "0"], {"nulls": 2, "average_length": 0.0, "longest": 0}),
    "gone": ("bigint", ["2", "0", "0", "0", None, None, "0"], {"distinct": 0, "nulls": 2})}
_UNKNOWN = dict.fromkeys(("distinct", "nulls", "low", "high", "average_length", "longest"))


def analyzed(call, *columns):
    answer = call("procedure", procedure="analyze", arguments={"table": "d.t", "columns": list(columns)}, catalog="spark_catalog", **WHO)
    return answer["query"]


def insert(client, *rows):
    with connect("d.t", client=client) as stream, stream.transaction():
        stream.write(pa.Table.from_pylist(list(rows)))


def test_analyze_of_columns_takes_the_row_of_a_query(client, call):
    create_table(client, "t", {**{name: kind for name, (kind, *_) in _ANALYZED.items()}, "l": "array<int>"})
    insert(client, {"id": 1}, {"id": 2})
    query = analyzed(call, "*")
    assert query["sql"].startswith("SELECT CAST(count(*) AS STRING), CAST(count(*) - count(`id`) AS STRING), CAST(0 AS STRING), ")
    assert query["sql"].endswith(" FROM `spark_catalog`.`d`.`t`")
    assert query["arguments"]["columns"] == list(_ANALYZED)
    whole = {**query["arguments"], **WHO, "row": ["2", *(text for _, row, _ in _ANALYZED.values() for text in row)]}
    call(query["call"], **whole)

    assert call.planned("d.t", statistics=[*_ANALYZED, "l", "k"])["column_statistics"] == {
        name: {**_UNKNOWN, **known, "rows": 2} for name, (*_, known) in _ANALYZED.items()}
    for row in ([], ["2"], ["x", *whole["row"][1:]], [*whole["row"][:-1], "x"]):
        assert "row is not that of the query for id, name, " in call.refused(query["call"], **{**whole, "row": row})[2]
    assert "has no column k in its files" in call.refused("procedure", procedure="analyze", arguments={"table": "d.t", "columns": ["k"]}, **WHO)[2]
    assert "is of type array<int>, which has no statistics" in call.refused(
        "procedure", procedure="analyze", arguments={"table": "d.t", "columns": ["L"]}, **WHO)[2]
    assert analyzed(call) is None


def test_an_optimizer_gets_statistics_of_what_its_snapshot_has(client, call):
    """Those of a later state are none of its, and whoever analyzes while others write knows that they may lack something."""
    create_table(client, "t", {"id": "int"})
    insert(client, {"id": 1})
    early = call.begin("READ_ONLY")
    seen = call("snapshot", txn=early, tables=["d.t"])
    insert(client, {"id": 2})
    query = analyzed(call, "id")
    insert(client, {"id": 3})
    call(query["call"], **query["arguments"], **WHO, row=["3", *_ANALYZED["id"][1]])

    def of_early(**more):
        return call("plan", table="d.t", txns=seen["txns"], write_ids=seen["write_ids"]["d.t"], statistics=["id"], **more)["column_statistics"]

    assert of_early() == {}
    assert list(call.planned("d.t", statistics=["id"])["column_statistics"]) == ["id"]
    assert call.planned("d.t", statistics=["id"], as_of={"write_id": 1})["column_statistics"] == {}
    assert "column_statistics" not in call.planned("d.t")
    asked = client.types.TableStatsRequest("d", "t", ["id"], validWriteIdList="d.t:3:9223372036854775807::")
    assert client.get_table_statistics_req(asked).isStatsCompliant is False
    call("commit", txn=early, kind="READ_ONLY")


def test_what_partitions_have_is_joined_where_all_that_are_read_have_some(client, call):
    create_table(client, "t", {"id": "int", "name": "string"}, keys={"k": "int"})
    insert(client, {"id": 1, "k": 1}, {"id": 2, "k": 2}, {"id": 3, "k": 3})
    for key in (1, 2):
        data = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(key, key, 1, 1))
        of_partition = ttypes.ColumnStatisticsDesc(False, "d", "t", f"k={key}")
        client.update_partition_column_statistics(ttypes.ColumnStatistics(of_partition, [ttypes.ColumnStatisticsObj("id", "int", data)]))

    both = call.planned("d.t", statistics=["id", "name"], partitions=[["k", "<", "3"]])["column_statistics"]
    assert both == {"id": {**_UNKNOWN, "distinct": 1, "nulls": 2, "low": "1", "high": "2", "rows": None}}
    assert call.planned("d.t", statistics=["id", "name"])["column_statistics"] == {}


@pytest.mark.parametrize(("kind", "data", "bound"), [
    ("date", {"dateStats": ttypes.DateColumnStatsData(highValue=ttypes.Date(10**9), numNulls=0, numDVs=1)}, None),
    ("timestamp", {"timestampStats": ttypes.TimestampColumnStatsData(highValue=ttypes.Timestamp(10**18), numNulls=0, numDVs=1)}, None),
    ("timestamp", {"longStats": ttypes.LongColumnStatsData(highValue=60, numNulls=0, numDVs=1)}, "1970-01-01 00:01:00")])  # Hive 3
def test_bounds_that_cannot_be_spelled_are_none(client, call, kind, data, bound):
    create_table(client, "t", {"id": kind})
    insert(client, {"id": None})
    described = [ttypes.ColumnStatisticsObj("id", kind, ttypes.ColumnStatisticsData(**data))]
    client.update_table_column_statistics(ttypes.ColumnStatistics(ttypes.ColumnStatisticsDesc(True, "d", "t"), described))
    assert call.planned("d.t", statistics=["id"])["column_statistics"]["id"]["high"] == bound


def test_repair_brings_partitions_and_directories_together(client, run):
    create_table(client, "t", {"id": "int"}, keys={"n": "int", "d": "date"})
    with connect("d.t", client=client) as stream, stream.transaction():
        stream.write(pa.Table.from_pylist([{"id": day, "n": day - 1, "d": date(2024, 1, day)} for day in (1, 2, 3)]))
    root = Path(client.get_table("d", "t").sd.location.removeprefix("file:"))
    registered = sorted(client.get_partition_names("d", "t", -1))
    assert run("repair", table="d.t", mode="sync") == []
    gone, lost, _ = registered
    shutil.move(root / gone, root.parent / "elsewhere")
    client.drop_partition("d", "t", lost.replace("n=", "").replace("d=", "").split("/"), False)
    shutil.copytree(root / lost, root / "n=01" / "d=2024-01-02")  # to Spark the same partition
    shutil.copytree(root / lost, root / "n=7" / "d=2024-01-02")
    [delta] = (root / "n=7" / "d=2024-01-02").glob("delta_*")
    delta.rename(delta.with_name("delta_0000009_0000009_0000"))
    (root / "n=8" / "d=2024-01-02" / "delta_0000001_0000001_0000").mkdir(parents=True)
    (root / "n=9" / ".hive-staging").mkdir(parents=True)

    told = run("repair", table="d.t", mode="SYNC", dry_run=True)
    assert sorted(client.get_partition_names("d", "t", -1)) == [gone, registered[2]]
    assert run("repair", table="d.t", mode="SYNC") == told
    assert [(one["partition"], one["action"]) for one in told] == [
        ("n=01/d=2024-01-02", "added"), (lost, "left out"), ("n=7/d=2024-01-02", "left out"), ("n=8/d=2024-01-02", "left out"), (gone, "dropped")]
    assert "has these values" in told[1]["reason"]
    assert "delta_0000009_0000009_0000 has a write id that d.t has not given out (its last is 1)" in told[2]["reason"]
    assert told[3]["reason"] == "no transaction has committed rows there"
    assert sorted(client.get_partition_names("d", "t", -1)) == ["n=01/d=2024-01-02", registered[2]]
    assert client.get_partition("d", "t", ["01", "2024-01-02"]).sd.location == told[0]["location"]
    assert [row["action"] for row in run("repair", table="d.t")] == ["left out"] * 3
    assert (root / lost).exists()


def test_repair_says_what_it_cannot_do(client, call):
    create_table(client, "t", {"id": "int"})

    def refusal(**arguments):
        return call.refused("procedure", procedure="repair", arguments=arguments, **WHO)[2]

    assert "d.t has no partitions" in refusal(table="d.t")
    assert "mode must be one of ADD, DROP, SYNC, not 'ALL'" in refusal(table="d.t", mode="all")


def test_a_restore_is_worded_where_its_point_is_there_and_else_says_which_is(client, call):
    """The oldest point that is named is the first that can be read: asked of each write id."""
    location = Path(create_table(client, "t", {"id": "int"}))
    for number in range(5):
        with connect("d.t", client=client) as stream, stream.transaction():
            stream.write(pa.Table.from_pylist([{"id": number}]))
    [third] = location.glob("delta_0000003*")
    third.rename(location / "base_0000003")  # an overwrite, and the Cleaner was there
    for path in [*location.glob("delta_0000001*"), *location.glob("delta_0000002*")]:
        shutil.rmtree(path)

    def restore(write_id):
        return call("procedure", procedure="restore", arguments={"table": "d.t", "to_write_id": write_id}, catalog="lake", **WHO)

    def refusal(**arguments):
        return call.refused("procedure", procedure="restore", arguments={"table": "d.t"} | arguments, **WHO)

    for gone in (0, 1, 2):
        assert call.refused("plan", **_now(call), as_of={"write_id": gone})[1] == "NotEnoughHistoryError"
        status, error, message = refusal(to_write_id=gone)
        assert (status, error) == (400, "InvalidOperationError")
        assert message.startswith(f"d.t cannot be restored to write id {gone}: files of that point are gone. ")
        assert message.endswith("base_0000003, and its files are gone. The oldest point that is still there is write id 3.")
    for there in (3, 4, 5):
        call("plan", **_now(call), as_of={"write_id": there})
        assert restore(there) == {"rows": [["d.t", there, 5]], "query": None, "statement":
            "INSERT OVERWRITE TABLE `lake`.`d`.`t` WITH ('partitionOverwriteMode' = 'static') "
            f"SELECT * FROM `lake`.`d`.`t` VERSION AS OF {there}"}
    assert refusal(to_write_id=6)[2] == "d.t has write ids up to 5; as_of_write_id=6 is not among them."
    assert "restore needs to_write_id or to_timestamp, and not both." in refusal()[2]
    assert "restore needs to_write_id or to_timestamp, and not both." in refusal(to_write_id=3, to_timestamp=0)[2]
    latest = call("procedure", procedure="history", arguments={"table": "d.t"})["rows"][0][2]
    at = call("procedure", procedure="restore", arguments={"table": "d.t", "to_timestamp": latest}, **WHO)
    assert at["statement"].endswith(f"FROM `spark_catalog`.`d`.`t` TIMESTAMP AS OF timestamp_millis({latest})")
    assert client.get_open_txns().open_txns == []


def _now(call):
    txn = call.begin("READ_ONLY")
    seen = call("snapshot", txn=txn, tables=["d.t"])
    call("commit", txn=txn, kind="READ_ONLY")
    return {"table": "d.t", "txns": seen["txns"], "write_ids": seen["write_ids"]["d.t"]}


def test_what_is_wrong_is_said_with_its_name(client, call):
    create_table(client, "t", {"id": "int"})
    create_table(client, "plain", {"id": "int"}, transactional="false")
    for name, arguments, refusal in (
            ("compact", {"table": "d.none", "type": "major"}, "d.none"),
            ("compact", {"table": "d.plain", "type": "major"}, "d.plain is not transactional"),
            ("compact", {"table": "a.b.c", "type": "major"}, "table => 'a.b.c' is not a table's name: write db.table."),
            ("compact", {"table": "d.t", "type": "tiny"}, "'tiny' is not a kind of compaction: the kinds are 'minor', 'major' and 'rebalance'."),
            ("compact", {"type": "major"}, "arguments.table is missing"),
            ("abort_transactions", {"txn_ids": ["x"]}, "txn_ids must be ids of transactions, as in array(17, 18)."),
            ("nothing", {}, "There is no procedure nothing: procedures are compact, ")):
        assert refusal in call.refused("procedure", procedure=name, arguments=arguments)[2]


def test_a_table_without_a_database_is_in_that_of_the_caller(client, call):
    create_table(client, "t", {"id": "int"})
    arguments = {"table": "t", "type": "minor"}
    assert call("procedure", procedure="compact", database="d", arguments=arguments, **WHO)["rows"][0][:2] == [1, True]

    status, _, message = call.refused("procedure", procedure="compact", arguments=arguments, **WHO)
    assert (status, "default.t" in message) == (404, True)
