"""Rows of ``stream_batches``: the last batch of each streaming query in a table; they live as long as the table."""

from typing import Any

from metastore.db.engine import Database, PgTx
from metastore.ids import TableName
from metastore.txns.streams.rules import StreamBatch, StreamPosition

_POSITION = "query_id, batch_id, plan, txn_id, at"


def lock_table_id(pg: PgTx, name: TableName) -> int | None:
    """Lock the table's row until this PostgreSQL transaction ends, and return its id.

    None if there is no such table.
    """
    rows = pg.sql("SELECT id FROM tables WHERE catalog = %s AND db = %s AND name = %s FOR KEY SHARE", name)
    return rows[0][0] if rows else None


def advance(pg: PgTx, table_id: int, batch: StreamBatch, txn_id: int) -> bool:
    """Record a query's next batch; False, and no change, unless it is later than all recorded batches."""
    return bool(
        pg.sql(
            f"""
        INSERT INTO stream_batches (table_id, {_POSITION}) VALUES (%s, %s, %s, %s, %s, metastore_now())
        ON CONFLICT (table_id, query_id) DO UPDATE
        SET batch_id = excluded.batch_id, plan = excluded.plan, txn_id = excluded.txn_id, at = excluded.at
        WHERE stream_batches.batch_id < excluded.batch_id
        RETURNING batch_id""",
            (table_id, *batch, txn_id),
        )
    )


def select_position(pg: PgTx, table_id: int, query_id: str) -> StreamPosition | None:
    """Return the position of a query."""
    rows = pg.sql(f"SELECT {_POSITION} FROM stream_batches WHERE table_id = %s AND query_id = %s", (table_id, query_id))
    return _position(rows[0]) if rows else None


def select_positions(db: Database, name: TableName) -> list[StreamPosition]:
    """Return the positions of all queries, the latest first."""
    rows = db.once(
        f"""
        SELECT {_POSITION} FROM stream_batches WHERE table_id = (
            SELECT id FROM tables WHERE catalog = %s AND db = %s AND name = %s)
        ORDER BY at DESC, query_id""",
        name,
    )
    return [_position(row) for row in rows]


def _position(row: Any) -> StreamPosition:
    query_id, batch_id, plan, txn_id, at = row
    return StreamPosition(StreamBatch(query_id, batch_id, plan), txn_id, at)
