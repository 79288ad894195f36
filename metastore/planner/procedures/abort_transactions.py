"""CALL abort_transactions: end transactions of others."""

from metastore.errors import NoSuchTxnError
from metastore.planner.body import Body
from metastore.planner.call import PlannerCall
from metastore.planner.procedures.declaration import (
    FLAG,
    NUMBER,
    NUMBERS,
    TEXT,
    Parameter,
    Procedure,
    Rows,
    required_ids,
)
from metastore.txns.core.rules import AbortCode


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    """Abort each transaction, and answer what became of it. Raises: InvalidInputError."""
    ids = required_ids(arguments, "txn_ids", "transactions")
    code = AbortCode.ROLLBACK if arguments.flag("owner_gone") else AbortCode.QUERY_COMMAND
    rows = []
    for txn_id in ids:
        try:
            call.client.abort_txn(call.client.types.AbortTxnRequest(txnid=txn_id, errorCode=int(code)))
        except NoSuchTxnError as error:
            rows.append({"txn_id": txn_id, "aborted": False, "answer": str(error)})
        else:
            rows.append({"txn_id": txn_id, "aborted": True, "answer": "aborted"})
    return rows


PROCEDURE = Procedure(
    "Abort transactions: their locks are free at once, and nothing that they wrote will be seen",
    (
        Parameter("txn_ids", NUMBERS, "their ids, as in array(17, 18)", None),
        Parameter("owner_gone", FLAG, "whether the owners' processes have ended for certain", "false"),
    ),
    {"txn_id": NUMBER, "aborted": FLAG, "answer": TEXT},
    _rows,
)
