"""Rebuild locks of materialized views: cases M01 to M04 of transactions.md §9.6."""

import pytest

from metastore.errors import NoSuchTxnError
from metastore.txns.rebuild_service import RebuildService
from metastore.txns.rules import TxnType
from tests.support.transactions import named, seconds

VIEW = named("db.mv")


@pytest.fixture
def rebuilds(database):
    return RebuildService(database)


def test_m01_one_at_a_time_and_again_for_its_holder(t, rebuilds):
    first, second = t.open(2, TxnType.MATER_VIEW_REBUILD)

    assert [rebuilds.get_lock_materialization_rebuild(VIEW, one) for one in (first, second, first)] == [True, False, True]
    with pytest.raises(NoSuchTxnError):
        rebuilds.get_lock_materialization_rebuild(VIEW, 99)


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_m02_it_ends_with_the_transaction(t, rebuilds, end):
    first, second = t.open(2, TxnType.MATER_VIEW_REBUILD)
    rebuilds.get_lock_materialization_rebuild(VIEW, first)

    getattr(t, end)(first)

    assert rebuilds.get_lock_materialization_rebuild(VIEW, second)


def test_m03_heartbeats(t, rebuilds):
    txn_id = t.open()
    rebuilds.get_lock_materialization_rebuild(VIEW, txn_id)

    assert rebuilds.heartbeat_lock_materialization_rebuild(VIEW, txn_id)
    assert not rebuilds.heartbeat_lock_materialization_rebuild(VIEW, 99)


def test_m04_stale_ones_are_swept(t, rebuilds, test_clock):
    held = t.open()
    rebuilds.get_lock_materialization_rebuild(VIEW, held)
    t.rows("""INSERT INTO materialization_locks SELECT 'hive', 'db', 'mv' || n, 99, metastore_now()
              FROM generate_series(1, 3) AS n""")
    test_clock.advance(seconds(301))
    t.heartbeat(held)

    assert t.reaper.tick().materialization_locks == 3
    assert t.count("materialization_locks") == 1
