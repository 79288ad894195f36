"""The transaction and write-id calls as clients make them."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from thrift.Thrift import TApplicationException

from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes as types


def opened(client, size=1, **more):
    ids = client.open_txns(types.OpenTxnRequest(num_txns=size, user="ann", hostname="h1", **more)).txn_ids
    return ids[0] if size == 1 else ids


def commit(client, txn_id, **more):
    client.commit_txn(types.CommitTxnRequest(txnid=txn_id, **more))


def write(client, txn_id, partition="p=1", kind=types.LockType.SHARED_WRITE):
    client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest(dbName="DB", tableName="T", txnIds=[txn_id]))
    component = types.LockComponent(
        type=kind, level=types.LockLevel.PARTITION, dbname="db", tablename="t", partitionname=partition,
        operationType=types.DataOperationType.UPDATE, isTransactional=True)
    client.lock(types.LockRequest(component=[component], txnid=txn_id, user="ann", hostname="h1"))


def test_a_writers_life(client):
    txn_id = opened(client)
    assert client.get_open_txns().open_txns == [txn_id]
    given = client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest(
        dbName="db", tableName="t", txnIds=[txn_id])).txnToWriteIds
    assert [(one.txnId, one.writeId) for one in given] == [(txn_id, 1)]
    client.add_dynamic_partitions(types.AddDynamicPartitions(
        txnid=txn_id, writeid=1, dbname="db", tablename="t", partitionnames=["p=1"],
        operationType=types.DataOperationType.INSERT))
    client.heartbeat(types.HeartbeatRequest(txnid=txn_id))
    request = types.GetValidWriteIdsRequest(fullTableNames=["db.T"])
    [before] = client.get_valid_write_ids(request).tblValidWriteIds
    commit(client, txn_id)
    [after] = client.get_valid_write_ids(request).tblValidWriteIds

    assert (before.fullTableName, before.writeIdHighWaterMark, before.invalidWriteIds, before.minOpenWriteId) == (
        "db.T", 1, [1], 1)
    assert (after.writeIdHighWaterMark, after.invalidWriteIds, after.minOpenWriteId, after.abortedBits) == (1, [], None, b"")
    assert client.get_max_allocated_table_write_id(
        types.MaxAllocatedTableWriteIdRequest(dbName="db", tableName="T")).maxWriteId == 1


def test_transactions_of_a_policy_by_their_ids_at_the_source(client):
    """As Hive 4.2.0 answers, which knows policies by their names as sent."""
    ids = opened(client, 2, txn_type=types.TxnType.REPL_CREATED, replPolicy="Pol.*", replSrcTxnIds=[11, 9])
    replayed = [client.get_replayed_txns_for_policy(policy).replTxnMapEntry for policy in ("Pol.*", "pol.*", "Pol", "", None)]
    assert replayed == [{"11": str(ids[0]), "9": str(ids[1])}, {}, {}, {}, {}]


def test_snapshots(client):
    first, second, third = opened(client, 3)
    client.abort_txn(types.AbortTxnRequest(txnid=first))
    commit(client, second)
    reader = opened(client, txn_type=types.TxnType.READ_ONLY)

    told = client.get_open_txns()
    everything = client.get_open_txns_req(types.GetOpenTxnsRequest())
    info = client.get_open_txns_info()

    assert (told.txn_high_water_mark, told.open_txns, told.abortedBits, told.min_open_txn) == (
        4, [first, third], b"\x01", third)
    assert everything.open_txns == [first, third, reader]
    assert [(one.id, one.state, one.user, one.hostname) for one in info.open_txns] == [
        (first, types.TxnState.ABORTED, "ann", "h1"), (third, types.TxnState.OPEN, "ann", "h1"),
        (reader, types.TxnState.OPEN, "ann", "h1")]
    assert info.open_txns[0].startedTime > 1_600_000_000_000


def test_declared_exceptions(client):
    aborted, committed = opened(client, 2)
    client.abort_txn(types.AbortTxnRequest(txnid=aborted, errorCode=50005))
    commit(client, committed)

    with pytest.raises(types.TxnAbortedException) as refused:
        commit(client, aborted)
    assert refused.value.message.startswith("Transaction txnid:1 already aborted")
    with pytest.raises(types.NoSuchTxnException) as unknown:
        client.abort_txn(types.AbortTxnRequest(txnid=committed))
    assert unknown.value.message.startswith("Transaction txnid:2 is already committed. Committed at ")
    with pytest.raises(types.NoSuchLockException):
        client.heartbeat(types.HeartbeatRequest(lockid=77))
    with pytest.raises(types.TxnAbortedException):
        client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[aborted]))
    with pytest.raises(types.MetaException) as seeded:
        client.seed_txn_id(types.SeedTxnIdRequest(seedTxnId=1))
    assert seeded.value.message == "Invalid txnId seed 1, the highWaterMark is 2"
    client.abort_txns(types.AbortTxnsRequest(txn_ids=[aborted, committed, 99]))


def test_what_is_not_declared_is_an_internal_error_with_its_cause(client):
    with pytest.raises(TApplicationException) as refused:
        opened(client, 0)
    assert refused.value.type == TApplicationException.INTERNAL_ERROR
    assert refused.value.message == "Invalid input for number of txns: 0"


@pytest.mark.parametrize("request_", [
    {"agentInfo": "x\0y"}, {"replPolicy": "p", "txn_type": types.TxnType.REPL_CREATED}])
def test_bad_input_fails_alone_and_the_connection_stays(client, request_):
    with pytest.raises(TApplicationException):
        opened(client, 1, **request_)
    assert opened(client) == 1


def test_x4_the_absent_flag_is_not_the_true_one(client):
    """A 3.1 client and Trino never send it, and rely on the check."""
    outcomes = {}
    for flag in (None, True, False):
        winner, loser = opened(client, 2)
        write(client, winner, kind=types.LockType.EXCL_WRITE)
        commit(client, winner)
        write(client, loser, kind=types.LockType.EXCL_WRITE)
        try:
            commit(client, loser, **({} if flag is None else {"exclWriteEnabled": flag}))
            outcomes[flag] = "committed"
        except types.TxnAbortedException as refused:
            outcomes[flag] = refused.message
    assert outcomes[True] == "committed"
    assert outcomes[None] == ("Aborting [txnid:2,2] due to a write conflict on db/t/p=1 committed by [txnid:1,2] u/u")
    assert "write conflict" in outcomes[False]


def test_heartbeat_ranges(client):
    first, second, third = opened(client, 3)
    client.abort_txn(types.AbortTxnRequest(txnid=second))
    commit(client, third)

    told = client.heartbeat_txn_range(types.HeartbeatTxnRangeRequest(min=first, max=third))

    assert (told.aborted, told.nosuch) == ({second}, {third})


def test_many_clients_at_once_share_batches_and_get_their_own_answers(server):
    def work(_):
        with MetastoreClient(server.thrift_uri) as client:
            mine = []
            for _ in range(20):
                txn_id = opened(client)
                client.heartbeat(types.HeartbeatRequest(txnid=txn_id))
                write(client, txn_id, f"p={txn_id}")
                commit(client, txn_id)
                mine.append(txn_id)
            return mine

    with ThreadPoolExecutor(8) as pool:
        ids = [txn_id for mine in pool.map(work, range(8)) for txn_id in mine]

    assert sorted(ids) == list(range(1, 161))
    assert server.database.once("SELECT count(*), count(DISTINCT write_id) FROM completed_txn_components") == [(160, 160)]
    assert server.database.once("SELECT count(*) FROM txns WHERE state <> 'committed'") == [(0,)]


def test_other_calls(client):
    txn_id = opened(client)
    write(client, txn_id)
    client.add_write_ids_to_min_history(txn_id, {"db.t": 1})
    client.seed_write_id(types.SeedTableWriteIdsRequest(dbName="db", tableName="u", seedWriteId=7))

    assert client.get_latest_txnid_in_conflict(txn_id) == 0
    assert client.get_max_allocated_table_write_id(
        types.MaxAllocatedTableWriteIdRequest(dbName="db", tableName="u")).maxWriteId == 7
    with pytest.raises(types.MetaException):
        client.seed_write_id(types.SeedTableWriteIdsRequest(dbName="db", tableName="u", seedWriteId=9))
    with pytest.raises(types.MetaException) as unknown:
        client.get_valid_write_ids(types.GetValidWriteIdsRequest(fullTableNames=["db.t"], writeId=5))
    assert unknown.value.message == "invalid write id 5 for table db.t"
