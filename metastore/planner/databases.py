"""Databases, and names of transactional tables: for catalogs of engines that have no other client of the metastore."""

from metastore.errors import InvalidInputError, InvalidOperationError
from metastore.planner.call import Answer, PlannerCall

_TRANSACTIONAL = 'hive_filter_field_params__transactional = "true"'
_ALL = -1


def databases(call: PlannerCall) -> Answer:
    """Return the names of all databases."""
    return {"databases": list(call.client.get_all_databases())}


def database(call: PlannerCall) -> Answer:
    """Return a database. Raises: NoSuchObjectError."""
    found = call.client.get_database(_name(call))
    return {
        "location": found.locationUri or "",
        "comment": found.description or "",
        "owner": found.ownerName or "",
        "properties": found.parameters or {},
    }


def transactional_tables(call: PlannerCall) -> Answer:
    """Return the names of a database's transactional tables. Raises: UnknownDatabaseError."""
    name = _name(call)
    call.client.get_database(name)
    return {"tables": list(call.client.get_table_names_by_filter(name, _TRANSACTIONAL, _ALL))}


def create_database(call: PlannerCall) -> Answer:
    """Run CREATE DATABASE; without a location in the metastore's usual place. Raises: AlreadyExistsError."""
    body, types = call.body, call.client.types
    made = types.Database(
        name=_name(call),
        description=body.text("comment", ""),
        locationUri=body.text("location") if body.has("location") else None,
        parameters={key: str(value) for key, value in body.body("properties").fields.items()},
        ownerName=call.user or body.text("user", call.client.user),
        ownerType=types.PrincipalType.USER,
    )
    call.client.create_database(made)
    return {}


def drop_database(call: PlannerCall) -> Answer:
    """Run DROP DATABASE with its directory; ``cascade``: with its transactional tables.

    Raises: InvalidOperationError if it has tables, or other tables, which the caller has not seen.
    """
    name, cascade = _name(call), call.body.flag("cascade")
    others = set(call.client.get_all_tables(name)) if cascade else set()
    if others:
        others -= set(call.client.get_table_names_by_filter(name, _TRANSACTIONAL, _ALL))
    if others:
        raise InvalidOperationError(
            f"Database {name} has tables and views that are not transactional: {', '.join(sorted(others))}. DROP "
            "DATABASE CASCADE would drop them, with their files, though this catalog does not show them. Drop them by "
            "their own catalog first."
        )
    call.client.drop_database(name, True, cascade)  # noqa: FBT003 - Thrift's
    return {}


def _name(call: PlannerCall) -> str:
    name = call.body.text("db")
    if not name:
        raise InvalidInputError("db must not be empty.")
    return name.lower()
