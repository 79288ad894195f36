"""Open transactions as PostgreSQL encodes them, beside the same made of objects."""

from datetime import UTC, datetime, timedelta

from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.handlers.txns import TxnHandlers
from metastore.txns.core.service import AbortRequest
from tests.support.answers import decoded


def millis(instant):
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def listed(t):
    return decoded("get_open_txns_info", TxnHandlers(t.txns, None, None).get_open_txns_info(None))


def test_a_client_reads_the_same_transactions(t):
    assert listed(t) == ttypes.GetOpenTxnsInfoResponse(0, [])
    t.open(30)
    t.txns.abort_txn([AbortRequest(7)])
    t.db.once("UPDATE txns SET \"user\" = 'ann\u00e4 ''x', host = '', heartbeat_count = id,"
              " started_at = started_at + id * interval '1.0011 ms'")

    mark, infos = t.txns.get_open_txns_info()
    expected = [ttypes.TxnInfo(
        info.txn_id, getattr(ttypes.TxnState, info.state.name), info.user, info.host, info.agent_info,
        info.heartbeat_count, startedTime=millis(info.started_at), lastHeartbeatTime=millis(info.last_heartbeat_at),
    ) for info in infos]
    assert listed(t) == ttypes.GetOpenTxnsInfoResponse(mark, expected)
    assert len(expected) == 30
    assert expected[6].state == ttypes.TxnState.ABORTED
