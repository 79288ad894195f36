"""What the doctor asks PostgreSQL: each question quick, whatever the size of the installation."""

import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from time import perf_counter
from typing import NamedTuple

from metastore.db.engine import Database
from metastore.db.leader import FAMILY
from metastore.doctor.rules import LEADERS, MANY_DELTAS, OldTxn, Queue, TableState, WaitingLock

_COMMITS = 5
_MOST = 10
"""Tables of a kind that are named."""
_PLACE = """db || '.' || "table" || CASE WHEN partition = '' THEN '' ELSE '/' || partition END"""


class PostgresState(NamedTuple):
    """PostgreSQL itself."""

    version: int
    connections: int
    most_connections: int
    settings: dict[str, str]
    now: datetime


def select_state(db: Database) -> PostgresState:
    """Return the state of PostgreSQL."""
    [row] = db.once(
        "SELECT current_setting('server_version_num')::int, (SELECT count(*) FROM pg_stat_activity)::int, "
        "current_setting('max_connections')::int, jsonb_build_object('fsync', current_setting('fsync'), "
        "'full_page_writes', current_setting('full_page_writes'), 'autovacuum', current_setting('autovacuum')), "
        "clock_timestamp()"
    )
    return PostgresState(*row)


def time_of_commit(db: Database) -> timedelta:
    """Return the median time of a durable commit; nothing is changed by it."""
    times = []
    for _ in range(_COMMITS):
        begun = perf_counter()
        db.once("SELECT pg_logical_emit_message(true, 'metastore doctor', '')")
        times.append(perf_counter() - begun)
    return timedelta(seconds=sorted(times)[_COMMITS // 2])


def select_late_replicas(db: Database) -> list[tuple[str, timedelta]]:
    """Return PostgreSQL's replicas with their lag; none where the role may not see them."""
    return [
        (name, late)
        for name, late in db.once("SELECT application_name, replay_lag FROM pg_stat_replication")
        if late is not None
    ]


def select_dead_rows(db: Database) -> list[TableState]:
    """Return our tables with most dead rows."""
    rows = db.once(
        "SELECT relname, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = current_schema() AND n_dead_tup > 0 "
        "ORDER BY n_dead_tup DESC LIMIT %s",
        (_MOST,),
    )
    return [TableState(*row) for row in rows]


def select_long_snapshot(db: Database) -> tuple[int, str, timedelta] | None:
    """Return the session with the oldest snapshot."""
    rows = db.once(
        "SELECT pid, application_name, clock_timestamp() - xact_start FROM pg_stat_activity "
        "WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database() "
        "ORDER BY xact_start LIMIT 1"
    )
    return next(((pid, name, age) for pid, name, age in rows), None)


def select_led(db: Database) -> frozenset[str]:
    """Return the roles of `LEADERS` that a process has."""
    keys = {zlib.crc32(role.encode()) - 2**31: role for role in LEADERS}
    rows = db.once(
        "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        (FAMILY,),
    )
    signed = {number - 2**32 if number >= 2**31 else number for (number,) in rows}
    return frozenset(role for key, role in keys.items() if key in signed)


def select_oldest_txn(db: Database) -> OldTxn | None:
    """Return the open transaction that began first."""
    # More than "open" is said, so that the index of transactions that have not ended is used.
    rows = db.once(
        """SELECT id, "user", host, metastore_now() - started_at, metastore_now() - last_heartbeat_at FROM txns
        WHERE state = 'open' AND NOT emptied AND state <> 'committed' ORDER BY id LIMIT 1"""
    )
    return next((OldTxn(*row) for row in rows), None)


def select_waiting(db: Database) -> WaitingLock | None:
    """Return the lock request that has waited longest."""
    rows = db.once(
        f"""SELECT ext_id, {_PLACE}, metastore_now() - requested_at FROM locks WHERE state = 'waiting'
        ORDER BY requested_at LIMIT 1"""
    )
    return next((WaitingLock(*row) for row in rows), None)


def select_queue(db: Database) -> Sequence[Queue]:
    """Return the states of the compaction queue."""
    rows = db.once(
        "SELECT replace(state, '_', ' '), count(*), metastore_now() - min(coalesce(ended_at, started_at, enqueued_at)) "
        "FROM compaction_queue GROUP BY state"
    )
    return [Queue(*row) for row in rows]


def select_failed(db: Database) -> list[TableState]:
    """Return the tables whose compactions failed within a day."""
    rows = db.once(
        f"""SELECT {_PLACE} AS place, count(*) FROM completed_compactions
        WHERE state = 'failed' AND ended_at > metastore_now() - interval '1 day'
        GROUP BY place ORDER BY count(*) DESC LIMIT %s""",
        (_MOST,),
    )
    return [TableState(*row) for row in rows]


def select_many_deltas(db: Database) -> list[TableState]:
    """Return the tables and partitions with most deltas, by what the Initiator saw last."""
    rows = db.once(
        f"SELECT {_PLACE}, deltas FROM delta_measures WHERE deltas >= %s ORDER BY deltas DESC LIMIT %s",
        (MANY_DELTAS, _MOST),
    )
    return [TableState(*row) for row in rows]
