"""Rows of the locks that keep a materialized view from being rebuilt twice at a time."""

from metastore.db.engine import Database, PgTx
from metastore.ids import TableName


def insert_lock(pg: PgTx, view: TableName, txn_id: int) -> bool:
    """Take the view's lock, or find that the transaction has it; whether it has it now."""
    rows = pg.sql("""
        INSERT INTO materialization_locks (catalog, db, "table", txn_id, last_heartbeat_at)
        VALUES (%s, %s, %s, %s, metastore_now())
        ON CONFLICT (catalog, db, "table") DO UPDATE SET last_heartbeat_at = metastore_now()
        WHERE materialization_locks.txn_id = excluded.txn_id
        RETURNING txn_id""", (*view, txn_id))
    return bool(rows)


def update_heartbeat(db: Database, view: TableName, txn_id: int) -> bool:
    """Keep the lock; whether it was there."""
    return bool(db.once("""
        UPDATE materialization_locks SET last_heartbeat_at = metastore_now()
        WHERE catalog = %s AND db = %s AND "table" = %s AND txn_id = %s RETURNING txn_id""", (*view, txn_id),
        durable=False))
