"""Locks without a transaction whose client is gone: removed early where that is wanted, and nobody else's."""

from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest

from metastore.config import LockSettings
from metastore.db.engine import Database
from metastore.locks import wait_store
from metastore.locks.holders import Holders
from metastore.locks.rules import LockRequest
from metastore.locks.service import LockFilter, LockService
from metastore.loops.lock_keeper import DeadlockSearch, OrphanReport, Orphans
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.call import Call
from metastore.thrift_server.handlers.locks import LockHandlers
from metastore.txns.service import Heartbeat
from tests.integration.locks.conftest import wanted

SILENCE = timedelta(seconds=40)
NOTHING = OrphanReport()


@pytest.fixture
def locks(database):
    return LockService(database, LockSettings(orphan_timeout=timedelta(seconds=30)))


@pytest.fixture
def holders():
    return Holders()


@pytest.fixture
def orphans(locks, holders):
    return Orphans(locks, holders)


@pytest.fixture
def connection():
    return SimpleNamespace(closed=False, peer="p", user=None)


@pytest.fixture
def send(locks, holders):
    """A call over a connection, through the handlers."""
    handlers = LockHandlers(locks, holders=holders)

    def sent(method, argument, connection):
        [answer] = getattr(handlers, method)([Call(method, (argument,), connection)])
        return answer
    return sent


@pytest.fixture
def take(send):
    def taken(connection, name="t", txnid=None):
        component = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "db", name)
        return send("lock", ttypes.LockRequest([component], txnid, "ann", "h1"), connection).lockid
    return taken


def held(locks):
    return {row.lock.ext_id for row in locks.show_locks(LockFilter())}


def test_a_lock_goes_when_nobody_comes_back_for_it(take, connection, orphans, locks, test_clock):
    lock_id = take(connection)
    test_clock.advance(SILENCE)
    assert orphans.tick() == NOTHING
    connection.closed = True

    assert orphans.tick() == OrphanReport(orphaned=1)
    test_clock.advance(timedelta(seconds=29))
    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}
    test_clock.advance(timedelta(seconds=2))

    assert orphans.tick() == OrphanReport(removed=1)
    assert held(locks) == set()


def test_many_go_in_batches_and_each_whole(monkeypatch, send, connection, orphans, locks, test_clock):
    """Of two and of three components: a batch never leaves a part of a request behind."""
    monkeypatch.setattr(wait_store, "delete_orphans", partial(wait_store.delete_orphans, limit=2))
    parts = [ttypes.LockComponent(ttypes.LockType.SHARED_READ, ttypes.LockLevel.TABLE, "db", f"t{number}") for number in range(3)]
    for number in range(7):
        send("lock", ttypes.LockRequest(parts[number % 2:], None, f"u{number}", "h1"), connection)
    other = SimpleNamespace(closed=False, peer="p", user=None)
    kept = send("lock", ttypes.LockRequest(parts, None, "stays", "h1"), other).lockid
    connection.closed = True
    assert orphans.tick() == OrphanReport(orphaned=7)
    test_clock.advance(SILENCE)

    assert orphans.tick() == OrphanReport(removed=7)
    assert held(locks) == {kept}


def test_an_orphan_that_somebody_works_on_stays_whole(database, send, connection, orphans, locks, test_clock):
    parts = [ttypes.LockComponent(ttypes.LockType.SHARED_READ, ttypes.LockLevel.TABLE, "db", name) for name in "tuv"]
    lock_id = send("lock", ttypes.LockRequest(parts, None, "ann", "h1"), connection).lockid
    connection.closed = True
    orphans.tick()
    test_clock.advance(SILENCE)
    other = Database(database.url, pool_size=1)
    with other.begin() as pg:
        pg.sql("SELECT FROM locks WHERE ext_id = %s AND int_id = 2 FOR NO KEY UPDATE", (lock_id,))

        assert orphans.tick() == NOTHING
        assert len(locks.show_locks(LockFilter())) == 3
    other.close()
    assert orphans.tick() == OrphanReport(removed=1)
    assert held(locks) == set()


def test_a_check_over_another_connection_takes_it_back(take, send, connection, orphans, locks, test_clock):
    other = SimpleNamespace(closed=False, peer="q", user=None)
    lock_id = take(connection)
    connection.closed = True
    orphans.tick()

    send("check_lock", ttypes.CheckLockRequest(lock_id), other)
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING
    other.closed = True
    assert orphans.tick() == OrphanReport(orphaned=1)
    test_clock.advance(SILENCE)
    assert orphans.tick() == OrphanReport(removed=1)


def test_a_check_that_this_process_did_not_see_counts_too(take, connection, orphans, locks, test_clock):
    lock_id = take(connection)
    connection.closed = True
    orphans.tick()

    locks.check_lock([lock_id])
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_who_sends_heartbeats_has_the_usual_time(take, connection, orphans, locks, txns, test_clock):
    lock_id = take(connection)
    locks.check_lock([lock_id])
    txns.heartbeat([Heartbeat(0, lock_id)])
    connection.closed = True
    orphans.tick()
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_locks_of_transactions_are_not_orphans(take, connection, orphans, locks, open_txn, test_clock):
    lock_id = take(connection, txnid=open_txn())
    connection.closed = True
    orphans.tick()
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_what_is_released_or_gone_is_forgotten(take, send, connection, orphans, locks, holders):
    first, second, third = (take(connection, name) for name in "abc")
    send("unlock", ttypes.UnlockRequest(first), connection)
    locks.unlock([second])

    assert orphans.tick() == NOTHING

    assert holders.left() == (set(), {third})


def test_a_repetition_takes_it_back(locks, orphans, holders, connection, test_clock):
    request = LockRequest(tuple(wanted("X db.t")), 0, "ann", "h1", "Iceberg-0a1b2c3d-0000-4000-8000-0123456789ab")
    [first] = locks.lock([request])
    holders.took(first.lock_id, connection)
    connection.closed = True
    orphans.tick()

    locks.lock([request])
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING


def test_switched_off_nothing_is_removed(database, take, connection, holders, test_clock):
    plain = Orphans(LockService(database), holders)
    take(connection)
    connection.closed = True
    plain.tick()
    test_clock.advance(SILENCE)

    assert plain.tick() == NOTHING


def test_the_search_for_forgotten_deadlocks(database, open_txn, locks):
    blind = LockService(database, LockSettings(detect_deadlocks=False))
    one, two = open_txn(), open_txn()
    for text, txn_id in (("S db.t", one), ("S db.t", two), ("X db.t", one), ("X db.t", two)):
        blind.lock([LockRequest(tuple(wanted(text)), txn_id)])

    assert DeadlockSearch(locks).tick().victims == (two,)
    assert DeadlockSearch(locks).tick().victims == ()
