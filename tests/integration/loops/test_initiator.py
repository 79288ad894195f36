"""The Initiator over real directories (COMP-8 to COMP-11)."""

import shutil
from datetime import timedelta

import pytest

from tests.support.lake import FakeRunner

HOUR = timedelta(hours=1)


def kinds(report):
    return [(str(one.entity), one.type.value) for one in report.queued]


def reasons(report):
    return {str(one.entity): one.reason for one in report.findings}


def test_an_empty_system(lake):
    """COMP-I01."""
    assert lake.initiator().tick().findings == []


def with_base(lake, base, deltas, rows=2, what="d.t"):
    """Write a base of so many rows and then so many deltas, all through transactions but the base."""
    lake.put(what, f"base_{base:07d}", rows=base)
    lake.seed(base, what)
    lake.insert(what, rows=rows, times=deltas)


@pytest.mark.parametrize(("base", "deltas", "rows", "expected"), [
    (20, 2, 2, ["major"]),        # COMP-I12
    (50, 2, 2, []),               # COMP-I13
    (200, 11, 1, ["minor"]),      # COMP-I14
    (200, 10, 1, [])])
def test_delta_sizes_and_counts(lake, base, deltas, rows, expected):
    lake.table()
    with_base(lake, base, deltas, rows)

    assert [kind for _, kind in kinds(lake.initiator().tick())] == expected


def test_partitions_are_judged_one_by_one(lake):
    """COMP-I21, COMP-I28, COMP-Q04: only the partitions that were written."""
    lake.table("p", keys=["x"])
    for number in range(4):
        lake.partition(f"x={number}", "p")
    for number in range(3):
        lake.insert(f"d.p/x={number}", times=11 if number else 2)

    assert kinds(lake.initiator().tick()) == [("d.p/x=1", "major"), ("d.p/x=2", "major")]


def test_an_examined_candidate_comes_back_with_the_next_write(lake, test_clock):
    """COMP-I26, COMP-I27."""
    lake.table()
    lake.insert(times=10)
    initiator = lake.initiator()
    assert "10 deltas" in reasons(initiator.tick())["d.t"]
    test_clock.advance(HOUR)
    initiator.tick()  # once more for commits that were under way during the first round

    assert initiator.tick().findings == []
    lake.insert()
    assert kinds(initiator.tick()) == [("d.t", "major")]
    assert kinds(lake.initiator("other-1").tick()) == []  # a new Initiator looks at everything: it is queued


def test_what_was_passed_over_for_a_passing_reason_is_looked_at_again(lake, test_clock):
    """A running compaction, an open write id: nothing new need be written for them to end."""
    lake.table()
    lake.insert(times=3)
    writer, _ = lake.begin()
    lake.insert(times=20)
    initiator = lake.initiator()
    assert "write id 4 is still open" in reasons(initiator.tick())["d.t"]  # COMP-I31
    test_clock.advance(HOUR)
    lake.t.abort(writer)

    assert kinds(initiator.tick()) == [("d.t", "major")]


def test_a_failed_entity_stays_a_candidate(lake, test_clock):
    lake.table()
    lake.insert(times=11)
    initiator = lake.initiator()
    initiator.tick()
    claimed = lake.service.find_next_compact2("w-1", "v", None)
    from metastore.compaction.queue.rules.requests import Claim

    lake.service.mark_failed(Claim(claimed.id, "w-1", 1), "x")
    test_clock.advance(HOUR)

    assert kinds(initiator.tick()) == [("d.t", "major")]


def test_two_failures_stop_it_until_the_retry_time(lake, test_clock):
    """COMP-I23; the history says so once."""
    lake.table()
    lake.insert(times=11)
    initiator = lake.initiator()
    for _ in range(2):
        initiator.tick()
        assert lake.worker(FakeRunner(lake.files, fails="x")).tick().outcome == "failed"
        test_clock.advance(HOUR)

    for _ in range(3):
        assert "the last 2 compactions failed" in reasons(initiator.tick())["d.t"]
    assert [one.state.value for one in lake.shown()].count("did_not_initiate") == 1
    test_clock.advance(timedelta(days=8))
    assert kinds(initiator.tick()) == [("d.t", "major")]


def test_what_fails_for_a_cause_outside_of_the_table_is_tried_again_soon(lake, test_clock):
    lake.table()
    lake.insert(times=11)
    initiator, tried = lake.initiator(), 0
    for minutes in range(0, 120, 5):
        if initiator.tick().queued:
            tried += 1
            lake.worker(FakeRunner(lake.files, fails=f"job {minutes}: No space left on device")).tick()
            [it] = lake.explained()
            assert "outside of the table (no space left on device)" in it.compaction.text
        test_clock.advance(timedelta(minutes=5))

    assert 4 <= tried <= 6
    test_clock.advance(HOUR * 5)  # the last pause is at most twice the two hours between the last two tries
    assert kinds(initiator.tick()) == [("d.t", "major")]


@pytest.mark.parametrize(("own", "inherited", "expected"), [
    ({"NO_AUTO_COMPACTION": "true"}, {}, "NO_AUTO_COMPACTION"),       # COMP-I08
    ({}, {"no_auto_compaction": "true"}, "NO_AUTO_COMPACTION"),       # COMP-I09
    ({}, {"hive.repl.first.inc.pending": "true"}, "replication"),     # COMP-I34
    ({"transactional": "false"}, {}, "not transactional")])
def test_opt_outs(lake, own, inherited, expected):
    import json

    lake.table(**own)
    lake.db.once("UPDATE databases SET parameters = %s WHERE name = 'd'", [json.dumps(inherited)])
    lake.insert(times=11)

    assert expected in reasons(lake.initiator().tick())["d.t"]
    if expected != "not transactional":
        assert lake.request().accepted  # people may still ask


def test_a_tables_own_thresholds(lake):
    """COMP-I16."""
    lake.table(**{"compactorthreshold.hive.compactor.delta.num.threshold": "2"})
    with_base(lake, 200, 3, 1)

    assert kinds(lake.initiator().tick()) == [("d.t", "minor")]


def test_one_candidates_failure_is_its_own(lake, monkeypatch):
    """COMP-I17, COMP-I33."""
    lake.table("a", **{"compactorthreshold.hive.compactor.delta.num.threshold": "abc"})
    lake.table("b")
    lake.table("c")
    for name in "abc":
        lake.insert(f"d.{name}", times=11)
    listing = lake.files.listing

    def denied(_self, uri):
        if uri.endswith("/b"):
            raise PermissionError("b: permission denied")
        return listing(uri)

    monkeypatch.setattr(type(lake.files), "listing", denied)

    assert kinds(lake.initiator().tick()) == [("d.c", "major")]
    rows = {one.entity.table.table: one for one in lake.shown() if one.state == "did_not_initiate"}
    assert "abc" in rows["a"].error_message
    assert "permission denied" in rows["b"].error_message


def test_a_dropped_table_is_passed_over_silently(lake):
    """COMP-I22."""
    lake.table()
    lake.insert(times=11)
    lake.drop()

    assert "does not exist" in reasons(lake.initiator().tick())["d.t"]
    assert lake.shown() == []


def test_pools_run_as_and_initiator_are_noted(lake):
    """COMP-I30, COMP-Q06."""
    lake.table(**{"hive.compactor.worker.pool": "p2"})
    lake.insert(times=11)
    lake.initiator("host-3").tick()

    [row] = lake.shown()
    assert (row.pool, row.run_as, row.initiator_id, row.initiator_version) == ("p2", "ann", "host-3", "test")


def test_a_ready_request_does_not_block_a_new_one(lake):
    """COMP-I11."""
    lake.table()
    reader = lake.t.open()
    lake.insert(times=11)
    initiator = lake.initiator()
    initiator.tick()
    lake.worker().tick()
    lake.insert(times=11)

    assert kinds(initiator.tick()) == [("d.t", "major")]
    assert sorted(one.state.value for one in lake.shown()) == ["initiated", "ready_for_cleaning"]
    lake.t.commit(reader)


@pytest.mark.parametrize(("aborts", "hours", "expected"), [
    (11, 0, [("d.t", "major")]), (10, 0, []), (1, 13, [("d.t", "minor")])])
def test_aborts_where_the_initiator_deals_with_them(new_lake, test_clock, aborts, hours, expected):
    """COMP-I04, COMP-I05, COMP-I06."""
    lake = new_lake(aborted_txn_threshold=10, clean_aborts_using_cleaner=False)
    lake.table()
    lake.abort(times=aborts)
    test_clock.advance(HOUR * hours)

    assert kinds(lake.initiator().tick()) == expected


def test_aborts_are_left_to_the_cleaner_by_default(new_lake):
    """COMP-I07."""
    lake = new_lake(aborted_txn_threshold=10)
    lake.table()
    lake.abort(times=20)

    assert lake.initiator().tick().findings == []


def test_what_a_worker_would_refuse_is_not_asked_for(new_lake):
    """One delta is more than none, and too little for a job."""
    lake = new_lake()
    lake.table(**{"compactorthreshold.hive.compactor.delta.num.threshold": "0"})
    lake.insert()

    [finding] = lake.initiator().tick().findings

    assert (finding.id, finding.reason[:40]) == (None, "1 deltas, more than 0, and there is no b")
    assert "None of the compaction thresholds met" in finding.reason


def test_fresh_writes_do_not_hide_aborts(new_lake):
    """COMP-I35."""
    lake = new_lake(aborted_txn_threshold=10, clean_aborts_using_cleaner=False)
    lake.table()
    lake.abort(times=11)
    lake.insert()

    assert kinds(lake.initiator().tick()) == [("d.t", "major")]


def test_no_candidate_is_hidden_by_the_page_size(new_lake):
    """COMP-I29."""
    lake = new_lake(fetch_size=2)
    for number in range(5):
        lake.table(f"t{number}")
        lake.insert(f"d.t{number}", times=11)

    assert len(lake.initiator().tick().queued) == 5


def test_a_missing_directory_has_no_deltas(lake):
    lake.table()
    lake.insert(times=11)
    shutil.rmtree(lake.path("t"))

    assert "0 deltas" in reasons(lake.initiator().tick())["d.t"]


def test_stopping_in_the_middle_loses_no_candidate(lake):
    lake.table("a")
    lake.table("b")
    lake.insert("d.a", times=11)
    lake.insert("d.b", times=11)
    initiator = lake.initiator()
    initiator.stopping.set()
    assert initiator.tick().findings == []
    initiator.stopping.clear()

    assert len(initiator.tick().queued) == 2
