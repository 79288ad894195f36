"""Acquisition of locks, and waits for them, as Hive's DbLockManager does (CLIENT-10).

Rule: a request that was not granted is withdrawn before the caller gets the error, so that no request waits behind it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from metastore.backoff import doubling
from metastore.client.answers import domain_errors, is_unknown_method
from metastore.client.client import MetastoreClient
from metastore.client.heartbeat import parse_duration
from metastore.client.lock_plan import LockPlan, StatementLocks
from metastore.errors import MetaError, MetastoreError
from metastore.locks.rules import LockType, Operation
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_gen.operators.ttypes import LockWhyRequest

FIRST_WAIT = timedelta(milliseconds=100)
LEAST_CEILING = timedelta(seconds=15)

_TYPES = {kind: getattr(ttypes.LockType, kind.name) for kind in LockType}
_TYPE_NAMES = {number: kind.name for kind, number in _TYPES.items()}
_OPERATIONS = {operation: getattr(ttypes.DataOperationType, operation.name) for operation in Operation}


class LockNotAcquiredError(MetastoreError):
    """Error: the locks were not granted, and the request was withdrawn. The message names the blocker."""


class Stop(Protocol):
    """A way to end a wait early, as ``threading.Event`` does."""

    def wait(self, timeout: float) -> bool:
        """Wait for that long; return True as soon as there is no reason to wait any longer."""


@dataclass(frozen=True)
class LockWait:
    """The patience of a wait: hive.lock.numretries checks, pauses growing to hive.lock.sleep.between.retries."""

    retries: int = 100
    ceiling: timedelta = timedelta(seconds=60)

    def delays(self) -> Iterator[timedelta]:
        """Yield pauses before each check: 100 ms, doubling up to the ceiling, which is at least 15 s (as in Hive)."""
        return doubling(FIRST_WAIT, max(LEAST_CEILING, self.ceiling), self.retries)


def told_wait(ask: Callable[[str, str], str]) -> LockWait:
    """Return the patience that the metastore's settings say.

    ``ask``: get_config_value, with the key and the default.
    """
    patience = LockWait()
    retries = ask("hive.lock.numretries", str(patience.retries)).strip()
    ceiling = ask("hive.lock.sleep.between.retries", f"{patience.ceiling.total_seconds():.0f}s")
    return LockWait(
        int(retries) if retries.isdecimal() else patience.retries, parse_duration(ceiling, patience.ceiling)
    )


@dataclass(frozen=True)
class LockManager:
    """A manager that takes and releases locks through one client."""

    client: MetastoreClient
    wait: LockWait = field(default_factory=LockWait)

    def acquire(
        self,
        wanted: StatementLocks,
        *,
        txn_id: int = 0,
        user: str,
        host: str,
        agent_info: str,
        stop: Stop | None = None,
    ) -> int:
        """Ask for all locks of a statement and wait until they are granted; return the lock id.

        ``stop`` ends the waiting early, for instance because the transaction is lost.
        Raises: LockNotAcquiredError, NoSuchTxnError, TxnAbortedError, MetastoreUnreachableError.
        """
        request = ttypes.LockRequest(
            component=[_component(plan) for plan in wanted.locks],
            txnid=txn_id,
            user=user,
            hostname=host,
            agentInfo=agent_info,
            zeroWaitReadEnabled=wanted.zero_wait_read,
            exclusiveCTAS=wanted.exclusive_ctas,
        )
        with domain_errors():
            answer = self.client.lock(request)
        try:
            waits = answer.state == ttypes.LockState.WAITING
            state = self._poll(answer.lockid, txn_id, stop) if waits else answer.state
        except BaseException:
            self._withdraw(answer.lockid)
            raise
        if state == ttypes.LockState.ACQUIRED:
            return int(answer.lockid)
        if state == ttypes.LockState.NOT_ACQUIRED:
            raise LockNotAcquiredError(f"The locks were refused: {answer.errorMessage or 'no reason given'}")
        reason = self.explain(answer.lockid, wanted.locks)
        self._withdraw(answer.lockid)
        waited = sum(self.wait.delays(), timedelta())
        raise LockNotAcquiredError(f"The locks could not be had within {waited}: {reason}")

    def release(self, lock_id: int) -> None:
        """Release a request that has no transaction, or that waits.

        Raises: TxnOpenError.
        """
        with domain_errors():
            self.client.unlock(ttypes.UnlockRequest(lockid=lock_id))

    def explain(self, lock_id: int, plans: tuple[LockPlan, ...]) -> str:
        """Explain in a sentence what a request waits for: the owner that has to end first, and how to end it.

        Another product's metastore only knows the next blocker.
        """
        try:
            with domain_errors():
                answer = self.client.metastore_lock_why(LockWhyRequest(lockid=lock_id))
        except MetaError as error:
            if not is_unknown_method(error):
                raise
        else:
            return str(answer.explanation) if answer.blocked else f"lock {lock_id} is not waiting any more; try again"
        with domain_errors():
            rows = [
                row
                for db in sorted({plan.db for plan in plans})
                for row in self.client.show_locks(ttypes.ShowLocksRequest(dbname=db)).locks
            ]
        by_id = {(row.lockid, row.lockIdInternal): row for row in rows}
        for row in rows:
            if row.lockid == lock_id and row.blockedByExtId:
                blocker = by_id.get((row.blockedByExtId, row.blockedByIntId))
                if blocker is not None:
                    return f"{_object(row)} is {_holder(blocker)}"
                return f"{_object(row)} was locked by lock {row.blockedByExtId}, which is gone by now; try again"
        return f"lock {lock_id} is not waiting any more; try again"

    def _poll(self, lock_id: int, txn_id: int, stop: Stop | None) -> int:
        """Return the state of the request once it is decided, or WAITING when the patience is used up."""
        pause = stop or threading.Event()
        for delay in self.wait.delays():
            if pause.wait(delay.total_seconds()):
                raise LockNotAcquiredError(f"Stopped waiting for lock {lock_id}: its transaction or caller has ended.")
            with domain_errors():
                answer = self.client.check_lock(ttypes.CheckLockRequest(lockid=lock_id, txnid=txn_id))
            if answer.state != ttypes.LockState.WAITING:
                return int(answer.state)
        return int(ttypes.LockState.WAITING)

    def _withdraw(self, lock_id: int) -> None:
        try:
            self.release(lock_id)
        except MetastoreError:
            return  # The lock was granted meanwhile or is out of reach: it ends with its transaction, or times out.


def _component(plan: LockPlan) -> ttypes.LockComponent:
    level = ttypes.LockLevel.TABLE if plan.table else ttypes.LockLevel.DB
    if plan.partition:
        level = ttypes.LockLevel.PARTITION
    return ttypes.LockComponent(
        type=_TYPES[plan.type],
        level=level,
        dbname=plan.db,
        tablename=plan.table or None,
        partitionname=plan.partition or None,
        operationType=_OPERATIONS[plan.operation],
        isTransactional=plan.is_transactional,
        isDynamicPartitionWrite=plan.is_dynamic,
    )


def _object(row: ttypes.ShowLocksResponseElement) -> str:
    return ".".join(part for part in (row.dbname, row.tablename, row.partname) if part)


def _holder(row: ttypes.ShowLocksResponseElement) -> str:
    """Format ``locked EXCLUSIVE by ...`` or, for a lock that waits itself, ``asked for ... by ...``."""
    kind = _TYPE_NAMES.get(row.type, str(row.type))
    verb = "locked" if row.state == ttypes.LockState.ACQUIRED else "asked for earlier,"
    acquired_at = datetime.fromtimestamp((row.acquiredat or 0) / 1000, UTC)
    since = f" since {acquired_at:%Y-%m-%d %H:%M:%S} UTC" if row.acquiredat else ""
    what, command = (
        (f"transaction {row.txnid}", f"metastore txn abort {row.txnid}")
        if row.txnid
        else (f"lock {row.lockid}", f"metastore lock release {row.lockid}")
    )
    return (
        f"{verb} {kind} by {what} of {row.user or 'unknown'}@{row.hostname or 'unknown'} "
        f"({row.agentInfo or 'Unknown'}){since}; `{command}` ends it"
    )
