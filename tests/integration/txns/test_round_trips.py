"""The budget of ADR 12: at most two statements besides BEGIN and COMMIT, however many callers share them."""

import pytest

from metastore.db.engine import Database, PgTx
from metastore.txns.commit.service import CommitRequest
from metastore.txns.core.rules import Operation
from metastore.txns.core.service import AbortRequest, Heartbeat, OpenRequest
from metastore.write_ids.rules import Allocation
from tests.support.answers import shown_txns
from tests.support.transactions import named


@pytest.fixture
def trips(monkeypatch):
    """Return a list of (query, True if it may wait for the disk), COMMIT alone left out."""
    sent = []
    once, sql, finish = Database.once, PgTx.sql, PgTx.finish
    monkeypatch.setattr(Database, "once", lambda self, query, *args, **more: (
        sent.append((query, more.get("durable", True))), once(self, query, *args, **more))[1])
    monkeypatch.setattr(PgTx, "sql", lambda self, query, *args: (sent.append((query, True)), sql(self, query, *args))[1])
    monkeypatch.setattr(PgTx, "finish", lambda self, query, *args: (
        sent.append((query, True)), finish(self, query, *args))[1])
    return sent


@pytest.fixture
def warm(t):
    """Return a store that has reserved its ids and counted its transactions a moment ago."""
    t.open()
    t.open()
    return t


@pytest.mark.parametrize("size", [1, 50])
def test_calls_that_lose_nothing_are_one_trip_that_does_not_wait_for_the_disk(warm, trips, size):
    requests = [OpenRequest(1, "a", "h")] * size
    ids = [one[0] for one in warm.txns.open_txns(requests)]
    warm.txns.heartbeat([Heartbeat(one) for one in ids])
    warm.txns.heartbeat_txn_range([(one, one) for one in ids])
    warm.txns.abort_txn([AbortRequest(one) for one in (1, 2, *ids)])

    assert [durable for query, durable in trips if "count(*) FROM txns" not in str(query)] == [False] * 4


@pytest.mark.parametrize("size", [1, 50])
def test_a_commit_of_those_that_wrote_nothing_is_one_trip(warm, trips, size):
    """Which does not wait for the disk: see test_uncontended_commits."""
    ids = [warm.open() for _ in range(size)]
    trips.clear()

    warm.commits.commit_txn([CommitRequest(one) for one in ids])

    assert len(trips) == 1


@pytest.mark.parametrize("size", [1, 50])
def test_calls_of_writers_are_one_statement(warm, trips, size):
    ids = [warm.open() for _ in range(size)]
    trips.clear()

    warm.write_ids.allocate_table_write_ids([Allocation(named("db.t"), (one,)) for one in ids])
    assert len(trips) == 1
    trips.clear()
    for txn_id in ids:
        warm.partitions(txn_id, "db.t", f"p={txn_id}", operation=Operation.UPDATE)
    assert len(trips) == size
    trips.clear()
    warm.commits.commit_txn([CommitRequest(one) for one in ids])

    assert len(trips) == 1
    assert warm.rows("SELECT count(*) FROM txns WHERE commit_id IS NOT NULL") == [(size,)]


def test_reads_are_one_statement(warm, trips):
    warm.txns.get_open_txns()
    shown_txns(warm.txns)
    assert len(trips) == 2
    trips.clear()
    warm.reads("db.t", "5:5::")
    assert len(trips) == 1
    trips.clear()
    warm.lists(["db.t", "db.u", "db.t"])
    assert len(trips) == 1
    warm.allocate("db.t", warm.open())
    trips.clear()
    warm.reads("db.t", write_id=1)
    assert len(trips) == 2


def test_a_snapshot_of_who_says_what_it_reads_is_two_trips_that_do_not_wait_for_the_disk(warm, trips):
    """As many as of the two calls in whose place it is."""
    reader = warm.open()
    trips.clear()
    txns, _ = warm.reads_only(reader, "db.t", "db.u")
    assert [durable for _, durable in trips] == [False, True]
    trips.clear()
    warm.reads_only(reader, "db.t", "db.u", "db.v", txns=txns.format())

    assert [durable for _, durable in trips] == [False, True, True]
