"""The lock around the rebuild of a materialized view; it ends with its transaction."""

from dataclasses import dataclass

from metastore.db.engine import Database
from metastore.ids import TableName
from metastore.txns import rebuild_store
from metastore.txns.service import require_open


@dataclass(frozen=True)
class RebuildService:
    """Rebuild locks."""

    db: Database

    def get_lock_materialization_rebuild(self, view: TableName, txn_id: int) -> bool:
        """Whether the transaction holds the lock now. Retry: idempotent.

        Serialises on: the view. Raises: TxnAbortedError, NoSuchTxnError.
        """
        with self.db.begin() as pg:
            require_open(pg, [txn_id])
            return rebuild_store.insert_lock(pg, view, txn_id)

    def heartbeat_lock_materialization_rebuild(self, view: TableName, txn_id: int) -> bool:
        """Keep the lock; whether the transaction has it."""
        return rebuild_store.update_heartbeat(self.db, view, txn_id)
