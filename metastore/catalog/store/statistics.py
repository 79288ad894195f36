"""Rows of ``column_statistics``: one per table or partition, column and engine."""

from collections.abc import Sequence

from metastore.catalog.model import ColumnStatistics, Table
from metastore.catalog.store.jsonb import to_json
from metastore.db.engine import PgTx

_ALL_OF = "table_id = %s AND partition = %s"


def select_statistics(pg: PgTx, table: Table, partitions: Sequence[str], columns: Sequence[str],
                      engine: str) -> list[ColumnStatistics]:
    """What is stored for these partitions ("" for the table itself) and columns."""
    rows = pg.sql('SELECT "column", type, data, partition, engine, last_analyzed FROM column_statistics '
                  'WHERE table_id = %s AND partition = ANY(%s) AND "column" = ANY(%s) AND engine = %s '
                  'ORDER BY partition, "column"', (table.id, list(partitions), list(columns), engine))
    return [ColumnStatistics(*row) for row in rows]


def upsert_statistics(pg: PgTx, table: Table, statistics: Sequence[ColumnStatistics]) -> None:
    """Store statistics in place of what was there."""
    for one in statistics:
        pg.sql('INSERT INTO column_statistics (table_id, partition, "column", engine, type, data, last_analyzed) '
               'VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (table_id, partition, "column", engine) DO UPDATE '
               "SET type = excluded.type, data = excluded.data, last_analyzed = excluded.last_analyzed",
               (table.id, one.partition, one.column, one.engine, one.type, to_json(one.data), one.last_analyzed))


def delete_statistics(pg: PgTx, table: Table, partition: str, columns: Sequence[str] | None, engine: str | None) -> int:
    """Remove statistics of some columns (None: all) and one engine (None: all); how many there were."""
    return len(pg.sql(f"DELETE FROM column_statistics WHERE {_ALL_OF} "
                      'AND (%s::text[] IS NULL OR "column" = ANY(%s::text[])) AND (%s::text IS NULL OR engine = %s) RETURNING 1',
                      (table.id, partition, columns, columns, engine, engine)))


def delete_column_statistics(pg: PgTx, table: Table, columns: Sequence[str], *, partitions: bool) -> None:
    """Remove what is known of changed columns, of the table and (``partitions``) of all its partitions."""
    pg.sql('DELETE FROM column_statistics WHERE table_id = %s AND "column" = ANY(%s) AND (%s OR partition = %s)',
           (table.id, list(columns), partitions, ""))


def delete_partition_statistics(pg: PgTx, table: Table, partitions: Sequence[str]) -> None:
    """Remove what is known of partitions, by canonical name."""
    pg.sql("DELETE FROM column_statistics WHERE table_id = %s AND partition = ANY(%s)", (table.id, list(partitions)))


def rename_partition_statistics(pg: PgTx, table: Table, old: str, new: str) -> None:
    """Let a partition's statistics follow its new canonical name."""
    pg.sql(f"UPDATE column_statistics SET partition = %s WHERE {_ALL_OF}", (new, table.id, old))
