"""Silence on the way to PostgreSQL: names nobody resolves, hosts that accept and say nothing, processes that freeze."""

import os
import select
import signal
import socket
import threading
from contextlib import closing, contextmanager

import pytest
from psycopg2.extensions import parse_dsn

from metastore.db import engine, leader, network, pool
from metastore.db.engine import Database
from metastore.db.leader import Leadership
from metastore.db.listener import Listener
from metastore.errors import OutcomeUnknownError, UnavailableError
from metastore.thrift_server.dispatch.workers import FiberWaits, PgFiber
from tests.support.thrift_server import until


class Resolver:
    """Answers when it is told to."""

    def __init__(self, *addresses):
        self.addresses, self.asked, self.answer = addresses, [], threading.Event()

    def __call__(self, host, *_, **__):
        self.asked.append(host)
        self.answer.wait(60)
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in self.addresses]


@pytest.fixture
def resolver(monkeypatch):
    def made(*addresses):
        found = Resolver(*addresses)
        monkeypatch.setattr(socket, "getaddrinfo", found)
        made.all.append(found)
        return found
    made.all = []
    yield made
    for one in made.all:
        one.answer.set()
    until(lambda: not network._look_ups)


@pytest.fixture
def by_name(own_postgres):
    """Yield a Database that reaches PostgreSQL by a name that the resolver of a test knows."""
    database = Database(own_postgres.tcp_url.replace("127.0.0.1", "postgres.example"), pool_size=2)
    yield database
    database.close()


def test_a_fiber_waits_for_a_name_and_others_go_on(by_name, resolver):
    slow, found = resolver("127.0.0.1"), []
    with select.epoll() as polled:
        waits = FiberWaits(polled)
        for _ in range(2):
            PgFiber(lambda: found.append(by_name.once("SELECT 1")), waits).switch()
        assert found == []   # and we are here: the loop has its thread
        slow.answer.set()
        while len(found) < 2:
            for fd, _ in polled.poll(60):
                waits.end(fd)
    assert found == [[(1,)]] * 2
    assert slow.asked == ["postgres.example"]


def test_a_resolver_that_hangs_holds_one_thread_and_nobody_for_long(by_name, resolver, monkeypatch):
    monkeypatch.setattr(pool, "_CONNECT_SECONDS", 0.05)
    hanging = resolver()
    for _ in range(3):
        with pytest.raises(UnavailableError, match=r"postgres.example was not resolved within 0.05 s"):
            by_name.once("SELECT 1")
    until(lambda: hanging.asked)  # its thread may have begun late
    assert hanging.asked == ["postgres.example"]


def test_a_name_that_nobody_knows(by_name, resolver):
    resolver().answer.set()
    with pytest.raises(UnavailableError, match=r"postgres.example cannot be resolved: Name or service"):
        by_name.once("SELECT 1")
    assert by_name.pool.lent == 0


def test_every_address_and_every_host_has_its_turn(own_postgres, by_name, resolver, monkeypatch):
    """The first accepts and says nothing."""
    monkeypatch.setattr(pool, "_CONNECT_SECONDS", 1.5)
    resolver("127.0.0.2", "127.0.0.1").answer.set()
    with socket.create_server(("127.0.0.2", own_postgres._port)):
        assert by_name.once("SELECT 1") == [(1,)]
        several = Database(own_postgres.tcp_url.replace("127.0.0.1", f"127.0.0.2:{own_postgres._port},127.0.0.1"))
        assert several.once("SELECT 1") == [(1,)]
        several.close()


@contextmanager
def frozen(session):
    """PostgreSQL's process of a session does nothing any more; the kernel goes on answering for it."""
    pid = session.get_backend_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_postgres_that_is_frozen_holds_nobody_for_ever(database):
    patience = database.pool.silence_s
    assert patience == 2 * 60 + engine._GRACE_S  # of a statement's own time-out
    with pytest.raises(UnavailableError, match=r"went away, nothing was changed.*silent for 0.25 s"), database.begin() as pg:
        pg.sql("SELECT 1")
        with frozen(pg._lease.link.raw):
            database.pool.silence_s = 0.25
            pg.sql("SELECT 1")
    database.pool.silence_s = patience
    with pytest.raises(OutcomeUnknownError), database.begin() as pg:
        pg.sql("SELECT 1")
        stopped = frozen(pg._lease.link.raw)
        stopped.__enter__()
        database.pool.silence_s = 0.25
    database.pool.silence_s = patience
    stopped.__exit__(None, None, None)
    assert database.once("SELECT 1") == [(1,)]
    assert database.pool.lent == 0


def test_a_leader_whose_postgres_is_frozen_learns_it(database_url, monkeypatch):
    first = Leadership(database_url)
    until(lambda: first.is_leader("loops"))
    with frozen(first._session), monkeypatch.context() as impatient:
        impatient.setattr(leader, "_SECONDS", 0.1)
        impatient.setattr(leader, "_LAST_SECONDS", 0.05)
        assert not first.is_leader("loops")
    until(lambda: first.is_leader("loops"))
    first.release()


def test_letting_go_does_not_wait_for_who_is_asking(database_url, monkeypatch):
    monkeypatch.setattr(leader, "_LAST_SECONDS", 0.05)
    first = Leadership(database_url)
    with first._one_at_a_time:   # another thread asks PostgreSQL, which says nothing
        first.release()


def test_silence_ends_connections_of_every_kind(own_postgres):
    """TCP_USER_TIMEOUT and keepalives are set, on both sides; what the URL says wins."""
    database = Database(own_postgres.tcp_url)
    ear = Listener(own_postgres.tcp_url, "anything")
    ear.connect()
    first = Leadership(own_postgres.tcp_url)
    assert first.is_leader("loops")
    with database.begin() as pg:
        assert pg.sql("SELECT current_setting('tcp_user_timeout'), current_setting('tcp_keepalives_idle')") == [("20000", "10")]
        for session in (pg._lease.link.raw, ear._session, first._session):
            with closing(socket.socket(fileno=os.dup(session.fileno()))) as sock:
                assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                assert [sock.getsockopt(socket.IPPROTO_TCP, option) for option in (
                    socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)] == [20_000, 10, 5, 3]
    database.close()
    ear.close()
    first.release()
    other = Database(own_postgres.tcp_url + "?tcp_user_timeout=7000")
    with other.begin() as pg:
        pg.sql("SELECT 1")
        assert parse_dsn(pg._lease.link.raw.dsn)["tcp_user_timeout"] == "7000"
    other.close()
