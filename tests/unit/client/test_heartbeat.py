"""Heartbeats: their own connection, and when the work is told that its transaction is lost."""

import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest

from metastore.client import MetastoreClient
from metastore.client import heartbeat as module
from metastore.client.heartbeat import DEFAULT_TIMEOUT, Heartbeater, LostError, txn_timeout
from metastore.thrift_gen.hive_metastore import ttypes
from tests.unit.client.fake_server import FakeServer, Hangup

QUICK = timedelta(milliseconds=100)


def quick(client, *, patience_s=60, **subject):
    """Beats often, of something that may be silent for long; ``patience_s``: for an answer."""
    made = Heartbeater(client, timedelta(minutes=10), **subject)
    made._interval_s, made._client = 0.05, client.clone(timeout_s=patience_s)
    return made


@pytest.mark.parametrize(("text", "expected"), [
    ("300s", timedelta(seconds=300)), ("300", timedelta(seconds=300)), ("5m", timedelta(minutes=5)),
    ("250ms", timedelta(milliseconds=250)), ("2min", timedelta(minutes=2)), ("1 hour", timedelta(hours=1)),
    ("soon", DEFAULT_TIMEOUT)])
def test_the_server_says_how_long_silence_may_last(text, expected):
    assert txn_timeout(SimpleNamespace(get_config_value=lambda _name, _default: text)) == expected


def test_beats_while_a_call_of_the_work_is_slow():
    beats = threading.Semaphore(0)
    slow = threading.Event()
    handler = SimpleNamespace(heartbeat=lambda _: beats.release(), get_all_databases=lambda: slow.wait(60) and [])
    with FakeServer(handler) as server, MetastoreClient(server.uri) as client:
        work = threading.Thread(target=client.get_all_databases)
        work.start()
        with quick(client, txn_id=5) as heartbeater:
            assert all(beats.acquire(timeout=60) for _ in range(3))
            heartbeater.check()
        slow.set()
        work.join()


def test_says_what_is_kept_alive():
    requests = []
    beaten = threading.Event()
    handler = SimpleNamespace(heartbeat=lambda request: requests.append(request) or beaten.set())
    with FakeServer(handler) as server, MetastoreClient(server.uri) as client, quick(client, lock_id=9):
        assert beaten.wait(60)
    assert requests[0] == ttypes.HeartbeatRequest(lockid=9, txnid=0)


@pytest.mark.parametrize("error", [
    ttypes.TxnAbortedException("Transaction txnid:5 already aborted"), ttypes.NoSuchTxnException("No such txn: 5"),
    ttypes.NoSuchLockException("No such lock: 9")])
def test_lost(error):
    def heartbeat(_):
        raise error

    with FakeServer(SimpleNamespace(heartbeat=heartbeat)) as server, MetastoreClient(server.uri) as client:
        heartbeater = quick(client, txn_id=5)
        heartbeater.start()
        assert heartbeater.lost.wait(60)

        with pytest.raises(LostError, match=f"Transaction 5 is lost: {error.message}"):
            heartbeater.check()
        assert server.calls.count("heartbeat") == 1


def test_one_lost_answer_is_no_loss():
    answers = [Hangup(), Hangup(), Hangup(), None, None]
    beats = threading.Semaphore(0)

    def heartbeat(_):
        answer = answers.pop(0) if answers else None
        if answer is not None:
            raise answer
        beats.release()

    with FakeServer(SimpleNamespace(heartbeat=heartbeat)) as server, MetastoreClient(server.uri) as client, \
            quick(client, txn_id=5) as heartbeater:
        assert all(beats.acquire(timeout=60) for _ in range(2))
        assert not heartbeater.lost.is_set()


def test_silence_for_a_whole_timeout_counts_as_loss():
    with FakeServer(SimpleNamespace()) as server:
        client = MetastoreClient(server.uri)
        server.stop()
        heartbeater = Heartbeater(client, QUICK, txn_id=5)
        heartbeater.start()

        assert heartbeater.lost.wait(60)
        with pytest.raises(LostError, match=r"no heartbeat got through .*the metastore may have ended it"):
            heartbeater.check()


def test_one_slow_call_is_no_loss_and_delays_nothing():
    """Its connection is given up, the next heartbeat goes out on another one."""
    stuck, beats = threading.Event(), threading.Semaphore(0)
    calls = []

    def heartbeat(_):
        calls.append(1)
        if len(calls) == 1:
            stuck.wait(60)
        else:
            beats.release()

    with FakeServer(SimpleNamespace(heartbeat=heartbeat)) as server, MetastoreClient(server.uri) as client, \
            quick(client, patience_s=0.5, txn_id=5) as heartbeater:
        assert beats.acquire(timeout=60)
        assert not heartbeater.lost.is_set()
        stuck.set()


def test_the_work_is_cancelled_when_the_transaction_is_lost():
    cancelled, reasons = threading.Event(), []

    def heartbeat(_):
        raise ttypes.TxnAbortedException("Transaction txnid:5 already aborted")

    with FakeServer(SimpleNamespace(heartbeat=heartbeat)) as server, MetastoreClient(server.uri) as client, \
            quick(client, txn_id=5, cancel=lambda reason: reasons.append(reason) or cancelled.set()):
        assert cancelled.wait(60)
    assert reasons == ["Transaction 5 is lost: Transaction txnid:5 already aborted"]


def test_drift_is_how_late_a_heartbeat_left(monkeypatch):
    """A process that was suspended: the clock jumps while it waits for its turn."""
    clock = iter([0.0, 0.05, 0.06, 0.06, 7.1])  # the start; then of each heartbeat: sent, answered, planned anew
    monkeypatch.setattr(module, "monotonic", lambda: next(clock, 8.0))
    beats = threading.Semaphore(0)
    with FakeServer(SimpleNamespace(heartbeat=lambda _: beats.release())) as server, MetastoreClient(server.uri) as client, \
            quick(client, txn_id=5) as heartbeater:
        assert all(beats.acquire(timeout=60) for _ in range(3))
    assert heartbeater.drift.total_seconds() > 6.5
