"""Procedures: what Spark's grammar lacks, for CALL. Each has named parameters and answers rows of named, typed columns.

Rule: a connector knows none of them by name: it asks for the list, hands the arguments over and shows the rows. What a
procedure does is what the command line does by the same name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from metastore.client import streams
from metastore.client.compactions import DONE, compaction_type, requested, wait_until_done
from metastore.client.shown import compaction_rows, lock_rows, shown_compactions, transaction_rows
from metastore.errors import (
    InvalidInputError,
    InvalidOperationError,
    NoSuchObjectError,
    NoSuchTxnError,
    UnavailableError,
)
from metastore.ids import DEFAULT_DATABASE, TableName, split_table_name, table_name
from metastore.partition_names import canonical
from metastore.planner import analyzing, column_statistics, repairing, restoring
from metastore.planner.body import Body
from metastore.planner.call import Answer, Call
from metastore.planner.tables import acid_table
from metastore.txns.core.rules import AbortCode

_TEXT, _NUMBER, _FLAG, _INSTANT = "string", "bigint", "boolean", "timestamp"
_NUMBERS, _TEXTS = "array<bigint>", "array<string>"
_NULL = "NULL"
_HISTORY = 1000


class Parameter(NamedTuple):
    """A parameter of a procedure. ``default``: an expression of SQL; None: the caller must give it."""

    name: str
    type: str
    comment: str
    default: str | None = _NULL


@dataclass(frozen=True)
class Procedure:
    """``columns``: of its rows, with Spark's types; an instant is in milliseconds."""

    comment: str
    parameters: Sequence[Parameter]
    columns: Mapping[str, str]
    rows: Callable[[Call, Body], Iterable[Mapping[str, Any]]]
    statement: Callable[[Call, Body], str] | None = None
    """SQL that the engine is to run before it shows the rows."""
    query: Callable[[Call, Body], Answer | None] = lambda *_: None
    """A query whose only row the engine sends to a call, before it shows the rows: sql, call, arguments."""


_TABLE = Parameter("table", _TEXT, "db.table, or the name of a table of the database default", None)
_ONE_TABLE = Parameter("table", _TEXT, "only of this table: db.table")
_PARTITION = Parameter("partition", _TEXT, "a partition: key=value/key=value")


def procedures(_call: Call) -> Answer:
    """All procedures, with their parameters and columns."""
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


def procedure(call: Call) -> Answer:
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


def _compact(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    types, name = call.client.types, _existing(call, arguments)
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


def _require_caller(call: Call) -> None:
    """Raise UnavailableError where nobody waits for the answer any more."""
    if call.gone.is_set():
        raise UnavailableError("The caller that waited for a compaction has gone away: the compaction goes on.")


def _transactions(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    rows = transaction_rows(call.client)
    return [
        row
        for row in rows
        if _is_wanted(arguments, "state", row["state"]) and _is_wanted(arguments, "user", row["user"])
    ]


def _locks(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    request = call.client.types.ShowLocksRequest(txnid=arguments.number("txn_id") if arguments.has("txn_id") else None)
    if arguments.has("table"):
        name = _existing(call, arguments)
        request.dbname, request.tablename = name.db, name.table
    return [row for row in lock_rows(call.client, request) if _is_wanted(arguments, "state", row["state"])]


def _compactions(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    request = call.client.types.ShowCompactRequest(limit=arguments.number("limit") if arguments.has("limit") else -1)
    if arguments.has("table"):
        name = _existing(call, arguments)
        request.dbName, request.tbName = name.db, name.table
    return [row for row in compaction_rows(call.client, request) if _is_wanted(arguments, "state", row["state"])]


def _abort_transactions(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    ids = _ids(arguments, "txn_ids", "transactions")
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


def _abort_compactions(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    ids = _ids(arguments, "compaction_ids", "compactions")
    answer = call.client.abort_Compactions(call.client.types.AbortCompactionRequest(compactionIds=ids))
    return [
        {"compaction_id": number, "aborted": outcome.status == "Success", "answer": outcome.message}
        for number, outcome in answer.abortedcompacts.items()
    ]


def _ids(arguments: Body, name: str, what: str) -> list[int]:
    """Return ids that a caller gives. Raises: InvalidInputError."""
    ids = arguments.values(name)
    if not ids or not all(isinstance(number, int) and number > 0 for number in ids):
        raise InvalidInputError(f"{name} must be ids of {what}, as in array(17, 18).")
    return ids


def _history(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    name = _existing(call, arguments)
    listed = call.client.metastore_table_history(
        name.catalog, name.db, name.table, 0, arguments.number("limit", _HISTORY), aborted=False
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


def _analyze(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    name = _existing(call, arguments)
    size = analyzing.analyze(call, acid_table(call.client, name))
    return [{"table": str(name), "rows": size.rows, "bytes": size.bytes}]


def _columns_query(call: Call, arguments: Body) -> Answer | None:
    columns = arguments.texts("columns")
    return (
        column_statistics.query(call, acid_table(call.client, _existing(call, arguments)), columns) if columns else None
    )


def _repair(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    name = _existing(call, arguments)
    mode = arguments.text("mode", repairing.Mode.ADD.name).upper()
    if mode not in repairing.Mode.__members__:
        raise InvalidInputError(f"mode must be one of {', '.join(repairing.Mode.__members__)}, not {mode!r}.")
    table = acid_table(call.client, name)
    done = repairing.repair(call, table, repairing.Mode[mode], is_dry=arguments.flag("dry_run"))
    return [repaired._asdict() for repaired in done]


def _restore(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    name = _existing(call, arguments)
    points = restoring.require_restorable(call, name, arguments)
    return [{"table": str(name), "restored_write_id": points.restored, "previous_write_id": points.present}]


def _stream_positions(call: Call, arguments: Body) -> Iterable[Mapping[str, Any]]:
    return [
        {
            "query_id": position.batch.query_id,
            "batch_id": position.batch.batch_id,
            "txn_id": position.txn_id,
            "committed_at": round(position.at.timestamp() * 1000),
        }
        for position in streams.positions(call.client, _existing(call, arguments))
    ]


def _existing(call: Call, arguments: Body) -> TableName:
    """The table that an argument names. Raises: NoSuchObjectError; InvalidOperationError: it has no transactions."""
    try:
        db, table = split_table_name(arguments.text("table"))
    except ValueError as error:
        raise InvalidInputError(f"table => {error}") from None
    return acid_table(call.client, table_name(db or DEFAULT_DATABASE, table)).name


def _place(name: TableName, partition: str | None) -> str:
    return f"{name}/{partition}" if partition else str(name)


def _is_wanted(arguments: Body, argument: str, value: str | None) -> bool:
    return not arguments.has(argument) or arguments.text(argument).lower() == (value or "").lower()


PROCEDURES: Mapping[str, Procedure] = {
    "compact": Procedure(
        "Ask for a compaction; of a partitioned table, of all partitions that need it",
        (
            _TABLE,
            Parameter("type", _TEXT, "minor: merge deltas; major: a new base; rebalance: even out buckets", "'major'"),
            _PARTITION,
            Parameter("pool", _TEXT, "the pool of workers that shall do it"),
            Parameter("wait", _FLAG, "whether to wait until it is done; then a failure is an error", "false"),
            Parameter("buckets", _NUMBER, "into how many buckets a rebalance deals the rows"),
            Parameter("order_by", _TEXT, "how a rebalance sorts the rows: column [DESC], ..."),
            Parameter("properties", _TEXTS, "properties of the job, as in array('key=value')"),
        ),
        {"compaction_id": _NUMBER, "accepted": _FLAG, "partition": _TEXT, "state": _TEXT, "message": _TEXT},
        _compact,
    ),
    "show_transactions": Procedure(
        "Open transactions, and aborted ones that have left something to clean up",
        (Parameter("state", _TEXT, "open or aborted"), Parameter("user", _TEXT, "only of this user")),
        {
            "txn_id": _NUMBER,
            "state": _TEXT,
            "started_at": _INSTANT,
            "last_heartbeat_at": _INSTANT,
            "user": _TEXT,
            "host": _TEXT,
            "agent_info": _TEXT,
        },
        _transactions,
    ),
    "show_locks": Procedure(
        "Locks that are held and requests that wait, with what they wait for",
        (
            _ONE_TABLE,
            Parameter("state", _TEXT, "acquired or waiting"),
            Parameter("txn_id", _NUMBER, "only of this transaction; 0: of none"),
        ),
        {
            "lock_id": _TEXT,
            "db": _TEXT,
            "table": _TEXT,
            "partition": _TEXT,
            "state": _TEXT,
            "blocked_by": _TEXT,
            "type": _TEXT,
            "txn_id": _NUMBER,
            "last_heartbeat_at": _INSTANT,
            "acquired_at": _INSTANT,
            "user": _TEXT,
            "host": _TEXT,
            "agent_info": _TEXT,
        },
        _locks,
    ),
    "show_compactions": Procedure(
        "Compactions that wait or run, and the last that ended",
        (
            _ONE_TABLE,
            Parameter("state", _TEXT, "only in this state, for instance initiated, working, failed"),
            Parameter("limit", _NUMBER, "at most so many"),
        ),
        {
            "compaction_id": _NUMBER,
            "db": _TEXT,
            "table": _TEXT,
            "partition": _TEXT,
            "type": _TEXT,
            "state": _TEXT,
            "worker_host": _TEXT,
            "worker": _TEXT,
            "enqueued_at": _INSTANT,
            "started_at": _INSTANT,
            "duration_ms": _NUMBER,
            "error": _TEXT,
            "pool": _TEXT,
            "txn_id": _NUMBER,
            "committed_at": _INSTANT,
            "highest_write_id": _NUMBER,
        },
        _compactions,
    ),
    "abort_transactions": Procedure(
        "Abort transactions: their locks are free at once, and nothing that they wrote will be seen",
        (
            Parameter("txn_ids", _NUMBERS, "their ids, as in array(17, 18)", None),
            Parameter("owner_gone", _FLAG, "whether the owners' processes have ended for certain", "false"),
        ),
        {"txn_id": _NUMBER, "aborted": _FLAG, "answer": _TEXT},
        _abort_transactions,
    ),
    "abort_compactions": Procedure(
        "Take back requests for compactions",
        (Parameter("compaction_ids", _NUMBERS, "their ids, as in array(17, 18)", None),),
        {"compaction_id": _NUMBER, "aborted": _FLAG, "answer": _TEXT},
        _abort_compactions,
    ),
    "history": Procedure(
        "The commits of a table that are on record, the latest first",
        (_TABLE, Parameter("limit", _NUMBER, "at most so many", str(_HISTORY))),
        {
            "write_id": _NUMBER,
            "txn_id": _NUMBER,
            "committed_at": _INSTANT,
            "started_at": _INSTANT,
            "user": _TEXT,
            "host": _TEXT,
            "agent_info": _TEXT,
            "operations": _TEXT,
            "partitions": _NUMBER,
            "rows_inserted": _NUMBER,
            "rows_deleted": _NUMBER,
            "complete": _FLAG,
        },
        _history,
    ),
    "analyze": Procedure(
        "Count rows and bytes by the footers of a table's files, and note them for optimizers; columns too",
        (
            _TABLE,
            Parameter(
                "columns", _TEXTS, f"columns to be read for statistics, array('{column_statistics.ALL}') for all"
            ),
        ),
        {"table": _TEXT, "rows": _NUMBER, "bytes": _NUMBER},
        _analyze,
        query=_columns_query,
    ),
    "repair": Procedure(
        "Bring a table's partitions and its directories together, as MSCK REPAIR TABLE in Hive",
        (
            _TABLE,
            Parameter(
                "mode",
                _TEXT,
                "ADD: directories become partitions; DROP: partitions without any go; SYNC: both",
                "'ADD'",
            ),
            Parameter("dry_run", _FLAG, "whether only to say what would be done", "false"),
        ),
        {"partition": _TEXT, "action": _TEXT, "location": _TEXT, "reason": _TEXT},
        _repair,
    ),
    "restore": Procedure(
        "Make a table what it was at a point of its past, by an overwrite: what came later stays in its history",
        (
            _TABLE,
            Parameter(restoring.TO_WRITE_ID, _NUMBER, "up to this write id, as history lists them"),
            Parameter(restoring.TO_TIMESTAMP, _INSTANT, "or: what had been committed by then"),
        ),
        {"table": _TEXT, "restored_write_id": _NUMBER, "previous_write_id": _NUMBER},
        _restore,
        lambda call, arguments: restoring.statement(call, _existing(call, arguments), arguments),
    ),
    "stream_positions": Procedure(
        "How far each streaming query has come in a table, the latest first",
        (_TABLE,),
        {"query_id": _TEXT, "batch_id": _NUMBER, "txn_id": _NUMBER, "committed_at": _INSTANT},
        _stream_positions,
    ),
}
