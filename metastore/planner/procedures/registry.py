"""The table of procedures, and the calls that list them and run one."""

from collections.abc import Mapping

from metastore.errors import NoSuchObjectError
from metastore.planner.call import Answer, PlannerCall
from metastore.planner.procedures import (
    abort_compactions,
    abort_transactions,
    analyze,
    compact,
    history,
    repair,
    restore,
    show_compactions,
    show_locks,
    show_transactions,
    stream_positions,
)
from metastore.planner.procedures.declaration import Procedure

PROCEDURES: Mapping[str, Procedure] = {
    "compact": compact.PROCEDURE,
    "show_transactions": show_transactions.PROCEDURE,
    "show_locks": show_locks.PROCEDURE,
    "show_compactions": show_compactions.PROCEDURE,
    "abort_transactions": abort_transactions.PROCEDURE,
    "abort_compactions": abort_compactions.PROCEDURE,
    "history": history.PROCEDURE,
    "analyze": analyze.PROCEDURE,
    "repair": repair.PROCEDURE,
    "restore": restore.PROCEDURE,
    "stream_positions": stream_positions.PROCEDURE,
}


def procedures(_call: PlannerCall) -> Answer:
    """List all procedures, with their parameters and columns."""
    return {
        "procedures": [
            {
                "name": name,
                "comment": described.comment,
                "parameters": [parameter._asdict() for parameter in described.parameters],
                "columns": [{"name": column, "type": kind} for column, kind in described.columns.items()],
            }
            for name, described in PROCEDURES.items()
        ]
    }


def procedure(call: PlannerCall) -> Answer:
    """Run one. Raises: NoSuchObjectError for a name that there is not, and whatever the procedure does."""
    name = call.body.text("procedure")
    wanted = PROCEDURES.get(name)
    if wanted is None:
        raise NoSuchObjectError(f"There is no procedure {name}: procedures are {', '.join(PROCEDURES)}.")
    arguments = call.body.body("arguments")
    rows = wanted.rows(call, arguments)
    return {
        "rows": [[row[column] for column in wanted.columns] for row in rows],
        "statement": wanted.statement(call, arguments) if wanted.statement else None,
        "query": wanted.query(call, arguments),
    }
