"""SHOW and ABORT from a Spark session, as DataFrames."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from metastore.client import DomainClient

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


def one_row(spark: SparkSession, column: str, value: int) -> DataFrame:
    """A frame of a single row with a single number."""
    return spark.createDataFrame([(value,)], StructType([StructField(column, LongType())]))


def show(spark: SparkSession, client: DomainClient, what: str) -> DataFrame:
    """SHOW TRANSACTIONS or LOCKS: every value as text, in the metastore's order."""
    types = client.types
    names = {
        ("transactions", "state"): types.TxnState,
        ("locks", "state"): types.LockState,
        ("locks", "type"): types.LockType,
    }
    columns: tuple[str, ...]
    match what:
        case "transactions":
            rows, columns = client.get_open_txns_info().open_txns, _TRANSACTIONS
        case _:
            rows, columns = client.show_locks(types.ShowLocksRequest()).locks, _LOCKS
    return texts(spark, rows, columns, {column: enum for (of, column), enum in names.items() if of == what})


def texts(
    spark: SparkSession, rows: Sequence[Any], columns: Sequence[str], enums: Mapping[str, Any] | None = None
) -> DataFrame:
    """A frame of these fields of answers, every value as text; ``enums``: by the field that holds their numbers."""
    data = [tuple(_text(getattr(row, column), (enums or {}).get(column)) for column in columns) for row in rows]
    return spark.createDataFrame(data, StructType([StructField(column, StringType()) for column in columns]))


def abort(spark: SparkSession, client: DomainClient, txn_ids: Sequence[int]) -> DataFrame:
    """ABORT TRANSACTIONS; returns the number of ids."""
    client.abort_txns(client.types.AbortTxnsRequest(txn_ids=list(txn_ids)))
    return one_row(spark, "requested", len(txn_ids))


def _text(value: Any, enum: Any) -> str | None:
    if value is None:
        return None
    return str(enum._VALUES_TO_NAMES.get(value, value)) if enum is not None else str(value)  # noqa: SLF001 - as above
