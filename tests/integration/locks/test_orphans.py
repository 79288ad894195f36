"""Locks without a transaction whose client is gone: removed early where that is wanted, and nobody else's."""

from datetime import timedelta
from functools import partial
from time import monotonic
from types import SimpleNamespace

import pytest

from metastore.config import LockSettings
from metastore.db.engine import Database
from metastore.errors import UnavailableError
from metastore.locks.orphans import store as orphan_store
from metastore.locks.orphans.rules import Gone, Left
from metastore.locks.rules import LockRequest
from metastore.locks.service import LockService
from metastore.loops.lock_keeper import DeadlockSearch, OrphanReport, Orphans
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.locks import LockHandlers
from metastore.thrift_server.waiting.lock_connections import LockConnections
from metastore.txns.core.service import Heartbeat
from tests.integration.locks.conftest import wanted
from tests.support.answers import shown_locks

GRACE, ALMOST, SILENCE = timedelta(seconds=60), timedelta(seconds=30), timedelta(seconds=70)
NOTHING = OrphanReport()


class Clock:
    """The process's clock: how much time was there to listen in."""

    now = 0.0

    def __call__(self):
        return self.now


def stub(peer="p"):
    return SimpleNamespace(closed=False, busy=False, calls=1, left=None, peer=peer, user=None)


def leave(connection, after=5.0):
    """Mark the connection as ended by its client, so many seconds from now."""
    connection.closed, connection.left = True, monotonic() + after


@pytest.fixture
def locks(database):
    return LockService(database, LockSettings(orphan_timeout=GRACE))


@pytest.fixture
def holders():
    return LockConnections()


@pytest.fixture
def orphans(locks, holders):
    """Of a server that has been there for a while."""
    running = Orphans(locks, holders, Clock())
    running.tick()
    return running


@pytest.fixture
def connection():
    return stub()


@pytest.fixture
def send(locks, holders):
    """Return a function that makes a call over a connection, through the handlers."""
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
    return {row.lockid for row in shown_locks(locks)}


def test_a_lock_goes_when_nobody_comes_back_for_it(take, connection, orphans, locks, test_clock):
    lock_id = take(connection)
    test_clock.advance(SILENCE)
    assert orphans.tick() == NOTHING
    leave(connection)

    assert orphans.tick() == OrphanReport(orphaned=1)
    test_clock.advance(ALMOST)
    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}
    test_clock.advance(GRACE - ALMOST)

    assert orphans.tick() == OrphanReport(removed=1)
    assert held(locks) == set()


def test_many_go_in_batches_and_each_whole(monkeypatch, send, connection, orphans, locks, test_clock):
    """Of two and of three components: a batch never leaves a part of a request behind."""
    monkeypatch.setattr(orphan_store, "delete_orphans", partial(orphan_store.delete_orphans, limit=2))
    parts = [ttypes.LockComponent(ttypes.LockType.SHARED_READ, ttypes.LockLevel.TABLE, "db", f"t{number}") for number in range(3)]
    for number in range(7):
        send("lock", ttypes.LockRequest(parts[number % 2:], None, f"u{number}", "h1"), connection)
    other = stub()
    kept = send("lock", ttypes.LockRequest(parts, None, "stays", "h1"), other).lockid
    leave(connection)
    assert orphans.tick() == OrphanReport(orphaned=7)
    test_clock.advance(SILENCE)

    assert orphans.tick() == OrphanReport(removed=7)
    assert held(locks) == {kept}


def test_an_orphan_that_somebody_works_on_stays_whole(database, send, connection, orphans, locks, test_clock):
    parts = [ttypes.LockComponent(ttypes.LockType.SHARED_READ, ttypes.LockLevel.TABLE, "db", name) for name in "tuv"]
    lock_id = send("lock", ttypes.LockRequest(parts, None, "ann", "h1"), connection).lockid
    leave(connection)
    orphans.tick()
    test_clock.advance(SILENCE)
    other = Database(database.url, pool_size=1)
    with other.begin() as pg:
        pg.sql("SELECT FROM locks WHERE ext_id = %s AND int_id = 2 FOR NO KEY UPDATE", (lock_id,))

        assert orphans.tick() == NOTHING
        assert len(shown_locks(locks)) == 3
    other.close()
    assert orphans.tick() == OrphanReport(removed=1)
    assert held(locks) == set()


def test_a_check_over_another_connection_takes_it_back(take, send, connection, orphans, locks, test_clock):
    other = stub("q")
    lock_id = take(connection)
    leave(connection)
    orphans.tick()

    send("check_lock", ttypes.CheckLockRequest(lock_id), other)
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_who_asks_over_several_connections_is_tied_to_none(take, send, connection, orphans, locks, test_clock):
    """A pool: whichever of them ends, the client may live."""
    other = stub("q")
    lock_id = take(connection)
    send("check_lock", ttypes.CheckLockRequest(lock_id), other)
    send("check_lock", ttypes.CheckLockRequest(lock_id), connection)
    leave(connection)
    leave(other)

    assert orphans.tick() == NOTHING
    test_clock.advance(SILENCE)
    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_who_asks_over_its_own_connection_is_tied_to_it(take, send, connection, orphans, locks, test_clock):
    """The one that holds the lock, and the one that waits behind it and is killed meanwhile."""
    first, second = take(connection), take(connection)
    for lock_id in (first, second, second):
        send("check_lock", ttypes.CheckLockRequest(lock_id), connection)
    leave(connection)

    assert orphans.tick() == OrphanReport(orphaned=2)
    test_clock.advance(SILENCE)
    assert orphans.tick() == OrphanReport(removed=2)
    assert held(locks) == set()


def test_several_looks_of_one_batch_count_as_one(database, locks, holders, take, connection, orphans, test_clock):
    lock_id = take(connection)
    handlers = LockHandlers(locks, holders=holders)
    handlers.check_lock([Call("check_lock", (ttypes.CheckLockRequest(lock_id),), connection) for _ in range(2)])
    leave(connection)
    orphans.tick()
    test_clock.advance(SILENCE)

    assert orphans.tick() == OrphanReport(removed=1)


def test_a_look_at_another_replica_unties(take, connection, orphans, locks, test_clock):
    """Before the connection ended: this process did not see the look, but it counts."""
    lock_id = take(connection)
    locks.check_lock([lock_id])
    leave(connection)
    orphans.tick()
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_who_says_farewell_or_is_sent_away_keeps_its_lock(take, connection, orphans, locks, test_clock):
    """Iceberg's pool ends a connection politely; the server closes those that are idle, and all when it stops."""
    lock_id = take(connection)
    connection.closed = True

    assert orphans.tick() == NOTHING
    test_clock.advance(SILENCE)
    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_a_call_in_work_relies_on_the_lock(take, connection, orphans, locks, test_clock):
    """An ALTER TABLE whose client was killed: nobody else gets the lock before it is done."""
    lock_id = take(connection)
    connection.busy = True
    leave(connection)
    test_clock.advance(SILENCE)
    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}

    connection.busy = False
    assert orphans.tick() == OrphanReport(orphaned=1)


def test_who_connects_for_each_call_has_twice_the_time(monkeypatch, take, connection, orphans, locks, test_clock):
    """Presto, which cannot be told from a client that was killed right after the answer."""
    monkeypatch.setattr("metastore.thrift_server.waiting.lock_connections.AT_ONCE", 60)
    lock_id = take(connection)
    leave(connection, after=0.01)
    assert orphans.tick() == OrphanReport(orphaned=1)
    test_clock.advance(SILENCE)
    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}

    test_clock.advance(GRACE)
    assert orphans.tick() == OrphanReport(removed=1)


def test_another_call_shows_that_the_connection_is_kept(take, connection, orphans, test_clock):
    take(connection)
    connection.calls += 1
    leave(connection, after=0.01)
    orphans.tick()
    test_clock.advance(SILENCE)

    assert orphans.tick() == OrphanReport(removed=1)


def test_trino_keeps_its_lock(send, connection, orphans, locks, test_clock):
    component = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "db", "t")
    request = ttypes.LockRequest([component], None, "ann", "h1", "20261122_081530_00042_x7k2p")
    lock_id = send("lock", request, connection).lockid
    leave(connection)

    assert orphans.tick() == NOTHING
    test_clock.advance(SILENCE)
    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_a_server_that_starts_listens_first(take, connection, orphans, locks, holders, test_clock):
    """Nobody could reach the one before it to say that it lives."""
    lock_id = take(connection)
    leave(connection)
    orphans.tick()
    test_clock.advance(SILENCE)

    started = Orphans(locks, LockConnections())

    assert started.tick() == NOTHING
    test_clock.advance(ALMOST)
    assert started.tick() == NOTHING
    assert held(locks) == {lock_id}
    test_clock.advance(GRACE - ALMOST)
    assert started.tick() == OrphanReport(removed=1)


def test_a_server_that_stood_still_listens_first(take, connection, orphans, locks, test_clock):
    lock_id = take(connection)
    leave(connection)
    orphans.tick()
    test_clock.advance(SILENCE)
    orphans.clock.now += SILENCE.total_seconds()

    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}
    test_clock.advance(SILENCE)
    assert orphans.tick() == OrphanReport(removed=1)


def test_while_postgresql_is_away_nobody_is_forgotten_and_nobody_ended(take, connection, orphans, monkeypatch, test_clock):
    first = take(connection)
    leave(connection)
    orphans.tick()
    other = stub("q")
    second = take(other, "u")
    leave(other)
    with monkeypatch.context() as away:
        def unavailable(*_args):
            raise UnavailableError("PostgreSQL is away")
        away.setattr(orphan_store, "update_orphaned", unavailable)
        with pytest.raises(UnavailableError):
            orphans.tick()
    test_clock.advance(SILENCE)

    assert orphans.tick() == OrphanReport(orphaned=1)
    test_clock.advance(SILENCE)
    assert orphans.tick() == OrphanReport(removed=2)
    assert first != second


def test_a_check_that_this_process_did_not_see_counts_too(take, connection, orphans, locks, test_clock):
    lock_id = take(connection)
    leave(connection)
    orphans.tick()

    locks.check_lock([lock_id])
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_who_sends_heartbeats_has_the_usual_time(take, connection, orphans, locks, txns, test_clock):
    lock_id = take(connection)
    locks.check_lock([lock_id])
    txns.heartbeat([Heartbeat(0, lock_id)])
    leave(connection)
    orphans.tick()
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_locks_of_transactions_are_not_orphans(take, connection, orphans, locks, open_txn, test_clock):
    lock_id = take(connection, txnid=open_txn())
    leave(connection)
    orphans.tick()
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING
    assert held(locks) == {lock_id}


def test_heartbeats_and_transactions_are_looked_at_in_the_rows(database, take, locks, txns, open_txn):
    """Whatever this process takes for gone."""
    beaten, of_txn = take(stub()), take(stub("q"), "u", open_txn())
    txns.heartbeat([Heartbeat(0, beaten)])

    locks.orphan(Left([Gone(one, 0, at_once=False) for one in (beaten, of_txn)], set(), set()))

    assert database.once("SELECT count(*) FROM locks WHERE orphaned_at IS NOT NULL") == [(0,)]


def test_what_is_released_or_gone_is_forgotten(take, send, connection, orphans, locks, holders):
    first, second, third = (take(connection, name) for name in "abc")
    send("unlock", ttypes.UnlockRequest(first), connection)
    locks.unlock([second])

    assert orphans.tick() == NOTHING

    assert holders.left() == ([], {third}, set())


def test_a_repetition_at_another_replica_unties(locks, orphans, holders, connection, test_clock):
    """Before this process notes that the first connection is gone."""
    request = LockRequest(tuple(wanted("X db.t")), 0, "ann", "h1", "Iceberg-0a1b2c3d-0000-4000-8000-0123456789ab")
    [first] = locks.lock([request])
    holders.took(first.lock_id, connection)
    leave(connection)

    assert locks.lock([request]) == [first]
    orphans.tick()
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING
    assert held(locks) == {first.lock_id}


def test_a_repetition_over_another_connection_unties(locks, orphans, holders, connection, test_clock):
    request = LockRequest(tuple(wanted("X db.t")), 0, "ann", "h1", "Iceberg-0a1b2c3d-0000-4000-8000-0123456789ab")
    [first] = locks.lock([request])
    holders.took(first.lock_id, connection)
    holders.took(first.lock_id, connection)
    leave(connection)
    orphans.tick()
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING


def test_a_repetition_takes_it_back(locks, orphans, holders, connection, test_clock):
    request = LockRequest(tuple(wanted("X db.t")), 0, "ann", "h1", "Iceberg-0a1b2c3d-0000-4000-8000-0123456789ab")
    [first] = locks.lock([request])
    holders.took(first.lock_id, connection)
    leave(connection)
    orphans.tick()

    locks.lock([request])
    test_clock.advance(SILENCE)

    assert orphans.tick() == NOTHING


def test_switched_off_nothing_is_removed(database, take, connection, holders, test_clock):
    plain = Orphans(LockService(database, LockSettings(orphan_timeout=timedelta(0))), holders, Clock())
    take(connection)
    leave(connection)
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
