"""The lock queue as it is stored."""

from metastore.locks.rules import Lock, LockObject, LockState, LockType


def stored_locks(database):
    """Every lock, in order of asking."""
    rows = database.once("""SELECT ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, "user", host
                              FROM locks ORDER BY ext_id, int_id""")
    return [Lock(ext_id, int_id, txn_id, LockObject(*names), LockType(kind), LockState(state), user, host)
            for ext_id, int_id, txn_id, *names, kind, state, user, host in rows]
