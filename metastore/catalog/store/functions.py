"""Rows of ``functions``."""

from psycopg2.errors import ForeignKeyViolation, UniqueViolation

from metastore.catalog.model import Function
from metastore.catalog.store.jsonb import to_json
from metastore.db.engine import PgTx, Row
from metastore.errors import InvalidObjectError, MetaError, NoSuchObjectError
from metastore.ids import DatabaseName, TableName

_COLUMNS = "catalog, db, name, class_name, owner, owner_type, type, create_time, resource_uris"
SELECT_FUNCTION = f"SELECT {_COLUMNS} FROM functions WHERE catalog = %s AND db = %s AND name = %s"
SELECT_FUNCTIONS = f"SELECT {_COLUMNS} FROM functions WHERE catalog = %s ORDER BY db, name"
SELECT_FUNCTION_NAMES = (
    "SELECT name FROM functions WHERE catalog = %s AND db = %s AND (%s::text IS NULL OR name ~ %s) ORDER BY name"
)


def function_of(row: Row) -> Function:
    """Return the function that a row of ``SELECT_FUNCTION`` holds."""
    catalog, db, name, *rest = row
    return Function(TableName(catalog, db, name), *rest)


def insert_function(pg: PgTx, function: Function) -> bool:
    """Add a function; False if the name is taken. Raises: NoSuchObjectError without the database."""
    try:
        return bool(
            pg.sql(
                f"INSERT INTO functions ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) "
                "ON CONFLICT DO NOTHING RETURNING 1",
                (
                    *function.name,
                    function.class_name,
                    function.owner,
                    function.owner_type,
                    function.type,
                    function.create_time,
                    to_json(function.resource_uris),
                ),
            )
        )
    except ForeignKeyViolation as error:
        raise NoSuchObjectError(f"Database {function.name.database} does not exist") from error


def update_function(pg: PgTx, name: TableName, function: Function) -> bool:
    """Overwrite the fields that may change, the name included; False if there is no such function."""
    try:
        return bool(
            pg.sql(
                "UPDATE functions SET db = %s, name = %s, class_name = %s, owner = %s, owner_type = %s, type = %s "
                "WHERE catalog = %s AND db = %s AND name = %s RETURNING 1",
                (
                    function.name.db,
                    function.name.table,
                    function.class_name,
                    function.owner,
                    function.owner_type,
                    function.type,
                    *name,
                ),
            )
        )
    except UniqueViolation as error:
        raise MetaError(f"Function {function.name} already exists") from error
    except ForeignKeyViolation as error:
        raise InvalidObjectError(f"Database {function.name.database} does not exist") from error


def delete_function(pg: PgTx, name: TableName) -> bool:
    """Remove a function; False if there is none."""
    return bool(pg.sql("DELETE FROM functions WHERE catalog = %s AND db = %s AND name = %s RETURNING 1", name))


def delete_functions_of(pg: PgTx, database: DatabaseName) -> list[Function]:
    """Remove every function of a database; return them."""
    rows = pg.sql(f"DELETE FROM functions WHERE catalog = %s AND db = %s RETURNING {_COLUMNS}", database)
    return [function_of(row) for row in rows]


def count_functions_of(pg: PgTx, database: DatabaseName) -> int:
    """Count the functions of a database."""
    [(count,)] = pg.sql("SELECT count(*) FROM functions WHERE catalog = %s AND db = %s", database)
    return int(count)
