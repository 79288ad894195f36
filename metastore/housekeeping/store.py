"""Removal of rows that are no longer needed (TXN-42), in batches that hold locks only briefly.

M, the oldest reader: the smallest open id, or the next id if none is open. Every live snapshot sees a transaction that
committed before M began as committed.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from metastore.db.arrays import bigints
from metastore.db.engine import Database, PgTx, Row
from metastore.db.prepared import Prepared
from metastore.db.statements import Statements
from metastore.locks.rules import NO_TXN
from metastore.locks.store import Expired
from metastore.txns.core.rules import AbortCode, ExpiryCutoffs, LastHeard, TxnType
from metastore.txns.core.store import LISTED, abort
from metastore.txns.history.rules import when
from metastore.txns.history.store import LATEST
from metastore.txns.remembering.store import COMMITS_REMEMBERED, INTO_HISTORY, removing
from metastore.write_ids.time_travel.store import RECORD_TIMES

_SQL = Statements(__file__)

BATCH = 10_000

_OLDEST_READER = f"""(SELECT coalesce((SELECT min(id) FROM txns WHERE {LISTED} AND state = 'open'),
                                       (SELECT next_txn_id FROM txn_counter)))"""

_CUTOFF = f"CASE type WHEN {TxnType.REPL_CREATED:d} THEN %(replicated)s ELSE %(normal)s END"

# This ends a statement whose CTE "gone" holds the removed rows of txn_write_ids.
_REMEMBER_PURGED = """,
tops AS (SELECT catalog, db, "table", max(write_id) AS top FROM gone GROUP BY catalog, db, "table"),
mine AS (SELECT catalog, db, "table", top FROM next_write_ids JOIN tops USING (catalog, db, "table")
         ORDER BY catalog, db, "table" FOR UPDATE OF next_write_ids),
remembered AS (
    UPDATE next_write_ids AS n SET purged_write_id = greatest(n.purged_write_id, mine.top)
    FROM mine WHERE n.catalog = mine.catalog AND n.db = mine.db AND n."table" = mine."table")"""

_DELETE_WRITE_SETS = removing(f"""
    DELETE FROM write_sets WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM write_sets WHERE commit_id < {_OLDEST_READER}
        ORDER BY commit_id LIMIT %s FOR UPDATE SKIP LOCKED))""")
_DELETE_WRITE_IDS = _SQL.text(
    "delete_write_ids",
    oldest_reader=_OLDEST_READER,
    commits_remembered=COMMITS_REMEMBERED,
    record_times=RECORD_TIMES,
    remember_purged=_REMEMBER_PURGED,
)
_EMPTY_ABORTED = _SQL.text("empty_aborted", listed=LISTED, remember_purged=_REMEMBER_PURGED)
_DELETE_ENDED = _SQL.text(
    "delete_ended", commits_remembered=COMMITS_REMEMBERED, into_history=INTO_HISTORY, latest=LATEST
)


_SELECT_HEARD = Prepared(f"""
SELECT metastore_now(), min(heard_at) FILTER (WHERE NOT replicated), min(heard_at) FILTER (WHERE replicated)
  FROM (SELECT last_heartbeat_at AS heard_at, type = {TxnType.REPL_CREATED:d} AS replicated FROM txns
         WHERE id = ANY (%(txns)s::bigint[]) AND state = 'open'
        UNION ALL
        SELECT last_heartbeat_at, false FROM locks WHERE ext_id = ANY (%(locks)s::bigint[]) AND txn_id = {NO_TXN})
       AS owners""")


class ComponentEntity(NamedTuple):
    """The table or partition of a component; components are ordered by it."""

    catalog: str
    db: str
    table: str
    partition: str


FIRST_ENTITY = ComponentEntity("", "", "", "")


class Visited(NamedTuple):
    """One batch of a walk through ids: the number of removed rows, and the id behind which to continue, if any."""

    removed: int
    after: int | None


class Compared(NamedTuple):
    """One batch of a walk through entities: the number of removed rows, and the next start, if there are more."""

    removed: int
    start: ComponentEntity | None
    beyond: bool
    """True to continue behind that place, not at it."""


def abort_expired(pg: PgTx, cutoffs: ExpiryCutoffs, after_id: int, limit: int = BATCH) -> tuple[Expired, set[str]]:
    """Abort expired ones among the next ``limit`` transactions; return also the policies that lost their mapping.

    A heartbeat that arrives first wins: rows that are locked are left for the next round.
    """
    [(last_id, size, spare)] = pg.sql(
        f"""
        SELECT max(id), count(*), min(last_heartbeat_at - {_CUTOFF}) FILTER (WHERE state = 'open') FROM (
            SELECT id, state, type, last_heartbeat_at FROM txns WHERE {LISTED} AND id > %(after)s
            ORDER BY id LIMIT %(limit)s) AS visited""",
        {"after": after_id, "limit": limit, **cutoffs._asdict()},
    )
    rows = (
        pg.sql(
            f"""
        SELECT id, "user", host, last_heartbeat_at FROM txns
        WHERE {LISTED} AND id > %(after)s AND id <= %(last)s AND state = 'open' AND last_heartbeat_at < {_CUTOFF}
        ORDER BY id FOR UPDATE SKIP LOCKED""",
            {"after": after_id, "last": last_id, **cutoffs._asdict()},
        )
        if spare is not None and spare < timedelta(0)
        else []
    )
    count, policies = _abort_silent(pg, rows)
    return Expired(count, last_id if size == limit else None, spare), policies


def abort_silent(pg: PgTx, cutoffs: ExpiryCutoffs, txn_ids: Collection[int]) -> tuple[int, set[str]]:
    """Abort those of these transactions whose last heartbeat is too old; return their number, and the policies."""
    return _abort_silent(
        pg,
        pg.sql(
            f"""
        SELECT id, "user", host, last_heartbeat_at FROM txns
        WHERE id = ANY (%(ids)s::bigint[]) AND state = 'open' AND last_heartbeat_at < {_CUTOFF}
        ORDER BY id FOR UPDATE SKIP LOCKED""",
            {"ids": bigints(txn_ids), **cutoffs._asdict()},
        ),
    )


def select_heard(db: Database, txn_ids: Collection[int], lock_ids: Collection[int]) -> LastHeard:
    """Return the oldest last heartbeat of these open transactions, and of these requests without a transaction."""
    [row] = db.once(_SELECT_HEARD, {"txns": bigints(txn_ids), "locks": bigints(lock_ids)})
    return LastHeard._make(row)


def _abort_silent(pg: PgTx, rows: Collection[Row]) -> tuple[int, set[str]]:
    if not rows:
        return 0, set()
    aborted = abort(
        pg,
        [
            (txn_id, AbortCode.TIMEOUT, _expiry_reason(pg.now, user, host, heartbeat_at))
            for txn_id, user, host, heartbeat_at in rows
        ],
    )
    return len(aborted), {ended.policy for ended in aborted if ended.policy is not None}


def _expiry_reason(now: datetime, user: str, host: str, heartbeat_at: datetime) -> str:
    silence = (now - heartbeat_at).total_seconds()
    return (
        f"aborted because no heartbeat of {user}@{host} arrived for {silence:.0f} s, the last one at "
        f"{when(heartbeat_at)}"
    )


def delete_write_sets(pg: PgTx, limit: int = BATCH) -> int:
    """Remove committed writes that no present or future transaction can conflict with."""
    [(count,)] = pg.sql(_DELETE_WRITE_SETS, (limit,))
    return int(count)


def delete_write_ids(pg: PgTx, limit: int = BATCH) -> int:
    """Forget the owners of write ids that every live snapshot calls valid anyway.

    A transaction with a later id than the oldest reader committed later: the search ends there, however many there are.
    """
    [(count,)] = pg.sql(_DELETE_WRITE_IDS, (limit,))
    return int(count)


def delete_duplicate_components(pg: PgTx, start: ComponentEntity, *, beyond: bool, limit: int = BATCH) -> Compared:
    """Remove completed components whose whole content a newer component, visible to everybody, repeats.

    It compares the next ``limit`` components, in the order of their entities, with each other: by write id, or, for
    clients without write ids (Hive 2), by transaction. If the end of a batch cuts an entity in two, the next batch
    looks again at the rest of it; one entity may fill many batches.
    """
    [(removed, size, first, last)] = pg.sql(
        _SQL.text(
            "delete_duplicate_components",
            compares=">" if beyond else ">=",
            oldest_reader=_OLDEST_READER,
            commits_remembered=COMMITS_REMEMBERED,
        ),
        {"start": start, "limit": limit},
    )
    if size < limit:
        return Compared(removed, None, beyond=False)
    return Compared(removed, ComponentEntity(*last), beyond=first == last and not removed)


def empty_aborted(pg: PgTx, after_id: int, limit: int = BATCH) -> Visited:
    """Remove aborted transactions from snapshots if no component and no owner of their write ids is left.

    It looks at the next ``limit`` of them. No file on disk has those write ids any more, so that "valid" is as true of
    them as "aborted".
    """
    [(count, size, last_id)] = pg.sql(_EMPTY_ABORTED, (after_id, limit))
    return Visited(count, last_id if size == limit else None)


def delete_ended(pg: PgTx, before: datetime, after_id: int, keep: int, limit: int = BATCH) -> Visited:
    """Remove records of transactions that ended before an instant, among the next ``limit`` records.

    By then the history has those that wrote or were aborted, and the latest ``keep`` of all. Ids follow time closely:
    the walk may stop at a window whose last committed record is still to be kept.
    """
    [(count, last_id, more)] = pg.sql(
        _DELETE_ENDED, {"after": after_id, "limit": limit, "before": before, "keep": keep}
    )
    return Visited(count, last_id if more else None)


def delete_materialization_locks(pg: PgTx, before: datetime, limit: int = BATCH) -> int:
    """Remove rebuild locks without a recent heartbeat whose transaction is over."""
    pg.sql(
        """
        DELETE FROM materialization_locks WHERE ctid = ANY(ARRAY(
            SELECT r.ctid FROM materialization_locks AS r WHERE last_heartbeat_at < %s
              AND NOT EXISTS (SELECT FROM txns WHERE id = r.txn_id AND state = 'open')
            LIMIT %s FOR UPDATE OF r SKIP LOCKED))""",
        (before, limit),
    )
    return pg.rowcount
