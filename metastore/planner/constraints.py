"""ADD and DROP CONSTRAINT of ALTER TABLE for transactional tables.

Rule: other readers may read meanwhile, as Spark itself does: it looks for rows that break a CHECK and then adds it.
"""

from metastore.client.constraints import add_constraints, drop_constraint
from metastore.client.lock_plan import Kind
from metastore.errors import InvalidOperationError
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.ddl_locks import locked
from metastore.planner.table_declarations import declaration
from metastore.planner.tables import acid_table


def constrain(call: PlannerCall) -> Answer:
    """Remove and add constraints. Raises: InvalidOperationError for one that the metastore refuses."""
    table = acid_table(call.client, call.body.db_and_table())
    with locked(call, table, Kind.SOFT_DELETE):
        for dropped in call.body.bodies("dropped"):
            try:
                drop_constraint(call.client, table.name, dropped.text("name"))
            except InvalidOperationError:
                if not dropped.flag("if_exists"):
                    raise
        add_constraints(call.client, table.name, [declaration(added) for added in call.body.bodies("added")])
    return {}
