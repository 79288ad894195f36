"""The calls about rebuilds of materialized views: decode, ask the service, encode."""

from __future__ import annotations

from metastore.materialized_views.service.rebuilds import RebuildService
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.handlers.txns import named_table


class RebuildHandlers:
    """The calls get_lock_materialization_rebuild with its heartbeat, and get_materialization_invalidation_info."""

    def __init__(self, rebuilds: RebuildService) -> None:
        """Prepare the handlers. ``rebuilds`` does the work."""
        self.rebuilds = rebuilds

    def get_lock_materialization_rebuild(self, call: Call, db: str, table: str, txn_id: int) -> ttypes.LockResponse:
        """Take the rebuild lock of a view."""
        call.log(txn_id=txn_id)
        held = self.rebuilds.get_lock_materialization_rebuild(named_table(db, table), txn_id)
        return ttypes.LockResponse(
            lockid=txn_id, state=ttypes.LockState.ACQUIRED if held else ttypes.LockState.NOT_ACQUIRED
        )

    def heartbeat_lock_materialization_rebuild(self, call: Call, db: str, table: str, txn_id: int) -> bool:
        """Keep the rebuild lock."""
        call.log(txn_id=txn_id)
        return self.rebuilds.heartbeat_lock_materialization_rebuild(named_table(db, table), txn_id)

    def get_materialization_invalidation_info(
        self, call: Call, creation_metadata: ttypes.CreationMetadata, valid_txns: str | None
    ) -> ttypes.Materialization:
        """Return whether a rebuild must be full; null if that is unknown, as in Hive."""
        call.log(view=f"{creation_metadata.dbName}.{creation_metadata.tblName}")
        rebuild = self.rebuilds.get_materialization_invalidation_info(
            creation_metadata.tablesUsed, creation_metadata.validTxnList, valid_txns or ""
        )
        return ttypes.Materialization(
            sourceTablesUpdateDeleteModified=rebuild.updated_or_deleted, sourceTablesCompacted=rebuild.compacted
        )
