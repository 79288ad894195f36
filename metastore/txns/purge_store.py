"""What is removed once nobody can need it (transactions.md §5.3), in batches that hold locks only briefly.

M, the oldest reader: the smallest open id, or the next id where none is open. What committed before M began is seen as
committed by every live snapshot.
"""

from datetime import datetime
from typing import NamedTuple

from metastore.db.engine import PgTx
from metastore.txns.history_rules import when
from metastore.txns.history_store import INTO_HISTORY, LATEST
from metastore.txns.rules import AbortCode, ExpiryCutoffs, TxnType
from metastore.txns.store import LISTED, abort

BATCH = 10_000

_OLDEST_READER = f"""(SELECT coalesce((SELECT min(id) FROM txns WHERE {LISTED} AND state = 'open'),
                                       (SELECT next_txn_id FROM txn_counter)))"""

# Ends a statement whose CTE "gone" holds the removed rows of txn_write_ids.
_REMEMBER_PURGED = """,
tops AS (SELECT catalog, db, "table", max(write_id) AS top FROM gone GROUP BY catalog, db, "table"),
mine AS (SELECT catalog, db, "table", top FROM next_write_ids JOIN tops USING (catalog, db, "table")
         ORDER BY catalog, db, "table" FOR UPDATE OF next_write_ids),
remembered AS (
    UPDATE next_write_ids AS n SET purged_write_id = greatest(n.purged_write_id, mine.top)
    FROM mine WHERE n.catalog = mine.catalog AND n.db = mine.db AND n."table" = mine."table")"""


class Purged(NamedTuple):
    """One window of transaction records: how many are gone, where it ended, whether it may go on."""

    removed: int
    last_id: int | None
    more: bool


def abort_expired(pg: PgTx, cutoffs: ExpiryCutoffs, limit: int = BATCH) -> tuple[list[int], set[str]]:
    """Abort open transactions whose last heartbeat is too old; they, and the policies whose mapping went.

    A heartbeat that arrives first wins: rows that somebody works on are left for the next round.
    """
    rows = pg.sql(f"""
        SELECT id, "user", host, last_heartbeat_at FROM txns
        WHERE {LISTED} AND state = 'open'
          AND last_heartbeat_at < CASE type WHEN {TxnType.REPL_CREATED:d} THEN %s ELSE %s END
        ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED""", (cutoffs.replicated, cutoffs.normal, limit))
    if not rows:
        return [], set()
    found = abort(pg, [(txn_id, AbortCode.TIMEOUT, _expiry_reason(pg.now, user, host, heartbeat_at))
                       for txn_id, user, host, heartbeat_at in rows])
    return [one.txn_id for one in found], {one.policy for one in found if one.policy is not None}


def _expiry_reason(now: datetime, user: str, host: str, heartbeat_at: datetime) -> str:
    silence = (now - heartbeat_at).total_seconds()
    return (f"aborted because no heartbeat of {user}@{host} arrived for {silence:.0f} s, the last one at "
            f"{when(heartbeat_at)}")


def delete_write_sets(pg: PgTx, limit: int = BATCH) -> int:
    """Remove committed writes that no present or future transaction can conflict with."""
    pg.sql(f"""
        DELETE FROM write_sets WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM write_sets WHERE commit_id < {_OLDEST_READER}
            ORDER BY commit_id LIMIT %s FOR UPDATE SKIP LOCKED))""", (limit,))
    return pg.rowcount


def delete_write_ids(pg: PgTx, limit: int = BATCH) -> int:
    """Forget who owned write ids that every live snapshot calls valid anyway."""
    [(count,)] = pg.sql(f"""
        WITH gone AS (
            DELETE FROM txn_write_ids WHERE ctid = ANY(ARRAY(
                SELECT w.ctid FROM txn_write_ids AS w JOIN txns AS t ON t.id = w.txn_id
                WHERE t.state = 'committed' AND t.commit_id < {_OLDEST_READER} LIMIT %s FOR UPDATE OF w SKIP LOCKED))
            RETURNING catalog, db, "table", write_id)
        {_REMEMBER_PURGED}
        SELECT count(*) FROM gone""", (limit,))
    return int(count)


def delete_duplicate_components(pg: PgTx) -> int:
    """Remove completed components that a newer one, visible to everybody, says as much as."""
    pg.sql(f"""
        WITH settled AS (
            SELECT c.* FROM completed_txn_components AS c LEFT JOIN txns AS t ON t.id = c.txn_id
            WHERE t.id IS NULL OR t.commit_id < {_OLDEST_READER}),
        newest AS (
            SELECT catalog, db, "table", partition, max(write_id) AS any_write,
                   max(write_id) FILTER (WHERE update_delete) AS change
            FROM settled GROUP BY catalog, db, "table", partition HAVING count(*) > 1)
        DELETE FROM completed_txn_components AS c USING newest AS n
        WHERE c.catalog = n.catalog AND c.db = n.db AND c."table" = n."table" AND c.partition = n.partition
          AND c.write_id < n.any_write AND (NOT c.update_delete OR c.write_id < n.change)""")
    return pg.rowcount


def empty_aborted(pg: PgTx, limit: int = BATCH) -> int:
    """Let snapshots no longer name aborted transactions of which no component is left, nor who owned their write ids.

    Nothing on disk carries those write ids any more, so that "valid" is as true of them as "aborted".
    """
    [(count,)] = pg.sql(f"""
        WITH emptied AS (
            UPDATE txns SET emptied = true WHERE id = ANY(ARRAY(
                SELECT id FROM txns AS t WHERE {LISTED} AND state = 'aborted'
                  AND (SELECT 1 FROM txn_components AS c WHERE c.txn_id = t.id LIMIT 1) IS NULL
                ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED))
            RETURNING id),
        gone AS (DELETE FROM txn_write_ids USING emptied WHERE txn_id = emptied.id
                 RETURNING catalog, db, "table", write_id)
        {_REMEMBER_PURGED}
        SELECT count(*) FROM emptied""", (limit,))
    return int(count)


def delete_ended(pg: PgTx, before: datetime, after_id: int, keep: int, limit: int = BATCH) -> Purged:
    """Remove records of transactions that ended before an instant, among the next ``limit`` records.

    Those that were aborted, and the latest ``keep`` of all, are in the history then.
    Ids follow time closely: the walk may stop at a window whose last committed record is still to be kept.
    """
    [(count, last_id, more)] = pg.sql(f"""
        WITH visited AS MATERIALIZED (
            SELECT id, state = 'committed' OR emptied AS ended, ended_at FROM txns WHERE id > %(after)s
            ORDER BY id LIMIT %(limit)s),
        gone AS (
            DELETE FROM txns USING visited AS v WHERE txns.id = v.id AND v.ended AND v.ended_at < %(before)s
              AND (SELECT 1 FROM txn_write_ids AS w WHERE w.txn_id = v.id LIMIT 1) IS NULL
            RETURNING txns.*, txns.id AS txn_id),
        remembered AS (
            {INTO_HISTORY}, '[]', 0, '[]', 0 FROM gone
            WHERE state = 'aborted' OR {LATEST} ON CONFLICT (txn_id) DO NOTHING)
        SELECT (SELECT count(*) FROM gone), max(id),
               count(*) = %(limit)s
               AND coalesce((SELECT ended_at < %(before)s FROM visited WHERE ended ORDER BY id DESC LIMIT 1), true)
        FROM visited""", {"after": after_id, "limit": limit, "before": before, "keep": keep})
    return Purged(count, last_id, bool(more))


def delete_materialization_locks(pg: PgTx, before: datetime) -> int:
    """Remove rebuild locks without recent heartbeat whose transaction is over."""
    pg.sql("""DELETE FROM materialization_locks AS r WHERE last_heartbeat_at < %s
              AND NOT EXISTS (SELECT FROM txns WHERE id = r.txn_id AND state = 'open')""", (before,))
    return pg.rowcount


