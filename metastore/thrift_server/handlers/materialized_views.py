"""The calls about metadata of materialized views: decode, ask the service."""

from __future__ import annotations

from metastore.errors import MetaError
from metastore.materialized_views.service.sources import MaterializedViewService
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.catalog import table_name_of
from metastore.thrift_server.convert.structs import struct_to_json
from metastore.thrift_server.dispatch.call import Call


class MaterializedViewHandlers:
    """The calls update_creation_metadata and update_transaction_statistics."""

    def __init__(self, views: MaterializedViewService) -> None:
        """Prepare the handlers. ``views`` does the work."""
        self._views = views

    def update_creation_metadata(
        self,
        _call: Call,
        catalog: str | None,
        db: str | None,
        name: str | None,
        metadata: ttypes.CreationMetadata | None,
    ) -> None:
        """Replace a view's metadata about its sources."""
        if metadata is None:
            raise MetaError("Null creation metadata is not allowed")
        self._views.update_creation_metadata(table_name_of(db, name, catalog), struct_to_json(metadata))

    def update_transaction_statistics(self, _call: Call, request: ttypes.UpdateTransactionalStatsRequest) -> None:
        """Count changed rows for the views on a table."""
        self._views.update_transaction_statistics(
            request.tableId, request.insertCount or 0, request.updatedCount or 0, request.deletedCount or 0
        )
