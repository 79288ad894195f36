"""lock, check_lock, unlock, show_locks: each serves a whole batch of calls in one PostgreSQL transaction.

Rule: members of a batch see each other in order, and a refused member changes nothing for the others: its place in
the answer holds the exception.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from metastore.config import LockSettings
from metastore.db.engine import Database, PgTx
from metastore.db.pieces import Pieces
from metastore.errors import InvalidRequestError, MetastoreError, NoSuchLockError, TxnAbortedError, TxnOpenError
from metastore.ids import DatabaseName
from metastore.locks import rules, store
from metastore.locks.deadlocks import rules as deadlocks
from metastore.locks.listing import store as listing
from metastore.locks.orphans import store as orphan_store
from metastore.locks.orphans.rules import Left
from metastore.locks.rules import NO_TXN, Lock, LockQueue, LockRequest, LockState, LockType
from metastore.locks.store import Enqueued
from metastore.locks.waits import store as wait_store
from metastore.locks.waits.store import DeadlockRow
from metastore.telemetry.locks import LockStats
from metastore.telemetry.logs import get_logger
from metastore.txns.core import store as txn_store
from metastore.txns.core.rules import AbortCode, TxnState, required_open

MOST_CROWDED = 10_000
"""The most tables that are remembered."""
_log = get_logger(__name__)


class LockResult(NamedTuple):
    """The state of a request; ``message``: why it was not acquired; ``waits_for``: its latest blocker.

    ``is_watched``: this process is notified when that lock is released.
    """

    lock_id: int
    state: LockState
    message: str | None = None
    waits_for: Lock | None = None
    is_watched: bool = False


class LockFilter(NamedTuple):
    """A filter of show_locks: shows rows that equal every field of the request."""

    db: DatabaseName | None = None
    table: str | None = None
    partition: str | None = None
    txn_id: int | None = None


@dataclass(frozen=True)
class LockService:
    """The lock manager."""

    db: Database
    settings: LockSettings = field(default_factory=LockSettings)
    stats: LockStats = field(default_factory=LockStats)
    _crowded: set[tuple[str, str, str]] = field(default_factory=set)
    """The tables for which the last request had to wait, where the quick way seldom works.

    It is a guess of this process.
    """

    def lock(self, requests: Sequence[LockRequest]) -> list[LockResult | MetastoreError]:
        """Queue each request, and grant it at once unless an earlier request blocks it.

        Queueing and granting are one transaction: a crash leaves a request whole, or nothing of it.

        Serialises on: the tail of each database's queue, and the rows of the transactions.
        Gives for a member: NoSuchTxnError, TxnAbortedError (also for the victim of a deadlock), InvalidRequestError.
        """
        if not (self._crowded and self._is_crowded(requests)) and rules.apart(requests):
            granted = store.lock_uncontended(self.db, requests)
            if granted is not None:
                return [LockResult(lock_id, LockState.ACQUIRED) for lock_id in granted]
        answers = self._enqueue(requests)
        self._note_crowds(requests, answers)
        waiting = {
            request.txn_id
            for request, answer in zip(requests, answers, strict=True)
            if isinstance(answer, LockResult) and answer.state is LockState.WAITING
        } - {NO_TXN}
        victims = self._end_deadlocks(waiting) if waiting and self.settings.detect_deadlocks else {}
        return [
            TxnAbortedError(victims[request.txn_id]) if request.txn_id in victims else answer
            for request, answer in zip(requests, answers, strict=True)
        ]

    def _is_crowded(self, requests: Sequence[LockRequest]) -> bool:
        return not all(self._crowded.isdisjoint(rules.tables_of(request)) for request in requests)

    def _note_crowds(self, requests: Sequence[LockRequest], answers: Sequence[LockResult | MetastoreError]) -> None:
        for request, answer in zip(requests, answers, strict=True):
            waits = isinstance(answer, LockResult) and answer.state is LockState.WAITING
            if waits and len(self._crowded) < MOST_CROWDED:
                self._crowded.update(rules.tables_of(request))
            elif not waits and self._crowded:
                self._crowded.difference_update(rules.tables_of(request))

    def _enqueue(self, requests: Sequence[LockRequest]) -> list[LockResult | MetastoreError]:
        with self.db.begin() as pg:
            tail = store.lock_tails(pg, requests)
            queue = LockQueue(tail.ahead)
            answers: list[LockResult | MetastoreError] = []
            enqueued: list[Enqueued] = []
            components = []
            awaited: list[Lock] = []
            known = self._known(pg, requests, tail)
            for request, ext_id in zip(requests, tail.ext_ids, strict=True):
                error = _not_lockable(request, tail.txn_states)
                if error is not None:
                    answers.append(error)
                    continue
                components += [(request.txn_id, component) for component in rules.components(request)]
                locks = request.locks(ext_id)
                blocked = queue.blocked(locks)
                if blocked and request in known:
                    answers.append(known[request])
                    self.stats.repeated.inc()
                    continue
                refusal = rules.refusal(request, blocked)
                if refusal is not None:
                    answers.append(LockResult(ext_id, LockState.NOT_ACQUIRED, refusal))
                    continue
                state = LockState.WAITING if blocked else LockState.ACQUIRED
                awaited += [_latest(blocked)] if blocked and self.settings.check_wait else []
                blocker = {wanted.int_id: (by.ext_id, by.int_id) for wanted, by, _ in blocked[:1]}
                for lock in (wanted._replace(state=state) for wanted in locks):
                    queue.add(lock)
                    enqueued.append(Enqueued(lock, request, blocker.get(lock.int_id)))
                answers.append(LockResult(ext_id, state))
                if request.is_recognisable:
                    known[request] = LockResult(ext_id, state)
            if enqueued or components:
                store.finish_requests(pg, enqueued, components, awaited)
            return answers

    @staticmethod
    def _known(pg: PgTx, requests: Sequence[LockRequest], tail: store.QueueTail) -> dict[LockRequest, LockResult]:
        """Return requests that are in the queue already and were repeated after a lost answer, in their present state.

        Only requests that would have to wait are looked up: an exclusive lock waits for its own first request.
        """
        queue = LockQueue(tail.ahead)
        waiting = [
            request
            for request, ext_id in zip(requests, tail.ext_ids, strict=True)
            if request.is_recognisable and tail.ahead and queue.blocked(request.locks(ext_id))
        ]
        if not waiting:
            return {}
        stored = wait_store.heartbeat_same(
            pg,
            {request.txn_id for request in waiting},
            {request.agent_info for request in waiting if request.txn_id == NO_TXN},
            {lock.ext_id for lock in tail.ahead if lock.txn_id == NO_TXN},
        )
        return {
            request: LockResult(locks[0].ext_id, locks[0].state)
            for request in waiting
            for agent_info, locks in reversed(stored)
            if request.is_stored_as(locks, agent_info)
        }

    def _end_deadlocks(self, txn_ids: Collection[int]) -> dict[int, str]:
        """Call ``end_deadlocks``; a failure changes nothing for requests that are in the queue already."""
        try:
            return self.end_deadlocks(txn_ids)
        except MetastoreError as error:
            _log.warning("deadlocks_not_searched", txn_ids=sorted(txn_ids), reason=str(error))
            return {}

    def end_deadlocks(self, txn_ids: Collection[int] | None = None) -> dict[int, str]:
        """Abort the victims of the deadlocks of these transactions (None: of all that wait).

        Return the reason by victim.

        Call this after the requests have been committed: of two that close a circle together, in two databases or
        replicas, the last to look sees both. If both see the circle they choose the same victim, and one of them finds
        it aborted already. Serialises on: the victims' rows.
        """
        victims: dict[int, str] = {}
        for txn_id in wait_store.select_asked_twice(self.db, txn_ids):
            with self.db.begin() as pg:
                while True:
                    deadlock = deadlocks.find(txn_id, wait_store.select_wait_graph(pg))
                    if deadlock is None or deadlock.victim in victims:
                        break
                    victims[deadlock.victim] = deadlock.message
                    ended = txn_store.abort(pg, [(deadlock.victim, AbortCode.DEADLOCK, deadlock.message)])
                    if ended and ended[0].state is TxnState.OPEN:
                        wait_store.insert_deadlock(pg, deadlock)
                        self.stats.deadlocks.inc()
                        _log.warning("deadlock_ended", victim=deadlock.victim, reason=deadlock.message)
        return victims

    def check_lock(self, lock_ids: Sequence[int]) -> list[LockResult | MetastoreError]:
        """Grant each request that has no blocker any more, with a heartbeat for its owner.

        Serialises on: the owners' rows, and the rows of requests that are granted. Only a grant needs to survive a
        crash of the database. The answer for a victim of a deadlock says so.
        Gives for a member: NoSuchLockError, NoSuchTxnError, TxnAbortedError.
        """
        requests = store.grant_and_select(self.db, set(lock_ids))
        queue = LockQueue(requests.ahead)
        answers: dict[int, LockResult | MetastoreError] = {}
        grants: set[int] = set()
        notes: list[tuple[Lock, Lock]] = []
        for lock_id, stored in requests.by_id.items():
            txn_id = stored[0].lock.txn_id
            error = _not_open(txn_id, requests.txn_states)
            waiting = [row.lock for row in stored if row.lock.state is LockState.WAITING]
            blocked = queue.blocked(waiting)
            if error is not None:
                answers[lock_id] = error
            elif blocked:
                last = _latest(blocked)
                answers[lock_id] = LockResult(
                    lock_id, LockState.WAITING, waits_for=last, is_watched=last in requests.watched
                )
                notes += _news(blocked[0], stored)
            else:
                answers[lock_id] = LockResult(lock_id, LockState.ACQUIRED)
                grants |= {lock_id} if waiting else set()
        if grants or notes:
            for lost in grants - store.update_acquired(self.db, grants, notes):
                del answers[lost]  # Its transaction ended after the rows had been read.
        missing = set(lock_ids) - answers.keys()
        victims = wait_store.select_victims(self.db, missing) if missing else {}
        answers |= {
            lock_id: TxnAbortedError(victims[lock_id])
            if lock_id in victims
            else NoSuchLockError(f"No such lock lockid:{lock_id}")
            for lock_id in missing
        }
        return [answers[lock_id] for lock_id in lock_ids]

    def select_deadlocks(self, limit: int = 100) -> list[DeadlockRow]:
        """Return the latest deadlocks, latest first."""
        return wait_store.select_deadlocks(self.db, limit)

    def withdraw(self, lock_ids: Collection[int]) -> None:
        """Release requests whose answer could not be delivered, so that no client knows of them.

        Serialises on: the rows.
        """
        self.unlock(list(lock_ids))
        self.stats.withdrawn.inc(len(lock_ids))
        _log.info("locks_withdrawn", lock_ids=sorted(lock_ids), reason="the client was gone before it was answered")

    def orphan(self, left: Left) -> set[int]:
        """Record the requests whose connections are gone; return the requests in ``left.here`` that are still queued.

        A client that connects for each call ends the connection at once, like a killed client: it gets twice the time.
        Serialises on: the rows.
        """
        return orphan_store.update_orphaned(self.db, left.gone, left.here, self.settings.orphan_timeout)

    def spare_orphans(self) -> None:
        """Restart the time-out of all orphans. Serialises on: the rows."""
        orphan_store.update_spared(self.db)

    def expire_orphans(self) -> int:
        """Remove requests without a transaction or a heartbeat whose client is gone; return their number."""
        if not self.settings.orphan_timeout:
            return 0
        count = 0
        while removed := orphan_store.delete_orphans(self.db, self.settings.orphan_timeout):
            count += len(removed)
            self.stats.orphans.inc(len(removed))
            _log.info("orphaned_locks_expired", lock_ids=sorted(removed))
        return count

    def watch(self, locks: Collection[Lock]) -> set[int]:
        """Subscribe this process to the release of these locks; return the ids of the requests that still exist.

        Serialises on: the locks' rows.
        """
        return wait_store.update_watched(self.db, {(lock.ext_id, lock.int_id) for lock in locks}, self.db.pool.process)

    def still_there(self, lock_ids: Collection[int]) -> dict[int, int]:
        """Return the requests that are still in the queue, each with the number of its locks."""
        return store.count_locks(self.db, lock_ids)

    def unlock(self, lock_ids: Sequence[int]) -> list[MetastoreError | None]:
        """Release requests that wait or have no transaction. An absent request counts as released.

        Serialises on: the rows. A release that a crash of the database undoes times out instead.
        Gives for a member: TxnOpenError.
        """
        return self.hand_over(lock_ids, ())[0]

    def hand_over(
        self, lock_ids: Sequence[int], waiting: Collection[int]
    ) -> tuple[list[MetastoreError | None], dict[int, LockResult]]:
        """Unlock as ``unlock`` and check ``waiting`` requests as ``check_lock``, in one PostgreSQL transaction.

        Returns, besides the answer of ``unlock``, the requests that are granted now; the others have to check again.
        Serialises on: as both. Only a grant needs to survive a crash of the database.
        """
        held, granted = store.delete_released(self.db, set(lock_ids), set(waiting))
        refused = {
            lock_id: TxnOpenError(f"Unlocking locks associated with transaction not permitted.  {lock}")
            for lock_id, lock in held.items()
        }
        return [refused.get(lock_id) for lock_id in lock_ids], {
            lock_id: LockResult(lock_id, LockState.ACQUIRED) for lock_id in granted
        }

    def show_locks(
        self, wanted: LockFilter, states: Mapping[LockState, int], types: Mapping[LockType, int]
    ) -> Pieces[bytes]:
        """Return the locks that equal every filter, as bytes for clients.

        Granted before waiting, weaker types first, then in order of asking.

        ``states``, ``types``: the numbers of the stored texts in the protocol.
        """
        found, _ = listing.list_of(*wanted, states, types).read(self.db)
        return found


def _not_lockable(request: LockRequest, txn_states: Mapping[int, TxnState]) -> MetastoreError | None:
    if not request.components:
        return InvalidRequestError("A lock request needs at least one component.")
    return _not_open(request.txn_id, txn_states)


def _not_open(txn_id: int, txn_states: Mapping[int, TxnState]) -> MetastoreError | None:
    """Return why this transaction can lock nothing; None if it can."""
    return None if txn_id == NO_TXN else required_open(txn_id, txn_states.get(txn_id))


def _latest(blocked: Collection[rules.Blocked]) -> Lock:
    """Return the latest lock that a request waits for."""
    return max((wait.last for wait in blocked), key=lambda lock: (lock.ext_id, lock.int_id))


def _news(blocked: rules.Blocked, stored: Collection[store.StoredLock]) -> list[tuple[Lock, Lock]]:
    """Return the blocker to record, unless it is recorded already."""
    wanted, blocker, _ = blocked
    noted = {row.lock.int_id: row.blocker for row in stored}[wanted.int_id]
    return [] if noted == (blocker.ext_id, blocker.int_id) else [(wanted, blocker)]
