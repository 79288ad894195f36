"""The Worker's decisions and ways out (COMP-12 to COMP-16)."""

import json
from datetime import timedelta

import pytest

from metastore.acid.names import DeltaName
from metastore.acid.state import acid_state
from metastore.locks.rules import LockType
from metastore.locks.rules import Operation as LockOperation
from metastore.loops.worker import WorkOutcome
from metastore.txns.core.rules import Operation, TxnType, reader_snapshot
from tests.support.lake import FakeRunner

HOUR = timedelta(hours=1)


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

    report, minor = lake.work(kind="minor", runner=runner)
    assert report.outcome is WorkOutcome.COMPACTED
    assert f"delta_0000021_0000023_v{minor.txn_id:07d}" in lake.directories()
    assert minor.state == "ready_for_cleaning"
    assert minor.highest_write_id == 23
    assert lake.t.state(minor.txn_id) in ("committed", None)
    [spec] = runner.specs
    assert (spec.kind, spec.location, spec.attempt) == ("minor", f"file://{lake.path('t')}", 1)
    assert spec.write_ids.startswith("d.t:23:")
    lake.insert()
    _, major = lake.work()
    assert f"base_0000024_v{major.txn_id:07d}" in lake.directories()


def test_all_deltas_are_one_job(new_lake):
    """COMP-W33: Hive's compactor would do 1,100 deltas in two jobs of 500, and a third one for what these wrote."""
    lake = new_lake(max_num_delta=7)
    lake.table()
    lake.put("d.t", *[str(DeltaName(number, number, 0)) for number in range(1, 1101)])
    lake.seed(1100)
    runner = FakeRunner(lake.files)

    report, request = lake.work(kind="minor", runner=runner)

    assert report.outcome is WorkOutcome.COMPACTED
    assert [(spec.kind, spec.highest_write_id, spec.max_num_delta) for spec in runner.specs] == [("minor", 1100, 7)]
    assert [delta.path for delta in lake.state_of().deltas] == [f"delta_0000001_0001100_v{request.txn_id:07d}"]


@pytest.mark.parametrize(("kind", "written"), [("minor", "delta_0000001_0000003"), ("major", "base_0000003")])
def test_deltas_without_a_base(lake, kind, written):
    """COMP-W03."""
    lake.table()
    lake.insert(times=3)

    report, request = lake.work(kind=kind)

    assert report.outcome is WorkOutcome.COMPACTED
    assert f"{written}_v{request.txn_id:07d}" in lake.directories()


def test_who_has_asked_and_who_works_may_be_of_other_releases(lake):
    """COMP-W37: both are shown. COMP-W20: a number of buckets is for rebalances only, and changes nothing here."""
    lake.table()
    lake.insert(times=3)
    runner = FakeRunner(lake.files)

    report, request = lake.work(runner=runner, initiator_version="4.0.1", number_of_buckets=7)

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
    _, request = lake.work()

    def chosen(write_ids, txns):
        state = acid_state(lake.files.listing(f"file://{lake.path('t')}"), write_ids, txns, lambda _: "")
        return [directory.path for directory in (*((state.base,) if state.base else ()), *state.deltas)]

    assert chosen(*before) == [str(DeltaName(number, number, 0)) for number in (1, 2, 3)]
    lake.t.commit(reader)
    after = reader_snapshot(lake.t.txns.get_open_txns())
    assert chosen(lake.t.reads("d.t", after.format()), after) == [f"base_0000003_v{request.txn_id:07d}"]


def test_the_compactions_own_transaction_is_open_in_its_snapshot(lake):
    """HIVE-29567: else the job would take its own output for input."""
    from metastore.acid.snapshots import ValidTxnList

    lake.table()
    lake.insert(times=2)
    runner = FakeRunner(lake.files)
    _, request = lake.work(runner=runner)

    assert not ValidTxnList.parse(runner.specs[0].txns).is_valid(request.txn_id)


def test_compaction_stops_below_an_open_write_id(lake):
    """COMP-W07, COMP-W08."""
    lake.table()
    lake.insert(times=2)
    lake.begin()
    lake.insert(times=2)

    _, request = lake.work()
    assert request.highest_write_id == 2
    assert f"base_0000002_v{request.txn_id:07d}" in lake.directories()


@pytest.mark.parametrize(("kind", "deltas"), [("major", 1), ("minor", 1), ("minor", 0)])
def test_too_little_is_refused(lake, kind, deltas):
    """COMP-W10, COMP-W12."""
    lake.table()
    lake.insert(times=deltas)

    report, request = lake.work(kind=kind)

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

    report, request = lake.work(runner=runner)

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

    assert "insert-only" in lake.work(kind="minor")[0].reason


@pytest.mark.parametrize("sd", [
    {"inputFormat": "evil.Input", "outputFormat": "evil.Output", "serdeInfo": {"serializationLib": "evil.SerDe"}},
    {"serdeInfo": {"parameters": {"avro.schema.url": "http://h/s"}}}])
def test_classes_and_urls_of_a_definition_reach_no_job(lake, sd):
    """Tables of before the server refused them, and of an upstream, which does not."""
    lake.table(sd=sd, transactional_properties="insert_only")
    lake.insert(times=3)
    runner = FakeRunner(lake.files)
    report, _ = lake.work(runner=runner)
    assert report.outcome is WorkOutcome.REFUSED
    assert "insert-only table cannot" in report.reason

    lake.table("p", keys=["x"], transactional_properties="insert_only")
    lake.partition("x=1", "p")
    lake.insert("d.p/x=1", times=3)
    lake.db.once("INSERT INTO partition_descriptors (table_id, digest, sd) SELECT id, 'd', %s FROM tables WHERE name = 'p'", [json.dumps(sd)])
    lake.db.once("UPDATE partitions SET digest = 'd'")
    assert lake.work("d.p/x=1", runner=runner)[0].outcome is WorkOutcome.REFUSED
    assert runner.specs == []


def test_rebalance(lake):
    """COMP-W17, COMP-W19."""
    lake.table("b", sd={"bucketCols": ["a"]})
    assert "is bucketed" in lake.work("d.b", "rebalance")[0].reason

    lake.table()
    lake.insert(times=2)
    writer, _ = lake.begin(operation=Operation.UPDATE)
    report, request = lake.work(kind="rebalance")
    assert report.outcome is WorkOutcome.FAILED
    assert "lock" in request.error_message
    lake.t.commit(writer)
    runner = FakeRunner(lake.files)
    report, request = lake.work(kind="rebalance", runner=runner, number_of_buckets=4, order_by="a")
    assert report.outcome is WorkOutcome.COMPACTED
    assert (runner.specs[0].number_of_buckets, runner.specs[0].order_by) == (4, "a")


def test_an_exclusive_lock_only_postpones(lake, test_clock):
    lake.table()
    lake.insert(times=3)
    holder = lake.t.open()
    lake.t.lock(holder, "d.t", LockOperation.NO_TXN, LockType.EXCLUSIVE)

    report, request = lake.work()
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
    lake.work(runner=runner, properties={"compactor.spark.executor.memory": "3g", "tblprops.orc.compress.size": "3"})

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


def test_a_commit_leaves_no_locks_and_no_components(lake):
    lake.table()
    lake.insert(times=2)
    lake.work()

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
