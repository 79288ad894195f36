"""What /metrics tells of compactions, transactions and locks."""

from datetime import timedelta

import pytest

from metastore.compaction.measuring.service import MeasuringService
from metastore.compaction.queue.rules.requests import Claim
from metastore.compaction.queue.store.requests import NewRequest
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
    lake.service.mark_failed(Claim(claimed.id, "hive-1"), "x", NewRequest(claimed.entity, claimed.type))
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


def of(lake, what, which=""):
    seen = MeasuringService(lake.db, lake.settings).measure()
    return {(name, label): value for name, label, value in seen}.get((what, which))
