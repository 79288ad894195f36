"""Rebuild locks of materialized views and what makes a view stale: cases M01 to M07 of tests/scripts/CASES (TXN-44, TXN-45)."""

import json

import pytest
from thrift.Thrift import TApplicationException

from metastore.errors import InvalidInputError, NoAnswerError, NoSuchTxnError
from metastore.materialized_views.service.rebuilds import RebuildService
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.txns.core.rules import Operation, TxnType, reader_snapshot
from tests.support.transactions import named, seconds

VIEW = named("db.mv")


@pytest.fixture
def rebuilds(database):
    return RebuildService(database)


def test_m01_one_at_a_time_and_again_for_its_holder(t, rebuilds):
    first, second = t.open(2, TxnType.MATER_VIEW_REBUILD)

    assert [rebuilds.get_lock_materialization_rebuild(VIEW, one) for one in (first, second, first)] == [True, False, True]
    with pytest.raises(NoSuchTxnError):
        rebuilds.get_lock_materialization_rebuild(VIEW, 99)


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_m02_it_ends_with_the_transaction(t, rebuilds, end):
    first, second = t.open(2, TxnType.MATER_VIEW_REBUILD)
    rebuilds.get_lock_materialization_rebuild(VIEW, first)

    getattr(t, end)(first)

    assert rebuilds.get_lock_materialization_rebuild(VIEW, second)


def test_m03_heartbeats(t, rebuilds):
    txn_id = t.open()
    rebuilds.get_lock_materialization_rebuild(VIEW, txn_id)

    assert rebuilds.heartbeat_lock_materialization_rebuild(VIEW, txn_id)
    assert not rebuilds.heartbeat_lock_materialization_rebuild(VIEW, 99)


def test_m04_stale_ones_are_swept(t, rebuilds, test_clock):
    held = t.open()
    rebuilds.get_lock_materialization_rebuild(VIEW, held)
    t.rows("""INSERT INTO materialization_locks SELECT 'hive', 'db', 'mv' || n, 99, metastore_now()
              FROM generate_series(1, 3) AS n""")
    test_clock.advance(seconds(301))
    t.heartbeat(held)

    assert t.reaper.tick().materialization_locks == 3
    assert t.count("materialization_locks") == 1


def stored(t, *tables):
    """Return a view's snapshot as Hive writes it: of a reader who starts now."""
    lists = t.lists(list(tables))
    return "$".join(["9", *(one.format() for one in lists)])


def now(t):
    return reader_snapshot(t.txns.get_open_txns(), 0).format()


def write(t, table, operation):
    txn_id = t.open()
    t.allocate(table, txn_id)
    t.lock(txn_id, table, operation)
    t.commit(txn_id)
    return txn_id


def test_m05_only_updates_and_deletes_that_the_caller_sees_count(t, rebuilds):
    write(t, "db.a", Operation.UPDATE)
    before = stored(t, "db.a", "db.b")
    write(t, "db.a", Operation.INSERT)
    write(t, "db.other", Operation.UPDATE)
    inserted = rebuilds.get_materialization_invalidation_info({"db.a", "db.b"}, before, now(t))
    seen = now(t)
    write(t, "DB.A", Operation.DELETE)

    assert inserted == (False, False)
    assert rebuilds.get_materialization_invalidation_info({"db.a", "db.b"}, before, seen) == (False, False)
    assert rebuilds.get_materialization_invalidation_info({"db.a", "db.b"}, before, now(t)) == (True, False)


def test_m05_a_write_that_was_aborted_then_and_is_committed_now(t, rebuilds):
    """It was invalid for the view, below its mark."""
    opened = t.open()
    t.allocate("db.a", opened)
    t.lock(opened, "db.a", Operation.UPDATE)
    write(t, "db.a", Operation.INSERT)
    before = stored(t, "db.a").replace(":1:1:", f":{2**63 - 1}::1")
    t.commit(opened)

    assert rebuilds.get_materialization_invalidation_info(["db.a"], before, now(t)) == (True, False)


QUEUED = """INSERT INTO compaction_queue (catalog, db, "table", state, type, enqueued_at)
            VALUES ('hive', 'db', 'a', 'initiated', 'major', metastore_now()) RETURNING 1"""
DONE = """INSERT INTO completed_compactions (id, catalog, db, "table", state, type, enqueued_at, highest_write_id)
          VALUES (1, 'hive', 'db', 'a', '{}', 'major', metastore_now(), {}) RETURNING 1"""


@pytest.mark.parametrize(("statement", "compacted"), [
    (QUEUED, True), (DONE.format("succeeded", 2), True), (DONE.format("succeeded", 1), False),
    (DONE.format("failed", 2), False)])
def test_compactions_that_the_view_does_not_have(t, rebuilds, statement, compacted):
    write(t, "db.a", Operation.INSERT)
    before = stored(t, "db.a")
    write(t, "db.a", Operation.INSERT)
    t.rows(statement)

    assert rebuilds.get_materialization_invalidation_info(["db.a"], before, now(t)) == (False, compacted)


def test_m06_what_cannot_be_told(t, rebuilds):
    write(t, "db.a", Operation.INSERT)
    before = stored(t, "db.a")
    opened = t.open()
    t.allocate("db.a", opened)

    for used, snapshot, why in [
            ([], before, "uses no table"), (["db.a"], before, "open has ended, or another one has begun"),
            (["db.a", "db.b"], before, "no snapshot of db.b"), (["db.a"], None, "has no snapshot"),
            (["db.a"], '{"validTxnList": "", "tableSnapshots": {"db.a": {"snapshotId": 5}}}', "other table formats")]:
        with pytest.raises(NoAnswerError, match=why):
            rebuilds.get_materialization_invalidation_info(used, snapshot, now(t))


def test_m07_every_form_of_a_snapshot(t, rebuilds):
    first, second = write(t, "db.a", Operation.INSERT), t.open()
    bare = stored(t, "db.a")

    for snapshot in (bare, json.dumps({"validTxnList": bare}), json.dumps({"validTxnList": bare, "tableSnapshots": {}})):
        for valid in (now(t), f"{first}:{2**63 - 1}::", ""):
            assert rebuilds.get_materialization_invalidation_info(["db.a"], snapshot, valid) == (False, False)
    assert second
    for snapshot in ("nonsense", "{broken", "5$db.a:x"):
        with pytest.raises(InvalidInputError, match="Cannot read"):
            rebuilds.get_materialization_invalidation_info(["db.a"], snapshot, now(t))


def test_on_the_wire_no_answer_is_what_hives_client_makes_of_null(client):
    metadata = ttypes.CreationMetadata("hive", "db", "mv", set(), "5$")
    with pytest.raises(TApplicationException) as caught:
        client.get_materialization_invalidation_info(metadata, "5:9223372036854775807::")
    assert caught.value.type == TApplicationException.MISSING_RESULT

    metadata.tablesUsed, metadata.validTxnList = {"db.a"}, f"5$db.a:0:{2**63 - 1}::"
    assert client.get_materialization_invalidation_info(metadata, "5:9223372036854775807::") == ttypes.Materialization(
        sourceTablesUpdateDeleteModified=False, sourceTablesCompacted=False)
