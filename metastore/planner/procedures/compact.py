"""CALL compact: ask for a compaction, and wait for it where that is wanted."""

from metastore.client.compactions import DONE, compaction_type, requested, wait_until_done
from metastore.client.shown import shown_compactions
from metastore.errors import InvalidInputError, InvalidOperationError, UnavailableError
from metastore.ids import TableName
from metastore.partition_names import canonical
from metastore.planner.body import Body
from metastore.planner.call import PlannerCall
from metastore.planner.procedures.declaration import (
    FLAG,
    NUMBER,
    TABLE,
    TEXT,
    TEXTS,
    Parameter,
    Procedure,
    Rows,
    existing_table,
)


def _rows(call: PlannerCall, arguments: Body) -> Rows:
    """Ask for a compaction. Raises: InvalidOperationError where it was waited for and has failed."""
    types, name = call.client.types, existing_table(call, arguments)
    kind = compaction_type(arguments.text("type"))
    partition = canonical(arguments.text("partition")) if arguments.has("partition") else None
    pool = arguments.text("pool") if arguments.has("pool") else None
    wanted = types.CompactionRequest(
        name.db,
        name.table,
        partitionname=partition,
        type=kind,
        poolName=pool,
        properties=_pairs(arguments) or None,
        numberOfBuckets=arguments.number("buckets") if arguments.has("buckets") else None,
        orderByClause=arguments.text("order_by") if arguments.has("order_by") else None,
    )
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


def _pairs(arguments: Body) -> dict[str, str]:
    """Return the properties of a compaction, which are written as key=value."""
    pairs = [text.partition("=") for text in arguments.texts("properties")]
    if wrong := [key for key, equals, _ in pairs if not key or not equals]:
        raise InvalidInputError(
            f"properties must be texts like 'compactor.x=y', as in array('compactor.x=y'), not {wrong[0]!r}."
        )
    return {key: value for key, _, value in pairs}


def _require_caller(call: PlannerCall) -> None:
    """Raise UnavailableError where nobody waits for the answer any more."""
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
        Parameter("buckets", NUMBER, "into how many buckets a rebalance deals the rows"),
        Parameter("order_by", TEXT, "how a rebalance sorts the rows: column [DESC], ..."),
        Parameter("properties", TEXTS, "properties of the job, as in array('key=value')"),
    ),
    {"compaction_id": NUMBER, "accepted": FLAG, "partition": TEXT, "state": TEXT, "message": TEXT},
    _rows,
)
