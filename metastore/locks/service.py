"""lock, check_lock, unlock, show_locks: each serves a whole batch of calls in one PostgreSQL transaction.

Rule: members of a batch see each other in order, and one that is refused changes nothing for the others: its place in
the answer holds the exception.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from metastore.db.engine import Database
from metastore.errors import (
    InvalidRequestError,
    MetastoreError,
    NoSuchLockError,
    TxnOpenError,
)
from metastore.ids import DatabaseName
from metastore.locks import rules, store
from metastore.locks.rules import NO_TXN, Lock, LockQueue, LockRequest, LockState
from metastore.locks.store import Enqueued, LockRow
from metastore.txns.rules import TxnState, required_open


class LockResult(NamedTuple):
    """The state of a request; ``message`` says why it was not acquired."""

    lock_id: int
    state: LockState
    message: str | None = None


class LockFilter(NamedTuple):
    """What show_locks shows: rows that equal every field that is given."""

    db: DatabaseName | None = None
    table: str | None = None
    partition: str | None = None
    txn_id: int | None = None


@dataclass(frozen=True)
class LockService:
    """The lock manager."""

    db: Database

    def lock(self, requests: Sequence[LockRequest]) -> list[LockResult | MetastoreError]:
        """Queue each request, and grant it at once unless an earlier one is in its way.

        Queueing and granting are one transaction: a crash leaves a request whole, or nothing of it.

        Serialises on: the tail of each database's queue, and the rows of the transactions.
        Gives for a member: NoSuchTxnError, TxnAbortedError, InvalidRequestError.
        """
        with self.db.begin() as pg:
            tail = store.lock_tails(pg, requests)
            queue = LockQueue(tail.ahead)
            answers: list[LockResult | MetastoreError] = []
            enqueued: list[Enqueued] = []
            components = []
            for request, ext_id in zip(requests, tail.ext_ids, strict=True):
                error = _not_lockable(request, tail.txn_states)
                if error is not None:
                    answers.append(error)
                    continue
                components += [(request.txn_id, component) for component in rules.components(request)]
                locks = request.locks(ext_id)
                blocked = queue.blocked(locks)
                refusal = rules.refusal(request, blocked)
                if refusal is not None:
                    answers.append(LockResult(ext_id, LockState.NOT_ACQUIRED, refusal))
                    continue
                state = LockState.WAITING if blocked else LockState.ACQUIRED
                blocker = {wanted.int_id: (by.ext_id, by.int_id) for wanted, by in blocked[:1]}
                for lock in (wanted._replace(state=state) for wanted in locks):
                    queue.add(lock)
                    enqueued.append(Enqueued(lock, request, blocker.get(lock.int_id)))
                answers.append(LockResult(ext_id, state))
            if enqueued or components:
                store.insert_requests(pg, enqueued, components)
            return answers

    def check_lock(self, lock_ids: Sequence[int]) -> list[LockResult | MetastoreError]:
        """Grant each request that nothing is in the way of any more; a heartbeat for its owner at the same time.

        Serialises on: the owners' rows, and the rows of requests that are granted. Nothing of this needs to survive a
        crash of the database except a grant.
        Gives for a member: NoSuchLockError, NoSuchTxnError, TxnAbortedError.
        """
        with self.db.begin(durable=False) as pg:
            found = store.heartbeat_and_select(pg, set(lock_ids))
            queue = LockQueue(found.ahead)
            answers: dict[int, LockResult | MetastoreError] = {}
            grants: set[int] = set()
            notes: list[tuple[Lock, Lock]] = []
            for lock_id, stored in found.by_id.items():
                txn_id = stored[0].lock.txn_id
                error = _not_open(txn_id, found.txn_states)
                waiting = [row.lock for row in stored if row.lock.state is LockState.WAITING]
                blocked = queue.blocked(waiting)
                if error is not None:
                    answers[lock_id] = error
                elif blocked:
                    answers[lock_id] = LockResult(lock_id, LockState.WAITING)
                    notes += _news(blocked[0], stored)
                else:
                    answers[lock_id] = LockResult(lock_id, LockState.ACQUIRED)
                    grants |= {lock_id} if waiting else set()
            if grants or notes:
                for lost in grants - store.update_acquired(pg, grants, notes):
                    del answers[lost]  # its transaction ended after the rows had been read
            return [answers.get(lock_id) or NoSuchLockError(f"No such lock lockid:{lock_id}") for lock_id in lock_ids]

    def unlock(self, lock_ids: Sequence[int]) -> list[MetastoreError | None]:
        """Give up requests that wait or have no transaction. One that is not there (any more) is given up already.

        Serialises on: the rows. A release that a crash of the database undoes times out instead.
        Gives for a member: TxnOpenError.
        """
        with self.db.begin(durable=False) as pg:
            held = store.delete_released(pg, set(lock_ids))
        return [TxnOpenError(f"Unlocking locks associated with transaction not permitted.  {held[lock_id]}")
                if lock_id in held else None for lock_id in lock_ids]

    def show_locks(self, wanted: LockFilter) -> list[LockRow]:
        """Rows that equal every filter: granted before waiting, weaker types first, then in order of asking."""
        with self.db.begin(durable=False) as pg:
            rows = store.select_locks(pg, wanted.db, wanted.table, wanted.partition, wanted.txn_id)
        strength = list(rules.LockType)
        return sorted(rows, key=lambda row: (row.lock.state is LockState.WAITING, strength.index(row.lock.type),
                                             row.lock.ext_id, row.lock.int_id))


def _not_lockable(request: LockRequest, txn_states: Mapping[int, TxnState]) -> MetastoreError | None:
    if not request.components:
        return InvalidRequestError("A lock request needs at least one component.")
    return _not_open(request.txn_id, txn_states)


def _not_open(txn_id: int, txn_states: Mapping[int, TxnState]) -> MetastoreError | None:
    """Why nothing can be locked for this transaction, None if it can."""
    return None if txn_id == NO_TXN else required_open(txn_id, txn_states.get(txn_id))


def _news(blocked: rules.Blocked, stored: Collection[store.StoredLock]) -> list[tuple[Lock, Lock]]:
    """The blocker to note down, unless it stands there already."""
    wanted, blocker = blocked
    noted = {row.lock.int_id: row.blocker for row in stored}[wanted.int_id]
    return [] if noted == (blocker.ext_id, blocker.int_id) else [(wanted, blocker)]
