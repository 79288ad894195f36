"""How a transaction gets into ``txn_history``: parts of the statements that end it or look back at it.

An abort is remembered by the statement that aborts, so that no abort is without a trace.
"""

LONGEST = 1000
"""Most components, and most locks, that are remembered of one transaction."""

RECORD = """state, type, "user", host, agent_info, started_at, last_heartbeat_at, heartbeat_count, longest_gap,
    ended_at, abort_code, abort_reason, commit_id"""
INTO_HISTORY = f"""INSERT INTO txn_history (txn_id, {RECORD}, writes, write_count, locks, lock_count)
    SELECT txn_id, {RECORD}"""
WRITE = 'jsonb_build_array(catalog, db, "table", partition, operation, write_id)'
LOCK = 'jsonb_build_array(ext_id, catalog, db, "table", partition, type, state, requested_at, acquired_at)'


def cut(item: str, rows: str) -> str:
    """A table of one row: the first of some rows as JSON, and their number."""
    return f"""(SELECT coalesce(jsonb_agg({item}) FILTER (WHERE place <= {LONGEST}), '[]') AS list, count(*) AS size
     FROM (SELECT *, row_number() OVER () AS place FROM ({rows}) AS found) AS numbered)"""


# What an unfinished or aborted transaction declared, with the write id that it got later; write ids beside that.
DECLARED = """
    SELECT c.catalog, c.db, c."table", c.partition, c.operation, coalesce(c.write_id, w.write_id) AS write_id
    FROM txn_components AS c LEFT JOIN txn_write_ids AS w USING (txn_id, catalog, db, "table")
    WHERE c.txn_id = {txn_id} AND (c.operation <> 'c' OR c.partition <> '' OR NOT EXISTS (
        SELECT FROM txn_components AS n WHERE n.txn_id = c.txn_id AND n.catalog = c.catalog AND n.db = c.db
        AND n."table" = c."table" AND n.operation <> 'c'))
    UNION ALL
    SELECT w.catalog, w.db, w."table", '', 'r', w.write_id FROM txn_write_ids AS w
    WHERE w.txn_id = {txn_id} AND NOT EXISTS (
        SELECT FROM txn_components AS c WHERE c.txn_id = w.txn_id AND c.catalog = w.catalog AND c.db = w.db
        AND c."table" = w."table")"""

HELD = "SELECT * FROM locks WHERE txn_id = {txn_id} AND txn_id <> 0 ORDER BY ext_id, int_id"

REMEMBERED = f"""
remembered AS (
    {INTO_HISTORY}, wrote.list, wrote.size, held.list, held.size
    FROM (SELECT *, id AS txn_id FROM ended) AS mine
    CROSS JOIN LATERAL {cut(WRITE, DECLARED.format(txn_id="mine.id"))} AS wrote
    CROSS JOIN LATERAL {cut(LOCK, HELD.format(txn_id="mine.id"))} AS held
    ON CONFLICT (txn_id) DO NOTHING)"""
"""Part of the statement that aborts the transactions which its CTE ``ended`` returns with all columns."""
