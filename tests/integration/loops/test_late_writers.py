"""Writers that go on after somebody else has aborted their transactions: whatever they publish, nobody ever reads it.

The invariant: an aborted write id leaves the lists only when nothing that appears under it later could be read. A base
covers it, the table or partition is gone, or its owner has said that he publishes nothing any more.
"""

import pytest

from metastore.acid.names import BaseName, DeltaName
from metastore.acid.snapshots import ValidTxnList
from metastore.acid.state import acid_state
from metastore.config import TxnSettings
from metastore.locks.rules import LockType
from metastore.txns.core.rules import AbortCode, Operation, reader_snapshot
from metastore.txns.history.service import HistoryService
from tests.support.transactions import seconds


class Stopped:
    """A writer that has its write id and a lock, and stands still before its files have their names."""

    def __init__(self, lake, what="d.t", *, dynamic=False):
        self.lake, self.what = lake, what
        self.txn_id = lake.t.open()
        self.write_id = lake.t.allocate(what.partition("/")[0], self.txn_id)[self.txn_id]
        lake.t.lock(self.txn_id, what, Operation.INSERT, LockType.SHARED_WRITE, dynamic=dynamic)

    def publish(self, what=None, name=None):
        self.lake.put(what or self.what, str(name or DeltaName(self.write_id, self.write_id, 0)))


def expire(lake, test_clock):
    test_clock.advance(seconds(301))
    assert lake.t.reaper.tick().expired_txns == 1


def clean(lake):
    """Run the Cleaner and the house-keeper, two rounds of each."""
    for _ in range(2):
        lake.cleaner().tick()
        lake.t.reaper.tick()


def read(lake, what="d.t"):
    """Return the paths of the base and the insert deltas that a reader who begins now reads."""
    txns = reader_snapshot(lake.t.txns.get_open_txns())
    write_ids = lake.t.reads(what.partition("/")[0], txns.format())
    state = acid_state(lake.files.listing(f"file://{lake.path(what)}"), write_ids, ValidTxnList.parse(txns.format()),
                       lambda path: "{}")
    return [one.path for one in ([state.base] if state.base else [])] + [one.path for one in state.insert_deltas]


def listed(lake):
    return lake.t.txns.get_open_txns().open_txns


ENDED = {
    "expired": lambda lake, writer, clock: expire(lake, clock),
    "ended by an operator": lambda lake, writer, clock: lake.t.abort(writer.txn_id, AbortCode.QUERY_COMMAND),
    "victim of a deadlock": lambda lake, writer, clock: lake.t.abort(writer.txn_id, AbortCode.DEADLOCK)}


@pytest.mark.parametrize("how", ENDED)
def test_what_a_stopped_writer_publishes_after_the_cleaner_is_never_read(new_lake, test_clock, how):
    lake = new_lake(aborted_txn_threshold=0)
    lake.table()
    lake.insert()
    writer = Stopped(lake)
    ENDED[how](lake, writer, test_clock)
    clean(lake)
    writer.publish()

    assert read(lake) == ["delta_0000001_0000001_0000"]
    assert listed(lake) == [writer.txn_id]
    clean(lake)
    assert read(lake) == ["delta_0000001_0000001_0000"]


@pytest.mark.parametrize("name", [DeltaName(2, 2, 0), DeltaName(2, 2, 0, is_delete=True), BaseName(2)])
def test_a_base_that_covers_it_ends_it_whatever_appears_then(new_lake, test_clock, name):
    lake = new_lake(aborted_txn_threshold=0)
    lake.table()
    lake.insert()
    writer = Stopped(lake)
    expire(lake, test_clock)
    clean(lake)
    lake.insert()
    minor = lake.compact("minor")
    clean(lake)
    assert (lake.state(minor), listed(lake)) == ("succeeded", [writer.txn_id])   # a minor one covers nothing
    lake.insert()
    lake.compact("major")
    clean(lake)

    assert listed(lake) == []
    assert lake.t.count("txn_write_ids") == 0
    [base] = read(lake)
    writer.publish(name=name)
    assert read(lake) == [base]


def test_the_base_of_a_compaction_covers_the_same_write_id(new_lake, test_clock):
    """The aborted one is the last of the table: the base has its write id, and beats a base of its owner."""
    lake = new_lake(aborted_txn_threshold=0)
    lake.table()
    lake.insert(times=2)
    writer = Stopped(lake)
    expire(lake, test_clock)
    lake.compact("major")
    clean(lake)

    assert listed(lake) == []
    [base] = read(lake)
    assert base.startswith("base_0000003_v")
    writer.publish(name=BaseName(3))
    assert read(lake) == [base]


def test_an_owner_who_aborts_is_forgotten_at_once(new_lake):
    lake = new_lake(aborted_txn_threshold=0)
    lake.table()
    lake.abort()
    lake.t.abort(lake.begin()[0], AbortCode.ROLLBACK)
    clean(lake)

    assert (lake.directories(), listed(lake)) == ([], [])


def test_an_owner_who_aborts_afterwards_publishes_nothing_any_more(new_lake, test_clock):
    """It was told, or an operator knows that its process is gone; what it published in between goes."""
    lake = new_lake(aborted_txn_threshold=0)
    lake.table()
    writer = Stopped(lake)
    expire(lake, test_clock)
    clean(lake)
    lake.t.abort(writer.txn_id, AbortCode.QUERY_COMMAND)   # an operator says nothing of the owner by that
    clean(lake)
    assert listed(lake) == [writer.txn_id]
    writer.publish()
    lake.t.abort(writer.txn_id, AbortCode.ROLLBACK)
    clean(lake)

    assert (lake.directories(), listed(lake)) == ([], [])


def test_partitions_that_nobody_knows_of_keep_it_while_the_table_lives(new_lake, test_clock):
    lake = new_lake(aborted_txn_threshold=0)
    lake.table(keys=("p",))
    lake.partition("p=1")
    writer = Stopped(lake, dynamic=True)
    lake.t.partitions(writer.txn_id, "d.t", "p=1", write_id=1)
    expire(lake, test_clock)
    lake.insert("d.t/p=1", times=2)
    lake.compact("major", "d.t/p=1")
    clean(lake)

    assert lake.t.rows("SELECT partition FROM txn_components") == [("",)]   # a base covers the partition
    assert listed(lake) == [writer.txn_id]
    lake.partition("p=2")
    writer.publish("d.t/p=2")
    assert read(lake, "d.t/p=2") == []


def test_a_drop_forgets_it(new_lake, test_clock):
    lake = new_lake(aborted_txn_threshold=0)
    lake.table()
    Stopped(lake)
    expire(lake, test_clock)
    clean(lake)
    lake.drop_for_good()
    clean(lake)

    assert listed(lake) == []


def test_a_directory_is_listed_once_for_what_it_keeps(new_lake, test_clock):
    lake = new_lake(aborted_txn_threshold=0)
    lake.table()
    Stopped(lake).publish()
    expire(lake, test_clock)
    first, again = lake.cleaner().tick(), lake.cleaner().tick()

    assert [one.removed for one in first] == [("delta_0000001_0000001_0000",)]
    assert again == []


def test_it_is_told_why_it_is_still_listed(new_lake, test_clock):
    lake = new_lake(aborted_txn_threshold=0)
    lake.table()
    writer = Stopped(lake)
    expire(lake, test_clock)

    def told():
        return HistoryService(lake.db, TxnSettings()).explain(writer.txn_id).answer.reason

    assert told().endswith("snapshots name it until the Cleaner has removed what it wrote to hive.d.t")
    clean(lake)
    assert "its owner did not abort it, and may still publish in hive.d.t until a major compaction" in told()
    lake.t.abort(writer.txn_id, AbortCode.ROLLBACK)
    clean(lake)
    assert "snapshots name it" not in told()


@pytest.mark.parametrize("by_cleaner", [True, False])
def test_too_many_of_them_ask_for_a_major_compaction_which_ends_them(new_lake, test_clock, by_cleaner):
    lake = new_lake(aborted_txn_threshold=1, clean_aborts_using_cleaner=by_cleaner)
    lake.table()
    lake.insert(times=2)
    for _ in range(2):
        Stopped(lake)
        expire(lake, test_clock)
    lake.cleaner().tick()
    [finding] = [one for one in lake.initiator().tick().findings if one.id is not None]
    assert (finding.type.value, finding.reason) == ("major", "too many aborted transactions wrote to it")
    assert lake.worker().tick().outcome == "compacted"
    clean(lake)

    assert listed(lake) == []
    assert [one for one in lake.initiator().tick().findings if one.id is not None] == []


@pytest.mark.parametrize("rows", [1, 0])
def test_too_many_of_them_above_a_lone_base_too(new_lake, rows):
    """The Worker refused what the Initiator asked for in each round: nothing to merge, and the ids stayed for ever."""
    lake = new_lake(aborted_txn_threshold=1)
    lake.table()
    for _ in range(rows):
        lake.insert(times=2)
        lake.compact("major")
        clean(lake)
    for _ in range(2):
        lake.t.abort(Stopped(lake).txn_id, AbortCode.QUERY_COMMAND)
    lake.cleaner().tick()
    assert lake.initiator().tick().queued[0].reason == "too many aborted transactions wrote to it"
    report = lake.worker().tick()
    assert (report.outcome, report.reason) == ("compacted", "a new base ends 2 aborted write ids, more than 1")
    clean(lake)

    assert listed(lake) == []
    assert lake.initiator().tick().queued == []


def test_those_above_an_open_write_wait_for_its_end(new_lake):
    """No base can end them before, so a Worker would refuse it, and nobody asks."""
    lake = new_lake(aborted_txn_threshold=1)
    lake.table()
    lake.insert(times=2)
    lake.compact("major")
    clean(lake)
    open_one = Stopped(lake)
    for _ in range(2):
        lake.t.abort(Stopped(lake).txn_id, AbortCode.QUERY_COMMAND)
    lake.cleaner().tick()
    initiator = lake.initiator()
    for _ in range(2):
        [finding] = initiator.tick().findings
        assert (finding.id, "is still open" in finding.reason) == (None, True)

    lake.t.commit(open_one.txn_id)
    assert [one.type.value for one in initiator.tick().queued] == ["major"]
