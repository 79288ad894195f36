"""`compaction explain` and the Initiator give the same verdict, with the same reason, about the same table."""

from datetime import timedelta

import pytest

from metastore.acid.names import DeltaName
from metastore.locks.rules import LockType
from metastore.txns.core.rules import Operation

DAY = timedelta(days=1)
BY_INITIATOR = {"aborted_txn_threshold": 3, "clean_aborts_using_cleaner": False}
BY_CLEANER = {"aborted_txn_threshold": 3}


def deltas(number):
    def prepared(lake, _clock):
        lake.table()
        lake.insert(times=number)
    return prepared


def aborts(number, days=0, inserts=1, **parameters):
    def prepared(lake, clock):
        lake.table(**parameters)
        lake.insert(times=inserts)
        lake.abort(times=number)
        clock.advance(DAY * days)
    return prepared


def remembered_aborts(lake, _clock):
    """Their files are gone, and their owners may still publish: that the write ids are void is not forgotten."""
    lake.table()
    lake.insert()
    lake.abort(times=4)
    lake.db.once("UPDATE txn_components SET cleaned = true")


def aborts_covered_by_a_compaction(lake, clock):
    """Prepare aborts with a committed compaction that waits for the Cleaner: another compaction would do the same again."""
    aborts(4)(lake, clock)
    reader = lake.t.open()
    lake.compact()
    assert reader


def a_partition_with_aborts(lake, _clock):
    lake.table(keys=["x"])
    for number in range(2):
        lake.partition(f"x={number}")
    lake.abort("d.t/x=1", times=4)
    lake.insert("d.t/x=0", times=2)


def a_trace_without_a_partition(lake, clock):
    """Abort a dynamic insert before it names its partitions."""
    lake.table(keys=["x"])
    lake.partition("x=0")
    lake.insert("d.t/x=0")
    lake.abort()
    clock.advance(DAY)


def an_open_writer(lake, _clock):
    lake.table()
    lake.insert(times=2)
    lake.begin()
    lake.insert(times=20)


def a_delta_of_deletes(lake, _clock):
    lake.table()
    lake.insert(times=10)
    txn_id = lake.t.open()
    lake.t.lock(txn_id, "d.t", Operation.DELETE, LockType.SHARED_WRITE)
    write_id = lake.t.allocate("d.t", txn_id)[txn_id]
    lake.put("d.t", str(DeltaName(write_id, write_id, 0, is_delete=True)))
    lake.t.commit(txn_id)


CASES = {
    "nothing due": (deltas(10), {}, []),
    "many deltas": (deltas(11), {}, [("d.t", "major")]),
    "deletes count": (a_delta_of_deletes, {}, [("d.t", "major")]),
    "an open writer": (an_open_writer, {}, []),
    "switched off": (aborts(4, no_auto_compaction="true"), BY_INITIATOR, []),
    "too many aborts": (aborts(4), BY_INITIATOR, [("d.t", "major")]),
    "as many aborts as allowed": (aborts(3), BY_INITIATOR, []),
    "an old abort": (aborts(1, days=1, inserts=2), BY_INITIATOR, [("d.t", "minor")]),
    "an old abort, nothing to merge": (aborts(1, days=1, inserts=0), BY_INITIATOR, [("d.t", "minor")]),
    "aborts of the Cleaner's": (aborts(4, days=1), BY_CLEANER, []),
    "remembered aborts": (remembered_aborts, BY_CLEANER, [("d.t", "major")]),
    "aborts under a new base": (aborts_covered_by_a_compaction, BY_INITIATOR, []),
    "aborts of one partition": (a_partition_with_aborts, BY_INITIATOR, [("d.t/x=1", "major")]),
    "an old abort of no partition": (a_trace_without_a_partition, BY_INITIATOR, [("d.t", "minor")]),
}


@pytest.mark.parametrize("case", CASES)
def test_they_agree(new_lake, test_clock, case):
    prepare, settings, expected = CASES[case]
    lake = new_lake(**settings)
    prepare(lake, test_clock)

    explained = {str(each.entity): each for each in lake.explained()}
    report = lake.initiator().tick()

    assert sorted((str(each.entity), each.type.value) for each in report.queued) == expected
    said = {what: each.compaction.text for what, each in explained.items()}
    due = {what: text for what, text in said.items() if text.startswith("It is due for a ")}
    assert set(due) == {what for what, _ in expected}
    for finding in report.findings:
        if "one by one" in finding.reason:  # the table itself, whose partitions are explained
            continue
        what, reason = str(finding.entity), finding.reason.partition("; write id")[0]
        assert reason in said[what], said
        assert finding.type is None or f"a {finding.type.value} compaction" in said[what]
        assert finding.type is None or explained[what].plan.type is finding.type
