"""The compaction calls over Thrift: structs, texts and what old clients are spared."""

from copy import deepcopy

import pytest
from thrift.Thrift import TApplicationException

from metastore.client.compactions import require_claim
from metastore.compaction.working.service import WorkerService
from metastore.errors import ClaimLostError
from metastore.thrift_gen.hive_metastore.ttypes import MetaException
from metastore.thrift_server.convert.compaction import stringable_map

DECLARED = (MetaException, TApplicationException)
"""Some of these calls declare no exception at all."""


@pytest.fixture
def types(client, lake):
    for name in ("t", "u", "a", "b"):
        lake.table(name)
    lake.table("p", keys=["ds"])
    lake.partition("ds=1", "p")
    return client.types


def request(types, **fields):
    return types.CompactionRequest(**{"dbname": "D", "tablename": "T", "type": types.CompactionType.MAJOR, **fields})


def test_the_answers_to_a_repeated_request(client, types):
    """Hive 4 prints a refusal; 2.3 and 3.1 print the id and state that are there."""
    first = client.compact2(request(types))
    older = client.compact2(request(types))
    newer = client.compact2(request(types, initiatorId="h1-manual"))

    assert (first.id, first.state, first.accepted) == (1, "initiated", True)
    assert (older.id, older.state, older.accepted) == (1, "initiated", False)
    assert (newer.id, newer.state, newer.accepted) == (-1, "refused", False)
    assert newer.errormessage == "Compaction is already scheduled with state='initiated' and id=1"


def test_compact_answers_nothing_and_queues(client, types):
    assert client.compact(request(types, tablename="P", partitionname="DS=1")) is None
    [row] = client.show_compact(types.ShowCompactRequest()).compacts

    assert (row.dbname, row.tablename, row.partitionname, row.state, row.type) == ("d", "p", "ds=1", "initiated", 2)
    assert (row.hadoopJobId, row.poolName, row.start, row.endTime) == ("None", "default", 0, None)
    assert row.initiatorId.endswith("-manual")
    assert row.enqueueTime > 1_700_000_000_000


def test_old_clients_are_spared_types_that_they_cannot_read(client, types):
    """COMP-4: an unknown number in a required field fails their whole answer."""
    client.compact2(request(types, type=types.CompactionType.REBALANCE))
    client.compact2(request(types, tablename="u"))

    assert [row.type for row in client.show_compact(types.ShowCompactRequest()).compacts] == [2]
    assert len(client.show_compact(types.ShowCompactRequest(limit=-1)).compacts) == 2


def test_a_remote_workers_way(client, types):
    """The calls of Hive's Worker, in its order."""
    client.compact2(request(types, properties={"a": "1", "ü": ":"}, poolName="", numberOfBuckets=4, orderByClause="x"))
    found = client.find_next_compact2(types.FindNextCompactRequest("w-1", "4.0.1")).ci
    assert (found.id, found.state, found.type, found.numberOfBuckets, found.orderByClause) == (1, "w", 2, 4, "x")
    assert found.properties == "2:1:a1:11:ü1::"
    assert client.find_next_compact("w-2").ci is None

    found.highestWriteId, found.runas, found.workerId = 5, "ann", "w-1"
    txn_id = client.open_txns(types.OpenTxnRequest(1, "ann", "h1", txn_type=types.TxnType.COMPACTION)).txn_ids[0]
    client.update_compactor_state(found, txn_id)
    client.set_hadoop_jobid("job_7", 1)
    assert client.find_columns_with_stats(found) == []
    client.mark_compacted(found)
    client.commit_txn(types.CommitTxnRequest(txn_id))
    [row] = client.show_compact(types.ShowCompactRequest(id=1)).compacts
    assert (row.state, row.hadoopJobId, row.runAs, row.hightestWriteId) == ("ready for cleaning", "job_7", "ann", 5)
    assert (row.txnId, row.nextTxnId) == (txn_id, txn_id)
    assert row.commitTime > 0
    [latest] = client.get_latest_committed_compaction_info(
        types.GetLatestCommittedCompactionInfoRequest("d", "t")).compactions
    assert (latest.id, latest.state) == (1, "r")

    with pytest.raises(DECLARED, match="is ready for cleaning, so it cannot be marked succeeded"):
        client.mark_cleaned(found)  # else what aborted transactions wrote would be forgotten, and not be removed


def test_numbers_of_deltas(client, types, database):
    """COMP-24: a compactor of Hive's says them, and forgets them; below its threshold they are nothing."""
    kinds = types.CompactionMetricsMetricType

    def said(partition, kind, number, threshold=0):
        return client.update_compaction_metrics_data(types.CompactionMetricsDataStruct("D", "T", partition, kind, number, 1, threshold))

    def known():
        return database.once('SELECT db, "table", partition, deltas, small_deltas, obsolete_deltas FROM delta_measures ORDER BY 3')

    assert said(None, kinds.NUM_DELTAS, 7)
    assert said(None, kinds.NUM_SMALL_DELTAS, 5)
    assert said("x=1", kinds.NUM_OBSOLETE_DELTAS, 3)
    assert said("x=2", kinds.NUM_DELTAS, 3, threshold=4)
    assert known() == [("d", "t", "", 7, 5, 0), ("d", "t", "x=1", 0, 0, 3)]
    assert said(None, kinds.NUM_DELTAS, 9)
    client.remove_compaction_metrics_data(types.CompactionMetricsDataRequest("d", "t", None, kinds.NUM_SMALL_DELTAS))
    client.remove_compaction_metrics_data(types.CompactionMetricsDataRequest("d", "t", "x=1", kinds.NUM_OBSOLETE_DELTAS))
    assert known() == [("d", "t", "", 9, 0, 0)]
    with pytest.raises(DECLARED, match="type of CompactionMetricsDataStruct is 7: use one of"):
        said(None, 7, 1)
    with pytest.raises(DECLARED, match="needs the names"):
        client.remove_compaction_metrics_data(types.CompactionMetricsDataRequest("", "t", None, kinds.NUM_DELTAS))


def test_a_worker_ends_what_it_has_nothing_to_do_for(client, types):
    client.compact2(request(types))
    found = client.find_next_compact2(types.FindNextCompactRequest("w-1", "4.0.1")).ci
    client.mark_cleaned(found)
    [row] = client.show_compact(types.ShowCompactRequest(id=1)).compacts
    assert row.state == "succeeded"


@pytest.mark.parametrize("worker", [None, "w-2"])
def test_calls_of_workers_are_for_who_has_claimed(client, types, worker):
    client.compact2(request(types))
    found = client.find_next_compact2(types.FindNextCompactRequest("w-1", "4.0.1")).ci
    stranger = deepcopy(found)
    stranger.workerId = worker
    for call in (client.mark_compacted, client.mark_cleaned, client.mark_failed, client.mark_refused,
                 lambda info: client.update_compactor_state(info, 1)):
        with pytest.raises(DECLARED, match="not claimed by worker"):
            call(stranger)
    client.mark_compacted(found)
    for call in (client.mark_cleaned, client.mark_failed, client.mark_refused):
        with pytest.raises(DECLARED, match="is ready for cleaning"):
            call(found)


def test_a_remote_worker_names_its_job_once(client, types):
    client.compact2(request(types))
    with pytest.raises(DECLARED, match="not claimed"):
        client.set_hadoop_jobid("job_0", 1)
    client.find_next_compact2(types.FindNextCompactRequest("w-1", "4.0.1"))
    for _ in range(2):  # the answer was lost
        client.set_hadoop_jobid("job_7", 1)
    with pytest.raises(DECLARED, match="not claimed"):
        client.set_hadoop_jobid("job_8", 1)


def test_nobody_outside_speaks_for_a_worker_of_ours(client, types, server):
    """Its id is shown to everybody."""
    client.compact2(request(types))
    WorkerService(server.database, server.settings.compaction).claim("host-1", "v", None)
    claimed = types.CompactionInfoStruct(id=1, dbname="d", tablename="t", type=2, workerId="host-1")
    for call in (client.mark_compacted, client.mark_cleaned, client.mark_failed, client.mark_refused):
        with pytest.raises(DECLARED, match="not claimed by worker"):
            call(claimed)
    with pytest.raises(DECLARED, match="not claimed"):
        client.set_hadoop_jobid("job_1", 1)


def test_a_request_for_compaction_names_no_directory(client, types, server, tmp_path):
    """Once its table is gone the Cleaner would remove it."""
    with pytest.raises(DECLARED, match="submit_for_cleanup"):
        client.compact2(request(types, properties={"location": (tmp_path / "x").as_uri()}))
    outside = request(types, properties={"location": "file:/srv/elsewhere"})
    with pytest.raises(DECLARED, match="does not lie inside the warehouse"):
        client.submit_for_cleanup(outside, 1, 1)


def test_ends_and_their_errors(client, types):
    """COMP-Q13: without a claim there is no end, and no line of history."""
    client.compact2(request(types))
    found = client.find_next_compact2(types.FindNextCompactRequest("w-1", "4")).ci
    stranger = types.CompactionInfoStruct(id=1, dbname="d", tablename="t", type=2, workerId="w-9", errorMessage="x")
    for end in (client.mark_failed, client.mark_refused):
        with pytest.raises(types.MetaException, match="not claimed by worker w-9"):
            end(stranger)
    found.errorMessage = "no disk"
    client.mark_failed(found)
    with pytest.raises(types.MetaException, match="is failed, so it cannot be marked failed"):
        client.mark_failed(found)
    found.id, found.errorMessage = 0, "forged"  # which would be a line of history about a table of the client's choice
    for end in (client.mark_failed, client.mark_refused, client.mark_compacted, client.mark_cleaned):
        with pytest.raises(types.MetaException, match="0 is not claimed by worker w-1"):
            end(found)

    rows = {row.state: row.errorMessage for row in client.show_compact(types.ShowCompactRequest()).compacts}
    assert rows == {"failed": "no disk"}


def test_a_claim_needs_a_name(client, types):
    """COMP-Q05."""
    with pytest.raises(types.MetaException, match="workerId"):
        client.find_next_compact2(types.FindNextCompactRequest())


def test_abort_compactions(client, types):
    client.compact2(request(types))
    answer = client.abort_Compactions(types.AbortCompactionRequest([1, 5])).abortedcompacts

    assert {one.compactionId: one.status for one in answer.values()} == {1: "Success", 5: "Error"}
    assert answer[5].message == "No Such Compaction Id Available"


@pytest.mark.parametrize("wanted", [{"state": "nonsense"}, {"order": "id; drop table x"}])
def test_filters_that_cannot_be_understood(client, types, wanted):
    from thrift.Thrift import TApplicationException

    with pytest.raises(TApplicationException, match="use one of"):
        client.show_compact(types.ShowCompactRequest(**wanted))


def test_filters_and_hives_column_names(client, types):
    client.compact2(request(types, tablename="a"))
    client.compact2(request(types, tablename="b", type=types.CompactionType.MINOR))

    def tables(**wanted):
        return [row.tablename for row in client.show_compact(types.ShowCompactRequest(**wanted)).compacts]

    assert tables(order='"CC_TABLE" desc') == ["b", "a"]
    assert tables(order="tabname asc", limit=1) == ["a"]
    assert tables(type=types.CompactionType.MINOR, dbName="D", state="Initiated") == ["b"]
    assert tables(tbName="A", poolName="default") == ["a"]


@pytest.mark.parametrize(("values", "text"), [
    ({}, "0:"), ({"a": "bc"}, "1:1:a2:bc"), ({"k:1": ""}, "1:3:k:10:"), ({"😀": "ü"}, "1:2:😀1:ü")])
def test_hives_map_as_text(values, text):
    assert stringable_map(values) == text


def test_what_cannot_be_compacted_is_refused(client, types, lake):
    """COMP-Q30."""
    lake.table("plain", transactional="false")
    for table, partition, said in (("none", None, "Table d.none does not exist"), ("plain", None, "non-ACID table d.plain"),
                                   ("p", "ds=2", "d.p has no partition ds=2"), ("t", "ds=1", "d.t has no partition ds=1")):
        for ask in (client.compact, client.compact2):
            with pytest.raises(TApplicationException, match=said):
                ask(request(types, tablename=table, partitionname=partition))
    assert client.show_compact(types.ShowCompactRequest(limit=-1)).compacts == []


@pytest.mark.parametrize(("field", "said"), [
    ({"orderByClause": "ORDER BY a; DROP TABLE t"}, "cannot be understood"), ({"numberOfBuckets": 4097}, "4096 are the most"),
    ({"properties": {"tblprops.comment": "x"}}, "'tblprops.comment' with the value 'x' would not change")])
def test_what_a_rebalance_cannot_do_is_refused(client, types, field, said):
    with pytest.raises(TApplicationException, match=said):
        client.compact2(request(types, type=types.CompactionType.REBALANCE, **field))


@pytest.mark.parametrize("key", ["compactor.spark.jars", "compactor.spark.extraListeners"])
def test_what_must_not_reach_a_job_is_refused(client, types, key):
    with pytest.raises(TApplicationException, match=f"The property '{key}'"):
        client.compact2(request(types, properties={key: "/tmp/x"}))


def test_the_jobs_question(client, types, lake):
    """Before it publishes: its transaction is open, and the claim is that of its attempt."""
    client.compact2(request(types))
    found = client.find_next_compact2(types.FindNextCompactRequest("w-1", "4.0.1")).ci
    txn_id, other = client.open_txns(types.OpenTxnRequest(2, "ann", "h1", txn_type=types.TxnType.COMPACTION)).txn_ids
    client.update_compactor_state(found, txn_id)

    require_claim(client, found.id, txn_id)
    with pytest.raises(ClaimLostError, match="does not belong to transaction"):
        require_claim(client, found.id, other)
    lake.drop_for_good()
    with pytest.raises(ClaimLostError):
        require_claim(client, found.id, txn_id)
    client.abort_txn(types.AbortTxnRequest(txn_id))
    with pytest.raises(types.TxnAbortedException):
        require_claim(client, found.id, txn_id)
