"""ALTER TABLE of transactional tables that adds and drops constraints, also NOT NULL and DEFAULT of a column.

Rule: others may read meanwhile, as Spark itself does, which looks for rows that break a CHECK and then adds it. What
replaces a constraint is added before the old one goes, so that a refused one leaves the table as it was.
"""

from collections.abc import Sequence

from metastore.catalog.model import ConstraintKind
from metastore.client.constraints import add_constraints, column_constraints, drop_constraint
from metastore.client.lock_plan import Kind
from metastore.errors import InvalidOperationError
from metastore.ids import TableName
from metastore.planner.body import Body
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.ddl_locks import locked
from metastore.planner.table_declarations import declaration
from metastore.planner.tables import acid_table


def constrain(call: PlannerCall) -> Answer:
    """Remove and add constraints. Raises: InvalidOperationError for one that the metastore refuses."""
    table = acid_table(call.client, call.body.db_and_table())
    with locked(call, table, Kind.SOFT_DELETE):
        dropped = [(body, _names(call, table.name, body)) for body in call.body.bodies("dropped")]
        add_constraints(call.client, table.name, [declaration(added) for added in call.body.bodies("added")])
        for body, names in dropped:
            for name in names:
                try:
                    drop_constraint(call.client, table.name, name)
                except InvalidOperationError:
                    if not body.flag("if_exists"):
                        raise
    return {}


def _names(call: PlannerCall, table: TableName, dropped: Body) -> Sequence[str]:
    """Return the name of a constraint, or the names of all NOT NULL or DEFAULT of a column."""
    if dropped.has("name"):
        return [dropped.text("name")]
    return column_constraints(call.client, table, dropped.choice("kind", ConstraintKind), dropped.text("column"))
