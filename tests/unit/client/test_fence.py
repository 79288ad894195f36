"""Whether a transaction is open is asked when it matters, and not taken from what was heard before."""

from datetime import timedelta

import pytest

from metastore.client import MetastoreClient, MetastoreUnreachableError, outcome
from metastore.client.outcome import Fence
from metastore.errors import TxnAbortedError
from metastore.thrift_gen.hive_metastore import ttypes
from tests.unit.client.fake_server import FakeServer


class Metastore:
    """Answers heartbeats with what is next in ``script``; None is no error."""

    def __init__(self, *script):
        self.script = list(script)

    def heartbeat(self, request):
        answer = self.script.pop(0)
        if answer is not None:
            raise answer


@pytest.fixture
def clock(monkeypatch):
    """``clock[0]``: the time of the fence."""
    now = [1000.0]
    monkeypatch.setattr(outcome, "monotonic", lambda: now[0])
    monkeypatch.setattr(outcome, "_FIRST_PAUSE", timedelta(0))
    monkeypatch.setattr(outcome, "_QUESTIONS", 3)
    return now


def asked(metastore, times, clock, **options):
    """How often the metastore was asked by a fence that is passed at these times."""
    with FakeServer(metastore) as server, MetastoreClient(server.uri) as client:
        one = Fence(client, 5, **options)
        for at in times:
            clock[0] = at
            one.require_open()
        return server.calls.count("heartbeat")


def test_an_answer_holds_for_a_second(clock):
    assert asked(Metastore(None, None), [1000.0, 1000.9, 1001.1, 1001.9], clock) == 2
    assert asked(Metastore(None), [1000.5, 1001.5], clock, asked_at=1000.0) == 1


def test_a_process_that_was_stopped_asks_again(clock):
    with pytest.raises(TxnAbortedError, match="already aborted"):
        asked(Metastore(None, ttypes.TxnAbortedException("Transaction txnid:5 already aborted")), [1000.0, 1600.0], clock)


def test_a_metastore_that_is_away_for_a_moment_is_asked_again(clock):
    busy = ttypes.MetaException("the database is busy")
    assert asked(Metastore(busy, busy, None), [1000.0], clock) == 3


def test_nothing_is_published_when_nobody_answers(clock):
    server = FakeServer(Metastore())
    server.stop()
    with MetastoreClient(server.uri) as client, pytest.raises(MetastoreUnreachableError):
        Fence(client, 5).require_open()
