"""What materialized views remember of the tables that they were made from: a JSON object on the view's own row."""

from metastore.catalog.model import Json
from metastore.catalog.store.jsonb import to_json
from metastore.db.engine import PgTx
from metastore.ids import TableName


def update_creation_metadata(pg: PgTx, view: TableName, metadata: Json) -> bool:
    """Replace what a view remembers; the time of that is now unless it says another. False without such a view."""
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
    """Count changed rows of a table in every view that it feeds. Index: tables_materialized_views_idx."""
    pg.sql(
        """
        UPDATE tables AS view SET creation_metadata = jsonb_set(view.creation_metadata, '{sourceTables}', (
            SELECT jsonb_agg(CASE WHEN source @> fed.name THEN source || jsonb_build_object(
                       'insertedCount', coalesce((source ->> 'insertedCount')::bigint, 0) + %(inserted)s,
                       'updatedCount', coalesce((source ->> 'updatedCount')::bigint, 0) + %(updated)s,
                       'deletedCount', coalesce((source ->> 'deletedCount')::bigint, 0) + %(deleted)s)
                   ELSE source END ORDER BY place)
            FROM jsonb_array_elements(view.creation_metadata -> 'sourceTables') WITH ORDINALITY AS s(source, place)))
        FROM (SELECT jsonb_build_object('table', jsonb_build_object('dbName', db, 'tableName', name)) AS name
              FROM tables WHERE id = %(id)s) AS fed
        WHERE view.type = 'MATERIALIZED_VIEW'
          AND view.creation_metadata -> 'sourceTables' @> jsonb_build_array(fed.name)""",
        {"id": table_id, "inserted": inserted, "updated": updated, "deleted": deleted},
    )
