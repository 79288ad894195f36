"""Rows of the compaction queue and its history.

Rule: every write to a queued request names the state it expects, and a worker's also names its worker id and attempt;
if a write touches no row, the claim is lost. Moving a request into the history is one statement (delete and insert).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from metastore.compaction.queue.rules.requests import (
    CHANNEL,
    Claim,
    Compaction,
    CompactionState,
    CompactionType,
    Entity,
    may_become,
)
from metastore.compaction.queue.rules.turns import full_pools, over_share
from metastore.compaction.queue.store.components import WANTED, all_named
from metastore.db.engine import PgTx, Row
from metastore.ids import TableName

_SHARED = (
    'catalog, db, "table", partition, state, type, properties, pool, number_of_buckets, order_by, worker_id, '
    "worker_version, initiator_id, initiator_version, run_as, enqueued_at, started_at, ended_at, "
    "cleaner_started_at, highest_write_id, txn_id, next_txn_id, committed_at, hadoop_job_id, error_message, meta_info"
)
_QUEUED = f"id, {_SHARED}, attempt, heartbeat_at, failures, not_before"
_HISTORY = (
    f"id, {_SHARED}, 0 AS attempt, NULL::timestamptz AS heartbeat_at, 0 AS failures, NULL::timestamptz AS not_before"
)
_ENTITY = 'catalog = %s AND db = %s AND "table" = %s AND partition = %s'


@dataclass(frozen=True)
class NewRequest:
    """The stored fields of an accepted request."""

    entity: Entity
    type: CompactionType
    properties: dict[str, str] = field(default_factory=dict)
    run_as: str | None = None
    initiator_id: str | None = None
    initiator_version: str | None = None
    pool: str | None = None
    number_of_buckets: int | None = None
    order_by: str | None = None
    head_start: timedelta = timedelta(0)
    """The waiting that counts as done (``turns``)."""


class Job(NamedTuple):
    """The job of a running compaction, as people see it."""

    id: str
    meta_info: str


class Shares(NamedTuple):
    """The largest part of a pool's working compactions for a database and for a table, while others wait."""

    database: float = 1.0
    table: float = 1.0


@dataclass(frozen=True)
class Filter:
    """The filter of SHOW COMPACTIONS; None means "any"."""

    id: int | None = None
    catalog: str | None = None
    db: str | None = None
    table: str | None = None
    partition: str | None = None
    pool: str | None = None
    type: CompactionType | None = None
    state: CompactionState | None = None
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None


SORTABLE = (
    "id",
    "catalog",
    "db",
    "table",
    "partition",
    "type",
    "state",
    "worker_id",
    "enqueued_at",
    "started_at",
    "ended_at",
    "hadoop_job_id",
    "error_message",
    "initiator_id",
    "pool",
    "txn_id",
    "next_txn_id",
    "committed_at",
    "highest_write_id",
)
"""Columns that SHOW COMPACTIONS may be ordered by; nothing else reaches the statement."""

_DEFAULT_ORDER = "greatest(ended_at, started_at, committed_at) DESC NULLS FIRST, enqueued_at, id"


def insert_request(pg: PgTx, request: NewRequest) -> int | None:
    """Queue a request, of which Workers are notified, and return its id.

    None if another one of the entity is active.
    """
    rows = pg.sql(
        'INSERT INTO compaction_queue (catalog, db, "table", partition, state, type, properties, run_as, initiator_id,'
        " initiator_version, pool, number_of_buckets, order_by, enqueued_at, turn_at)"
        " VALUES (%s, %s, %s, %s, 'initiated', %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
        " ON CONFLICT (catalog, db, \"table\", partition) WHERE state IN ('initiated', 'working') DO NOTHING"
        " RETURNING id, pg_notify(%s, '')",
        (
            *_key(request.entity),
            request.type,
            json.dumps(request.properties),
            request.run_as,
            request.initiator_id,
            request.initiator_version,
            request.pool or None,
            request.number_of_buckets,
            request.order_by,
            pg.now,
            pg.now - request.head_start,
            CHANNEL,
        ),
    )
    return rows[0][0] if rows else None


def insert_ready_for_cleaning(
    pg: PgTx,
    request: NewRequest,
    highest_write_id: int | None,
    txn_id: int | None,
    error: str | None = None,
    not_before: datetime | None = None,
) -> int:
    """Queue a request that only the Cleaner has to process (a soft drop, the retry of an abort clean-up)."""
    [(request_id,)] = pg.sql(
        'INSERT INTO compaction_queue (catalog, db, "table", partition, state, type, properties, run_as, initiator_id,'
        " initiator_version, enqueued_at, highest_write_id, txn_id, error_message, not_before, failures)"
        " VALUES (%s, %s, %s, %s, 'ready_for_cleaning', %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id",
        (
            *_key(request.entity),
            request.type,
            json.dumps(request.properties),
            request.run_as,
            request.initiator_id,
            request.initiator_version,
            pg.now,
            highest_write_id,
            txn_id,
            error,
            not_before,
            1 if error else 0,
        ),
    )
    return int(request_id)


def insert_history(pg: PgTx, request: NewRequest, state: CompactionState, error: str | None) -> int:
    """Write a history row for a request that was never queued; it started and ended now."""
    [(request_id,)] = pg.sql(
        'INSERT INTO completed_compactions (id, catalog, db, "table", partition, state, type, properties, initiator_id,'
        " initiator_version, enqueued_at, started_at, ended_at, error_message, pool)"
        " VALUES (nextval('compaction_id'), %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id",
        (
            *_key(request.entity),
            state,
            request.type,
            json.dumps(request.properties),
            request.initiator_id,
            request.initiator_version,
            pg.now,
            pg.now,
            pg.now,
            error,
            request.pool or None,
        ),
    )
    return int(request_id)


_CLAIMABLE = (
    "state = 'initiated' AND (not_before IS NULL OR not_before <= %(now)s)"
    " AND (coalesce(pool, '') = ANY(%(pools)s) OR '' = ANY(%(pools)s) AND enqueued_at < %(abandoned)s)"
)
"""The condition for requests that Workers of some pools may claim.

The default pool, "", has those that others left too long.
"""


class Backlog(NamedTuple):
    """The numbers of requests that our Workers may claim now, and of those that they work on."""

    waiting: int = 0
    working: int = 0


def count_backlog(pg: PgTx, pools: Sequence[str], pool_timeout: timedelta) -> Backlog:
    """Count the requests for Workers of these pools. Index: compaction_queue_state_id_idx."""
    rows = pg.sql(
        f"SELECT count(*) FILTER (WHERE {_CLAIMABLE}), count(*) FILTER (WHERE heartbeat_at IS NOT NULL)"
        " FROM compaction_queue WHERE state IN ('initiated', 'working')",
        {"now": pg.now, "pools": list(pools), "abandoned": pg.now - pool_timeout},
    )
    return Backlog(*rows[0])


def claim_next(
    pg: PgTx,
    worker_id: str,
    worker_version: str | None,
    pool: str | None,
    pool_timeout: timedelta,
    shares: Shares | None,
    limits: Mapping[str, int],
) -> Compaction | None:
    """Claim a waiting request of a pool; a worker without a pool also takes what other pools left too long.

    ``shares``: of a worker that renews a lease, which takes the request whose turn it is. None: a worker without a
    lease, as Hive's; it takes the oldest.

    ``limits``: how many of a pool may run at a time; if there are any, claims wait for each other to count.

    Locks: the claimed row, skipping rows that others are claiming. Index: compaction_queue_state_id_idx.
    """
    full = _full_pools(pg, limits) if limits else []
    order, crowded = "id", {}
    if shares is not None:
        order, crowded = _BY_TURN, _over_share(pg, pool or "", shares)
    rows = pg.sql(
        "UPDATE compaction_queue SET state = 'working', worker_id = %(worker)s, worker_version = %(version)s,"
        " started_at = %(now)s, heartbeat_at = CASE WHEN %(leased)s THEN %(now)s END, attempt = attempt + 1,"
        " error_message = NULL, txn_id = NULL, highest_write_id = NULL, hadoop_job_id = NULL, meta_info = NULL"
        f" WHERE id = (SELECT id FROM compaction_queue WHERE {_CLAIMABLE} AND NOT coalesce(pool, '') = ANY(%(full)s)"
        f"   ORDER BY {order} LIMIT 1 FOR UPDATE SKIP LOCKED)"
        f" RETURNING {_QUEUED}",
        {
            "worker": worker_id,
            "version": worker_version,
            "now": pg.now,
            "leased": shares is not None,
            "pools": [pool or ""],
            "abandoned": pg.now - pool_timeout,
            "full": full,
            **crowded,
        },
    )
    return _compaction(rows[0]) if rows else None


_BY_TURN = (
    "catalog || '.' || db = ANY(%(databases)s), catalog || '.' || db || '.' || \"table\" = ANY(%(tables)s),"
    " coalesce(turn_at, enqueued_at), id"
)
"""The order of turns: requests above their share come last; a release without turns leaves them out."""


def _full_pools(pg: PgTx, limits: Mapping[str, int]) -> list[str]:
    pg.sql("SELECT pg_advisory_xact_lock(hashtextextended('limits of compaction pools', 0))")
    return full_pools(count_working(pg), limits)


def count_working(pg: PgTx) -> dict[str, int]:
    """Count the requests in work, of the pools with any."""
    return dict(pg.sql("SELECT coalesce(pool, ''), count(*) FROM compaction_queue WHERE state = 'working' GROUP BY 1"))


def _over_share(pg: PgTx, pool: str, shares: Shares) -> dict[str, list[str]]:
    rows = pg.sql(
        "SELECT catalog || '.' || db, catalog || '.' || db || '.' || \"table\" FROM compaction_queue"
        " WHERE state = 'working' AND coalesce(pool, '') = %s",
        (pool,),
    )
    return {
        "databases": over_share((database for database, _ in rows), shares.database),
        "tables": over_share((table for _, table in rows), shares.table),
    }


def update_lease(pg: PgTx, claim: Claim, job: Job | None = None) -> bool:
    """Renew a worker's lease, and record the job if there is one; False if the claim is lost."""
    if job is None:
        return _touch(pg, "heartbeat_at = %s", (pg.now,), claim)
    return _touch(pg, "heartbeat_at = %s, hadoop_job_id = %s, meta_info = %s", (pg.now, *job), claim)


def update_started(pg: PgTx, claim: Claim, highest_write_id: int | None, run_as: str | None, txn_id: int) -> bool:
    """Record the snapshot and the transaction of a running compaction; False if the claim is lost."""
    return _touch(
        pg,
        "highest_write_id = %s, run_as = coalesce(%s, run_as), txn_id = %s",
        (highest_write_id, run_as, txn_id),
        claim,
    )


def update_remote_job_id(pg: PgTx, request_id: int, job_id: str) -> bool:
    """Record the job's id for a remote worker, whose call does not name it: once, and not for ours."""
    pg.sql(
        "UPDATE compaction_queue SET hadoop_job_id = %s WHERE id = %s AND state = 'working' AND heartbeat_at IS NULL"
        " AND coalesce(hadoop_job_id, %s) = %s",
        (job_id, request_id, job_id, job_id),
    )
    return pg.rowcount == 1


def update_ready_for_cleaning(pg: PgTx, claim: Claim) -> bool:
    """Move a request from working to ready for cleaning; False if the claim is lost."""
    return _touch(
        pg,
        "state = 'ready_for_cleaning', worker_id = NULL, heartbeat_at = NULL, error_message = NULL, failures = 0",
        (),
        claim,
    )


def update_committed(pg: PgTx, request_id: int) -> None:
    """Stamp a compaction that has no point of commit: every transaction up to now may have seen the old files."""
    pg.sql(
        "UPDATE compaction_queue SET next_txn_id = (SELECT next_txn_id - 1 FROM txn_counter), committed_at = %s"
        " WHERE id = %s AND next_txn_id IS NULL",
        (pg.now, request_id),
    )


def update_waiting_again(
    pg: PgTx, claimed: Compaction, reason: str, not_before: datetime | None, deaths: int | None = None
) -> bool:
    """Move a request from working to initiated, fenced by the attempt; SHOW COMPACTIONS shows the reason.

    ``deaths``: the number of its Workers that died.
    """
    pg.sql(
        "UPDATE compaction_queue SET state = 'initiated', worker_id = NULL, worker_version = NULL,"
        " started_at = NULL, heartbeat_at = NULL, txn_id = NULL, highest_write_id = NULL, hadoop_job_id = NULL,"
        " meta_info = NULL, error_message = %s,"
        " not_before = %s, failures = coalesce(%s, failures)"
        " WHERE id = %s AND state = 'working' AND attempt = %s",
        (reason, not_before, deaths, claimed.id, claimed.attempt),
    )
    return pg.rowcount == 1


def update_waiting_reason(pg: PgTx, reason: str, pool: str | None) -> int:
    """Record why the waiting requests of a pool are not taken, if no worker has done so.

    Return the number of changed rows.
    """
    pg.sql(
        "UPDATE compaction_queue SET error_message = %s WHERE state = 'initiated' AND coalesce(pool, '') = %s"
        " AND coalesce(error_message, '') NOT LIKE 'Worker %% cannot run it:%%'",
        (reason, pool or ""),
    )
    return pg.rowcount


def update_cleaner_started(pg: PgTx, request_id: int) -> None:
    """Record that from now on files may be missing: this stays, whatever the outcome of the cleaning."""
    pg.sql(
        "UPDATE compaction_queue SET cleaner_started_at = %s WHERE id = %s AND state = 'ready_for_cleaning'",
        (pg.now, request_id),
    )


def update_cleaner_waiting(pg: PgTx, request_id: int, reason: str, not_before: datetime | None = None) -> None:
    """Record why a request is not cleaned, and the time of the next look."""
    pg.sql(
        "UPDATE compaction_queue SET error_message = %s, not_before = %s"
        " WHERE id = %s AND state = 'ready_for_cleaning'",
        (reason, not_before, request_id),
    )


def lock_ready_for_cleaning(pg: PgTx, request_id: int) -> Compaction | None:
    """Return a request that is ready for cleaning, locked until this PostgreSQL transaction ends."""
    rows = pg.sql(
        f"SELECT {_QUEUED} FROM compaction_queue WHERE id = %s AND state = 'ready_for_cleaning' FOR UPDATE",
        (request_id,),
    )
    return _compaction(rows[0]) if rows else None


def update_cleaner_failure(pg: PgTx, request_id: int, failures: int, error: str, not_before: datetime) -> bool:
    """Record a failed cleaning and the time of its repetition."""
    pg.sql(
        "UPDATE compaction_queue SET failures = %s, error_message = %s, not_before = %s"
        " WHERE id = %s AND state = 'ready_for_cleaning'",
        (failures, error, not_before, request_id),
    )
    return pg.rowcount == 1


def move_to_history(
    pg: PgTx,
    request_id: int,
    expected: CompactionState,
    state: CompactionState,
    error: str | None,
    claim: Claim | None = None,
) -> bool:
    """End a queued request; False if it is not there in the expected state (or the claim is lost).

    Raises: ValueError for an end that the expected state does not have.
    """
    if not may_become(expected, state):
        raise ValueError(f"A compaction that is {expected.display} cannot become {state.display}")
    fence, values = _fence(claim) if claim else ("", ())
    pg.sql(
        f"WITH gone AS (DELETE FROM compaction_queue WHERE id = %s AND state = %s{fence} RETURNING *)"
        f" INSERT INTO completed_compactions (id, {_SHARED}) SELECT id, {_SHARED} FROM"
        ' (SELECT id, catalog, db, "table", partition, %s AS state, type, properties, pool, number_of_buckets,'
        " order_by, worker_id, worker_version, initiator_id, initiator_version, run_as, enqueued_at, started_at,"
        " %s AS ended_at, cleaner_started_at, highest_write_id, txn_id, next_txn_id, committed_at, hadoop_job_id,"
        " coalesce(%s, error_message) AS error_message, meta_info FROM gone) AS ended",
        (request_id, expected, *values, state, pg.now, error),
    )
    return pg.rowcount == 1


def delete_retries(pg: PgTx, entity: Entity) -> None:
    """Remove an entity's marker of a failed abort clean-up, which is done by now."""
    pg.sql(f"DELETE FROM compaction_queue WHERE {_ENTITY} AND type = 'abort_txn_cleanup'", _key(entity))


def select_queued(pg: PgTx, request_id: int) -> Compaction | None:
    """Return a queued request."""
    rows = pg.sql(f"SELECT {_QUEUED} FROM compaction_queue WHERE id = %s", (request_id,))
    return _compaction(rows[0]) if rows else None


def select_any(pg: PgTx, request_ids: Sequence[int]) -> list[Compaction]:
    """Return requests by id, queued or ended."""
    rows = pg.sql(
        f"SELECT {_QUEUED} FROM compaction_queue WHERE id = ANY(%(ids)s) UNION ALL"
        f" SELECT {_HISTORY} FROM completed_compactions WHERE id = ANY(%(ids)s)",
        {"ids": list(request_ids)},
    )
    return [_compaction(row) for row in rows]


def select_queue_of(pg: PgTx, entity: Entity) -> list[Compaction]:
    """Return the queued requests of an entity, oldest first."""
    rows = pg.sql(f"SELECT {_QUEUED} FROM compaction_queue WHERE {_ENTITY} ORDER BY id", _key(entity))
    return [_compaction(row) for row in rows]


def select_of(pg: PgTx, entities: Sequence[Entity]) -> dict[Entity, tuple[list[Compaction], list[Compaction]]]:
    """Return for each entity its queued requests, oldest first, and its history, newest first."""
    found: dict[Entity, tuple[list[Compaction], list[Compaction]]] = {entity: ([], []) for entity in entities}
    for place, (rows, table, order) in enumerate(
        ((_QUEUED, "compaction_queue", "id"), (_HISTORY, "completed_compactions", "id DESC"))
    ):
        for row in pg.sql(
            f'SELECT {rows} FROM {WANTED} JOIN {table} USING (catalog, db, "table", partition) ORDER BY {order}',
            all_named(entities),
        ):
            request = _compaction(row)
            found[request.entity][place].append(request)
    return found


def select_in_state(pg: PgTx, state: CompactionState) -> list[Compaction]:
    """Return every queued request in a state, oldest first."""
    rows = pg.sql(f"SELECT {_QUEUED} FROM compaction_queue WHERE state = %s ORDER BY id", (state,))
    return [_compaction(row) for row in rows]


def select_history_of(pg: PgTx, entity: Entity) -> list[Compaction]:
    """Return an entity's history, newest first."""
    rows = pg.sql(f"SELECT {_HISTORY} FROM completed_compactions WHERE {_ENTITY} ORDER BY id DESC", _key(entity))
    return [_compaction(row) for row in rows]


def select_history(pg: PgTx, after: Entity | None, limit: int) -> list[Compaction]:
    """Return the next rows of the history, by entity, newest first, from behind ``after``; None: from the beginning."""
    rows = pg.sql(
        f"SELECT {_HISTORY} FROM completed_compactions"
        ' WHERE (catalog, db, "table", partition) > (%s, %s, %s, %s)'
        ' ORDER BY catalog, db, "table", partition, id DESC LIMIT %s',
        (*(_key(after) if after else [""] * 4), limit),
    )
    return [_compaction(row) for row in rows]


def delete_history(pg: PgTx, request_ids: Sequence[int]) -> None:
    """Forget history rows."""
    pg.sql("DELETE FROM completed_compactions WHERE id = ANY(%s)", (list(request_ids),))


def select_shown(pg: PgTx, wanted: Filter) -> list[Compaction]:
    """Return the rows of SHOW COMPACTIONS: queue and history together, filtered, ordered and cut."""
    rows, order, values = shown(wanted)
    return [_compaction(row) for row in pg.sql(f"SELECT * FROM ({rows}) AS shown ORDER BY {order}", values)]


def shown(wanted: Filter) -> tuple[str, str, list[Any]]:
    """Return SQL for the rows of `Compaction` and for their order, and its parameters."""
    conditions, values = [], []
    for column in ("id", "catalog", "db", "table", "partition", "type", "state"):
        value = getattr(wanted, column)
        if value is not None:
            conditions.append(f'"{column}" = %s')
            values.append(value)
    if wanted.pool is not None:
        conditions.append("coalesce(nullif(pool, ''), 'default') = %s")
        values.append(wanted.pool or "default")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    chosen = [
        f'"{column}" {"ASC" if ascending else "DESC"}' for column, ascending in wanted.order if column in SORTABLE
    ]
    limit = f" LIMIT {int(wanted.limit)}" if wanted.limit and wanted.limit > 0 else ""
    order = ", ".join([*chosen, _DEFAULT_ORDER])
    rows = (
        f"SELECT * FROM (SELECT {_QUEUED} FROM compaction_queue{where} UNION ALL"
        f" SELECT {_HISTORY} FROM completed_compactions{where}) AS every"
    )
    return f"{rows} ORDER BY {order}{limit}" if limit else rows, order, [*values, *values]


def select_latest_committed(
    pg: PgTx, table: TableName, partitions: Iterable[str] | None, newer_than: int | None
) -> list[Compaction]:
    """Return the newest ready or succeeded request of each partition (or of the table), newer than an id."""
    names = list(partitions) if partitions is not None else None
    where = (
        "catalog = %(catalog)s AND db = %(db)s AND \"table\" = %(table)s AND state IN ('ready_for_cleaning',"
        " 'succeeded') AND (%(all)s OR partition = ANY(%(names)s)) AND id > %(after)s"
        " AND type <> 'abort_txn_cleanup'"
    )
    rows = pg.sql(
        f"SELECT DISTINCT ON (partition) * FROM (SELECT {_QUEUED} FROM compaction_queue WHERE {where}"
        f" UNION ALL SELECT {_HISTORY} FROM completed_compactions WHERE {where}) AS finished"
        " ORDER BY partition, id DESC",
        {**table._asdict(), "all": names is None, "names": names or [], "after": newer_than or 0},
    )
    return [_compaction(row) for row in rows]


def _touch(pg: PgTx, assignment: str, values: tuple[Any, ...], claim: Claim) -> bool:
    fence, fenced = _fence(claim)
    pg.sql(
        f"UPDATE compaction_queue SET {assignment} WHERE id = %s AND state = 'working'{fence}",
        (*values, claim.id, *fenced),
    )
    return pg.rowcount == 1


def _fence(claim: Claim) -> tuple[str, tuple[Any, ...]]:
    """Return a condition that the row is this worker's.

    The name of a remote worker never matches a claim of ours, which is under a lease.
    """
    if claim.attempt is None:
        return " AND worker_id = %s AND heartbeat_at IS NULL", (claim.worker_id,)
    return " AND worker_id = %s AND attempt = %s", (claim.worker_id, claim.attempt)


def _key(entity: Entity) -> tuple[str, str, str, str]:
    return (*entity.table, entity.partition)


def _compaction(row: Row) -> Compaction:
    request_id, catalog, db, table, partition, state, kind, *rest = row
    return Compaction(
        request_id,
        Entity(TableName(catalog, db, table), partition),
        CompactionState(state),
        CompactionType(kind),
        *rest,
    )
