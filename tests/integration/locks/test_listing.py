"""Locks as PostgreSQL encodes them, beside the same locks made of objects."""

import pytest
from thrift.protocol import fastbinary

from metastore.locks.service import LockService
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes
from metastore.thrift_server.call import Call
from metastore.thrift_server.codec import CODECS
from metastore.thrift_server.handlers.locks import LockHandlers
from metastore.thrift_server.pieces import around
from metastore.thrift_server.protocol import BinaryProtocol
from metastore.thrift_server.source import Source


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
        call = Call("show_locks", (request,), None)
        encoded = LockHandlers(locks, in_pieces=True).show_locks(call, request)
        with encoded.pieces as pieces:
            before, after = around(BinaryProtocol().body(CODECS["show_locks"], encoded.empty), encoded.length)
            body = b"".join((before, *pieces, after))
        result = ThriftHiveMetastore.show_locks_result()
        fastbinary.decode_binary(result, Source(body, 0), [type(result), result.thrift_spec])
        return result.success.locks, LockHandlers(locks).show_locks(call, request).locks

    return both


@pytest.mark.parametrize(("wanted", "count"), [
    ({}, 60), ({"dbname": "d1"}, 30), ({"tablename": "T"}, 20), ({"partname": "p=1"}, 20), ({"txnid": 2}, 20),
    ({"dbname": "d0", "txnid": 1}, 10), ({"dbname": "none"}, 0)])
def test_a_client_reads_the_same_locks(shown, wanted, count):
    encoded, objects = shown(**wanted)
    assert encoded == objects
    assert len(encoded) == count
