"""Materialized views: the lock around a rebuild, which ends with its transaction, and whether a view is stale."""

from collections.abc import Collection
from dataclasses import dataclass

from metastore.acid.snapshots import ValidTxnList
from metastore.db.engine import Database
from metastore.errors import NoAnswerError
from metastore.ids import TableName, full_table_name
from metastore.materialized_views.rules import Since, Staleness, changes_since, stored_snapshot
from metastore.materialized_views.store import rebuilds as rebuild_store
from metastore.txns.core.store import lock_open
from metastore.write_ids import store as write_id_store
from metastore.write_ids.rules import valid_write_ids


@dataclass(frozen=True)
class RebuildService:
    """Rebuild locks, and what happened since the last rebuild."""

    db: Database

    def get_lock_materialization_rebuild(self, view: TableName, txn_id: int) -> bool:
        """Return True if the transaction holds the lock now. Retry: idempotent.

        Serialises on: the view. Raises: TxnAbortedError, NoSuchTxnError.
        """
        with self.db.begin() as pg:
            lock_open(pg, [txn_id])
            return rebuild_store.insert_lock(pg, view, txn_id)

    def heartbeat_lock_materialization_rebuild(self, view: TableName, txn_id: int) -> bool:
        """Keep the lock; whether the transaction has it."""
        return rebuild_store.update_heartbeat(self.db, view, txn_id)

    def get_materialization_invalidation_info(
        self, used: Collection[str], snapshot: str | None, valid_txns: str
    ) -> Staleness:
        """Return what happened to the tables that a view was made of, since the ``snapshot`` it was made with.

        ``valid_txns``: what the caller sees now. Raises: NoAnswerError when that cannot be known, InvalidInputError.
        """
        if not used:
            raise NoAnswerError("the materialized view uses no table")
        tables = [full_table_name(name) for name in sorted(used)]
        txns = ValidTxnList.parse(valid_txns) if valid_txns else ValidTxnList.everything()
        known = write_id_store.select_tables(self.db, tables, txns)
        since: list[Since] = changes_since(
            stored_snapshot(snapshot), {table: valid_write_ids(str(table), known[table], txns) for table in tables}
        )
        changes = rebuild_store.select_changes(self.db, since)
        return Staleness(any(txns.is_valid(txn_id) for txn_id in changes), rebuild_store.is_compacted(self.db, since))
