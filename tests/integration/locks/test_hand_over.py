"""From a release to the answer of who waits for the lock: what it costs, and who gets it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg2
import pytest
from psycopg2.extensions import ISOLATION_LEVEL_AUTOCOMMIT

from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes
from tests.support.tapped_database import *  # noqa: F403
from tests.support.thrift_server import until

ACQUIRED = ttypes.LockState.ACQUIRED
EXCLUSIVE, SHARED = ttypes.LockType.EXCLUSIVE, ttypes.LockType.SHARED_READ
ENOUGH, FOR_EVER = 120, 3600.0


@pytest.fixture
def server_settings():
    return {"metastore.lock.check.wait": "5s"}


@pytest.fixture
def server(server):
    server.waiting.patience = FOR_EVER
    return server


@pytest.fixture
def background():
    with ThreadPoolExecutor(8) as pool:
        yield pool


def ask(client, kind=EXCLUSIVE, txnid=None):
    component = ttypes.LockComponent(kind, ttypes.LockLevel.TABLE, "db", "t")
    return client.lock(ttypes.LockRequest([component], txnid, "ann", "h1", "query")).lockid


def check(server, lock_id):
    with MetastoreClient(server.thrift_uri) as client:
        return client.check_lock(ttypes.CheckLockRequest(lock_id)).state


def parked(server, background, *lock_ids):
    """Their checks, all of which wait."""
    before = len(server.waiting)
    checks = [background.submit(check, server, lock_id) for lock_id in lock_ids]
    until(lambda: len(server.waiting) == before + len(lock_ids) and server.database.pool.lent == 0)
    return checks


def test_a_release_and_the_grant_are_one_round_trip(server, client, tap, background):
    first, second = ask(client), ask(client)
    [waits] = parked(server, background, second)
    tap.taken()

    client.unlock(ttypes.UnlockRequest(first))

    assert waits.result(ENOUGH) == ACQUIRED
    [exchange] = tap.taken()
    assert [done for done in exchange.done if not done.startswith("PREPARE")] == [
        "SET", "UPDATE 0", "DELETE 1", "UPDATE 1", "UPDATE 1", "SELECT 1"]


def test_a_request_that_waits_has_marked_whom_it_waits_for(server, client, tap, background):
    """So that its check need not: that is parked after the look, and a look for owners that have expired."""
    first, second, third = ask(client), ask(client), ask(client)
    waits = parked(server, background, second)
    tap.taken()

    waits += parked(server, background, third)
    exchanges, marks = tap.taken(), watched(server)

    for lock_id, waiting in zip((first, second), waits, strict=True):
        client.unlock(ttypes.UnlockRequest(lock_id))
        assert waiting.result(ENOUGH) == ACQUIRED
    assert len(exchanges) == 2
    assert marks == [True, True, False]


def test_a_lock_that_somebody_works_on_is_marked_by_the_check(server, client, direct_url, background):
    """Who gets into the queue of a database waits for no other row."""
    first = ask(client)
    with closing(psycopg2.connect(direct_url)) as session:
        session.cursor().execute("SELECT FROM locks WHERE ext_id = %s FOR UPDATE", [first])
        second = ask(client)
        assert watched(server) == [False, False]
    [waits] = parked(server, background, second)

    client.unlock(ttypes.UnlockRequest(first))

    assert waits.result(ENOUGH) == ACQUIRED


def watched(server):
    rows = server.database.once("SELECT watched_by FROM locks ORDER BY ext_id")
    return [process == server.database.pool.process for [process] in rows]


def test_a_release_lets_all_readers_in(server, client, background):
    first, *readers = ask(client), ask(client, SHARED), ask(client, SHARED)
    checks = parked(server, background, *readers)

    client.unlock(ttypes.UnlockRequest(first))

    assert [each.result(ENOUGH) for each in checks] == [ACQUIRED] * 2


def test_who_waits_for_several_waits_for_the_last_of_them(server, client, background):
    *readers, writer = ask(client, SHARED), ask(client, SHARED), ask(client)
    [waits] = parked(server, background, writer)

    client.unlock(ttypes.UnlockRequest(readers[1]))
    until(lambda: len(server.waiting) == 1 and server.database.pool.lent == 0)
    assert not waits.done()

    client.unlock(ttypes.UnlockRequest(readers[0]))
    assert waits.result(ENOUGH) == ACQUIRED


def test_the_lock_of_a_transaction_stays_and_nobody_gets_it(server, client, background):
    [txn_id] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids
    held, waiting = ask(client, txnid=txn_id), ask(client)
    [waits] = parked(server, background, waiting)

    with pytest.raises(ttypes.TxnOpenException, match=f"lockid:{held}"):
        client.unlock(ttypes.UnlockRequest(held))

    until(lambda: len(server.waiting) == 1)
    client.commit_txn(ttypes.CommitTxnRequest(txn_id))
    assert waits.result(ENOUGH) == ACQUIRED


def test_the_waiting_request_of_a_transaction_is_granted_and_its_owner_kept_alive(server, client, background):
    [txn_id] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids
    first, second = ask(client), ask(client, txnid=txn_id)
    [waits] = parked(server, background, second)
    [[before]] = server.database.once("SELECT heartbeat_count FROM txns WHERE id = %s", [txn_id])

    client.unlock(ttypes.UnlockRequest(first))

    assert waits.result(ENOUGH) == ACQUIRED
    assert server.database.once("SELECT heartbeat_count FROM txns WHERE id = %s", [txn_id]) == [(before + 1,)]
    client.commit_txn(ttypes.CommitTxnRequest(txn_id))


def test_a_request_of_a_transaction_that_has_ended_is_answered_so(server, client, background):
    [txn_id] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids
    first, second = ask(client), ask(client, txnid=txn_id)
    [waits] = parked(server, background, second)
    client.abort_txn(ttypes.AbortTxnRequest(txn_id))

    client.unlock(ttypes.UnlockRequest(first))

    with pytest.raises(ttypes.NoSuchLockException):
        waits.result(ENOUGH)


@pytest.fixture
def settings_at_commit(server, direct_url):
    """Return a function that lists the values of synchronous_commit at the commits of releases."""
    with closing(psycopg2.connect(direct_url)) as session:
        session.set_isolation_level(ISOLATION_LEVEL_AUTOCOMMIT)
        session.cursor().execute("""
            CREATE TABLE noted (setting text);
            CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO noted VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER note AFTER DELETE ON locks DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION note()""")
    return lambda: [setting for [setting] in server.database.once("SELECT setting FROM noted")]


def test_only_a_release_that_grants_waits_for_the_disk(server, client, background, settings_at_commit):
    first, second = ask(client), ask(client)
    [waits] = parked(server, background, second)

    client.unlock(ttypes.UnlockRequest(first))
    assert waits.result(ENOUGH) == ACQUIRED
    client.unlock(ttypes.UnlockRequest(second))

    assert settings_at_commit() == ["on", "off"]
