"""Locks as PostgreSQL encodes them, beside the same locks made of objects."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from metastore.db import wires
from metastore.locks.rules import LockState, LockType
from metastore.locks.service import LockService
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.locks import LockHandlers
from tests.support.answers import decoded, shown_locks


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
    rows = [SimpleNamespace(**dict(zip(NAMES, row, strict=True))) for row in database.once(f"SELECT {COLUMNS} FROM locks")]

    def both(**wanted):
        expected = [row for row in rows if all(getattr(row, column) == value for column, value in wanted.items())]
        names = {CLIENTS_NAMES[column]: value for column, value in wanted.items()}
        return shown_locks(LockService(database), **names), [element(row) for row in sorted(expected, key=place)]

    return both


COLUMNS = """ext_id, int_id, txn_id, db, "table", partition, type, state, acquired_at, last_heartbeat_at,
             heartbeat_count, "user", host, agent_info, blocked_by_ext_id, blocked_by_int_id"""
NAMES = COLUMNS.replace('"', "").replace(",", "").split()
CLIENTS_NAMES = {"db": "dbname", "table": "tablename", "partition": "partname", "txn_id": "txnid"}


def place(row):
    """Granted before waiting, weaker types first, then in order of asking."""
    return row.state == LockState.WAITING, list(LockType).index(LockType(row.type)), row.ext_id, row.int_id


def millis(instant):
    return None if instant is None else (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def element(row):
    """Return a lock as clients get it."""
    waits = row.state == LockState.WAITING
    return ttypes.ShowLocksResponseElement(
        lockid=row.ext_id, lockIdInternal=row.int_id, dbname=row.db, tablename=row.table or None,
        partname=row.partition or None, state=getattr(ttypes.LockState, LockState(row.state).name),
        type=getattr(ttypes.LockType, LockType(row.type).name), txnid=row.txn_id,
        lastheartbeat=millis(row.last_heartbeat_at) or 0, acquiredat=millis(row.acquired_at), user=row.user,
        hostname=row.host, heartbeatCount=row.heartbeat_count, agentInfo=row.agent_info,
        blockedByExtId=row.blocked_by_ext_id if waits else None, blockedByIntId=row.blocked_by_int_id if waits else None)


@pytest.mark.parametrize(("wanted", "count"), [
    ({}, 60), ({"db": "d1"}, 30), ({"table": "t"}, 20), ({"partition": "p=1"}, 20), ({"txn_id": 2}, 20),
    ({"db": "d0", "txn_id": 1}, 10), ({"db": "none"}, 0)])
@pytest.mark.parametrize("at_once", [7, 20, 10_000])
def test_a_client_reads_the_same_locks(shown, wanted, count, at_once, monkeypatch):
    monkeypatch.setattr(wires, "AT_ONCE", at_once)
    monkeypatch.setattr(wires, "FETCHED", 5)
    encoded, objects = shown(**wanted)
    assert encoded == objects
    assert len(encoded) == count


def test_several_clients_read_a_long_list_at_the_same_time(shown, database, monkeypatch):
    """It is read once for those who ask together, and in pieces: what they read is whole, and nothing stays open."""
    monkeypatch.setattr(wires, "AT_ONCE", 20)
    monkeypatch.setattr(wires, "FETCHED", 7)
    _, objects = shown()
    handlers, request = LockHandlers(LockService(database)), ttypes.ShowLocksRequest()

    def ask(_):
        return decoded("show_locks", handlers.show_locks(Call("show_locks", (request,), None), request)).locks

    with ThreadPoolExecutor(6) as clients:
        assert [locks == objects for locks in clients.map(ask, range(24))] == [True] * 24
    assert database.pool.lent == 0
