"""The transaction of a compaction and its Worker's heartbeats."""

from metastore.db.engine import PgTx


def update_txn_heartbeat(pg: PgTx, txn_id: int) -> bool:
    """Keep an open transaction alive; False if it is not open."""
    pg.sql(
        "UPDATE txns SET last_heartbeat_at = %(now)s, heartbeat_count = heartbeat_count + 1,"
        " longest_gap = greatest(longest_gap, %(now)s - last_heartbeat_at)"
        " WHERE id = %(txn)s AND state = 'open'",
        {"now": pg.now, "txn": txn_id},
    )
    return pg.rowcount == 1


def update_compaction_component(pg: PgTx, txn_id: int, write_id: int) -> None:
    """Record the highest write id of the result that the transaction may publish."""
    pg.sql("UPDATE txn_components SET write_id = %s WHERE txn_id = %s AND operation = 'c'", (write_id, txn_id))


def delete_compaction_components(pg: PgTx, txn_id: int) -> None:
    """Untie an aborted compaction's transaction from its target; a rebalance's has two components."""
    pg.sql(
        "DELETE FROM txn_components USING txns WHERE txn_id = %s AND txns.id = txn_id AND txns.state = 'aborted'",
        (txn_id,),
    )
