"""Exclusive changes: the catalog waits in the lock queue before it drops, renames, empties or moves an object.

Rule (``locks.rules.in_the_way``, ADR 0046): such a change waits for every lock that is in the queue before it. The
check runs in the PostgreSQL transaction of the change, which keeps the tail of the database's queue, so that no lock
comes between.
"""

from collections.abc import Sequence

from metastore.db.engine import PgTx
from metastore.errors import HeldUpError
from metastore.ids import DatabaseName, TableName
from metastore.locks import store
from metastore.locks.rules import NO_TXN, Changer, Lock, LockObject, LockState, LockType, in_the_way

ANYBODY = Changer()
_MOST_SHOWN = 3


def database_object(name: DatabaseName) -> list[LockObject]:
    """Return a database with everything in it, as something to lock."""
    return [LockObject(*name)]


def table_object(name: TableName) -> list[LockObject]:
    """Return a table with its partitions, as something to lock."""
    return [LockObject(*name)]


def partition_objects(name: TableName, partitions: Sequence[str]) -> list[LockObject]:
    """Return partitions of a table, by their canonical names."""
    return [LockObject(*name, partition) for partition in partitions]


def require_unwritten(pg: PgTx, action: str, objects: Sequence[LockObject]) -> None:
    """Refuse the ``action`` while a writer has a lock on any of the objects. Raises: HeldUpError."""
    for database in sorted({(locked.catalog, locked.db) for locked in objects}):  # One order avoids deadlocks.
        require_exclusive(
            pg,
            action,
            [locked for locked in objects if (locked.catalog, locked.db) == database],
            kind=LockType.EXCL_WRITE,
        )


def require_exclusive(
    pg: PgTx,
    action: str,
    objects: Sequence[LockObject],
    changer: Changer = ANYBODY,
    *,
    kind: LockType = LockType.EXCLUSIVE,
) -> None:
    """Refuse the ``action`` while another transaction has a lock on any of the objects, which are all of one database.

    ``kind``: of the lock that it would need.

    Serialises on: the tail of the database's lock queue, until COMMIT. Raises: HeldUpError.
    """
    if not objects:
        return
    locks, writers = store.lock_tail(pg, objects)
    ahead = in_the_way(objects, locks, changer, writers, kind)
    if ahead:
        holders = "; ".join(_described(lock) for lock in ahead[:_MOST_SHOWN])
        more = f"; and {len(ahead) - _MOST_SHOWN} more" if len(ahead) > _MOST_SHOWN else ""
        name = ".".join(part for part in (objects[0].db, objects[0].table) if part)
        shown = f"`metastore lock why {name}`" if objects[0].table else "`metastore show locks`"
        raise HeldUpError(
            f"{action} has to wait, nothing was changed: {holders}{more}. Try again when they have ended; "
            f"{shown} shows them."
        )


def _described(lock: Lock) -> str:
    holds = "holds" if lock.state is LockState.ACQUIRED else "waits for"
    owner, ends = (
        (f"transaction {lock.txn_id}", f"metastore txn abort {lock.txn_id}")
        if lock.txn_id != NO_TXN
        else ("no transaction", f"metastore lock release {lock.ext_id}")
    )
    return (
        f"{lock.user or 'unknown'}@{lock.host or 'unknown'} {holds} {lock.type.upper()} on {lock.object} "
        f"(lock {lock.ext_id}, {owner}; `{ends}` ends it)"
    )
