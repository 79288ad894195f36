"""The answer of a commit gets lost on its way back from a real server: what the client can still find out."""

from datetime import timedelta

import pytest
from thrift.transport.TTransport import TTransportException

from metastore.client import TxnManager, outcome
from metastore.client.lock_plan import LockPlan
from metastore.errors import MetaError, NoSuchTxnError, TxnAbortedError
from metastore.locks.rules import LockType, Operation
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes
from metastore.txns.history.rules import Outcome
from tests.support.in_flight import commit_in_flight

__all__ = ["commit_in_flight"]


@pytest.fixture
def lossy(monkeypatch):
    """``lossy(then)``: answers of commits are lost, and then this is done."""
    receive = ThriftHiveMetastore.Client.recv_commit_txn

    def install(then):
        def lost(client):
            receive(client)
            then()
            raise TTransportException(TTransportException.END_OF_FILE, "the connection broke")
        monkeypatch.setattr(ThriftHiveMetastore.Client, "recv_commit_txn", lost)
    return install


@pytest.fixture
def manager(client):
    return TxnManager(client, host="h1")


def test_one_that_was_aborted_says_by_whom(manager, client, monkeypatch):
    def broken(*_):
        raise TTransportException(TTransportException.END_OF_FILE, "the connection broke")
    monkeypatch.setattr(ThriftHiveMetastore.Client, "send_commit_txn", broken)
    txn = manager.open()
    client.abort_txn(ttypes.AbortTxnRequest(txn.id, errorCode=50001))

    with pytest.raises(TxnAbortedError, match=f"txnid:{txn.id} already aborted: aborted by an ABORT TRANSACTIONS command"):
        txn.commit()


def test_the_record_is_gone_before_the_question(manager, lossy, database):
    """An empty commit whose record was removed: it is known by not having been aborted."""
    lossy(lambda: database.once("DELETE FROM txns"))

    with manager.transaction() as txn:
        pass

    assert "had it been aborted" in manager.outcome(txn.id).reason


def test_one_that_postgresql_still_carries_out_is_waited_for(manager, commit_in_flight, monkeypatch):
    """The server loses PostgreSQL in the middle of a commit: that the transaction is open says nothing then.

    The question waits for the commit, so that it is sent once.
    """
    sent, send = [], ThriftHiveMetastore.Client.send_commit_txn
    monkeypatch.setattr(ThriftHiveMetastore.Client, "send_commit_txn", lambda *args: sent.append(args) or send(*args))
    txn = manager.open()
    txn.lock([LockPlan(LockType.SHARED_WRITE, Operation.INSERT, "d", "t")])
    txn.write_id("d", "t")

    with commit_in_flight() as waited:
        txn.commit()

    assert (len(waited), len(sent)) == (2, 1)
    assert manager.outcome(txn.id).outcome is Outcome.COMMITTED


def test_an_abort_that_meets_a_commit_says_so(manager, client, commit_in_flight, monkeypatch):
    """Nobody may remove what was written then; an abort that nothing met may be relied upon after a crash."""
    txn = manager.open()
    txn.lock([LockPlan(LockType.SHARED_WRITE, Operation.INSERT, "d", "t")])

    def interrupted(*_):
        raise InterruptedError

    with commit_in_flight(), monkeypatch.context() as patched:
        patched.setattr(outcome, "is_committed", interrupted)
        with pytest.raises(InterruptedError):
            txn.commit()
        assert not txn.abort_quietly()
        with pytest.raises(NoSuchTxnError, match="already committed"):
            txn.abort()

    assert manager.outcome(txn.id).outcome is Outcome.COMMITTED


def test_one_whose_commit_was_refused_is_aborted_for_good(manager, database, monkeypatch):
    """A commit that was sent before may come late: it finds the transaction aborted."""
    monkeypatch.setattr(outcome, "_FIRST_PAUSE", timedelta(0))
    txn = manager.open()

    def busy(*_):
        raise ttypes.MetaException("the database is busy")

    with monkeypatch.context() as patched:
        patched.setattr(ThriftHiveMetastore.Client, "recv_commit_txn", busy)
        patched.setattr(ThriftHiveMetastore.Client, "send_commit_txn", lambda *_: None)
        with pytest.raises(MetaError, match="the database is busy"):
            txn.commit()

    assert manager.outcome(txn.id).outcome is Outcome.ABORTED
    assert txn.abort_quietly()
    with pytest.raises(TxnAbortedError):
        txn.commit()
