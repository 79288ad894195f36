"""How many transactions and locks the clients of one address may have, on a whole server: PostgreSQL says what is left."""

from time import monotonic

import pytest
from thrift.Thrift import TApplicationException

from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes


@pytest.fixture
def server_settings():
    return {"metastore.limit.exempt": "", "metastore.limit.open.txns": "3", "metastore.limit.locks": "2"}


def opening(number, host):
    return ttypes.OpenTxnRequest(num_txns=number, user="ann", hostname=host)


def locking(*tables):
    return ttypes.LockRequest([
        ttypes.LockComponent(ttypes.LockType.SHARED_READ, ttypes.LockLevel.TABLE, "db", table) for table in tables], None, "ann", "h1")


def refused(server, call, request):
    """Asked anew over another connection, a moment later: the address counts, not what a client says of itself."""
    with MetastoreClient(server.thrift_uri, user="bob") as other, pytest.raises(TApplicationException) as error:
        getattr(other, call)(request)
    return error.value.message


def test_open_transactions(server, client):
    first = client.open_txns(opening(2, "h1")).txn_ids
    client.open_txns(opening(1, "h2"))
    client.commit_txn(ttypes.CommitTxnRequest(first[0]))
    server.database.once("UPDATE txns SET state = 'aborted' WHERE id = %s", [first[1]])
    again = client.open_txns(opening(2, "h3")).txn_ids
    assert "127.0.0.1 has 3 open transactions by way of this server, asks for 1 more, and may have 3" in refused(
        server, "open_txns", opening(1, "h4"))
    assert client.get_open_txns().open_txns == [first[1], first[1] + 1, *again]


def test_locks(server, client, monkeypatch):
    held = client.lock(locking("t", "u")).lockid
    assert "127.0.0.1 has 2 locks by way of this server, asks for 1 more, and may have 2" in refused(
        server, "lock", locking("v"))
    client.unlock(ttypes.UnlockRequest(held))
    a_second_later = monotonic() + 1.1
    monkeypatch.setattr("metastore.thrift_server.dispatch.address_quotas.monotonic", lambda: a_second_later)
    assert client.lock(locking("v")).state == ttypes.LockState.ACQUIRED
