"""What /metrics tells of compactions, transactions and locks."""

from datetime import timedelta

import pytest

from metastore.compaction.measuring.service import MeasuringService
from metastore.compaction.queue.rules.requests import Claim
from metastore.locks.rules import LockType, Operation
from metastore.loops.measures import Measuring
from metastore.telemetry.compactions import GAUGES

HOUR = timedelta(hours=1)


@pytest.fixture
def measured(lake):
    """``measured("oldest", "initiated")``; None: nothing was."""
    def look(what, which=""):
        measuring = Measuring(MeasuringService(lake.db, lake.settings))
        measuring.tick()
        assert {name for name, _, _ in measuring.seen} <= GAUGES.keys()
        return {(name, of): value for name, of, value in measuring.seen}.get((what, which))
    return look


def test_of_each_table_its_newest_compaction_counts(lake, measured, test_clock):
    for name in ("a", "b"):
        lake.request(what=f"d.{name}", pool="etl" if name == "b" else None)
    test_clock.advance(HOUR)
    claimed = lake.service.find_next_compact2("hive-1", "4", None)

    assert (measured("compactions", "initiated"), measured("compactions", "working")) == (1, 1)
    assert measured("oldest", "initiated") == pytest.approx(3600, abs=60)
    assert measured("oldest", "working") == pytest.approx(0, abs=60)
    assert (measured("pool_waiting", "etl"), measured("pool_working", "default")) == (1, 1)
    assert measured("pool_oldest", "etl") == pytest.approx(3600, abs=60)
    lake.service.mark_failed(Claim(claimed.id, "hive-1"), "x")
    assert (measured("compactions", "failed"), measured("compactions", "working")) == (1, None)


def test_transactions_and_locks(new_lake, test_clock):
    lake = new_lake(many_aborts=1)
    lake.table()
    assert of(lake, "open_txn", "other") is None
    txn_id = lake.t.open()
    lake.t.lock(txn_id, "d.t", Operation.SELECT, LockType.SHARED_READ)
    lake.abort(times=2)
    test_clock.advance(HOUR)

    assert of(lake, "open_txn", "other") == pytest.approx(3600, abs=60)
    assert of(lake, "aborted_txn") == pytest.approx(3600, abs=60)
    assert (of(lake, "aborted_txns"), of(lake, "many_aborts"), of(lake, "locks")) == (2, 1, 1)
    assert of(lake, "lock") == pytest.approx(3600, abs=60)
    assert of(lake, "rows", "txn_write_ids") is not None


def test_the_longest_wait_and_the_size_of_the_catalog(lake, measured, test_clock):
    before = measured("databases"), measured("tables")
    lake.table()
    assert (measured("databases"), measured("tables")) == (before[0], before[1] + 1)
    lake.t.lock(lake.t.open(), "d.t", Operation.SELECT, LockType.SHARED_READ)
    test_clock.advance(HOUR)
    assert measured("lock_wait") == 0
    lake.t.lock(lake.t.open(), "d.t", Operation.UPDATE, LockType.EXCLUSIVE)
    test_clock.advance(HOUR)

    assert measured("lock_wait") == pytest.approx(3600, abs=60)
    assert measured("partitions") is not None


def test_ids_and_numbers_of_open_transactions(lake, measured):
    assert measured("open_txns", "other") is None
    first, _ = lake.t.open(), lake.t.open()
    lake.table()
    lake.abort()

    assert (measured("open_txns", "other"), measured("open_txn_id", "other")) == (2, first)
    assert measured("aborted_txn_id") == first + 2


def test_workers_and_initiators_of_a_day_count_by_release(lake, measured, test_clock):
    for name in ("a", "b"):
        lake.request(what=f"d.{name}", initiator_id="host-1", initiator_version="2")
    lake.request(what="d.c", initiator_id="host-manual")
    claimed = lake.service.find_next_compact2("w-1", "1", None)
    lake.service.mark_failed(Claim(claimed.id, "w-1"), "x")
    for worker_id, version in (("w-1", "1"), ("w-2", "2")):
        lake.service.find_next_compact2(worker_id, version, None)

    assert (measured("workers", "1"), measured("workers", "2")) == (1, 1)
    assert (measured("initiators", "2"), measured("initiators", "unknown")) == (1, None)
    test_clock.advance(25 * HOUR)
    assert (measured("workers", "1"), measured("initiators", "2")) == (None, None)


def test_a_cleaning_that_goes_on_has_an_age(lake, measured, test_clock):
    lake.table()
    lake.insert(times=2)
    lake.compact()
    assert measured("cleaning") == 0
    lake.db.once("UPDATE compaction_queue SET cleaner_started_at = metastore_now()")
    test_clock.advance(HOUR)

    assert measured("cleaning") == pytest.approx(3600, abs=60)


def test_writes_that_nothing_compacts_are_counted(new_lake, test_clock):
    lake = new_lake(metrics_tables=2)
    for name, parameters in (("off", {"NO_AUTO_COMPACTION": "TRUE"}), ("on", {"no_auto_compaction": "false"}), ("plain", {}),
                             ("more", {"no_auto_compaction": "true"}), ("least", {"no_auto_compaction": "true"})):
        lake.table(name, **parameters)
        lake.insert(f"d.{name}", times={"off": 2, "more": 3}.get(name, 1))

    assert [of(lake, "unattended_writes", f"d.{name}") for name in ("off", "on", "plain", "more", "least")] == [2, None, None, 3, None]
    test_clock.advance(25 * HOUR)
    assert of(lake, "unattended_writes", "d.off") is None


def of(lake, what, which=""):
    seen = MeasuringService(lake.db, lake.settings).measure()
    return {(name, label): value for name, label, value in seen}.get((what, which))
