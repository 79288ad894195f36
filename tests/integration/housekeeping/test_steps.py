"""House-keeping on two replicas at the same time: the work is done once, and neither fails."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from metastore.config import TxnSettings
from metastore.housekeeping.service import PurgeService
from metastore.locks.rules import LockType
from metastore.loops.reaper import EXPIRY, PURGES, TXN_RECORDS, OpenTxnsCounter, Reaper
from metastore.txns.core.rules import Operation
from tests.support.transactions import seconds

MANY = 300


def both(t, steps):
    """Run two house-keepers that begin at once, and return their reports."""
    together = Barrier(2)

    def tick(_):
        together.wait(60)
        return Reaper(PurgeService(t.db, TxnSettings()), steps).tick()

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(tick, range(2)))


def silent_txns(t, test_clock):
    for txn_id in t.open(MANY):
        t.lock(txn_id, f"db.t{txn_id % 7}", Operation.INSERT, LockType.SHARED_READ)
    test_clock.advance(seconds(301))


def silent_locks(t, test_clock):
    for number in range(MANY):
        t.lock(0, f"db.t{number}", Operation.INSERT, LockType.SHARED_READ)
    test_clock.advance(seconds(301))


def committed_writers(t, _):
    for txn_id in t.open(MANY):
        t.allocate(f"db.t{txn_id % 7}", txn_id)
        t.lock(txn_id, f"db.t{txn_id % 7}", Operation.UPDATE, LockType.SHARED_READ)
        t.commit(txn_id, excl=None) if txn_id <= 7 else t.abort(txn_id)
    t.rows("DELETE FROM txn_components RETURNING 1")


def written_again(t, _):
    for _ in range(40):
        txn_id = t.open()
        t.allocate("db.t", txn_id)
        t.lock(txn_id, "db.t", Operation.INSERT, LockType.SHARED_READ)
        t.commit(txn_id)
    t.open()


def aborted_without_trace(t, _):
    for txn_id in t.open(MANY):
        t.abort(txn_id)


def long_ended(t, test_clock):
    t.commit(*t.open(MANY))
    test_clock.advance(seconds(3601))


def rebuild_locks_of_the_dead(t, test_clock):
    t.rows(f"""INSERT INTO materialization_locks SELECT 'hive', 'db', 'mv' || n, 99, metastore_now()
               FROM generate_series(1, {MANY}) AS n RETURNING 1""")
    test_clock.advance(seconds(301))


@pytest.mark.parametrize(("prepare", "steps", "step", "count"), [
    (silent_txns, EXPIRY, "expired_txns", MANY), (silent_locks, EXPIRY, "expired_locks", MANY),
    (committed_writers, PURGES, "write_sets", 7), (committed_writers, PURGES, "write_ids", 7),
    (written_again, PURGES, "duplicates", 39), (aborted_without_trace, TXN_RECORDS, "emptied_txns", MANY),
    (long_ended, TXN_RECORDS, "ended_txns", MANY),
    (rebuild_locks_of_the_dead, PURGES, "materialization_locks", MANY)],
    ids=lambda one: one if isinstance(one, str) else "")
def test_two_at_a_time(t, test_clock, prepare, steps, step, count):
    prepare(t, test_clock)

    reports = both(t, steps)

    left = getattr(t.reaper.tick(), step)  # what one of them had in its hands, the other one left alone
    assert [report.failed for report in reports] == [{}, {}]
    assert sum(getattr(report, step) for report in reports) + left == count


def test_a_million_years_later_nothing_is_left(t, test_clock):
    """Whatever is purged in whichever order, it all goes."""
    committed_writers(t, test_clock)
    written_again(t, test_clock)
    for _ in range(3):
        test_clock.advance(seconds(1e6))
        both(t, (*EXPIRY, *PURGES, *TXN_RECORDS))

    tables = ("txns", "write_sets", "txn_write_ids", "locks", "min_history")
    assert {table: t.count(table) for table in tables} == dict.fromkeys(tables, 0)


def test_the_counter_of_open_transactions(t):
    t.commit(t.open(3)[0])

    assert OpenTxnsCounter(t.txns).tick().open == 2
    assert t.txns.gauge.count == 2
