"""The house-keeping of transactions: one step each, each safe beside itself in another replica, each repeatable."""

from collections.abc import Callable
from dataclasses import dataclass

from metastore.config import TxnSettings
from metastore.db.engine import Database, PgTx
from metastore.locks import store as lock_store
from metastore.txns import history_store, purge_store, repl_store
from metastore.txns.purge_store import Visited
from metastore.txns.rules import expiry_cutoffs
from metastore.write_ids import past_store


@dataclass(frozen=True)
class PurgeService:
    """Expiry, and removal of what nobody can need any more. Every step answers how much it did."""

    db: Database
    settings: TxnSettings

    def expire_locks(self) -> int:
        """Remove lock requests without a transaction that nobody keeps alive."""
        return self._walk(lambda pg, after: Visited(*lock_store.delete_expired(
            pg, pg.now - self.settings.timeout, after, purge_store.BATCH)), durable=True)

    def expire_txns(self) -> int:
        """Abort open transactions that nobody keeps alive."""
        return self._walk(self._expire, durable=True)

    def purge_write_sets(self) -> int:
        """Remove writes that nobody can conflict with."""
        return self._in_batches(purge_store.delete_write_sets, purge_store.BATCH)

    def purge_write_ids(self) -> int:
        """Forget the owners of write ids that everybody sees as committed."""
        return self._in_batches(purge_store.delete_write_ids, purge_store.BATCH)

    def purge_history(self) -> int:
        """Remember what commits wrote, before other steps remove that; forget what is old, and tell how much.

        One round remembers a tenth of what is kept: under a load that would push everything out within a minute, the
        latest of every round are worth more, and cost less.
        """
        keep = self.settings.history_count
        position, found = 0, history_store.BATCH
        while found == history_store.BATCH:
            with self.db.begin(durable=False) as pg:
                last_id, found = history_store.insert_committed(pg, keep // 10, position)
            position = last_id or position
        return self._in_batches(
            lambda pg: history_store.delete_history(pg, pg.now - self.settings.history_retention, keep),
            history_store.BATCH)

    def purge_times(self) -> int:
        """Forget when write ids were committed, of the oldest."""
        count, rows = 0, past_store.BATCH
        while rows == past_store.BATCH:
            with self.db.begin(durable=False) as pg:
                commits, rows = past_store.delete_times(
                    pg, pg.now - self.settings.past_retention, self.settings.past_count)
            count += commits
        return count

    def purge_duplicates(self) -> int:
        """Remove completed components that say nothing new."""
        count, start, beyond = 0, purge_store.FIRST_ENTITY, False
        while True:
            with self.db.begin(durable=False) as pg:
                removed, following, beyond = purge_store.delete_duplicate_components(pg, start, beyond=beyond)
            count += removed
            if following is None:
                return count
            start = following

    def empty_aborted(self) -> int:
        """Drop aborted transactions of which nothing is left from the snapshots."""
        return self._walk(purge_store.empty_aborted)

    def purge_ended(self) -> int:
        """Remove the records of transactions that ended long enough ago for every client to have got its answer."""
        return self._walk(lambda pg, after: purge_store.delete_ended(
            pg, pg.now - self.settings.committed_retention, after, self.settings.history_count))

    def purge_materialization_locks(self) -> int:
        """Remove rebuild locks that a crash left behind."""
        return self._in_batches(
            lambda pg: purge_store.delete_materialization_locks(pg, pg.now - self.settings.timeout), purge_store.BATCH)

    def _expire(self, pg: PgTx, after: int) -> Visited:
        cutoffs = expiry_cutoffs(pg.now, self.settings.timeout, self.settings.repl_timeout)
        visited, policies = purge_store.abort_expired(pg, cutoffs, after)
        if policies:
            repl_store.flag_incompatible(pg, policies)
        return visited

    def _walk(self, visit: Callable[[PgTx, int], Visited], *, durable: bool = False) -> int:
        """Go through ids from the first to the last, a PostgreSQL transaction for each batch; how much was done."""
        count = 0
        after: int | None = 0
        while after is not None:
            with self.db.begin(durable=durable) as pg:
                removed, after = visit(pg, after)
            count += removed
        return count

    def _in_batches(self, remove: Callable[[PgTx], int], batch: int) -> int:
        """Repeat a step, a PostgreSQL transaction each, until it finds less than a batch; how much it found in all."""
        count, removed = 0, batch
        while removed == batch:
            with self.db.begin(durable=False) as pg:
                removed = remove(pg)
            count += removed
        return count
