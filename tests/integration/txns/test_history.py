"""What became of a transaction: while its record is kept, afterwards, and never more than is known."""

from datetime import timedelta
from itertools import permutations

import pytest

from metastore.catalog.store import acid_history
from metastore.compaction.cleaning.store import delete_completed
from metastore.compaction.queue.rules.requests import Entity
from metastore.config import TxnSettings
from metastore.errors import InvalidRequestError, NoSuchTxnError, TxnAbortedError
from metastore.ids import table_name
from metastore.txns.core.rules import AbortCode, Operation, TxnType
from metastore.txns.core.service import AbortRequest, Heartbeat, OpenRequest
from metastore.txns.history.rules import LostConflict, Outcome
from metastore.txns.history.service import HistoryService
from tests.support.transactions import Transactions, raised, seconds

SETTINGS = TxnSettings(history_count=50, history_retention=timedelta(days=7))


@pytest.fixture
def t(database):
    return Transactions(database, SETTINGS)


@pytest.fixture
def history(database):
    return HistoryService(database, SETTINGS)


def reap(t):
    report = t.reaper.tick()
    assert report.failed == {}
    return report


def forget_records(t, test_clock):
    """Everything that ended goes, as far as it may."""
    reap(t)
    test_clock.advance(seconds(3601))
    for txn_id in t.rows("SELECT id FROM txns WHERE state = 'open'"):
        t.heartbeat(*txn_id)
    reap(t)


def test_of_an_open_one(t, history, test_clock):
    [txn_id] = raised(t.txns.open_txns([OpenRequest(1, "ann", "h1", "nightly load")]))
    t.write("sales.orders", txn_id=txn_id)
    t.allocate("sales.other", txn_id)
    for pause in (5, 40, 10):
        test_clock.advance(seconds(pause))
        t.heartbeat(txn_id)
    test_clock.advance(seconds(30))

    life = history.explain(txn_id)

    assert history.outcome(txn_id) == life.answer
    assert life.answer.outcome is Outcome.OPEN
    assert life.answer.reason.startswith("open since ")
    assert "ann@h1 (nightly load)" in life.answer.reason
    assert (life.record.heartbeat_count, not life.from_history) == (3, True)
    assert timedelta(seconds=40) <= life.record.longest_gap < timedelta(seconds=60)
    assert timedelta(seconds=200) < life.expires_in <= timedelta(seconds=270)
    assert [(str(one.name), one.operation, one.write_id) for one in life.writes] == [
        ("sales.orders", "update", 1), ("sales.other", "reserve", 1)]
    assert [(str(one.name), one.type, one.state) for one in life.locks] == [("sales.orders", "shared_write", "acquired")]
    assert (life.write_count, life.lock_count) == (2, 1)


def test_check_lock_counts_as_a_sign_of_life(t, history, test_clock):
    txn_id = t.open()
    lock_id = t.lock(txn_id, "db.t", Operation.INSERT)
    test_clock.advance(seconds(70))
    raised(t.locks.check_lock([lock_id]))

    assert timedelta(seconds=70) <= history.explain(txn_id).record.longest_gap < timedelta(seconds=90)


def test_an_abort_keeps_what_was_locked_and_written_at_that_moment(t, history, test_clock):
    holder = t.open()
    t.lock(holder, "db.t", Operation.INSERT)
    txn_id = t.write("db.t/p=1")
    t.lock(txn_id, "db.t", Operation.DELETE)
    t.abort(txn_id, AbortCode.QUERY_COMMAND)
    before = history.explain(txn_id)

    t.rows("DELETE FROM txn_components")  # the Cleaner has removed its files
    forget_records(t, test_clock)

    after = history.explain(txn_id)
    assert t.state(txn_id) is None
    assert (before.from_history, after.from_history) == (False, True)
    reason, _, named = before.answer.reason.partition("; snapshots name it until ")
    assert "hive.db.t" in named
    assert after._replace(from_history=False) == before._replace(answer=before.answer._replace(reason=reason))
    assert after.answer.reason.startswith("aborted by an ABORT TRANSACTIONS command (ann at h1), at 20")
    assert after.answer.ended_at is not None
    assert [(str(one.name), one.partition, one.operation, one.write_id) for one in after.writes] == [
        ("db.t", "", "delete", 1), ("db.t", "p=1", "update", 1)]
    assert [one.state for one in after.locks] == ["acquired", "acquired"]


def test_the_reaper_says_whose_silence_it_was(t, history, test_clock):
    txn_id = t.open()
    test_clock.advance(seconds(301))
    reap(t)

    assert history.outcome(txn_id).outcome is Outcome.ABORTED
    assert "no heartbeat of ann@h1 arrived for 301 s" in history.outcome(txn_id).reason


def test_a_lost_conflict_names_the_winner(t, history):
    loser = t.write("db.t/p=1")
    [winner] = raised(t.txns.open_txns([OpenRequest(1, "bob", "h2", "hourly load")]))
    t.write("db.t/p=1", Operation.DELETE, txn_id=winner)
    t.commit(winner)
    with pytest.raises(TxnAbortedError):
        t.commit(loser)

    life = history.explain(loser)

    assert life.answer.outcome is Outcome.ABORTED
    assert life.conflict == LostConflict(winner, winner, "db/t/p=1", "update", "delete")
    assert (life.winner.user, life.winner.host, life.winner.agent_info) == ("bob", "h2", "hourly load")


def test_a_commit_keeps_what_it_wrote_when_the_rows_about_that_go(t, history, test_clock):
    first = t.write("db.t/p=1")
    t.lock(first, "db.t/p=2", Operation.INSERT)
    t.commit(first)
    live = history.explain(first)
    reap(t)
    for _ in range(3):
        t.commit(t.write("db.t/p=1"))
    reap(t)
    assert t.rows("SELECT count(*) FROM completed_txn_components WHERE partition = 'p=1'") == [(1,)]

    kept = history.explain(first)

    assert [(one.partition, one.operation) for one in live.writes] == [("p=1", "update"), ("p=2", "insert")]
    assert kept == live
    forget_records(t, test_clock)
    assert history.explain(first) == live._replace(from_history=True)
    assert history.outcome(first).reason.startswith("committed at 20")


def test_when_the_write_sets_go_it_is_remembered_which_change_it_was(t, history):
    txn_id = t.write("db.t")
    t.commit(txn_id)
    t.purges.purge_write_sets()

    assert [one.operation for one in history.explain(txn_id).writes] == ["update"]


def test_an_empty_commit_without_a_record_is_known_by_not_having_been_aborted(t, history, test_clock):
    committed, aborted, opened = t.open(), t.open(), t.open()
    t.commit(committed)
    t.abort(aborted)
    forget_records(t, test_clock)
    assert t.rows("SELECT id FROM txns") == [(opened,)]
    assert history.outcome(committed).reason.startswith("committed at 20")
    for _ in range(60):
        t.commit(t.open())
    forget_records(t, test_clock)
    reap(t)

    assert [history.outcome(one).outcome for one in (committed, aborted, opened)] == [
        Outcome.COMMITTED, Outcome.ABORTED, Outcome.OPEN]
    assert "had it been aborted" in history.outcome(committed).reason
    assert history.explain(committed).record is None


def test_what_is_not_known_is_not_claimed(t, history, test_clock):
    """Once aborts are forgotten, a missing record may have been either."""
    early, aborted, late = t.open(), t.open(), t.open()
    t.commit(early, late)
    t.abort(aborted)
    forget_records(t, test_clock)
    test_clock.advance(timedelta(days=8))
    assert reap(t).forgotten_txns == 3

    assert [history.outcome(one).outcome for one in (early, aborted, late)] == [
        Outcome.UNKNOWN, Outcome.UNKNOWN, Outcome.COMMITTED]
    assert "only for transactions above 2" in history.outcome(early).reason


def test_a_commit_that_is_still_listed_is_known_whatever_was_forgotten(t, history, test_clock):
    txn_id = t.write("db.t")
    t.commit(txn_id)
    t.abort(t.open())
    forget_records(t, test_clock)
    test_clock.advance(timedelta(days=8))
    reap(t)
    assert t.count("txn_history") == 0

    assert history.outcome(txn_id).outcome is Outcome.COMMITTED


def test_ids_that_no_transaction_has(t, history):
    assert [history.outcome(one).outcome for one in (-1, 0, 1, 2**62)] == [Outcome.NEVER_OPENED] * 4
    last = t.open()
    t.txns.seed_txn_id(100)
    after = t.open()

    assert (last, after) == (1, 100)
    assert [history.outcome(one).outcome for one in (1, 2, 99, 100, 101)] == [
        Outcome.OPEN, Outcome.NEVER_OPENED, Outcome.NEVER_OPENED, Outcome.OPEN, Outcome.NEVER_OPENED]
    assert "highest that was given out is 100" in history.outcome(101).reason


def test_ids_skipped_after_a_crash_were_never_opened(t, history):
    first = t.open()
    t.rows("DELETE FROM txn_id_block")  # what the recovery of PostgreSQL does
    after = t.open()

    assert after > first + 1000
    assert [history.outcome(one).outcome for one in (first, first + 1, after - 1, after)] == [
        Outcome.OPEN, Outcome.NEVER_OPENED, Outcome.NEVER_OPENED, Outcome.OPEN]


def test_no_more_is_remembered_than_asked_for(t, history):
    aborted = [t.open() for _ in range(70)]
    for txn_id in aborted:
        t.abort(txn_id)
    committed = []
    for _ in range(14):
        for _ in range(5):
            committed.append(t.write("db.t", Operation.INSERT))
            t.commit(committed[-1])
        reap(t)

    assert t.rows("SELECT state, count(*), min(txn_id) FROM txn_history GROUP BY state ORDER BY state") == [
        ("aborted", 50, aborted[20]), ("committed", 50, committed[20])]
    assert t.rows("SELECT complete_above FROM txn_history_floor") == [(aborted[19],)]


def test_reads_push_no_commit_out(t, history, test_clock):
    committed = t.write("db.t", Operation.INSERT)
    t.commit(committed)
    for txn_id in t.open(60):
        t.commit(txn_id)
    forget_records(t, test_clock)

    assert t.count("txn_history") == 51
    assert [one.txn_id for one in history.table_commits(table_name("db", "t"), 0, 10)] == [committed]


def test_long_lists_are_cut_and_counted(t, history):
    txn_id = t.open()
    t.allocate("db.t", txn_id)
    t.partitions(txn_id, "db.t", *(f"p={number}" for number in range(1200)))
    assert (len(history.explain(txn_id).writes), history.explain(txn_id).write_count) == (1000, 1200)
    t.abort(txn_id)

    assert (len(history.explain(txn_id).writes), history.explain(txn_id).write_count) == (1000, 1200)


def test_records_of_aborts_from_before_there_was_a_history_are_kept_when_they_go(t, history, test_clock):
    txn_id = t.open()
    t.abort(txn_id)
    t.rows("DELETE FROM txn_history")
    forget_records(t, test_clock)

    assert t.state(txn_id) is None
    assert history.outcome(txn_id).outcome is Outcome.ABORTED


def test_errors_are_told_what_became_of_their_transaction(t, history):
    aborted, committed = t.open(), t.open()
    t.abort(aborted, AbortCode.QUERY_COMMAND)
    t.commit(committed)
    errors = [*t.txns.heartbeat([Heartbeat(aborted), Heartbeat(committed), Heartbeat(77)]),
              *t.txns.abort_txn([AbortRequest(committed)])]
    texts = [str(error) for error in errors]
    plain = NoSuchTxnError("nobody asked which")

    history.tell([*errors, plain, None, 7])

    assert [str(error).startswith(text) for error, text in zip(errors, texts, strict=True)] == [True] * 4
    assert str(errors[0]).startswith(
        f"Transaction txnid:{aborted} already aborted: aborted by an ABORT TRANSACTIONS command (ann at h1), at 20")
    assert str(errors[1]).startswith(f"No such txn: {committed}: committed at 20")
    assert str(errors[2]) == ("No such transaction txnid:77: no transaction has this id yet: the highest that was given out "
                              "is 2")
    assert str(errors[3]).startswith(f"Transaction txnid:{committed} is already committed. Committed at 20")
    assert str(plain) == "nobody asked which"


def test_an_error_stays_as_it_is_when_the_database_does_not_answer(history, monkeypatch):
    from metastore.db.engine import Database
    from metastore.errors import UnavailableError

    def gone(*_, **__):
        raise UnavailableError("gone")
    monkeypatch.setattr(Database, "once", gone)
    error = TxnAbortedError("Transaction txnid:1 already aborted", 1)

    history.tell([error])

    assert str(error) == "Transaction txnid:1 already aborted"


def test_a_table_s_commits_are_known_while_they_are_listed_and_afterwards(t, history, test_clock):
    name = table_name("sales", "orders")
    [first] = raised(t.txns.open_txns([OpenRequest(1, "ann", "h1", "nightly load")]))
    for place in ("sales.orders/day=1", "sales.orders/day=2", "sales.other/day=1"):
        t.write(place, Operation.INSERT, first)
    second = t.write("sales.orders/day=2", Operation.DELETE)
    history.note_rows(first, [(name, 9, 9)])
    history.note_rows(first, [(name, 3, 1), (table_name("sales", "other"), 7, 0)])
    t.commit(first, second)
    history.note_rows(first, [(name, 5, 5)])  # too late: it is committed
    t.abort(t.write("sales.orders/day=1"))
    t.write("sales.orders/day=1")

    def commits():
        return [(one.write_id, one.txn_id, one.operations, one.partitions, one.inserted, one.deleted)
                for one in history.table_commits(name, 0, 10)]

    listed = commits()
    assert listed == [(2, second, ["delete"], 1, None, None), (1, first, ["insert"], 2, 3, 1)]
    [latest] = history.table_commits(name, 0, 1)
    assert latest.write_id == 2
    assert [one.write_id for one in history.table_commits(name, 1, 10)] == [2]
    whole = history.table_commits(name, 0, 10)[1]
    assert (whole.user, whole.host, whole.agent_info, whole.is_complete) == ("ann", "h1", "nightly load", True)

    forget_records(t, test_clock)
    t.rows("DELETE FROM completed_txn_components RETURNING txn_id")
    assert commits() == listed


def removed_by_a_drop(t):
    with t.db.begin() as pg:
        acid_history.delete_partition_history(pg, table_name("db", "t"), ["p=1"])


def removed_by_the_cleaner(t):
    with t.db.begin() as pg:
        delete_completed(pg, Entity(table_name("db", "t"), "p=1"), None)


STEPS = [removed_by_a_drop, removed_by_the_cleaner, lambda t: t.purges.purge_duplicates(), lambda t: t.purges.purge_write_sets(),
         lambda t: t.purges.purge_write_ids(), lambda t: t.purges.purge_ended()]


@pytest.mark.parametrize("order", [*permutations(STEPS[:3]), STEPS[::-1], STEPS[3:] + STEPS[:3]])
def test_whoever_removes_first_every_write_id_stays_on_record(t, history, test_clock, order):
    """Nobody but the one who removes has had time to copy anything."""
    name = table_name("db", "t")
    added, changed, nothing, rebalanced = t.write("db.t/p=1", Operation.INSERT), t.write("db.t/p=1"), t.open(), t.open(kind=TxnType.REBALANCE_COMPACTION)
    t.allocate("db.t", nothing, rebalanced)
    t.commit(added, changed, nothing, rebalanced)
    void = t.write("db.t/p=1", Operation.INSERT)
    t.abort(void)
    last = t.write("db.t/p=1", Operation.INSERT)
    t.commit(last)

    def commits(*, aborted=False):
        return [(one.write_id, one.txn_id, *one.operations) for one in history.table_commits(name, 0, 10, aborted=aborted)]

    expected = [(6, last, "insert"), (4, rebalanced, "change"), (3, nothing, "reserve"), (2, changed, "update"), (1, added, "insert")]
    assert commits() == expected
    for step in order:
        step(t)
        assert commits() == expected
    forget_records(t, test_clock)
    assert commits() == expected
    assert commits(aborted=True) == [expected[0], (5, void, "insert"), *expected[1:]]
    assert [one.is_aborted for one in history.table_commits(name, 3, 10, aborted=True)] == [False, True, False]


def test_a_table_s_commits_follow_its_new_name(t, history, test_clock):
    """And those of another table that had the name are not among them, though they had the same write ids."""
    for name in ("new", "old", "old"):
        t.commit(t.write(f"db.{name}", Operation.INSERT))
    history.note_rows(txn_id := t.write("db.old"), [(table_name("db", "old"), 3, 1)])
    t.commit(txn_id)
    reap(t)
    with t.db.begin() as pg:
        acid_history.delete_table_history(pg, table_name("db", "new"))
        acid_history.rename_table_history(pg, table_name("db", "old"), table_name("db", "new"))
    forget_records(t, test_clock)

    found = history.table_commits(table_name("db", "new"), 0, 10)

    assert [(one.write_id, one.operations, one.inserted) for one in found] == [(3, ["update"], 3), (2, ["insert"], None), (1, ["insert"], None)]
    assert history.table_commits(table_name("db", "old"), 0, 10) == []


@pytest.mark.parametrize(("rows", "refusal"), [
    ([(table_name("d", "t"), -1, 0)], "d.t cannot get -1 rows and lose 0"),
    ([(table_name("d", "t"), 0, 0)] * 1001, "The rows of 1001 tables are too many")])
def test_rows_that_no_writer_writes(history, rows, refusal):
    with pytest.raises(InvalidRequestError, match=refusal):
        history.note_rows(1, rows)
