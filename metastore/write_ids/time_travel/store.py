"""Commit times of write ids, kept after their owners are forgotten: rows of ``write_id_times``.

House-keeping writes one row for each table and batch, in the statement that forgets the owners, so that one of the two
exists at every moment. ``next_write_ids.known_since``: from this instant on, every commit to the table has one of the
two.
"""

from datetime import datetime

from metastore.db.engine import PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.write_ids.time_travel.rules import Horizon, PastWriteIds

_SQL = Statements(__file__)

BATCH = 1000
"""Rows that are forgotten at a time; a row has up to 10,000 commits."""

# A commit is dated when its PostgreSQL transaction begins: one in progress may be dated before a visible one.
_HORIZON = """
SELECT metastore_now(), least(metastore_now(), (
    SELECT min(xact_start) + (metastore_now() - now()) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'metastore' AND pid <> pg_backend_pid()))"""

_OF_TABLE = 'catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s'
_PAST = _SQL.text("past", of_table=_OF_TABLE)

RECORD_TIMES = """,
times AS (
    INSERT INTO write_id_times (catalog, db, "table", write_ids, committed_at, latest)
    SELECT catalog, db, "table", array_agg(write_id ORDER BY write_id), array_agg(ended_at ORDER BY write_id),
           max(ended_at)
    FROM gone JOIN txns ON id = txn_id GROUP BY catalog, db, "table")"""
"""Part of the statement that forgets the owners of committed write ids, which its CTE ``gone`` returns."""

_FORGET = _SQL.text("forget")


def select_horizon(pg: PgTx) -> Horizon:
    """Return the latest instant that can be asked for. Read it before anything that depends on it."""
    [row] = pg.sql(_HORIZON)
    return Horizon(*row)


def select_past(pg: PgTx, name: TableName, at: datetime) -> PastWriteIds:
    """Return a table's write ids as of an instant."""
    [(known_since, next_id, unfinished, aborted, later)] = pg.sql(_PAST, {**name._asdict(), "at": at})
    not_committed = [*((write_id, False) for write_id in unfinished), *((write_id, True) for write_id in aborted)]
    return PastWriteIds(known_since, next_id, not_committed, later)


def delete_times(pg: PgTx, before: datetime, keep: int, limit: int = BATCH) -> tuple[int, int]:
    """Forget commits from before an instant, and the oldest beyond ``keep``; return how many, in how many rows."""
    [(commits, rows)] = pg.sql(_FORGET, {"before": before, "keep": keep, "limit": limit})
    return int(commits), int(rows)
