"""Metadata that materialized views keep about their source tables: a JSON object on the view's own row."""

from metastore.catalog.model import Json
from metastore.catalog.store.jsonb import to_json
from metastore.db.engine import PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName

_SQL = Statements(__file__)

_ADD_CHANGES = _SQL.text("add_changes")


def update_creation_metadata(pg: PgTx, view: TableName, metadata: Json) -> bool:
    """Replace a view's metadata; its time is now unless it has one. False without such a view."""
    return bool(
        pg.sql(
            """
        UPDATE tables SET creation_metadata = jsonb_build_object('materializationTime',
            floor(extract(epoch FROM metastore_now()) * 1000)::bigint) || %s::jsonb
        WHERE catalog = %s AND db = %s AND name = %s AND type = 'MATERIALIZED_VIEW' RETURNING 1""",
            (to_json(metadata), *view),
        )
    )


def add_changes(pg: PgTx, table_id: int, inserted: int, updated: int, deleted: int) -> None:
    """Count changed rows of a table in every view on it. Index: tables_materialized_views_idx."""
    pg.sql(_ADD_CHANGES, {"id": table_id, "inserted": inserted, "updated": updated, "deleted": deleted})
