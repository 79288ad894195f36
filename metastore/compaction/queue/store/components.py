"""What transactions left behind that compaction must look at: their components, write ids and open neighbours.

Rule: only reads rows of the transaction side, except that a cleaned entity's components are forgotten and a
compaction's own component is recorded. Everything about one question is read in one statement, hence one snapshot.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from metastore.acid.names import BaseName
from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.compaction.cleaning.rules import OpenTxn
from metastore.compaction.queue.rules.requests import Entity
from metastore.db.engine import PgTx, Row
from metastore.ids import TableName
from metastore.txns.core.rules import LARGEST_ID, TxnType

BATCH = 10_000



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

_NAMES = 'c.catalog, c.db, c."table", c.partition'
# A writer has such a component too: "somewhere in the table", once it has named partitions (txns/core/partitions.sql).
_OF_COMPACTION = (f"{{component}}.operation = 'c'"
                  f" AND t.type IN ({TxnType.COMPACTION:d}, {TxnType.REBALANCE_COMPACTION:d})")
_OF_TABLE = 'catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s'


class AbortedWrites(NamedTuple):
    """How much aborted transactions left in an entity."""

    entity: Entity
    txns: int
    oldest_started_at: datetime


def select_written(pg: PgTx, since: datetime | None, limit: int, after: Entity | None) -> list[Entity]:
    """Entities that committed transactions wrote, ordered by name, from behind ``after``; ``since`` None: ever.

    With ``since`` also those whose newest history row is a failure, since nothing else would bring them back.
    """
    rows = pg.sql(
        f"SELECT DISTINCT {_NAMES} FROM completed_txn_components AS c"
        " WHERE (%(since)s::timestamptz IS NULL OR c.at >= %(since)s OR 'yes' = ("
        "   SELECT CASE WHEN h.state IN ('failed', 'did_not_initiate') THEN 'yes' END FROM completed_compactions AS h"
        '   WHERE (h.catalog, h.db, h."table", h.partition) = (c.catalog, c.db, c."table", c.partition)'
        "   ORDER BY h.id DESC LIMIT 1))"
        f" AND c.\"table\" <> '' AND ({_NAMES}) > (%(catalog)s, %(db)s, %(table)s, %(partition)s)"
        f" ORDER BY {_NAMES} LIMIT %(limit)s", {"since": since, "limit": limit, **_behind(after)})
    return [_entity(row) for row in rows]


def select_aborted(pg: PgTx, limit: int, after: Entity | None = None, *, cleaned: bool) -> list[AbortedWrites]:
    """Entities that aborted transactions wrote, ordered by name; those whose files are still there, or ``cleaned``.

    Not those of which there is only an aborted compaction: what it left goes with the next cleaning, and what its job
    may still publish is no sooner settled for being looked for.
    """
    rows = pg.sql(
        f"SELECT {_NAMES}, count(DISTINCT t.id), min(t.started_at) FROM txn_components AS c"
        " JOIN txns AS t ON t.id = c.txn_id AND t.state = 'aborted'"
        f" WHERE NOT ({_OF_COMPACTION.format(component='c')}) AND c.\"table\" <> '' AND c.cleaned = %(cleaned)s"
        f" AND ({_NAMES}) > (%(catalog)s, %(db)s, %(table)s, %(partition)s)"
        f" GROUP BY {_NAMES} ORDER BY {_NAMES} LIMIT %(limit)s", {"limit": limit, "cleaned": cleaned, **_behind(after)})
    return [AbortedWrites(_entity(row), row[4], row[5]) for row in rows]


def select_written_partitions(pg: PgTx, table: TableName) -> list[str]:
    """Names of the partitions that committed transactions wrote and that no cleaning has covered since."""
    rows = pg.sql(f"SELECT DISTINCT partition FROM completed_txn_components WHERE {_OF_TABLE} AND partition <> ''"
                  " ORDER BY partition", table._asdict())
    return [name for (name,) in rows]


def select_write_ids(pg: PgTx, table: TableName) -> ValidWriteIdList:
    """The table's write ids as of now: open and aborted ones are exceptions."""
    rows = pg.sql(
        f"SELECT coalesce((SELECT next_write_id - 1 FROM next_write_ids WHERE {_OF_TABLE}), 0), NULL, NULL"
        " UNION ALL SELECT NULL, w.write_id, t.state FROM txn_write_ids AS w"
        " JOIN txns AS t ON t.id = w.txn_id AND t.state <> 'committed'"
        ' WHERE w.catalog = %(catalog)s AND w.db = %(db)s AND w."table" = %(table)s', table._asdict())
    mark = max(row[0] for row in rows if row[0] is not None)
    found = {write_id: state for _, write_id, state in rows if write_id is not None}
    aborted = frozenset(write_id for write_id, state in found.items() if state == "aborted")
    smallest = min((write_id for write_id, state in found.items() if state == "open"), default=None)
    return ValidWriteIdList(f"{table.db}.{table.table}", mark, smallest, tuple(sorted(found)), aborted)


def select_txns(pg: PgTx) -> ValidTxnList:
    """All transactions as of now: open and aborted ones are exceptions."""
    rows = pg.sql("SELECT next_txn_id - 1, NULL FROM txn_counter UNION ALL"
                  " SELECT id, state FROM txns WHERE state <> 'committed' AND NOT emptied")
    mark = max((txn_id for txn_id, state in rows if state is None), default=0)
    found = {txn_id: state for txn_id, state in rows if state is not None}
    aborted = frozenset(txn_id for txn_id, state in found.items() if state == "aborted")
    smallest = min((txn_id for txn_id, state in found.items() if state == "open"), default=None)
    return ValidTxnList(mark, smallest, tuple(sorted(found)), aborted)


def select_txn_states(pg: PgTx, txn_ids: Sequence[int]) -> dict[int, str]:
    """States of transactions that are still recorded."""
    return dict(pg.sql("SELECT id, state FROM txns WHERE id = ANY(%s)", (list(txn_ids),)))


def select_open_txns(pg: PgTx, up_to: int, table: TableName) -> list[OpenTxn]:
    """Open transactions with ids up to ``up_to``, oldest first, and the write id that each still needs of the table."""
    rows = pg.sql(
        'SELECT t.id, t."user", t.host,'
        " (SELECT m.min_write_id FROM min_history AS m WHERE m.txn_id = t.id AND m.catalog = %(catalog)s"
        '   AND m.db = %(db)s AND m."table" = %(table)s),'
        " EXISTS (SELECT FROM min_history AS m WHERE m.txn_id = t.id)"
        " FROM txns AS t WHERE t.state = 'open' AND NOT t.emptied AND t.id <= %(up_to)s ORDER BY t.id",
        {**table._asdict(), "up_to": up_to})
    return [OpenTxn(*row) for row in rows]


def update_txn_heartbeat(pg: PgTx, txn_id: int) -> bool:
    """Keep an open transaction alive; False when it is not open."""
    pg.sql("UPDATE txns SET last_heartbeat_at = %(now)s, heartbeat_count = heartbeat_count + 1,"
           " longest_gap = greatest(longest_gap, %(now)s - last_heartbeat_at)"
           " WHERE id = %(txn)s AND state = 'open'", {"now": pg.now, "txn": txn_id})
    return pg.rowcount == 1


def insert_compaction_component(pg: PgTx, entity: Entity, txn_id: int, write_id: int) -> None:
    """Tie the compaction's transaction to the entity: if it aborts, its record outlives the files that it wrote."""
    pg.sql('INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)'
           " VALUES (%s, %s, %s, %s, %s, 'c', %s) ON CONFLICT DO NOTHING",
           (txn_id, *entity.table, entity.partition, write_id))


def delete_compaction_component(pg: PgTx, txn_id: int) -> None:
    """Untie an aborted compaction's transaction from what it would have compacted."""
    pg.sql("DELETE FROM txn_components USING txns WHERE txn_id = %s AND operation = 'c' AND txns.id = txn_id"
           " AND txns.state = 'aborted'", (txn_id,))


def delete_completed(pg: PgTx, entity: Entity, up_to: int | None, *, limit: int = BATCH) -> int:
    """Forget some of what committed transactions wrote to an entity up to a write id (None: everything); how many."""
    pg.sql("DELETE FROM completed_txn_components WHERE ctid = ANY(ARRAY("
           f"  SELECT ctid FROM completed_txn_components WHERE {_OF_TABLE} AND partition = %(partition)s"
           "   AND (%(up_to)s::bigint IS NULL OR write_id IS NULL OR write_id <= %(up_to)s)"
           "   LIMIT %(limit)s))",
           {**_named(entity), "up_to": up_to, "limit": limit})
    return pg.rowcount


def delete_aborted(pg: PgTx, entity: Entity, up_to: int | None, keep: Collection[int] = (),
                   txn_ids: Collection[int] | None = None, *, covered: Covered, limit: int = BATCH) -> int:
    """Forget some of what aborted transactions wrote to an entity up to a write id (None: everything); how many.

    A component recorded before its transaction had a write id has the one that it got later. ``keep``: write ids that
    stay; ``txn_ids``: only these transactions, known to be aborted when the files were listed.

    What may still be published stays, unless a base covers it: by the job of a compaction, or by an owner whose
    transaction somebody else has aborted. It is void only while the transaction is known as aborted.
    """
    writes, results = covered.writes or BaseName(0), covered.results or BaseName(0)
    pg.sql(
        "DELETE FROM txn_components WHERE ctid = ANY(ARRAY("
        "  SELECT d.ctid FROM txn_components AS d"
        "  JOIN txns AS t ON t.id = d.txn_id AND t.state = 'aborted'"
        "  LEFT JOIN txn_write_ids AS w ON w.txn_id = d.txn_id AND w.catalog = d.catalog AND w.db = d.db"
        '    AND w."table" = d."table"'
        '  WHERE d.catalog = %(catalog)s AND d.db = %(db)s AND d."table" = %(table)s'
        "    AND d.partition = %(partition)s"
        "    AND (%(txns)s::bigint[] IS NULL OR d.txn_id = ANY(%(txns)s::bigint[]))"
        "    AND (%(up_to)s::bigint IS NULL OR coalesce(d.write_id, w.write_id, 0) <= %(up_to)s)"
        "    AND NOT coalesce(d.write_id, w.write_id, 0) = ANY(%(keep)s::bigint[])"
        f"    AND CASE WHEN {_OF_COMPACTION.format(component='d')}"
        "             THEN (d.write_id, d.txn_id) < (%(base)s::bigint, %(result_of)s::bigint)"
        # An owner's own base of the same write id is beaten by one that a compaction made, by no other.
        "             WHEN t.may_publish AND coalesce(d.write_id, w.write_id) IS NOT NULL"
        "             THEN (coalesce(d.write_id, w.write_id), 0) < (%(covering)s::bigint, %(compacted)s::bigint)"
        "             ELSE true END"
        "  LIMIT %(limit)s))",
        {**_named(entity), "up_to": up_to, "keep": list(keep), "limit": limit,
         "base": results.write_id, "result_of": results.visibility_txn_id,
         "covering": writes.write_id, "compacted": writes.visibility_txn_id,
         "txns": None if txn_ids is None else list(txn_ids)})
    return pg.rowcount


def update_cleaned(pg: PgTx, entity: Entity, txn_ids: Collection[int]) -> None:
    """Note of what stays of these aborted transactions that its files are gone: nobody needs to look again."""
    pg.sql(f"UPDATE txn_components SET cleaned = true WHERE {_OF_TABLE} AND partition = %(partition)s"
           " AND NOT cleaned AND txn_id = ANY(%(txns)s::bigint[])", {**_named(entity), "txns": list(txn_ids)})


def _behind(after: Entity | None) -> dict[str, str]:
    return _named(after) if after else {"catalog": "", "db": "", "table": "", "partition": ""}


def _named(entity: Entity) -> dict[str, str]:
    return {**entity.table._asdict(), "partition": entity.partition}


def _entity(row: Row) -> Entity:
    return Entity(TableName(row[0], row[1], row[2]), row[3])
