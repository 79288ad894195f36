"""CALL abort_compactions: take back requests for compactions."""

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


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    """Take each request back, and answer what became of it. Raises: InvalidInputError."""
    ids = required_ids(arguments, "compaction_ids", "compactions")
    answer = call.client.abort_Compactions(call.client.types.AbortCompactionRequest(compactionIds=ids))
    return [
        {"compaction_id": number, "aborted": outcome.status == "Success", "answer": outcome.message}
        for number, outcome in answer.abortedcompacts.items()
    ]


PROCEDURE = Procedure(
    "Take back requests for compactions",
    (Parameter("compaction_ids", NUMBERS, "their ids, as in array(17, 18)", None),),
    {"compaction_id": NUMBER, "aborted": FLAG, "answer": TEXT},
    _rows,
)
