"""Answers that do not arrive: a repeated lock() is recognised, or its first request is withdrawn; never both."""

from datetime import timedelta

import pytest

from metastore.locks.rules import LockRequest
from metastore.locks.service import LockService
from metastore.locks.store import lock_tails
from metastore.telemetry.locks import LockStats
from metastore.thrift_server.handlers.locks import LockHandlers
from tests.integration.locks.conftest import wanted
from tests.support.answers import shown_locks
from tests.support.thrift_server import Peer, message, serving, until

ICEBERG = "Iceberg-0a1b2c3d-0000-4000-8000-0123456789ab"
OTHER_ICEBERG = ICEBERG.replace("0a1b", "ffff")


def test_a_repeated_request_of_iceberg_is_the_same_lock(ask, locks):
    first = ask("X db.t", agent_info=ICEBERG)

    again = ask("X db.t", agent_info=ICEBERG)

    assert first == again
    assert len(shown_locks(locks)) == 1


def test_as_it_stands_by_now(ask, check, unlock):
    holder, _ = ask("X db.t")
    waiter, _ = ask("X db.t", agent_info=ICEBERG)
    assert ask("X db.t", agent_info=ICEBERG) == (waiter, "waiting")

    unlock(holder)
    check(waiter)

    assert ask("X db.t", agent_info=ICEBERG) == (waiter, "acquired")


def test_a_repetition_in_the_same_batch(locks):
    requests = [LockRequest(tuple(wanted("X db.t")), 0, "ann", "h1", agent) for agent in (ICEBERG, "Unknown", ICEBERG)]

    first, other, again = locks.lock(requests)

    assert again == first
    assert (other.state.value, len(shown_locks(locks))) == ("waiting", 2)


@pytest.mark.parametrize("change", [
    {"agent_info": OTHER_ICEBERG}, {"agent_info": "Unknown"}, {"agent_info": "hive_20261121"}, {"user": "bob"},
    {"host": "h2"}, {"components": tuple(wanted("X db.t + X db.u"))}, {"components": tuple(wanted("E db.t"))}])
def test_nothing_less_than_everything_is_the_same(locks, change):
    request = LockRequest(tuple(wanted("X db.t")), 0, "ann", "h1", ICEBERG)
    [first] = locks.lock([request])

    [other] = locks.lock([request._replace(**change)])

    assert other.lock_id != first.lock_id
    assert other.state.value == "waiting"


@pytest.mark.parametrize("agent", ["Unknown", "Iceberg-1", "0a1b2c3d-0000-4000-8000-0123456789ab", f"{ICEBERG}-2"])
def test_what_two_threads_of_a_client_may_both_send_is_never_the_same(ask, agent):
    first, _ = ask("X db.t", agent_info=agent)

    second, state = ask("X db.t", agent_info=agent)

    assert (second != first, state) == (True, "waiting")


def test_a_repetition_inside_a_transaction_does_not_wait_behind_others(ask, open_txn, locks):
    txn_id = open_txn()
    first = ask("X db.t", txn_id, agent_info="q1")
    ask("X db.t")

    assert ask("X db.t", txn_id, agent_info="q1") == first
    assert locks.select_deadlocks() == []


def test_a_repetition_keeps_the_lock_alive(ask, check, reaper, test_clock):
    lock_id, _ = ask("X db.t", agent_info=ICEBERG)
    test_clock.advance(timedelta(seconds=290))
    ask("X db.t", agent_info=ICEBERG)
    test_clock.advance(timedelta(seconds=290))

    assert reaper.tick().expired_locks == 0
    assert check(lock_id) == "acquired"


def test_a_lock_that_is_given_up_is_not_given_again(ask, unlock):
    first, _ = ask("X db.t", agent_info=ICEBERG)
    unlock(first)

    second, state = ask("X db.t", agent_info=ICEBERG)

    assert (second != first, state) == (True, "acquired")


def lock_message(name=b"t", agent=b"Unknown", kind=3):
    def text(number, value):
        return b"\x0b" + number.to_bytes(2) + len(value).to_bytes(4) + value

    def number(field, value):
        return b"\x08" + field.to_bytes(2) + value.to_bytes(4)
    component = number(1, kind) + number(2, 2) + text(3, b"db") + text(4, name) + b"\0"
    body = b"\x0f\0\1\x0c" + (1).to_bytes(4) + component + text(3, b"ann") + text(4, b"h1") + text(5, agent) + b"\0"
    return message("lock", b"\x0c\0\1" + body + b"\0")


@pytest.fixture
def stats():
    return LockStats()


@pytest.fixture
def serve(database, stats):
    """Yield a server with nothing but locks."""
    with serving(LockHandlers(LockService(database, stats=stats))) as server:
        yield server


@pytest.fixture
def leave_before_the_answer(serve, database):
    """Send a message and leave while the lane cannot go on, because this test holds the queue's tail."""
    def left(data, *, queued):
        """``queued``: leave when the request is being worked on, not before."""
        with Peer(serve.address) as first, Peer(serve.address) as second:
            with database.begin() as pg:
                lock_tails(pg, [LockRequest(tuple(wanted("X db.busy")))])
                first.send(data if queued else lock_message(b"busy"))
                until(lambda: pg.sql("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))
                if not queued:
                    second.send(data)
                    until(lambda: serve.in_flight == 2)
                (first if queued else second).sock.close()
                until(lambda: serve.connections == 1)
            until(lambda: serve.in_flight == 0)
    return left


def shown(locks):
    return {(row.tablename, row.agentInfo) for row in shown_locks(locks)} - {("busy", "Unknown")}


def withdrawn(stats):
    return {metric.name: metric.samples[0].value for metric in stats.collect()}["metastore_locks_withdrawn"]


def test_a_lock_whose_client_left_meanwhile_is_withdrawn(leave_before_the_answer, locks, stats):
    leave_before_the_answer(lock_message(), queued=True)

    assert shown(locks) == set()
    assert withdrawn(stats) == 1


def test_one_that_would_be_recognised_stays(leave_before_the_answer, locks, stats):
    leave_before_the_answer(lock_message(agent=ICEBERG.encode()), queued=True)

    assert shown(locks) == {("t", ICEBERG)}
    assert withdrawn(stats) == 0


def test_a_client_that_left_before_its_turn_gets_no_lock(leave_before_the_answer, locks, stats):
    leave_before_the_answer(lock_message(agent=ICEBERG.encode()), queued=False)

    assert shown(locks) == set()
    assert withdrawn(stats) == 0


def test_a_lock_that_was_answered_stays_when_the_client_leaves(serve, locks, stats):
    with Peer(serve.address) as peer:
        peer.call(lock_message())

    until(lambda: serve.connections == 0)
    assert shown(locks) == {("t", "Unknown")}
    assert withdrawn(stats) == 0
