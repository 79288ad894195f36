"""The Worker's decisions and ways out (COMP-12 to COMP-16)."""

import json
from datetime import timedelta

import pytest

from metastore.acid.names import DeltaName
from metastore.acid.state import acid_state
from metastore.errors import OutcomeUnknownError, UnavailableError
from metastore.locks.rules import LockType
from metastore.locks.rules import Operation as LockOperation
from metastore.loops import worker as loops_worker
from metastore.loops.job_process import JobLivesError
from metastore.loops.worker import WorkOutcome
from metastore.txns.core.rules import Operation, TxnType, reader_snapshot
from tests.support.lake import FakeRunner

HOUR = timedelta(hours=1)


def work(lake, what="d.t", kind="major", runner=None, **request):
    asked = lake.request(kind, what, **request)
    return lake.worker(runner).tick(), lake.one(asked.id)


def test_nothing_queued(lake):
    """COMP-W01."""
    assert lake.worker().tick().outcome is WorkOutcome.IDLE


def test_minor_and_major_of_a_table_with_a_base(lake):
    """COMP-W02, COMP-W04."""
    lake.table()
    lake.put("d.t", "base_0000020")
    lake.seed(20)
    lake.insert(times=3)
    runner = FakeRunner(lake.files)

    report, minor = work(lake, kind="minor", runner=runner)
    assert report.outcome is WorkOutcome.COMPACTED
    assert f"delta_0000021_0000023_v{minor.txn_id:07d}" in lake.directories()
    assert minor.state == "ready_for_cleaning"
    assert minor.highest_write_id == 23
    assert lake.t.state(minor.txn_id) in ("committed", None)
    [spec] = runner.specs
    assert (spec.kind, spec.location, spec.attempt) == ("minor", f"file://{lake.path('t')}", 1)
    assert spec.write_ids.startswith("d.t:23:")
    lake.insert()
    _, major = work(lake)
    assert f"base_0000024_v{major.txn_id:07d}" in lake.directories()


def test_all_deltas_are_one_job(new_lake):
    """COMP-W33: Hive's compactor would do 1,100 deltas in two jobs of 500, and a third one for what these wrote."""
    lake = new_lake(max_num_delta=7)
    lake.table()
    lake.put("d.t", *[str(DeltaName(number, number, 0)) for number in range(1, 1101)])
    lake.seed(1100)
    runner = FakeRunner(lake.files)

    report, request = work(lake, kind="minor", runner=runner)

    assert report.outcome is WorkOutcome.COMPACTED
    assert [(spec.kind, spec.highest_write_id, spec.max_num_delta) for spec in runner.specs] == [("minor", 1100, 7)]
    assert [delta.path for delta in lake.state_of().deltas] == [f"delta_0000001_0001100_v{request.txn_id:07d}"]


@pytest.mark.parametrize(("kind", "written"), [("minor", "delta_0000001_0000003"), ("major", "base_0000003")])
def test_deltas_without_a_base(lake, kind, written):
    """COMP-W03."""
    lake.table()
    lake.insert(times=3)

    report, request = work(lake, kind=kind)

    assert report.outcome is WorkOutcome.COMPACTED
    assert f"{written}_v{request.txn_id:07d}" in lake.directories()


def test_who_has_asked_and_who_works_may_be_of_other_releases(lake):
    """COMP-W37: both are shown. COMP-W20: a number of buckets is for rebalances only, and changes nothing here."""
    lake.table()
    lake.insert(times=3)
    runner = FakeRunner(lake.files)

    report, request = work(lake, runner=runner, initiator_version="4.0.1", number_of_buckets=7)

    assert report.outcome is WorkOutcome.COMPACTED
    assert (request.initiator_version, lake.worker().version) == ("4.0.1", "test")
    assert request.worker_version == "test"
    assert runner.specs[0].kind == "major"


def test_readers_from_before_and_after_read_the_same_from_other_directories(lake):
    """COMP-W30."""
    lake.table()
    lake.insert(times=3)
    reader = lake.t.open()
    before = lake.t.reads("d.t", reader_snapshot(lake.t.txns.get_open_txns()).format()), reader_snapshot(
        lake.t.txns.get_open_txns())
    _, request = work(lake)

    def chosen(write_ids, txns):
        state = acid_state(lake.files.listing(f"file://{lake.path('t')}"), write_ids, txns, lambda _: "")
        return [directory.path for directory in (*((state.base,) if state.base else ()), *state.deltas)]

    assert chosen(*before) == [str(DeltaName(number, number, 0)) for number in (1, 2, 3)]
    lake.t.commit(reader)
    after = reader_snapshot(lake.t.txns.get_open_txns())
    assert chosen(lake.t.reads("d.t", after.format()), after) == [f"base_0000003_v{request.txn_id:07d}"]


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


def test_the_compactions_own_transaction_is_open_in_its_snapshot(lake):
    """HIVE-29567: else the job would take its own output for input."""
    from metastore.acid.snapshots import ValidTxnList

    lake.table()
    lake.insert(times=2)
    runner = FakeRunner(lake.files)
    _, request = work(lake, runner=runner)

    assert not ValidTxnList.parse(runner.specs[0].txns).is_valid(request.txn_id)


def test_compaction_stops_below_an_open_write_id(lake):
    """COMP-W07, COMP-W08."""
    lake.table()
    lake.insert(times=2)
    lake.begin()
    lake.insert(times=2)

    _, request = work(lake)
    assert request.highest_write_id == 2
    assert f"base_0000002_v{request.txn_id:07d}" in lake.directories()


@pytest.mark.parametrize(("kind", "deltas"), [("major", 1), ("minor", 1), ("minor", 0)])
def test_too_little_is_refused(lake, kind, deltas):
    """COMP-W10, COMP-W12."""
    lake.table()
    lake.insert(times=deltas)

    report, request = work(lake, kind=kind)

    assert report.outcome is WorkOutcome.REFUSED
    assert request.state == "refused"
    assert request.error_message.startswith("None of the compaction thresholds met")
    assert lake.t.count("txn_components") == 0
    assert lake.t.state(request.txn_id) in ("aborted", None)


def test_only_aborted_deltas_are_handed_to_the_cleaner_without_a_job(lake):
    """COMP-W13."""
    lake.table()
    lake.put("d.t", "base_0000020")
    lake.seed(20)
    lake.abort(times=2)
    runner = FakeRunner(lake.files)

    report, request = work(lake, runner=runner)

    assert report.outcome is WorkOutcome.NOTHING_TO_COMPACT
    assert runner.specs == []
    assert request.state == "ready_for_cleaning"
    assert [one.outcome for one in lake.cleaner().tick()] == ["cleaned"]
    assert lake.directories() == ["base_0000020"]
    assert lake.t.rows("SELECT * FROM txn_components") == []


@pytest.mark.parametrize(("change", "outcome", "message"), [
    (lambda lake: lake.drop(), "refused", "does not exist"),                                              # COMP-W15
    (lambda lake: sd(lake, sortCols=[{"col": "a", "order": 1}]), "refused", "sorted"),                    # COMP-W14
    (lambda lake: lake.parameters(transactional="false"), "failed", "not transactional"),
])
def test_tables_that_cannot_be_compacted(lake, change, outcome, message):
    """Any more: when it was asked for, it could be."""
    lake.table()
    lake.insert(times=3)
    asked = lake.request()
    change(lake)

    report = lake.worker().tick()
    request = lake.one(asked.id)

    assert (report.outcome, request.state) == (outcome, outcome)
    assert message in request.error_message
    assert len(lake.directories()) == 3


def sd(lake, **fields):
    lake.db.once("UPDATE tables SET sd = %s", [json.dumps(fields)])


def test_a_dropped_partition(lake):
    lake.table("p", keys=["x"])
    lake.partition("x=1", "p")
    lake.request("major", "d.p/x=1")
    lake.db.once("DELETE FROM partitions")
    report = lake.worker().tick()

    assert (report.outcome, report.reason) == ("refused", "Partition d.p/x=1 does not exist (any more)")


def test_insert_only_tables_can_be_switched_off(new_lake):
    """COMP-W16."""
    lake = new_lake(compact_insert_only=False)
    lake.table(transactional_properties="insert_only")
    lake.insert(times=3)

    assert "insert-only" in work(lake, kind="minor")[0].reason


def test_rebalance(lake):
    """COMP-W17, COMP-W19."""
    lake.table("b", sd={"bucketCols": ["a"]})
    assert "is bucketed" in work(lake, "d.b", "rebalance")[0].reason

    lake.table()
    lake.insert(times=2)
    writer, _ = lake.begin(operation=Operation.UPDATE)
    report, request = work(lake, kind="rebalance")
    assert report.outcome is WorkOutcome.FAILED
    assert "lock" in request.error_message
    lake.t.commit(writer)
    runner = FakeRunner(lake.files)
    report, request = work(lake, kind="rebalance", runner=runner, number_of_buckets=4, order_by="a")
    assert report.outcome is WorkOutcome.COMPACTED
    assert (runner.specs[0].number_of_buckets, runner.specs[0].order_by) == (4, "a")


def test_an_exclusive_lock_only_postpones(lake, test_clock):
    lake.table()
    lake.insert(times=3)
    holder = lake.t.open()
    lake.t.lock(holder, "d.t", LockOperation.NO_TXN, LockType.EXCLUSIVE)

    report, request = work(lake)
    assert report.outcome is WorkOutcome.RELEASED
    assert request.state == "initiated"
    assert "lock on d.t is not free" in request.error_message
    assert lake.worker().tick().outcome is WorkOutcome.IDLE
    lake.t.commit(holder)
    test_clock.advance(timedelta(minutes=2))
    assert lake.worker().tick().outcome is WorkOutcome.COMPACTED


def test_properties_of_the_table_and_the_request(lake):
    """COMP-W31."""
    lake.table(**{"compactor.spark.executor.memory": "1g", "orc.compress": "ZLIB", "comment": "x"})
    lake.insert(times=2)
    runner = FakeRunner(lake.files)
    work(lake, runner=runner, properties={"compactor.spark.executor.memory": "3g", "tblprops.orc.compress.size": "3"})

    assert runner.specs[0].properties == {
        "compactor.spark.executor.memory": "3g", "orc.compress": "ZLIB", "orc.compress.size": "3"}


@pytest.mark.parametrize("where", ["table", "request"])
def test_what_must_not_reach_a_job_is_refused_again(lake, where):
    """It was there before it was refused where it is set."""
    lake.table(**({"compactor.spark.jars": "/tmp/evil.jar"} if where == "table" else {}))
    lake.insert(times=2)
    asked = lake.request()
    if where == "request":
        lake.db.once("UPDATE compaction_queue SET properties = %s", [json.dumps({"compactor.spark.extraListeners": "Evil"})])
    runner = FakeRunner(lake.files)

    assert lake.worker(runner).tick().outcome is WorkOutcome.REFUSED
    assert "must not reach a compaction's job" in lake.one(asked.id).error_message
    assert runner.specs == []


def test_a_job_that_may_still_write_is_not_forgotten(lake):
    """It was killed and is still there: its transaction stays in the lists."""
    def stuck(spec, pulse):
        raise JobLivesError("in the middle of a write")

    lake.table()
    lake.insert(times=2)
    report, request = work(lake, runner=FakeRunner(lake.files, during=stuck))

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
    report, request = work(lake, runner=FakeRunner(lake.files, during=killed))

    assert report.outcome is WorkOutcome.FAILED
    assert lake.directories() == [
        f".acid_stage_{request.txn_id + 1}_0", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]


def test_a_job_that_wrote_nothing_has_failed(lake):
    class Idle(FakeRunner):
        def run(self, spec, pulse):
            from metastore.loops.job import JobOutcome

            return JobOutcome(succeeded=True)

    lake.table()
    lake.insert(times=2)
    report, _ = work(lake, runner=Idle(lake.files))

    assert report.outcome is WorkOutcome.FAILED
    assert "left nothing" in report.reason


def test_what_cannot_be_proven_fails_the_request_and_changes_nothing(lake):
    """The outputs stay under their hidden name; the metric tells it from other failures."""
    class Wrong(FakeRunner):
        def run(self, spec, pulse):
            from metastore.compaction.working.job import CompactionJobResult
            from metastore.loops.job import JobOutcome

            place = self.files_path(spec.location) / f".unproven_{spec.txn_id:07d}" / "base_0000002"
            place.mkdir(parents=True)
            return JobOutcome(succeeded=False, message="Bucket 0: of 2 insert events 1 were written",
                              result=CompactionJobResult(differences=("Bucket 0: of 2 insert events 1 were written",)))

    lake.table()
    lake.insert(times=2)
    report, request = work(lake, runner=Wrong(lake.files))

    assert (report.outcome, report.is_failure, report.step) == (WorkOutcome.UNPROVEN, True, "compaction_proof")
    assert (request.state, request.error_message) == ("failed", "Bucket 0: of 2 insert events 1 were written")
    assert lake.t.state(request.txn_id) in ("aborted", None)
    assert lake.directories() == [f".unproven_{request.txn_id:07d}", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000"]


def test_a_transaction_aborted_during_the_run_voids_the_result(lake):
    """COMP-W27."""
    lake.table()
    lake.insert(times=2)
    report, request = work(lake, runner=FakeRunner(lake.files, during=lambda spec, _: lake.t.abort(spec.txn_id)))

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

    report, request = work(lake, runner=FakeRunner(lake.files, during=long_run))

    assert report.outcome is WorkOutcome.COMPACTED
    assert request.attempt == 1


def test_too_long_a_run_is_ended(new_lake):
    """COMP-W26."""
    lake = new_lake(worker_timeout=timedelta(0))
    lake.table()
    lake.insert(times=2)
    report, _ = work(lake, runner=FakeRunner(lake.files, during=lambda _, pulse: pulse()))

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
    """The first calls of a step of the Worker's service raise; ``done``: after they were done. Returns all calls."""
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
            from metastore.compaction.working.job import CompactionJobResult

            return super().run(spec, pulse)._replace(result=CompactionJobResult(("base_2",), 2, 2, "app-1"))

    lake.table()
    lake.insert(times=2)
    lake.request()
    worker = lake.worker(Named(lake.files))
    failing(worker, monkeypatch, "heartbeat", AWAY)

    assert worker.tick().outcome is WorkOutcome.COMPACTED


def test_who_works_and_how_far_it_is_is_shown_with_the_heartbeats(lake, monkeypatch):
    """At once when the job has a name, then no more often than the lease is renewed, and at the end."""
    from metastore.compaction.working.job import CompactionJobResult, JobProgress

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


def test_a_commit_leaves_no_locks_and_no_components(lake):
    lake.table()
    lake.insert(times=2)
    work(lake)

    assert lake.t.count("locks") == 0
    assert lake.t.count("txn_components") == 0
    assert lake.t.rows("SELECT count(*) FROM txns WHERE type = %s AND state = 'open'", TxnType.COMPACTION) == [(0,)]


def test_a_table_level_request_on_a_partitioned_table_runs_no_job(lake):
    lake.table("p", keys=["x"])
    lake.db.once("INSERT INTO compaction_queue (catalog, db, \"table\", state, type, enqueued_at)"
                 " VALUES ('hive', 'd', 'p', 'initiated', 'major', metastore_now())")
    runner = FakeRunner(lake.files)

    assert lake.worker(runner).tick().outcome is WorkOutcome.NOTHING_TO_COMPACT
    assert runner.specs == []
