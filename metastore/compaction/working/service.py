"""A Worker's steps in the database: each is one PostgreSQL transaction, fenced by the claim."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.compaction.queue.rules.requests import Claim, Compaction, CompactionState, CompactionType, Entity
from metastore.compaction.queue.store import components
from metastore.compaction.queue.store import requests as queue
from metastore.compaction.queue.store.entities import OWN_CATALOG, Described, EntityCatalog
from metastore.compaction.queue.store.requests import Job, Shares
from metastore.compaction.working import store
from metastore.config import CompactionSettings
from metastore.db.engine import Database, PgTx
from metastore.errors import ClaimLostError, TxnAbortedError
from metastore.txns.commit import store as commit_store
from metastore.txns.commit.store import CommitPlan
from metastore.txns.core import store as txn_store
from metastore.txns.core.rules import AbortCode, TxnState, TxnType, first_conflict
from metastore.txns.core.store import Opening
from metastore.txns.history import rules as history_rules
from metastore.txns.history import store as history_store
from metastore.txns.history.rules import Outcome
from metastore.txns.reading import store as reading_store


@dataclass(frozen=True)
class Started:
    """A compaction's transaction and what it sees. ``write_ids``: a reader's; the job takes ``for_compactor()``."""

    claim: Claim
    txn_id: int
    write_ids: ValidWriteIdList
    txns: ValidTxnList
    at: datetime
    """When the snapshot was taken."""

    @property
    def highest_write_id(self) -> int:
        """The highest write id of the output: below every open write id."""
        return self.write_ids.for_compactor().high_watermark


@dataclass(frozen=True)
class WorkerService:
    """The database's side of a Worker."""

    db: Database
    settings: CompactionSettings
    catalog: EntityCatalog = OWN_CATALOG

    def claim(self, worker_id: str, version: str, pool: str | None) -> Compaction | None:
        """Claim the request whose turn it is (``turns``), under a lease.

        Serialises on: the claimed row; requests that others are claiming are skipped.
        """
        with self.db.begin() as pg:
            shares = Shares(self.settings.database_share, self.settings.table_share)
            return queue.claim_next(
                pg, worker_id, version, pool, self.settings.worker_pool_timeout, shares, self.settings.limits
            )

    def describe(self, entity: Entity) -> Described | None:
        """Look up the table and partition."""
        with self.db.begin(durable=False) as pg:
            return self.catalog.described(pg, entity)

    def begin(self, claimed: Compaction, user: str, host: str) -> Started:
        """Open the compaction's transaction, take its snapshot and tie it to the request, all at once.

        The transaction counts as open in its own snapshot (HIVE-29567: else the job would read its own output).

        Serialises on: the transaction counter, the request's row. Raises: ClaimLostError.
        """
        claim = claim_of(claimed)
        rebalance = claimed.type is CompactionType.REBALANCE
        with self.db.begin() as pg:
            txn_id = txn_store.insert_txns_within(
                pg,
                Opening(
                    1,
                    user,
                    host,
                    f"compaction {claimed.id}",
                    TxnType.REBALANCE_COMPACTION if rebalance else TxnType.COMPACTION,
                ),
            )
            started = Started(claim, txn_id, *components.select_lists(pg, claimed.entity.table), pg.now)
            if not queue.update_started(pg, claim, started.highest_write_id, user, txn_id):
                raise ClaimLostError(_lost(claim))
            components.insert_compaction_component(pg, claimed.entity, txn_id, started.highest_write_id)
            reading_store.insert_read_tables(pg, txn_id, [claimed.entity.table])
            return started

    def begin_again(self, started: Started, entity: Entity, write_id: int) -> Started:
        """Take the snapshot anew, now that the compaction holds its lock and has a write id; nobody sees that as open.

        Serialises on: the request's row. Raises: ClaimLostError.
        """
        with self.db.begin() as pg:
            write_ids, txns = components.select_lists(pg, entity.table)
            again = replace(started, write_ids=write_ids.with_own(write_id), txns=txns, at=pg.now)
            if not queue.update_started(pg, started.claim, again.highest_write_id, None, started.txn_id):
                raise ClaimLostError(_lost(started.claim))
            store.update_compaction_component(pg, started.txn_id, again.highest_write_id)
            return again

    def heartbeat(self, started: Started, job: Job | None = None) -> None:
        """Renew the claim and keep the transaction alive; show the job in SHOW COMPACTIONS.

        Raises: ClaimLostError, TxnAbortedError: the job must be stopped, its result will never be visible.
        """
        with self.db.begin(durable=False) as pg:
            if not queue.update_lease(pg, started.claim, job):
                raise ClaimLostError(_lost(started.claim))
            if not store.update_txn_heartbeat(pg, started.txn_id):
                raise TxnAbortedError(_aborted(started))

    def complete(self, started: Started) -> None:
        """Commit: the result becomes visible and the request ready for cleaning, in one PostgreSQL transaction.

        Serialises on: the transaction counter, the request's row. Raises: ClaimLostError, TxnAbortedError.
        """
        with self.db.begin() as pg:
            facts = commit_store.lock_for_commit(pg, [started.txn_id], ())
            record = facts.txns.get(started.txn_id)
            if record is None or record.state is not TxnState.OPEN:
                raise TxnAbortedError(_aborted(started))
            changes = [component for component in facts.components.get(started.txn_id, ()) if component.changes_rows]
            conflict = first_conflict(changes, facts.written)
            if conflict is not None:
                raise TxnAbortedError(conflict.message(facts.commit_id))
            if not queue.update_ready_for_cleaning(pg, started.claim):
                raise ClaimLostError(_lost(started.claim))
            changing = [started.txn_id] if changes else []
            plan = CommitPlan([started.txn_id], changing, [], compacting=[started.txn_id])
            commit_store.apply_commits(pg, facts.commit_id, plan)

    def is_committed(self, started: Started) -> bool:
        """Whether ``complete`` was done; waits for a commit that PostgreSQL is still carrying out.

        Raises: UnavailableError when that takes longer than metastore.database.lock.timeout.
        """
        return history_rules.outcome(history_store.select_settled(self.db, started.txn_id)).outcome is Outcome.COMMITTED

    def refuse(self, claim: Claim, reason: str, started: Started | None = None) -> bool:
        """Working → refused; as ``fail``."""
        return self._end(claim, CompactionState.REFUSED, reason, started)

    def fail(self, claim: Claim, message: str, started: Started | None = None) -> bool:
        """Working → failed, and the transaction aborted. A request whose claim is lost is left alone.

        True when the transaction is aborted for certain, so that what it wrote may be removed.
        """
        return self._end(claim, CompactionState.FAILED, message, started)

    def release(self, claimed: Compaction, reason: str, delay: timedelta, started: Started | None = None) -> bool:
        """Working → initiated: another Worker, or this after ``delay``, may claim it. Returns: as ``fail``."""
        with self.db.begin() as pg:
            queue.update_waiting_again(pg, claimed, reason, pg.now + delay)
            return self._abort(pg, started, reason)

    def forget(self, started: Started) -> None:
        """The aborted transaction left no files: untie it from the table, so that its record may go."""
        with self.db.begin(durable=False) as pg:
            store.delete_compaction_components(pg, started.txn_id)

    def note_waiting(self, reason: str, pool: str | None) -> int:
        """Show in SHOW COMPACTIONS why a pool's requests wait; returns the number of rows that changed."""
        with self.db.begin(durable=False) as pg:
            return queue.update_waiting_reason(pg, reason, pool)

    def _end(self, claim: Claim, state: CompactionState, message: str, started: Started | None) -> bool:
        with self.db.begin() as pg:
            queue.move_to_history(pg, claim.id, CompactionState.WORKING, state, message, claim)
            return self._abort(pg, started, message)

    @staticmethod
    def _abort(pg: PgTx, started: Started | None, reason: str) -> bool:
        if started is None:
            return False
        txn_store.abort(pg, [(started.txn_id, AbortCode.COMPACTION, reason)])
        return components.select_txn_states(pg, [started.txn_id]).get(started.txn_id) == TxnState.ABORTED.value


def claim_of(claimed: Compaction) -> Claim:
    """The claim that a Worker repeats with every write."""
    return Claim(claimed.id, claimed.worker_id, claimed.attempt)


def _lost(claim: Claim) -> str:
    return f"Compaction {claim.id} was taken from worker {claim.worker_id} (attempt {claim.attempt})"


def _aborted(started: Started) -> str:
    return f"Transaction txnid:{started.txn_id} of compaction {started.claim.id} was aborted while the compaction ran"
