"""Leftovers of transactions that compaction must look at: components, write ids and open transactions.

Rule: only reads rows of the transaction side, except that a compaction's own component is recorded. All facts of one
question are read in one statement, hence one snapshot.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.compaction.queue.rules.requests import Entity
from metastore.db.engine import Database, PgTx
from metastore.ids import TableName
from metastore.txns.core.rules import TxnType

_NAMES = 'c.catalog, c.db, c."table", c.partition'
# A writer has such a component too: "somewhere in the table", after it has named partitions (txns/core/partitions.sql).
OF_COMPACTION = (
    f"{{component}}.operation = 'c' AND t.type IN ({TxnType.COMPACTION:d}, {TxnType.REBALANCE_COMPACTION:d})"
)
OF_TABLE = 'catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s'


WANTED = (
    "unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[], %(partitions)s::text[])"
    ' AS wanted (catalog, db, "table", partition)'
)
"""Tables and partitions in the parameters that `all_named` makes."""
_TABLES = 'unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[]) AS wanted (catalog, db, "table")'
_OF_ABORTED = "txn_components AS c JOIN txns AS t ON t.id = c.txn_id AND t.state = 'aborted'"
_OF_TXNS = TableName("", "", "")
_SELECT_LISTS = (
    "SELECT '', '', '', next_txn_id - 1, NULL FROM txn_counter"
    " UNION ALL SELECT '', '', '', id, state FROM txns WHERE state <> 'committed' AND NOT emptied"
    f' UNION ALL SELECT catalog, db, "table", next_write_id - 1, NULL FROM {_TABLES}'
    ' JOIN next_write_ids USING (catalog, db, "table")'
    f' UNION ALL SELECT catalog, db, "table", w.write_id, t.state FROM {_TABLES}'
    ' JOIN txn_write_ids AS w USING (catalog, db, "table")'
    " JOIN txns AS t ON t.id = w.txn_id AND t.state <> 'committed'"
)


class AbortedWrites(NamedTuple):
    """The leftovers of aborted transactions in an entity."""

    entity: Entity
    txns: int
    oldest_started_at: datetime


def select_written(pg: PgTx, since: datetime | None, limit: int, after: Entity | None) -> list[Entity]:
    """Return entities that committed transactions wrote, ordered by name, from behind ``after``; ``since`` None: ever.

    With ``since`` also those whose newest history row is a failure, since no other event would bring them back.
    """
    rows = pg.sql(
        f"SELECT DISTINCT {_NAMES} FROM completed_txn_components AS c"
        " WHERE (%(since)s::timestamptz IS NULL OR c.at >= %(since)s OR 'yes' = ("
        "   SELECT CASE WHEN h.state IN ('failed', 'did_not_initiate') THEN 'yes' END FROM completed_compactions AS h"
        '   WHERE (h.catalog, h.db, h."table", h.partition) = (c.catalog, c.db, c."table", c.partition)'
        "   ORDER BY h.id DESC LIMIT 1))"
        f" AND c.\"table\" <> '' AND ({_NAMES}) > (%(catalog)s, %(db)s, %(table)s, %(partition)s)"
        f" ORDER BY {_NAMES} LIMIT %(limit)s",
        {"since": since, "limit": limit, **_behind(after)},
    )
    return [_entity(row) for row in rows]


def select_aborted(
    pg: PgTx, limit: int | None, after: Entity | None = None, *, cleaned: bool, table: TableName | None = None
) -> list[AbortedWrites]:
    """Return entities that aborted transactions wrote, ordered by name.

    They are those whose files are still there, or ``cleaned``. ``limit`` None: all; ``table``: only its entities.
    Compactions do not count: they leave nothing that another compaction has to remove.
    """
    rows = pg.sql(
        f"SELECT {_NAMES}, count(DISTINCT t.id), min(t.started_at) FROM {_OF_ABORTED}"
        f" WHERE NOT ({OF_COMPACTION.format(component='c')}) AND c.\"table\" <> '' AND c.cleaned = %(cleaned)s"
        f" AND ({_NAMES}) > (%(catalog)s, %(db)s, %(table)s, %(partition)s)"
        + (' AND (c.catalog, c.db, c."table") = %(only)s' if table else "")
        + f" GROUP BY {_NAMES} ORDER BY {_NAMES} LIMIT %(limit)s",
        {"limit": limit, "cleaned": cleaned, "only": table and tuple(table), **_behind(after)},
    )
    return [AbortedWrites(_entity(name), count, oldest) for *name, count, oldest in rows]


def every_aborted(db: Database, page: int, *, cleaned: bool) -> Iterator[AbortedWrites]:
    """Yield all entities of ``select_aborted``, page by page: a limit must never hide an entity for good."""
    after: Entity | None = None
    while True:
        with db.begin(durable=False) as pg:
            found = select_aborted(pg, page, after, cleaned=cleaned)
        yield from found
        if len(found) < page:
            return
        after = found[-1].entity


def select_aborted_compactions(pg: PgTx) -> list[Entity]:
    """Return entities with an aborted compaction whose files are not removed yet."""
    rows = pg.sql(
        f"SELECT DISTINCT {_NAMES} FROM {_OF_ABORTED} WHERE {OF_COMPACTION.format(component='c')} AND NOT c.cleaned"
    )
    return [_entity(row) for row in rows]


def select_written_partitions(pg: PgTx, table: TableName) -> list[str]:
    """Return names of the partitions that committed transactions wrote and that no cleaning has covered since."""
    rows = pg.sql(
        f"SELECT DISTINCT partition FROM completed_txn_components WHERE {OF_TABLE} AND partition <> ''"
        " ORDER BY partition",
        table._asdict(),
    )
    return [name for (name,) in rows]


class Lists(NamedTuple):
    """A table's write ids and all transactions, as of one instant: open and aborted ids are exceptions.

    Of two instants the later list could call a transaction aborted whose write id the earlier one calls open: its files
    would stay, and it would be forgotten.
    """

    write_ids: ValidWriteIdList
    txns: ValidTxnList


def select_lists(pg: PgTx, table: TableName) -> Lists:
    """Return the lists for a cleaning or a job."""
    return select_lists_of(pg, [table])[table]


def select_lists_of(pg: PgTx, tables: Iterable[TableName]) -> dict[TableName, Lists]:
    """Return the lists of several tables, all as of one instant."""
    wanted = list(dict.fromkeys(tables))
    rows = pg.sql(
        _SELECT_LISTS, dict(zip(("catalogs", "dbs", "tables"), map(list, zip(*wanted, strict=True)), strict=True))
    )
    found: dict[TableName, list[tuple[int, str | None]]] = {}
    for *name, number, state in rows:
        found.setdefault(TableName(*name), []).append((number, state))
    txns = ValidTxnList(*_listed(found[_OF_TXNS]))
    return {
        table: Lists(ValidWriteIdList(f"{table.db}.{table.table}", *_listed(found.get(table, []))), txns)
        for table in wanted
    }


def _listed(rows: Sequence[tuple[int, str | None]]) -> tuple[int, int | None, tuple[int, ...], frozenset[int]]:
    """Return the high watermark (the row without a state), the smallest open id, all exceptions, and aborted ids."""
    mark = max((number for number, state in rows if state is None), default=0)
    states = {number: state for number, state in rows if state is not None}
    aborted = frozenset(number for number, state in states.items() if state == "aborted")
    smallest = min((number for number, state in states.items() if state == "open"), default=None)
    return mark, smallest, tuple(sorted(states)), aborted


def select_txn_states(pg: PgTx, txn_ids: Sequence[int]) -> dict[int, str]:
    """Return states of transactions that are still recorded."""
    return dict(pg.sql("SELECT id, state FROM txns WHERE id = ANY(%s)", (list(txn_ids),)))


def insert_compaction_component(pg: PgTx, entity: Entity, txn_id: int, write_id: int) -> None:
    """Tie the compaction's transaction to the entity: if it aborts, its record outlives the files that it wrote."""
    pg.sql(
        'INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)'
        " VALUES (%s, %s, %s, %s, %s, 'c', %s) ON CONFLICT DO NOTHING",
        (txn_id, *entity.table, entity.partition, write_id),
    )


def _behind(after: Entity | None) -> dict[str, str]:
    return named(after) if after else {"catalog": "", "db": "", "table": "", "partition": ""}


def named(entity: Entity) -> dict[str, str]:
    """Return the parameters of `OF_TABLE`, and the partition."""
    return {**entity.table._asdict(), "partition": entity.partition}


def all_named(entities: Sequence[Entity]) -> dict[str, list[str]]:
    """Return the parameters of `WANTED`."""
    return {
        "catalogs": [entity.table.catalog for entity in entities],
        "dbs": [entity.table.db for entity in entities],
        "tables": [entity.table.table for entity in entities],
        "partitions": [entity.partition for entity in entities],
    }


def _entity(row: Sequence[Any]) -> Entity:
    *table, partition = row
    return Entity(TableName(*table), partition)
