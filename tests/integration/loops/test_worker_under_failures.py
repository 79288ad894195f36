"""What fails a Worker on its way: time, lost answers, a database that is away, its own end (COMP-12 to COMP-16)."""

from datetime import timedelta
from threading import Event
from threading import enumerate as enumerate_threads

import pytest

from metastore.compaction.working.service import WorkerService
from metastore.errors import OutcomeUnknownError, UnavailableError
from metastore.files import Files
from metastore.loops import worker as loops_worker
from metastore.loops.job_process import JobLivesError
from metastore.loops.worker import WorkOutcome
from tests.support.lake import FakeRunner
from tests.support.thrift_server import until


def test_a_job_that_may_still_write_is_not_forgotten(lake):
    """It was killed and is still there: its transaction stays in the lists."""
    def stuck(spec, pulse):
        raise JobLivesError("in the middle of a write")

    lake.table()
    lake.insert(times=2)
    report, request = lake.work(runner=FakeRunner(lake.files, during=stuck))

    assert (report.outcome, report.is_failure, request.state) == (WorkOutcome.FAILED, True, "failed")
    assert lake.directories() == ["delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]
    assert lake.t.rows("SELECT operation, txn_id FROM txn_components") == [("c", request.txn_id)]


def test_a_job_that_was_killed_leaves_nothing_that_it_prepared(lake):
    def killed(spec, _):
        (lake.path("t") / f".compaction_{spec.txn_id}_0").mkdir()
        (lake.path("t") / f".acid_stage_{spec.txn_id + 1}_0").mkdir()
        raise RuntimeError("killed")

    lake.table()
    lake.insert(times=2)
    report, request = lake.work(runner=FakeRunner(lake.files, during=killed))

    assert report.outcome is WorkOutcome.FAILED
    assert lake.directories() == [
        f".acid_stage_{request.txn_id + 1}_0", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]


def test_a_job_that_wrote_nothing_has_failed(lake):
    class Idle(FakeRunner):
        def run(self, spec, pulse):
            from metastore.loops.job_runner import JobOutcome

            return JobOutcome(succeeded=True)

    lake.table()
    lake.insert(times=2)
    report, _ = lake.work(runner=Idle(lake.files))

    assert report.outcome is WorkOutcome.FAILED
    assert "left nothing" in report.reason


def test_what_cannot_be_proven_fails_the_request_and_changes_nothing(lake):
    """The outputs stay under their hidden name; the metric tells it from other failures."""
    class Wrong(FakeRunner):
        def run(self, spec, pulse):
            from metastore.compaction.working.job_specification import CompactionJobResult
            from metastore.loops.job_runner import JobOutcome

            place = self.files_path(spec.location) / f".unproven_{spec.txn_id:07d}" / "base_0000002"
            place.mkdir(parents=True)
            return JobOutcome(succeeded=False, message="Bucket 0: of 2 insert events 1 were written",
                              result=CompactionJobResult(differences=("Bucket 0: of 2 insert events 1 were written",)))

    lake.table()
    lake.insert(times=2)
    report, request = lake.work(runner=Wrong(lake.files))

    assert (report.outcome, report.is_failure, report.step) == (WorkOutcome.UNPROVEN, True, "compaction_proof")
    assert (request.state, request.error_message) == ("failed", "Bucket 0: of 2 insert events 1 were written")
    assert lake.t.state(request.txn_id) in ("aborted", None)
    assert lake.directories() == [f".unproven_{request.txn_id:07d}", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]


def test_a_transaction_aborted_during_the_run_voids_the_result(lake):
    """COMP-W27."""
    lake.table()
    lake.insert(times=2)
    report, request = lake.work(runner=FakeRunner(lake.files, during=lambda spec, _: lake.t.abort(spec.txn_id)))

    assert report.outcome is WorkOutcome.FAILED
    assert "was aborted" in request.error_message
    assert len(lake.directories()) == 2


def test_heartbeats_keep_transaction_and_claim(new_lake, test_clock):
    """COMP-W28."""
    lake = new_lake(worker_lease=timedelta(milliseconds=1))
    lake.table()
    lake.insert(times=2)

    def long_run(spec, pulse):
        for _ in range(5):
            test_clock.advance(timedelta(seconds=200))
            pulse()
            lake.t.reaper.tick()

    report, request = lake.work(runner=FakeRunner(lake.files, during=long_run))

    assert report.outcome is WorkOutcome.COMPACTED
    assert request.attempt == 1


def test_a_directory_may_take_longer_to_list_than_the_lease(new_lake, test_clock, monkeypatch):
    """Else its claim would be taken back each time, and it would be begun anew for ever."""
    lease = timedelta(seconds=1)
    lake = new_lake(worker_lease=lease)
    lake.table()
    lake.insert(times=2)
    beaten, heartbeat = Event(), WorkerService.heartbeat
    lists = []

    class Slow(Files):
        def listing(self, uri):
            lists.append(uri)
            beaten.clear()
            test_clock.advance(2 * lease)
            beaten.wait(20)
            assert not lake.initiator().compactions.revoke_dead_claims()
            return super().listing(uri)

    def heard(self, *arguments):
        heartbeat(self, *arguments)
        beaten.set()

    monkeypatch.setattr(WorkerService, "heartbeat", heard)
    runner, lake.files = FakeRunner(lake.files), Slow()
    report, request = lake.work(runner=runner)

    assert (report.outcome, request.attempt, len(lists)) == (WorkOutcome.COMPACTED, 1, 2)


def test_a_claim_that_is_lost_while_a_directory_is_listed_ends_the_work(new_lake, test_clock, monkeypatch):
    lake = new_lake(worker_lease=timedelta(milliseconds=1))
    lake.table()
    lake.insert(times=2)
    asked = lake.request()

    class Slow(Files):
        def listing(self, uri):
            while lake.state(asked.id) == "working":
                test_clock.advance(timedelta(minutes=1))
                lake.initiator().compactions.revoke_dead_claims()
            until(lambda: not any(thread.name == f"compaction-{asked.id}" for thread in enumerate_threads()))
            return super().listing(uri)

    runner, lake.files = FakeRunner(lake.files), Slow()

    assert lake.worker(runner).tick().outcome is WorkOutcome.LOST
    assert (runner.specs, lake.state(asked.id)) == ([], "initiated")


def test_too_long_a_run_is_ended(new_lake):
    """COMP-W26."""
    lake = new_lake(worker_timeout=timedelta(0))
    lake.table()
    lake.insert(times=2)
    report, _ = lake.work(runner=FakeRunner(lake.files, during=lambda _, pulse: pulse()))

    assert report.outcome is WorkOutcome.FAILED
    assert "ran longer than" in report.reason


def test_a_stopped_worker_gives_its_work_back(lake, test_clock):
    lake.table()
    lake.insert(times=2)
    asked = lake.request()
    worker = lake.worker(FakeRunner(lake.files, during=lambda _, pulse: (worker.stopping.set(), pulse())))

    assert worker.tick().outcome is WorkOutcome.RELEASED
    assert lake.state(asked.id) == "initiated"
    assert len(lake.directories()) == 2
    test_clock.advance(timedelta(minutes=2))
    assert lake.worker().tick().outcome is WorkOutcome.COMPACTED


def failing(worker, monkeypatch, step, *errors, done=False):
    """Make the first calls of a step of the Worker's service raise; ``done``: after they were done. Return all calls."""
    real, left, calls = getattr(type(worker.compactions), step), list(errors), []

    def called(self, *arguments):
        calls.append(step)
        if not left:
            return real(self, *arguments)
        if done:
            real(self, *arguments)
        raise left.pop(0)

    monkeypatch.setattr(type(worker.compactions), step, called)
    return calls


LOST = OutcomeUnknownError("the connection was lost while the change was being committed")
AWAY = UnavailableError("the database does not answer, try again")


@pytest.mark.parametrize(("errors", "done", "commits"), [
    ([AWAY, AWAY], False, 3), ([LOST], False, 2), ([LOST, AWAY, LOST], False, 4), ([LOST], True, 1)],
    ids=["busy", "lost, not done", "lost, busy, lost", "lost, done"])
def test_the_end_is_tried_again_and_a_lost_answer_asked_for(lake, monkeypatch, errors, done, commits):
    """A job of hours is not thrown away for one statement."""
    lake.table()
    lake.insert(times=2)
    asked = lake.request()
    worker = lake.worker()
    calls = failing(worker, monkeypatch, "complete", *errors, done=done)

    assert worker.tick().outcome is WorkOutcome.COMPACTED
    assert len(calls) == commits
    assert lake.state(asked.id) == "ready_for_cleaning"
    assert f"base_0000002_v{lake.one(asked.id).txn_id:07d}" in lake.directories()


def test_a_commit_that_nobody_can_be_asked_about_removes_nothing(new_lake, monkeypatch):
    """The lease is over, and it may have been done: it was."""
    lake = new_lake(worker_lease=timedelta(0))
    lake.table()
    lake.insert(times=2)
    asked = lake.request()
    worker = lake.worker()
    failing(worker, monkeypatch, "complete", LOST, done=True)

    assert worker.tick().outcome is WorkOutcome.LOST
    assert lake.state(asked.id) == "ready_for_cleaning"
    assert f"base_0000002_v{lake.one(asked.id).txn_id:07d}" in lake.directories()


def test_an_absent_database_is_no_failure_of_the_compaction(new_lake, monkeypatch):
    lake = new_lake(worker_lease=timedelta(0))
    lake.table()
    lake.insert(times=2)
    asked = lake.request()
    worker = lake.worker()
    failing(worker, monkeypatch, "complete", AWAY)

    assert worker.tick().outcome is WorkOutcome.RELEASED
    assert lake.state(asked.id) == "initiated"
    assert len(lake.directories()) == 2


def test_results_that_cannot_be_listed_for_a_moment(lake, monkeypatch):
    lake.table()
    lake.insert(times=2)
    asked = lake.request()
    listing, left = type(lake.files).listing, []

    def once_in_the_way(self, location):
        if left:
            raise left.pop()
        return listing(self, location)

    monkeypatch.setattr(type(lake.files), "listing", once_in_the_way)
    runner = FakeRunner(lake.files, during=lambda *_: left.append(OSError("slow down")))

    assert lake.worker(runner).tick().outcome is WorkOutcome.COMPACTED
    assert lake.state(asked.id) == "ready_for_cleaning"


@pytest.mark.parametrize("error", [LOST, AWAY])
def test_a_heartbeat_without_an_answer_ends_no_job(new_lake, monkeypatch, error):
    lake = new_lake(worker_lease=timedelta(seconds=100))
    lake.table()
    lake.insert(times=2)
    lake.request()
    now = [0.0]
    monkeypatch.setattr("metastore.loops.worker.perf_counter", lambda: now[0])

    def long_run(_, pulse):
        for _ in range(3):
            now[0] += 30
            pulse()

    worker = lake.worker(FakeRunner(lake.files, during=long_run))
    calls = failing(worker, monkeypatch, "heartbeat", error)

    assert worker.tick().outcome is WorkOutcome.COMPACTED
    assert len(calls) == 3


def test_a_job_whose_id_cannot_be_noted_is_done_all_the_same(lake, monkeypatch):
    class Named(FakeRunner):
        def run(self, spec, pulse):
            from metastore.compaction.working.job_specification import CompactionJobResult

            return super().run(spec, pulse)._replace(result=CompactionJobResult(("base_2",), 2, 2, "app-1"))

    lake.table()
    lake.insert(times=2)
    lake.request()
    worker = lake.worker(Named(lake.files))
    failing(worker, monkeypatch, "heartbeat", AWAY)

    assert worker.tick().outcome is WorkOutcome.COMPACTED


def test_who_works_and_how_far_it_is_is_shown_with_the_heartbeats(lake, monkeypatch):
    """At once when the job has a name, then no more often than the lease is renewed, and at the end."""
    from metastore.compaction.working.job_specification import CompactionJobResult, JobProgress

    seen, ticks = [], iter(range(100))

    def works(spec, pulse):
        pulse()
        for rows in (10, 20, 30):
            pulse(JobProgress("app-1", "http://driver:4040", 0, 2, rows, 100))
            seen.append(lake.one(spec.compaction_id))

    class Named(FakeRunner):
        def run(self, spec, pulse):
            return super().run(spec, pulse)._replace(result=CompactionJobResult(("base_2",), 50, 40, "app-1"))

    lake.table()
    lake.insert(times=2)
    asked = lake.request()
    monkeypatch.setattr(loops_worker, "perf_counter", lambda: 12.0 * next(ticks))  # some looks at the clock a quarter lease
    worker = lake.worker(Named(lake.files, during=works))
    beats = failing(worker, monkeypatch, "heartbeat")
    assert worker.tick().outcome is WorkOutcome.COMPACTED

    assert [request.hadoop_job_id for request in seen] == ["app-1"] * 3
    assert [request.meta_info for request in seen] == [
        f"{percent} %, 0 of 2 stages done, {percent} rows taken in, http://driver:4040" for percent in (10, 10, 30)]
    assert lake.one(asked.id).meta_info == "50 rows read, 40 written, http://driver:4040"
    assert len(beats) == 3


def test_a_crash_before_the_commit_never_looks_like_a_success(lake, monkeypatch, test_clock):
    """COMP-W35: the lease runs out, the transaction is aborted, somebody else starts anew; the leftovers are removed."""
    lake.table()
    lake.insert(times=3)
    asked = lake.request()

    def crash(*_):
        raise SystemExit

    worker = lake.worker()
    with monkeypatch.context() as patched:
        patched.setattr(type(worker.compactions), "complete", crash)
        with pytest.raises(SystemExit):
            worker.tick()
    dead = lake.one(asked.id)
    assert dead.state == "working"
    assert f"base_0000003_v{dead.txn_id:07d}" in lake.directories()

    test_clock.advance(timedelta(minutes=3))
    assert len(lake.initiator().tick().revoked) == 1
    assert lake.t.state(dead.txn_id) == "aborted"
    assert lake.worker().tick().outcome is WorkOutcome.COMPACTED
    lake.cleaner().tick()

    assert lake.directories() == [f"base_0000003_v{lake.one(asked.id).txn_id:07d}"]
    assert lake.state(asked.id) == "succeeded"


def dies(lake, test_clock):
    """Claim as a Worker that is never heard of again, revoke the claim, and return the compaction's id."""
    [claimed] = [WorkerService(lake.db, lake.settings).claim("host-9", "v", None)]
    test_clock.advance(timedelta(minutes=3))
    assert len(lake.initiator().compactions.revoke_dead_claims()) == 1
    return claimed.id


def test_a_compaction_that_ends_its_workers_fails(lake, test_clock):
    """What gives it back, or is stopped, is no death."""
    lake.table()
    lake.insert(times=2)
    asked = lake.request()
    for death in range(1, 6):
        assert lake.state(asked.id) == "initiated", death
        assert dies(lake, test_clock) == asked.id
        if death < 5:
            WorkerService(lake.db, lake.settings).release(
                WorkerService(lake.db, lake.settings).claim("host-1", "v", None), "later", timedelta(0))

    ended = lake.one(asked.id)
    assert ended.state == "failed"
    assert ended.error_message.startswith("Its Worker died 5 times, the last time so: worker host-9 gave no sign of life for 18")


def test_a_worker_that_died_does_not_count_against_the_cleaner(lake, test_clock):
    lake.table()
    lake.insert(times=2)
    asked = lake.request()
    dies(lake, test_clock)
    assert lake.one(asked.id).failures == 1

    assert lake.worker().tick().outcome is WorkOutcome.COMPACTED
    assert lake.one(asked.id).failures == 0
    assert lake.outcomes() == ["cleaned"]


def test_a_claim_that_cannot_be_made_marks_nothing(lake, monkeypatch):
    """COMP-W25."""
    lake.table()
    lake.insert(times=3)
    asked = lake.request()
    worker = lake.worker()
    failing(worker, monkeypatch, "claim", AWAY)

    with pytest.raises(UnavailableError):
        worker.tick()
    assert lake.state(asked.id) == "initiated"
