"""The house-keeping of transactions: one step each, each safe beside itself in another replica, each repeatable."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from metastore.config import TxnSettings
from metastore.db.engine import Database, PgTx
from metastore.housekeeping import store as purge_store
from metastore.housekeeping.store import Visited
from metastore.locks import store as lock_store
from metastore.locks.rules import NO_TXN, Lock
from metastore.locks.store import Expired
from metastore.txns.core.rules import ExpiryCutoffs, any_expired, expiry_cutoffs
from metastore.txns.history import store as history_store
from metastore.txns.replication import store as repl_store
from metastore.write_ids.time_travel import store as past_store


class Expiry(NamedTuple):
    """The result of one round: the number of ended owners, and the pause in which no other can be due."""

    ended: int
    spare: timedelta


@dataclass(frozen=True)
class PurgeService:
    """Expiry, and removal of rows that are no longer needed. Every step returns the amount of its work."""

    db: Database
    settings: TxnSettings
    not_before: datetime | None = None
    """The time before which no blocking owner is ended: clients come back to a server that was away."""

    @classmethod
    def of_new_server(cls, db: Database, settings: TxnSettings, started_at: datetime) -> "PurgeService":
        """Return the house-keeping of a server that has just started."""
        return cls(db, settings, not_before=started_at + settings.reaper_start)

    def expire_locks(self) -> Expiry:
        """Remove lock requests without a transaction and without heartbeats."""
        return self._expire(
            lambda pg, after: lock_store.delete_expired(pg, pg.now - self.settings.timeout, after, purge_store.BATCH)
        )

    def expire_txns(self) -> Expiry:
        """Abort open transactions without heartbeats."""
        return self._expire(self._expire_txns)

    def expire_ahead(self, locks: Collection[Lock]) -> int:
        """End the owners of these locks whose heartbeat has expired; return their number.

        Waiters check their locks themselves.

        This serves a blocked request, which must not wait for the next round of a leader that may be gone.
        Serialises on: the owners' rows.
        """
        txn_ids = {lock.txn_id for lock in locks} - {NO_TXN}
        lock_ids = {lock.ext_id for lock in locks if lock.txn_id == NO_TXN}
        heard = purge_store.select_heard(self.db, txn_ids, lock_ids)
        early = self.not_before is not None and heard.now < self.not_before
        if early or not any_expired(heard, self._cutoffs(heard.now)):
            return 0
        with self.db.begin() as pg:
            removed = lock_store.delete_silent(pg, lock_ids, self._cutoffs(pg.now).normal)
            count, policies = purge_store.abort_silent(pg, self._cutoffs(pg.now), txn_ids)
            if policies:
                repl_store.flag_incompatible(pg, policies)
        return len(removed) + count

    def purge_write_sets(self) -> int:
        """Remove writes that no transaction can conflict with."""
        return self._in_batches(purge_store.delete_write_sets, purge_store.BATCH)

    def purge_write_ids(self) -> int:
        """Forget the owners of write ids that every reader sees as committed."""
        return self._in_batches(purge_store.delete_write_ids, purge_store.BATCH)

    def purge_history(self) -> int:
        """Forget the outcomes of old transactions, and the oldest if there are too many."""
        settings = self.settings
        return self._in_batches(
            lambda pg: history_store.delete_history(pg, pg.now - settings.history_retention, settings.history_count),
            history_store.BATCH,
        )

    def purge_times(self) -> int:
        """Forget the oldest commit times of write ids."""
        count, rows = 0, past_store.BATCH
        while rows == past_store.BATCH:
            with self.db.begin(durable=False) as pg:
                commits, rows = past_store.delete_times(
                    pg, pg.now - self.settings.past_retention, self.settings.past_count
                )
            count += commits
        return count

    def purge_duplicates(self) -> int:
        """Remove completed components that repeat others."""
        count, start, beyond = 0, purge_store.FIRST_ENTITY, False
        while True:
            with self.db.begin(durable=False) as pg:
                removed, following, beyond = purge_store.delete_duplicate_components(pg, start, beyond=beyond)
            count += removed
            if following is None:
                return count
            start = following

    def empty_aborted(self) -> int:
        """Remove aborted transactions without any records from the snapshots."""
        return self._walk(purge_store.empty_aborted)

    def purge_ended(self) -> int:
        """Remove the records of transactions that ended long enough ago for every client to have got its answer."""
        return self._walk(
            lambda pg, after: purge_store.delete_ended(
                pg, pg.now - self.settings.committed_retention, after, self.settings.history_count
            )
        )

    def purge_materialization_locks(self) -> int:
        """Remove rebuild locks that a crash left behind."""
        return self._in_batches(
            lambda pg: purge_store.delete_materialization_locks(pg, pg.now - self.settings.timeout), purge_store.BATCH
        )

    def _cutoffs(self, now: datetime) -> ExpiryCutoffs:
        return expiry_cutoffs(now, self.settings.timeout, self.settings.repl_timeout)

    def _expire_txns(self, pg: PgTx, after: int) -> Expired:
        expired, policies = purge_store.abort_expired(pg, self._cutoffs(pg.now), after)
        if policies:
            repl_store.flag_incompatible(pg, policies)
        return expired

    def _expire(self, visit: Callable[[PgTx, int], Expired]) -> Expiry:
        """Walk through all owners of a kind; return how many were ended, and when the next owner may be due.

        A new owner cannot be due before its time-out is over.
        """
        spare = [self.settings.timeout]

        def visited(pg: PgTx, after: int) -> Visited:
            expired = visit(pg, after)
            spare.extend([] if expired.spare is None else [expired.spare])
            return Visited(expired.removed, expired.after)

        return Expiry(self._walk(visited, durable=True), min(spare))

    def _walk(self, visit: Callable[[PgTx, int], Visited], *, durable: bool = False) -> int:
        """Walk through ids from the first to the last, a PostgreSQL transaction for each batch.

        Return the work done.
        """
        count = 0
        after: int | None = 0
        while after is not None:
            with self.db.begin(durable=durable) as pg:
                removed, after = visit(pg, after)
            count += removed
        return count

    def _in_batches(self, remove: Callable[[PgTx], int], batch: int) -> int:
        """Repeat a step, a PostgreSQL transaction each, until it finds less than a batch; return the total."""
        count, removed = 0, batch
        while removed == batch:
            with self.db.begin(durable=False) as pg:
                removed = remove(pg)
            count += removed
        return count
