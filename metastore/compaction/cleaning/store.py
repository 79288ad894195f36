"""What the Cleaner reads of transactions, and what it lets them forget once the files are gone."""

from collections.abc import Collection
from typing import NamedTuple

from metastore.acid.names import BaseName
from metastore.compaction.cleaning.rules import OpenTxn, Reading
from metastore.compaction.queue.rules.requests import Entity
from metastore.compaction.queue.store.components import OF_COMPACTION, OF_TABLE, named
from metastore.db.engine import PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.txns.core.rules import LARGEST_ID
from metastore.txns.reading.rules import WAIVED
from metastore.txns.remembering.store import removing

_SQL = Statements(__file__)

BATCH = 10_000

READING = _SQL.text("reading")
"""The ``Reading`` of a table by a transaction t, as an expression."""

_INSERT_WAIVED = _SQL.text("insert_waived")

_DELETE_COMPLETED = removing(f"""
    DELETE FROM completed_txn_components WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM completed_txn_components WHERE {OF_TABLE} AND partition = %(partition)s
          AND (%(up_to)s::bigint IS NULL OR write_id IS NULL OR write_id <= %(up_to)s)
        LIMIT %(limit)s))""")

_DELETE_ABORTED = _SQL.text("delete_aborted", of_compaction=OF_COMPACTION.format(component="d"))


class Covered(NamedTuple):
    """The base that everybody reads who begins from now on: what appears later and is not above it, nobody reads.

    ``writes``: for ordinary writers; ``results``: for jobs of compactions. None: nothing is covered.
    """

    writes: BaseName | None = None
    results: BaseName | None = None


_ANYTHING = BaseName(LARGEST_ID, LARGEST_ID)
GONE = Covered(_ANYTHING, _ANYTHING)
"""Nobody can publish anything that is ever read: the table or partition is gone."""
WHOLE_TABLE = Covered(None, _ANYTHING)
"""Of a partitioned table: no job is run for it, and no base covers partitions that nobody may know of."""


def select_open_txns(pg: PgTx, up_to: int, table: TableName) -> list[OpenTxn]:
    """Open transactions with ids up to ``up_to``, oldest first, and whether each reads the table."""
    rows = pg.sql(
        f'SELECT t.id, t."user", t.host, {READING} FROM txns AS t'
        " WHERE t.state = 'open' AND NOT t.emptied AND t.id <= %(up_to)s ORDER BY t.id",
        {**table._asdict(), "up_to": up_to},
    )
    return [OpenTxn(txn_id, user, host, Reading(reading)) for txn_id, user, host, reading in rows]


def insert_waived(pg: PgTx, up_to: int, table: TableName) -> None:
    """Note of open transactions up to an id that read other tables: they cannot come to read this one.

    Whoever is saying so right now is waited for, and read after that; whoever is ending is left out.
    """
    pg.sql(_INSERT_WAIVED, {**table._asdict(), "up_to": up_to, "waived": WAIVED})


def select_oldest_open(pg: PgTx) -> int | None:
    """The smallest id of an open transaction."""
    [(oldest,)] = pg.sql("SELECT min(id) FROM txns WHERE state = 'open' AND NOT emptied")
    return None if oldest is None else int(oldest)


def delete_completed(pg: PgTx, entity: Entity, up_to: int | None, *, limit: int = BATCH) -> int:
    """Forget some of what committed transactions wrote to an entity up to a write id (None: everything); how many."""
    [(count,)] = pg.sql(_DELETE_COMPLETED, {**named(entity), "up_to": up_to, "limit": limit})
    return int(count)


def delete_aborted(
    pg: PgTx,
    entity: Entity,
    up_to: int | None,
    keep: Collection[int] = (),
    txn_ids: Collection[int] | None = None,
    *,
    covered: Covered,
    limit: int = BATCH,
) -> int:
    """Forget some of what aborted transactions wrote to an entity up to a write id (None: everything); how many.

    A component recorded before its transaction had a write id has the id that it got later. ``keep``: write ids that
    stay; ``txn_ids``: only these transactions, known to be aborted when the files were listed.

    What may still be published stays, unless a base covers it: by the job of a compaction, or by an owner whose
    transaction somebody else has aborted. It is void only while the transaction is known as aborted.
    """
    writes, results = covered.writes or BaseName(0), covered.results or BaseName(0)
    pg.sql(
        _DELETE_ABORTED,
        {
            **named(entity),
            "up_to": up_to,
            "keep": list(keep),
            "limit": limit,
            "base": results.write_id,
            "result_of": results.visibility_txn_id,
            "covering": writes.write_id,
            "compacted": writes.visibility_txn_id,
            "txns": None if txn_ids is None else list(txn_ids),
        },
    )
    return pg.rowcount


def update_cleaned(pg: PgTx, entity: Entity, txn_ids: Collection[int]) -> None:
    """Note of what stays of these aborted transactions that its files are gone: nobody needs to look again."""
    pg.sql(
        f"UPDATE txn_components SET cleaned = true WHERE {OF_TABLE} AND partition = %(partition)s"
        " AND NOT cleaned AND txn_id = ANY(%(txns)s::bigint[])",
        {**named(entity), "txns": list(txn_ids)},
    )
