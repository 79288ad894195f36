"""SHOW, COMPACT and ABORT from a Spark session, as DataFrames."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient
from metastore.errors import InvalidOperationError
from metastore.partition_names import make_name
from metastore.spark.sql.statements import Compact

_TRANSACTIONS = ("id", "state", "user", "hostname", "startedTime", "lastHeartbeatTime", "agentInfo")
_LOCKS = (
    "lockid",
    "dbname",
    "tablename",
    "partname",
    "state",
    "type",
    "txnid",
    "blockedByExtId",
    "lastheartbeat",
    "acquiredat",
    "user",
    "hostname",
    "agentInfo",
)
_COMPACTIONS = (
    "id",
    "dbname",
    "tablename",
    "partitionname",
    "type",
    "state",
    "workerid",
    "enqueueTime",
    "start",
    "endTime",
    "errorMessage",
)


def one_row(spark: SparkSession, column: str, value: int) -> DataFrame:
    """A frame of a single row with a single number."""
    return spark.createDataFrame([(value,)], StructType([StructField(column, LongType())]))


def show(spark: SparkSession, client: DomainClient, what: str) -> DataFrame:
    """SHOW TRANSACTIONS, LOCKS or COMPACTIONS: every value as text, in the metastore's order."""
    types = client.types
    names = {
        ("transactions", "state"): types.TxnState,
        ("locks", "state"): types.LockState,
        ("locks", "type"): types.LockType,
        ("compactions", "type"): types.CompactionType,
    }
    columns: tuple[str, ...]
    match what:
        case "transactions":
            rows, columns = client.get_open_txns_info().open_txns, _TRANSACTIONS
        case "locks":
            rows, columns = client.show_locks(types.ShowLocksRequest()).locks, _LOCKS
        case _:
            rows, columns = client.show_compact(types.ShowCompactRequest()).compacts, _COMPACTIONS
    data = [tuple(_text(getattr(row, column), names.get((what, column))) for column in columns) for row in rows]
    return spark.createDataFrame(data, StructType([StructField(column, StringType()) for column in columns]))


def compact(spark: SparkSession, client: DomainClient, table: AcidTable, statement: Compact) -> DataFrame:
    """ALTER TABLE ... COMPACT: queue a request. Returns its id, its state, and whether it is new.

    Raises: InvalidOperationError for another kind, AND WAIT, or a PARTITION that does not name all keys.
    """
    types = client.types
    kind = types.CompactionType._NAMES_TO_VALUES.get(statement.kind.upper())  # noqa: SLF001 - how Thrift spells its enums
    if kind is None:
        raise InvalidOperationError(f"COMPACT '{statement.kind}': the kinds are 'minor', 'major' and 'rebalance'.")
    if statement.wait:
        raise InvalidOperationError(
            "COMPACT ... AND WAIT would block this session: queue it, and follow it with SHOW COMPACTIONS."
        )
    partition = None
    if statement.partition:
        if set(statement.partition) != set(table.partition_names):
            raise InvalidOperationError(
                f"PARTITION must name all keys of {table.name}: {', '.join(table.partition_names)}."
            )
        partition = make_name(table.partition_names, [statement.partition[name] for name in table.partition_names])
    answer = client.compact2(
        types.CompactionRequest(dbname=table.name.db, tablename=table.name.table, partitionname=partition, type=kind)
    )
    return spark.createDataFrame(
        [(answer.id, answer.state, str(answer.accepted).lower())],
        StructType(
            [StructField("id", LongType()), StructField("state", StringType()), StructField("accepted", StringType())]
        ),
    )


def abort(spark: SparkSession, client: DomainClient, txn_ids: Sequence[int]) -> DataFrame:
    """ABORT TRANSACTIONS; returns the number of ids."""
    client.abort_txns(client.types.AbortTxnsRequest(txn_ids=list(txn_ids)))
    return one_row(spark, "requested", len(txn_ids))


def _text(value: Any, enum: Any) -> str | None:
    if value is None:
        return None
    return str(enum._VALUES_TO_NAMES.get(value, value)) if enum is not None else str(value)  # noqa: SLF001 - as above
