"""The transaction of a compaction, as its Worker keeps it."""

from metastore.db.engine import PgTx


def update_txn_heartbeat(pg: PgTx, txn_id: int) -> bool:
    """Keep an open transaction alive; False when it is not open."""
    pg.sql(
        "UPDATE txns SET last_heartbeat_at = %(now)s, heartbeat_count = heartbeat_count + 1,"
        " longest_gap = greatest(longest_gap, %(now)s - last_heartbeat_at)"
        " WHERE id = %(txn)s AND state = 'open'",
        {"now": pg.now, "txn": txn_id},
    )
    return pg.rowcount == 1


def delete_compaction_component(pg: PgTx, txn_id: int) -> None:
    """Untie an aborted compaction's transaction from what it would have compacted."""
    pg.sql(
        "DELETE FROM txn_components USING txns WHERE txn_id = %s AND operation = 'c' AND txns.id = txn_id"
        " AND txns.state = 'aborted'",
        (txn_id,),
    )
