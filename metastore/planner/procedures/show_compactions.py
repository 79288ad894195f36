"""The procedure CALL show_compactions: it lists compactions that wait or run, and the last that ended."""

from metastore.client.shown import compaction_rows
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
    """List compactions."""
    request = call.client.types.ShowCompactRequest(limit=arguments.number("limit") if arguments.has("limit") else -1)
    if arguments.has("table"):
        name = existing_table(call, arguments)
        request.dbName, request.tbName = name.db, name.table
    return [row for row in compaction_rows(call.client, request) if is_wanted(arguments, "state", row["state"])]


PROCEDURE = Procedure(
    "Compactions that wait or run, and the last that ended",
    (
        ONLY_TABLE,
        Parameter("state", TEXT, "only in this state, for instance initiated, working, failed"),
        Parameter("limit", NUMBER, "at most so many"),
    ),
    {
        "compaction_id": NUMBER,
        "db": TEXT,
        "table": TEXT,
        "partition": TEXT,
        "type": TEXT,
        "state": TEXT,
        "worker_host": TEXT,
        "worker": TEXT,
        "enqueued_at": INSTANT,
        "started_at": INSTANT,
        "duration_ms": NUMBER,
        "error": TEXT,
        "pool": TEXT,
        "txn_id": NUMBER,
        "committed_at": INSTANT,
        "highest_write_id": NUMBER,
    },
    _rows,
)
