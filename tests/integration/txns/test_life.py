"""Opening, aborting, listing, keeping alive: cases T and H of tests/scripts/CASES."""

from dataclasses import replace

import pytest

from metastore.config import TxnSettings
from metastore.errors import InvalidRequestError, MetaError, NoSuchLockError, NoSuchTxnError, TxnAbortedError
from metastore.locks.rules import LockObject, LockRequest, LockType, Operation, WantedLock
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.txns.core.rules import AbortCode, TxnType
from metastore.txns.core.service import AbortRequest, Heartbeat, OpenRequest
from tests.support.answers import shown_txns
from tests.support.transactions import Transactions, raised, seconds

U, I = "update", "insert"


def write(t, table="db.t", txn_id=None):
    return t.write(table, Operation.UPDATE, txn_id)


def test_t01_empty_store(t):
    assert t.txns.get_open_txns() == (0, [], b"", None)
    assert shown_txns(t.txns) == (0, [])


def test_t02_first_ids(t):
    assert [t.open(), t.open()] == [1, 2]
    mark, infos = shown_txns(t.txns)
    assert mark == 2
    assert [(one.id, one.state, one.user, one.hostname, one.agentInfo) for one in infos] == [
        (1, ttypes.TxnState.OPEN, "ann", "h1", "Unknown"), (2, ttypes.TxnState.OPEN, "ann", "h1", "Unknown")]


def test_t03_consecutive(t):
    assert t.open(3) == [1, 2, 3]


@pytest.mark.parametrize("size", [0, -1, -(2**31)])
def test_t04_nothing_asked_for(t, size):
    with pytest.raises(InvalidRequestError, match=f"Invalid input for number of txns: {size}"):
        t.open(size)
    assert t.txns.get_open_txns().high_watermark == 0


def test_t05_batch_limit(t):
    assert len(t.open(1500)) == 1000


def test_t06_one_of_each(t):
    t.open(3)
    t.abort(1)
    t.commit(2)

    assert t.txns.get_open_txns() == (3, [1, 3], b"\x01", 3)
    assert [one.state for one in shown_txns(t.txns)[1]] == [ttypes.TxnState.ABORTED, ttypes.TxnState.OPEN]


def test_t07_all_committed(t):
    t.commit(*t.open(2))

    assert t.txns.get_open_txns() == (2, [], b"", None)


def test_t08_abort_twice(t):
    txn_id = t.open()
    t.abort(txn_id, AbortCode.ROLLBACK)
    t.abort(txn_id, AbortCode.MSCK)

    assert t.rows("SELECT abort_code FROM txns") == [(50005,)]


def test_t09_abort_of_a_committed_one(t):
    txn_id = t.open()
    t.commit(txn_id)

    with pytest.raises(NoSuchTxnError, match="^Transaction txnid:1 is already committed.$"):
        t.abort(txn_id)


def test_t10_abort_of_a_committed_writer_whose_record_is_gone(t):
    txn_id = write(t)
    t.commit(txn_id)
    t.rows("DELETE FROM txns WHERE id = %s", txn_id)

    with pytest.raises(NoSuchTxnError, match="^Transaction txnid:1 is already committed.$"):
        t.abort(txn_id)
    t.commit(txn_id)


def test_t11_t12_abort_of_unknown_ones(t):
    txn_id = t.open()
    t.commit(txn_id)
    t.rows("DELETE FROM txns")

    for unknown in (txn_id, 195):
        with pytest.raises(NoSuchTxnError, match=f"^No such transaction txnid:{unknown}$"):
            t.abort(unknown)


def test_t13_t14_abort_txns(t):
    first, second, third = t.open(3)
    t.commit(second)

    t.txns.abort_txns([[AbortRequest(one) for one in (first, second, 99, first)], []])

    assert [t.state(one) for one in (first, second, third)] == ["aborted", "committed", "open"]


def test_t16_commit_twice(t):
    txn_id = write(t)
    t.commit(txn_id, txn_id)

    assert t.count("completed_txn_components") == 1


def test_t16_commit_twice_in_one_batch(t):
    from metastore.txns.commit.service import CommitRequest

    writer, empty = write(t), t.open()

    answers = t.commits.commit_txn([CommitRequest(one) for one in (writer, empty, writer, empty, 99)])

    assert answers[:4] == [None] * 4
    assert str(answers[4]) == "No such transaction txnid:99"


def test_t17_commit_of_unknown_and_aborted(t):
    txn_id = t.open()
    t.abort(txn_id)

    with pytest.raises(NoSuchTxnError, match="^No such transaction txnid:9$"):
        t.commit(9)
    with pytest.raises(TxnAbortedError, match="^Transaction txnid:1 already aborted$"):
        t.commit(txn_id)


def test_t18_locks_end_with_their_transaction_and_others_stay(t):
    committed, aborted, other = write(t, "db.a"), write(t, "db.b"), write(t, "db.c")
    reader = t.open()
    t.lock(reader, "db.d", Operation.SELECT, LockType.SHARED_READ)

    t.commit(committed, reader)
    t.abort(aborted)

    assert t.rows("SELECT DISTINCT txn_id FROM locks") == [(other,)]


def test_t19_the_guard(database):
    t = Transactions(database, replace(TxnSettings(), max_open_txns=10, count_open_txns_interval=seconds(0)))
    ids = t.open(10)
    refusal = "^Maximum allowed number of open transactions has been reached. See hive.max.open.txns.$"

    with pytest.raises(MetaError, match=refusal):
        t.open()
    t.commit(ids[0])
    with pytest.raises(MetaError, match=refusal):
        t.open()
    t.commit(ids[1])
    assert t.open() == 11


def test_t20_read_only(t):
    reader = t.open(kind=TxnType.READ_ONLY)
    writer = t.open()

    assert t.txns.get_open_txns() == (2, [writer], b"", reader)
    assert [one.id for one in shown_txns(t.txns)[1]] == [reader, writer]


def test_t21_excluded_types(t):
    t.open()
    t.open(kind=TxnType.READ_ONLY)
    t.open(kind=TxnType.COMPACTION)

    assert t.txns.get_open_txns([]).open_txns == [1, 2, 3]
    assert t.txns.get_open_txns([TxnType.READ_ONLY, TxnType.COMPACTION]).open_txns == [1]


def test_t22_read_only_commits_without_the_mutex(t):
    reader = t.open(kind=TxnType.READ_ONLY)
    with t.db.begin() as pg:
        pg.sql("SELECT FROM txn_counter FOR UPDATE")
        in_another_thread(t.commit, reader)

    assert t.state(reader) == "committed"


def in_another_thread(call, *arguments):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(call, *arguments).result(timeout=60)


def test_t26_t27_t28_replication_opens_and_ends_by_source_id(t):
    request = OpenRequest(2, "ann", "h1", txn_type=TxnType.REPL_CREATED, repl_policy="db.*", sources=(71, 72))
    targets = list(raised(t.txns.open_txns([request])))

    assert list(raised(t.txns.open_txns([request]))) == targets == [1, 2]
    assert t.txns.abort_txn([AbortRequest(99, repl_policy="db.*", replays=True)]) == [None]
    assert t.txns.abort_txn([AbortRequest(72, AbortCode.REPL_REPLAYED, "ann", "db.*", replays=True)]) == [None]
    assert t.state(2) == "aborted"
    assert t.rows("SELECT source_txn_id FROM repl_txn_map") == [(71,)]


def test_t26_the_form_of_3_1_says_so_by_the_sources(t):
    request = OpenRequest(2, "ann", "h1", repl_policy="db.*", sources=(71, 72))

    assert list(raised(t.txns.open_txns([request]))) == list(raised(t.txns.open_txns([request])))


def test_t27_t29_a_replayed_commit(t):
    from metastore.ids import TableName
    from metastore.txns.commit.service import CommitRequest

    table = TableName("hive", "db", "t")
    t.txns.open_txns([OpenRequest(1, "a", "h", txn_type=TxnType.REPL_CREATED, repl_policy="db.*", sources=(71,))])
    commit = CommitRequest(71, None, "db.*", replays=True, writes=((table, "p=1", 5), (table, "p=2", 5)))

    assert t.commits.commit_txn([commit, commit]) == [None, None]
    assert t.state(1) == "committed"
    assert t.rows("SELECT partition, write_id, update_delete FROM completed_txn_components ORDER BY 1") == [
        ("p=1", 5, False), ("p=2", 5, False)]
    assert t.count("repl_txn_map") == 0


def test_t30_reasons(t):
    first, second = t.open(2)
    t.abort(first, AbortCode.ROLLBACK)
    t.abort(second)

    assert t.rows("SELECT abort_code, abort_reason FROM txns ORDER BY id") == [
        (50005, "aborted by a rollback of its client (ann at h1)"),
        (50000, "aborted by a client, without a reason (ann at h1)")]


def test_t31_50000_replicated_transactions(t):
    request = OpenRequest(50_000, "a", "h", txn_type=TxnType.REPL_CREATED, repl_policy="p", sources=tuple(range(50_000)))

    ids = list(raised(t.txns.open_txns([request])))

    assert ids == list(range(1, 50_001))
    t.txns.abort_txns([[AbortRequest(one) for one in ids]])
    assert t.rows("SELECT count(*) FROM txns WHERE state = 'open'") == [(0,)]


def test_t33_nothing_is_added_to_a_committed_one(t):
    txn_id = t.open()
    t.commit(txn_id)
    committed = "^Transaction txnid:1 is already committed.$"

    with pytest.raises(NoSuchTxnError, match=committed):
        t.lock(txn_id, "db.t", Operation.INSERT)
    with pytest.raises(NoSuchTxnError, match=committed):
        t.partitions(txn_id, "db.t", "p=1")
    with pytest.raises(NoSuchTxnError, match=committed):
        t.allocate("db.t", txn_id)
    assert [t.count(table) for table in ("locks", "txn_components", "txn_write_ids", "next_write_ids")] == [0, 0, 0, 0]


def test_seeding_the_counter(t):
    t.open()
    t.txns.seed_txn_id(1000)

    assert t.open() == 1000
    assert t.txns.get_open_txns().open_txns == [1, 1000]
    with pytest.raises(InvalidRequestError, match="^Invalid txnId seed 5, the highWaterMark is 1000$"):
        t.txns.seed_txn_id(5)
    assert t.open() == 1001


def test_a_batch_of_openings_gets_disjoint_consecutive_ids(t):
    answers = t.txns.open_txns([OpenRequest(2, "a", "h"), OpenRequest(0, "b", "h"), OpenRequest(1, "c", "h"),
                                OpenRequest(3, "d", "h", txn_type=TxnType.READ_ONLY)])

    assert [list(one) for one in answers if not isinstance(one, Exception)] == [[1, 2], [3], [4, 5, 6]]
    assert t.rows('SELECT id, "user", type FROM txns ORDER BY id') == [
        (1, "a", 0), (2, "a", 0), (3, "c", 0), (4, "d", 2), (5, "d", 2), (6, "d", 2)]


# -------------------------------------------------------------------------------------------- heartbeats and time-outs


def test_h01_h02_heartbeats_of_what_is_not_there(t):
    aborted, committed = t.open(2)
    t.abort(aborted)
    t.commit(committed)

    with pytest.raises(TxnAbortedError, match="^Transaction txnid:1 already aborted$"):
        t.heartbeat(aborted)
    with pytest.raises(NoSuchTxnError, match="^No such txn: 2$"):
        t.heartbeat(committed)
    with pytest.raises(NoSuchTxnError, match="^No such transaction txnid:9$"):
        t.heartbeat(9)
    with pytest.raises(NoSuchLockError, match="^No such lock: 9$"):
        t.heartbeat(0, 9)
    t.heartbeat(0, 0)


def bare_lock(t, kind=LockType.EXCLUSIVE):
    wanted = WantedLock(kind, LockObject("hive", "db", "t"))
    return raised(t.locks.lock([LockRequest((wanted,))])).lock_id


def test_h03_a_lock_with_heartbeats_survives(t, test_clock):
    lock_id = bare_lock(t)
    for _ in range(3):
        test_clock.advance(seconds(200))
        t.heartbeat(0, lock_id)
        assert t.reaper.tick().expired_locks == 0


def test_h04_a_lock_without_heartbeats_expires(t, test_clock):
    lock_id = bare_lock(t)
    test_clock.advance(seconds(301))

    assert t.reaper.tick().expired_locks == 1
    with pytest.raises(NoSuchLockError):
        raised(t.locks.check_lock([lock_id]))


def test_h05_a_range_is_really_refreshed(t, test_clock):
    t.open(3)
    test_clock.advance(seconds(100))

    [answer] = t.txns.heartbeat_txn_range([(1, 3)])

    assert answer == (frozenset(), frozenset())
    assert t.rows("SELECT count(*) FROM txns WHERE last_heartbeat_at > started_at + interval '90 s'") == [(3,)]


def test_h06_h07_h08_a_range_with_gaps(t, test_clock):
    t.open(4)
    t.commit(1)
    t.abort(3)
    test_clock.advance(seconds(100))

    assert t.txns.heartbeat_txn_range([(1, 5), (2, 2)]) == [({3}, {1, 5}), (set(), set())]
    assert t.rows("SELECT id FROM txns WHERE last_heartbeat_at > started_at ORDER BY id") == [(2,), (4,)]


def test_a_range_is_bounded(t):
    [refusal] = t.txns.heartbeat_txn_range([(1, 2**62)])

    assert isinstance(refusal, InvalidRequestError)


def test_h09_503_stale_ones_in_one_pass(t, test_clock):
    t.open(503)
    test_clock.advance(seconds(301))

    assert t.reaper.tick().expired_txns == 503
    assert t.rows("SELECT DISTINCT state, abort_code FROM txns") == [("aborted", 50004)]
    [(reason,)] = t.rows("SELECT abort_reason FROM txns WHERE id = 1")
    assert reason.startswith("aborted because no heartbeat of ann@h1 arrived for 301 s")


def test_h10_replicated_ones_live_longer(t, test_clock):
    t.open(3)
    t.txns.open_txns([OpenRequest(3, "a", "h", txn_type=TxnType.REPL_CREATED, repl_policy="p", sources=(1, 2, 3))])
    test_clock.advance(seconds(301))

    assert t.reaper.tick().expired_txns == 3
    assert t.txns.get_open_txns([]).min_open_txn == 4
    test_clock.advance(seconds(11 * 86400))
    assert t.reaper.tick().expired_txns == 3
    assert t.count("repl_txn_map") == 0


def test_h11_a_heartbeat_in_time_wins(t, test_clock):
    stale, revived = t.open(2)
    test_clock.advance(seconds(301))
    t.heartbeat(revived)

    t.reaper.tick()

    assert [t.state(stale), t.state(revived)] == ["aborted", "open"]


def test_h11_a_heartbeat_under_way_wins(t, test_clock):
    txn_id = t.open()
    test_clock.advance(seconds(301))
    with t.db.begin() as pg:
        pg.sql("UPDATE txns SET last_heartbeat_at = metastore_now() WHERE id = %s", (txn_id,))
        in_another_thread(t.reaper.tick)

    assert t.state(txn_id) == "open"


def test_h12_checking_a_waiting_lock_keeps_the_transaction_alive(t, test_clock):
    bare_lock(t)
    txn_id = t.open()
    lock_id = -t.lock(txn_id, "db.t", Operation.SELECT, LockType.SHARED_READ)
    for _ in range(8):
        test_clock.advance(seconds(60))
        raised(t.locks.check_lock([lock_id]))
        assert t.reaper.tick().expired_txns == 0


def test_h13_a_lock_of_a_transaction_does_not_expire_by_itself(t, test_clock):
    txn_id = write(t)
    test_clock.advance(seconds(301))
    t.heartbeat(txn_id)

    assert t.reaper.tick().expired_locks == 0
    assert t.count("locks") == 1


def test_h14_after_expiry_a_commit_is_refused_and_a_waiter_goes_on(t, test_clock):
    expired = t.write("db.t", Operation.UPDATE, kind=LockType.EXCLUSIVE)
    empty = t.open()
    test_clock.advance(seconds(200))
    waiter = t.open()
    lock_id = -t.lock(waiter, "db.t", Operation.SELECT, LockType.SHARED_READ)
    assert lock_id > 0
    test_clock.advance(seconds(101))

    t.reaper.tick()

    for txn_id in (expired, empty):
        with pytest.raises(TxnAbortedError, match=f"^Transaction txnid:{txn_id} already aborted$"):
            t.commit(txn_id)
    assert raised(t.locks.check_lock([lock_id])).state == "acquired"


def test_h15_two_reapers_abort_each_one_once(t, test_clock):
    from concurrent.futures import ThreadPoolExecutor

    t.open(500)
    test_clock.advance(seconds(301))

    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: t.reaper.tick(), range(2)))

    assert sum(report.expired_txns for report in reports) == 500
    assert [report.failed for report in reports] == [{}, {}]


def test_a_batch_of_heartbeats_answers_each(t):
    t.open(2)
    lock_id = bare_lock(t)

    answers = t.txns.heartbeat([Heartbeat(1, 0), Heartbeat(9, 0), Heartbeat(0, lock_id), Heartbeat(2, 77), Heartbeat()])

    assert [str(one) for one in answers] == ["None", "No such transaction txnid:9", "None", "No such lock: 77", "None"]
