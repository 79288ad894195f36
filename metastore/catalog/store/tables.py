"""Rows of ``tables``, and the set-based changes that a table's alteration makes to its partitions.

Every call that alters or drops a table locks its row FOR UPDATE (Iceberg's compare-and-set rests on this); readers
never wait. Reads by name use the unique index on (catalog, db, name).
"""

from collections.abc import Sequence
from typing import Any

from psycopg2.errors import ForeignKeyViolation, UniqueViolation

from metastore.catalog.model import Json, Table
from metastore.catalog.rules import descriptors
from metastore.catalog.store.jsonb import to_json
from metastore.db.engine import PgTx, Row
from metastore.errors import InvalidObjectError, InvalidOperationError
from metastore.ids import DatabaseName, TableName
from metastore.places import store as places

COLUMNS = (
    "catalog, db, name, type, owner, owner_type, create_time, last_access_time, retention, location, sd, "
    "partition_keys, parameters, view_original_text, view_expanded_text, rewrite_enabled, creation_metadata, "
    "write_id, id"
)
SELECT_TABLE = f"SELECT {COLUMNS} FROM tables WHERE catalog = %s AND db = %s AND name = %s"
SELECT_MATCHING_TABLES = f"SELECT {COLUMNS} FROM tables WHERE catalog = %s AND db = %s AND name ~ %s ORDER BY name"
SELECT_KINDS = (
    "SELECT name, type, parameters, coalesce((sd ->> 'numBuckets')::int, 0) FROM tables "
    "WHERE catalog = %s AND db = %s AND (%s::text IS NULL OR name ~ %s) ORDER BY name LIMIT %s"
)
SELECT_REWRITABLE_VIEWS = (
    f"SELECT {COLUMNS} FROM tables WHERE catalog = %s AND type = 'MATERIALIZED_VIEW' "
    "AND rewrite_enabled ORDER BY db, name"
)
_SELECT_TABLE_AROUND = (
    f"SELECT {COLUMNS} FROM tables WHERE id = (SELECT used.id FROM unnest(%s::text[]) AS s(place), LATERAL ("
    f"SELECT id FROM tables WHERE {places.at('location', 's.place')} UNION ALL "
    f"SELECT table_id FROM partitions WHERE {places.at('location', 's.place')}) AS used "
    "ORDER BY length(s.place) DESC LIMIT 1)"
)

SELECT_TRANSACTIONAL_AT = (
    "WITH s AS (SELECT %s::text[] AS around, %s::text[] AS places, %s::text AS catalog) "
    "(SELECT t.db, t.name, t.parameters FROM s, unnest(s.around) AS a(place), tables AS t "
    f"WHERE {places.at('t.location', 'a.place')} AND t.catalog = s.catalog) UNION ALL "
    "(SELECT t.db, t.name, t.parameters FROM s, unnest(s.places) AS b(place), tables AS t "
    f"WHERE {places.below('t.location', 'b.place')} "
    "AND t.catalog = s.catalog AND is_transactional(t.parameters) LIMIT 1)"
)


def table_of(row: Row) -> Table:
    """Return the table that a row of ``SELECT_TABLE`` holds."""
    (
        catalog,
        db,
        name,
        kind,
        owner,
        owner_type,
        created,
        accessed,
        retention,
        location,
        sd,
        keys,
        parameters,
        original,
        expanded,
        rewrite,
        creation,
        write_id,
        row_id,
    ) = row
    return Table(
        TableName(catalog, db, name),
        descriptors.with_location(sd, location),
        kind,
        owner,
        owner_type,
        created,
        accessed,
        retention,
        keys,
        parameters,
        original,
        expanded,
        rewrite,
        creation,
        write_id,
        row_id,
    )


def select_table(pg: PgTx, name: TableName) -> Table | None:
    """Return the table as this PostgreSQL transaction sees it."""
    rows = pg.sql(SELECT_TABLE, name)
    return table_of(rows[0]) if rows else None


def select_table_around(pg: PgTx, directories: Sequence[str]) -> Table | None:
    """Return the table that has one of these directories, or a partition there; if several do, the innermost."""
    rows = pg.sql(_SELECT_TABLE_AROUND, (list(directories),))
    return table_of(rows[0]) if rows else None


def lock_table(pg: PgTx, name: TableName, *, share: bool = False) -> Table | None:
    """Return the table, locked until COMMIT against every change.

    ``share``: only against alteration and removal.
    """
    rows = pg.sql(f"{SELECT_TABLE} FOR {'SHARE' if share else 'UPDATE'}", name)
    return table_of(rows[0]) if rows else None


def lock_tables_of(pg: PgTx, database: DatabaseName) -> list[Table]:
    """Return every table of a database, each locked against every change."""
    return [
        table_of(row)
        for row in pg.sql(
            f"SELECT {COLUMNS} FROM tables WHERE catalog = %s AND db = %s ORDER BY name FOR UPDATE", database
        )
    ]


def count_tables_of(pg: PgTx, database: DatabaseName) -> int:
    """Count the tables and views of a database."""
    [(count,)] = pg.sql("SELECT count(*) FROM tables WHERE catalog = %s AND db = %s", database)
    return int(count)


def insert_table(pg: PgTx, table: Table) -> int | None:
    """Add a table and return its id; None if the name is taken. Raises: InvalidObjectError without the database."""
    values = _values(table)
    try:
        rows = pg.sql(
            f"INSERT INTO tables ({', '.join(values)}, create_time, creation_metadata) "
            f"VALUES ({', '.join(['%s'] * len(values))}, %s, %s) "
            "ON CONFLICT (catalog, db, name) DO NOTHING RETURNING id",
            (
                *values.values(),
                table.create_time,
                None if table.creation_metadata is None else to_json(table.creation_metadata),
            ),
        )
        return rows[0][0] if rows else None
    except ForeignKeyViolation as error:
        raise InvalidObjectError(f"Database {table.name.database} does not exist") from error


def update_table(pg: PgTx, table: Table) -> None:
    """Overwrite a table that is locked, its name included.

    Raises: InvalidOperationError if the new name is not possible.
    """
    values = _values(table)
    assignments = ", ".join(f"{column} = %s" for column in values)
    try:
        pg.sql(f"UPDATE tables SET {assignments} WHERE id = %s", (*values.values(), table.id))
    except UniqueViolation as error:
        raise InvalidOperationError(f"new table {table.name} already exists") from error
    except ForeignKeyViolation as error:
        raise InvalidOperationError(
            f"Unable to rename to {table.name}: Database {table.name.db} doesn't exist."
        ) from error


def is_taken(pg: PgTx, name: TableName) -> bool:
    """Return True if a table or view has the name."""
    return bool(pg.sql("SELECT 1 FROM tables WHERE catalog = %s AND db = %s AND name = %s", name))


def delete_table(pg: PgTx, table: Table) -> None:
    """Remove a table with its partitions and statistics."""
    pg.sql("DELETE FROM tables WHERE id = %s", (table.id,))


def select_partition_locations(pg: PgTx, table: Table, *, outside: bool = False) -> list[str]:
    """Return the locations of the table's partitions; ``outside``: only those that are not below the table."""
    rows = pg.sql(
        "SELECT location FROM partitions WHERE table_id = %s AND location IS NOT NULL "
        "AND NOT (%s AND starts_with(location, %s)) ORDER BY name",
        (table.id, outside, f"{table.location}/"),
    )
    return [location for (location,) in rows]


def update_partition_locations(pg: PgTx, table: Table, old_root: str, new_root: str) -> None:
    """Follow a table's directory: partitions below the old directory are now below the new."""
    pg.sql(
        "UPDATE partitions SET location = %s || substr(location, %s) WHERE table_id = %s AND starts_with(location, %s)",
        (new_root, len(old_root) + 1, table.id, f"{old_root}/"),
    )


def select_partition_descriptors(pg: PgTx, table: Table) -> list[tuple[str, Json]]:
    """Return digest and descriptor, without location, of all partitions of the table."""
    return [
        (digest, sd)
        for digest, sd in pg.sql("SELECT digest, sd FROM partition_descriptors WHERE table_id = %s", (table.id,))
    ]


def update_partition_columns(pg: PgTx, table: Table, columns: list[Json]) -> None:
    """Give every partition the same columns (CASCADE): a new descriptor for each distinct descriptor."""
    for digest, sd in select_partition_descriptors(pg, table):
        changed = {**sd, "cols": columns}
        new_digest = descriptors.digest(changed)
        if new_digest == digest:
            continue
        pg.sql(
            "INSERT INTO partition_descriptors (table_id, digest, sd) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING; "
            "UPDATE partitions SET digest = %s WHERE table_id = %s AND digest = %s; "
            "DELETE FROM partition_descriptors WHERE table_id = %s AND digest = %s",
            (table.id, new_digest, to_json(changed), new_digest, table.id, digest, table.id, digest),
        )


def select_materialized_views_on(pg: PgTx, tables: Sequence[TableName]) -> list[tuple[TableName, str]]:
    """Return pairs of a materialized view and the name of a table of ``tables`` that feeds it."""
    rows = pg.sql(
        "SELECT t.catalog, t.db, t.name, used FROM tables t, "
        "jsonb_array_elements_text(t.creation_metadata -> 'tablesUsed') AS used "
        "WHERE t.type = 'MATERIALIZED_VIEW' AND t.creation_metadata IS NOT NULL AND lower(used) = ANY(%s) "
        "ORDER BY 1, 2, 3",
        ([f"{name.db}.{name.table}" for name in tables],),
    )
    return [(TableName(catalog, db, name), used) for catalog, db, name, used in rows]


def _values(table: Table) -> dict[str, Any]:
    """Return the values by column that both INSERT and UPDATE write."""
    catalog, db, name = table.name
    location, sd = descriptors.split_location(table.sd)
    return {
        "catalog": catalog,
        "db": db,
        "name": name,
        "type": table.type,
        "owner": table.owner,
        "owner_type": table.owner_type,
        "last_access_time": table.last_access_time,
        "retention": table.retention,
        "location": location,
        "sd": to_json(sd),
        "partition_keys": to_json(table.partition_keys),
        "parameters": to_json(table.parameters),
        "view_original_text": table.view_original_text,
        "view_expanded_text": table.view_expanded_text,
        "rewrite_enabled": table.rewrite_enabled,
        "write_id": table.write_id,
    }


def truncate_statistics(
    pg: PgTx, table: Table, partitions: Sequence[str] | None, counters: Sequence[str]
) -> dict[str, str]:
    """Set counters to 0 and forget column statistics, of the table or of named partitions.

    Return their locations by name.

    The name of the table itself is "".
    """
    zeroed = to_json(dict.fromkeys(counters, "0"))
    # Only existing counters become 0: the second object is restricted to the keys of the first.
    reset = (
        "parameters = (parameters - 'COLUMN_STATS_ACCURATE') || coalesce((SELECT jsonb_object_agg(key, value) "
        "FROM jsonb_each(%s::jsonb) WHERE parameters ? key), '{}')"
    )
    if not table.partition_keys:
        if partitions is None:
            pg.sql(
                f"UPDATE tables SET {reset} WHERE id = %s; DELETE FROM column_statistics WHERE table_id = %s",
                (zeroed, table.id, table.id),
            )
        return {"": table.location} if partitions is None and table.location else {}
    names = None if partitions is None else list(partitions)
    pg.sql(
        "DELETE FROM column_statistics WHERE table_id = %s AND (%s::text[] IS NULL OR partition = ANY(%s::text[]))",
        (table.id, names, names),
    )
    rows = pg.sql(
        f"UPDATE partitions SET {reset} WHERE table_id = %s "
        "AND (%s::text[] IS NULL OR name = ANY(%s::text[])) RETURNING name, location",
        (zeroed, table.id, names, names),
    )
    return {name: location for name, location in rows if location is not None}
