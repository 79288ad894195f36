"""Waiting for locks as DbLockManager does, against a server that plays a script."""

import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest
from thrift.Thrift import TApplicationException

from metastore.client.lock_manager import LockManager, LockNotAcquiredError, LockWait, told_wait
from metastore.client.lock_plan import LockPlan, StatementLocks
from metastore.errors import TxnAbortedError
from metastore.locks.rules import LockType, Operation
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_gen.operators.ttypes import LockWhyResponse

ACQUIRED, WAITING, REFUSED = ttypes.LockState.ACQUIRED, ttypes.LockState.WAITING, ttypes.LockState.NOT_ACQUIRED
WANTED = StatementLocks((LockPlan(LockType.EXCL_WRITE, Operation.UPDATE, "db", "t"),))
OWNER = {"user": "ann", "host": "h1", "agent_info": "query 1"}


class Pauses(threading.Event):
    """Notes how long it was waited for, and does not wait."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def wait(self, timeout=None):
        self.seconds.append(timeout)
        return self.is_set()


def scripted(first, *then, shown=(), why=None):
    """Build a client whose lock() answers ``first`` and whose check_lock() answers the others in turn.

    ``why``: the client's answer about a wait; None: the client does not know that method.
    """
    sent = []

    def metastore_lock_why(request):
        if why is None:
            raise TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name")
        return why
    answers = list(then)

    def check_lock(request):
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return ttypes.LockResponse(request.lockid, answer)

    return SimpleNamespace(
        sent=sent, lock=lambda request: sent.append(request) or ttypes.LockResponse(7, first, errorMessage="because"),
        check_lock=check_lock, unlock=sent.append, metastore_lock_why=metastore_lock_why, show_locks=lambda _: ttypes.ShowLocksResponse(list(shown)))


def test_the_default_patience_is_hives():
    delays = list(LockWait().delays())

    assert [delay.total_seconds() for delay in delays[:4]] == [0.1, 0.2, 0.4, 0.8]
    assert len(delays) == 100
    assert sum(delays, timedelta()) == timedelta(minutes=91, seconds=42, milliseconds=300)


def test_pauses_never_stay_below_15_seconds():
    assert max(LockWait(ceiling=timedelta(seconds=1)).delays()) == timedelta(seconds=15)


def test_granted_at_once():
    client = scripted(ACQUIRED)

    assert LockManager(client).acquire(WANTED, txn_id=5, **OWNER) == 7
    [request] = client.sent
    assert (request.txnid, request.user, request.hostname, request.agentInfo) == (5, "ann", "h1", "query 1")
    [component] = request.component
    assert (component.type, component.level, component.dbname, component.tablename) == (
        ttypes.LockType.EXCL_WRITE, ttypes.LockLevel.TABLE, "db", "t")
    assert (component.operationType, component.isTransactional) == (ttypes.DataOperationType.UPDATE, True)


def test_granted_after_some_checks():
    pauses = Pauses()

    assert LockManager(scripted(WAITING, WAITING, WAITING, ACQUIRED)).acquire(WANTED, stop=pauses, **OWNER) == 7
    assert pauses.seconds == [0.1, 0.2, 0.4]


def test_refused():
    with pytest.raises(LockNotAcquiredError, match="refused: because"):
        LockManager(scripted(REFUSED)).acquire(WANTED, **OWNER)


def test_given_up_and_withdrawn_naming_the_holder():
    mine = ttypes.ShowLocksResponseElement(
        lockid=7, lockIdInternal=1, dbname="db", tablename="t", state=WAITING, type=ttypes.LockType.EXCL_WRITE, txnid=5,
        blockedByExtId=3, blockedByIntId=2, user="ann", hostname="h1", agentInfo="query 1")
    holder = ttypes.ShowLocksResponseElement(
        lockid=3, lockIdInternal=2, dbname="db", tablename="t", state=ACQUIRED, type=ttypes.LockType.EXCLUSIVE, txnid=4,
        acquiredat=1_700_000_000_000, user="bob", hostname="h2", agentInfo="nightly")
    client = scripted(WAITING, WAITING, shown=[holder, mine])

    with pytest.raises(LockNotAcquiredError) as caught:
        LockManager(client, LockWait(retries=3)).acquire(WANTED, txn_id=5, stop=Pauses(), **OWNER)

    assert str(caught.value) == (
        "The locks could not be had within 0:00:00.700000: db.t is locked EXCLUSIVE by transaction 4 of bob@h2 (nightly) "
        "since 2023-11-14 22:13:20 UTC; `metastore txn abort 4` ends it")
    assert client.sent[-1] == ttypes.UnlockRequest(7)


def test_given_up_telling_who_has_to_end_first():
    why = LockWhyResponse(True, True, [], "Lock 7 waits for transaction 2 of eve@h3 (shell), `metastore txn abort 2` ends it now.")
    for answer, expected in ((why, why.explanation),
                             (LockWhyResponse(False, False, [], "?"), "lock 7 is not waiting any more; try again")):
        with pytest.raises(LockNotAcquiredError) as caught:
            LockManager(scripted(WAITING, WAITING, why=answer), LockWait(retries=3)).acquire(WANTED, stop=Pauses(), **OWNER)

        assert str(caught.value) == f"The locks could not be had within 0:00:00.700000: {expected}"


def test_the_transaction_is_aborted_meanwhile():
    client = scripted(WAITING, ttypes.TxnAbortedException("Transaction txnid:5 already aborted"))

    with pytest.raises(TxnAbortedError, match="Transaction txnid:5 already aborted"):
        LockManager(client).acquire(WANTED, txn_id=5, stop=Pauses(), **OWNER)
    assert client.sent[-1] == ttypes.UnlockRequest(7)


def test_told_to_stop():
    stop = threading.Event()
    stop.set()
    client = scripted(WAITING, WAITING)

    with pytest.raises(LockNotAcquiredError, match="Stopped waiting for lock 7"):
        LockManager(client).acquire(WANTED, txn_id=5, stop=stop, **OWNER)
    assert client.sent[-1] == ttypes.UnlockRequest(7)


def test_patience_as_the_metastore_tells_it():
    told = {"hive.lock.numretries": "7", "hive.lock.sleep.between.retries": "20s"}

    assert told_wait(told.get) == LockWait(7, timedelta(seconds=20))
    assert told_wait(lambda _key, default: default) == LockWait()
    assert told_wait(lambda _key, _default: "much") == LockWait()
