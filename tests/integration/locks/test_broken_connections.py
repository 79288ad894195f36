"""Locks without a transaction, over sockets: of clients that are killed, and of those that only connect again."""

import subprocess
import sys
from datetime import timedelta

import pytest

from metastore.client import MetastoreClient
from metastore.locks.service import LockService
from metastore.locks.why.service import Question, WhyService
from metastore.loops.lock_keeper import OrphanReport, Orphans
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.waiting.lock_connections import LockConnections
from tests.support.thrift_server import until

NOTHING = OrphanReport()
GRACE, ALMOST, MORE = timedelta(seconds=40), timedelta(seconds=20), timedelta(seconds=21)
TRINO = "20261122_081530_00042_x7k2p"

CLIENT = """
import sys
from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes
client = MetastoreClient(sys.argv[1])
component = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "db", "t")
lock_id = client.lock(ttypes.LockRequest([component], None, "ann", "h1")).lockid
for call in sys.argv[2:]:
    if call == "get_all_databases":
        client.get_all_databases()
    elif call == "heartbeat":
        client.heartbeat(ttypes.HeartbeatRequest(lockid=lock_id))
    elif call == "check_lock":
        client.check_lock(ttypes.CheckLockRequest(lock_id))
    elif call == "close":
        client.close()
print(lock_id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def orphans(server):
    running = Orphans(LockService(server.database, server.settings.locks), server.services.holders)
    running.tick()
    return running


@pytest.fixture
def killed(server):
    """Return a function: a client process takes a lock, makes these calls and is killed; the lock's id returns once the server knows."""
    def run(*calls):
        process = subprocess.Popen([sys.executable, "-c", CLIENT, server.thrift_uri, *calls], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        lock_id = int(process.stdout.readline())
        process.kill()
        process.communicate()
        until(lambda: lock_id not in server.services.holders.left().here)
        return lock_id
    return run


@pytest.fixture
def lock(server):
    """Return a function that takes a lock over a connection of its own, and ends it after the answer without a farewell, as Trino does."""
    def locked(agent):
        client = MetastoreClient(server.thrift_uri)
        component = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "db", "t")
        lock_id = client.lock(ttypes.LockRequest([component], None, "ann", "h1", agent)).lockid
        client._disconnect()
        until(lambda: lock_id not in server.services.holders.left().here)
        return lock_id
    return locked


def held(client):
    return {row.lockid for row in client.show_locks(ttypes.ShowLocksRequest()).locks}


@pytest.mark.parametrize("calls", [("get_all_databases",), ("check_lock", "check_lock")])
def test_the_lock_of_a_client_that_was_killed_ends_in_seconds(killed, orphans, client, test_clock, calls):
    lock_id = killed(*calls)
    assert orphans.tick() == OrphanReport(orphaned=1)
    test_clock.advance(ALMOST)
    assert orphans.tick() == NOTHING
    assert held(client) == {lock_id}

    test_clock.advance(MORE)
    assert orphans.tick() == OrphanReport(removed=1)
    assert held(client) == set()


def test_killed_right_after_the_answer_it_takes_twice_as_long(monkeypatch, killed, orphans, client, test_clock):
    monkeypatch.setattr("metastore.thrift_server.waiting.lock_connections.AT_ONCE", 60)
    lock_id = killed()
    assert orphans.tick() == OrphanReport(orphaned=1)
    test_clock.advance(GRACE + ALMOST)
    assert orphans.tick() == NOTHING
    assert held(client) == {lock_id}

    test_clock.advance(MORE)
    assert orphans.tick() == OrphanReport(removed=1)


@pytest.mark.parametrize("calls", [("heartbeat",), ("close",)])
def test_one_heartbeat_or_a_farewell_and_the_usual_time_holds(killed, orphans, client, test_clock, calls):
    lock_id = killed(*calls)
    orphans.tick()
    test_clock.advance(2 * GRACE + MORE)

    assert orphans.tick() == NOTHING
    assert held(client) == {lock_id}


def test_trino_connects_for_each_call_and_keeps_its_lock(lock, orphans, client, test_clock):
    lock_id = lock(TRINO)
    assert orphans.tick() == NOTHING
    test_clock.advance(2 * GRACE + MORE)

    assert orphans.tick() == NOTHING
    assert held(client) == {lock_id}


def test_who_connects_again_and_asks_keeps_its_lock(killed, orphans, client, test_clock):
    lock_id = killed("get_all_databases")
    orphans.tick()
    test_clock.advance(ALMOST)
    assert client.check_lock(ttypes.CheckLockRequest(lock_id)).state == ttypes.LockState.ACQUIRED
    test_clock.advance(2 * GRACE)

    assert orphans.tick() == NOTHING
    assert held(client) == {lock_id}


@pytest.mark.parametrize("when", ["before it is noticed", "after it was noticed"])
def test_who_asks_another_replica_keeps_its_lock(server, killed, orphans, client, test_clock, when):
    lock_id = killed("get_all_databases")
    if when.startswith("after"):
        orphans.tick()
    LockService(server.database).check_lock([lock_id])  # the other replica's
    orphans.tick()
    test_clock.advance(2 * GRACE + MORE)

    assert orphans.tick() == NOTHING
    assert held(client) == {lock_id}


def test_a_server_that_has_just_started_ends_nobody(server, killed, orphans, client, test_clock):
    lock_id = killed("get_all_databases")
    orphans.tick()
    test_clock.advance(timedelta(minutes=2))

    started = Orphans(LockService(server.database, server.settings.locks), LockConnections())

    assert started.tick() == NOTHING
    test_clock.advance(ALMOST)
    assert started.tick() == NOTHING
    assert held(client) == {lock_id}
    test_clock.advance(MORE)
    assert started.tick() == OrphanReport(removed=1)


def test_the_server_that_closes_says_nothing_of_its_clients(server, orphans, test_clock):
    """Here: it stops. So is it with clients that are idle or too many."""
    client = MetastoreClient(server.thrift_uri)
    component = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "db", "t")
    client.lock(ttypes.LockRequest([component], None, "ann", "h1"))
    client.get_all_databases()
    server.server.drain()
    until(lambda: not server.services.holders.left().here)

    assert orphans.tick() == NOTHING
    test_clock.advance(2 * GRACE + MORE)
    assert orphans.tick() == NOTHING
    client._disconnect()


def test_the_countdown_tells_it(server, killed, orphans):
    lock_id = killed("get_all_databases")
    orphans.tick()

    [owner] = WhyService(server.database, server.settings.txns, server.settings.locks.orphan_timeout).explain(
        Question(lock_id=lock_id)).owners

    assert 0 < owner.expires_in.total_seconds() <= 40  # and not the usual 300
