"""The Cleaner's queries about transactions, and their records that it forgets once the files are gone."""

from collections.abc import Collection, Sequence

from metastore.compaction.cleaning.rules import AbortedWrite, Covered, DeclaredReading, OpenTxn, is_forgettable
from metastore.compaction.queue.rules.requests import Entity
from metastore.compaction.queue.store.components import OF_COMPACTION, OF_TABLE, named
from metastore.db.engine import PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.txns.reading.rules import WAIVED
from metastore.txns.remembering.store import removing

_SQL = Statements(__file__)

BATCH = 10_000

READING = _SQL.text("reading")
"""The marks of a transaction t that `DeclaredReading.of` takes, as an expression."""

_INSERT_WAIVED = _SQL.text("insert_waived")

_DELETE_COMPLETED = removing(f"""
    DELETE FROM completed_txn_components WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM completed_txn_components WHERE {OF_TABLE} AND partition = %(partition)s
          AND (%(up_to)s::bigint IS NULL OR write_id IS NULL OR write_id <= %(up_to)s)
        LIMIT %(limit)s))""")

_SELECT_ABORTED = _SQL.text("select_aborted", of_compaction=OF_COMPACTION.format(component="c"))
_DELETE_ABORTED = _SQL.text("delete_aborted")


def select_open_txns(pg: PgTx, up_to: int, table: TableName) -> list[OpenTxn]:
    """Return open transactions with ids up to ``up_to``, oldest first, and whether each reads the table."""
    rows = pg.sql(
        f'SELECT t.id, t."user", t.host, {READING} FROM txns AS t'
        " WHERE t.state = 'open' AND NOT t.emptied AND t.id <= %(up_to)s ORDER BY t.id",
        {**table._asdict(), "up_to": up_to},
    )
    return [OpenTxn(txn_id, user, host, DeclaredReading.of(*marks)) for txn_id, user, host, marks in rows]


def insert_waived(pg: PgTx, up_to: int, table: TableName) -> None:
    """Record that open transactions up to an id, which read other tables, cannot read this one any more.

    A declaration in progress is awaited, and read afterwards; a transaction that is ending is left out.
    """
    pg.sql(_INSERT_WAIVED, {**table._asdict(), "up_to": up_to, "waived": WAIVED})


def select_oldest_open(pg: PgTx) -> int | None:
    """Return the smallest id of an open transaction."""
    [(oldest,)] = pg.sql("SELECT min(id) FROM txns WHERE state = 'open' AND NOT emptied")
    return None if oldest is None else int(oldest)


def delete_completed(pg: PgTx, entity: Entity, up_to: int | None, *, limit: int = BATCH) -> int:
    """Forget some of the committed writes to an entity up to a write id (None: all); return their number."""
    [(count,)] = pg.sql(_DELETE_COMPLETED, {**named(entity), "up_to": up_to, "limit": limit})
    return int(count)


def select_aborted(
    pg: PgTx, entity: Entity, txn_ids: Collection[int] | None, after: AbortedWrite | None, *, limit: int = BATCH
) -> list[AbortedWrite]:
    """Return a page of aborted writes to an entity; a write without an id has the one that it got later.

    ``txn_ids``: only these transactions, known to be aborted when the files were listed; None: all.
    """
    txns = None if txn_ids is None else list(txn_ids)
    txn_id, operation = (0, "") if after is None else after[:2]
    rows = pg.sql(
        _SELECT_ABORTED,
        {**named(entity), "txns": txns, "after_txn": txn_id, "after_operation": operation, "limit": limit},
    )
    return [AbortedWrite(*row) for row in rows]


def delete_aborted(
    pg: PgTx, entity: Entity, page: Sequence[AbortedWrite], up_to: int | None, keep: Collection[int], covered: Covered
) -> int:
    """Delete the records of aborted writes that ``is_forgettable`` allows; return their number."""
    gone = [write for write in page if is_forgettable(write, up_to, keep, covered)]
    if gone:
        pg.sql(
            _DELETE_ABORTED,
            {
                **named(entity),
                "txns": [write.txn_id for write in gone],
                "operations": [write.operation for write in gone],
            },
        )
    return len(gone)


def update_cleaned(pg: PgTx, entity: Entity, txn_ids: Collection[int]) -> None:
    """Record that the files of these aborted transactions' remaining writes are gone: no later look is needed."""
    pg.sql(
        f"UPDATE txn_components SET cleaned = true WHERE {OF_TABLE} AND partition = %(partition)s"
        " AND NOT cleaned AND txn_id = ANY(%(txns)s::bigint[])",
        {**named(entity), "txns": list(txn_ids)},
    )
