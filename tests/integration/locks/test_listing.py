"""Locks as PostgreSQL encodes them, beside the same locks made of objects."""

from datetime import UTC, datetime, timedelta

import pytest

from metastore.ids import DatabaseName
from metastore.locks.rules import LockState
from metastore.locks.service import LockFilter, LockService
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.call import Call
from metastore.thrift_server.handlers.locks import LockHandlers
from tests.support.answers import decoded


@pytest.fixture
def shown(database):
    """Every kind of row; a function that gives both forms of an answer."""
    with database.begin() as pg:
        pg.sql("""
            INSERT INTO locks (ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, acquired_at,
                               last_heartbeat_at, requested_at, heartbeat_count, "user", host, agent_info,
                               blocked_by_ext_id, blocked_by_int_id)
            SELECT n / 2 + 1, n % 2 + 1, n % 3, 'hive', 'd' || n % 2, (ARRAY['', 't', 'tä𝄞'])[n % 3 + 1],
                   (ARRAY['', 'p=1', 'p=ö/q='])[n % 3 + 1],
                   (ARRAY['shared_read', 'shared_write', 'excl_write', 'exclusive'])[n % 4 + 1],
                   (ARRAY['acquired', 'waiting'])[n % 5 / 3 + 1],
                   CASE WHEN n % 2 = 0 THEN '2026-01-01 12:00:00.123456+00'::timestamptz + n * interval '1 ms' END,
                   CASE WHEN n % 7 > 0 THEN '1969-12-31 23:59:59.9995+00'::timestamptz + n * interval '1 s' END,
                   metastore_now(), n, 'us''er' || n, '', repeat('x', n * 100),
                   CASE WHEN n % 4 < 3 THEN n END, CASE WHEN n % 4 < 3 THEN 1 END
            FROM generate_series(0, 59) AS n""")
    locks = LockService(database)

    def both(**wanted):
        request = ttypes.ShowLocksRequest(**wanted)
        answer = LockHandlers(locks).show_locks(Call("show_locks", (request,), None), request)
        return decoded("show_locks", answer).locks, [element(row) for row in locks.show_locks(LockFilter(
            db=DatabaseName("hive", request.dbname) if request.dbname else None,
            table=request.tablename and request.tablename.lower(), partition=request.partname, txn_id=request.txnid))]

    return both


def millis(instant):
    return None if instant is None else (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def element(row):
    """A lock as clients get it."""
    lock = row.lock
    blocker = row.blocker if lock.state is LockState.WAITING and row.blocker else (None, None)
    return ttypes.ShowLocksResponseElement(
        lockid=lock.ext_id, lockIdInternal=lock.int_id, dbname=lock.object.db, tablename=lock.object.table or None,
        partname=lock.object.partition or None, state=getattr(ttypes.LockState, lock.state.name),
        type=getattr(ttypes.LockType, lock.type.name), txnid=lock.txn_id,
        lastheartbeat=millis(row.last_heartbeat_at) or 0, acquiredat=millis(row.acquired_at), user=lock.user,
        hostname=lock.host, heartbeatCount=row.heartbeat_count, agentInfo=row.agent_info,
        blockedByExtId=blocker[0], blockedByIntId=blocker[1])


@pytest.mark.parametrize(("wanted", "count"), [
    ({}, 60), ({"dbname": "d1"}, 30), ({"tablename": "T"}, 20), ({"partname": "p=1"}, 20), ({"txnid": 2}, 20),
    ({"dbname": "d0", "txnid": 1}, 10), ({"dbname": "none"}, 0)])
def test_a_client_reads_the_same_locks(shown, wanted, count):
    encoded, objects = shown(**wanted)
    assert encoded == objects
    assert len(encoded) == count
