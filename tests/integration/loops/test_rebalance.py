"""A rebalance beside writers: ids of rows change, so who changes rows by them must conflict, and nothing is lost (COMP-16)."""

from datetime import timedelta

import pytest

from metastore.acid.names import DeltaName
from metastore.errors import TxnAbortedError
from metastore.locks.rules import LockType
from metastore.loops.worker import WorkOutcome
from metastore.txns.core.rules import Operation, TxnType
from tests.support.lake import FakeRunner

UPDATE = Operation.UPDATE


def work(lake, runner=None, what="d.t"):
    asked = lake.request("rebalance", what)
    return lake.worker(runner).tick(), lake.one(asked.id)


def delete(lake, what="d.t"):
    """Delete rows in a transaction that stays open, and return (transaction, write id)."""
    txn_id = lake.t.open()
    lake.t.lock(txn_id, what, Operation.DELETE)
    write_id = lake.t.allocate(what.partition("/")[0], txn_id)[txn_id]
    lake.put(what, str(DeltaName(write_id, write_id, 0, is_delete=True)))
    return txn_id, write_id


def insert(lake):
    """Insert rows in a transaction that stays open, under a SHARED_READ lock as ours do, and return the transaction."""
    txn_id = lake.t.open()
    assert lake.t.lock(txn_id, "d.t", Operation.INSERT, LockType.SHARED_READ) > 0
    write_id = lake.t.allocate("d.t", txn_id)[txn_id]
    lake.put("d.t", str(DeltaName(write_id, write_id, 0)))
    return txn_id


@pytest.fixture
def table(lake):
    lake.table()
    lake.insert(times=2)
    return lake


def test_its_base_lies_above_every_other(table):
    """Of two bases of one write id Hive reads the one that it lists first: a rebalance behind a major one has its own."""
    table.compact("major")
    report, request = work(table)

    assert report.outcome is WorkOutcome.COMPACTED
    assert request.highest_write_id == 3
    assert table.state_of().base.path == f"base_0000003_v{request.txn_id:07d}"
    table.insert()
    for _ in range(2):
        table.cleaner().tick()
    assert table.directories() == [f"base_0000003_v{request.txn_id:07d}", "delta_0000004_0000004_0000"]
    assert [table.t.count("txn_components"), table.t.count("compaction_queue")] == [0, 0]


def test_who_changes_rows_meanwhile_waits_and_then_conflicts(table):
    """Whether it began before or while the rebalance ran; what it had read are ids that are no more."""
    before, waiting = table.t.open(), []

    def during(spec, pulse):
        assert spec.highest_write_id == 3
        waiting.extend([before, table.t.open()])
        assert [table.t.lock(txn_id, "d.t", UPDATE) > 0 for txn_id in waiting] == [False, False]

    assert work(table, FakeRunner(table.files, during=during))[0].outcome is WorkOutcome.COMPACTED
    for txn_id in waiting:
        table.t.allocate("d.t", txn_id)
        with pytest.raises(TxnAbortedError, match="write conflict on d/t"):
            table.t.commit(txn_id)
    later, _ = delete(table)
    table.t.commit(later)


def test_inserts_go_on_meanwhile(table):
    report, request = work(table, FakeRunner(table.files, during=lambda *_: table.t.commit(insert(table))))

    assert report.outcome is WorkOutcome.COMPACTED
    state = table.state_of()
    assert (str(state.base.name), [str(delta.name) for delta in state.deltas]) == (
        f"base_0000003_v{request.txn_id:07d}", ["delta_0000004_0000004_0000"])


def test_who_changed_rows_between_its_beginning_and_its_lock_was_first(table, monkeypatch):
    """His commit is one that the rebalance does not see in its transaction's snapshot: the rebalance conflicts."""
    writer, _ = delete(table)
    worker = table.worker()
    lock = worker.locks.lock

    def lock_when_he_is_done(requests):
        table.t.commit(writer)
        return lock(requests)

    monkeypatch.setattr(type(worker.locks), "lock", lambda self, requests: lock_when_he_is_done(requests))
    asked = table.request("rebalance")

    assert worker.tick().outcome is WorkOutcome.FAILED
    assert "write conflict on d/t" in table.one(asked.id).error_message
    assert table.state_of().base is None


def test_deletes_above_its_mark_would_be_lost(table, test_clock):
    """They are committed, and the write id of another writer below them is open: a base cannot cover them yet."""
    inserting = insert(table)
    deleting, _ = delete(table)
    table.t.commit(deleting)
    runner = FakeRunner(table.files)

    report, request = work(table, runner)

    assert report.outcome is WorkOutcome.RELEASED
    assert "delete_delta_0000004_0000004_0000 deletes rows by their ids" in request.error_message
    assert "as long as the write id 3 is open" in request.error_message
    assert runner.specs == []
    table.t.commit(inserting)
    test_clock.advance(timedelta(minutes=2))
    assert table.worker(runner).tick().outcome is WorkOutcome.COMPACTED
    assert runner.specs[0].highest_write_id == 6, "the first try had the write id 5"


def test_a_second_base_of_a_write_id_is_not_written(table):
    table.compact("major")
    insert(table)

    report, request = work(table)

    assert report.outcome is WorkOutcome.RELEASED
    assert "goes up to write id 2 already, and so would a rebalance as long as the write id 3 is open" in request.error_message


def test_a_rebalance_that_fails_leaves_no_trace(table):
    report, _ = work(table, FakeRunner(table.files, fails="no"))

    assert report.outcome is WorkOutcome.FAILED
    assert table.directories() == ["delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert table.t.count("txn_components") == 0


def test_tables_without_ids_are_refused(lake):
    lake.table(transactional_properties="insert_only")
    lake.insert(times=2)

    report, request = work(lake)

    assert (report.outcome, request.state) == (WorkOutcome.REFUSED, "refused")
    assert "insert-only" in request.error_message


def test_the_point_of_commit_of_a_workers_of_hive_is_noted(table):
    """Hive notes none, and its Cleaner may remove what readers need; ours would wait for ever."""
    reader, txn_id = table.t.open(), table.t.open(kind=TxnType.REBALANCE_COMPACTION)
    asked = table.request("rebalance")
    table.t.rows("UPDATE compaction_queue SET state = 'ready_for_cleaning', txn_id = %s", txn_id)

    table.t.commit(txn_id)

    assert table.one(asked.id).next_txn_id >= txn_id > reader
