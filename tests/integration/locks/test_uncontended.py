"""Requests that are granted without a look at the queue: what they get is exactly what the queue would have given."""

import random

import pytest

from metastore.db.prepared import Prepared
from metastore.locks import rules, store
from metastore.locks.rules import LockObject, LockRequest, LockState, LockType, Operation, WantedLock
from metastore.locks.service import LockResult
from tests.support.answers import shown_locks
from tests.support.transactions import EMPTY, Transactions

OUTCOME = """SELECT ext_id, int_id, txn_id, db, "table", partition, type, state, "user", agent_info, blocked_by_ext_id,
             acquired_at IS NULL, last_heartbeat_at IS NULL FROM locks ORDER BY 1, 2"""
COMPONENTS = 'SELECT txn_id, db, "table", partition, operation, write_id FROM txn_components ORDER BY 1, 2, 3, 4, 5'


def request(chance, txn_id):
    def lock():
        table = chance.choice(["t", "t", "u", "v", "w", ""])
        partition = chance.choice(["", "p=1", "p=2"]) if table else ""
        operation = chance.choice([Operation.INSERT, Operation.UPDATE, Operation.SELECT, Operation.UNSET])
        return WantedLock(chance.choice(list(LockType)), LockObject("hive", chance.choice(["db", "db", "other"]), table, partition),
                          operation, is_transactional=chance.random() < 0.8,
                          is_dynamic_partition_write=chance.random() < 0.2)

    return LockRequest(tuple(lock() for _ in range(chance.randint(1, 2))), txn_id, "ann", "h1", "agent")


def story(t, seed):
    """Run a few batches of requests, with releases and ends between; return the answers and the rows stored afterwards."""
    t.db.once(EMPTY)
    chance = random.Random(seed)
    txn_ids = t.open(4)
    t.allocate("db.t", *txn_ids[:2])
    t.abort(txn_ids.pop())
    told = []
    for _ in range(4):
        batch = [request(chance, chance.choice([0, 0, 0, *txn_ids])) for _ in range(chance.randint(1, 3))]
        answers = t.locks.lock(batch)
        told += [(answer.state, answer.lock_id) if isinstance(answer, LockResult) else str(answer) for answer in answers]
        granted = [answer.lock_id for one, answer in zip(batch, answers, strict=True)
                   if isinstance(answer, LockResult) and answer.state is LockState.ACQUIRED and not one.txn_id]
        t.locks.unlock(chance.sample(granted, len(granted) // 2))
        queued = [lock_id for lock_id, in t.rows("SELECT DISTINCT ext_id FROM locks ORDER BY ext_id")]
        told += [(answer.state, answer.lock_id) for answer in t.locks.check_lock(queued)]
        if len(txn_ids) > 1 and chance.random() < 0.5:
            t.abort(txn_ids.pop())
    return told, t.rows(OUTCOME), t.rows(COMPONENTS)


def without_ids(result):
    """Ids are numbers of a sequence that goes on when a request is looked at twice: only their order counts."""
    told, locks, components = result
    ids = sorted({one[1] for one in told if isinstance(one, tuple)} | {row[0] for row in locks})
    place = {one: ids.index(one) for one in ids}
    return ([(one[0], place[one[1]]) if isinstance(one, tuple) else one for one in told],
            [(place[row[0]], *row[1:10], place.get(row[10]), *row[11:]) for row in locks], components)


def test_the_queue_would_have_granted_the_same(database, monkeypatch):
    t, original, ways = Transactions(database), store.lock_uncontended, set()
    for seed in range(60):
        monkeypatch.setattr(store, "lock_uncontended", lambda *args: (
            done := original(*args), ways.add(done is not None))[0])
        quick = story(t, seed)
        monkeypatch.setattr(store, "lock_uncontended", lambda *_: None)

        assert without_ids(quick) == without_ids(story(t, seed)), seed
    assert ways == {True, False}


def one(table, txn_id=0, partition="", db="db"):
    return LockRequest((WantedLock(LockType.SHARED_READ, LockObject("hive", db, table, partition)),), txn_id)


@pytest.mark.parametrize(("batch", "apart"), [
    ([one("t")], True),
    ([one("t"), one("u")], True),
    ([one("t"), one("t", db="other")], True),
    ([one("t", partition="p=1"), one("t", partition="p=2")], False),
    ([one("t"), one("")], False),
    ([one("")], False),
    ([LockRequest(())], False),
    ([one("t"), LockRequest(())], False),
    ([LockRequest(one("t").components * 1000)], True),
    ([LockRequest(one("t").components * 1001)], False),
])
def test_apart(batch, apart):
    assert rules.apart(batch) is apart


def test_nothing_is_left_of_an_attempt(database, locks):
    t = Transactions(database)
    t.locks.lock([one("t")._replace(components=(WantedLock(LockType.EXCLUSIVE, LockObject("hive", "db", "t")),))])
    before = t.rows(OUTCOME)

    assert store.lock_uncontended(database, [one("t")]) is None
    assert store.lock_uncontended(database, [one("u", txn_id=99)]) is None
    assert t.rows(OUTCOME) == before
    assert len(shown_locks(locks)) == 1


def test_both_ways_queue_at_the_same_tail(database):
    """Requests that are decided and requests that are not exclude each other by one advisory lock for each database."""
    [(source,)] = database.once("SELECT prosrc FROM pg_proc WHERE proname = 'lock_uncontended'")

    assert f"pg_advisory_xact_lock({store._ADVISORY_CLASS}, tail)" in source


def test_who_is_granted_by_sql_is_who_the_rules_grant(database, monkeypatch):
    """And the second round trip grants only what SQL left out."""
    t = Transactions(database)
    seeds = range(12)
    rules_alone = Prepared.__new__(Prepared)
    rules_alone.statements = tuple(one for one in store._GRANT_AND_SELECT.statements if "SET state" not in one.prepare)
    rules_alone.names = frozenset(one.name for one in rules_alone.statements)
    rules_alone.execute = "; ".join(one.execute for one in rules_alone.statements)
    by_rules = []
    original = store.update_acquired
    monkeypatch.setattr(store, "update_acquired", lambda db, ids, notes: (by_rules.extend(ids), original(db, ids, notes))[1])
    told = [without_ids(story(t, seed)) for seed in seeds]
    left = len(by_rules)
    monkeypatch.setattr(store, "_GRANT_AND_SELECT", rules_alone)

    assert [without_ids(story(t, seed)) for seed in seeds] == told
    assert left < len(by_rules) - left


def exclusive(txn_id=0):
    return one("t", txn_id)._replace(components=(WantedLock(LockType.EXCLUSIVE, LockObject("hive", "db", "t")),))


def test_what_queues_behind_others_does_not_try_the_quick_way(locks, monkeypatch):
    tried = []
    original = store.lock_uncontended
    monkeypatch.setattr(store, "lock_uncontended", lambda *args: (tried.append(args), original(*args))[1])
    [first] = locks.lock([exclusive()])
    [second] = locks.lock([exclusive()])
    [third] = locks.lock([exclusive()])

    assert len(tried) == 2
    locks.unlock([first.lock_id, second.lock_id, third.lock_id])
    [alone] = locks.lock([exclusive()])
    [again] = locks.lock([one("t", partition="p=1")])
    assert (alone.state.value, again.state.value) == ("acquired", "waiting")
    assert len(tried) == 3
