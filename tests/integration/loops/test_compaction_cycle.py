"""Initiator, Worker and Cleaner in turn, as the loops run them."""

from datetime import timedelta

import pytest

from metastore.loops.worker import WorkOutcome
from tests.support.lake import FakeRunner

HOUR = timedelta(hours=1)


def test_small_inserts_are_compacted_and_cleaned_by_themselves(lake):
    lake.table()
    lake.insert(times=11)

    [queued] = lake.initiator().tick().queued
    assert queued.type == "major"
    assert "no base" in queued.reason

    assert lake.worker().tick().outcome is WorkOutcome.COMPACTED
    compaction = lake.one(queued.id)
    assert compaction.state == "ready_for_cleaning"
    assert len(lake.directories()) == 12

    [cleaned] = lake.cleaner().tick()
    assert cleaned.outcome == "cleaned"
    assert lake.directories() == [f"base_0000011_v{compaction.txn_id:07d}"]
    assert lake.state(queued.id) == "succeeded"
    assert lake.t.count("completed_txn_components") == 0


def test_a_reader_that_was_open_at_the_commit_keeps_the_old_files(lake):
    """COMP-C05, COMP-C06: strictly; the reader is the newest transaction at the commit. COMP-C40: who is in the way is named."""
    lake.table()
    lake.insert(times=3)
    request = lake.request()
    readers = []
    runner = FakeRunner(lake.files, during=lambda *_: readers.append(lake.t.open()))
    assert lake.worker(runner).tick().outcome is WorkOutcome.COMPACTED

    [waiting] = lake.cleaner().tick()
    assert waiting.outcome == "waiting"
    assert f"transaction {readers[0]} of ann@h1" in waiting.reason
    assert len(lake.directories()) == 4
    assert lake.one(request.id).next_txn_id == readers[0]
    assert "has not said what it reads" in lake.one(request.id).error_message

    later = lake.t.open()  # COMP-C07: opened after the commit, in nobody's way
    lake.t.commit(readers[0])
    [cleaned] = lake.cleaner().tick()
    assert cleaned.outcome == "cleaned"
    assert len(lake.directories()) == 1
    lake.t.commit(later)


def test_a_later_compaction_that_a_reader_does_not_see_hides_nothing_from_it(lake):
    """Two compactions of the same rows are ready: the first may be cleaned, the second's result may not cover it."""
    lake.table()
    lake.put("d.t", "base_0000020")
    lake.seed(20)
    lake.insert(times=3)
    first = lake.compact("minor")
    lake.db.once("UPDATE compaction_queue SET highest_write_id = highest_write_id - 1 WHERE id = %s", [first])
    second = lake.request("major")
    lake.db.once("UPDATE compaction_queue SET highest_write_id = highest_write_id + 1 WHERE id = %s", [first])
    readers = []
    lake.worker(FakeRunner(lake.files, during=lambda *_: readers.append(lake.t.open()))).tick()
    minor = lake.one(first)

    lake.cleaner().tick()

    assert lake.state(first) == "succeeded"
    assert lake.state(second.id) == "ready_for_cleaning"
    assert f"delta_0000021_0000023_v{minor.txn_id:07d}" in lake.directories()
    assert "base_0000020" in lake.directories()
    lake.t.commit(readers[0])
    lake.cleaner().tick()
    assert lake.state(second.id) == "succeeded"
    assert len(lake.directories()) == 1


def test_a_worker_whose_claim_was_taken_back_writes_nothing_more(lake, test_clock):
    """COMP-W36: frozen past its lease; another worker does the job; the first one's commit is rejected and its files go."""
    lake.table()
    lake.insert(times=3)
    request = lake.request()
    others = []

    def freeze(spec, pulse):
        test_clock.advance(timedelta(minutes=3))
        [revoked] = lake.initiator().tick().revoked
        assert "no sign of life" in revoked.reason
        assert "Taken back" in lake.one(request.id).error_message
        others.append(lake.worker(name="host-8").tick())

    report = lake.worker(FakeRunner(lake.files, during=freeze)).tick()

    assert others[0].outcome is WorkOutcome.COMPACTED
    assert report.outcome is not WorkOutcome.COMPACTED
    compaction = lake.one(request.id)
    assert compaction.state == "ready_for_cleaning"
    assert compaction.attempt == 2
    assert [name for name in lake.directories() if name.startswith("base")] == [
        f"base_0000003_v{compaction.txn_id:07d}"]


def test_a_heartbeat_of_a_lost_claim_stops_the_job(new_lake, test_clock):
    lake = new_lake(worker_lease=timedelta(seconds=0.001))
    lake.table()
    lake.insert(times=3)
    lake.request()

    def lose(spec, pulse):
        test_clock.advance(HOUR)
        lake.initiator().tick()
        pulse()
        raise AssertionError("the pulse must have stopped the job")

    report = lake.worker(FakeRunner(lake.files, during=lose)).tick()

    assert report.outcome is WorkOutcome.LOST
    assert lake.directories() == [f"delta_{n:07d}_{n:07d}_0000" for n in (1, 2, 3)]
    [waiting] = lake.shown()
    assert waiting.state == "initiated"


def test_without_spark_the_work_stays_queued_and_says_so(lake):
    lake.table()
    lake.insert(times=3)
    request = lake.request()

    report = lake.worker(FakeRunner(lake.files, missing="there is no Java")).tick()

    assert report.outcome is WorkOutcome.UNAVAILABLE
    assert lake.state(request.id) == "initiated"
    assert lake.one(request.id).error_message == "Worker host-7 cannot run it: there is no Java"
    assert lake.worker().tick().outcome is WorkOutcome.COMPACTED
    assert lake.one(request.id).error_message is None


def test_a_failed_job_leaves_nothing_behind(lake):
    """COMP-W23."""
    lake.table()
    lake.insert(times=3)
    request = lake.request()

    report = lake.worker(FakeRunner(lake.files, fails="out of memory")).tick()

    assert report.outcome is WorkOutcome.FAILED
    assert lake.one(request.id).error_message == "out of memory"
    assert lake.state(request.id) == "failed"
    assert len(lake.directories()) == 3
    assert lake.t.state(lake.one(request.id).txn_id) == "aborted"
    assert lake.t.count("txn_components") == 0
    assert lake.cleaner().tick() == []


def test_two_cleaners_and_two_initiators_do_everything_once(lake):
    """COMP-I32, COMP-C39."""
    lake.table()
    lake.insert(times=11)
    first, second = lake.initiator("a-1"), lake.initiator("b-1")
    assert len(first.tick().queued) == 1
    assert second.tick().queued == []
    lake.worker().tick()
    ready = lake.shown()[0]

    left, right = lake.cleaner(), lake.cleaner()
    cleaning = left.compactions.start(ready)
    assert [one.outcome for one in right.tick()] == ["cleaned"]
    assert left._clean(cleaning).outcome == "nothing to clean any more"
    assert [one.state for one in lake.shown()] == ["succeeded"]


def test_a_crash_between_deleting_and_recording_is_finished_by_the_next_round(lake, monkeypatch):
    """COMP-C26."""
    lake.table()
    lake.insert(times=3)
    request_id = lake.compact()
    cleaner = lake.cleaner()

    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(cleaner.compactions), "clean", crash)
        with pytest.raises(KeyboardInterrupt):
            cleaner.tick()
    assert lake.state(request_id) == "ready_for_cleaning"
    assert len(lake.directories()) == 1

    assert [one.outcome for one in lake.cleaner().tick()] == ["cleaned"]
    assert lake.state(request_id) == "succeeded"
