"""Requests, claims, ends, history and SHOW COMPACTIONS on PostgreSQL (COMP-1 to COMP-7)."""

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from metastore.acid.snapshots import ValidWriteIdList
from metastore.compaction.cleaning import store as cleaning_store
from metastore.compaction.cleaning.rules import Covered
from metastore.compaction.cleaning.service import CleanerService, Cleaning
from metastore.compaction.initiating import service as initiator_service
from metastore.compaction.queue.rules.requests import Claim, CompactionState, CompactionType, Entity
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.queue.store import components
from metastore.compaction.queue.store import requests as queue
from metastore.compaction.queue.store.requests import NewRequest
from metastore.compaction.working.service import WorkerService, claim_of
from metastore.errors import ClaimLostError, InvalidOperationError, InvalidRequestError
from metastore.files import Files
from metastore.locks.rules import LockType, Operation
from tests.support.transactions import named, seconds

HOUR = timedelta(hours=1)


def entity(what="d.t"):
    table, _, partition = what.partition("/")
    return Entity(named(table), partition)


def claim(lake, worker="host-1", pool=None):
    return lake.service.find_next_compact2(worker, "v", pool)


def of(claimed):
    return Claim(claimed.id, claimed.worker_id, claimed.attempt)


def finish(lake, claimed, mark=5):
    """Finish a compaction as a remote worker does: its transaction commits right after mark_compacted."""
    from metastore.txns.core.rules import TxnType

    txn_id = lake.t.open(kind=TxnType.COMPACTION)
    lake.service.update_compactor_state(of(claimed), mark, "ann", txn_id)
    lake.service.mark_compacted(of(claimed))
    lake.t.commit(txn_id)
    return txn_id


def clean(lake, request_id, keep=()):
    """Finish a cleaning as the Cleaner does once the files are gone."""
    with lake.db.begin() as pg:
        request = queue.select_queued(pg, request_id)
        txns = components.select_lists(pg, request.entity.table).txns
    cleaning = Cleaning(request, None, ValidWriteIdList("d.t", 0), txns)
    assert CleanerService(lake.db, lake.settings).clean(cleaning, keep, Covered()) is not None


def test_ids_grow(lake):
    """COMP-Q01, COMP-Q04."""
    ids = [lake.request("major", what).id for what in ("d.a", "d.b", "d.p/x=1", "d.p/x=2")]

    assert ids == sorted(set(ids))


def test_settings_of_orc_for_another_format_are_not_taken_in_silence(lake):
    lake.table("text", sd={"inputFormat": "org.apache.hadoop.mapred.TextInputFormat"})
    lake.table("orc", sd={"inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"})
    settings = {"tblprops.orc.compress": "ZLIB"}

    with pytest.raises(InvalidRequestError, match="'tblprops.orc.compress' would have no effect: the table is not stored as ORC"):
        lake.request(what="d.text", properties=settings)
    assert lake.request(what="d.orc", properties=settings).accepted
    assert lake.request(what="d.text").accepted


def test_a_repeated_request_is_refused_and_names_the_other(lake):
    """COMP-Q02, COMP-Q03."""
    first = lake.request()
    again = lake.request("minor")
    assert (again.accepted, again.id, again.state, again.existing.id) == (False, -1, "refused", first.id)
    assert again.message == f"Compaction is already scheduled with state='initiated' and id={first.id}"

    claimed = claim(lake)
    assert lake.request().message.endswith(f"state='working' and id={first.id}")

    lake.t.write_ids.seed_write_id(named("d.t"), 5)
    finish(lake, claimed)
    assert lake.request().message.endswith(f"state='ready for cleaning' and id={first.id}")
    assert len(lake.shown()) == 1

    lake.t.commit(lake.t.write("d.t"))
    assert lake.request().accepted


def test_a_request_without_a_partition_means_each_written_one(lake):
    """COMP-Q29, better than Hive's: the kind asked for is kept, and one refusal does not hide the others."""
    lake.table("p", keys=["x"])
    for number in (1, 2, 3):
        lake.partition(f"x={number}", "p")
    assert "name a partition" in lake.request("major", "d.p").message

    lake.insert("d.p/x=1")
    lake.insert("d.p/x=2")
    other = lake.request("minor", "d.p/x=2")
    result = lake.request("major", "d.p")

    assert result.accepted
    assert "x=2: Compaction is already scheduled" in result.message
    assert {(one.entity.partition, one.type.value) for one in lake.shown()} == {("x=1", "major"), ("x=2", "minor")}
    assert lake.one(other.id).entity.partition == "x=2"


def test_claims(lake):
    """COMP-Q05, COMP-Q06, COMP-Q07."""
    assert claim(lake) is None
    first, second = lake.request("major", "d.a").id, lake.request("major", "d.b").id

    claimed = [claim(lake, "host-1"), claim(lake, "host-2"), claim(lake, "host-3")]

    assert [one and one.id for one in claimed] == [first, second, None]
    shown = lake.one(first)
    assert (shown.state, shown.worker_id, shown.worker_version) == ("working", "host-1", "v")
    assert shown.started_at is not None


def test_the_backlog_is_what_our_workers_may_claim_and_what_they_work_on(lake, test_clock):
    for number, pool in enumerate(["p1", "p1", None, "", None]):
        lake.request("major", f"d.t{number}", pool=pool)
    of_p1 = CompactionService(lake.db, replace(lake.settings, worker_pools=("p1",)))
    assert (lake.service.backlog(), of_p1.backlog()) == ((3, 0), (2, 0))

    claimed = WorkerService(lake.db, lake.settings).claim("host-1", "v", None)
    claim(lake, "a worker of Hive's")
    assert lake.service.backlog() == (1, 1)

    WorkerService(lake.db, lake.settings).release(claimed, "later", HOUR)
    assert lake.service.backlog() == (1, 0)
    test_clock.advance(13 * HOUR)  # what other pools left too long is everybody's
    assert (lake.service.backlog(), of_p1.backlog()) == ((4, 0), (2, 0))


def test_the_workers_wanted_are_those_of_its_pools_and_no_more_than_their_limits(lake, test_clock):
    for number in range(8):
        lake.request("major", f"d.t{number}", pool="p1" if number else None)
    worker = WorkerService(lake.db, lake.settings)
    claimed = [worker.claim("host-1", "v", pool) for pool in (None, "p1")]
    test_clock.advance(HOUR / 2)
    for one in claimed:
        worker.fail(claim_of(one), "x")

    def wanted(pools, **limits):
        return CompactionService(lake.db, replace(lake.settings, worker_pools=pools, pool_limits=tuple(limits.items()))).workers_wanted()

    # Half an hour each: of p1 seven arrived within the hour, and six wait to be done within one.
    assert (wanted(("default",)), wanted(("p1",)), wanted(("p1", "default"))) == (1, 7, 8)
    assert wanted(("p1",), p1=3) == 3


def test_concurrent_claimers_never_share_one(lake):
    wanted = {lake.request("major", f"d.t{number}").id for number in range(20)}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: claim(lake, f"host-{number}"), range(40)))

    ids = [one.id for one in found if one]
    assert sorted(ids) == sorted(wanted)


def test_concurrent_requests_of_one_table_end_in_one(lake):
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: lake.request(), range(16)))

    assert sum(one.accepted for one in results) == 1
    assert len(lake.shown()) == 1


def test_pools(lake, test_clock):
    """COMP-Q08, COMP-Q09."""
    for number, pool in enumerate(["p1", "p2", None, ""]):
        lake.request("major", f"d.t{number}", pool=pool)

    assert claim(lake, pool="p1").pool == "p1"
    assert claim(lake, pool="p1") is None
    assert [claim(lake).pool for _ in range(2)] == [None, None]
    assert claim(lake) is None
    test_clock.advance(HOUR)
    assert claim(lake) is None
    test_clock.advance(HOUR * 12)
    assert claim(lake).pool == "p2"


def test_the_way_of_a_request_keeps_its_enqueue_time(lake, test_clock):
    """COMP-Q10, COMP-Q11, COMP-Q14."""
    request = lake.request()
    enqueued = lake.one(request.id).enqueued_at
    seen = []
    test_clock.advance(seconds(1))
    claimed = claim(lake)
    seen.append(lake.one(request.id))
    test_clock.advance(seconds(1))
    txn_id = finish(lake, claimed)
    seen.append(lake.one(request.id))
    assert claim(lake) is None
    test_clock.advance(seconds(1))
    clean(lake, request.id)
    seen.append(lake.one(request.id))

    assert [one.state.display for one in seen] == ["working", "ready for cleaning", "succeeded"]
    assert {one.enqueued_at for one in seen} == {enqueued}
    ended = seen[-1]
    assert (ended.worker_id, seen[1].worker_id) == (None, None)
    assert ended.started_at == seen[0].started_at
    assert ended.ended_at - enqueued >= seconds(3)
    assert (ended.highest_write_id, ended.txn_id, ended.next_txn_id) == (5, txn_id, txn_id)
    assert ended.committed_at is not None


def test_ends_that_come_too_late(lake):
    """COMP-Q12; only a queued request can end."""
    request = lake.request()
    claimed = claim(lake)
    lake.service.mark_failed(of(claimed), "no disk")

    assert lake.one(request.id).error_message == "no disk"
    for late in (lake.service.mark_failed, lake.service.mark_refused):
        with pytest.raises(InvalidOperationError, match=f"Compaction {request.id} is failed"):
            late(of(claimed), "again")
    with pytest.raises(InvalidOperationError, match=f"Compaction {request.id} is failed"):
        lake.service.mark_cleaned(of(claimed))
    with pytest.raises(InvalidOperationError, match="77"):
        lake.service.set_hadoop_jobid("job_1", 77)
    with pytest.raises(ClaimLostError, match="any more"):
        lake.service.mark_compacted(of(claimed))
    with pytest.raises(ClaimLostError):
        lake.service.update_compactor_state(of(claimed), 5, None, 9)


@pytest.mark.parametrize("stolen", [
    Claim(0, "host-1", 1), Claim(0, "host-2", 2), Claim(0, "host-2")], ids=["old attempt", "other name", "remote"])
def test_only_the_present_claim_writes(lake, test_clock, stolen):
    """The fence: worker id and attempt."""
    request = lake.request()
    assert claim(lake, "host-1").attempt == 1
    test_clock.advance(HOUR * 25)
    lake.initiator().tick()
    assert claim(lake, "host-1").attempt == 2

    with pytest.raises(ClaimLostError):
        lake.service.mark_compacted(stolen._replace(id=request.id))
    with pytest.raises(ClaimLostError):
        lake.service.mark_failed(stolen._replace(id=request.id), "x")
    assert lake.state(request.id) == "working"


def test_a_dead_remote_workers_claim_is_taken_back_with_its_transaction(lake):
    """A worker of Hive renews no lease, but its transaction dies with it."""
    request = lake.request()
    claimed = claim(lake)
    txn_id = lake.t.open()
    lake.service.update_compactor_state(of(claimed), 5, "ann", txn_id)
    assert lake.initiator().tick().revoked == []

    lake.t.abort(txn_id)
    [revoked] = lake.initiator().tick().revoked

    assert revoked.compaction.id == request.id
    shown = lake.one(request.id)
    assert (shown.state, shown.worker_id, shown.started_at, shown.txn_id) == ("initiated", None, None, None)
    assert f"transaction {txn_id}" in shown.error_message


def test_age_takes_back_the_older_claim_only(lake, test_clock):
    """COMP-Q16; COMP-I02, COMP-Q15: an Initiator that starts on the same host leaves a claim that lives."""
    older, younger = lake.request("major", "d.a").id, lake.request("major", "d.b").id
    claim(lake)
    test_clock.advance(HOUR * 20)
    claim(lake)
    test_clock.advance(HOUR * 5)

    assert [one.compaction.id for one in lake.initiator().tick().revoked] == [older]
    assert lake.state(younger) == "working"


def test_abort_compactions(lake):
    """COMP-Q25."""
    waiting, running = lake.request("major", "d.a").id, lake.request("major", "d.b").id
    lake.service.abort_compactions([])
    assert claim(lake).id == waiting
    waiting, running = running, waiting

    answers = {one.id: (one.status, one.message)
               for one in lake.service.abort_compactions([waiting, running, 99, waiting])}

    assert answers == {
        waiting: ("Success", "Successfully aborted compaction"),
        running: ("Error", "Error while aborting compaction as compaction is in state-working"),
        99: ("Error", "No Such Compaction Id Available")}
    assert lake.state(waiting) == "aborted"
    assert lake.one(waiting).error_message.startswith("Compaction Aborted by Abort")


def test_history_is_purged_by_the_settings(new_lake):
    """COMP-Q17, COMP-Q21."""
    lake = new_lake(history_succeeded=2, history_failed=2, history_refused=2, history_did_not_initiate=2)
    for state in ("succeeded", "failed", "did_not_initiate", "refused"):
        for number in range(3):
            write_history(lake, state, f"d.t/p={number % 1}")
    for _ in range(300):
        write_history(lake, "failed", "d.t/p=2")

    from metastore.loops.compaction_housekeeper import CompactionHousekeeper, HistoryReport

    assert CompactionHousekeeper(lake.initiator().compactions).tick() == HistoryReport(purged=4 + 298)
    assert len(lake.shown()) == 10


@pytest.mark.parametrize("page", [3, 4, 5, 7, 50])
def test_history_is_purged_page_by_page_as_it_would_be_at_once(new_lake, monkeypatch, page):
    """Entities that a page cuts in two, and one that fills several pages."""
    monkeypatch.setattr(initiator_service, "HISTORY_PAGE", page)
    lake = new_lake(history_succeeded=2, history_failed=0)
    for number, size in enumerate((1, 2, 3, 5, 2, 30, 1, 4, 3, 2)):
        for _ in range(size):
            write_history(lake, "succeeded", f"d.t/p={number}")

    assert lake.initiator().compactions.purge_history() == 1 + 3 + 28 + 2 + 1
    assert Counter(one.entity.partition for one in lake.shown()) == {
        f"p={number}": min(size, 2) for number, size in enumerate((1, 2, 3, 5, 2, 30, 1, 4, 3, 2))}
    assert lake.initiator().compactions.purge_history() == 0


def test_what_a_cleaning_forgets_goes_in_batches(lake, monkeypatch):
    """Committed and aborted writes, several batches of each; only then is the request done."""
    monkeypatch.setattr(cleaning_store, "BATCH", 5)
    for name in ("delete_completed", "select_aborted"):
        monkeypatch.setattr(cleaning_store, name, partial(getattr(cleaning_store, name), limit=5))
    with lake.db.begin() as pg:
        pg.sql("""INSERT INTO completed_txn_components
                  SELECT n, 'hive', 'd', 't', '', n, false, metastore_now() FROM generate_series(1, 23) AS n;
                  INSERT INTO txns (id, state, type, "user", host, started_at, last_heartbeat_at)
                  SELECT n, 'aborted', 0, 'a', 'h', metastore_now(), metastore_now() FROM generate_series(101, 117) AS n;
                  INSERT INTO txn_components SELECT n, 'hive', 'd', 't', '', 'i', n FROM generate_series(101, 117) AS n;
                  INSERT INTO compaction_queue (catalog, db, "table", partition, type, state, enqueued_at, highest_write_id)
                  VALUES ('hive', 'd', 't', '', 'major', 'ready_for_cleaning', metastore_now(), 115)
                  RETURNING id""", ())
    [(request_id,)] = lake.db.once("SELECT id FROM compaction_queue")

    clean(lake, request_id, keep=[103])

    assert lake.db.once("SELECT count(*) FROM completed_txn_components") == [(0,)]
    assert lake.db.once("SELECT txn_id FROM txn_components ORDER BY 1") == [(103,), (116,), (117,)]
    assert lake.state(request_id) == "succeeded"


def write_history(lake, state, what):
    from metastore.compaction.queue.store import requests as queue

    with lake.db.begin() as pg:
        return queue.insert_history(pg, NewRequest(entity(what), CompactionType.MINOR), CompactionState(state), None)


def test_the_latest_committed_compaction_of_each_partition(lake):
    """COMP-Q23."""
    old = write_history(lake, "succeeded", "d.t/p=1")
    new = write_history(lake, "succeeded", "d.t/p=1")
    other = write_history(lake, "succeeded", "d.t/p=2")
    write_history(lake, "failed", "d.t/p=3")
    latest = lake.service.get_latest_committed_compaction_info

    assert [one.id for one in latest(named("d.t"), None, None)] == [new, other]
    assert [one.id for one in latest(named("d.t"), ["p=1"], None)] == [new]
    assert [one.id for one in latest(named("d.t"), ["p=1"], old)] == [new]
    assert latest(named("d.t"), ["p=1", "p=3"], new) == []


def test_show_compactions_filters(lake):
    """COMP-Q24."""
    first = lake.request("major", "d.a", pool="p1").id
    second = lake.request("minor", "d.b/p=1").id
    third = write_history(lake, "failed", "e.a")
    ids = {"": {first, second, third}}

    def shown(**wanted):
        return {one.id for one in lake.shown(**wanted)}

    assert shown() == ids[""]
    assert shown(id=second) == {second}
    assert shown(db="d") == {first, second}
    assert shown(db="d", table="a") == {first}
    assert shown(partition="p=1") == {second}
    assert shown(pool="p1") == {first}
    assert shown(pool="default") == {second, third}
    assert shown(type=CompactionType.MAJOR) == {first}
    assert shown(state=CompactionState.FAILED) == {third}
    assert shown(catalog="spark") == set()


def test_show_compactions_order_and_limit(lake, test_clock):
    """What ended or started last comes behind what waits; then by the latest of end, start and commit."""
    waiting = [lake.request("major", f"d.w{number}").id for number in range(2)]
    ended = []
    for state in ("failed", "succeeded"):
        test_clock.advance(seconds(1))
        ended.append(write_history(lake, state, "d.t"))

    def shown(**wanted):
        return [one.id for one in lake.shown(**wanted)]

    assert shown() == [*waiting, *reversed(ended)]
    assert shown(limit=3) == [*waiting, ended[1]]
    assert shown(limit=0) == shown()
    assert shown(order=(("state", True), ("id", False))) == [ended[0], *reversed(waiting), ended[1]]


def test_a_soft_drop_waits_for_its_transaction(lake):
    from metastore.txns.core.rules import TxnType

    txn_id = lake.t.open(kind=TxnType.SOFT_DELETE)
    place = lake.path("gone.v7")
    place.mkdir(parents=True)
    lake.service.submit_for_cleanup(
        NewRequest(entity("d.gone"), CompactionType.MAJOR, {"location": place.as_uri()}), 0, txn_id)

    assert [one.outcome for one in lake.cleaner().tick()] == ["waiting"]
    assert place.exists()
    lake.t.commit(txn_id)
    assert [one.outcome for one in lake.cleaner().tick()] == ["cleaned"]
    assert not place.exists()


def test_what_a_create_table_as_that_failed_has_written_goes(lake):
    """Hive 4 hands its directory over while its transaction is open, and aborts it then."""
    txn_id = lake.t.open()
    place = lake.path("made")
    place.mkdir(parents=True)
    lake.service.submit_for_cleanup(
        NewRequest(entity("d.made"), CompactionType.MAJOR, {"location": f"file://{place}"}), 1, txn_id)

    assert [one.outcome for one in lake.cleaner().tick()] == ["waiting"]
    lake.t.abort(txn_id)
    assert [one.outcome for one in lake.cleaner().tick()] == ["waiting"], "who is open now may be older than its end"
    assert place.exists()
    assert [one.outcome for one in lake.cleaner().tick()] == ["cleaned"]
    assert not place.exists()


@pytest.mark.parametrize("held", [False, True], ids=["at rest", "in use"])
def test_what_was_left_behind_goes_though_the_name_is_somewhere_else_by_now(lake, held):
    """Made again, with a suffix of its own at its directory; what it holds stays, and so does what is known of it."""
    dropped(lake, "d.t", lake.path("t.v1"))
    lake.table("t")
    lake.insert(times=2)
    lake.abort()
    if held:
        lake.t.lock(lake.t.open(), "d.t", Operation.SELECT, LockType.SHARED_READ)
        lake.db.once("UPDATE compaction_queue SET next_txn_id = 0")

    assert [one.outcome for one in lake.cleaner().tick()] == ["cleaned"]
    assert not lake.path("t.v1").exists()
    assert len(lake.directories()) == 3
    assert lake.t.rows("SELECT write_id FROM completed_txn_components ORDER BY 1") == [(1,), (2,)]
    assert lake.t.rows("SELECT cleaned FROM txn_components") == [(False,)]
    assert {request.state for request in lake.shown()} == {"succeeded"}


def test_a_place_is_the_same_however_a_client_writes_it(lake):
    lake.table("kept", location=f"file:{lake.path('kept')}")
    dropped(lake, "d.kept", lake.path("kept"))

    assert [one.outcome for one in lake.cleaner().tick()] == ["refused"]
    assert lake.path("kept").exists()


def dropped(lake, what, place):
    """Commit a soft drop of a table or a partition."""
    from metastore.txns.core.rules import TxnType

    place.mkdir(parents=True, exist_ok=True)
    txn_id = lake.t.open(kind=TxnType.SOFT_DELETE)
    table, _, partition = what.partition("/")
    lake.service.submit_for_cleanup(NewRequest(entity(table)._replace(partition=partition), CompactionType.MAJOR,
                                               {"location": f"file://{place}"}), 0, txn_id)
    lake.t.commit(txn_id)


def test_the_files_of_a_dropped_table_go_to_a_replica_that_may_need_them(lake):
    """COMP-C25: its database is still there, it cannot be dropped while it is a source."""
    lake.db.once("UPDATE databases SET parameters = '{\"repl.source.for\": \"policy\"}' WHERE name = 'd'")
    place, root = lake.path("gone"), lake.folder / ".cmroot"
    dropped(lake, "d.gone", place)
    (place / "delta_0000001_0000001_0000").mkdir()
    (place / "delta_0000001_0000001_0000" / "bucket_00000").write_bytes(b"rows")

    assert [one.outcome for one in lake.cleaner(Files(cmroot=root.as_uri())).tick()] == ["cleaned"]
    assert not place.exists()
    assert [file.read_bytes() for file in root.iterdir()] == [b"rows"]


def test_a_dropped_partition_waits_for_who_writes_to_a_new_one_of_its_name(lake):
    """COMP-C24: his files lie there before the catalog knows of them."""
    lake.table("p", keys=["x"])
    dropped(lake, "d.p/x=1", lake.path("p") / "x=1")
    writer = lake.t.open()
    lake.t.lock(writer, "d.p", Operation.INSERT, LockType.SHARED_WRITE)

    [waiting] = lake.cleaner().tick()
    assert (waiting.outcome, waiting.reason) == ("waiting", "waiting for locks on d.p/x=1; see SHOW LOCKS")
    assert (lake.path("p") / "x=1").exists()
    assert lake.t.count("locks") == 1, "it does not stand in the queue"
    lake.t.abort(writer)
    assert [one.outcome for one in lake.cleaner().tick()] == ["cleaned"]
    assert not (lake.path("p") / "x=1").exists()
    assert (lake.t.count("locks"), lake.t.count("directory_changes")) == (0, 0)


def test_nobody_puts_a_partition_where_a_dropped_one_is_being_removed(lake, monkeypatch):
    """Between the look and the removal."""
    from metastore.catalog.service.moves import DirectoryMoves
    from metastore.db import failpoints
    from metastore.errors import UnavailableError

    lake.table("p", keys=["x"])
    place = lake.path("p") / "x=1"
    dropped(lake, "d.p/x=1", place)
    refused = []

    def add_partition(name):
        if name == "cleaner.before_drop":
            with pytest.raises(UnavailableError, match="is being moved, emptied or removed"), lake.db.begin() as pg:
                DirectoryMoves(lake.db, lake.files).require_free(pg, [f"file://{place}"])
            refused.append(name)

    with DirectoryMoves(lake.db, lake.files).held(f"file://{place}"):
        [waiting] = lake.cleaner().tick()
        assert (waiting.outcome, "nothing was changed" in waiting.reason) == ("waiting", True)
    monkeypatch.setattr(failpoints, "hit", add_partition)
    assert [one.outcome for one in lake.cleaner().tick()] == ["cleaned"]
    assert refused == ["cleaner.before_drop"]
    with lake.db.begin() as pg:
        DirectoryMoves(lake.db, lake.files).require_free(pg, [f"file://{place}"])


@pytest.mark.parametrize(("exists", "other", "left"), [(False, False, False), (True, False, True), (False, True, True)],
                         ids=["gone", "there", "not empty"])
def test_a_dropped_databases_directory_goes_when_it_is_empty(lake, exists, other, left):
    """COMP-C23."""
    place = lake.path("gone").parent / "old.db" / "t"
    lake.db.once("UPDATE databases SET location = %s WHERE name = 'd'", (place.parent.as_uri(),))
    dropped(lake, "d.t", place)
    if other:
        (place.parent / "somebody's").touch()
    if not exists:
        lake.db.once("DELETE FROM databases")

    assert [one.outcome for one in lake.cleaner().tick()] == ["cleaned"]
    assert not place.exists()
    assert place.parent.exists() is left


@pytest.mark.parametrize("what", ["d.gone", "d.p/x=1", "d.gone/x=1", "none.gone"])
def test_a_soft_drop_is_of_a_directory_that_the_object_had(lake, what):
    """Files in the warehouse that no table has are not removed for whoever names them."""
    lake.table("p", keys=["x"])
    table, _, partition = what.partition("/")
    own = lake.path(table) / partition if partition else lake.path(table)
    request = NewRequest(entity(table)._replace(partition=partition), CompactionType.MAJOR)
    for place in (lake.path("other"), lake.folder, lake.path("p") / "x=2", own / "delta_0000001_0000001", own.parent / f"{own.name}.v",
                  lake.path("gone.v1x"), lake.folder / "gone", lake.path("p").parent / "p"):
        with pytest.raises(InvalidRequestError, match="is not where it would be"):
            lake.service.submit_for_cleanup(replace(request, properties={"location": f"file://{place}"}), 0, 1)
    if table != "none.gone":
        for place in (own, own.parent / f"{own.name}.v17"):
            assert lake.service.submit_for_cleanup(replace(request, properties={"location": f"file://{place}"}), 0, 1)


def test_a_soft_drop_never_removes_what_somebody_uses(lake, monkeypatch):
    """Asked again by the Cleaner, of requests that stand in the queue from before, too."""
    from metastore.compaction.queue.store.entities import OwnCatalog
    from metastore.txns.core.rules import TxnType

    monkeypatch.setattr(OwnCatalog, "homes", lambda *_: None)
    lake.table()
    numbers = itertools.count()
    for place in (lake.path("t"), lake.folder, lake.folder / "d.db", lake.path("t") / "delta_1_1"):
        txn_id = lake.t.open(kind=TxnType.SOFT_DELETE)
        lake.service.submit_for_cleanup(NewRequest(entity(f"d.gone{next(numbers)}"), CompactionType.MAJOR,
                                                   {"location": place.as_uri()}), 0, txn_id)
        lake.t.commit(txn_id)

    assert {one.outcome for one in lake.cleaner().tick()} == {"refused"}
    assert lake.path("t").exists()
