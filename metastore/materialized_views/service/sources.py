"""Metadata that materialized views keep about their source tables."""

from dataclasses import dataclass

from metastore.catalog.model import Json
from metastore.db.engine import Database
from metastore.errors import NoSuchObjectError
from metastore.ids import TableName
from metastore.materialized_views.store import sources as store


@dataclass(frozen=True)
class MaterializedViewService:
    """The RPCs that change the metadata of views."""

    db: Database

    def update_creation_metadata(self, view: TableName, metadata: Json) -> None:
        """Replace a view's metadata after a rebuild. Serialises on: the view's row. Raises: NoSuchObjectError."""
        with self.db.begin() as pg:
            if not store.update_creation_metadata(pg, view, metadata):
                raise NoSuchObjectError(f"{view} is not a materialized view")

    def update_transaction_statistics(self, table_id: int, inserted: int, updated: int, deleted: int) -> None:
        """Count rows that a statement has changed, for the views on its table; do nothing if there are none.

        Serialises on: the views' rows. Retry: counts twice, as in Hive.
        """
        with self.db.begin() as pg:
            store.add_changes(pg, table_id, inserted, updated, deleted)
