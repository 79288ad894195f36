"""The lock queue in PostgreSQL: tables ``locks`` and ``txn_components``.

Order of asking is order of visibility, per database: ``lock_tails`` takes the database's advisory lock, and
only a later statement draws ext_ids and reads the queue, so that it sees every smaller ext_id of that database.
Rows ahead of a request can afterwards only disappear or be granted, which never makes it wait longer, so checking needs
no lock. All functions are batch-shaped; none returns more than a superset that ``rules`` narrows down.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zlib import crc32

from metastore.db.arrays import bigints, columns
from metastore.db.engine import Database, PgTx, Row
from metastore.db.prepared import Prepared
from metastore.db.statements import Statements
from metastore.ids import DatabaseName
from metastore.locks.rules import (
    NO_TXN,
    WAITS_FOR,
    DeclaredWrite,
    Lock,
    LockObject,
    LockRequest,
    LockState,
    LockType,
    components,
)
from metastore.txns.core.rules import TxnState

_SQL = Statements(__file__)

_ADVISORY_CLASS = 4293  # This is the number space for the tails of databases' lock queues; grant.sql uses it too.
_ID, _TXN, _MINE, _AHEAD = range(4)  # These are the kinds of rows in the combined answers below.

_COMPATIBILITY = ", ".join(
    f"('{wanted.value}', '{blocking.value}')" for wanted, types in WAITS_FOR.items() for blocking in sorted(types)
)

_WATCHED = "coalesce({}watched_by IN (current_setting('metastore.process'), '*'), false)"
"""Whether the process whose session this is hears when a lock goes."""

_AHEAD_OF_WANTED, _WAITING_FOR = (
    _SQL.text("ahead_of_wanted", selected=selected, compatibility=_COMPATIBILITY, no_txn=NO_TXN)
    for selected in (
        f"""{_AHEAD} AS kind, l.ext_id, l.int_id, l.txn_id, l.catalog, l.db, l."table", l.partition, l.type,
       l.state, l."user", l.host, NULL::bigint AS blocker_ext_id, NULL::int AS blocker_int_id,
       {_WATCHED.format("l.")} AS is_watched""",
        "w.ext_id",
    )
)

_TYPES_WAITED_FOR = {wanted: ",".join(sorted(types)) for wanted, types in WAITS_FOR.items()}

_LOCK_UNCONTENDED = Prepared("""SELECT lock_uncontended(
    %(txns)s::bigint[], %(keys)s::int[], %(count)s::int, %(l0)s::int[], %(l1)s::int[], %(l2)s::bigint[], %(l3)s::text[],
    %(l4)s::text[], %(l5)s::text[], %(l6)s::text[], %(l7)s::text[], %(l8)s::text[], %(l9)s::text[], %(l10)s::text[],
    %(l11)s::text[],
    %(c0)s::bigint[], %(c1)s::text[], %(c2)s::text[], %(c3)s::text[], %(c4)s::text[], %(c5)s::text[])""")

_LOCK_TAILS = Prepared(
    "SELECT FROM txns WHERE id = ANY (%(txns)s::bigint[]) ORDER BY id FOR KEY SHARE",
    f"SELECT pg_advisory_xact_lock({_ADVISORY_CLASS}, key) FROM unnest(%(keys)s::int[]) AS key",
    _SQL.text("select_tail", ahead_of_wanted=_AHEAD_OF_WANTED, id=_ID, txn=_TXN),
)

_LOCKS = _SQL.text("insert_locks", acquired=LockState.ACQUIRED, no_txn=NO_TXN)
_COMPONENTS = """
        INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
        SELECT DISTINCT c.*, w.write_id
          FROM unnest(%(c0)s::bigint[], %(c1)s::text[], %(c2)s::text[], %(c3)s::text[], %(c4)s::text[], %(c5)s::text[])
                 AS c (txn_id, catalog, db, "table", partition, operation)
          LEFT JOIN txn_write_ids w USING (txn_id, catalog, db, "table")
        ON CONFLICT DO NOTHING"""
_MARKS = _SQL.text("mark_locks", watched=_WATCHED.format("locks."))
_FINISH = {
    (written, marked): Prepared(_LOCKS, *[_COMPONENTS] * written, *[_MARKS] * marked)
    for written in (False, True)
    for marked in (False, True)
}
"""By whether there are components, and locks to mark."""

_KEEP_OWNERS = f"""
        UPDATE txns SET last_heartbeat_at = metastore_now(), heartbeat_count = heartbeat_count + 1,
                        longest_gap = greatest(longest_gap, metastore_now() - last_heartbeat_at)
          FROM (SELECT id FROM txns WHERE state = 'open' AND id IN (
                  SELECT txn_id FROM locks WHERE ext_id = ANY (%(ids)s::bigint[]) AND txn_id <> {NO_TXN})
                 ORDER BY id FOR NO KEY UPDATE) AS owner
         WHERE txns.id = owner.id"""
_KEEP_REQUESTS = f"""
        UPDATE locks SET last_heartbeat_at = metastore_now(), heartbeat_count = heartbeat_count + 1,
                         check_count = check_count + 1, orphaned_at = NULL
          FROM (SELECT ext_id, int_id FROM locks WHERE ext_id = ANY (%(ids)s::bigint[]) AND txn_id = {NO_TXN}
                 ORDER BY ext_id, int_id FOR NO KEY UPDATE) AS mine
         WHERE locks.ext_id = mine.ext_id AND locks.int_id = mine.int_id"""
_GRANT_UNSEEN = _SQL.text(
    "grant_requests", acquired=LockState.ACQUIRED, waiting=LockState.WAITING, no_txn=NO_TXN, waiting_for=_WAITING_FOR
)
_GRANT_AND_SELECT = Prepared(
    _KEEP_OWNERS,
    _KEEP_REQUESTS,
    _GRANT_UNSEEN,
    _SQL.text("select_requests", waiting=LockState.WAITING, ahead_of_wanted=_AHEAD_OF_WANTED, mine=_MINE, txn=_TXN),
)

_DELETE = f"""
        DELETE FROM locks
         WHERE ext_id = ANY (%(released)s::bigint[]) AND (txn_id = {NO_TXN} OR state = '{LockState.WAITING}')"""
_SELECT_LEFT = """
        SELECT ext_id, int_id, txn_id, catalog, db, "table", partition, type, state, "user", host
          FROM locks WHERE ext_id = ANY (%(released)s::bigint[] || %(ids)s::bigint[]) ORDER BY ext_id, int_id DESC"""
_RELEASE = Prepared(_DELETE, _SELECT_LEFT)
_HAND_OVER = Prepared(_KEEP_OWNERS, _DELETE, _KEEP_REQUESTS, _GRANT_UNSEEN, _SELECT_LEFT)

_NOTE = """
        UPDATE locks SET blocked_by_ext_id = CASE WHEN locks.int_id = n.int_id THEN n.blocker_ext_id END,
                         blocked_by_int_id = CASE WHEN locks.int_id = n.int_id THEN n.blocker_int_id END
          FROM unnest(%(n0)s::bigint[], %(n1)s::int[], %(n2)s::bigint[], %(n3)s::int[])
                 AS n (ext_id, int_id, blocker_ext_id, blocker_int_id)
         WHERE locks.ext_id = n.ext_id"""
_GRANT = f"""
        UPDATE locks SET state = '{LockState.ACQUIRED}', acquired_at = metastore_now(),
                         blocked_by_ext_id = NULL, blocked_by_int_id = NULL
         WHERE ext_id = ANY (%(ids)s::bigint[]) AND state = '{LockState.WAITING}' RETURNING ext_id"""
_GRANT_SEEN, _NOTE_AND_GRANT = Prepared(_GRANT), Prepared(_NOTE, _GRANT)

_LOCK_TAIL = _SQL.text("lock_tail", advisory_class=_ADVISORY_CLASS, no_txn=NO_TXN)


class _Answer(NamedTuple):
    """A row of the combined answers: a lock and its recorded blocker, a new ext_id, or a transaction's state."""

    kind: int
    ext_id: int
    """Of a transaction: its id."""
    int_id: int
    txn_id: int
    catalog: str
    db: str
    table: str
    partition: str
    type: str
    state: str
    user: str
    host: str
    blocker_ext_id: int | None
    blocker_int_id: int | None
    is_watched: bool | None
    """Of a lock ahead: whether this process hears when it goes."""

    @property
    def lock(self) -> Lock:
        """The lock in the row."""
        return Lock(
            self.ext_id,
            self.int_id,
            self.txn_id,
            LockObject(self.catalog, self.db, self.table, self.partition),
            LockType(self.type),
            LockState(self.state),
            self.user,
            self.host,
        )

    @property
    def blocker(self) -> tuple[int, int] | None:
        """The recorded blocker of the lock."""
        return _pair(self.blocker_ext_id, self.blocker_int_id)


class QueueTail(NamedTuple):
    """The state that new requests find: their ext_ids, the states of their transactions, and possible blockers."""

    ext_ids: list[int]
    txn_states: dict[int, TxnState]
    ahead: list[Lock]


class StoredLock(NamedTuple):
    """A stored lock and the blocker recorded for it."""

    lock: Lock
    blocker: tuple[int, int] | None


class Requests(NamedTuple):
    """Stored requests by ext_id, their transactions' states, and possible blockers of those that wait.

    ``watched``: blockers whose release notifies this process.
    """

    by_id: dict[int, list[StoredLock]]
    txn_states: dict[int, TxnState]
    ahead: list[Lock]
    watched: set[Lock]


class Enqueued(NamedTuple):
    """A row to insert: the lock in its first state and the request's fields about its owner."""

    lock: Lock
    request: LockRequest
    blocker: tuple[int, int] | None


class HandOver(NamedTuple):
    """The requests to release that a transaction holds, with their first lock; and the requests that were granted."""

    held: dict[int, Lock]
    granted: set[int]


class Expired(NamedTuple):
    """One batch of a walk through the queue: deleted rows, and the ext_id behind which to go on, if there are more.

    ``spare``: the time until the most silent request expires; None if there was none.
    """

    removed: int
    after: int | None
    spare: timedelta | None


def lock_uncontended(db: Database, requests: Sequence[LockRequest]) -> list[int] | None:
    """Queue and grant requests that are ``rules.apart``, in one round trip, if no lock can block them.

    Return their ext_ids; None, and change nothing, if there is something to decide. Serialises on: as ``lock_tails``.
    """
    rows = [
        (
            place,
            int_id,
            request.txn_id,
            *wanted.object,
            wanted.type.value,
            _TYPES_WAITED_FOR[wanted.type],
            request.user,
            request.host,
            request.agent_info,
        )
        for place, request in enumerate(requests, 1)
        for int_id, wanted in enumerate(request.components, 1)
    ]
    written = [
        (request.txn_id, *component.object, component.operation)
        for request in requests
        for component in components(request)
    ]
    [(ext_ids,)] = db.once(
        _LOCK_UNCONTENDED, {**_owners_and_tails(requests), **_columns("l", rows, 12), **_columns("c", written, 6)}
    )
    return None if ext_ids is None else list(ext_ids)


def lock_tails(pg: PgTx, requests: Sequence[LockRequest]) -> QueueTail:
    """Lock the transactions' rows and the tails of the databases' queues; draw ext_ids; read the locks ahead.

    One round trip of three statements, because a statement does not see commits made while it waited for a lock.
    Transactions come first: no call may wait for the end of a transaction while it holds a database's tail. KEY SHARE
    keeps a transaction from ending (txns/core/store.py) and lets heartbeats through.
    """
    wanted = list(
        dict.fromkeys(
            (request.txn_id, *lock.object, lock.type.value) for request in requests for lock in request.components
        )
    )
    rows = _answers(pg.sql(_LOCK_TAILS, {**_owners_and_tails(requests), **_columns("w", wanted, 6)}))
    return QueueTail(
        ext_ids=sorted(row.ext_id for row in rows if row.kind == _ID),
        txn_states=_states(rows),
        ahead=[row.lock for row in rows if row.kind == _AHEAD],
    )


def lock_tail(pg: PgTx, objects: Sequence[LockObject]) -> tuple[list[Lock], set[int]]:
    """Lock the tail of a database's queue until COMMIT, and read the locks ahead of a change of these objects.

    Return every lock that may block it, and the transactions among their owners that declare writes there. There are
    two statements, as in ``lock_tails``: no lock gets into the queue between this look and the change's COMMIT.
    """
    whole = any(not locked.table for locked in objects)
    rows = pg.sql(
        _LOCK_TAIL,
        {
            "key": _advisory_key(objects[0]),
            "catalog": objects[0].catalog,
            "db": objects[0].db,
            "whole": whole,
            "tables": ["", *{locked.table for locked in objects}],
        },
    )
    ahead = [(_lock(row), declares) for declares, *row in rows]
    return [lock for lock, _ in ahead], {lock.txn_id for lock, declares in ahead if declares}


def finish_requests(
    pg: PgTx, locks: Sequence[Enqueued], writes: Iterable[tuple[int, DeclaredWrite]], awaited: Iterable[Lock]
) -> None:
    """Add rows to the queue, and components, with their write id if known, to transactions; and commit.

    ``awaited``: locks that get this process's mark, unless another transaction has them locked.
    """
    rows = [
        (
            lock.ext_id,
            lock.int_id,
            lock.txn_id,
            *lock.object,
            lock.type.value,
            lock.state.value,
            request.user,
            request.host,
            request.agent_info,
            *(blocker or (None, None)),
        )
        for lock, request, blocker in locks
    ]
    written = [(txn_id, *component.object, component.operation) for txn_id, component in writes]
    marks = sorted({(lock.ext_id, lock.int_id) for lock in awaited})
    pg.finish(
        _FINISH[bool(written), bool(marks)],
        {**_columns("l", rows, 14), **_columns("c", written, 6), **_columns("m", marks, 2)},
    )


def grant_and_select(db: Database, ext_ids: Collection[int]) -> Requests:
    """Keep the owners of these requests alive, grant requests that have no blocker, and read the state then.

    The answer includes the locks ahead of requests that still wait. It is one round trip, which waits for the disk only
    if it grants. The heartbeats lock rows in id order, as every batch that heartbeats does; owners cannot end before
    this does. Index: locks (ext_id, int_id).
    """
    rows = _answers(db.once(_GRANT_AND_SELECT, {"ids": bigints(sorted(ext_ids))}, durable=False))
    by_id: dict[int, list[StoredLock]] = {}
    for row in sorted(row for row in rows if row.kind == _MINE):
        by_id.setdefault(row.ext_id, []).append(StoredLock(row.lock, row.blocker))
    ahead = {row.lock: row.is_watched for row in rows if row.kind == _AHEAD}
    return Requests(by_id, _states(rows), list(ahead), {lock for lock, is_watched in ahead.items() if is_watched})


def update_acquired(db: Database, ext_ids: Collection[int], blocked: Sequence[tuple[Lock, Lock]]) -> set[int]:
    """Grant the requests, durably, and record the blockers of others; return the granted requests that still exist."""
    notes = [(wanted.ext_id, wanted.int_id, blocker.ext_id, blocker.int_id) for wanted, blocker in blocked]
    rows = db.once(
        _NOTE_AND_GRANT if notes else _GRANT_SEEN,
        {"ids": bigints(sorted(ext_ids)), **_columns("n", notes, 4)},
        durable=bool(ext_ids),
    )
    return {ext_id for (ext_id,) in rows}


def count_locks(db: Database, ext_ids: Collection[int]) -> dict[int, int]:
    """Count the locks of these requests; absent requests are left out."""
    rows = db.once("SELECT ext_id, count(*) FROM locks WHERE ext_id = ANY (%s) GROUP BY ext_id", [bigints(ext_ids)])
    return dict(rows)


def delete_released(db: Database, ext_ids: Collection[int], waiting: Collection[int] = ()) -> HandOver:
    """Delete requests that may be released alone, and grant ``waiting`` requests as ``grant_and_select`` does.

    It is one round trip, which waits for the disk only if it grants. Owners are locked first, then requests, for the
    most part in the order of their ids, because a waiter has asked later.
    """
    wanted = {"released": bigints(sorted(ext_ids)), "ids": bigints(sorted(waiting))}
    rows = db.once(_HAND_OVER if waiting else _RELEASE, wanted, durable=False)
    left = {lock.ext_id: lock for lock in map(_lock, rows)}
    return HandOver(
        held={ext_id: left[ext_id] for ext_id in left.keys() & ext_ids},
        granted={ext_id for ext_id in left.keys() & waiting if left[ext_id].state is LockState.ACQUIRED},
    )


FILTER = """(%(db)s::text IS NULL OR (catalog = %(catalog)s AND db = %(db)s))
           AND (%(table)s::text IS NULL OR "table" = %(table)s)
           AND (%(partition)s::text IS NULL OR partition = %(partition)s)
           AND (%(txn)s::bigint IS NULL OR txn_id = %(txn)s)"""
"""Locks that equal every filter; its parameters are what `filtered` makes."""


def filtered(
    db: DatabaseName | None, table: str | None, partition: str | None, txn_id: int | None
) -> dict[str, str | int | None]:
    """Return the parameters of ``FILTER``."""
    return {"catalog": db and db.catalog, "db": db and db.db, "table": table, "partition": partition, "txn": txn_id}


def whole(candidates: str) -> str:
    """Return CTEs that delete the ``candidates`` (ext_ids) that fulfil a condition: whole requests, or not at all.

    ``candidates``: a condition on rows of ``locks``. If another transaction (a heartbeat, a mark) has locked any row of
    a request, all of its rows stay: a request is kept or deleted as a whole. ``gone`` has the deleted rows.
    """
    return _SQL.text("whole_requests", candidates=candidates)


def delete_expired(pg: PgTx, before: datetime, after: int, limit: int) -> Expired:
    """Delete requests without a transaction and a sign of life since ``before``, and those of ended transactions.

    Looks at the next ``limit`` rows behind ext_id ``after``. The second kind cannot arise from the service's own
    statements; a row that did would block its object for ever.
    """
    forgotten = f"""ext_id > %(after)s AND ext_id <= (SELECT max(ext_id) FROM visited)
        AND ((txn_id = {NO_TXN} AND last_heartbeat_at < %(before)s)
          OR (txn_id <> {NO_TXN}
              AND NOT EXISTS (SELECT FROM txns WHERE txns.id = locks.txn_id AND state = 'open')))"""
    [(removed, size, last, spare)] = pg.sql(
        _SQL.text("delete_expired", whole=whole(forgotten), no_txn=NO_TXN),
        {"before": before, "after": after, "limit": limit},
    )
    return Expired(removed, last if size == limit else None, spare)


def delete_silent(pg: PgTx, ext_ids: Collection[int], before: datetime) -> set[int]:
    """Delete those of these requests that have no transaction and no sign of life since ``before``."""
    silent = f"ext_id = ANY (%(ids)s::bigint[]) AND txn_id = {NO_TXN} AND last_heartbeat_at < %(before)s"
    rows = pg.sql(
        f"""
        WITH {whole(silent)}
        SELECT DISTINCT ext_id FROM gone""",
        {"ids": bigints(ext_ids), "before": before},
    )
    return {ext_id for (ext_id,) in rows}


def _owners_and_tails(requests: Sequence[LockRequest]) -> dict[str, Any]:
    txn_ids = sorted({request.txn_id for request in requests} - {NO_TXN})
    keys = sorted({_advisory_key(wanted.object) for request in requests for wanted in request.components})
    return {"txns": bigints(txn_ids), "keys": bigints(keys), "count": len(requests)}


def _advisory_key(wanted: LockObject) -> int:
    """Return a signed 32-bit number for a database; two databases that share it only wait for each other needlessly."""
    return crc32(f"{wanted.catalog}\0{wanted.db}".encode()) - 2**31


def _columns(prefix: str, rows: Sequence[tuple[Any, ...]], width: int) -> dict[str, str]:
    """Return rows as an array for each column, named ``prefix0``, ``prefix1``, ..."""
    return {f"{prefix}{place}": column for place, column in enumerate(columns(rows, width))}


def _answers(rows: Iterable[Row]) -> list[_Answer]:
    return [_Answer._make(row) for row in rows]


def _states(rows: Iterable[_Answer]) -> dict[int, TxnState]:
    return {row.ext_id: TxnState(row.state) for row in rows if row.kind == _TXN}


def _lock(row: Sequence[Any]) -> Lock:
    ext_id, int_id, txn_id, catalog, db, table, partition, kind, state, user, host = row
    return Lock(
        ext_id, int_id, txn_id, LockObject(catalog, db, table, partition), LockType(kind), LockState(state), user, host
    )


def _pair(ext_id: int | None, int_id: int | None) -> tuple[int, int] | None:
    return None if ext_id is None or int_id is None else (ext_id, int_id)
