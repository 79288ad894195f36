"""The answer of a commit gets lost on its way back from a real server: what the client can still find out."""

import pytest
from thrift.transport.TTransport import TTransportException

from metastore.client import TxnManager
from metastore.errors import TxnAbortedError
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes


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
