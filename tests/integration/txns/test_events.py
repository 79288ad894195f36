"""The notification log: an event for each change of a transaction that was committed, in the order of the commits."""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg2
import pytest
from thrift.Thrift import TApplicationException

from metastore.client import MetastoreClient
from metastore.housekeeping.service import PurgeService
from metastore.loops.reaper import EXPIRY, Reaper
from metastore.thrift_gen.hive_metastore import ttypes as types
from metastore.txns.core import store
from metastore.txns.core.rules import AbortCode
from metastore.txns.events import store as event_store
from metastore.txns.events.service import EventReport
from tests.support.transactions import seconds


class UndoneError(Exception):
    """Why a change is undone."""


LISTENER = "org.apache.hive.hcatalog.listener.DbNotificationListener"


@pytest.fixture
def server_settings(request):
    return {"hive.metastore.transactional.event.listeners": getattr(request, "param", f"org.apache.hadoop.hive.metastore.HMSMetricsListener, {LISTENER}")}


def opened(client, size=1, **more):
    ids = client.open_txns(types.OpenTxnRequest(num_txns=size, user="ann", hostname="h1", **more)).txn_ids
    return ids if size > 1 else ids[0]


def allocated(client, *txn_ids, table="t"):
    return client.allocate_table_write_ids(types.AllocateTableWriteIdsRequest("Db", table, list(txn_ids)))


def writing(client, txn_id):
    client.lock(types.LockRequest(txnid=txn_id, user="ann", hostname="h1", component=[types.LockComponent(
        types.LockType.SHARED_WRITE, types.LockLevel.TABLE, "db", "t", operationType=types.DataOperationType.UPDATE,
        isTransactional=True)]))


def committed(client, txn_id, **more):
    client.commit_txn(types.CommitTxnRequest(txnid=txn_id, **more))


def events(client, after=0, **more):
    return client.get_next_notification(types.NotificationEventRequest(after, **more)).events


def told(client, after=0):
    """Type, and what the message says beside when and where."""
    found = []
    for one in events(client, after):
        message = json.loads(one.message)
        assert one.messageFormat == "json-0.2"
        assert message.pop("timestamp") == one.eventTime
        assert (message.pop("server"), message.pop("servicePrincipal")) == ("", "")
        found.append((one.eventType, *message.values()))
    return found


def test_e01_an_event_for_each_change_that_was_committed_and_for_no_other(server, client, test_clock):
    first, second = opened(client, 2)
    third = opened(client)
    allocated(client, first, second)
    writing(client, first)
    writing(client, second)
    committed(client, first, exclWriteEnabled=False)
    with pytest.raises(types.TxnAbortedException, match="write conflict"):
        committed(client, second, exclWriteEnabled=False)
    client.abort_txn(types.AbortTxnRequest(third))
    seen = len(events(client))
    for refused in (lambda: opened(client, 0), lambda: committed(client, 99), lambda: allocated(client, third),
                    lambda: client.abort_txn(types.AbortTxnRequest(first)),
                    lambda: committed(client, opened(client), keyValue=types.CommitTxnKeyValue(1, "_meta.x", "1"))):
        with pytest.raises((TApplicationException, types.TxnAbortedException, types.NoSuchTxnException)):
            refused()
    client.abort_txns(types.AbortTxnsRequest([first, second, third, 99]))
    committed(client, first)

    assert told(client)[:seen] == [
        ("OPEN_TXN", [first, second]), ("OPEN_TXN", [third]), ("ALLOC_WRITE_ID_EVENT", "db", "t", [first, second], [1, 2]),
        ("COMMIT_TXN", first), ("ABORT_TXN", second, ["db"]), ("ABORT_TXN", third, [])]
    assert [kind for kind, *_ in told(client)[seen:]] == ["OPEN_TXN"]
    test_clock.advance(seconds(301))
    Reaper(PurgeService(server.database, server.settings.txns), EXPIRY).tick()
    assert told(client)[seen + 1:] == [("ABORT_TXN", third + 1, [])]
    assert [one.eventId for one in events(client)] == list(range(1, seen + 3))


def test_e02_of_the_replications_own_transactions_nothing_is_told(client):
    kind = types.TxnType.DEFAULT
    first, second = opened(client, 2, replPolicy="p", txn_type=kind)
    committed(client, first, replPolicy="p", txn_type=kind)
    client.abort_txn(types.AbortTxnRequest(second, replPolicy="p", txn_type=kind))
    assert told(client) == []

    [target] = client.open_txns(types.OpenTxnRequest(
        1, "ann", "h1", replPolicy="p", replSrcTxnIds=[7], txn_type=types.TxnType.REPL_CREATED)).txn_ids
    committed(client, 7, replPolicy="p", txn_type=types.TxnType.REPL_CREATED)
    assert told(client) == [("OPEN_TXN", [target]), ("COMMIT_TXN", target)]


def test_of_who_only_reads_nothing_is_told(client):
    """As in Hive 4, whose listener leaves them out."""
    first, second = (opened(client, txn_type=types.TxnType.READ_ONLY) for _ in range(2))
    committed(client, first)
    client.abort_txn(types.AbortTxnRequest(second))

    assert told(client) == []


def test_the_commit_of_a_compaction_is_told_behind_the_commit(client, database):
    """Rule 10 of commit_txn; beside it a commit that ends no compaction."""
    database.once("""
        INSERT INTO databases (catalog, name, location) VALUES ('hive', 'db', 'file:/db');
        INSERT INTO tables (catalog, db, name, type, sd, partition_keys, parameters) VALUES ('hive', 'db', 't', 'MANAGED_TABLE',
            '{}', '[{"name": "p", "type": "string"}]', '{"transactional": "true"}');
        INSERT INTO partitions (table_id, name, "values") SELECT id, 'p=1', '{1}' FROM tables""")
    client.compact2(types.CompactionRequest("db", "t", "p=1", types.CompactionType.MAJOR))
    found = client.find_next_compact("worker").ci
    other, txn_id = opened(client), opened(client, txn_type=types.TxnType.COMPACTION)
    client.update_compactor_state(found, txn_id)
    committed(client, other)
    committed(client, txn_id, txn_type=types.TxnType.COMPACTION)

    *_, before, commit, last = events(client)
    assert [(one.eventType, json.loads(one.message)["txnid"]) for one in (before, commit)] == [
        ("COMMIT_TXN", other), ("COMMIT_TXN", txn_id)]
    message = json.loads(last.message)
    assert (last.eventType, last.dbName, last.tableName) == ("COMMIT_COMPACTION_EVENT", "db", "t")
    assert {key: message[key] for key in ("txnid", "compactionId", "type", "dbname", "tableName", "partName")} == {
        "txnid": txn_id, "compactionId": found.id, "type": "MAJOR", "dbname": "db", "tableName": "t", "partName": "p=1"}


def test_ids_have_no_gaps_and_appear_in_their_order(server, client):
    """Writers on four connections, some of whose calls fail; a reader that never sees an id before a smaller one."""
    def work(_):
        with MetastoreClient(server.thrift_uri) as mine:
            for number in range(15):
                txn_id = opened(mine)
                allocated(mine, txn_id, table=f"t{number % 3}")
                with pytest.raises(TApplicationException):
                    committed(mine, txn_id, keyValue=types.CommitTxnKeyValue(1, "_meta.x", "1"))
                committed(mine, txn_id) if number % 2 else mine.abort_txn(types.AbortTxnRequest(txn_id))

    with ThreadPoolExecutor(4) as pool:
        working = [pool.submit(work, number) for number in range(4)]
        last = 0
        while not all(one.done() for one in working):
            ids = [one.eventId for one in events(client, last)]
            assert ids == list(range(last + 1, last + 1 + len(ids)))
            last += len(ids)
    for one in working:
        one.result()

    everything = told(client)
    assert client.get_current_notificationEventId().eventId == len(everything)
    opens = {txn_id: place for place, (kind, *rest) in enumerate(everything) if kind == "OPEN_TXN" for txn_id in rest[0]}
    ends = {rest[0]: place for place, (kind, *rest) in enumerate(everything) if kind in {"COMMIT_TXN", "ABORT_TXN"}}
    assert len(opens) == len(ends) == 60
    assert all(opens[txn_id] < ends[txn_id] for txn_id in ends)
    assert sum(kind == "ALLOC_WRITE_ID_EVENT" for kind, *_ in everything) <= 60


def test_a_change_that_is_undone_takes_its_event_along(server, client):
    opened(client)
    with pytest.raises(UndoneError), server.database.begin() as pg:
        store.abort(pg, [(1, AbortCode.NONE, "")])
        raise UndoneError

    assert told(client) == [("OPEN_TXN", [1])]
    assert opened(client) == 2
    assert [one.eventId for one in events(client)] == [1, 2]


def test_an_id_that_is_told_is_on_disk(monkeypatch, server, client):
    """It must not come back after a crash, with another meaning. Whoever writes an event waits no longer for it."""
    opened(client)
    with server.database.begin() as pg:
        pg.sql("SET LOCAL synchronous_commit = 'local'")
        store.abort(pg, [(1, AbortCode.NONE, "")])
        assert pg.sql("SELECT current_setting('synchronous_commit')") == [("local",)]
    once, numbering = server.database.once, []

    def watched(query, parameters=None, **more):
        if "metastore_number_events" in str(query):
            numbering.append(more)
        return once(query, parameters, **more)

    monkeypatch.setattr(server.database, "once", watched)
    for read in (lambda: events(client), client.get_current_notificationEventId, lambda: client.get_notification_events_count(
            types.NotificationEventsCountRequest(0, "db"))):
        numbering.clear()
        read()
        assert numbering == [{}], "durable, as once is unless it is told otherwise"


def test_events_wait_for_no_counter(server, client):
    """A writer that has not committed holds up neither another writer nor a reader."""
    first = opened(client)
    with server.database.begin() as pg:
        store.abort(pg, [(first, AbortCode.NONE, "")])
        second = opened(client)
        assert told(client) == [("OPEN_TXN", [first]), ("OPEN_TXN", [second])]
    assert told(client, 2) == [("ABORT_TXN", first, [])]


def test_many_events_are_numbered_some_at_a_time(monkeypatch, client):
    monkeypatch.setattr(event_store, "NUMBERED", 2)
    for _ in range(5):
        opened(client)
    assert client.get_current_notificationEventId().eventId == 5
    assert [one[1] for one in told(client)] == [[1], [2], [3], [4], [5]]


def test_what_is_asked_for(client):
    opened(client, 2)
    allocated(client, 1)
    allocated(client, 2, table="u")
    committed(client, 1)

    assert [one.eventId for one in events(client, 1, maxEvents=2)] == [2, 3]
    assert [one.eventType for one in events(client, 0, eventTypeSkipList=["ALLOC_WRITE_ID_EVENT"], maxEvents=2)] == [
        "OPEN_TXN", "COMMIT_TXN"]
    assert [(one.catName, one.dbName, one.tableName) for one in events(client, 0, dbName="DB", tableNames=["U"])] == [
        ("hive", "db", "u")]
    assert events(client, 4) == []

    def count(**more):
        return client.get_notification_events_count(types.NotificationEventsCountRequest(**more)).eventsCount
    assert [count(fromEventId=0, dbName="db"), count(fromEventId=2, dbName="db"), count(fromEventId=0, dbName="no"),
            count(fromEventId=0, dbName="db", toEventId=2), count(fromEventId=0, dbName="db", limit=1)] == [2, 1, 0, 1, 1]


def test_events_are_kept_for_a_day_and_their_ids_for_ever(server, client, test_clock):
    opened(client)
    test_clock.advance(seconds(86_000))
    opened(client)
    test_clock.advance(seconds(500))

    assert server.services.events.purge() == EventReport(events=1)
    assert [one.eventId for one in events(client)] == [2]
    test_clock.advance(seconds(90_000))
    assert server.services.events.purge() == EventReport(events=1)
    assert client.get_current_notificationEventId().eventId == 2


@pytest.mark.parametrize("server_settings", [""], indirect=True)
def test_off_it_is_not_there_at_all(server, client):
    """No trigger runs, no row is written; what the calls send to PostgreSQL is the same, on or off."""
    committed(client, opened(client))

    assert events(client) == []
    assert client.get_current_notificationEventId().eventId == 0
    assert set(server.database.once("SELECT tgenabled FROM pg_trigger WHERE tgname IN "
                                    "('txns_opened', 'txns_ended', 'write_ids_allocated')")) == {("D",)}


def test_no_statement_more(monkeypatch, server, client):
    """Counted where they leave the process."""
    statements = []

    class Counted(psycopg2.extensions.cursor):
        def execute(self, query, parameters=None):
            statements.append(query)
            return super().execute(query, parameters)

    server.database.close()
    monkeypatch.setattr(psycopg2, "connect", partial(psycopg2.connect, cursor_factory=Counted))

    def sent():
        opened(client)
        counts = []
        for call in (lambda: opened(client), lambda: allocated(client, opened(client)),
                     lambda: committed(client, opened(client)),
                     lambda: client.abort_txn(types.AbortTxnRequest(opened(client)))):
            statements.clear()
            call()
            counts.append(len([one for one in statements if "SELECT count(*), metastore_now()" not in str(one)]))
        return counts

    on = sent()
    assert event_store.switch(server.database, on=False)
    off = sent()
    assert not event_store.switch(server.database, on=False)

    assert on == off == [1, 2, 2, 2]
