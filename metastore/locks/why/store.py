"""Who waits for whom, and what is known of them: read as of one instant, for ``why.walk``."""

from datetime import datetime
from typing import NamedTuple

from metastore.db.engine import Database
from metastore.ids import TableName
from metastore.locks.rules import NO_TXN, Lock, LockObject, LockState, LockType
from metastore.locks.why.rules import Owner, owner_of
from metastore.txns.core.rules import TxnType

# All locks that wait; those near them, a superset of those that they may wait for; those that are asked about.
_LOCKS = f"""
WITH waiting AS (
    SELECT DISTINCT catalog, db, "table" FROM locks WHERE state = '{LockState.WAITING}'),
near AS (
    SELECT ext_id, int_id FROM locks WHERE state = '{LockState.WAITING}'
    UNION
    SELECT l.ext_id, l.int_id FROM waiting AS w JOIN locks AS l ON l.catalog = w.catalog AND l.db = w.db
        AND (w."table" = '' OR l."table" = '' OR l."table" = w."table")
    UNION
    SELECT ext_id, int_id FROM locks WHERE ext_id = %(lock)s
    UNION
    SELECT ext_id, int_id FROM locks WHERE txn_id = %(txn)s AND txn_id <> {NO_TXN}
    UNION
    SELECT ext_id, int_id FROM locks
    WHERE catalog = %(catalog)s AND db = %(db)s AND ("table" = '' OR "table" = %(table)s))
SELECT metastore_now(), l.ext_id, l.int_id, l.txn_id, l.catalog, l.db, l."table", l.partition, l.type, l.state,
       l."user", l.host, l.agent_info, l.requested_at, l.acquired_at, l.last_heartbeat_at,
       CASE WHEN l.orphaned_at IS NOT NULL AND l.heartbeat_count = l.check_count
            THEN greatest(l.orphaned_at, l.last_heartbeat_at) END,
       t.type, t."user", t.host, t.agent_info, t.started_at, t.last_heartbeat_at
FROM near JOIN locks AS l USING (ext_id, int_id) LEFT JOIN txns AS t ON t.id = l.txn_id AND l.txn_id <> {NO_TXN}
ORDER BY l.ext_id, l.int_id"""


class Times(NamedTuple):
    """When a lock was asked for, and when it was granted."""

    requested_at: datetime
    acquired_at: datetime | None


class OwnerInfo(NamedTuple):
    """Who an owner is. ``since``: when it was opened, or asked for; ``txn_type``: None without a transaction.

    ``orphaned_at``: since when nobody is there who could send a heartbeat, if none was ever sent.
    """

    user: str
    host: str
    agent_info: str
    since: datetime
    last_heartbeat_at: datetime
    txn_type: TxnType | None
    orphaned_at: datetime | None = None


class Waits(NamedTuple):
    """Locks and their owners as of one instant."""

    at: datetime | None
    locks: list[Lock]
    times: dict[Lock, Times]
    owners: dict[Owner, OwnerInfo]


def select_waits(db: Database, lock_id: int, txn_id: int, table: TableName | None) -> Waits:
    """All that wait, those whom they may wait for, and those that are asked about (0 and None: not so)."""
    catalog, database, name = table or (None, None, None)
    rows = db.once(_LOCKS, {"lock": lock_id, "txn": txn_id, "catalog": catalog, "db": database, "table": name})
    found = Waits(rows[0][0] if rows else None, [], {}, {})
    for (
        _,
        ext_id,
        int_id,
        owner_txn,
        in_catalog,
        in_db,
        in_table,
        partition,
        type_,
        state,
        user,
        host,
        agent,
        requested_at,
        acquired_at,
        beaten_at,
        orphaned_at,
        txn_type,
        *of_txn,
    ) in rows:
        lock = Lock(
            ext_id,
            int_id,
            owner_txn,
            LockObject(in_catalog, in_db, in_table, partition),
            LockType(type_),
            LockState(state),
            user,
            host,
        )
        found.locks.append(lock)
        found.times[lock] = Times(requested_at, acquired_at)
        info = [user, host, agent, requested_at, beaten_at or requested_at] if txn_type is None else of_txn
        kind = None if txn_type is None else TxnType(txn_type)
        found.owners.setdefault(owner_of(lock), OwnerInfo._make([*info, kind, orphaned_at]))
    return found
