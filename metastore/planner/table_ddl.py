"""Definitions of transactional tables: CREATE, RENAME and DROP by the rules for such tables.

Rule: a change of an existing table holds it exclusively.
"""

from metastore.client import tables
from metastore.client.declared_constraints import arguments
from metastore.errors import AlreadyExistsError
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.ddl_locks import alone
from metastore.planner.table_declarations import constraints, defined, properties
from metastore.planner.tables import acid_table


def create(call: PlannerCall) -> Answer:
    """Run CREATE TABLE; ``created``: false if ``if_not_exists`` has found a table."""
    body, name = call.body, call.body.db_and_table()
    table = defined(call, body)
    try:
        tables.create_table(call.client, table, *arguments(call.client.types, name, constraints(body)))
    except AlreadyExistsError:
        if not body.flag("if_not_exists"):
            raise
        return {"created": False}
    return {"created": True}


def create_like(call: PlannerCall) -> Answer:
    """Run CREATE TABLE ... LIKE a transactional table: its columns, storage and kind, no rows, no constraints."""
    body, source = call.body, acid_table(call.client, call.body.table("like")).name
    tables.create_table_like(
        call.client,
        body.db_and_table(),
        call.client.get_table(source.db, source.table),
        call.user or body.text("user", call.client.user),
        body.text("location") if body.has("location") else None,
        properties(body),
    )
    return {}


def drop(call: PlannerCall) -> Answer:
    """Run DROP TABLE with its files; ``purge``: the files do not go to a trash."""
    table = acid_table(call.client, call.body.db_and_table())
    with alone(call, table):
        context = call.client.types.EnvironmentContext({"ifPurge": "true"} if call.body.flag("purge") else {})
        call.client.drop_table_with_environment_context(table.name.db, table.name.table, True, context)  # noqa: FBT003
    return {}


def rename(call: PlannerCall) -> Answer:
    """Run ALTER TABLE ... RENAME TO."""
    table = acid_table(call.client, call.body.db_and_table())
    with alone(call, table):
        thrift_table = call.client.get_table(table.name.db, table.name.table)
        thrift_table.dbName, thrift_table.tableName = (
            call.body.text("to_db").lower(),
            call.body.text("to_table").lower(),
        )
        call.client.alter_table(table.name.db, table.name.table, thrift_table)
    return {}
