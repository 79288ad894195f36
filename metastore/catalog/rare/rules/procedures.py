"""Stored procedures and packages of HPL/SQL: adding one replaces it, dropping an absent one is no error.

Their names are as sent; those of their databases are lower case. Source: CAT-R2.
"""

from collections.abc import Callable

from metastore.catalog.rare.rules.objects import (
    DATABASE,
    Json,
    Key,
    KeyOf,
    Kind,
    Method,
    Place,
    Work,
    all_of,
    catalog_of,
    drop,
    get,
    name_of,
    part_of,
    put,
    read,
)
from metastore.errors import MetaError

PROCEDURE = Kind("stored procedure", in_database=True)
PACKAGE = Kind("package", in_database=True)


def _key(field: str) -> KeyOf:
    """Return a function that builds the key from a request. ``field``: the field with the name."""

    def key_of(request: Json) -> Key:
        database = name_of(request.get("dbName"), "database name")
        return catalog_of(request.get("catName")), database, part_of(request, field)

    return key_of


def _body(name: str, *required: str) -> Callable[[Work], Json]:
    """Return a function that builds the stored object. ``name``: the field with its name."""

    def body_of(work: Work) -> Json:
        catalog, db, _ = _key(name)(work.request)
        for field in required:
            part_of(work.request, field)
        return {**work.request, "catName": catalog, "dbName": db}

    return body_of


def _procedure(work: Work) -> Json:
    """Return what is stored of a procedure. Raises: MetaError in a database of type REMOTE; packages may be there."""
    body = _body("name", "ownerName", "source")(work)
    database = work.found.get(_database_of(work.request)[0], {})
    if database.get("connector") is not None:
        raise MetaError(f"Create stored procedure in REMOTE database {body['dbName']} is not allowed")
    return body


def _database_of(request: Json) -> list[Place]:
    return [Place(DATABASE, _key("name")(request)[:2])]


def _names(kind: Kind) -> Method:
    """Declare a method that lists the names in a database, or in a whole catalog."""

    def scope(request: Json) -> list[Place]:
        db = request.get("dbName")
        database = () if db is None else (name_of(db, "database name"),)
        return [Place(kind, (catalog_of(request.get("catName")), *database))]

    return read(scope, lambda work: sorted(name for _, _, name in all_of(kind, work.found)))


METHODS = {
    "create_stored_procedure": put(PROCEDURE, _key("name"), _procedure, _database_of),
    "get_stored_procedure": get(PROCEDURE, _key("procName")),
    "drop_stored_procedure": drop(PROCEDURE, _key("procName"), if_exists=True),
    "get_all_stored_procedures": _names(PROCEDURE),
    "add_package": put(PACKAGE, _key("packageName"), _body("packageName", "ownerName", "header", "body")),
    "find_package": get(PACKAGE, _key("packageName")),
    "drop_package": drop(PACKAGE, _key("packageName"), if_exists=True),
    "get_all_packages": _names(PACKAGE),
}
