"""Rows about waits: subscribers of releases, the wait graph, ended deadlocks, repeated requests.

An uncontended request needs none of this.
"""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from metastore.db.arrays import bigints
from metastore.db.engine import Database, PgTx
from metastore.db.prepared import Prepared
from metastore.db.statements import Statements
from metastore.locks.deadlocks.rules import Deadlock
from metastore.locks.rules import NO_TXN, Lock, LockObject, LockState, LockType

_SQL = Statements(__file__)

KEPT_DEADLOCKS = 1000

_COLUMNS = """ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, "user", host"""

_HEARTBEAT_SAME = _SQL.text("heartbeat_same", no_txn=NO_TXN, columns=_COLUMNS)


_SELECT_WATCHED = Prepared("""
SELECT locks.ext_id, locks.int_id, coalesce(watched_by IN (%(process)s::text, '*'), false)
  FROM unnest(%(ext_ids)s::bigint[], %(int_ids)s::int[]) AS wanted (ext_id, int_id)
  JOIN locks ON locks.ext_id = wanted.ext_id AND locks.int_id = wanted.int_id""")
_WATCH = Prepared("""
UPDATE locks SET watched_by = CASE WHEN watched_by IS NULL THEN %(process)s::text ELSE '*' END
 WHERE ext_id = %(ext_id)s::bigint AND int_id = %(int_id)s::int RETURNING ext_id""")


class DeadlockRow(NamedTuple):
    """A deadlock that was ended. ``cycle``: a dict for each wait in it."""

    found_at: datetime
    victim_txn_id: int
    cycle: list[dict[str, Any]]
    message: str


def update_watched(db: Database, locks: Collection[tuple[int, int]], process: str) -> set[int]:
    """Mark locks (ext_id, int_id) so that their release notifies the process; return the ext_ids of those that exist.

    The mark and a removal of the row exclude each other: the second sees the effect of the first. Rows are marked one
    at a time, so that this cannot deadlock with a call that removes many.
    """
    rows = db.once(
        _SELECT_WATCHED,
        {
            "ext_ids": bigints(ext_id for ext_id, _ in locks),
            "int_ids": bigints(int_id for _, int_id in locks),
            "process": process,
        },
    )
    there = {ext_id for ext_id, _, marked in rows if marked}
    for ext_id, int_id in [(ext_id, int_id) for ext_id, int_id, marked in rows if not marked]:
        there |= {
            watched
            for (watched,) in db.once(_WATCH, {"process": process, "ext_id": ext_id, "int_id": int_id}, durable=False)
        }
    return there


def heartbeat_same(
    pg: PgTx, txn_ids: Collection[int], agents: Collection[str], ext_ids: Collection[int]
) -> list[tuple[str, list[Lock]]]:
    """Return the stored requests of these transactions, and those of ``ext_ids`` of these agents without a transaction.

    Each with its agent info, earliest first. The latter are kept alive. Index: locks (ext_id, int_id), locks (txn_id).
    """
    rows = pg.sql(_HEARTBEAT_SAME, {"txns": bigints(txn_ids), "agents": list(agents), "ext_ids": bigints(ext_ids)})
    requests: dict[tuple[str, int], list[Lock]] = {}
    for agent_info, *row in rows:
        lock = _lock(row)
        requests.setdefault((agent_info, lock.ext_id), []).append(lock)
    return [
        (agent_info, sorted(requests[agent_info, ext_id])) for agent_info, ext_id in sorted(requests, key=itemgetter(1))
    ]


def select_asked_twice(db: Database, txn_ids: Collection[int] | None) -> list[int]:
    """Return those of the transactions (None: all that wait) that made more than one request.

    No other transaction closes a circle.
    """
    wanted = f"ARRAY(SELECT txn_id FROM locks WHERE state = '{LockState.WAITING}')"
    rows = db.once(
        f"""
        SELECT txn_id FROM locks
         WHERE txn_id <> {NO_TXN} AND txn_id = ANY ({wanted if txn_ids is None else "%(txns)s::bigint[]"})
         GROUP BY txn_id HAVING min(ext_id) < max(ext_id) ORDER BY txn_id""",
        {"txns": bigints(txn_ids or ())},
    )
    return [txn_id for (txn_id,) in rows]


def select_wait_graph(pg: PgTx) -> list[Lock]:
    """Return every lock of every party that waits."""
    rows = pg.sql(f"""
        WITH waiting AS (SELECT {_COLUMNS} FROM locks WHERE state = '{LockState.WAITING}')
        SELECT * FROM waiting
        UNION
        SELECT {_COLUMNS} FROM locks WHERE txn_id <> {NO_TXN} AND txn_id IN (SELECT txn_id FROM waiting)""")
    return [_lock(row) for row in rows]


def insert_deadlock(pg: PgTx, deadlock: Deadlock) -> None:
    """Store a deadlock, and delete all but the latest."""
    cycle = [{"wanted": _described(wait.wanted), "blocker": _described(wait.blocker)} for wait in deadlock.waits]
    pg.sql(
        f"""
        WITH added AS (
            INSERT INTO deadlocks (found_at, victim_txn_id, victim_lock_ids, cycle, message)
            VALUES (metastore_now(), %(victim)s, %(locks)s::bigint[], %(cycle)s::jsonb, %(message)s) RETURNING id)
        DELETE FROM deadlocks WHERE id <= (SELECT id FROM added) - {KEPT_DEADLOCKS}""",
        {
            "victim": deadlock.victim,
            "locks": bigints(deadlock.victim_lock_ids),
            "cycle": json.dumps(cycle),
            "message": deadlock.message,
        },
    )


def select_deadlocks(db: Database, limit: int) -> list[DeadlockRow]:
    """Return the latest deadlocks, latest first."""
    rows = db.once(
        "SELECT found_at, victim_txn_id, cycle, message FROM deadlocks ORDER BY id DESC LIMIT %(limit)s",
        {"limit": limit},
    )
    return [DeadlockRow(*row) for row in rows]


def select_victims(db: Database, ext_ids: Collection[int]) -> dict[int, str]:
    """Return the requests whose transaction died in a deadlock, each with the message about it."""
    rows = db.once(
        """
        SELECT lock_id, message FROM deadlocks, unnest(victim_lock_ids) AS lock_id
         WHERE victim_lock_ids && %(ids)s::bigint[] AND lock_id = ANY (%(ids)s::bigint[])""",
        {"ids": bigints(ext_ids)},
    )
    return dict(rows)


def _lock(row: Sequence[Any]) -> Lock:
    ext_id, int_id, txn_id, catalog, db, table, partition, kind, state, user, host = row
    return Lock(
        ext_id, int_id, txn_id, LockObject(catalog, db, table, partition), LockType(kind), LockState(state), user, host
    )


def _described(lock: Lock) -> dict[str, Any]:
    return {
        "lock_id": lock.ext_id,
        "txn_id": lock.txn_id,
        "object": str(lock.object),
        "type": lock.type.value,
        "state": lock.state.value,
        "user": lock.user,
        "host": lock.host,
    }
