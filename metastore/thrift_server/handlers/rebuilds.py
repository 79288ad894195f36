"""The calls around the rebuild of materialized views: decode, ask the service, encode."""

from metastore.ids import table_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.call import Call
from metastore.txns.rebuild_service import RebuildService


class RebuildHandlers:
    """get_lock_materialization_rebuild and its heartbeat."""

    def __init__(self, rebuilds: RebuildService) -> None:
        """``rebuilds`` does the work."""
        self.rebuilds = rebuilds

    def get_lock_materialization_rebuild(self, call: Call, db: str, table: str, txn_id: int) -> ttypes.LockResponse:
        """Try to become the one who rebuilds."""
        call.log(txn_id=txn_id)
        held = self.rebuilds.get_lock_materialization_rebuild(table_name(db, table), txn_id)
        return ttypes.LockResponse(
            lockid=txn_id, state=ttypes.LockState.ACQUIRED if held else ttypes.LockState.NOT_ACQUIRED)

    def heartbeat_lock_materialization_rebuild(self, call: Call, db: str, table: str, txn_id: int) -> bool:
        """Stay the one who rebuilds."""
        call.log(txn_id=txn_id)
        return self.rebuilds.heartbeat_lock_materialization_rebuild(table_name(db, table), txn_id)
