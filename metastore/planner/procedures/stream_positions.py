"""The procedure CALL stream_positions: it lists the position of each streaming query in a table."""

from metastore.client import streams
from metastore.planner.body import Body
from metastore.planner.call import PlannerCall
from metastore.planner.procedures.declaration import INSTANT, NUMBER, TABLE, TEXT, Procedure, Rows, existing_table


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    """List positions, the latest first."""
    return [
        {
            "query_id": position.batch.query_id,
            "batch_id": position.batch.batch_id,
            "txn_id": position.txn_id,
            "committed_at": round(position.at.timestamp() * 1000),
        }
        for position in streams.positions(call.client, existing_table(call, arguments))
    ]


PROCEDURE = Procedure(
    "How far each streaming query has come in a table, the latest first",
    (TABLE,),
    {"query_id": TEXT, "batch_id": NUMBER, "txn_id": NUMBER, "committed_at": INSTANT},
    _rows,
)
