"""What is left of transactions: their rows while there are any, ``txn_history`` afterwards.

A commit costs nothing here: what it wrote stays in ``completed_txn_components`` until house-keeping or a compaction
removes it, and house-keeping copies it first. An abort is remembered at once (``txns/remembering``). The lists of a
remembered transaction are cut at ``LONGEST`` and counted before.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from metastore.db.arrays import bigints
from metastore.db.engine import Database, PgTx
from metastore.txns.core.rules import TxnState, TxnType
from metastore.txns.history.rules import Evidence, Left, Record
from metastore.txns.remembering.store import DECLARED, HELD, INTO_HISTORY, LOCK, LONGEST, RECORD, WRITE, cut

BATCH = 10_000
LATE = 1000
"""Aborts that are looked through for the former owner of a lock."""

# What committed transactions wrote, those of the table "wanted". Which operation it was is known only as long as the
# write sets are kept; then what is left is that something of it was changed.
_COMPLETED = """
    SELECT c.txn_id, c.catalog, c.db, c."table", c.partition, c.write_id, row_number() OVER mine AS place,
           CASE WHEN NOT c.update_delete THEN 'i' WHEN s.operation IS NOT NULL THEN s.operation
                WHEN bool_or(s.operation IS NOT NULL) OVER mine THEN 'i' ELSE 'w' END AS operation
    FROM wanted JOIN txns AS t ON t.id = wanted.txn_id JOIN completed_txn_components AS c ON c.txn_id = wanted.txn_id
    LEFT JOIN write_sets AS s ON s.catalog = c.catalog AND s.db = c.db AND s."table" = c."table"
         AND s.partition = c.partition AND s.commit_id = t.commit_id AND s.txn_id = t.id
    WINDOW mine AS (PARTITION BY c.txn_id)"""

LATEST = "txn_id > (SELECT next_txn_id FROM txn_counter) - 1 - %(keep)s"
"""Condition: the id is among the latest, as many as are remembered at all."""

_REMEMBER_COMMITS = f"""
WITH wanted AS MATERIALIZED (
    SELECT DISTINCT txn_id FROM completed_txn_components AS c
    WHERE txn_id > %(after)s AND {LATEST}
      AND NOT EXISTS (SELECT FROM txn_history AS h WHERE h.txn_id = c.txn_id)
    ORDER BY txn_id LIMIT %(limit)s),
wrote AS (
    SELECT txn_id, jsonb_agg({WRITE}) FILTER (WHERE place <= {LONGEST}) AS list, count(*) AS size
    FROM ({_COMPLETED}) AS completed GROUP BY txn_id),
remembered AS (
    {INTO_HISTORY}, list, size, '[]', 0 FROM wrote JOIN txns ON id = txn_id ON CONFLICT (txn_id) DO NOTHING)
SELECT max(txn_id), count(*) FROM wanted"""

_EVIDENCE = f"""
SELECT a.id, r.from_history,
    EXISTS (SELECT FROM completed_txn_components WHERE txn_id = a.id),
    coalesce((SELECT last_id >= a.id FROM skipped_txn_ids WHERE first_id <= a.id ORDER BY first_id DESC LIMIT 1),
             false),
    c.next_txn_id - 1, coalesce((SELECT complete_above FROM txn_history_floor), 0), {RECORD}
FROM txn_counter AS c CROSS JOIN unnest(%(ids)s::bigint[]) AS a(id) LEFT JOIN LATERAL (
    SELECT false AS from_history, {RECORD} FROM txns WHERE id = a.id
    UNION ALL SELECT true, {RECORD} FROM txn_history WHERE txn_id = a.id
    ORDER BY from_history LIMIT 1) AS r ON true"""

# One statement, hence as of one instant: what an abort remembered, else what a commit remembered or has left, else what
# is declared and held now.
_LIFE = f"""
WITH wanted AS (SELECT %(txn)s::bigint AS txn_id),
declaring AS (
    SELECT txn_id FROM txns JOIN wanted ON id = txn_id
    WHERE state <> 'committed' AND NOT EXISTS (SELECT FROM txn_history AS h WHERE h.txn_id = txns.id)),
lists AS (
    SELECT writes, write_count, locks, lock_count FROM txn_history JOIN wanted USING (txn_id)
    UNION ALL
    SELECT wrote.list, wrote.size, held.list, held.size
    FROM declaring CROSS JOIN LATERAL {cut(WRITE, DECLARED.format(txn_id="declaring.txn_id"))} AS wrote
                   CROSS JOIN LATERAL {cut(LOCK, HELD.format(txn_id="declaring.txn_id"))} AS held
    UNION ALL
    SELECT list, size, '[]', 0
    FROM {cut(WRITE, f'SELECT catalog, db, "table", partition, operation, write_id FROM ({_COMPLETED}) AS one')}
         AS completed
    WHERE NOT EXISTS (SELECT FROM declaring) AND NOT EXISTS (SELECT FROM txn_history JOIN wanted USING (txn_id)))
SELECT metastore_now(), writes, write_count, locks, lock_count, evidence.*
FROM lists CROSS JOIN ({_EVIDENCE}) AS evidence"""

# Why snapshots name an aborted transaction.
_LEFT = """
SELECT c.catalog, c.db, c."table", c.partition, coalesce(c.write_id, w.write_id), c.cleaned, t.may_publish
FROM txns AS t JOIN txn_components AS c ON c.txn_id = t.id
LEFT JOIN txn_write_ids AS w ON (w.txn_id, w.catalog, w.db, w."table") = (c.txn_id, c.catalog, c.db, c."table")
WHERE t.id = %(txn)s AND t.state = 'aborted' ORDER BY 1, 2, 3, 4, 5"""

# A client asks for its lock every minute, or it is gone itself.
_OWNERS = f"""
SELECT lock_id, owner.txn_id FROM unnest(%(ids)s::bigint[]) AS lock_id CROSS JOIN LATERAL (
    SELECT txn_id FROM (
        SELECT txn_id, locks FROM txn_history WHERE state = 'aborted' ORDER BY ended_at DESC LIMIT {LATE}) AS late
    WHERE locks @> jsonb_build_array(jsonb_build_array(lock_id)) LIMIT 1) AS owner"""

_FORGET = f"""
WITH removed AS (
    DELETE FROM txn_history WHERE txn_id = ANY(ARRAY(
        SELECT txn_id FROM (VALUES ('aborted'), ('committed')) AS kinds(state) CROSS JOIN LATERAL (
            SELECT txn_id FROM txn_history AS h WHERE h.state = kinds.state AND ended_at < %(before)s
            UNION
            (SELECT txn_id FROM txn_history AS h WHERE h.state = kinds.state
             ORDER BY ended_at DESC OFFSET %(keep)s)) AS old
        LIMIT {BATCH}))
    RETURNING txn_id, state),
floor AS (
    INSERT INTO txn_history_floor SELECT 1, max(txn_id) FROM removed WHERE state = 'aborted' HAVING count(*) > 0
    ON CONFLICT (id) DO UPDATE SET complete_above = greatest(txn_history_floor.complete_above, excluded.complete_above))
SELECT count(*) FROM removed"""


class Life(NamedTuple):
    """All that is left of a transaction; rows of the lists as ``txn_history`` has them."""

    evidence: Evidence
    at: datetime
    writes: list[list[Any]]
    write_count: int
    locks: list[list[Any]]
    lock_count: int


def insert_committed(pg: PgTx, keep: int, after_id: int) -> tuple[int | None, int]:
    """Remember what the next commits wrote that are not remembered yet; the last one, and how many there were.

    Only of the latest ``keep`` transactions: older ones would be forgotten at once.
    """
    [(last_id, count)] = pg.sql(_REMEMBER_COMMITS, {"after": after_id, "keep": keep, "limit": BATCH})
    return last_id, int(count)


def delete_history(pg: PgTx, before: datetime, keep: int) -> int:
    """Forget what ended before an instant, and the oldest of what is more than ``keep`` of a kind; at most a batch."""
    [(count,)] = pg.sql(_FORGET, {"before": before, "keep": keep})
    return int(count)


def select_evidence(db: Database, txn_ids: Collection[int]) -> dict[int, Evidence]:
    """All that is left of the transactions, by id, as of one instant."""
    return {left.txn_id: left for left in map(_evidence, db.once(_EVIDENCE, {"ids": bigints(txn_ids)}))}


def select_settled(db: Database, txn_id: int) -> Evidence:
    """All that is left of one transaction, once nobody is ending it at the moment.

    Who ends a transaction holds its row FOR UPDATE; heartbeats neither wait for this, nor it for them.
    """
    [row] = db.once(
        f"SELECT FROM txns WHERE id = ANY(%(ids)s::bigint[]) FOR KEY SHARE; {_EVIDENCE}", {"ids": bigints([txn_id])}
    )
    return _evidence(row)


def select_life(db: Database, txn_id: int) -> Life:
    """All that is left of one transaction, with what it wrote and locked."""
    [(now, writes, write_count, locks, lock_count, *evidence)] = db.once(
        _LIFE, {"txn": txn_id, "ids": bigints([txn_id])}
    )
    return Life(_evidence(evidence), now, writes, write_count, locks, lock_count)


def select_left(db: Database, txn_id: int) -> list[Left]:
    """What an aborted transaction is still listed for."""
    return [
        Left(f"{catalog}.{database}.{table}" + (f"/{partition}" if partition else ""), *rest)
        for catalog, database, table, partition, *rest in db.once(_LEFT, {"txn": txn_id})
    ]


def select_lock_owners(db: Database, lock_ids: Collection[int]) -> dict[int, int]:
    """The transactions that had these locks when they were aborted, by lock, among the latest aborts."""
    return dict(db.once(_OWNERS, {"ids": bigints(lock_ids)}))


def _evidence(row: Any) -> Evidence:
    txn_id, from_history, wrote, skipped, mark, complete_above, state, kind, *rest = row
    record = Record(TxnState(state), TxnType(kind), *rest) if state is not None else None
    return Evidence(txn_id, record, bool(from_history), wrote, skipped, mark, complete_above)
