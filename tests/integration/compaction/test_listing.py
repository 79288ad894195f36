"""SHOW COMPACTIONS as PostgreSQL encodes it, beside the same rows made of objects."""

from datetime import UTC, datetime, timedelta

import pytest

from metastore.compaction.queue.rules.requests import OLD_CLIENT_TYPES
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store import requests as store
from metastore.config import CompactionSettings
from metastore.db import wires
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert import compaction as convert
from tests.support.answers import shown_compactions

COLUMNS = """
    (id, catalog, db, "table", partition, state, type, properties, pool, worker_id, worker_version, initiator_id,
     initiator_version, run_as, enqueued_at, started_at, ended_at, cleaner_started_at, highest_write_id, txn_id,
     next_txn_id, committed_at, hadoop_job_id, error_message, meta_info)
    SELECT {first} + n, 'hive', 'd' || n % 2, 't\u00e4' || n, (ARRAY['', 'p=1', 'p=\u00f6/q='])[n % 3 + 1],
           ({states})[n % 3 + 1], ({types})[n % 4 + 1], '{{}}',
           (ARRAY[NULL, '', 'fast'])[n % 3 + 1], w.text, w.text, w.text, w.text, w.text, {at},
           CASE WHEN n % 3 > 0 THEN {at} END, CASE WHEN n % 5 > 2 THEN {at} END, CASE WHEN n % 7 > 3 THEN {at} END,
           nullif(n % 4, 0), nullif(n % 3, 0), nullif(n % 2, 0), CASE WHEN n % 4 > 1 THEN {at} END,
           (ARRAY[NULL, '', 'job_1'])[n % 3 + 1], CASE WHEN n % 2 = 0 THEN repeat('x', n * 100) || '\u2028' END,
           (ARRAY[NULL, '', '7 %, 1 of 2 stages d\u00f6ne'])[n % 3 + 1]
    FROM generate_series(0, 23) AS n, LATERAL (SELECT CASE WHEN n % 3 > 0 THEN 'wo''rker' || n END AS text) AS w"""
AT = "'2026-01-01 12:00:00.123456+00'::timestamptz + n * interval '61.001 s'"
TYPES = "ARRAY['minor', 'major', 'rebalance', 'abort_txn_cleanup']"


def millis(instant):
    return None if instant is None else (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def element(compaction):
    """Return a row as clients get it."""
    return ttypes.ShowCompactResponseElement(
        dbname=compaction.entity.table.db,
        tablename=compaction.entity.table.table,
        partitionname=compaction.entity.partition or None,
        type=compaction.type.number,
        state=compaction.state.display,
        workerid=compaction.worker_id,
        start=millis(compaction.started_at) or 0,
        runAs=compaction.run_as,
        hightestTxnId=compaction.highest_write_id or 0,
        metaInfo=compaction.meta_info,
        endTime=millis(compaction.ended_at),
        hadoopJobId=compaction.hadoop_job_id or "None",
        id=compaction.id,
        errorMessage=compaction.error_message,
        enqueueTime=millis(compaction.enqueued_at),
        workerVersion=compaction.worker_version,
        initiatorId=compaction.initiator_id,
        initiatorVersion=compaction.initiator_version,
        cleanerStart=millis(compaction.cleaner_started_at),
        poolName=compaction.pool or "default",
        nextTxnId=compaction.next_txn_id or 0,
        txnId=compaction.txn_id or 0,
        commitTime=millis(compaction.committed_at) or 0,
        hightestWriteId=compaction.highest_write_id or 0,
    )


@pytest.fixture
def service(database):
    queued = "ARRAY['initiated', 'working', 'ready_for_cleaning']"
    ended = "ARRAY['failed', 'did_not_initiate', 'succeeded']"
    with database.begin() as pg:
        pg.sql("INSERT INTO compaction_queue" + COLUMNS.format(first=100, states=queued, types=TYPES, at=AT))
        pg.sql("INSERT INTO completed_compactions" + COLUMNS.format(first=200, states=ended, types=TYPES, at=AT))
    return CompactionService(database, CompactionSettings())


@pytest.mark.parametrize(("wanted", "count"), [
    ({}, 24), ({"dbName": "d1"}, 24), ({"type": ttypes.CompactionType.MAJOR}, 12), ({"state": "failed"}, 8),
    ({"poolName": "default"}, 32), ({"limit": 7}, 7), ({"limit": 5, "order": "id desc"}, 5), ({"dbName": "none"}, 0)])
@pytest.mark.parametrize("at_once", [7, 10_000])
def test_a_client_reads_the_same_compactions(service, wanted, count, at_once, monkeypatch):
    monkeypatch.setattr(wires, "AT_ONCE", at_once)
    monkeypatch.setattr(wires, "FETCHED", 5)
    request = ttypes.ShowCompactRequest(**wanted)
    with service.db.begin() as pg:
        rows = store.select_shown(pg, convert.show_filter(request))
    expected = [element(row) for row in rows if wanted or row.type in OLD_CLIENT_TYPES]  # 2.3 and 3.1 send no field
    assert shown_compactions(service, request).compacts == expected
    assert len(expected) == count


CHANGES = {
    "text": "'changed'", "integer": "7", "bigint": "7", "timestamp with time zone": "'2030-01-01 00:00:00.5+00'", "jsonb": "'{}'",
    "state": "'failed'", "type": "'minor'"}
"""What a column is set to, by its name or its type."""
WIRE = "SELECT encode(wire, 'hex') FROM completed_compactions WHERE id IN (201, 7)"


def test_each_change_of_a_column_changes_what_clients_read(service):
    """Whichever release makes it: a trigger names the columns of which it makes a row's bytes."""
    columns = service.db.once(
        "SELECT column_name::text, data_type::text FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name = 'completed_compactions' AND column_name <> 'wire'")
    same = set()
    for name, kind in columns:
        with service.db.begin() as pg:
            pg.sql("UPDATE completed_compactions SET id = 201, state = 'succeeded', type = 'major' WHERE id IN (201, 7)")
            [(before,)] = pg.sql(WIRE)
            pg.sql(f"""UPDATE completed_compactions SET "{name}" = {CHANGES.get(name) or CHANGES[kind]} WHERE id = 201""")
            [(after,)] = pg.sql(WIRE)
        if before == after:
            same.add(name)

    assert same == {"catalog", "properties", "number_of_buckets", "order_by"}, "clients get none of these, and all others"
