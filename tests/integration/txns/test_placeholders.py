"""A transaction names the partitions that it wrote in several calls: until it commits it may have written others.

An abort in between must leave something: rows in partitions that were not named yet are hidden only as long as the
transaction is known.
"""

import pytest

from metastore.compaction.cleaning import store as cleaning_store
from metastore.compaction.cleaning.rules import WHOLE_TABLE, Covered
from metastore.compaction.queue.rules.requests import Entity
from metastore.compaction.queue.store import components
from metastore.txns.core.rules import Operation, reader_snapshot
from tests.support.transactions import named

TABLE = named("db.t")


def forget_aborted(pg, entity, covered):
    cleaning_store.delete_aborted(pg, entity, cleaning_store.select_aborted(pg, entity, None, None), None, (), covered)


def writer(t):
    """Open a transaction with a lock for dynamic partitions of db.t, and return its id."""
    txn_id = t.open()
    t.allocate("db.t", txn_id)
    t.lock(txn_id, "db.t", Operation.UPDATE, dynamic=True)
    return txn_id


def valid(t):
    """Return the write ids of db.t that are valid for a reader who begins now."""
    return t.reads("db.t", reader_snapshot(t.txns.get_open_txns()).format())


@pytest.mark.parametrize("calls", [[()], [("p=1",)], [(), ("p=1",), ("p=1", "p=2")]])
def test_an_aborted_writer_stays_until_the_whole_table_is_cleaned(t, calls):
    """Its first call may even name nothing: changes by row id tell deletes, then inserts."""
    txn_id = writer(t)
    for partitions in calls:
        t.partitions(txn_id, "db.t", *partitions, write_id=1)
    t.abort(txn_id)
    with t.db.begin() as pg:
        found = {one.entity.partition for one in components.select_aborted(pg, 10, cleaned=False)}
        named_ones = {name for partitions in calls for name in partitions}
        for name in named_ones:
            forget_aborted(pg, Entity(TABLE, name), Covered())
    t.purges.empty_aborted()

    assert found == {"", *named_ones}
    assert not valid(t).is_valid(1)

    with t.db.begin() as pg:
        forget_aborted(pg, Entity(TABLE, ""), WHOLE_TABLE)
    t.purges.empty_aborted()
    assert t.txns.get_open_txns().open_txns == []


def test_a_committed_writer_leaves_what_it_named_and_nothing_else(t):
    txn_id, other = writer(t), t.open()
    t.allocate("db.t", other)
    t.lock(other, "db.t", Operation.UPDATE, dynamic=True)
    t.partitions(txn_id, "db.t", "p=1", write_id=1)
    t.partitions(txn_id, "db.t", "p=2", write_id=1, operation=Operation.INSERT)
    t.partitions(other, "db.t", write_id=2)
    t.commit(txn_id)
    t.commit(other)   # which has named nothing, so it conflicts with nobody

    assert t.rows("SELECT partition, write_id FROM completed_txn_components ORDER BY 1") == [("p=1", 1), ("p=2", 1)]
    assert t.rows("SELECT partition FROM write_sets") == [("p=1",)]
    assert t.count("txn_components") == 0
    assert valid(t).is_valid(1)
