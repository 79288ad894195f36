"""Events as PostgreSQL encodes them, beside the same made of objects."""

import pytest

from metastore.config import EventSettings
from metastore.db.pieces import Sizes
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.notifications import NotificationHandlers
from metastore.txns.events import store
from metastore.txns.events.service import EventService
from tests.support.answers import decoded


@pytest.fixture
def log(database):
    """Events of every kind."""
    with database.begin() as pg:
        pg.sql("""
            DELETE FROM notification_log;
            INSERT INTO notification_log (event_id, at, type, catalog, db, "table", message)
            SELECT n, '2026-01-01 12:00:00.999+00'::timestamptz + n * interval '1.5 s',
                   (ARRAY['OPEN_TXN', 'COMMIT_TXN', 'ALLOC_WRITE_ID_EVENT'])[n % 3 + 1],
                   CASE WHEN n % 3 = 2 THEN (ARRAY['hive', 'other'])[n % 2 + 1] END,
                   CASE WHEN n % 3 = 2 THEN 'd' || n % 2 END, CASE WHEN n % 3 = 2 THEN 'tä𝄞' || n % 4 END,
                   (ARRAY['', '{"txnid": 1}', repeat('ö''\n', 100)])[n % 3 + 1]
            FROM generate_series(1, 30) AS n""")
    yield database
    database.once("DELETE FROM notification_log")


@pytest.mark.parametrize("sizes", [(1, 1), (3, 4), (500, 500)], ids=["each alone", "in a snapshot", "at once"])
def test_a_client_reads_the_same_events(log, monkeypatch, sizes):
    monkeypatch.setattr(store, "SIZES", Sizes(*sizes, sizes[1]))
    handlers = NotificationHandlers(EventService(log, EventSettings()), None)
    every = [
        ttypes.NotificationEvent(
            eventId=event_id, eventTime=int(at.timestamp()), eventType=kind, dbName=db, tableName=table, message=message,
            messageFormat="json-0.2", catName=catalog)
        for event_id, at, kind, catalog, db, table, message in log.once(
            'SELECT event_id, at, type, catalog, db, "table", message FROM notification_log ORDER BY event_id')]

    def both(expected, after=0, most=None, **wanted):
        request = ttypes.NotificationEventRequest(after, most, **wanted)
        answer = handlers.get_next_notification(Call("get_next_notification", (request,), None), request)
        assert decoded("get_next_notification", answer) == ttypes.NotificationEventResponse(expected)

    assert len(every) == 30
    for most in (None, 0, -1, 30, 31):
        both(every, most=most)
    for most in (1, 3, 5, 29):
        both(every[:most], most=most)
    both(every[7:], after=7)
    both([], after=30)
    both(every[7:11], after=7, most=4)
    both([event for event in every if event.eventType == "OPEN_TXN"], eventTypeList=["OPEN_TXN"])
    both([event for event in every if event.eventType != "OPEN_TXN"], eventTypeSkipList=["OPEN_TXN", "X"])
    both([event for event in every if event.dbName == "d1"], dbName="D1")
    both([event for event in every if event.dbName == "d1" and event.catName == "other"], dbName="d1", catName="Other")
    both([event for event in every if event.tableName == "tä𝄞1" and event.dbName == "d1"][:2], most=2,
         dbName="d1", tableNames=["TÄ𝄞1"])
    assert log.pool.lent == 0
