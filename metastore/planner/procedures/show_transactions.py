"""The procedure CALL show_transactions: it lists open transactions, and aborted ones with leftovers."""

from metastore.client.shown import transaction_rows
from metastore.planner.body import Body
from metastore.planner.call import PlannerCall
from metastore.planner.procedures.declaration import INSTANT, NUMBER, TEXT, Parameter, Procedure, Rows, is_wanted


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    """List transactions."""
    rows = transaction_rows(call.client)
    return [
        row for row in rows if is_wanted(arguments, "state", row["state"]) and is_wanted(arguments, "user", row["user"])
    ]


PROCEDURE = Procedure(
    "Open transactions, and aborted ones that have left something to clean up",
    (Parameter("state", TEXT, "open or aborted"), Parameter("user", TEXT, "only of this user")),
    {
        "txn_id": NUMBER,
        "state": TEXT,
        "started_at": INSTANT,
        "last_heartbeat_at": INSTANT,
        "user": TEXT,
        "host": TEXT,
        "agent_info": TEXT,
    },
    _rows,
)
