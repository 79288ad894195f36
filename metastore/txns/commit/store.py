"""Rows that a commit reads and writes: components, write sets, completed components.

The order of locking makes the decision exact: first the transactions' rows (no component or write id can be added any
more), then the counter row (no writer can open or commit), each in a statement of its own, so that the next statement
reads final rows. ``commit_id`` is the highest id allocated at that moment.

Two ways: ``commit_uncontended`` (one round trip, all of a batch or none), and, if that finds something to decide,
``lock_for_commit`` and ``apply_commits``, with the decision between. The SQL of both is in commit.sql.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from metastore.db.arrays import bigints, columns
from metastore.db.engine import Database, PgTx
from metastore.db.prepared import Prepared
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.txns.core.rules import (
    COMPONENTS_STAY_BEHIND,
    RECORDS_COMMIT_POINT,
    CommittedWrite,
    Component,
    ExclusiveLock,
    Operation,
    TxnRecord,
    TxnState,
    TxnType,
)
from metastore.txns.core.store import LOCK

_SQL = Statements(__file__)

_LOCK_COUNTER = f"""
SELECT FROM txn_counter
WHERE EXISTS (SELECT FROM txns WHERE id = ANY(%(ids)s::bigint[]) AND state = 'open' AND type <> {TxnType.READ_ONLY:d})
FOR UPDATE"""

_READ = Prepared(LOCK, _LOCK_COUNTER, _SQL.text("select_facts"))

_APPLY = Prepared("""SELECT apply_commits(
    %(committed)s::bigint[], %(changing)s::bigint[], %(completing)s::bigint[], %(commit_id)s::bigint, true)""")

_ORDINARY = sorted(set(TxnType) - RECORDS_COMMIT_POINT - COMPONENTS_STAY_BEHIND)
_LIGHT = [TxnType.DEFAULT, TxnType.READ_ONLY, TxnType.MATER_VIEW_REBUILD]


def _types(types: Iterable[TxnType]) -> str:
    return f"ARRAY[{', '.join(f'{type_:d}' for type_ in types)}]::smallint[]"


_COMMIT_UNCONTENDED = Prepared(f"""SELECT commit_uncontended(
    %(ids)s::bigint[], {_types(_ORDINARY)}, {_types(_LIGHT)}, %(require_write_ids)s::boolean)""")

_NOTE_COMMIT_POINT = """
UPDATE compaction_queue SET next_txn_id = %(commit_id)s, committed_at = metastore_now()
WHERE txn_id = ANY(%(compacting)s)"""


class CommitFacts(NamedTuple):
    """The facts that decide a batch of commits; none of them can change before the batch is applied."""

    commit_id: int
    txns: dict[int, TxnRecord]
    components: dict[int, list[Component]]
    written: list[CommittedWrite]
    held: list[ExclusiveLock]


class CommitPlan(NamedTuple):
    """Transactions by outcome."""

    committed: list[int]
    changing: list[int]
    """Those that updated or deleted anything: later committers are checked against it."""
    completing: list[int]
    """Those whose components compaction must learn of."""
    compacting: list[int]


def commit_uncontended(db: Database, txn_ids: Collection[int], *, require_write_ids: bool) -> bool:
    """Commit all of the transactions in one round trip if there is nothing to decide; return whether it was done.

    This waits for the disk, and serialises on the counter row, only if any of them wrote something, and only while
    PostgreSQL works. With ``require_write_ids`` a component without a write id is something to decide.
    """
    [(done,)] = db.once(_COMMIT_UNCONTENDED, {"ids": bigints(txn_ids), "require_write_ids": require_write_ids})
    return bool(done)


def lock_for_commit(pg: PgTx, txn_ids: Collection[int], shielded: Collection[int]) -> CommitFacts:
    """Lock the transactions and, if any is to be committed, the counter; then read the facts that decide.

    The write sets are a superset of the conflicts; ``rules.conflicts`` decides.
    """
    [(commit_id, txns, components, written, held)] = pg.sql(
        _READ, {"ids": bigints(txn_ids), "shielded": bigints(shielded)}
    )
    by_txn: dict[int, list[Component]] = {}
    for txn_id, catalog, db, table, partition, operation, write_id in components or ():
        by_txn.setdefault(txn_id, []).append(
            Component(txn_id, TableName(catalog, db, table), partition, Operation(operation), write_id)
        )
    return CommitFacts(
        commit_id,
        {txn_id: TxnRecord(txn_id, TxnState(state), TxnType(kind)) for txn_id, state, kind in txns or ()},
        by_txn,
        [
            CommittedWrite(txn_id, at, TableName(catalog, db, table), partition, Operation(operation), guarded)
            for txn_id, at, catalog, db, table, partition, operation, guarded in written or ()
        ],
        [ExclusiveLock(*row) for row in held or ()],
    )


def apply_commits(pg: PgTx, commit_id: int, plan: CommitPlan) -> None:
    """Apply the decision: components move on, locks are released, states change."""
    parameters = {"commit_id": commit_id, **plan._asdict()}
    pg.sql(_APPLY, parameters)
    if plan.compacting:
        pg.sql(_NOTE_COMMIT_POINT, parameters)


def insert_completed(pg: PgTx, txn_id: int, writes: Sequence[tuple[TableName, str, int]]) -> None:
    """Record writes that a replayed commit reports: (table, partition, write id)."""
    rows: list[tuple[Any, ...]] = [(*name, partition, write_id) for name, partition, write_id in writes]
    if rows:
        catalogs, dbs, tables, partitions, write_ids = columns(rows, 5)
        pg.sql(
            """
            INSERT INTO completed_txn_components (txn_id, catalog, db, "table", partition, write_id, update_delete, at)
            SELECT %s, *, false, metastore_now()
            FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[])""",
            (txn_id, catalogs, dbs, tables, partitions, write_ids),
        )
