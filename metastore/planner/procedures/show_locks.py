"""The procedure CALL show_locks: it lists locks that are held, and requests that wait."""

from metastore.client.shown import lock_rows
from metastore.planner.body import Body
from metastore.planner.call import PlannerCall
from metastore.planner.procedures.declaration import (
    INSTANT,
    NUMBER,
    ONLY_TABLE,
    TEXT,
    Parameter,
    Procedure,
    Rows,
    existing_table,
    is_wanted,
)


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    """List locks."""
    request = call.client.types.ShowLocksRequest(txnid=arguments.number("txn_id") if arguments.has("txn_id") else None)
    if arguments.has("table"):
        name = existing_table(call, arguments)
        request.dbname, request.tablename = name.db, name.table
    return [row for row in lock_rows(call.client, request) if is_wanted(arguments, "state", row["state"])]


PROCEDURE = Procedure(
    "Locks that are held and requests that wait, with what they wait for",
    (
        ONLY_TABLE,
        Parameter("state", TEXT, "acquired or waiting"),
        Parameter("txn_id", NUMBER, "only of this transaction; 0: of none"),
    ),
    {
        "lock_id": TEXT,
        "db": TEXT,
        "table": TEXT,
        "partition": TEXT,
        "state": TEXT,
        "blocked_by": TEXT,
        "type": TEXT,
        "txn_id": NUMBER,
        "last_heartbeat_at": INSTANT,
        "acquired_at": INSTANT,
        "user": TEXT,
        "host": TEXT,
        "agent_info": TEXT,
    },
    _rows,
)
