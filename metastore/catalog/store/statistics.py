"""Rows of ``column_statistics``: a row for each table or partition, column and engine."""

from collections.abc import Sequence
from typing import Any

from metastore.catalog.model import ColumnStatistics, Parameters, StatisticsOrigin, Table
from metastore.catalog.store.jsonb import to_json
from metastore.db.engine import PgTx

_OF_TABLE = (
    "FROM tables AS t LEFT JOIN column_statistics AS s ON s.table_id = t.id "
    'AND s.partition = ANY(%s) AND s."column" = ANY(%s) AND s.engine = %s '
    "WHERE t.catalog = %s AND t.db = %s AND t.name = %s"
)
_COLUMNS = 's."column", s.type, s.data, s.partition, s.engine, s.last_analyzed, s.write_id, s.is_whole'
_TABLE = "is_transactional(t.parameters), t.partition_keys <> '[]'"
# There is at least one row if the table exists.
SELECT_STATISTICS = f'SELECT {_TABLE}, {_COLUMNS} {_OF_TABLE} ORDER BY s.partition, s."column"'
# This has a row for each column: its type, partitions and data, in the order of partitions. Rows come to the aggregates
# in the order of the groups, so that PostgreSQL does not sort them again without the partitions.
SELECT_BY_COLUMN = (
    'SELECT bool_or(s.transactional), s."column", (array_agg(s.type))[count(*)], array_agg(s.partition), '
    "json_agg(s.data), array_agg(s.write_id), array_agg(s.is_whole) "
    f"FROM (SELECT is_transactional(t.parameters) AS transactional, {_COLUMNS} {_OF_TABLE} "
    'ORDER BY s."column", s.partition) AS s GROUP BY s."column"'
)
_ALL_OF = "table_id = %s AND partition = %s"


def statistics_of(row: Sequence[Any]) -> ColumnStatistics:
    """Return the statistics of a row of ``_COLUMNS``."""
    column, kind, data, partition, engine, analyzed, write_id, is_whole = row
    return ColumnStatistics(column, kind, data, partition, engine, analyzed, StatisticsOrigin(write_id, is_whole))


def select_statistics(
    pg: PgTx, table: Table, partitions: Sequence[str], columns: Sequence[str]
) -> list[ColumnStatistics]:
    """Return the stored statistics of these partitions ("" for the table itself) and columns, by any engine."""
    rows = pg.sql(
        f"SELECT {_COLUMNS} FROM column_statistics AS s WHERE table_id = %s AND partition = ANY(%s) "
        'AND "column" = ANY(%s)',
        (table.id, list(partitions), list(columns)),
    )
    return [statistics_of(row) for row in rows]


def select_statistics_of(pg: PgTx, table: Table, partition: str, engine: str) -> list[ColumnStatistics]:
    """Return an engine's stored statistics of a table ("") or a partition, for all columns."""
    rows = pg.sql(
        f'SELECT {_COLUMNS} FROM column_statistics AS s WHERE {_ALL_OF} AND engine = %s ORDER BY "column"',
        (table.id, partition, engine),
    )
    return [statistics_of(row) for row in rows]


def lock_parameters(pg: PgTx, table: Table, partitions: Sequence[str]) -> dict[str, Parameters]:
    """Return the parameters of the table ("") and of existing partitions, locked until COMMIT."""
    parameters = {"": table.parameters} if "" in partitions else {}
    parameters |= dict(
        pg.sql(
            "SELECT name, parameters FROM partitions WHERE table_id = %s AND name = ANY(%s) ORDER BY name FOR UPDATE",
            (table.id, list(partitions)),
        )
    )
    return parameters


def update_parameters(pg: PgTx, table: Table, partition: str, parameters: Parameters) -> None:
    """Replace the parameters of the table ("") or of a partition."""
    if partition:
        pg.sql(
            "UPDATE partitions SET parameters = %s WHERE table_id = %s AND name = %s",
            (to_json(parameters), table.id, partition),
        )
    else:
        pg.sql("UPDATE tables SET parameters = %s WHERE id = %s", (to_json(parameters), table.id))


def upsert_statistics(pg: PgTx, table: Table, statistics: Sequence[ColumnStatistics]) -> None:
    """Store statistics, replacing those that are there."""
    for statistic in statistics:
        pg.sql(
            'INSERT INTO column_statistics (table_id, partition, "column", engine, type, data, last_analyzed, '
            "write_id, is_whole) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) "
            'ON CONFLICT (table_id, partition, "column", engine) DO UPDATE '
            "SET type = excluded.type, data = excluded.data, last_analyzed = excluded.last_analyzed, "
            "write_id = excluded.write_id, is_whole = excluded.is_whole",
            (
                table.id,
                statistic.partition,
                statistic.column,
                statistic.engine,
                statistic.type,
                to_json(statistic.data),
                statistic.last_analyzed,
                *statistic.origin,
            ),
        )


def update_not_whole(pg: PgTx, table: Table, partitions: Sequence[str]) -> None:
    """Mark statistics of a table ("") or partitions as estimates, after a change that has no write id."""
    pg.sql(
        "UPDATE column_statistics SET is_whole = false WHERE table_id = %s AND partition = ANY(%s)",
        (table.id, list(partitions)),
    )


def delete_statistics(
    pg: PgTx, table: Table, partition: str, columns: Sequence[str] | None, engine: str | None
) -> list[str]:
    """Remove statistics of some columns (None: all) and an engine (None: all); return the columns that had any."""
    wanted = None if columns is None else list(columns)
    rows = pg.sql(
        f"DELETE FROM column_statistics WHERE {_ALL_OF} "
        'AND (%s::text[] IS NULL OR "column" = ANY(%s::text[])) AND (%s::text IS NULL OR engine = %s) '
        'RETURNING "column"',
        (table.id, partition, wanted, wanted, engine, engine),
    )
    return [column for (column,) in rows]


def delete_column_statistics(pg: PgTx, table: Table, columns: Sequence[str], *, partitions: bool) -> None:
    """Remove statistics of changed columns, of the table and (``partitions``) of all its partitions."""
    pg.sql(
        'DELETE FROM column_statistics WHERE table_id = %s AND "column" = ANY(%s) AND (%s OR partition = %s)',
        (table.id, list(columns), partitions, ""),
    )
