"""Counts and ages, in one statement; and the deltas of tables and partitions."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from metastore.compaction.measuring.rules import (
    FORGOTTEN_BELOW,
    HALF_LIFE_OF_SCORES,
    OPEN_COST,
    Counted,
    Deltas,
    DeltasOf,
    Writes,
)
from metastore.compaction.queue.rules.requests import Entity
from metastore.db.engine import PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.txns.core.rules import TxnType

_SQL = Statements(__file__)
_COST = float(OPEN_COST)


def _usual(at: str) -> str:
    """Return SQL for the mean score of a row at an instant, as if the last measured score had not changed since."""
    passed = f"0.5 ^ (greatest(0, extract(epoch FROM {at} - m.at)) / {HALF_LIFE_OF_SCORES.total_seconds()})"
    return f"m.usual_score + (m.files + m.bytes / {_COST} - m.usual_score) * (1 - {passed})"


_SELECT_MEASURES = _SQL.text("select_measures", replication=int(TxnType.REPL_CREATED))
_SELECT_WRITES = _SQL.text("select_writes")
_UPSERT_DELTAS = _SQL.text("upsert_deltas", cost=_COST, usual=_usual("excluded.at"))
_SELECT_STALE = _SQL.text("select_stale")
_ENTITY = 'catalog, db, "table", partition'
_COLUMNS = f"{_ENTITY}, deltas, small_deltas, obsolete_deltas, files, bytes, obsolete_bytes"
_NOTHING = "(deltas, small_deltas, obsolete_deltas, files, obsolete_bytes) = (0, 0, 0, 0, 0)"


def select_measures(pg: PgTx, many_aborts: int, window: timedelta) -> list[tuple[str, str, float]]:
    """Return (figure, object, value).

    ``many_aborts``: the least number of aborted transactions of an entity that counts. ``window``: the time for which a
    Worker or an Initiator counts.
    """
    values = {"now": pg.now, "many": many_aborts, "window": window}
    return [(what, which, float(value)) for what, which, value in pg.sql(_SELECT_MEASURES, values)]


def select_writes(pg: PgTx, since: datetime, key: str) -> list[Writes]:
    """Return tables with recent writers, if the table or its database has a parameter in any spelling."""
    return [
        Writes(TableName(*table), writes, of_database or {}, of_table or {})
        for *table, writes, of_database, of_table in pg.sql(_SELECT_WRITES, {"since": since, "key": key})
    ]


def upsert_deltas(pg: PgTx, measured: Sequence[DeltasOf]) -> None:
    """Store the present deltas; if there are none, the row goes once its usual score is forgotten."""
    rows = [(*each.entity.table, each.entity.partition, *each.deltas) for each in measured]
    gone = [(*each.entity.table, each.entity.partition) for each in measured if not any(each.deltas)]
    if rows:
        pg.sql(_UPSERT_DELTAS, [pg.now, *(list(column) for column in zip(*rows, strict=True))])
    if gone:
        which = f"({_ENTITY}) IN %s AND {_NOTHING} AND usual_score < %s"
        pg.sql(f"DELETE FROM delta_measures WHERE {which}", (tuple(gone), FORGOTTEN_BELOW))


def update_counted(pg: PgTx, entity: Entity, what: Counted, number: int) -> None:
    """Store a number from a compactor of Hive's."""
    pg.sql(
        f"INSERT INTO delta_measures ({_ENTITY}, {what.value}, at) VALUES (%s, %s, %s, %s, %s, %s)"
        f" ON CONFLICT ({_ENTITY}) DO UPDATE SET {what.value} = excluded.{what.value}",
        (*entity.table, entity.partition, number, pg.now),
    )
    pg.sql(
        f"DELETE FROM delta_measures WHERE ({_ENTITY}) = (%s, %s, %s, %s) AND {_NOTHING} AND usual_score < %s",
        (*entity.table, entity.partition, FORGOTTEN_BELOW),
    )


def select_stale(pg: PgTx, before: datetime, limit: int) -> list[Entity]:
    """Return entities compacted or cleaned since they were measured, or measured before an instant."""
    rows = pg.sql(_SELECT_STALE, {"before": before, "limit": limit})
    return [Entity(TableName(*table), partition) for *table, partition in rows]


def select_most(pg: PgTx, what: Counted, at_least: int, limit: int) -> list[DeltasOf]:
    """Return the entities with the most deltas of a kind, and at least so many."""
    return _read(pg, f"WHERE {what.value} >= %s ORDER BY {what.value} DESC, {_ENTITY} LIMIT %s", (at_least, limit))


def select_costliest(pg: PgTx, limit: int) -> list[DeltasOf]:
    """Return the entities with the highest scores, which cost readers most."""
    return _read(pg, f"WHERE files > 0 ORDER BY files + bytes / %s DESC, {_ENTITY} LIMIT %s", (_COST, limit))


def _read(pg: PgTx, which: str, values: Sequence[object]) -> list[DeltasOf]:
    rows = pg.sql(f"SELECT {_COLUMNS}, {_usual('%s')} FROM delta_measures AS m {which}", (pg.now, *values))
    return [
        DeltasOf(Entity(TableName(catalog, db, table), partition), Deltas(*numbers), usual)
        for catalog, db, table, partition, *numbers, usual in rows
    ]
