"""A restored database's knowledge, and the records of the time that it does not know (ADR 0049).

Everything runs in the one PostgreSQL transaction of the restore, while no other process sees the database.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from metastore.db.arrays import bigints, columns
from metastore.db.engine import PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName
from metastore.recovery.rules import Void, VoidResult
from metastore.txns.core.rules import AbortCode, TxnType
from metastore.txns.core.store import ID_BLOCK, LISTED, abort

_SQL = Statements(__file__)

_BATCH = 10_000
_OWNER = ("restore", "", "metastore db restore")  # User, host and agent of the transactions that own void write ids.

_REQUIRED = _SQL.text("required")

_IN_DOUBT = """
SELECT w.write_id FROM txn_write_ids AS w JOIN txns AS t ON t.id = w.txn_id AND t.state = 'open'
WHERE w.catalog = %(catalog)s AND w.db = %(db)s AND w."table" = %(table)s"""

_RAISE_WRITE_IDS = _SQL.text("raise_write_ids")

_RAISE_COUNTER = """
INSERT INTO skipped_txn_ids SELECT next_txn_id, %(next)s - 1, metastore_now() FROM txn_counter;
UPDATE txn_counter SET next_txn_id = %(next)s, reserved_until = %(next)s + %(block)s;
INSERT INTO txn_id_block VALUES (1) ON CONFLICT DO NOTHING;
INSERT INTO notification_counter AS n (id, last_event_id) VALUES (1, %(gap)s)
ON CONFLICT (id) DO UPDATE SET last_event_id = n.last_event_id + %(gap)s"""

_SEQUENCES = """
SELECT c.oid::regclass::text FROM pg_class AS c
WHERE c.relkind = 'S' AND c.relnamespace = current_schema()::regnamespace"""


class TablePlaces(NamedTuple):
    """A transactional table and its places: (partition, location); "" is the table's own."""

    name: TableName
    places: tuple[tuple[str, str], ...]


def select_counter(pg: PgTx) -> tuple[int, int]:
    """Return the first transaction id that the database does not know, and the id up to which ids were reserved."""
    [(next_txn_id, reserved_until)] = pg.sql("SELECT next_txn_id, reserved_until FROM txn_counter")
    return int(next_txn_id), int(reserved_until)


def select_txns(pg: PgTx) -> tuple[set[int], set[int]]:
    """Return the open and the aborted transactions."""
    rows = pg.sql(f"SELECT id, state FROM txns WHERE {LISTED}")
    return (
        {txn_id for txn_id, state in rows if state == "open"},
        {txn_id for txn_id, state in rows if state == "aborted"},
    )


def select_next_write_id(pg: PgTx, name: TableName) -> int:
    """Return the id that the table's next allocation would get."""
    rows = pg.sql('SELECT next_write_id FROM next_write_ids WHERE catalog = %s AND db = %s AND "table" = %s', name)
    return int(rows[0][0]) if rows else 1


def select_in_doubt(pg: PgTx, name: TableName) -> set[int]:
    """Return write ids of the table whose transactions were open."""
    return {write_id for (write_id,) in pg.sql(_IN_DOUBT, name._asdict())}


def select_required(pg: PgTx, name: TableName) -> dict[str, set[int]]:
    """Return, per partition, write ids that must have a readable directory."""
    required: dict[str, set[int]] = {}
    for partition, write_id in pg.sql(_REQUIRED, name._asdict()):
        required.setdefault(partition, set()).add(write_id)
    return required


def select_databases(pg: PgTx) -> list[tuple[str, str, str]]:
    """Return (catalog, name, location) of every database; of a database with two locations both."""
    return [
        (catalog, db, location)
        for catalog, db, *locations in pg.sql(
            "SELECT catalog, name, location, managed_location FROM databases ORDER BY catalog, name"
        )
        for location in filter(None, locations)
    ]


def select_locations(pg: PgTx) -> list[str]:
    """Return the locations of tables of any kind."""
    return [location for (location,) in pg.sql("SELECT location FROM tables WHERE location IS NOT NULL")]


def select_transactional(pg: PgTx) -> list[TablePlaces]:
    """The transactional tables with their partitions."""
    rows = pg.sql("""
        SELECT t.catalog, t.db, t.name, t.location, p.name, p.location FROM tables AS t
        LEFT JOIN partitions AS p ON p.table_id = t.id
        WHERE t.location IS NOT NULL AND is_transactional(t.parameters)
        ORDER BY t.catalog, t.db, t.name, p.name""")
    places_of: dict[TableName, dict[str, str]] = {}
    for catalog, db, table, location, partition, place in rows:
        places = places_of.setdefault(TableName(catalog, db, table), {"": location})
        if partition is not None:
            places[partition] = place or f"{location}/{partition}"
    return [TablePlaces(name, tuple(places.items())) for name, places in places_of.items()]


def insert_void(pg: PgTx, first_txn_id: int, void: Iterable[tuple[TableName, Collection[Void]]]) -> None:
    """Give the void write ids of each table to transactions from an id on, the same for all tables."""
    txns: set[int] = set()
    write_ids: list[tuple[Any, ...]] = []
    components: list[tuple[Any, ...]] = []
    for name, ones in void:
        owners = {
            write_id: txn_id for txn_id, write_id in enumerate(sorted({owned.write_id for owned in ones}), first_txn_id)
        }
        txns.update(owners.values())
        write_ids += [(owner, *name, write_id) for write_id, owner in owners.items()]
        components += [(owners[owned.write_id], *name, owned.partition, "i", owned.write_id) for owned in sorted(ones)]
    _insert_txns(pg, txns, TxnType.DEFAULT)
    for rows in _batches(write_ids):
        pg.sql(
            """INSERT INTO txn_write_ids (txn_id, catalog, db, "table", write_id) SELECT * FROM unnest(
                  %s::bigint[], %s::text[], %s::text[], %s::text[], %s::bigint[])""",
            columns(rows, 5),
        )
    _insert_components(pg, components)


def insert_in_doubt(pg: PgTx, name: TableName, ones: Collection[Void]) -> None:
    """Give the owners of write ids components in partitions with their directories, as far as they have none."""
    write_ids, partitions = columns(sorted(ones), 2)
    pg.sql(
        """INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
              SELECT w.txn_id, w.catalog, w.db, w."table", d.partition, 'i', w.write_id FROM txn_write_ids AS w
              JOIN unnest(%s::bigint[], %s::text[]) AS d(write_id, partition) USING (write_id)
              WHERE w.catalog = %s AND w.db = %s AND w."table" = %s ON CONFLICT DO NOTHING""",
        (write_ids, partitions, *name),
    )


def insert_void_results(
    pg: PgTx, results: Iterable[tuple[TableName, Collection[VoidResult]]], there: Collection[int]
) -> None:
    """Record the transactions of compactions that the database does not know; it knows those that are ``there``."""
    rows = [
        (void.txn_id, *name, void.partition, "c", void.write_id)
        for name, ones in results
        for void in sorted(ones)
        if void.txn_id not in there
    ]
    _insert_txns(pg, {txn_id for txn_id, *_ in rows}, TxnType.COMPACTION)
    _insert_components(pg, rows)


def update_finished(pg: PgTx, txn_ids: Collection[int]) -> None:
    """Let compactions that were open count as committed, since their output is the only copy."""
    pg.sql(
        """DELETE FROM txn_components WHERE txn_id = ANY(%(ids)s::bigint[]);
              DELETE FROM locks WHERE txn_id = ANY(%(ids)s::bigint[]) AND txn_id <> 0;
              DELETE FROM min_history WHERE txn_id = ANY(%(ids)s::bigint[]);
              UPDATE txns SET state = 'committed', ended_at = metastore_now(), commit_id = id
              WHERE id = ANY(%(ids)s::bigint[]) AND state = 'open'""",
        {"ids": bigints(sorted(txn_ids))},
    )


def update_cleanings(pg: PgTx) -> None:
    """Let each cleaning that was due count as begun: since the backup files may have gone."""
    pg.sql(
        "UPDATE compaction_queue SET cleaner_started_at = metastore_now()"
        " WHERE state = 'ready_for_cleaning' AND cleaner_started_at IS NULL"
    )


def abort_open(pg: PgTx, reason: str) -> int:
    """Abort every open transaction; return their number."""
    count = 0
    while rows := pg.sql("SELECT id FROM txns WHERE state = 'open' ORDER BY id LIMIT %s", (_BATCH,)):
        count += len(abort(pg, [(txn_id, AbortCode.RESTORED, reason) for (txn_id,) in rows]))
    return count


def update_counters(pg: PgTx, next_txn_id: int, gap: int) -> None:
    """Continue transactions at this id, and locks, compactions, events and objects behind a gap."""
    pg.sql(_RAISE_COUNTER, {"next": next_txn_id, "block": ID_BLOCK, "gap": gap})
    for (sequence,) in pg.sql(_SEQUENCES):
        pg.sql(f"SELECT setval('{sequence}', last_value + %s) FROM {sequence}", (gap,))


def update_write_ids(pg: PgTx, highest: Sequence[tuple[TableName, int]], gap: int) -> None:
    """Continue every name's write ids behind its last, and behind the highest that was found in directories."""
    rows = [(*name, seen) for name, seen in highest]
    pg.sql(
        _RAISE_WRITE_IDS,
        {**dict(zip(("catalogs", "dbs", "tables", "highest"), columns(rows, 4), strict=True)), "gap": gap},
    )


def _insert_txns(pg: PgTx, txn_ids: Collection[int], kind: TxnType) -> None:
    pg.sql(
        """INSERT INTO txns (id, state, type, "user", host, agent_info, started_at, last_heartbeat_at)
              SELECT id, 'open', %s, %s, %s, %s, metastore_now(), metastore_now() FROM unnest(%s::bigint[]) AS id""",
        (int(kind), *_OWNER, bigints(sorted(txn_ids))),
    )


def _insert_components(pg: PgTx, components: Sequence[tuple[Any, ...]]) -> None:
    for rows in _batches(components):
        pg.sql(
            """INSERT INTO txn_components (txn_id, catalog, db, "table", partition, operation, write_id)
                  SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
                                       %s::bigint[])""",
            columns(rows, 7),
        )


def _batches(rows: Sequence[tuple[Any, ...]]) -> Iterable[Sequence[tuple[Any, ...]]]:
    return (rows[start : start + _BATCH] for start in range(0, len(rows), _BATCH))
