"""What transactions wrote, file by file: told by their writers, kept for whoever reads of their commits."""

import pytest
from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TMemoryBuffer

from metastore.thrift_gen.hive_metastore import ttypes as types
from metastore.txns.events import store as event_store
from metastore.txns.write_events import store as write_event_store
from tests.support.transactions import seconds

ORC = "org.apache.hadoop.hive.ql.io.orc.Orc"
LISTENER = "org.apache.hive.hcatalog.listener.DbNotificationListener"


@pytest.fixture
def server_settings(request):
    return {"hive.metastore.transactional.event.listeners": getattr(request, "param", LISTENER)}


@pytest.fixture
def tables(client, tmp_path):
    """Table ``flat``, and ``parts`` with the partitions p=1 and p=a%2Fb; where they are."""
    columns = [types.FieldSchema("id", "int", "")]

    def sd(name):
        return types.StorageDescriptor(
            cols=columns, location=f"file:{tmp_path}/{name}", inputFormat=f"{ORC}InputFormat", outputFormat=f"{ORC}OutputFormat",
            serdeInfo=types.SerDeInfo("", "s", {}))

    client.create_database(types.Database("db", "", f"file:{tmp_path}/db", {}))
    for name, keys in (("flat", []), ("parts", [types.FieldSchema("p", "string", "")])):
        client.create_table(types.Table(
            tableName=name, dbName="db", owner="ann", sd=sd(name), partitionKeys=keys, tableType="MANAGED_TABLE",
            parameters={"transactional": "true", "transactional_properties": "default"}))
    for value in ("1", "a/b"):
        client.add_partition(types.Partition([value], "db", "parts", sd=sd(f"parts/{value.replace('/', '_')}"), parameters={}))
    return f"file:{tmp_path}"


def opened(client, **more):
    return client.open_txns(types.OpenTxnRequest(num_txns=1, user="ann", hostname="h1", **more)).txn_ids[0]


def note(txn_id, files, table="flat", values=None, write_id=7, **more):
    data = types.InsertEventRequestData(replace=False, filesAdded=files, **more)
    return types.WriteNotificationLogRequest(txn_id, write_id, "Db", table, data, values)


def written(client, txn_id, *where):
    return client.get_all_write_event_info(types.GetAllWriteEventInfoRequest(txn_id, *where))


def parsed(text, struct):
    """Thrift's JSON, read by Thrift."""
    struct.read(TJSONProtocol(TMemoryBuffer(text.encode())))
    return struct


def test_what_a_writer_tells_is_there_for_whoever_reads_of_the_commit(client, tables):
    txn_id = opened(client)
    client.add_write_notification_log(note(
        txn_id, ["file:/x/delta_7_7/bucket_0", "file:/x/delta_7_7/bucket_1"], filesAddedChecksum=["aa", "bb"],
        subDirectoryList=["delta_7_7", "delta_7_7"]))
    client.add_write_notification_log_in_batch(types.WriteNotificationLogBatchRequest("hive", "db", "parts", [
        note(txn_id, ["file:/y/f1"], "parts", ["a/b"], 3), note(txn_id, ["file:/y/f2"], "PARTS", ["1"], 3)]))
    client.commit_txn(types.CommitTxnRequest(txn_id))

    flat, first, second = written(client, txn_id)
    assert (flat.writeId, flat.database, flat.table, flat.partition) == (7, "db", "flat", "")
    assert flat.files == "file:/x/delta_7_7/bucket_0###delta_7_7]file:/x/delta_7_7/bucket_1###delta_7_7"
    assert parsed(flat.tableObj, types.Table()) == client.get_table("db", "flat")
    assert flat.partitionObj is None
    assert [(one.table, one.partition, one.writeId, one.files) for one in (first, second)] == [
        ("parts", "p=1", 3, "file:/y/f2###"), ("parts", "p=a%2Fb", 3, "file:/y/f1###")]
    assert parsed(second.tableObj, types.Table()) == client.get_table("db", "parts")
    assert parsed(second.partitionObj, types.Partition()) == client.get_partition("db", "parts", ["a/b"])
    assert [one.table for one in written(client, txn_id, "DB", "Parts")] == ["parts", "parts"]
    assert [one.table for one in written(client, txn_id, "*", "flat")] == ["flat"]
    assert written(client, txn_id, "other") == written(client, txn_id + 1) == []


def test_a_repeated_call_adds_nothing_and_another_one_adds_its_files(client, tables):
    txn_id = opened(client)
    for files in (["a", "b"], ["a", "b"], ["b", "d", "c", "c"]):
        client.add_write_notification_log(note(txn_id, files))
    client.add_write_notification_log_in_batch(types.WriteNotificationLogBatchRequest("hive", "db", "flat", [
        note(txn_id, ["e"]), note(txn_id, ["c", "f"])]))

    assert [one.files for one in written(client, txn_id)] == ["a###]b###]d###]c###]e###]f###"]


BAD = [
    (lambda txn: note(99, ["a"]), "No such transaction txnid:99"),
    (lambda txn: note(txn, ["a"], "none"), "db.none table not found"),
    (lambda txn: note(txn, ["a"], "parts", ["2"]), "Partition p=2 of .*db.parts not found"),
    (lambda txn: note(txn, ["a"], "parts"), "has 1 partition keys, not 0"),
    (lambda txn: note(txn, ["a"], "flat", ["1"]), "has 0 partition keys, not 1"),
    (lambda txn: note(txn, ["a"], subDirectoryList=["d", "e"]), "subDirectoryList has 2 entries for 1 files"),
    (lambda txn: note(txn, ["a]b"]), "cannot be noted that has ] in its name: a]b"),
    (lambda txn: note(txn, ["a\0"]), "cannot be stored"),
    (lambda txn: types.WriteNotificationLogRequest(txn, 7, "db", "", types.InsertEventRequestData(filesAdded=[])), "name of a database"),
    (lambda txn: types.WriteNotificationLogRequest(txn, 7, "db", "flat"), "Required field 'fileInfo' is unset"),
]


def test_what_cannot_be_noted_is_refused_with_a_sentence_and_nothing_of_its_batch_is_kept(client, tables):
    txn_id = opened(client)
    for bad, sentence in BAD:
        batch = types.WriteNotificationLogBatchRequest("hive", "db", "flat", [note(txn_id, ["good"]), bad(txn_id)])
        for call, request in ((client.add_write_notification_log, bad(txn_id)),
                              (client.add_write_notification_log_in_batch, batch)):
            with pytest.raises(TApplicationException, match=sentence):
                call(request)

    assert written(client, txn_id) == written(client, 99) == []
    assert client.getName()


def test_who_has_ended_writes_nothing_any_more(client, tables):
    aborted, done = opened(client), opened(client)
    client.abort_txn(types.AbortTxnRequest(aborted))
    client.commit_txn(types.CommitTxnRequest(done))

    with pytest.raises(TApplicationException, match=f"txnid:{aborted} already aborted"):
        client.add_write_notification_log(note(aborted, ["a"]))
    with pytest.raises(TApplicationException, match=f"txnid:{done} is already committed"):
        client.add_write_notification_log(note(done, ["a"]))


def replayed(client, source, *infos):
    client.commit_txn(types.CommitTxnRequest(
        source, replPolicy="p", txn_type=types.TxnType.REPL_CREATED, writeEventInfos=list(infos)))


def test_a_replayed_commit_tells_of_its_files_as_they_are_here(client, tables):
    [target] = client.open_txns(types.OpenTxnRequest(
        1, "ann", "h1", replPolicy="p", replSrcTxnIds=[70], txn_type=types.TxnType.REPL_CREATED)).txn_ids
    there = "hdfs://far/wh/flat/delta_5_5/bucket_0#1f#hdfs://far/cm#delta_5_5]hdfs://far/wh/flat/old"

    with pytest.raises(TApplicationException, match=r"none table not found"):
        replayed(client, 70, types.WriteEventInfo(5, "db", "none", there))
    assert client.get_open_txns().open_txns == [target]
    for _ in range(2):
        replayed(client, 70, types.WriteEventInfo(5, "db", "flat", there),
                 types.WriteEventInfo(5, "db", "parts", "", "P=1"))

    flat, parts = written(client, target)
    assert flat.files == f"{tables}/flat/delta_5_5/bucket_0###delta_5_5]{tables}/flat/old###"
    assert (parts.partition, parts.files, parts.writeId) == ("p=1", "", 5)
    assert parsed(parts.partitionObj, types.Partition()).values == ["1"]
    assert client.get_open_txns().open_txns == []


@pytest.mark.parametrize("server_settings", [""], indirect=True)
def test_off_nothing_is_looked_at_or_kept(server, client):
    """Not even whether the table is there: Hive's clients may call it whatever the server's configuration is."""
    txn_id = opened(client)
    client.add_write_notification_log(note(txn_id, ["a"], "none"))
    client.add_write_notification_log_in_batch(types.WriteNotificationLogBatchRequest("hive", "db", "none", []))
    client.commit_txn(types.CommitTxnRequest(txn_id))

    assert written(client, txn_id) == []
    assert server.database.once("SELECT count(*) FROM write_events") == [(0,)]


def test_whether_it_is_on_is_a_matter_of_the_database(server, client, tables):
    """Another server may have switched it off since this one started."""
    event_store.switch(server.database, on=False)
    txn_id = opened(client)
    client.add_write_notification_log(note(txn_id, ["a"]))

    assert written(client, txn_id) == []


def test_notes_are_kept_as_long_as_events_and_go_in_batches(monkeypatch, server, client, tables, test_clock):
    monkeypatch.setattr(write_event_store, "BATCH", 2)
    txn_ids = [opened(client) for _ in range(5)]
    for txn_id in txn_ids:
        client.add_write_notification_log(note(txn_id, ["a"]))
    test_clock.advance(seconds(90_000))
    late = opened(client)
    client.add_write_notification_log(note(late, ["b"]))

    assert server.services.events.purge().write_events == 5
    assert [len(written(client, txn_id)) for txn_id in (*txn_ids, late)] == [0] * 5 + [1]
