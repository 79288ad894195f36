"""The procedure CALL compact: it requests a compaction, and waits for it if wanted."""

from metastore.client.compactions import DONE, compaction_type, requested, wait_until_done
from metastore.client.shown import shown_compactions
from metastore.errors import InvalidOperationError, UnavailableError
from metastore.ids import TableName
from metastore.partition_names import canonical
from metastore.planner.body import Body
from metastore.planner.call import PlannerCall
from metastore.planner.procedures.declaration import (
    FLAG,
    NUMBER,
    TABLE,
    TEXT,
    Parameter,
    Procedure,
    Rows,
    existing_table,
)


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    """Request a compaction. Raises: InvalidOperationError if it was awaited and has failed."""
    types, name = call.client.types, existing_table(call, arguments)
    kind = compaction_type(arguments.text("type"))
    partition = canonical(arguments.text("partition")) if arguments.has("partition") else None
    pool = arguments.text("pool") if arguments.has("pool") else None
    wanted = types.CompactionRequest(name.db, name.table, partitionname=partition, type=kind, poolName=pool)
    answer = call.client.compact2(wanted)
    if not answer.accepted:
        refusal = {"compaction_id": answer.id or None, "accepted": False, "partition": partition, "state": None}
        return [{**refusal, "message": answer.errormessage or answer.state}]
    if arguments.flag("wait"):
        became = wait_until_done(call.client, wanted, answer.id, lambda _: _require_caller(call))
        for row in became:
            if row.state not in DONE:
                raise InvalidOperationError(
                    f"Compaction {row.id} of {_place(name, row.partitionname)} is {row.state}: "
                    f"{row.errorMessage or 'no reason was recorded'}. `metastore show compactions` lists it."
                )
    else:
        became = requested(call.client, wanted, answer.id)
    return [{**row, "accepted": True, "message": row["error"]} for row in shown_compactions(call.client, became)]


def _require_caller(call: PlannerCall) -> None:
    """Raise UnavailableError if the caller has left."""
    if call.gone.is_set():
        raise UnavailableError("The caller that waited for a compaction has gone away: the compaction goes on.")


def _place(name: TableName, partition: str | None) -> str:
    return f"{name}/{partition}" if partition else str(name)


PROCEDURE = Procedure(
    "Ask for a compaction; of a partitioned table, of all partitions that need it",
    (
        TABLE,
        Parameter("type", TEXT, "minor: merge deltas; major: a new base; rebalance: even out buckets", "'major'"),
        Parameter("partition", TEXT, "a partition: key=value/key=value"),
        Parameter("pool", TEXT, "the pool of workers that shall do it"),
        Parameter("wait", FLAG, "whether to wait until it is done; then a failure is an error", "false"),
    ),
    {"compaction_id": NUMBER, "accepted": FLAG, "partition": TEXT, "state": TEXT, "message": TEXT},
    _rows,
)
