"""The procedure CALL history: it lists the commits of a table that are on record."""

from metastore.planner.body import Body
from metastore.planner.call import PlannerCall
from metastore.planner.procedures.declaration import (
    FLAG,
    INSTANT,
    NUMBER,
    TABLE,
    TEXT,
    Parameter,
    Procedure,
    Rows,
    existing_table,
)

_LIMIT = 1000


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    """List commits, the latest first."""
    name = existing_table(call, arguments)
    listed = call.client.metastore_table_history(
        name.catalog, name.db, name.table, 0, arguments.number("limit", _LIMIT), aborted=False
    )
    return [
        {
            "write_id": entry.writeId,
            "txn_id": entry.txnid,
            "committed_at": entry.committedAt,
            "started_at": entry.startedAt,
            "user": entry.user,
            "host": entry.hostname,
            "agent_info": entry.agentInfo,
            "operations": ", ".join(entry.operations),
            "partitions": entry.partitions,
            "rows_inserted": entry.rowsInserted,
            "rows_deleted": entry.rowsDeleted,
            "complete": entry.complete,
        }
        for entry in listed
    ]


PROCEDURE = Procedure(
    "The commits of a table that are on record, the latest first",
    (TABLE, Parameter("limit", NUMBER, "at most so many", str(_LIMIT))),
    {
        "write_id": NUMBER,
        "txn_id": NUMBER,
        "committed_at": INSTANT,
        "started_at": INSTANT,
        "user": TEXT,
        "host": TEXT,
        "agent_info": TEXT,
        "operations": TEXT,
        "partitions": NUMBER,
        "rows_inserted": NUMBER,
        "rows_deleted": NUMBER,
        "complete": FLAG,
    },
    _rows,
)
