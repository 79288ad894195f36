"""Components and conflicts at commit: cases C of tests/scripts/CASES (TXN-26 to TXN-37)."""

import pytest

from metastore.errors import MetaError, NoSuchTxnError, TxnAbortedError
from metastore.ids import DatabaseName, TableName
from metastore.locks.rules import LockObject, LockRequest, LockType, WantedLock
from metastore.locks.rules import Operation as LockOperation
from metastore.txns.commit.service import CommitRequest, KeyValue, LastReplId
from metastore.txns.core.rules import Operation, TxnType
from tests.support.transactions import raised, seconds

I, U, D = Operation.INSERT, Operation.UPDATE, Operation.DELETE
S, W, E = LockType.SHARED_READ, LockType.SHARED_WRITE, LockType.EXCL_WRITE
P1, P2 = "db.t/p=1", "db.t/p=2"


def overlapping(t, *writes):
    """Two transactions that are open at the same time, each with its writes declared."""
    ids = t.open(len(writes))
    for txn_id, (table, operation) in zip(ids, writes, strict=True):
        t.write(table, operation, txn_id)
    return ids


def refused(t, txn_id, excl=None):
    with pytest.raises(TxnAbortedError) as caught:
        t.commit(txn_id, excl=excl)
    return str(caught.value)


def test_c01_one_after_the_other(t):
    t.commit(t.write(P1))
    t.commit(t.write(P1))


def test_c02_different_tables(t):
    t.commit(*overlapping(t, ("db.t", U), ("db.u", U)))


def test_c03_first_committer_wins(t):
    first, second = overlapping(t, (P1, U), (P1, U))
    t.commit(first)

    assert refused(t, second) == ("Aborting [txnid:2,2] due to a write conflict on db/t/p=1 committed by "
                                  "[txnid:1,2] u/u")
    assert t.state(second) == "aborted"
    assert t.rows("SELECT txn_id FROM write_sets") == t.rows("SELECT txn_id FROM completed_txn_components") == [(first,)]
    assert t.rows("SELECT DISTINCT txn_id FROM locks") == []
    assert t.rows("SELECT abort_code FROM txns WHERE id = %s", second) == [(50003,)]


def test_c03_members_of_one_batch_are_checked_against_each_other(t):
    first, second, third = overlapping(t, (P1, U), (P1, D), (P2, U))

    answers = t.commits.commit_txn([CommitRequest(one) for one in (first, second, third)])

    assert [type(one) for one in answers] == [type(None), TxnAbortedError, type(None)]
    assert str(answers[1]).endswith("committed by [txnid:1,3] d/u")


def test_ends_are_counted(t):
    first, second, third = overlapping(t, (P1, U), (P1, D), (P2, U))
    t.abort(third)
    t.abort(third)

    t.commits.commit_txn([CommitRequest(one) for one in (first, second, third, 10**9)])

    assert {sample.labels.get("why", "committed"): sample.value for family in (*t.commits.stats.committed.collect(),
            *t.commits.stats.aborted.collect()) for sample in family.samples if sample.name.endswith("_total")} == {
                "committed": 1, "asked": 0, "conflict": 1}
    assert [sample.value for family in t.txns.stats.aborted.collect() for sample in family.samples
            if sample.name.endswith("_total")] == [1, 0]


def test_c04_aborted_ones_never_conflict(t):
    first, second = overlapping(t, (P1, U), (P1, U))
    t.abort(first)
    t.commit(second)


def test_c05_readers_do_not_conflict(t):
    reader, writer = t.open(2)
    t.lock(reader, P1, LockOperation.SELECT, S)
    t.write(P1, U, writer)
    t.commit(writer, reader)


def test_c06_different_partitions(t):
    t.open()   # keeps the write sets from being purged
    t.commit(*overlapping(t, (P1, U), (P2, U)))

    assert t.rows("SELECT partition FROM write_sets ORDER BY 1") == [("p=1",), ("p=2",)]


def test_c07_what_was_reported_counts_not_what_was_locked(t):
    first, second = t.open(2)
    for txn_id in (first, second):
        t.allocate("db.t", txn_id)
        t.lock(txn_id, "db.t", U, dynamic=True)
    t.partitions(first, "db.t", "p=1")
    t.partitions(second, "db.t", "p=2")
    t.commit(first, second)


@pytest.mark.parametrize(("first", "second", "letters"), [(U, D, "d/u"), (D, U, "u/d"), (D, D, "d/d")])
def test_c08_c09_updates_and_deletes(t, first, second, letters):
    winner, loser = overlapping(t, (P1, first), (P1, second))
    t.commit(winner)

    assert refused(t, loser).endswith(letters)


@pytest.mark.parametrize(("first", "second"), [(I, U), (U, I), (I, I)])
def test_c10_inserts_conflict_with_nothing(t, first, second):
    t.commit(*overlapping(t, (P1, first), (P1, second)))


def test_c11_unpartitioned(t):
    first, second = overlapping(t, ("db.t", U), ("db.t", D))
    t.commit(first)

    assert " on db/t committed by " in refused(t, second)


def test_c13_an_update_that_touched_nothing(t):
    first, second = t.open(2)
    for txn_id in (first, second):
        t.allocate("db.t", txn_id)
        t.lock(txn_id, "db.t", U, dynamic=True)
        t.partitions(txn_id, "db.t")
    t.commit(first, second)

    assert [t.count("write_sets"), t.count("completed_txn_components")] == [0, 0]


def test_c14_a_dynamic_insert(t):
    txn_id = t.open()
    t.allocate("db.t", txn_id)
    t.lock(txn_id, "db.t", I, dynamic=True)
    assert t.rows("SELECT partition, operation FROM txn_components") == [("", "i")]
    t.partitions(txn_id, "db.t", "p=1", "p=1", "P=1", operation=I, write_id=1)
    assert t.rows("SELECT partition, operation FROM txn_components ORDER BY 1") == [("", "c"), ("p=1", "i")]

    t.commit(txn_id)

    assert t.rows("SELECT partition, write_id, update_delete FROM completed_txn_components") == [("p=1", 1, False)]


def test_c15_an_abort_before_the_report_keeps_the_placeholder(t):
    txn_id = t.open()
    t.allocate("db.t", txn_id)
    t.lock(txn_id, "db.t", I, dynamic=True)
    t.abort(txn_id)

    t.reaper.tick()

    assert t.txns.get_open_txns().open_txns == [txn_id]
    assert t.reads("db.t").aborted == {1}


def test_c17_what_is_not_a_component(t):
    txn_id = t.open()
    t.lock(txn_id, "db.t", I, transactional=False)
    t.lock(txn_id, "db.t", LockOperation.SELECT)
    t.lock(txn_id, "db.t", LockOperation.NO_TXN)

    assert t.count("txn_components") == 0


def test_c19_partitions_of_a_transaction_that_is_not_open(t):
    aborted = t.open()
    t.abort(aborted)

    with pytest.raises(TxnAbortedError):
        t.partitions(aborted, "db.t", "p=1")
    with pytest.raises(NoSuchTxnError):
        t.partitions(9, "db.t", "p=1")


def resnapshotted(t, kind):
    """Two updaters that overlap by interval, the second holding its lock only after the first has committed."""
    first, second = t.open(2)
    t.write("db.t", U, first, kind=E)
    t.commit(first)
    t.write("db.t", U, second, kind=kind)
    return second


def test_c20_an_exclusive_lock_and_the_flag_switch_the_check_off(t):
    t.commit(resnapshotted(t, E), excl=True)


@pytest.mark.parametrize("order", ["older", "younger"])
def test_an_exclusive_lock_does_not_excuse_what_was_written_past_it(t, order):
    """Trino updates under a shared lock, which does not wait for EXCL_WRITE: only the check can find the conflict."""
    trino, hive = t.open(2) if order == "older" else reversed(t.open(2))
    t.write(P1, U, hive, kind=E)
    assert t.txns.get_latest_txnid_in_conflict(hive) == 0
    t.commit(t.write(P1, U, trino, kind=S))

    assert "write conflict" in refused(t, hive, excl=True)


def test_an_exclusive_lock_excuses_what_it_had_to_wait_for(t):
    first, second = t.open(2)
    t.write(P1, U, first, kind=W)
    t.allocate("db.t", second)
    waiting = t.lock(second, P1, U, E)
    t.commit(first)
    [granted] = t.locks.check_lock([-waiting])

    assert (waiting < 0, granted.state) == (True, "acquired")
    assert t.txns.get_latest_txnid_in_conflict(second) == first
    t.commit(second, excl=True)


@pytest.mark.parametrize(("kind", "excl"), [(W, None), (S, None), (E, None), (S, True), (W, True), (E, False)])
def test_c21_c22_c23_otherwise_the_check_runs(t, kind, excl):
    assert "write conflict" in refused(t, resnapshotted(t, kind), excl)


def test_c24_the_latest_conflict(t):
    first, second, mine, inserter = t.open(4)
    t.write(P1, U, first)
    t.write(P1, I, inserter)
    t.write(P1, U, mine)
    assert t.txns.get_latest_txnid_in_conflict(mine) == 0
    t.commit(inserter)
    assert t.txns.get_latest_txnid_in_conflict(mine) == 0
    t.commit(first)
    assert t.txns.get_latest_txnid_in_conflict(mine) == first
    t.write(P2, U, second)
    t.commit(second)
    assert t.txns.get_latest_txnid_in_conflict(mine) == first


def test_c25_a_component_without_partition_covers_the_table(t):
    first, second, mine = t.open(3)
    t.lock(mine, "db.t", U)
    t.write(P1, U, first)
    t.write(P2, U, second)
    t.commit(first)
    t.commit(second)

    assert t.txns.get_latest_txnid_in_conflict(mine) == second


def test_c26_the_flag_is_the_transactions(t):
    inserter, both = t.open(2)
    t.write(P1, I, inserter)
    t.write(P1, I, both)
    t.lock(both, P2, D)
    t.commit(inserter, both)

    assert t.rows("SELECT txn_id, partition, update_delete FROM completed_txn_components ORDER BY 1, 2") == [
        (inserter, "p=1", False), (both, "p=1", True), (both, "p=2", True)]


def test_c27_write_sets_stay_while_an_older_transaction_is_open(t):
    older, writer = t.open(2)
    t.write(P1, U, writer)
    t.commit(writer)

    assert t.reaper.tick().write_sets == 0
    t.commit(older)
    assert t.reaper.tick().write_sets == 1


def test_c29_a_conflict_abort_lasts(t):
    first, second = overlapping(t, (P1, U), (P1, U))
    t.commit(first)
    refused(t, second)

    t.abort(second)
    with pytest.raises(TxnAbortedError):
        t.heartbeat(second)


@pytest.mark.parametrize("kind", [TxnType.COMPACTION, TxnType.SOFT_DELETE])
def test_c30_a_compaction_notes_its_commit_point(t, kind):
    compaction = t.open(kind=kind)
    t.rows("""INSERT INTO compaction_queue (catalog, db, "table", state, type, enqueued_at, txn_id)
              VALUES ('hive', 'db', 't', 'working', 'major', metastore_now(), %s)""", compaction)
    t.rows("""INSERT INTO txn_components (txn_id, catalog, db, "table", operation, write_id)
              VALUES (%s, 'hive', 'db', 't', 'c', 5)""", compaction)
    reader = t.open()

    t.commit(compaction)

    assert t.rows("SELECT next_txn_id, committed_at IS NOT NULL FROM compaction_queue") == [(reader, True)]
    assert [t.count("completed_txn_components"), t.count("txn_components")] == [0, 0]


def test_a_rebalance_is_checked_but_leaves_no_completed_components(t):
    writer, rebalance = t.open(), t.open(kind=TxnType.REBALANCE_COMPACTION)
    t.write(P1, U, writer)
    t.write(P1, U, rebalance)
    t.commit(writer)

    assert "write conflict" in refused(t, rebalance)


def test_the_write_id_of_a_component_that_was_declared_before_it(t):
    """Trino locks before it allocates."""
    txn_id = t.open()
    t.lock(txn_id, "db.t", I)
    t.allocate("db.t", txn_id)
    t.commit(txn_id)

    assert t.rows("SELECT write_id FROM completed_txn_components") == [(1,)]


def test_x3_a_write_without_write_id_to_a_transactional_table_is_refused(t):
    create_table(t, {"transactional": "true"})
    txn_id = t.open()
    t.lock(txn_id, "db.t", I)

    with pytest.raises(TxnAbortedError, match="transactional table db.t without having allocated a write id"):
        t.commit(txn_id)
    assert t.state(txn_id) == "aborted"


def create_table(t, parameters):
    import json

    t.rows("INSERT INTO catalogs (name, location) VALUES ('hive', '/w') ON CONFLICT DO NOTHING")
    t.rows("INSERT INTO databases (catalog, name, location) VALUES ('hive', 'db', '/w/db') ON CONFLICT DO NOTHING")
    [(table_id,)] = t.rows("""INSERT INTO tables (catalog, db, name, type, sd, parameters)
                              VALUES ('hive', 'db', 't', 'MANAGED_TABLE', '{}', %s) RETURNING id""", json.dumps(parameters))
    return table_id


def parameters_of(t, table, name):
    return t.rows(f"SELECT parameters FROM {table} WHERE name = %s", name)[0][0]


def test_t23_a_parameter_changes_with_the_commit(t):
    table_id = create_table(t, {"_meta.x": "1"})
    txn_id = t.open()

    raised(t.commits.commit_txn([CommitRequest(txn_id, key_value=KeyValue(table_id, "_meta.x", "2"))]))

    assert parameters_of(t, "tables", "t") == {"_meta.x": "2"}
    assert t.state(txn_id) == "committed"


@pytest.mark.parametrize("key", ["x", "_meta.y"])
def test_t24_or_neither_does(t, key):
    table_id = create_table(t, {"_meta.x": "1", "x": "1"})
    txn_id = t.open()

    with pytest.raises(MetaError):
        raised(t.commits.commit_txn([CommitRequest(txn_id, key_value=KeyValue(table_id, key, "2"))]))

    assert parameters_of(t, "tables", "t") == {"_meta.x": "1", "x": "1"}
    assert t.state(txn_id) == "open"


def test_a_commit_repeated_for_its_answer_does_not_set_the_parameter_again(t):
    """Somebody may have gone on from there."""
    table_id = create_table(t, {"_meta.x": "1"})
    txn_id = t.open()
    request = CommitRequest(txn_id, key_value=KeyValue(table_id, "_meta.x", "2"))
    raised(t.commits.commit_txn([request]))
    raised(t.commits.commit_txn([CommitRequest(t.open(), key_value=KeyValue(table_id, "_meta.x", "3"))]))

    raised(t.commits.commit_txn([request]))

    assert t.rows("SELECT parameters ->> '_meta.x' FROM tables") == [("3",)]


def test_t25_the_last_replication_id(t):
    create_table(t, {})
    first, second = t.open(2)
    table = TableName("hive", "db", "t")

    raised(t.commits.commit_txn([CommitRequest(first, last_repl_id=LastReplId(table.database, 7, table))]))
    with pytest.raises(MetaError, match="database other does not exist"):
        raised(t.commits.commit_txn([CommitRequest(
            second, last_repl_id=LastReplId(DatabaseName("hive", "other"), 7))]))

    assert parameters_of(t, "tables", "t") == parameters_of(t, "databases", "db") == {"repl.last.id": "7"}
    assert t.state(second) == "open"


def test_what_a_failed_special_commit_undoes_includes_the_commit(t):
    create_table(t, {})
    first, second = overlapping(t, (P1, U), (P1, U))
    t.commit(first)
    database = DatabaseName("hive", "db")

    with pytest.raises(TxnAbortedError):
        raised(t.commits.commit_txn([CommitRequest(second, last_repl_id=LastReplId(database, 7))]))

    assert t.state(second) == "aborted"


# ------------------------------------------------------------------------------------------------- what is purged when


def test_ended_records_are_kept_for_an_hour(t, test_clock):
    committed, aborted, kept = t.open(3)
    t.commit(committed)
    t.abort(aborted)
    t.write("db.t", I, kept)
    t.abort(kept)

    t.reaper.tick()
    assert [t.state(one) for one in (committed, aborted, kept)] == ["committed", "aborted", "aborted"]
    assert t.txns.get_open_txns().open_txns == [kept]
    t.commit(committed)
    with pytest.raises(TxnAbortedError):
        t.commit(aborted)
    test_clock.advance(seconds(3601))
    report = t.reaper.tick()

    assert (report.ended_txns, report.failed) == (2, {})
    assert [t.state(one) for one in (committed, aborted, kept)] == [None, None, "aborted"]
    assert t.txns.get_open_txns() == (3, [kept], b"\x01", None)


def test_many_ended_records_go_in_windows(t, test_clock):
    first, *others = t.open(1000)
    t.commit(*others[:5])
    t.txns.abort_txns([[]])
    t.rows("UPDATE txns SET state = 'committed', ended_at = metastore_now() WHERE id > 10")
    test_clock.advance(seconds(3601))
    late = t.open()
    t.commit(late)

    from metastore.housekeeping import store as purge_store
    position, removed = 0, 0
    while position is not None:
        with t.db.begin() as pg:
            count, position = purge_store.delete_ended(pg, pg.now - seconds(3600), position, 100, limit=64)
        removed += count

    assert removed == 995
    assert t.state(late) == "committed"
    assert t.state(first) == "open"


def test_completed_components_that_say_nothing_new_go(t):
    for operation in (I, I, U, I, I):
        t.commit(t.write(P1, operation))
    t.commit(t.write(P2, I))

    assert t.reaper.tick().duplicates == 3
    assert t.rows("SELECT partition, write_id, update_delete FROM completed_txn_components ORDER BY 1, 2") == [
        ("p=1", 3, True), ("p=1", 5, False), ("p=2", 6, False)]
    t.open()
    t.commit(t.write(P2, I))
    assert t.reaper.tick().duplicates == 0


def test_a_failing_step_does_not_stop_the_others(t, test_clock, monkeypatch):
    from metastore.errors import UnavailableError
    from metastore.housekeeping import store as purge_store

    def broken(pg):
        raise UnavailableError("no database")
    monkeypatch.setattr(purge_store, "delete_write_sets", broken)
    t.open()
    test_clock.advance(seconds(301))

    report = t.reaper.tick()

    assert report.failed == {"write_sets": "UnavailableError: no database"}
    assert (report.expired_txns, report.emptied_txns) == (1, 1)


def test_an_extra_component_by_lock_request_of_several(t):
    """C16: one placeholder for all dynamic components of a table, the strongest operation."""
    txn_id = t.open()
    wanted = [WantedLock(W, LockObject("hive", "db", "t"), operation, is_transactional=True,
                         is_dynamic_partition_write=True) for operation in (LockOperation.INSERT, LockOperation.UPDATE)]
    t.locks.lock([LockRequest(tuple(wanted), txn_id)])

    assert t.rows("SELECT partition, operation FROM txn_components") == [("", "u")]


def test_the_steps_run_in_groups_of_their_own(t):
    from metastore.loops.reaper import EXPIRY, PURGES, TXN_RECORDS, Reaper

    t.abort(t.open())
    t.commit(t.write(P1))

    reports = [Reaper(t.purges, steps).tick() for steps in (EXPIRY, PURGES, TXN_RECORDS)]

    assert [(one.expired_txns, one.write_sets, one.write_ids, one.emptied_txns) for one in reports] == [
        (0, 0, 0, 0), (0, 1, 1, 0), (0, 0, 0, 1)]
