"""Transactions through a real server: what the manager promises its users."""

import re
import threading
from datetime import timedelta

import pytest
from thrift.Thrift import TApplicationException

from metastore.client import LockNotAcquiredError, MetastoreClient, TxnManager
from metastore.client.heartbeat import LostError
from metastore.client.lock_manager import LockManager, LockWait
from metastore.client.lock_plan import Kind, Output, Target, statement_locks
from metastore.errors import MetaError, NoSuchTxnError, TxnAbortedError
from metastore.locks.rules import LockType, Operation
from metastore.txns.core.rules import TxnType

TABLE = Target("db", "t")
INSERT = statement_locks(outputs=[Output(TABLE, Kind.INSERT)])
UPDATE = statement_locks(outputs=[Output(TABLE, Kind.UPDATE)])
IMPATIENT = LockWait(retries=2)


@pytest.fixture
def manager(client):
    return TxnManager(client, host="h1")


@pytest.fixture
def other(server):
    with MetastoreClient(server.thrift_uri) as second:
        yield TxnManager(second, wait=IMPATIENT, host="h2")


def states(client):
    types = client.types
    return {info.id: types.TxnState._VALUES_TO_NAMES[info.state] for info in client.get_open_txns_info().open_txns}


def test_the_timeout_is_the_servers(manager):
    assert manager.timeout == timedelta(seconds=300)


def test_an_insert_from_begin_to_commit(client, manager, other, database):
    with manager.transaction(user="ann", agent="nightly load") as txn:
        txn.lock(INSERT)
        write_id = txn.write_id("db", "T")
        assert txn.write_id("DB", "t") == write_id == 1
        assert txn.valid_write_ids(["db.t"])["db.t"].is_valid(write_id)
        [row] = client.show_locks(client.types.ShowLocksRequest(dbname="db")).locks
        assert (row.user, row.hostname, row.agentInfo, row.txnid) == ("ann", "h1", "nightly load", txn.id)
        with other.transaction() as reader:
            assert not reader.valid_write_ids(["db.t"])["db.t"].is_valid(write_id)
        txn.add_dynamic_partitions("db", "t", ["p=1", "p=2"], Operation.INSERT)

    assert states(client) == {}
    assert client.show_locks(client.types.ShowLocksRequest()).locks == []
    with other.transaction() as reader:
        assert reader.valid_write_ids(["db.t"])["db.t"].is_valid(write_id)
    assert sorted(database.once("SELECT partition, write_id FROM completed_txn_components")) == [("p=1", 1), ("p=2", 1)]


def test_an_exception_aborts(client, manager):
    def work():
        with manager.transaction() as txn:
            txn.lock(INSERT)
            txn.write_id("db", "t")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()

    assert states(client) == {1: "ABORTED"}
    assert client.show_locks(client.types.ShowLocksRequest()).locks == []
    with manager.transaction() as reader:
        snapshot = reader.valid_write_ids(["db.t"])["db.t"]
        assert (snapshot.is_valid(1), snapshot.is_aborted(1)) == (False, True)


def test_a_snapshot_stays_what_it_was(manager, other):
    with manager.transaction() as reader:
        assert not reader.valid_write_ids(["db.t"])["db.t"].is_valid(1)
        with other.transaction() as writer:
            writer.lock(INSERT)
            writer.write_id("db", "t")
        assert not reader.valid_write_ids(["db.t"])["db.t"].is_valid(1)


def test_who_says_what_it_reads_says_all_of_it(manager, other, database):
    """Also what it read before it said so, and what it reads later."""
    rows = 'SELECT "table" FROM min_history ORDER BY 1'
    with manager.transaction(kind=TxnType.READ_ONLY) as txn:
        txn.valid_write_ids(["db.a"])
        assert database.once(rows) == []
        before = txn.valid_txns()
        with other.transaction() as writer:
            writer.write_id("db", "b")
        [seen] = txn.valid_write_ids(["db.b"], no_others=True).values()
        assert (txn.valid_txns(), seen.is_valid(1)) == (before, False)
        assert database.once(rows) == [("a",), ("b",)]
        assert list(txn.valid_write_ids(["db.c"])) == ["db.c"]
        assert database.once(rows) == [("a",), ("b",), ("c",)]
    assert database.once(rows) == []


def test_who_has_said_it_reads_nothing_more_from_a_release_that_cannot_be_told(manager, monkeypatch):
    def unknown(_):
        raise TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name: 'metastore_read_snapshot'")

    with manager.transaction(kind=TxnType.READ_ONLY) as txn:
        with monkeypatch.context() as older:
            older.setattr(manager.client, "metastore_read_snapshot", unknown, raising=False)
            assert list(txn.valid_write_ids(["db.a"], no_others=True)) == list(txn.valid_write_ids(["db.a"])) == ["db.a"]
        txn.valid_write_ids(["db.a"])
        monkeypatch.setattr(manager.client, "metastore_read_snapshot", unknown, raising=False)
        with pytest.raises(MetaError, match="cannot be told that it reads db.a, db.b now"):
            txn.valid_write_ids(["db.b"])


def test_waiting_in_vain_names_the_holder(client, manager, other):
    with manager.transaction(user="ann", agent="nightly load") as holder:
        holder.lock(UPDATE)
        with pytest.raises(LockNotAcquiredError) as caught, other.transaction() as waiter:
            waiter.lock(UPDATE)

        text = str(caught.value)
        assert re.fullmatch(r"The locks could not be had within 0:00:00.300000: Lock \d+ waits for "
                            rf"transaction {holder.id} of ann@h1 \(nightly load\), which holds EXCL_WRITE on db.t since .* UTC "
                            rf"and expires in \d+ s unless it is heard of \(`metastore txn abort {holder.id}` ends it now\)\.",
                            text)
        assert {row.txnid for row in client.show_locks(client.types.ShowLocksRequest()).locks} == {holder.id}
    assert states(client) == {waiter.id: "ABORTED"}


def test_the_second_updater_waits_and_then_sees_what_the_first_did(manager, other, client, database):
    """Hive 4's protocol: locks first, and a transaction that waited for a change begins again behind it."""
    first, second = manager.open(), other.open()
    opened_as = second.id
    first.lock(UPDATE)
    first.write_id("db", "t")
    other.locks = LockManager(other.client)
    waiting = threading.Thread(target=lambda: second.lock(UPDATE))
    waiting.start()
    while len(client.show_locks(client.types.ShowLocksRequest()).locks) < 2:
        pass
    first.commit()
    waiting.join()

    assert second.valid_write_ids(["db.t"])["db.t"].is_valid(1)
    second.write_id("db", "t")
    second.commit()

    assert second.id >= opened_as
    assert database.once("SELECT count(*) FROM completed_txn_components") == [(2,)]


def test_one_that_overlapped_and_waited_for_a_later_one_begins_again(manager, other, client):
    early, late = manager.open(), other.open()
    opened_as = early.id
    late.lock(UPDATE)
    late.write_id("db", "t")
    late.commit()

    early.lock(UPDATE)

    assert early.id > late.id
    assert early.valid_write_ids(["db.t"])["db.t"].is_valid(1)
    early.commit()
    assert states(client) == {opened_as: "ABORTED"}


def test_a_snapshot_that_missed_a_change_is_told_at_once(manager, other):
    with pytest.raises(TxnAbortedError, match="Start again"), manager.transaction() as early:
        early.valid_write_ids(["db.t"])
        with other.transaction() as late:
            late.lock(UPDATE)
            late.write_id("db", "t")
        early.lock(UPDATE)


def test_first_committer_wins_without_exclusive_locks(manager, other):
    shared = [UPDATE.locks[0]._replace(type=LockType.SHARED_WRITE)]
    one, two = manager.open(), other.open()
    for txn in (one, two):
        txn.lock(shared)
        txn.write_id("db", "t")
    one.commit()

    with pytest.raises(TxnAbortedError, match="due to a write conflict on db/t committed by"):
        two.commit()


def test_several_statements_in_one_transaction(manager, other, client):
    with manager.transaction() as txn:
        txn.lock(INSERT)
        txn.valid_write_ids(["db.t"])
        txn.write_id("db", "t")
        txn.lock(statement_locks([TABLE], [Output(Target("db", "u"), Kind.UPDATE)]))
        txn.write_id("db", "u")
        with pytest.raises(LockNotAcquiredError), other.transaction() as waiter:
            waiter.lock(statement_locks(outputs=[Output(Target("db", "u"), Kind.DELETE)]))
    assert "OPEN" not in states(client).values()


@pytest.fixture
def quick(manager, monkeypatch):
    """Heartbeats often, and answers may take long."""
    manager.__dict__["timeout"] = timedelta(milliseconds=100)
    clone = MetastoreClient.clone
    monkeypatch.setattr(MetastoreClient, "clone", lambda client, timeout_s=None: clone(client, timeout_s=60))


@pytest.mark.usefixtures("quick")
def test_a_transaction_that_the_server_ended_is_lost(client, manager):
    txn = manager.open()
    client.abort_txn(client.types.AbortTxnRequest(txn.id))

    assert txn._heartbeater.lost.wait(60)
    with pytest.raises(LostError, match=f"Transaction {txn.id} is lost"):
        txn.check()
    with pytest.raises(TxnAbortedError):
        txn.commit()


@pytest.mark.usefixtures("quick")
def test_heartbeats_reach_the_server(client, manager):
    with manager.transaction() as txn:
        while next(info.heartbeatCount for info in client.get_open_txns_info().open_txns if info.id == txn.id) < 2:
            pass
        txn.check()


def test_read_only_transactions(client, manager):
    with manager.transaction(kind=TxnType.READ_ONLY) as txn:
        txn.lock(statement_locks([TABLE]))
        assert txn.id not in client.get_open_txns().open_txns
        assert txn.valid_write_ids(["db.t"])["db.t"].high_watermark == 0


def test_commit_of_what_is_unknown(manager):
    txn = manager.open()
    txn.id = 4711

    with pytest.raises(NoSuchTxnError, match="No such transaction txnid:4711"):
        txn.commit()


def test_locks_without_a_transaction(client, manager, other):  # Z01, as Iceberg holds one around its commit
    wanted = statement_locks(outputs=[Output(TABLE, Kind.EXCLUSIVE_DDL)])
    with manager.locked(wanted, agent="Iceberg-1") as heartbeater:
        heartbeater.check()
        [row] = client.show_locks(client.types.ShowLocksRequest("db", "t")).locks
        assert (row.agentInfo, row.txnid) == ("Iceberg-1", 0)
        with pytest.raises(LockNotAcquiredError, match=r"lock \d+ without a transaction of .*Iceberg-1.*`metastore lock release \d+`"), \
                other.locked(wanted):
            pass
    with other.locked(wanted):
        pass
    assert client.show_locks(client.types.ShowLocksRequest()).locks == []
