"""Words for what the other rules decide: plans, and who waits for whom."""

from dataclasses import replace
from datetime import timedelta

import pytest

from metastore.acid.snapshots import ValidWriteIdList
from metastore.compaction.cleaning.rules import DeclaredReading, OpenTxn
from metastore.compaction.explaining.rules import (
    Holder,
    delays_of_cleaning,
    estimate,
    plan,
    why_not_cleaned,
    why_not_compacted,
    writers_of,
)
from metastore.compaction.initiating.rules import Due, Ineligible, Thresholds
from metastore.compaction.inventory.rules import measure
from metastore.compaction.queue.rules.requests import CompactionType, Entity
from tests.unit.compaction.initiating.test_rules import DEFAULTS, T, directories
from tests.unit.compaction.queue.test_requests import DAY, NOW, request

MAJOR, MINOR = Due(CompactionType.MAJOR, "why"), Due(CompactionType.MINOR, "why")
NOTHING = Due(None, "2 deltas, not more than 10")
FIVE_MINUTES = timedelta(minutes=5)


def holder(txn_id, write_id=None, reading=DeclaredReading.ANYTHING):
    return Holder(OpenTxn(txn_id, "eve", "h1", reading), "beeline", NOW - DAY, NOW, write_id)


def planned(verdict, *names):
    state = directories(*names)
    return plan(verdict, state, measure(state), DEFAULTS)


def test_a_plan_names_what_is_read_and_by_how_much_a_threshold_is_missed():
    names = ["base_20:20", "delta_21_21:1", "delete_delta_21_21:1"]
    major, minor = planned(MAJOR, *names), planned(MINOR, *names)

    assert [(each.kind, each.size) for each in major.inputs] == [("base", 2000), ("delete delta", 100), ("delta", 100)]
    assert (major.reads, minor.reads) == (2200, 200)  # a minor compaction does not read the base
    assert [(each.measured, each.limit, each.is_exceeded) for each in major.gauges] == [(2, 10, False), (0.1, 0.1, False)]
    assert [each.is_exceeded for each in plan(MINOR, directories(*names), measure(directories(*names)), Thresholds(1, 0.05)).gauges] == [
        True, True]


def test_a_plan_of_original_files():
    assert [(each.kind, each.path, each.size) for each in planned(MAJOR, "000000_0:3", "000001_0:1").inputs] == [
        ("original files", ".", 400)]
    assert planned(NOTHING).inputs == ()


def reason(no=None, verdict=NOTHING, queued=(), writers=(), full=()):
    return why_not_compacted(T, no, planned(verdict, "delta_1_1"), queued, writers, FIVE_MINUTES, dict(full))


def test_a_request_waits_for_a_worker_or_is_worked_on():
    waits = reason(queued=[request("i", id=7, error_message="no Spark here"), request("r", id=6)])
    runs = reason(queued=[request("w", id=7, worker_id="h-1", txn_id=44, started_at=NOW)])

    assert waits.text == "Compaction 7 (minor) waits for a Worker of the pool default: no Spark here."
    assert (waits.since, waits.ends_with) == (request("i").enqueued_at, "metastore compaction abort 7")
    assert (runs.text, runs.since, runs.ends_with) == ("Compaction 7 (minor) is being done by h-1.", NOW, "metastore txn abort 44")
    tells = reason(queued=[request("w", id=7, worker_id="h-1", hadoop_job_id="app-1", meta_info="40 %, 1 of 2 stages done")])
    assert tells.text == "Compaction 7 (minor) is being done by h-1, job app-1: 40 %, 1 of 2 stages done."
    assert reason(queued=[request("w", worker_id=None, txn_id=None)]).ends_with == ""
    assert "Worker of the pool P1." in reason(queued=[request("i", pool="P1")]).text


def test_a_request_waits_for_a_place_in_its_pool():
    full = {"": 0, "etl": 2}
    waits = reason(queued=[request("i", id=7, pool="etl", error_message="taken back")], full=full)

    assert waits.text == (
        "Compaction 7 (minor) waits for a Worker of the pool etl, which is full: metastore.compactor.pool.limits allows 2 at a "
        "time: taken back.")
    assert "pool default, which is full: metastore.compactor.pool.limits allows 0 at a time." in reason(
        queued=[request("i")], full=full).text
    assert "full" not in reason(queued=[request("i", pool="P1")], full=full).text
    assert "full" not in reason(queued=[request("w", pool="etl")], full=full).text


def test_passed_over_and_due():
    assert reason(Ineligible("NO_AUTO_COMPACTION is set")).text == "The Initiator passes it over: NO_AUTO_COMPACTION is set."
    assert reason(Ineligible("x")).ends_with == ""
    assert reason(Ineligible("x"), MAJOR).ends_with == "metastore compaction request d.t --type major"
    due = reason(verdict=MINOR)
    assert due.text == "It is due for a minor compaction (why): the Initiator queues it in its next round, within 300 s."
    partition = why_not_compacted(Entity(T.table, "a=1"), None, planned(MAJOR, "delta_1_1"), [], [], FIVE_MINUTES, {})
    assert partition.ends_with == "metastore compaction request d.t --partition a=1 --type major"


def test_nothing_is_due_and_perhaps_an_open_writer_is_why():
    assert reason() == ("Nothing is due: 2 deltas, not more than 10.", None, (), "")
    blocked = reason(writers=[holder(3, write_id=9), holder(2, write_id=11)])
    assert blocked.text.endswith("Write id 9 is open, and nothing from it on can be compacted.")
    assert [each.txn.id for each in blocked.holders] == [3]
    assert (blocked.since, blocked.ends_with) == (NOW - DAY, "metastore txn abort 3")


def test_writers_by_write_id():
    ids = ValidWriteIdList("d.t", 12, 9, (9, 10, 11), frozenset((10,)))

    assert [each.txn.id for each in writers_of([holder(2, 11), holder(3, 9), holder(4), holder(5, 10)], ids)] == [3, 2]


@pytest.mark.parametrize(("per_table", "expected"), [(False, [1, 2, 3]), (True, [1, 3])])
def test_who_would_delay_a_cleaning(per_table, expected):
    """One that registered what it reads, and not this table, is in nobody's way (COMP-C07)."""
    holders = [holder(1), holder(2, reading=DeclaredReading.OTHERS), holder(3, reading=DeclaredReading.THIS)]

    assert [each.txn.id for each in delays_of_cleaning(holders, per_table=per_table)] == expected


def test_why_old_files_stay():
    done = request("r", id=6, txn_id=26, next_txn_id=30, committed_at=NOW - DAY, highest_write_id=25)
    held = why_not_cleaned(done, "waiting for transaction 30", [holder(30), holder(31)], per_table=False)

    assert held.text == "The old files of compaction 6 are not removed: waiting for transaction 30."
    assert ([each.txn.id for each in held.holders], held.since, held.ends_with) == ([30], NOW - DAY, "metastore txn abort 30")
    assert why_not_cleaned(done, "", [], per_table=False).text == "Compaction 6 is cleaned in the Cleaner's next round."
    assert why_not_cleaned(done, "retry", [], per_table=False).ends_with == ""
    unknown = why_not_cleaned(replace(done, next_txn_id=None, committed_at=None), "no point of commit", [holder(3)], per_table=False)
    assert (unknown.holders, unknown.since) == ((), done.enqueued_at)


def test_an_estimate_is_a_median_of_its_own_past_else_of_others():
    def took(seconds, entity=T, **fields):
        return replace(request("s", "major"), entity=entity, started_at=NOW, committed_at=NOW + timedelta(seconds=seconds), **fields)

    other = Entity(T.table, "p=1")
    assert estimate([took(9), took(1), took(2), took(50, other)], CompactionType.MAJOR, T) == (
        timedelta(seconds=2), "median of the last 3 major compactions of it")
    assert estimate([took(9), took(4), took(5)], CompactionType.MAJOR, other) == (
        timedelta(seconds=5), "median of the last 3 major compactions of other tables")
    assert estimate([took(9), replace(took(1), started_at=None), replace(took(1), committed_at=None)], CompactionType.MINOR, T) == (
        None, "no minor compaction has been done yet")
