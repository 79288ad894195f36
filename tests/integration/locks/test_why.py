"""The walk over what PostgreSQL hands out equals the walk over every lock there is."""

import random
from datetime import timedelta

import pytest

from metastore.config import TxnSettings
from metastore.ids import TableName
from metastore.locks.orphans.rules import Gone, Left
from metastore.locks.rules import LockObject, LockRequest, LockType, WantedLock
from metastore.locks.why import rules as why
from metastore.locks.why import store as why_store
from metastore.locks.why.service import Question, WhyService
from tests.support.stored_locks import stored_locks

OBJECTS = [LockObject("hive", db, table, partition) for db in ("a", "b")
           for table, partition in (("", ""), ("t", ""), ("u", ""), ("t", "p=1"), ("t", "p=2"))]


def told(steps):
    return [(step.owner, set(step.waits_for), sorted(step.wanted), sorted(step.held), step.in_cycle) for step in steps]


@pytest.mark.parametrize("seed", range(16))
def test_nothing_that_matters_is_left_out(t, seed):
    chance = random.Random(seed)
    txns = [0, 0, *t.open(4)]
    for _ in range((3, 5, 8, 20)[seed % 4]):
        wanted = tuple(WantedLock(chance.choice(list(LockType)), chance.choice(OBJECTS)) for _ in range(chance.choice((1, 1, 2))))
        t.locks.lock([LockRequest(wanted, chance.choice(txns), "ann", "h1")])  # some are refused: victims of deadlocks
    every = sorted(stored_locks(t.db))
    questions = [*(Question(lock_id=number) for number in {lock.ext_id for lock in every}),
                 *(Question(txn_id=number) for number in txns[2:]),
                 *(Question(table=TableName("hive", db, table)) for db in "ab" for table in "tu")]

    for asked in questions:
        waits = why_store.select_waits(t.db, asked.lock_id, asked.txn_id, asked.table)
        assert told(why.walk(waits.locks, asked.includes)) == told(why.walk(every, asked.includes)), asked
        assert {why.owner_of(lock) for lock in waits.locks} <= waits.owners.keys()


@pytest.mark.parametrize(("lives", "expires_in"), [(False, 30), (True, 300)])
def test_an_orphan_expires_sooner(t, test_clock, lives, expires_in):
    """Nobody is there who could send a heartbeat for it; who has sent one before may come back."""
    wanted = WantedLock(LockType.EXCLUSIVE, OBJECTS[1])
    [held] = t.locks.lock([LockRequest((wanted,), 0, "ann", "h1")])
    if lives:
        t.heartbeat(lock_id=held.lock_id)
    test_clock.advance(timedelta(seconds=10))
    t.heartbeat(lock_id=held.lock_id) if lives else None
    t.locks.orphan(Left([Gone(held.lock_id, 0, at_once=False)], set(), set()))

    def told(*more):
        [owner] = WhyService(t.db, TxnSettings(), *more).explain(Question(lock_id=held.lock_id)).owners
        return owner.expires_in.total_seconds()

    assert expires_in - 20 < told(timedelta(seconds=30)) <= expires_in  # less what has passed since
    assert 260 < told() <= (300 if lives else 290)
