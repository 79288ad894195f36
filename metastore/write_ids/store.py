"""Rows of write ids: the next id of each table, and the owner of each id.

An owner is forgotten once every live snapshot would call it valid, or once it is aborted and nothing it wrote is left;
``next_write_ids.purged_write_id`` remembers the highest id that lost its owner that way (TXN-42).
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from metastore.acid.snapshots import ValidTxnList
from metastore.db.arrays import bigints, columns
from metastore.db.engine import Database, PgTx
from metastore.db.prepared import Prepared
from metastore.db.statements import Statements
from metastore.errors import ConflictRetryError
from metastore.ids import TableName
from metastore.txns.core.rules import Snapshot, TxnRecord, TxnState, TxnType
from metastore.txns.core.store import LISTED, SNAPSHOT, unpacked
from metastore.write_ids.rules import AllocationPlan, TableWriteIds

_SQL = Statements(__file__)

_SAME_TABLE = 'm.catalog = w.catalog AND m.db = w.db AND m."table" = w."table"'

# This reads only unfinished ids: ids that exceptions own, and ids of transactions behind the mark. OFFSET 0 keeps
# PostgreSQL from going through all ids of a table instead.
_HIDDEN = """
    SELECT catalog, db, "table", write_id, txn_id
    FROM (SELECT * FROM txn_write_ids WHERE txn_id = ANY({exceptions}::bigint[]) OFFSET 0) AS excepted"""
_LATER = """
    UNION ALL
    SELECT catalog, db, "table", write_id, txn_id
    FROM (SELECT * FROM txn_write_ids WHERE txn_id > %(mark)s OFFSET 0) AS later
    WHERE txn_id <> ALL(%(exceptions)s::bigint[])"""
_WANTED = f"""
wanted AS (
    SELECT w.*, n.next_write_id, n.purged_write_id, m.write_id AS mapped
    FROM {{asked}}
    LEFT JOIN next_write_ids AS n USING (catalog, db, "table")
    LEFT JOIN LATERAL (SELECT write_id FROM txn_write_ids AS m WHERE {_SAME_TABLE} AND txn_id <= w.mark
                       ORDER BY write_id DESC LIMIT 1) AS m ON true)"""
_ANSWERS = _SQL.text("answers", same_table=_SAME_TABLE)

_ASKED_BY_MARK = """
    unnest(%(marks)s::bigint[], %(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[])
    AS w(mark, catalog, db, "table")"""
_TABLES = Prepared(f"""
WITH {_WANTED.format(asked=_ASKED_BY_MARK)},
hidden AS MATERIALIZED ({_HIDDEN.format(exceptions="%(exceptions)s")}{_LATER})
SELECT {_ANSWERS}""")

# The same for a reader that starts now: no transaction is behind its mark. The first table has the open transactions.
_ASKED_NOW = """
    (SELECT (SELECT mark FROM snapshot), asked.*
     FROM unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[]) WITH ORDINALITY
          AS asked(catalog, db, "table", place)) AS w(mark, catalog, db, "table", place)"""
_TABLES_NOW = Prepared(f"""
WITH snapshot(mark, packed, aborted, min_open) AS MATERIALIZED ({SNAPSHOT}),
unfinished AS MATERIALIZED (SELECT array_agg(id) AS ids FROM txns WHERE {LISTED}),
{_WANTED.format(asked=_ASKED_NOW)},
hidden AS MATERIALIZED ({_HIDDEN.format(exceptions="(SELECT ids FROM unfinished)")})
SELECT CASE w.place WHEN 1 THEN s.packed END, CASE w.place WHEN 1 THEN s.aborted END, s.min_open, {_ANSWERS}
CROSS JOIN snapshot AS s ORDER BY w.place""")

_LOCK_TABLES = Prepared(
    "SELECT FROM txns WHERE id = ANY(%(txns)s::bigint[]) ORDER BY id FOR KEY SHARE",
    """
INSERT INTO next_write_ids (catalog, db, "table", next_write_id, known_since)
SELECT *, 1, metastore_now() FROM unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[])
ON CONFLICT DO NOTHING""",
    """
SELECT FROM next_write_ids WHERE (catalog, db, "table") IN (
    SELECT * FROM unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[]))
ORDER BY catalog, db, "table" FOR UPDATE""",
    _SQL.text("select_facts"),
)

_DROP = _SQL.text("drop")

_ALLOCATE_UNCONTENDED = Prepared(f"""SELECT allocate_uncontended(
    %(of_txns)s::bigint[], {int(TxnType.READ_ONLY)}::smallint, %(t_catalogs)s::text[], %(t_dbs)s::text[],
    %(t_tables)s::text[], %(txns)s::bigint[], %(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[])""")

_ALLOCATE = Prepared(
    """
INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id)
SELECT * FROM unnest(%(txns)s::bigint[], %(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[], %(ids)s::bigint[])
""",
    """
UPDATE next_write_ids AS n SET next_write_id = u.next
FROM unnest(%(u_catalogs)s::text[], %(u_dbs)s::text[], %(u_tables)s::text[], %(u_next)s::bigint[])
     AS u(catalog, db, "table", next)
WHERE n.catalog = u.catalog AND n.db = u.db AND n."table" = u."table"
""",
)

_INSERT_NEXT_WRITE_ID = _SQL.text("insert_next_write_id")


class AllocationFacts(NamedTuple):
    """The facts that decide a batch of allocations; none of them can change before the batch is applied."""

    txns: dict[int, TxnRecord]
    owned: dict[tuple[int, TableName], int]
    next_write_ids: dict[TableName, int]


def _names(names: Collection[TableName]) -> dict[str, str]:
    return dict(zip(("catalogs", "dbs", "tables"), columns(names, 3), strict=True))


def select_tables(db: Database, names: Collection[TableName], txns: ValidTxnList) -> dict[TableName, TableWriteIds]:
    """Return the state of each table that a reader with this snapshot needs."""
    answers = select_tables_of_readers(db, [(name, txns) for name in names])
    return {name: known for (_, name), known in answers.items()}


def select_tables_of_readers(
    db: Database, wanted: Iterable[tuple[TableName, ValidTxnList]]
) -> dict[tuple[int, TableName], TableWriteIds]:
    """Return the state of tables, keyed by the reader's high watermark and the table, in one statement.

    Ids hidden from one reader are in the answer for all: ``rules.valid_write_ids`` picks those that its reader may not
    see.
    """
    pairs = list(wanted)
    readers = list({id(txns): txns for _, txns in pairs}.values())
    exceptions = (
        readers[0].exceptions_text
        if len(readers) == 1
        else ",".join({text: None for txns in readers for text in txns.exceptions_text.split(",") if text})
    )
    rows = db.once(
        _TABLES,
        {
            **dict(
                zip(
                    ("marks", "catalogs", "dbs", "tables"),
                    columns(sorted({(txns.high_watermark, *name) for name, txns in pairs}), 4),
                    strict=True,
                )
            ),
            "mark": min(txns.high_watermark for txns in readers),
            "exceptions": f"{{{exceptions}}}",
        },
    )
    return {(mark, TableName(catalog, db, table)): _known(facts) for mark, catalog, db, table, *facts in rows}


def select_tables_now(db: Database, names: Collection[TableName]) -> tuple[Snapshot, dict[TableName, TableWriteIds]]:
    """Return a snapshot of now, and the state of the tables for a reader that starts at this instant."""
    rows = db.once(_TABLES_NOW, {**_names(sorted(set(names))), "hidden": []})
    packed, aborted, min_open, mark, *_ = rows[0]
    return (
        unpacked(mark, packed, aborted, min_open),
        {TableName(catalog, db, table): _known(facts) for _, _, _, _, catalog, db, table, *facts in rows},
    )


def _known(sequence_any: Sequence[Any]) -> TableWriteIds:
    next_id, purged, mapped, write_ids, txn_ids, owned = sequence_any
    return TableWriteIds(
        next_id or 0, purged or 0, mapped or 0, list(zip(write_ids or (), txn_ids or (), strict=True)), owned
    )


def select_owner_and_snapshot(db: Database, name: TableName, write_id: int) -> tuple[int | None, Snapshot]:
    """Return the transaction that owns a write id, and a snapshot of the same instant."""
    [(owner, *snapshot)] = db.once(
        f"""
        SELECT (SELECT txn_id FROM txn_write_ids
                WHERE catalog = %(catalog)s AND db = %(db)s AND "table" = %(table)s AND write_id = %(write_id)s), s.*
        FROM ({SNAPSHOT}) AS s""",
        {**name._asdict(), "write_id": write_id, "hidden": []},
    )
    return owner, unpacked(*snapshot)


def allocate_uncontended(db: Database, wanted: Collection[tuple[int, TableName]]) -> list[int] | None:
    """Give each (transaction, table), none of them twice, the table's next id, in one round trip.

    Return the ids in order.

    Return None, and change nothing, if there is anything to decide (see allocate.sql).
    """
    names = _names(sorted({name for _, name in wanted}))
    pairs = columns([(txn_id, *name) for txn_id, name in wanted], 4)
    [(ids,)] = db.once(
        _ALLOCATE_UNCONTENDED,
        {
            "of_txns": bigints({txn_id for txn_id, _ in wanted}),
            **{f"t_{key}": texts for key, texts in names.items()},
            **dict(zip(("txns", "catalogs", "dbs", "tables"), pairs, strict=True)),
        },
    )
    return None if ids is None else list(ids)


def lock_for_allocation(pg: PgTx, names: Collection[TableName], txn_ids: Collection[int]) -> AllocationFacts:
    """Keep the transactions open and lock the tables' next ids, first rows included; read the facts that decide.

    Tables are locked in the order of their names. Raises: ConflictRetryError when a table was dropped meanwhile.
    """
    [(txns, owned, next_ids)] = pg.sql(_LOCK_TABLES, {**_names(sorted(set(names))), "txns": bigints(txn_ids)})
    if len(next_ids or ()) != len(set(names)):
        raise ConflictRetryError("A table was dropped while its write id was being allocated, try again")
    return AllocationFacts(
        {txn_id: TxnRecord(txn_id, TxnState(state), TxnType(kind)) for txn_id, state, kind in txns or ()},
        {(txn_id, TableName(*name)): write_id for txn_id, *name, write_id in owned or ()},
        {TableName(*name): next_id for *name, next_id in next_ids},
    )


def finish_allocations(pg: PgTx, plan: AllocationPlan) -> None:
    """Write the decision, and commit; tables that got nothing stay as if they were not in the request."""
    moved = {name for _, name in plan.allocated}
    if plan.dropped:
        dropped = columns([(txn_id, *name) for txn_id, name in plan.dropped], 4)
        pg.sql(_DROP, dict(zip(("d_txns", "d_catalogs", "d_dbs", "d_tables"), dropped, strict=True)))
    untouched = [name for name, next_id in plan.next_write_ids.items() if name not in moved and next_id == 1]
    if untouched:
        pg.sql(
            """
            DELETE FROM next_write_ids WHERE next_write_id = 1 AND (catalog, db, "table") IN (
                SELECT * FROM unnest(%(catalogs)s::text[], %(dbs)s::text[], %(tables)s::text[]))""",
            _names(untouched),
        )
    if plan.allocated:
        rows = [(txn_id, *name, write_id) for (txn_id, name), write_id in plan.allocated.items()]
        updates = [(*name, next_id) for name, next_id in plan.next_write_ids.items() if name in moved]
        pg.finish(
            _ALLOCATE,
            {
                **dict(zip(("txns", "catalogs", "dbs", "tables", "ids"), columns(rows, 5), strict=True)),
                **dict(zip(("u_catalogs", "u_dbs", "u_tables", "u_next"), columns(updates, 4), strict=True)),
            },
        )


def select_next_write_id(db: Database, name: TableName) -> int:
    """Return the id that the table's next allocation gets."""
    rows = db.once('SELECT next_write_id FROM next_write_ids WHERE catalog = %s AND db = %s AND "table" = %s', name)
    return rows[0][0] if rows else 1


def insert_next_write_id(pg: PgTx, name: TableName, next_write_id: int, *, exactly: bool) -> bool:
    """Let the table's ids begin here, those below being finished; return whether it had none before.

    ``exactly``: begin here even if an earlier table of the name had higher ids, else behind those.
    """
    return bool(pg.sql(_INSERT_NEXT_WRITE_ID, (*name, next_write_id, next_write_id - 1, exactly)))


def replace_write_ids(pg: PgTx, name: TableName, owners: Sequence[tuple[int, int]], *, forget: bool) -> None:
    """Give exactly these (transaction, write id) to the table; ``forget``: existing rows are of an earlier table."""
    if forget:
        pg.sql('DELETE FROM txn_write_ids WHERE catalog = %s AND db = %s AND "table" = %s', name)
    txn_ids, write_ids = columns(owners, 2)
    pg.sql(
        """INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id)
              SELECT txn_id, %s, %s, %s, write_id FROM unnest(%s::bigint[], %s::bigint[]) AS o(txn_id, write_id)""",
        (*name, txn_ids, write_ids),
    )


def update_next_write_id(pg: PgTx, name: TableName, next_write_id: int, finished: int) -> None:
    """Set the table's next id, so that no id above ``finished`` counts as finished without a record."""
    pg.sql(
        """UPDATE next_write_ids SET next_write_id = %s, purged_write_id = least(purged_write_id, %s),
                                        known_since = metastore_now(), first_write_id = 1
              WHERE catalog = %s AND db = %s AND "table" = %s""",
        (next_write_id, finished, *name),
    )
