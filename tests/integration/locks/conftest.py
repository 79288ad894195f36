"""Locks and transactions without a server in front."""

import pytest

from metastore.config import TxnSettings
from metastore.housekeeping.service import PurgeService
from metastore.locks.rules import LockObject, LockRequest, LockType, Operation, WantedLock
from metastore.locks.service import LockService
from metastore.loops.reaper import Reaper
from metastore.txns.core.service import AbortRequest, OpenRequest, TxnService

LETTERS = {"S": LockType.SHARED_READ, "W": LockType.SHARED_WRITE, "E": LockType.EXCL_WRITE, "X": LockType.EXCLUSIVE}


@pytest.fixture
def locks(database):
    return LockService(database)


@pytest.fixture
def txns(database):
    return TxnService(database, TxnSettings())


@pytest.fixture
def reaper(database):
    return Reaper(PurgeService(database, TxnSettings()))


@pytest.fixture
def open_txn(txns):
    def opened():
        [[txn_id]] = txns.open_txns([OpenRequest(1, "ann", "h1")])
        return txn_id
    return opened


@pytest.fixture
def abort(txns):
    def aborted(txn_id):
        assert txns.abort_txn([AbortRequest(txn_id)]) == [None]
    return aborted


def wanted(text, operation=Operation.SELECT):
    """``X db.t + S db.u``: the components of a request."""
    for one in text.split(" + "):
        letter, name = one.split(" ")
        yield WantedLock(LETTERS[letter], LockObject("hive", *name.split(".", 2)), operation, is_transactional=True)


@pytest.fixture
def ask(locks):
    """Ask for locks, one call; gives (lock id, state) or raises what the service answers."""
    def asked(text, txn_id=0, operation=Operation.SELECT, **how):
        [answer] = locks.lock([LockRequest(tuple(wanted(text, operation)), txn_id, "ann", "h1", **how)])
        if isinstance(answer, Exception):
            raise answer
        return answer.lock_id, answer.state.value
    return asked


@pytest.fixture
def check(locks):
    def checked(lock_id):
        [answer] = locks.check_lock([lock_id])
        if isinstance(answer, Exception):
            raise answer
        return answer.state.value
    return checked


@pytest.fixture
def unlock(locks):
    def unlocked(lock_id):
        [answer] = locks.unlock([lock_id])
        if answer is not None:
            raise answer
    return unlocked
