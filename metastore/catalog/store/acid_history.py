"""What the transaction side keeps about tables and partitions, when DDL drops or renames them.

Runs in the PostgreSQL transaction of the DDL. A drop forgets everything except locks and write sets (they end with
their transactions), so that a table created again starts at write id 1; a rename carries everything over.
Source: transactions.md §3.14.
"""

from collections.abc import Sequence

from metastore.db.engine import PgTx
from metastore.ids import DatabaseName, TableName

_PER_PARTITION = ("txn_components", "completed_txn_components", "compaction_queue", "completed_compactions")
_PER_TABLE = ("next_write_ids", "txn_write_ids", "write_id_times", "min_history", "materialization_locks")
_FOLLOW_RENAMES = ("write_sets", "locks")
_OBJECT = 'catalog = %s AND db = %s AND "table" = %s'


def delete_table_history(pg: PgTx, table: TableName) -> None:
    """Forget components, write ids and compactions of a table that is dropped."""
    names = (*_PER_PARTITION, *_PER_TABLE)
    pg.sql("; ".join(f"DELETE FROM {name} WHERE {_OBJECT}" for name in names), (*table,) * len(names))


def delete_database_history(pg: PgTx, database: DatabaseName) -> None:
    """Forget the same of everything in a database that is dropped."""
    names = (*_PER_PARTITION, *_PER_TABLE)
    pg.sql("; ".join(f"DELETE FROM {name} WHERE catalog = %s AND db = %s" for name in names),
           (*database,) * len(names))


def delete_partition_history(pg: PgTx, table: TableName, partitions: Sequence[str]) -> None:
    """Forget components and compactions of partitions (by canonical name) that are dropped."""
    pg.sql("; ".join(f"DELETE FROM {name} WHERE {_OBJECT} AND partition = ANY(%s)" for name in _PER_PARTITION),
           (*table, list(partitions)) * len(_PER_PARTITION))


def rename_table_history(pg: PgTx, old: TableName, new: TableName) -> None:
    """Carry everything over to a table's new name, locks and write sets included."""
    names = (*_PER_PARTITION, *_PER_TABLE, *_FOLLOW_RENAMES)
    pg.sql("; ".join(f'UPDATE {name} SET catalog = %s, db = %s, "table" = %s WHERE {_OBJECT}' for name in names),
           (*new, *old) * len(names))


def rename_partition_history(pg: PgTx, table: TableName, old: str, new: str) -> None:
    """Carry a partition's history over to its new canonical name."""
    names = (*_PER_PARTITION, *_FOLLOW_RENAMES)
    pg.sql("; ".join(f"UPDATE {name} SET partition = %s WHERE {_OBJECT} AND partition = %s" for name in names),
           (new, *table, old) * len(names))


def insert_write_id_seed(pg: PgTx, table: TableName, seed: int) -> None:
    """Let a converted table's write ids begin above ``seed``; files that were there count as older."""
    pg.sql('INSERT INTO next_write_ids (catalog, db, "table", next_write_id, known_since) '
           "VALUES (%s, %s, %s, %s, metastore_now()) ON CONFLICT DO NOTHING", (*table, seed + 1))
