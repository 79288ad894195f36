"""Rows of ``catalogs`` and ``databases``.

A database's row is locked FOR UPDATE to drop it; creating a table or function in it takes the foreign key's share of
the same row, so that nothing is created in a database that goes away.
"""

from psycopg2.errors import ForeignKeyViolation

from metastore.catalog.model import Catalog, Database
from metastore.catalog.store.jsonb import to_json
from metastore.db.engine import PgTx, Row
from metastore.errors import InvalidObjectError, NoSuchObjectError
from metastore.ids import DatabaseName, TableName

_COLUMNS = (
    "catalog, name, location, description, managed_location, parameters, owner, owner_type, create_time, connector, "
    "remote_name"
)
SELECT_CLUSTER = "SELECT system_identifier::text, current_database()::text FROM pg_control_system()"
SELECT_DATABASE = f"SELECT {_COLUMNS} FROM databases WHERE catalog = %s AND name = %s"
# This selects the place of a new database, and whether its name is taken.
SELECT_ROOM_FOR_DATABASE = (
    "SELECT location, EXISTS (SELECT 1 FROM databases WHERE catalog = %s AND name = %s) FROM catalogs WHERE name = %s"
)
SELECT_DATABASE_NAMES = (
    "SELECT name FROM databases WHERE catalog = %s AND (%s::text IS NULL OR name ~ %s) ORDER BY name"
)
SELECT_CATALOG = "SELECT name, location, description, create_time, given_location FROM catalogs WHERE name = %s"
SELECT_CATALOG_NAMES = "SELECT name FROM catalogs ORDER BY name"


def database_of(row: Row) -> Database:
    """Return the database that a row of ``SELECT_DATABASE`` holds."""
    catalog, name, *rest = row
    return Database(DatabaseName(catalog, name), *rest)


def select_database(pg: PgTx, name: DatabaseName) -> Database | None:
    """Return the database as this PostgreSQL transaction sees it."""
    rows = pg.sql(SELECT_DATABASE, name)
    return database_of(rows[0]) if rows else None


def select_room_for_table(pg: PgTx, table: TableName) -> tuple[Database | None, bool]:
    """Return the database that a new table is to be in, and whether the table's name is taken."""
    rows = pg.sql(
        f"SELECT EXISTS (SELECT FROM tables WHERE catalog = %s AND db = %s AND name = %s), {_COLUMNS} FROM databases "
        "WHERE catalog = %s AND name = %s",
        (*table, *table.database),
    )
    if not rows:
        return None, False
    is_taken, *columns = rows[0]
    return database_of(tuple(columns)), is_taken


def select_database_names(pg: PgTx, catalog: str) -> list[str]:
    """Return the databases of a catalog, sorted."""
    return [name for (name,) in pg.sql(SELECT_DATABASE_NAMES, (catalog, None, None))]


def lock_database(pg: PgTx, name: DatabaseName) -> Database | None:
    """Return the database, held against every change and against new objects in it until COMMIT."""
    rows = pg.sql(f"{SELECT_DATABASE} FOR UPDATE", name)
    return database_of(rows[0]) if rows else None


def insert_database(pg: PgTx, database: Database) -> bool:
    """Add a database; False if the name is taken. Raises: InvalidObjectError without the catalog."""
    try:
        return bool(
            pg.sql(
                f"INSERT INTO databases ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) "
                "ON CONFLICT (catalog, name) DO NOTHING RETURNING id",
                (
                    *database.name,
                    database.location,
                    database.description,
                    database.managed_location,
                    to_json(database.parameters),
                    database.owner,
                    database.owner_type,
                    database.create_time,
                    database.connector,
                    database.remote_name,
                ),
            )
        )
    except ForeignKeyViolation as error:
        raise InvalidObjectError(f"No such catalog {database.name.catalog}") from error


def update_database(pg: PgTx, database: Database) -> None:
    """Overwrite the fields of a locked database that may change."""
    pg.sql(
        "UPDATE databases SET location = %s, description = %s, managed_location = %s, parameters = %s, owner = %s, "
        "owner_type = %s WHERE catalog = %s AND name = %s",
        (
            database.location,
            database.description,
            database.managed_location,
            to_json(database.parameters),
            database.owner,
            database.owner_type,
            *database.name,
        ),
    )


def delete_database(pg: PgTx, name: DatabaseName) -> None:
    """Remove a database that holds nothing any more."""
    pg.sql("DELETE FROM databases WHERE catalog = %s AND name = %s", name)


def insert_catalog(pg: PgTx, catalog: Catalog) -> bool:
    """Add a catalog; False if the name is taken."""
    return bool(
        pg.sql(
            "INSERT INTO catalogs (name, location, description, create_time, given_location) "
            "VALUES (%s, %s, %s, %s, %s) ON CONFLICT (name) DO NOTHING RETURNING name",
            (catalog.name, catalog.location, catalog.description, catalog.create_time, catalog.given_location),
        )
    )


def lock_catalog(pg: PgTx, name: str) -> Catalog:
    """Return the catalog, held against every change. Raises: NoSuchObjectError."""
    rows = pg.sql(f"{SELECT_CATALOG} FOR UPDATE", (name,))
    if not rows:
        raise NoSuchObjectError(f"No catalog {name}")
    return Catalog(*rows[0])


def update_catalog(pg: PgTx, catalog: Catalog) -> None:
    """Overwrite a catalog's location and description."""
    pg.sql(
        "UPDATE catalogs SET location = %s, description = %s, given_location = %s WHERE name = %s",
        (catalog.location, catalog.description, catalog.given_location, catalog.name),
    )


def delete_catalog(pg: PgTx, name: str) -> None:
    """Remove a catalog that holds no database any more."""
    pg.sql("DELETE FROM catalogs WHERE name = %s", (name,))
