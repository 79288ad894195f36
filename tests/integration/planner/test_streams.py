"""The calls of streams over HTTP: batches that a table remembers, and how far a stream may read."""

import pytest

from metastore.client import TxnManager
from metastore.locks.rules import Operation
from tests.support.acid.creating import create_database, create_table

BATCH = {"table": "d.t", "query": "q", "batch": 3, "plan": "p"}


@pytest.fixture(autouse=True)
def table(client):
    create_database(client)
    return create_table(client, "t", {"id": "int"}, keys={"k": "int"})


def written(client, operation=Operation.INSERT):
    with TxnManager(client).transaction() as txn:
        txn.add_dynamic_partitions("d", "t", ["k=1"], operation)
        return txn.write_id("d", "t")


def test_a_batch_is_committed_once(call):
    assert call("batch", **BATCH) == {"has_batch": False}
    call("commit", txn=call.begin(), batch=BATCH)
    assert call("batch", **BATCH) == {"has_batch": True}

    again = call.begin()
    assert call.refused("commit", txn=again, batch=BATCH)[:2] == (400, "AlreadyExistsError")
    assert call("abort", txn=again) == {"aborted": True}
    assert "Batch 3 of streaming query q has other rows than before" in call.refused("batch", **{**BATCH, "plan": "other"})[2]
    assert "is an earlier one" in call.refused("commit", txn=call.begin(), batch={**BATCH, "batch": 2})[2]


def test_a_stream_waits_for_what_may_still_be_committed(client, call):
    assert call("settled", table="d.t", after=0) == {"write_id": 0}
    assert [written(client) for _ in range(3)] == [1, 2, 3]
    with TxnManager(client).transaction() as txn:
        assert txn.write_id("d", "t") == 4
        assert written(client) == 5
        assert call("settled", table="d.t", after=1) == {"write_id": 3}
        assert call("settled", table="d.t", after=0, most=2) == {"write_id": 2}
    assert call("settled", table="d.t", after=3) == {"write_id": 5}
