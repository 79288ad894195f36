"""Parts of the statements that end a transaction or look back at it, which record it in ``txn_history``.

Rule: no abort and no write id is lost. The statement that aborts also records the abort. A commit costs nothing here:
the statement that removes the rows of a commit also records it (``COMMITS_REMEMBERED``).
"""

from metastore.db.engine import PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName

_SQL = Statements(__file__)

_REBALANCE = 6
"""``TxnType.REBALANCE_COMPACTION``, of a room that imports this one."""
LONGEST = 1000
"""Most components, and most locks, that are remembered of one transaction."""

RECORD = """state, type, "user", host, agent_info, started_at, last_heartbeat_at, heartbeat_count, longest_gap,
    ended_at, abort_code, abort_reason, commit_id"""
INTO_HISTORY = f"""INSERT INTO txn_history (txn_id, {RECORD}, written_rows, writes, write_count, locks, lock_count)
    SELECT txn_id, {RECORD}, written_rows"""
WRITE = 'jsonb_build_array(catalog, db, "table", partition, operation, write_id)'
LOCK = 'jsonb_build_array(ext_id, catalog, db, "table", partition, type, state, requested_at, acquired_at)'


def cut(item: str, rows: str) -> str:
    """Return a table of one row: the first of some rows as JSON, and their number."""
    return f"""(SELECT coalesce(jsonb_agg({item}) FILTER (WHERE place <= {LONGEST}), '[]') AS list, count(*) AS size
     FROM (SELECT *, row_number() OVER () AS place FROM ({rows}) AS found) AS numbered)"""


def declared(txn_id: str) -> str:
    """Return SQL for the components of a transaction; ``txn_id``: an expression."""
    return cut(WRITE, _SQL.text("declared", txn_id=txn_id))


def held(txn_id: str) -> str:
    """Return SQL for the locks of a transaction; ``txn_id``: an expression."""
    return cut(LOCK, f"SELECT * FROM locks WHERE txn_id = {txn_id} AND txn_id <> 0 ORDER BY ext_id, int_id")


_RENAME = _SQL.text(
    "rename",
    old="%(old_catalog)s::text, %(old_db)s::text, %(old_table)s::text",
    new="%(new_catalog)s::text, %(new_db)s::text, %(new_table)s::text",
)

WROTE = _SQL.text("wrote", rebalance=_REBALANCE)
"""What committed transactions wrote, as a query of the table ``wanted``."""


COMMITS_REMEMBERED = _SQL.text(
    "commits_remembered", write=WRITE, longest=LONGEST, wrote=WROTE, into_history=INTO_HISTORY
)
"""CTEs of the statement that removes rows of commits, whose transactions its CTE ``gone`` returns."""


def removing(delete: str) -> str:
    """Return a statement that removes rows of commits, records the commits, and counts the rows."""
    return f"WITH gone AS ({delete} RETURNING txn_id), {COMMITS_REMEMBERED} SELECT count(*) FROM gone"


def rename_table(pg: PgTx, old: TableName, new: TableName) -> None:
    """Let the history of a table follow its new name."""
    pg.sql(
        _RENAME,
        {
            **{f"old_{part}": text for part, text in old._asdict().items()},
            **{f"new_{part}": text for part, text in new._asdict().items()},
        },
    )


REMEMBERED = f"""
remembered AS (
    {INTO_HISTORY}, wrote.list, wrote.size, held.list, held.size
    FROM (SELECT *, id AS txn_id FROM ended) AS mine
    CROSS JOIN LATERAL {declared("mine.id")} AS wrote
    CROSS JOIN LATERAL {held("mine.id")} AS held
    ON CONFLICT (txn_id) DO NOTHING)"""
"""Part of the statement that aborts the transactions which its CTE ``ended`` returns with all columns."""
