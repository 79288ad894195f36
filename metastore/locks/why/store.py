"""Waits and their owners: read as of one instant, for ``why.walk``."""

from datetime import datetime
from typing import NamedTuple

from metastore.db.engine import Database
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.locks.rules import NO_TXN, Lock, LockObject, LockState, LockType
from metastore.locks.why.rules import Owner, owner_of
from metastore.txns.core.rules import TxnType

_SQL = Statements(__file__)

_LOCKS = _SQL.text("select_waits", waiting=LockState.WAITING, no_txn=NO_TXN)


class Times(NamedTuple):
    """The instants at which a lock was requested and granted."""

    requested_at: datetime
    acquired_at: datetime | None


class OwnerInfo(NamedTuple):
    """The identity of an owner. ``since``: when it was opened, or requested; ``txn_type``: None without a transaction.

    ``orphaned_at``: since when its connection is gone, if no heartbeat was ever sent.
    """

    user: str
    host: str
    agent_info: str
    since: datetime
    last_heartbeat_at: datetime
    txn_type: TxnType | None
    orphaned_at: datetime | None = None


class RecordedWaits(NamedTuple):
    """Locks and their owners as of one instant."""

    at: datetime | None
    locks: list[Lock]
    times: dict[Lock, Times]
    owners: dict[Owner, OwnerInfo]


def select_waits(db: Database, lock_id: int, txn_id: int, table: TableName | None) -> RecordedWaits:
    """Return all waiting locks, their possible blockers, and the locks in question.

    The question is a lock, a transaction or a table; 0 and None mean that it is not asked about.
    """
    catalog, database, name = table or (None, None, None)
    rows = db.once(_LOCKS, {"lock": lock_id, "txn": txn_id, "catalog": catalog, "db": database, "table": name})
    waits = RecordedWaits(rows[0][0] if rows else None, [], {}, {})
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
        waits.locks.append(lock)
        waits.times[lock] = Times(requested_at, acquired_at)
        info = [user, host, agent, requested_at, beaten_at or requested_at] if txn_type is None else of_txn
        kind = None if txn_type is None else TxnType(txn_type)
        waits.owners.setdefault(owner_of(lock), OwnerInfo._make([*info, kind, orphaned_at]))
    return waits
