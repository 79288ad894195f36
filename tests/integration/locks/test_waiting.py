"""check_lock that waits for the lock: what wakes it, what it costs, what ends it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta

import psycopg2
import pytest
from psycopg2.extensions import ISOLATION_LEVEL_AUTOCOMMIT

from metastore.app import App
from metastore.client import MetastoreClient
from metastore.config.settings import SettingsSource, build
from metastore.errors import InvalidInputError
from metastore.housekeeping.service import PurgeService
from metastore.loops.reaper import Reaper
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.waiting.lock_waits import CHANNEL
from tests.support.thrift_server import Peer, message, until

ACQUIRED, WAITING = ttypes.LockState.ACQUIRED, ttypes.LockState.WAITING
ENOUGH, FOR_EVER = 120, 3600.0


@pytest.fixture
def server_settings():
    return {"metastore.lock.check.wait": "5s"}


@pytest.fixture
def server(server):
    """With more patience than a server may be given, so that nothing here depends on the speed of the machine."""
    server.waiting.patience = FOR_EVER
    return server


@pytest.fixture
def replica(database_url, tmp_path, server_settings):
    """Yield a function that starts another server on the same database."""
    started = []

    def start(**settings):
        app = App(build([SettingsSource("test", {
            "metastore.database.url": database_url, "hive.metastore.thrift.bind.host": "127.0.0.1",
            "hive.metastore.port": "0", "metastore.http.port": "0",
            "hive.metastore.warehouse.dir": (tmp_path / "warehouse").as_uri(), **server_settings, **settings})]),
            loops=False)
        started.append(app)
        app.start()
        if not settings:
            app.waiting.patience = FOR_EVER
        return app
    yield start
    for app in started:
        app.stop()


@pytest.fixture
def background():
    with ThreadPoolExecutor(40) as pool:
        yield pool


@pytest.fixture
def heard(database_url):
    """Yield a function that lists the payloads of NOTIFY until now."""
    with closing(psycopg2.connect(database_url)) as session:
        session.set_isolation_level(ISOLATION_LEVEL_AUTOCOMMIT)
        session.cursor().execute(f"LISTEN {CHANNEL}")

        def told():
            session.cursor().execute("SELECT 1")
            return [notify.payload for notify in session.notifies]
        yield told


def request(name="t", kind=ttypes.LockType.EXCLUSIVE, txnid=None, agent="query"):
    component = ttypes.LockComponent(kind, ttypes.LockLevel.TABLE, "db", name)
    return ttypes.LockRequest([component], txnid, "ann", "h1", agent)


def asked(client, *args, **more):
    return client.lock(request(*args, **more)).lockid


def checks(app, lock_id):
    """Check over a connection of its own, as long as it takes until the lock is granted."""
    with MetastoreClient(app.thrift_uri) as client:
        answers = [client.check_lock(ttypes.CheckLockRequest(lock_id)).state]
        while answers[-1] == WAITING:
            answers.append(client.check_lock(ttypes.CheckLockRequest(lock_id)).state)
        return answers


def waiting(app):
    return len(app.waiting)


def test_a_release_wakes_the_waiter(server, client, background, heard):
    first, second = asked(client), asked(client)
    checked = background.submit(checks, server, second)
    until(lambda: waiting(server) == 1)

    client.unlock(ttypes.UnlockRequest(first))

    assert checked.result(ENOUGH) == [ACQUIRED]
    assert heard() == []


@pytest.mark.parametrize("ending", ["commit", "abort", "abort_txns", "expiry"])
def test_the_end_of_a_transaction_wakes_the_waiter(server, client, background, database, test_clock, ending):
    [txn_id] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "h1")).txn_ids
    client.lock(request(txnid=txn_id))
    second = asked(client)
    checked = background.submit(checks, server, second)
    until(lambda: waiting(server) == 1)

    if ending == "commit":
        client.commit_txn(ttypes.CommitTxnRequest(txn_id))
    elif ending == "abort":
        client.abort_txn(ttypes.AbortTxnRequest(txn_id))
    elif ending == "abort_txns":
        client.abort_txns(ttypes.AbortTxnsRequest([txn_id]))
    else:
        test_clock.advance(timedelta(seconds=301))
        client.heartbeat(ttypes.HeartbeatRequest(lockid=second))
        Reaper(PurgeService(server.database, server.settings.txns)).tick()

    assert checked.result(ENOUGH) == [ACQUIRED]


def test_a_release_on_another_replica_wakes_the_waiter_with_one_notify(server, client, replica, background, heard):
    first, second = asked(client), asked(client)
    other = replica()
    checked = background.submit(checks, other, second)
    until(lambda: waiting(other) == 1)
    until(lambda: watchers(server) == ["*"])  # the process that put the request into the queue, and the one that waits

    client.unlock(ttypes.UnlockRequest(first))

    assert checked.result(ENOUGH) == [ACQUIRED]
    assert heard() == [str(first)]


def test_waiters_of_several_replicas_are_all_told(server, client, replica, background, heard):
    shared = ttypes.LockType.SHARED_READ
    first, *readers = asked(client), asked(client, kind=shared), asked(client, kind=shared)
    other = replica()
    checked = [background.submit(checks, app, lock_id) for app, lock_id in zip((server, other), readers, strict=True)]
    until(lambda: watchers(server) == ["*"])

    client.unlock(ttypes.UnlockRequest(first))

    assert [one.result(ENOUGH) for one in checked] == [[ACQUIRED], [ACQUIRED]]
    assert heard() == [str(first)]


def watchers(app):
    return [who for (who,) in app.database.once("SELECT watched_by FROM locks WHERE watched_by IS NOT NULL")]


def test_nobody_is_told_of_a_release_that_nobody_waits_for(client, heard):
    for _ in range(3):
        client.unlock(ttypes.UnlockRequest(asked(client)))

    assert heard() == []


def test_patience_ends_with_the_answer_that_it_waits(client, replica, background):
    other = replica(**{"metastore.lock.check.wait": "100ms"})
    asked(client)
    second = asked(client)

    with MetastoreClient(other.thrift_uri) as impatient:
        assert impatient.check_lock(ttypes.CheckLockRequest(second)).state == WAITING

    assert waiting(other) == 0


@pytest.mark.parametrize("text", ["6s", "-1s", "10s"])
def test_patience_is_bounded(text):
    with pytest.raises(InvalidInputError, match=r"metastore.lock.check.wait.*at least 0ms and at most 5000ms"):
        build([SettingsSource("test", {"metastore.lock.check.wait": text})])


def test_without_the_setting_nobody_waits(client, replica):
    plain = replica(**{"metastore.lock.check.wait": "0"})
    asked(client)

    with MetastoreClient(plain.thrift_uri) as one:
        assert one.check_lock(ttypes.CheckLockRequest(asked(one))).state == WAITING
    assert plain.waiting is None
    assert watchers(plain) == []


def test_waiting_costs_no_thread_and_no_connection(server, client):
    before = set(threading.enumerate())
    holder, *waiters = [asked(client) for _ in range(31)]
    with ExitStack() as open_peers:
        for lock_id in waiters:
            open_peers.enter_context(sent(server, lock_id))
        until(lambda: waiting(server) == 30)

        assert set(threading.enumerate()) <= before  # some of an earlier test's may have ended
        assert until(lambda: server.database.pool.lent == 0)
        client.unlock(ttypes.UnlockRequest(holder))
        until(lambda: waiting(server) == 29)


@contextmanager
def sent(app, lock_id):
    """Yield a connection on which a check_lock was sent; nobody reads the answer."""
    with Peer((app.settings.server.host, int(app.thrift_uri.rpartition(":")[2]))) as peer:
        peer.send(message("check_lock", b"\x0c\0\1\x0a\0\1" + lock_id.to_bytes(8) + b"\0\0"))
        yield peer


def test_a_client_that_leaves_does_not_wait_on(server, client):
    holder, waiter = asked(client), asked(client)
    with sent(server, waiter):
        until(lambda: waiting(server) == 1)

    until(lambda: waiting(server) == 0)
    client.unlock(ttypes.UnlockRequest(holder))
    until(lambda: states(client) == {waiter: WAITING})


def test_a_server_that_stops_answers_at_once(client, replica, background):
    other = replica()
    asked(client)
    second = asked(client)
    with MetastoreClient(other.thrift_uri) as one:
        checked = background.submit(one.check_lock, ttypes.CheckLockRequest(second))
        until(lambda: waiting(other) == 1)

        other.stop()

        assert checked.result(ENOUGH).state == WAITING


def states(client):
    return {row.lockid: row.state for row in client.show_locks(ttypes.ShowLocksRequest()).locks}


def test_a_lost_connection_of_the_listener_is_noticed_and_made_again(server, client, background, database):
    holder, waiter = asked(client), asked(client)
    checked = background.submit(checks, server, waiter)
    until(lambda: waiting(server) == 1)

    database.once("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'metastore listener'"
                  " AND datname = current_database()")

    until(lambda: listening(database))
    until(lambda: waiting(server) == 1)
    client.unlock(ttypes.UnlockRequest(holder))
    assert set(checked.result(ENOUGH)[:-1]) <= {WAITING}


def listening(database):
    return database.once("SELECT pid FROM pg_stat_activity WHERE application_name = 'metastore listener' "
                         "AND datname = current_database() AND state = 'idle'")


def test_32_writers_of_one_table_in_the_order_of_asking(server, client, replica, background):
    """Each holds an exclusive lock for a moment, as an Iceberg commit does; half of them through another replica."""
    apps = [server, replica()]
    order, holding = [], threading.Semaphore(1)
    first = asked(client)
    writers = []
    for number in range(32):
        one = MetastoreClient(apps[number % 2].thrift_uri)
        writers.append((one, one.lock(request(agent=f"writer {number}")).lockid))
    assert sorted(lock_id for _, lock_id in writers) == [lock_id for _, lock_id in writers]

    def write(one, lock_id):
        with one:
            while one.check_lock(ttypes.CheckLockRequest(lock_id)).state == WAITING:
                pass
            assert holding.acquire(blocking=False), "two hold the lock"
            order.append(lock_id)
            holding.release()
            one.unlock(ttypes.UnlockRequest(lock_id))

    written = [background.submit(write, *writer) for writer in writers]
    until(lambda: sum(map(waiting, apps)) == 32)
    client.unlock(ttypes.UnlockRequest(first))

    assert [one.result(ENOUGH) for one in written] == [None] * 32
    assert order == [lock_id for _, lock_id in writers]
    assert states(client) == {}


def test_the_release_of_one_wakes_one(server, client, background):
    """Of a queue of writers only the next one looks again."""
    ids = [asked(client) for _ in range(9)]
    checked = [background.submit(checks, server, lock_id) for lock_id in ids[1:]]
    until(lambda: waiting(server) == 8)
    before = wakes(server)

    client.unlock(ttypes.UnlockRequest(ids[0]))
    assert checked[0].result(ENOUGH) == [ACQUIRED]

    assert wakes(server) - before == 1
    for lock_id, following in zip(ids[1:-1], checked[1:], strict=True):
        client.unlock(ttypes.UnlockRequest(lock_id))
        assert following.result(ENOUGH) == [ACQUIRED]


def wakes(app):
    return next(metric.samples[0].value for metric in app.lock_stats.collect() if metric.name == "metastore_lock_wakes")
