"""Rows of the locks that keep a materialized view from being rebuilt twice at a time, and of what made it stale."""

from collections.abc import Sequence

from metastore.db.arrays import bigints
from metastore.db.engine import Database, PgTx
from metastore.ids import TableName
from metastore.materialized_views.rules import Since

# The invalid write ids of all tables in an array each; "place" says whose they are.
_SINCE = """
WITH since AS (
    SELECT * FROM unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[], %(marks)s::bigint[])
        WITH ORDINALITY AS s(catalog, db, "table", mark, place)),
missed AS (
    SELECT * FROM unnest(%(places)s::bigint[], %(invalid)s::bigint[]) AS m(place, write_id))"""


def insert_lock(pg: PgTx, view: TableName, txn_id: int) -> bool:
    """Take the view's lock, or find that the transaction has it; whether it has it now."""
    rows = pg.sql(
        """
        INSERT INTO materialization_locks (catalog, db, "table", txn_id, last_heartbeat_at)
        VALUES (%s, %s, %s, %s, metastore_now())
        ON CONFLICT (catalog, db, "table") DO UPDATE SET last_heartbeat_at = metastore_now()
        WHERE materialization_locks.txn_id = excluded.txn_id
        RETURNING txn_id""",
        (*view, txn_id),
    )
    return bool(rows)


def update_heartbeat(db: Database, view: TableName, txn_id: int) -> bool:
    """Keep the lock; whether it was there."""
    return bool(
        db.once(
            """
        UPDATE materialization_locks SET last_heartbeat_at = metastore_now()
        WHERE catalog = %s AND db = %s AND "table" = %s AND txn_id = %s RETURNING txn_id""",
            (*view, txn_id),
            durable=False,
        )
    )


def select_changes(db: Database, since: Sequence[Since]) -> list[int]:
    """Return transactions that committed updates or deletes which a view does not have."""
    rows = db.once(
        f"""{_SINCE}
        SELECT DISTINCT c.txn_id FROM since AS s JOIN completed_txn_components AS c USING (catalog, db, "table")
        WHERE c.update_delete AND (c.write_id > s.mark OR EXISTS (
            SELECT FROM missed AS m WHERE m.place = s.place AND m.write_id = c.write_id))""",
        _parameters(since),
    )
    return [txn_id for (txn_id,) in rows]


def is_compacted(db: Database, since: Sequence[Since]) -> bool:
    """Return True if a table is being compacted, or was compacted over writes which a view does not have."""
    [(compacted,)] = db.once(
        f"""{_SINCE}
        SELECT EXISTS (SELECT FROM since JOIN compaction_queue USING (catalog, db, "table"))
            OR EXISTS (
                SELECT FROM since AS s JOIN completed_compactions AS c USING (catalog, db, "table")
                WHERE c.state = 'succeeded' AND (c.highest_write_id > s.mark OR EXISTS (
                    SELECT FROM missed AS m WHERE m.place = s.place AND m.write_id = c.highest_write_id)))""",
        _parameters(since),
    )
    return bool(compacted)


def _parameters(since: Sequence[Since]) -> dict[str, object]:
    missed = [(place, write_id) for place, write_ids in enumerate(since, 1) for write_id in write_ids.invalid]
    return {
        "catalogs": [write_ids.name.catalog for write_ids in since],
        "dbs": [write_ids.name.db for write_ids in since],
        "tables": [write_ids.name.table for write_ids in since],
        "marks": bigints(write_ids.high_watermark for write_ids in since),
        "places": bigints(place for place, _ in missed),
        "invalid": bigints(write_id for _, write_id in missed),
    }
