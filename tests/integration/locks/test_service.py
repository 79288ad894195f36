"""The lock calls on a real PostgreSQL; ids are those of tests/scripts/CASES."""

from datetime import timedelta

import pytest

from metastore.db.engine import Database, PgTx
from metastore.errors import InvalidRequestError, NoSuchLockError, NoSuchTxnError, TxnAbortedError, TxnOpenError
from metastore.locks import store
from metastore.locks.rules import LockRequest, LockState, Operation
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.txns.core.service import Heartbeat
from tests.integration.locks.conftest import wanted
from tests.support.answers import shown_locks


def acquired(locks, lock_id):
    return {row.state for row in shown_locks(locks) if row.lockid == lock_id}


def test_a_waiter_acquires_when_the_holder_is_gone(ask, check, unlock):  # L28, Z01
    first, _ = ask("X db.t")
    second, state = ask("X db.t")
    assert state == "waiting"
    assert check(second) == "waiting"

    unlock(first)

    assert check(second) == "acquired"
    assert check(second) == "acquired"


def test_first_come_first_served(ask, check, unlock):  # L22
    reader, _ = ask("S db.t")
    writer, writer_state = ask("X db.t")
    late, late_state = ask("S db.t")
    assert (writer_state, late_state) == ("waiting", "waiting")

    unlock(reader)
    assert check(late) == "waiting"
    assert check(writer) == "acquired"
    unlock(writer)
    assert check(late) == "acquired"


def test_an_abort_lets_the_next_one_in(ask, check, open_txn, abort):  # L15, L21
    one, other = open_txn(), open_txn()
    ask("E db.t", one)
    waiter, state = ask("X db", other)
    assert state == "waiting"

    abort(one)

    assert check(waiter) == "acquired"


def test_a_transaction_does_not_wait_for_itself(ask, open_txn):  # L24
    txn_id = open_txn()

    assert [ask(f"{letter} db.t", txn_id)[1] for letter in "SEX"] == ["acquired"] * 3


def test_a_request_is_granted_whole_or_not_at_all(ask, locks, check, unlock):  # L26, L27
    holder, _ = ask("X db.t.p=2")
    both, state = ask("X db.t.p=1 + X db.t.p=2")
    assert state == "waiting"
    assert acquired(locks, both) == {ttypes.LockState.WAITING}
    _, third = ask("X db.t.p=1")
    assert third == "waiting"

    unlock(holder)

    assert check(both) == "acquired"
    assert acquired(locks, both) == {ttypes.LockState.ACQUIRED}
    unlock(both)
    assert acquired(locks, both) == set()


def test_calls_of_one_batch_see_each_other_in_order(locks):
    requests = [LockRequest(tuple(wanted("X db.t"))) for _ in range(3)] + [LockRequest(tuple(wanted("X db.u")))]

    answers = locks.lock(requests)

    assert [answer.state.value for answer in answers] == ["acquired", "waiting", "waiting", "acquired"]
    ids = [answer.lock_id for answer in answers]
    assert ids == sorted(ids)


def test_one_bad_call_does_not_hurt_the_batch(locks, open_txn, abort):  # L40
    aborted = open_txn()
    abort(aborted)

    fine, gone, unknown, empty, also_fine = locks.lock([
        LockRequest(tuple(wanted("X db.t"))), LockRequest(tuple(wanted("X db.t")), aborted),
        LockRequest(tuple(wanted("X db.t")), 4711), LockRequest(()), LockRequest(tuple(wanted("X db.u")))])

    assert (fine.state, also_fine.state) == (LockState.ACQUIRED, LockState.ACQUIRED)
    assert isinstance(gone, TxnAbortedError)
    assert str(gone) == f"Transaction txnid:{aborted} already aborted"
    assert isinstance(unknown, NoSuchTxnError)
    assert str(unknown) == "No such transaction txnid:4711"
    assert isinstance(empty, InvalidRequestError)
    assert len(shown_locks(locks)) == 2


def test_a_committed_transaction_gets_no_locks(ask, database, open_txn):  # T33
    txn_id = open_txn()
    database.once("UPDATE txns SET state = 'committed', commit_id = id WHERE id = %s", (txn_id,))

    with pytest.raises(NoSuchTxnError, match=f"Transaction txnid:{txn_id} is already committed"):
        ask("S db.t", txn_id)


def test_zero_wait_read_leaves_nothing_behind(ask, locks, open_txn):  # L33
    ask("X db.t")
    txn_id = open_txn()

    lock_id, state = ask("S db.t", txn_id, zero_wait_read=True)

    assert state == "not_acquired"
    assert acquired(locks, lock_id) == set()
    assert len(shown_locks(locks)) == 1


def test_unknown_locks(check, unlock):  # L38, L39
    unlock(4711)
    with pytest.raises(NoSuchLockError, match="No such lock lockid:4711"):
        check(4711)


def test_after_an_abort_the_lock_is_unknown(ask, check, open_txn, abort):  # L38
    txn_id = open_txn()
    lock_id, _ = ask("S db.t", txn_id)

    abort(txn_id)

    with pytest.raises(NoSuchLockError):
        check(lock_id)


def test_unlock_of_a_transactions_locks(ask, check, unlock, open_txn):  # L39
    holder, waiter = open_txn(), open_txn()
    held, _ = ask("X db.t", holder)
    waiting, _ = ask("X db.t", waiter)

    with pytest.raises(TxnOpenError, match="Unlocking locks associated with transaction not permitted"):
        unlock(held)
    assert check(held) == "acquired"
    unlock(waiting)
    with pytest.raises(NoSuchLockError):
        check(waiting)


def test_show_locks(ask, locks, open_txn):  # L41, L43
    txn_id = open_txn()
    whole, _ = ask("X db")
    inside, _ = ask("S db.t", txn_id)
    other, _ = ask("S other.t.p=1")

    rows = {row.lockid: row for row in shown_locks(locks)}

    assert rows[whole].state == ttypes.LockState.ACQUIRED
    assert rows[whole].acquiredat is not None
    assert rows[whole].lastheartbeat > 0
    assert rows[inside].state == ttypes.LockState.WAITING
    assert rows[inside].acquiredat is None
    assert rows[inside].lastheartbeat == 0
    assert rows[inside].txnid == txn_id
    assert (rows[inside].blockedByExtId, rows[inside].blockedByIntId) == (whole, 1)
    assert rows[other].state == ttypes.LockState.ACQUIRED
    assert list(rows) == [other, whole, inside]


def test_the_recorded_blocker_follows_the_queue(ask, check, locks, unlock):  # L43
    first, _ = ask("X db.t")
    second, _ = ask("X db.t")
    third, _ = ask("X db.t")
    [before] = [(row.blockedByExtId, row.blockedByIntId) for row in shown_locks(locks) if row.lockid == third]
    unlock(first)

    check(third)
    [between] = [(row.blockedByExtId, row.blockedByIntId) for row in shown_locks(locks) if row.lockid == third]
    unlock(second)
    check(third)
    [after] = [(row.blockedByExtId, row.blockedByIntId) for row in shown_locks(locks) if row.lockid == third]

    assert (before, between, after) == ((first, 1), (second, 1), (None, None))


@pytest.mark.parametrize(("filters", "expected"), [
    ({}, {"db", "db.t", "db.t.p=1", "other.t"}),
    ({"dbname": "db"}, {"db", "db.t", "db.t.p=1"}),
    ({"dbname": "db", "tablename": "t"}, {"db.t", "db.t.p=1"}),
    ({"dbname": "db", "tablename": "t", "partname": "p=1"}, {"db.t.p=1"}),
    ({"tablename": "t"}, {"db.t", "db.t.p=1", "other.t"}),
    ({"dbname": "@other#db"}, set()),
    ({"txnid": 0}, {"db", "db.t", "db.t.p=1"}),
])
def test_filters_are_exact(ask, locks, open_txn, filters, expected):  # L42, LOCK-13
    for name in ("db", "db.t", "db.t.p=1"):
        ask(f"S {name}")
    ask("S other.t", open_txn())

    rows = shown_locks(locks, **filters)

    assert {".".join(filter(None, (row.dbname, row.tablename, row.partname))) for row in rows} == expected


def test_components_are_recorded_with_the_write_id(ask, database, open_txn):  # Z02 with the ids allocated first
    txn_id = open_txn()
    database.once("""INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id) VALUES (%s, 'hive', 'db', 't', 7)""",
                  (txn_id,))

    ask("S db.t + S db.u", txn_id, Operation.INSERT)
    ask("S db.t", txn_id, Operation.INSERT)

    assert sorted(database.once("""SELECT "table", operation, write_id FROM txn_components WHERE txn_id = %s""", (txn_id,)),
                  key=str) == [("t", "i", 7), ("u", "i", None)]


def test_silent_locks_without_a_transaction_expire(ask, check, reaper, test_clock, unlock):  # H04
    lock_id, _ = ask("X db.t")
    waiter, _ = ask("X db.t")
    test_clock.advance(timedelta(seconds=250))
    assert reaper.tick().expired_locks == 0
    assert check(waiter) == "waiting"
    test_clock.advance(timedelta(seconds=51))

    assert reaper.tick().expired_locks == 1

    assert check(waiter) == "acquired"
    with pytest.raises(NoSuchLockError):
        check(lock_id)
    unlock(lock_id)


def test_a_heartbeat_keeps_a_lock(ask, check, reaper, txns, test_clock):  # H03
    lock_id, _ = ask("X db.t")
    for _ in range(5):
        test_clock.advance(timedelta(seconds=200))
        assert txns.heartbeat([Heartbeat(0, lock_id)]) == [None]
        assert reaper.tick().expired_locks == 0

    assert check(lock_id) == "acquired"


def test_checking_keeps_the_waiting_transaction_alive(ask, check, open_txn, reaper, txns, test_clock):  # H12
    holder, _ = ask("X db.t")
    waiter, _ = ask("X db.t", open_txn())
    for _ in range(8):
        test_clock.advance(timedelta(seconds=60))
        txns.heartbeat([Heartbeat(0, holder)])
        assert check(waiter) == "waiting"
        assert reaper.tick().expired_txns == 0


def test_locks_of_open_transactions_do_not_expire_by_themselves(ask, check, open_txn, reaper, txns, test_clock):  # H13
    txn_id = open_txn()
    lock_id, _ = ask("X db.t", txn_id)
    test_clock.advance(timedelta(days=2))
    txns.heartbeat([Heartbeat(txn_id)])

    report = reaper.tick()

    assert (report.expired_locks, report.expired_txns) == (0, 0)
    assert check(lock_id) == "acquired"


def test_the_locks_of_an_expired_transaction_are_free(ask, check, open_txn, reaper, test_clock):  # H14
    lock_id, _ = ask("X db.t", open_txn())
    test_clock.advance(timedelta(seconds=200))
    waiter, _ = ask("X db.t")
    test_clock.advance(timedelta(seconds=200))

    assert reaper.tick().expired_txns == 1

    assert check(waiter) == "acquired"
    with pytest.raises(NoSuchLockError):
        check(lock_id)


def test_a_lock_whose_transaction_ended_does_not_outlive_the_next_round(ask, database, reaper, open_txn):
    txn_id = open_txn()
    ask("X db.t", txn_id)
    database.once("UPDATE txns SET state = 'aborted' WHERE id = %s", (txn_id,))

    assert reaper.tick().expired_locks == 1


def test_a_request_for_thousands_of_partitions(ask, check, locks, open_txn, unlock):
    holder, _ = ask("X db.t.p=4999")
    many = " + ".join(f"S db.t.p={number}" for number in range(5000))

    lock_id, state = ask(many, open_txn())
    assert state == "waiting"
    unlock(holder)
    assert check(lock_id) == "acquired"

    _, state = ask("X db.t.p=17")
    assert state == "waiting"
    _, state = ask("X db.t.p=5001")
    assert state == "acquired"
    assert len(shown_locks(locks)) == 5002


def test_what_others_lock_costs_nothing(database):
    """With 20,000 locks of others, finding who is in the way reads a handful of pages, not the table."""
    database.once("""
        INSERT INTO locks (ext_id, int_id, catalog, db, "table", partition, type, state, requested_at, "user", host)
        SELECT n, 1, 'hive', 'db', 't' || n % 50, 'p=' || n, 'shared_read', 'acquired', metastore_now(), 'u', 'h'
        FROM generate_series(1, 20000) AS n""")
    database.once("ANALYZE locks")

    [(plan,)] = database.once(f"""
        EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
        WITH wanted (ext_id, txn_id, catalog, db, "table", partition, type) AS (VALUES
          (NULL::bigint, 0::bigint, 'hive', 'db', 't7', '', 'shared_read'), (NULL, 0, 'hive', 'db', 'new', '', 'exclusive'))
        {store._AHEAD_OF_WANTED}""")

    assert plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"] < 50


def test_statements_per_call(database, locks, open_txn, monkeypatch):
    """The budget of ADR 12: at most two round trips between BEGIN and COMMIT."""
    sent = []
    for owner, name, original in ((PgTx, "sql", PgTx.sql), (PgTx, "finish", PgTx.finish), (Database, "once", Database.once)):
        def counting(self, query, parameters=None, *, original=original, **more):
            sent.append(query)
            return original(self, query, parameters, **more)

        monkeypatch.setattr(owner, name, counting)
    txn_id = open_txn()
    sent.clear()
    [answer] = locks.lock([LockRequest(tuple(wanted("S db.t", Operation.INSERT)), txn_id)])
    assert len(sent) == 1
    sent.clear()
    locks.check_lock([answer.lock_id])
    assert len(sent) == 1
    sent.clear()
    locks.unlock([answer.lock_id])
    assert len(sent) == 1
