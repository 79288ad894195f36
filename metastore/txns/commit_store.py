"""Rows that a commit reads and writes: components, write sets, completed components.

The order of locking makes the decision exact: first the transactions' rows (nobody can add a component or a write id
any more), then the counter row (nobody can open or commit a writer), each in a statement of its own, so that the next
statement reads what is final. ``commit_id`` is the highest id given out at that moment.

Three ways, the cheapest first; what one leaves untouched is for the next: ``commit_empty`` (one round trip, never the
counter), ``commit_uncontended`` (one more), ``lock_for_commit`` with ``apply_commits`` (with a decision between).
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from metastore.db.arrays import bigints
from metastore.db.engine import Database, PgTx
from metastore.ids import TableName
from metastore.txns.rules import (
    COMPONENTS_STAY_BEHIND,
    RECORDS_COMMIT_POINT,
    Component,
    HeldLock,
    Operation,
    TxnRecord,
    TxnState,
    TxnType,
    Written,
)
from metastore.txns.store import LOCK, RELEASE

# Probing by subselect keeps PostgreSQL from ever scanning the component and write-id tables for a handful of ids.
_COMMIT_EMPTY = f"""{LOCK}
WITH ended AS (
    UPDATE txns SET state = 'committed', ended_at = metastore_now()
    WHERE id = ANY(%(ids)s::bigint[]) AND state = 'open' AND type = ANY(%(types)s::smallint[])
      AND (SELECT 1 FROM txn_components AS c WHERE c.txn_id = txns.id LIMIT 1) IS NULL
      AND (SELECT 1 FROM txn_write_ids AS w WHERE w.txn_id = txns.id LIMIT 1) IS NULL
    RETURNING id),
{RELEASE}
SELECT id FROM ended"""

_LOCK_COUNTER = f"""{LOCK}
SELECT FROM txn_counter
WHERE EXISTS (SELECT FROM txns WHERE id = ANY(%(ids)s::bigint[]) AND state = 'open' AND type <> {TxnType.READ_ONLY:d})
FOR UPDATE;"""

# Write sets that may conflict with a member of the batch: a superset, rules.conflicts decides.
_CANDIDATES = """
     FROM txn_components AS c JOIN write_sets AS w USING (catalog, db, "table", partition)
     WHERE c.txn_id = ANY(%(ids)s::bigint[]) AND c.operation IN ('u', 'd') AND w.commit_id >= c.txn_id"""

_READ = f"""{_LOCK_COUNTER}
SELECT (SELECT next_txn_id - 1 FROM txn_counter),
    (SELECT json_agg(json_build_array(id, state, type)) FROM txns WHERE id = ANY(%(ids)s::bigint[])),
    (SELECT json_agg(json_build_array(txn_id, catalog, db, "table", partition, operation, coalesce(write_id, (
         SELECT w.write_id FROM txn_write_ids AS w
         WHERE w.txn_id = c.txn_id AND w.catalog = c.catalog AND w.db = c.db AND w."table" = c."table"))))
     FROM txn_components AS c WHERE txn_id = ANY(%(ids)s::bigint[])),
    (SELECT json_agg(DISTINCT jsonb_build_array(
         w.txn_id, w.commit_id, w.catalog, w.db, w."table", w.partition, w.operation)){_CANDIDATES}),
    (SELECT json_agg(json_build_array(txn_id, catalog, db, "table", partition)) FROM locks
     WHERE txn_id = ANY(%(shielded)s::bigint[]) AND txn_id <> 0 AND state = 'acquired'
       AND type IN ('excl_write', 'exclusive'))"""

# Everything happens at the one row of "point", nothing if it has none.
_APPLY = f"""
moved AS (
    DELETE FROM txn_components WHERE txn_id = ANY(%(committed)s::bigint[]) AND EXISTS (SELECT FROM point) RETURNING *),
written AS (
    INSERT INTO write_sets (txn_id, commit_id, catalog, db, "table", partition, operation)
    SELECT txn_id, commit_id, catalog, db, "table", partition, operation
    FROM moved, point WHERE operation IN ('u', 'd') AND txn_id = ANY(%(changing)s::bigint[])),
completed AS (
    INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)
    SELECT DISTINCT m.txn_id, m.catalog, m.db, m."table", m.partition, coalesce(m.write_id, w.write_id),
           m.txn_id = ANY(%(changing)s::bigint[])
               AND m.txn_id IN (SELECT txn_id FROM moved WHERE operation IN ('u', 'd')), metastore_now()
    FROM moved AS m LEFT JOIN txn_write_ids AS w ON w.txn_id = m.txn_id AND w.catalog = m.catalog AND w.db = m.db
         AND w."table" = m."table"
    WHERE m.operation <> 'c' AND m.txn_id = ANY(%(completing)s::bigint[])),
ended AS (
    UPDATE txns SET state = 'committed', ended_at = metastore_now(), commit_id = point.commit_id
    FROM point WHERE id = ANY(%(committed)s::bigint[]) RETURNING id),
{RELEASE}
"""

_APPLY_DECIDED = f"WITH point AS (SELECT %(commit_id)s::bigint AS commit_id), {_APPLY} SELECT"

# Nothing to decide: all are open, no other commit is a candidate for a conflict, nor are two members for each other
# and, where that is asked for, everything written to a transactional table has its write id. If so all commit, else
# none does; and where nothing was done there is nothing to wait for.
_COMMIT_UNCONTENDED = f"""{_LOCK_COUNTER}
WITH point AS (
    SELECT next_txn_id - 1 AS commit_id FROM txn_counter
    WHERE cardinality(%(ids)s::bigint[]) = (
              SELECT count(*) FROM txns
              WHERE id = ANY(%(ids)s::bigint[]) AND state = 'open' AND type = ANY(%(types)s::smallint[]))
      AND NOT EXISTS (SELECT {_CANDIDATES})
      AND NOT EXISTS (
          SELECT FROM txn_components WHERE txn_id = ANY(%(ids)s::bigint[]) AND operation IN ('u', 'd')
          GROUP BY catalog, db, "table", partition HAVING min(txn_id) < max(txn_id))
      AND NOT (%(require_write_ids)s AND EXISTS (
          SELECT FROM txn_components AS c
          WHERE txn_id = ANY(%(ids)s::bigint[]) AND write_id IS NULL AND (
              SELECT 1 FROM txn_write_ids AS w WHERE w.txn_id = c.txn_id AND w.catalog = c.catalog AND w.db = c.db
              AND w."table" = c."table") IS NULL AND (
              SELECT lower(t.parameters ->> 'transactional') FROM tables AS t
              WHERE t.catalog = c.catalog AND t.db = c.db AND t.name = c."table") = 'true'))),
{_APPLY}
SELECT count(*) > 0, CASE WHEN count(*) = 0 THEN set_config('synchronous_commit', 'off', true) END FROM ended"""

_NOTE_COMMIT_POINT = """;
UPDATE compaction_queue SET next_txn_id = %(commit_id)s, committed_at = metastore_now()
WHERE txn_id = ANY(%(compacting)s)"""

EMPTY_COMMITS = (TxnType.DEFAULT, TxnType.READ_ONLY, TxnType.MATER_VIEW_REBUILD)
"""Types that have nothing to do at commit when they wrote nothing."""

_ORDINARY = sorted(set(TxnType) - RECORDS_COMMIT_POINT - COMPONENTS_STAY_BEHIND)


class CommitFacts(NamedTuple):
    """Everything a batch of commits is decided on, none of which can change before it is applied."""

    commit_id: int
    txns: dict[int, TxnRecord]
    components: dict[int, list[Component]]
    written: list[Written]
    held: list[HeldLock]


class CommitPlan(NamedTuple):
    """Transactions by what becomes of them."""

    committed: list[int]
    changing: list[int]
    """Those that updated or deleted anything: later committers are checked against it."""
    completing: list[int]
    """Those whose components compaction must learn of."""
    compacting: list[int]


def commit_empty(db: Database, txn_ids: Collection[int]) -> set[int]:
    """Commit those of the transactions that wrote nothing, in one round trip; the committed.

    Not worth waiting for the disk: one that a crash brings back holds nothing, and expires.
    """
    parameters = {"ids": bigints(txn_ids), "types": [int(one) for one in EMPTY_COMMITS]}
    rows = db.once(_COMMIT_EMPTY, parameters, durable=False)
    return {row[0] for row in rows}


def commit_uncontended(db: Database, txn_ids: Collection[int], *, require_write_ids: bool) -> bool:
    """Commit all of the transactions in one round trip if there is nothing to decide; whether it was done.

    Serialises on: the counter row, only while PostgreSQL works. With ``require_write_ids`` a component without a write
    id is something to decide.
    """
    ids = bigints(txn_ids)
    [(done, _)] = db.once(_COMMIT_UNCONTENDED, {
        "ids": ids, "committed": ids, "changing": ids, "completing": ids, "types": [int(one) for one in _ORDINARY],
        "require_write_ids": require_write_ids})
    return bool(done)


def lock_for_commit(pg: PgTx, txn_ids: Collection[int], shielded: Collection[int]) -> CommitFacts:
    """Lock the transactions and, if any is to be committed, the counter; then read what decides.

    The write sets are a superset of the conflicts; ``rules.conflicts`` decides.
    """
    [(commit_id, txns, components, written, held)] = pg.sql(
        _READ, {"ids": bigints(txn_ids), "shielded": bigints(shielded)})
    by_txn: dict[int, list[Component]] = {}
    for txn_id, catalog, db, table, partition, operation, write_id in components or ():
        by_txn.setdefault(txn_id, []).append(
            Component(txn_id, TableName(catalog, db, table), partition, Operation(operation), write_id))
    return CommitFacts(
        commit_id, {row[0]: TxnRecord(row[0], TxnState(row[1]), TxnType(row[2])) for row in txns or ()}, by_txn,
        [Written(txn_id, at, TableName(catalog, db, table), partition, Operation(operation))
         for txn_id, at, catalog, db, table, partition, operation in written or ()],
        [HeldLock(*row) for row in held or ()])


def apply_commits(pg: PgTx, commit_id: int, plan: CommitPlan) -> None:
    """Carry out the decision: components move on, locks go, states change."""
    note = _NOTE_COMMIT_POINT if plan.compacting else ""
    pg.sql(_APPLY_DECIDED + note, {"commit_id": commit_id, **plan._asdict()})


def insert_completed(pg: PgTx, txn_id: int, writes: Sequence[tuple[TableName, str, int]]) -> None:
    """Record writes that a replayed commit reports: (table, partition, write id)."""
    rows: list[tuple[Any, ...]] = [(*name, partition, write_id) for name, partition, write_id in writes]
    if rows:
        catalogs, dbs, tables, partitions, write_ids = (list(column) for column in zip(*rows, strict=True))
        pg.sql("""
            INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)
            SELECT %s, *, false, metastore_now()
            FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[])""",
               (txn_id, catalogs, dbs, tables, partitions, write_ids))
