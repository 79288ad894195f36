"""PostgreSQL from an event loop: fibers never hold up their thread, nor wait for a connection."""

import select
import socket

import pytest

from metastore.db import pool
from metastore.db.engine import Database
from metastore.errors import UnavailableError
from metastore.thrift_server.dispatch.workers import FiberWaits, PgFiber


@pytest.fixture
def waits():
    with select.epoll() as polled:
        yield FiberWaits(polled)


def run_all(waits, works):
    """Run these in fibers to their ends; how often one of them went on after a wait."""
    left = len(works)

    def finishing(work):
        nonlocal left
        work()
        left -= 1

    for work in works:
        PgFiber(lambda work=work: finishing(work), waits).switch()
    turns = 0
    while left:
        for fd, _ in waits._epoll.poll(20):
            turns += 1
            waits.end(fd)
    return turns


def test_fibers_work_at_the_same_time_on_one_thread(database, waits):
    """Each waits until all are there, so one after the other would never end."""
    small = Database(database.url, pool_size=1, pool_timeout_s=0.1)
    seen, all_came = [], False

    def work():
        nonlocal all_came  # the first that goes on may be gone before another looks
        with small.begin() as pg:
            pg.sql("SELECT pg_advisory_xact_lock_shared(77)")
            while not all_came:
                all_came = pg.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77") == [(5,)]
                pg.sql("SELECT pg_sleep(0.001)")
            seen.append(pg.sql("SELECT repeat('x', 3000000)"))

    assert run_all(waits, [work] * 5) > 5
    assert seen == [[("x" * 3_000_000,)]] * 5
    assert small.pool.lent == 0
    assert small.once("SELECT 1") == [(1,)]
    small.close()


def test_statements_larger_than_any_buffer(database, waits):
    text = "y" * 5_000_000
    found = []
    run_all(waits, [lambda: found.append(database.once("SELECT length(%s)", [text]))] * 2)
    assert found == [[(5_000_000,)]] * 2
    assert database.once("SELECT length(%s)", [text]) == [(5_000_000,)]


def test_what_postgres_says_is_told_at_the_end_of_each_transaction(database, waits):
    told = []
    database.pool.tell = told.append
    say = "DO $$ BEGIN RAISE INFO 'spoken'; END $$"
    database.once(say)
    assert ["spoken" in line for lines in told for line in lines] == [True]
    run_all(waits, [lambda: database.once(say)])
    assert ["spoken" in line for lines in told for line in lines] == [True] * 2


def test_errors_reach_the_fiber(database, waits):
    def work():
        with pytest.raises(UnavailableError, match="went away"), database.begin() as pg:
            pg.sql("SELECT pg_terminate_backend(pg_backend_pid())")
            pg.sql("SELECT 1")

    run_all(waits, [work])
    assert database.once("SELECT 1") == [(1,)]


def test_a_database_that_accepts_and_says_nothing(waits, monkeypatch):
    monkeypatch.setattr(pool, "_CONNECT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        silent = Database(f"postgresql://u@127.0.0.1:{mute.getsockname()[1]}/x", pool_size=1)
        with pytest.raises(UnavailableError, match="does not answer"):
            silent.once("SELECT 1")
        assert silent.pool.lent == 0
