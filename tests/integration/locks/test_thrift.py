"""The lock calls as clients make them: names, defaults, exceptions, what old and odd clients send."""

import itertools
from types import SimpleNamespace

import pytest
from thrift.Thrift import TApplicationException

from metastore.client import MetastoreClient
from metastore.config import LockSettings
from metastore.locks.service import LockResult
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers import locks as handlers

TYPES = {"S": ttypes.LockType.SHARED_READ, "W": ttypes.LockType.SHARED_WRITE, "E": ttypes.LockType.EXCL_WRITE,
         "X": ttypes.LockType.EXCLUSIVE}
ACQUIRED, WAITING, REFUSED = ttypes.LockState.ACQUIRED, ttypes.LockState.WAITING, ttypes.LockState.NOT_ACQUIRED


def component(letter, db, table=None, partition=None, level=ttypes.LockLevel.TABLE, **more):
    return ttypes.LockComponent(TYPES[letter], level, db, table, partition, **more)


@pytest.fixture
def lock(client):
    def locked(*components, txnid=None, **more):
        return client.lock(ttypes.LockRequest(list(components), txnid, "ann", "h1", **more))
    return locked


def shown(client, **filters):
    return client.show_locks(ttypes.ShowLocksRequest(**filters)).locks


def test_a_request_with_more_components_than_may_be_is_refused(lock):
    with pytest.raises(TApplicationException, match="has at most 10000 components .* this one has 10001: lock the table"):
        lock(*[component("S", "db", "t", f"p={number}") for number in range(10_001)])


def test_iceberg_holds_a_lock_around_its_commit(client, server):  # Z01, CLIENT-8
    with MetastoreClient(server.thrift_uri) as other:
        mine = ttypes.LockRequest([component("X", "db", "t")], user="ann", hostname="h1", agentInfo="Iceberg-1")
        theirs = ttypes.LockRequest([component("X", "db", "t")], user="bob", hostname="h2", agentInfo="Iceberg-2")
        first, second = client.lock(mine), other.lock(theirs)
        assert (first.state, second.state) == (ACQUIRED, WAITING)

        client.heartbeat(ttypes.HeartbeatRequest(lockid=first.lockid))
        found = [row for row in shown(client, dbname="db", tablename="t") if row.agentInfo == "Iceberg-1"]
        client.unlock(ttypes.UnlockRequest(first.lockid))

        assert [row.lockid for row in found] == [first.lockid]
        assert other.check_lock(ttypes.CheckLockRequest(second.lockid)).state == ACQUIRED
        client.unlock(ttypes.UnlockRequest(first.lockid))


def test_trino_locks_before_it_allocates(client, lock, database):  # Z02, CLIENT-9
    [txn_id] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids
    assert lock(component("S", "db", "t", operationType=ttypes.DataOperationType.INSERT, isTransactional=True),
                txnid=txn_id).state == ACQUIRED
    [pair] = client.allocate_table_write_ids(ttypes.AllocateTableWriteIdsRequest("db", "t", [txn_id])).txnToWriteIds
    client.commit_txn(ttypes.CommitTxnRequest(txn_id))

    assert database.once("SELECT write_id, update_delete FROM completed_txn_components") == [(pair.writeId, False)]
    assert shown(client) == []


def test_names_are_compared_in_their_stored_spelling(client, lock):  # L29, L30
    assert lock(component("X", "MyDB", "T", "P=1")).state == ACQUIRED
    assert lock(component("X", "mydb", "t", "p=1")).state == WAITING
    assert lock(component("X", "@hive#mydb", "t", "p=1")).state == WAITING
    assert lock(component("X", "mydb", "t", "p=a%3Ab")).state == ACQUIRED
    assert lock(component("X", "mydb", "t", "P=a%3ab")).state == WAITING
    assert lock(component("X", "@ice#mydb", "t", "p=1")).state == ACQUIRED

    assert {(row.dbname, row.tablename, row.partname) for row in shown(client)} == {
        ("mydb", "t", "p=1"), ("mydb", "t", "p=a%3Ab")}


def test_what_is_named_is_what_is_locked(lock):  # L32
    assert lock(component("X", "db", "t", level=ttypes.LockLevel.DB)).state == ACQUIRED
    assert lock(component("X", "db", "u")).state == ACQUIRED
    assert lock(component("X", "db", "", "")).state == WAITING


def test_filters(client, lock):  # L42, LOCK-12, LOCK-13
    for names in (("db",), ("db", "t"), ("db", "t", "p=1"), ("other", "t")):
        lock(component("S", *names))

    def names(**filters):
        return [tuple(filter(None, (row.dbname, row.tablename, row.partname))) for row in shown(client, **filters)]

    assert names(dbname="DB") == [("db",), ("db", "t"), ("db", "t", "p=1")]
    assert names(dbname="db", tablename="T") == [("db", "t"), ("db", "t", "p=1")]
    assert names(dbname="db", tablename="t", partname="P=1") == [("db", "t", "p=1")]
    assert len(names(dbname="", tablename="", partname="")) == 4
    assert names(txnid=7) == []


def test_rows_of_show_locks(client, lock):  # L41, L43, L44
    [txn_id] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids
    held = lock(component("X", "db", "t"))
    waiting = lock(component("S", "db", "t"), txnid=txn_id, agentInfo="query 1")

    rows = {row.lockid: row for row in shown(client)}

    holder, waiter = rows[held.lockid], rows[waiting.lockid]
    assert (holder.state, holder.type, holder.txnid, holder.agentInfo, holder.lockIdInternal) == (
        ACQUIRED, TYPES["X"], 0, "Unknown", 1)
    assert holder.acquiredat
    assert holder.lastheartbeat
    assert (holder.blockedByExtId, holder.blockedByIntId) == (None, None)
    assert (waiter.state, waiter.txnid, waiter.agentInfo, waiter.acquiredat, waiter.lastheartbeat) == (
        WAITING, txn_id, "query 1", None, 0)
    assert (waiter.blockedByExtId, waiter.blockedByIntId) == (held.lockid, 1)
    assert (waiter.user, waiter.hostname) == ("ann", "h1")


def test_who_does_not_want_to_wait(client, lock):  # L33, L37
    lock(component("X", "db", "t"))
    [txn_id] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids

    read = lock(component("S", "db", "t"), txnid=txn_id, zeroWaitReadEnabled=True)
    ctas = lock(component("E", "db", "t"), txnid=txn_id, exclusiveCTAS=True)

    assert (read.state, ctas.state) == (REFUSED, REFUSED)
    assert read.errorMessage.startswith("Unable to acquire read lock due to an existing exclusive lock {lockid:1.1 ")
    assert ctas.errorMessage.startswith("Failed to initiate a concurrent CTAS operation with the same table name, ")
    assert len(shown(client)) == 1


def test_exceptions(client, lock):  # L38, L39, L40
    [txn_id, aborted] = client.open_txns(ttypes.OpenTxnRequest(2, "ann", "h1")).txn_ids
    client.abort_txn(ttypes.AbortTxnRequest(aborted))
    held = lock(component("X", "db", "t"), txnid=txn_id)

    with pytest.raises(ttypes.TxnAbortedException) as gone:
        lock(component("X", "db", "t"), txnid=aborted)
    with pytest.raises(ttypes.NoSuchTxnException) as unknown:
        lock(component("X", "db", "t"), txnid=4711)
    with pytest.raises(ttypes.NoSuchTxnException):
        lock(component("X", "db", "t"), txnid=-1)
    with pytest.raises(ttypes.NoSuchLockException) as no_lock:
        client.check_lock(ttypes.CheckLockRequest(4711))
    with pytest.raises(ttypes.TxnOpenException):
        client.unlock(ttypes.UnlockRequest(held.lockid))

    assert gone.value.message.startswith(f"Transaction txnid:{aborted} already aborted")
    assert unknown.value.message.startswith("No such transaction txnid:4711")
    assert no_lock.value.message == "No such lock lockid:4711"
    assert len(shown(client)) == 1


@pytest.mark.parametrize("components", [
    [], [component("X", "")], [ttypes.LockComponent(17, ttypes.LockLevel.TABLE, "db", "t")],
    [component("X", "db", "t\0u")]])
def test_what_cannot_be_locked(client, lock, components):
    with pytest.raises(TApplicationException) as caught:
        lock(*components)

    assert caught.value.type == TApplicationException.INTERNAL_ERROR
    assert "lock" in caught.value.message.lower()
    assert shown(client) == []
    assert lock(component("X", "db", "t")).state == ACQUIRED


def test_user_and_host_may_be_empty(client):  # iceberg-go
    answer = client.lock(ttypes.LockRequest([component("X", "db", "t")], user="", hostname=""))

    assert answer.state == ACQUIRED
    assert [(row.user, row.hostname, row.agentInfo) for row in shown(client)] == [("", "", "Unknown")]


def test_bad_calls_of_a_batch_are_answered_in_their_place():
    numbers = itertools.count(1)
    service = SimpleNamespace(settings=LockSettings(), lock=lambda requests: [
        LockResult(next(numbers), handlers.LockState.ACQUIRED) for _ in requests])
    calls = [Call("lock", (ttypes.LockRequest(components, None, "u", "h"),), SimpleNamespace(closed=False))
             for components in ([component("X", "db")], [component("X", "")], [component("X", "db")])]

    first, bad, last = handlers.LockHandlers(service).lock(calls)

    assert (first.lockid, last.lockid) == (1, 2)
    assert "database name" in str(bad)
