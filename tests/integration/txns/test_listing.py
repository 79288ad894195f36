"""Open transactions as PostgreSQL encodes them, beside the same made of objects."""

from datetime import UTC, datetime, timedelta

import pytest

from metastore.db import wires
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.txns.core.service import AbortRequest
from tests.support.answers import shown_txns


def millis(instant):
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@pytest.mark.parametrize("at_once", [7, 10_000])
def test_a_client_reads_the_same_transactions(t, monkeypatch, at_once):
    monkeypatch.setattr(wires, "AT_ONCE", at_once)
    monkeypatch.setattr(wires, "FETCHED", 5)
    assert shown_txns(t.txns) == (0, [])
    t.open(30)
    t.txns.abort_txn([AbortRequest(7)])
    t.db.once("UPDATE txns SET \"user\" = 'ann\u00e4 ''x', host = '', heartbeat_count = id,"
              " started_at = started_at + id * interval '1.0011 ms'")

    expected = [ttypes.TxnInfo(
        txn_id, ttypes.TxnState.OPEN if state == "open" else ttypes.TxnState.ABORTED, user, host, agent, beats,
        startedTime=millis(started_at), lastHeartbeatTime=millis(last_heartbeat_at),
    ) for txn_id, state, user, host, agent, beats, started_at, last_heartbeat_at in t.rows("""
        SELECT id, state, "user", host, agent_info, heartbeat_count, started_at, last_heartbeat_at FROM txns ORDER BY id""")]
    assert shown_txns(t.txns) == (30, expected)
    assert len(expected) == 30
    assert expected[6].state == ttypes.TxnState.ABORTED
