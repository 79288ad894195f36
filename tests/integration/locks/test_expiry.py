"""Who expires goes whole, goes when it is due, and is noticed by whoever meets it."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from metastore.app.loops import server_loops
from metastore.config import TxnSettings
from metastore.db.engine import Database
from metastore.housekeeping.service import PurgeService
from metastore.locks.why.service import Question, WhyService
from metastore.loops.reaper import EXPIRY, Reaper, until_due
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.locks import LockHandlers
from metastore.txns.core.rules import TxnState
from metastore.txns.core.service import Heartbeat
from metastore.txns.core.store import select_states
from tests.support.answers import shown_locks

PARTS = "S db.t + S db.u + S db.v"


def seconds(number):
    return timedelta(seconds=number)


@pytest.fixture
def expiry(database):
    return Reaper(PurgeService(database, TxnSettings()), EXPIRY)


@pytest.fixture
def other(database):
    """Another session: a server in the middle of a heartbeat, or of a mark for a waiter."""
    opened = Database(database.url, pool_size=1)
    yield opened
    opened.close()


@pytest.fixture
def look(database, locks):
    """Return a function that calls check_lock of a server that started long ago or that starts now."""
    connection = SimpleNamespace(closed=False, peer="p", user=None)

    def looked(lock_id, purges=None):
        handlers = LockHandlers(locks, purges=purges or PurgeService(database, TxnSettings()))
        [answer] = handlers.check_lock([Call("check_lock", (ttypes.CheckLockRequest(lock_id),), connection)])
        return answer.state
    return looked


def parts(locks, lock_id):
    return [row.lockIdInternal for row in shown_locks(locks) if row.lockid == lock_id]


def test_a_request_expires_whole_or_not_at_all(locks, ask, expiry, other, test_clock):
    """Somebody works on one of its rows: none goes, and the next round is at once."""
    lock_id, _ = ask(PARTS)
    test_clock.advance(seconds(301))
    with other.begin() as pg:
        pg.sql("SELECT FROM locks WHERE ext_id = %s AND int_id = 2 FOR NO KEY UPDATE", (lock_id,))

        report = expiry.tick()

        assert (report.expired_locks, parts(locks, lock_id)) == (0, [1, 2, 3])
        assert until_due(report) <= timedelta(0)
    assert expiry.tick().expired_locks == 3
    assert parts(locks, lock_id) == []


def test_a_heartbeat_that_is_on_its_way_saves_all_of_a_request(locks, ask, expiry, other, txns, test_clock):
    lock_id, _ = ask(PARTS)
    test_clock.advance(seconds(301))
    with other.begin() as pg:
        pg.sql("UPDATE locks SET last_heartbeat_at = metastore_now() WHERE ext_id = %s AND int_id = 3", (lock_id,))
        expiry.tick()
    assert txns.heartbeat([Heartbeat(0, lock_id)]) == [None]

    expiry.tick()

    assert parts(locks, lock_id) == [1, 2, 3]


def test_the_next_round_is_when_the_next_one_is_due(ask, expiry, open_txn, test_clock):
    assert until_due(expiry.tick()) == seconds(300)  # who comes now
    ask("X db.t")
    test_clock.advance(seconds(100))
    txn_id = open_txn()
    test_clock.advance(seconds(90))
    assert seconds(80) < until_due(expiry.tick()) <= seconds(110)  # less what has passed since

    test_clock.advance(seconds(111))
    assert expiry.tick().expired_locks == 1
    assert seconds(69) < until_due(expiry.tick()) <= seconds(99)
    test_clock.advance(seconds(100))
    assert expiry.tick().expired_txns == 1
    assert txn_id


def test_a_servers_house_keeper_comes_back_when_it_is_due(server):
    [reaper] = [loop for loop in server_loops(server.services, server.settings) if loop.name == "reaper"]

    assert timedelta(0) < reaper.sooner(reaper.tick()) <= server.settings.txns.timeout


def test_the_countdown_is_what_the_house_keeper_goes_by(database, ask, expiry, test_clock):
    lock_id, _ = ask("X db.t")
    test_clock.advance(seconds(120))

    [owner] = WhyService(database, TxnSettings()).explain(Question(lock_id=lock_id)).owners

    assert abs(owner.expires_in - until_due(expiry.tick())) < seconds(30)


def test_a_waiter_ends_the_expired_lock_in_its_way(locks, ask, look, txns, test_clock):
    """No round of a house-keeper is needed. Two are in the way, one behind the other, both of dead clients."""
    dead, _ = ask(PARTS)
    dead_too, _ = ask("X db.u")
    test_clock.advance(seconds(200))
    waiting, _ = ask("X db.v + X db.u")
    assert look(waiting) == ttypes.LockState.WAITING
    test_clock.advance(seconds(101))

    assert look(waiting) == ttypes.LockState.ACQUIRED
    assert {row.lockid for row in shown_locks(locks)} == {waiting}
    assert dead < dead_too


def test_a_waiter_ends_the_expired_transaction_in_its_way(database, ask, look, open_txn, test_clock):
    txn_id = open_txn()
    ask("X db.t", txn_id)
    test_clock.advance(seconds(301))
    waiting, _ = ask("X db.t")

    assert look(waiting) == ttypes.LockState.ACQUIRED
    assert select_states(database, [txn_id]) == {txn_id: TxnState.ABORTED}


def test_who_is_heard_of_is_not_ended(ask, look, txns, test_clock):
    held, _ = ask("X db.t")
    test_clock.advance(seconds(200))
    txns.heartbeat([Heartbeat(0, held)])
    waiting, _ = ask("X db.t")
    test_clock.advance(seconds(200))

    assert look(waiting) == ttypes.LockState.WAITING


def test_a_server_that_has_just_started_lets_clients_come_back(database, ask, look, test_clock):
    """They could not be heard while it was away; the countdown says so too."""
    held, _ = ask("X db.t")
    test_clock.advance(seconds(400))
    with database.begin() as pg:
        purges = PurgeService.of_new_server(database, TxnSettings(), pg.now)
    waiting, _ = ask("X db.t")

    assert look(waiting, purges) == ttypes.LockState.WAITING
    [owner] = WhyService(database, TxnSettings(), not_before=purges.not_before).explain(Question(lock_id=held)).owners
    assert seconds(70) < owner.expires_in <= seconds(100)
    test_clock.advance(seconds(101))
    assert look(waiting, purges) == ttypes.LockState.ACQUIRED
