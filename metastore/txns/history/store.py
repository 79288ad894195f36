"""Records of transactions: their rows while there are any, ``txn_history`` afterwards.

A commit costs nothing here: its writes stay in ``completed_txn_components`` and ``txn_write_ids``, and the statement
that removes them there records them here (``txns/remembering``). The lists of a remembered transaction are cut at
``LONGEST`` and counted before.
"""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from metastore.db.arrays import bigints
from metastore.db.engine import Database, PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.txns.core.rules import TxnState, TxnType
from metastore.txns.history.rules import LeftWrite, Record, TxnEvidence
from metastore.txns.remembering.store import RECORD, WRITE, WROTE, cut, declared, held

_SQL = Statements(__file__)

BATCH = 10_000
LATE = 1000
"""Aborts that are looked through for the former owner of a lock."""

LATEST = "txn_id > (SELECT next_txn_id FROM txn_counter) - 1 - %(keep)s"
"""A condition that the id is among the latest, as many as are remembered at all."""

_EVIDENCE = _SQL.text("evidence", record=RECORD)

_LIFE = _SQL.text(
    "life",
    declared=declared("declaring.txn_id"),
    held=held("declaring.txn_id"),
    written=cut(WRITE, f'SELECT catalog, db, "table", partition, operation, write_id FROM ({WROTE}) AS one'),
    evidence=_EVIDENCE,
)

# These are the reasons why snapshots name an aborted transaction.
_LEFT = """
SELECT c.catalog, c.db, c."table", c.partition, coalesce(c.write_id, w.write_id), c.cleaned, t.may_publish
FROM txns AS t JOIN txn_components AS c ON c.txn_id = t.id
LEFT JOIN txn_write_ids AS w ON (w.txn_id, w.catalog, w.db, w."table") = (c.txn_id, c.catalog, c.db, c."table")
WHERE t.id = %(txn)s AND t.state = 'aborted' ORDER BY 1, 2, 3, 4, 5"""

# A client asks for its lock every minute, unless it is dead.
_OWNERS = f"""
SELECT lock_id, owner.txn_id FROM unnest(%(ids)s::bigint[]) AS lock_id CROSS JOIN LATERAL (
    SELECT txn_id FROM (
        SELECT txn_id, locks FROM txn_history WHERE state = 'aborted' ORDER BY ended_at DESC LIMIT {LATE}) AS late
    WHERE locks @> jsonb_build_array(jsonb_build_array(lock_id)) LIMIT 1) AS owner"""

_THE_TABLE = "jsonb_build_array(%(catalog)s::text, %(db)s::text, %(table)s::text)"
_OF_TABLE = _SQL.text("of_table", wrote=WROTE, the_table=_THE_TABLE)

_FORGET = _SQL.text("forget", batch=BATCH)


class RecordedLife(NamedTuple):
    """All that is left of a transaction; rows of the lists as ``txn_history`` has them."""

    evidence: TxnEvidence
    at: datetime
    writes: list[list[Any]]
    write_count: int
    locks: list[list[Any]]
    lock_count: int


class Commit(NamedTuple):
    """The changes of a committed transaction to a table, or the declarations of an aborted one.

    ``operations``: letters as stored.
    """

    write_id: int
    txn_id: int
    user: str
    host: str
    agent_info: str
    started_at: datetime
    ended_at: datetime
    operations: list[str]
    partitions: int
    is_complete: bool
    inserted: int | None
    deleted: int | None
    is_aborted: bool


def update_written_rows(pg: PgTx, txn_id: int, rows: Sequence[tuple[TableName, int, int]]) -> None:
    """Record the row counts of an open transaction by table; do nothing for any other."""
    pg.sql(
        "UPDATE txns SET written_rows = %s WHERE id = %s AND state = 'open'",
        (json.dumps([[*name, inserted, deleted] for name, inserted, deleted in rows]), txn_id),
    )


def delete_history(pg: PgTx, before: datetime, keep: int) -> int:
    """Forget transactions that ended before an instant, and the oldest beyond ``keep`` of a kind; at most a batch."""
    [(count,)] = pg.sql(_FORGET, {"before": before, "keep": keep})
    return int(count)


def select_evidence(db: Database, txn_ids: Collection[int]) -> dict[int, TxnEvidence]:
    """Return all that is recorded of the transactions, by id, as of one instant."""
    return {left.txn_id: left for left in map(_evidence, db.once(_EVIDENCE, {"ids": bigints(txn_ids)}))}


def select_settled(db: Database, txn_id: int) -> TxnEvidence:
    """Return all that is recorded of a transaction, after waiting for a call that is just ending it.

    A call that ends a transaction holds its row FOR UPDATE; heartbeats and this query do not wait for each other.
    """
    [row] = db.once(
        f"SELECT FROM txns WHERE id = ANY(%(ids)s::bigint[]) FOR KEY SHARE; {_EVIDENCE}", {"ids": bigints([txn_id])}
    )
    return _evidence(row)


def select_life(db: Database, txn_id: int) -> RecordedLife:
    """Return all that is recorded of a transaction, with its writes and locks."""
    [(now, writes, write_count, locks, lock_count, *evidence)] = db.once(
        _LIFE, {"txn": txn_id, "ids": bigints([txn_id])}
    )
    return RecordedLife(_evidence(evidence), now, writes, write_count, locks, lock_count)


def select_table_commits(db: Database, name: TableName, after: int, limit: int, *, aborted: bool) -> list[Commit]:
    """Return the commits of a table with write ids above ``after`` that are on record, the latest first.

    ``aborted``: include aborted transactions that had such a write id.
    """
    parameters = {**name._asdict(), "after": after, "limit": limit, "aborted": aborted}
    return [Commit(*row) for row in db.once(_OF_TABLE, parameters)]


def select_left(db: Database, txn_id: int) -> list[LeftWrite]:
    """Return the records that keep an aborted transaction listed."""
    return [
        LeftWrite(f"{catalog}.{database}.{table}" + (f"/{partition}" if partition else ""), *rest)
        for catalog, database, table, partition, *rest in db.once(_LEFT, {"txn": txn_id})
    ]


def select_lock_owners(db: Database, lock_ids: Collection[int]) -> dict[int, int]:
    """Return the transactions that had these locks when they were aborted, by lock, among the latest aborts."""
    return dict(db.once(_OWNERS, {"ids": bigints(lock_ids)}))


def _evidence(row: Any) -> TxnEvidence:
    txn_id, from_history, wrote, skipped, mark, complete_above, state, kind, *rest = row
    record = Record(TxnState(state), TxnType(kind), *rest) if state is not None else None
    return TxnEvidence(txn_id, record, bool(from_history), wrote, skipped, mark, complete_above)
