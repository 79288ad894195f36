"""History of tables and partitions on the transaction side, when DDL drops or renames them.

Runs in the PostgreSQL transaction of the DDL. A drop forgets everything except locks, write sets and readers of the
table: they end with their transactions, and the Cleaner waits for readers of what was dropped. A rename carries
everything over. A name's write ids go on where they were, whichever table has the name next: a directory's path names
one write of one table for ever (ADR 0037). Source: TXN-43.
"""

from collections.abc import Sequence

from metastore.db import arrays
from metastore.db.engine import PgTx
from metastore.ids import DatabaseName, TableName
from metastore.txns.remembering.store import removing, rename_table

_COMPLETED = "completed_txn_components"
_PER_PARTITION = (
    "txn_components",
    _COMPLETED,
    "compaction_queue",
    "completed_compactions",
    "delta_measures",
    "listings",
)
_PER_TABLE = ("txn_write_ids", "write_id_times", "materialization_locks")
_FOLLOW_RENAMES = ("write_sets", "locks")
_OBJECT = 'catalog = %s AND db = %s AND "table" = %s'
_BEGIN_ANEW = (
    "UPDATE next_write_ids SET first_write_id = next_write_id, purged_write_id = next_write_id - 1,"
    " known_since = metastore_now() WHERE "
)
# A compactor may use a name that no table has, and the previous release leaves listings of tables that it drops.
_FREE_NAME = [f"DELETE FROM {name} WHERE {_OBJECT}" for name in ("delta_measures", "listings")]
# The new name may have a mark of its own, of a table that had it before.
_CARRY_WRITE_IDS = f"""
INSERT INTO next_write_ids AS n (catalog, db, "table", next_write_id, purged_write_id, known_since, first_write_id)
SELECT %s, %s, %s, next_write_id, purged_write_id, known_since, first_write_id FROM next_write_ids
WHERE {_OBJECT} FOR UPDATE
ON CONFLICT (catalog, db, "table") DO UPDATE SET
    next_write_id = greatest(n.next_write_id, EXCLUDED.next_write_id), purged_write_id = EXCLUDED.purged_write_id,
    known_since = EXCLUDED.known_since, first_write_id = EXCLUDED.first_write_id"""
_CARRY_READERS = f"""
UPDATE min_history AS o SET catalog = %s, db = %s, "table" = %s WHERE {_OBJECT} AND NOT EXISTS (
    SELECT FROM min_history AS n WHERE n.txn_id = o.txn_id AND (n.catalog, n.db, n."table") = (%s, %s, %s))"""
# These readers have a row of the new name already: the two rows become one.
_MERGE_READERS = f"""
WITH carried AS (DELETE FROM min_history WHERE {_OBJECT} RETURNING txn_id, min_write_id)
INSERT INTO min_history AS m (txn_id, catalog, db, "table", min_write_id)
SELECT txn_id, %s, %s, %s, min_write_id FROM carried
ON CONFLICT (txn_id, catalog, db, "table")
DO UPDATE SET min_write_id = greatest(m.min_write_id, excluded.min_write_id)"""


def delete_table_history(pg: PgTx, table: TableName) -> None:
    """Forget components, owners of write ids and compactions of a table that is dropped."""
    statements = _forgetting(_OBJECT)
    pg.sql("; ".join(statements), (*table,) * len(statements))


def delete_database_history(pg: PgTx, database: DatabaseName) -> None:
    """Forget components, owners of write ids and compactions of every table in a database that is dropped."""
    statements = _forgetting("catalog = %s AND db = %s")
    pg.sql("; ".join(statements), (*database,) * len(statements))


def delete_partition_history(pg: PgTx, table: TableName, partitions: Sequence[str]) -> None:
    """Forget components and compactions of partitions (by canonical name) that are dropped; commits are remembered."""
    deletes = (f"DELETE FROM {name} WHERE {_OBJECT} AND partition = ANY(%s::text[])" for name in _PER_PARTITION)
    statements = (removing(delete) if _COMPLETED in delete else delete for delete in deletes)
    pg.sql("; ".join(statements), (*table, arrays.literal(partitions)) * len(_PER_PARTITION))


def rename_table_history(pg: PgTx, old: TableName, new: TableName) -> None:
    """Carry everything over to a table's new name, locks and write sets included; the old name keeps its mark."""
    freeing = "; ".join(_FREE_NAME)
    pg.sql(f"{_CARRY_WRITE_IDS}; {_BEGIN_ANEW}{_OBJECT}; {freeing}", (*new, *old, *old, *new * len(_FREE_NAME)))
    names = (*_PER_PARTITION, *_PER_TABLE, *_FOLLOW_RENAMES)
    pg.sql(
        "; ".join(f'UPDATE {name} SET catalog = %s, db = %s, "table" = %s WHERE {_OBJECT}' for name in names),
        (*new, *old) * len(names),
    )
    rename_readers(pg, old, new)
    rename_table(pg, old, new)


def rename_readers(pg: PgTx, old: TableName, new: TableName) -> None:
    """Let readers of the table refer to its new name. A reader may have read a dropped table that had this name.

    This comes after components and locks, in the order of commits, to avoid a deadlock.
    """
    pg.sql(f"{_CARRY_READERS}; {_MERGE_READERS}", (*new, *old, *new, *old, *new))


def rename_partition_history(pg: PgTx, table: TableName, old: str, new: str) -> None:
    """Carry a partition's history over to its new canonical name."""
    names = (*_PER_PARTITION, *_FOLLOW_RENAMES)
    renaming = (f"UPDATE {name} SET partition = %s WHERE {_OBJECT} AND partition = %s" for name in names)
    freeing = (f"{statement} AND partition = %s" for statement in _FREE_NAME)
    pg.sql("; ".join((*freeing, *renaming)), (*(*table, new) * len(_FREE_NAME), *(new, *table, old) * len(names)))


def _forgetting(which: str) -> list[str]:
    """Return SQL statements that delete the ACID history of tables.

    They lock the tables' rows of next write ids before they delete the owners of write ids: the lock waits for an
    allocation in progress.
    """
    return [
        *(f"DELETE FROM {name} WHERE {which}" for name in _PER_PARTITION),
        f"{_BEGIN_ANEW}{which}",
        *(f"DELETE FROM {name} WHERE {which}" for name in _PER_TABLE),
    ]


def select_owner(pg: PgTx, table: TableName, write_id: int) -> int | None:
    """Return the transaction that has a write id of a table, or None if it is forgotten."""
    rows = pg.sql(f"SELECT txn_id FROM txn_write_ids WHERE {_OBJECT} AND write_id = %s", (*table, write_id))
    return rows[0][0] if rows else None


def insert_write_id_seed(pg: PgTx, table: TableName, seed: int) -> None:
    """Let a converted table's write ids begin above ``seed``; files that were there count as older."""
    pg.sql(
        'INSERT INTO next_write_ids AS n (catalog, db, "table", next_write_id, known_since)'
        ' VALUES (%s, %s, %s, %s, metastore_now()) ON CONFLICT (catalog, db, "table") DO UPDATE SET'
        " next_write_id = greatest(n.next_write_id, EXCLUDED.next_write_id)",
        (*table, seed + 1),
    )
