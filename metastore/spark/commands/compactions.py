"""COMPACT, SHOW COMPACTIONS and ABORT COMPACTIONS from a Spark session, as DataFrames."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient
from metastore.client.compactions import DONE, Progress, compaction_type, wait_until_done
from metastore.errors import InvalidOperationError
from metastore.ids import table_name
from metastore.partition_names import make_name
from metastore.spark.commands.admin import texts
from metastore.spark.sql.statements import Compact, ShowCompactions
from metastore.telemetry.logs import get_logger

_ANSWER = "id bigint, state string, accepted string, errormessage string"
_SHOWN = (
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
    "hadoopJobId",
    "metaInfo",
    "initiatorId",
    "poolName",
    "txnId",
    "nextTxnId",
    "commitTime",
    "hightestWriteId",
)
_ABORTED = ("compactionId", "status", "message")
_log = get_logger(__name__)


def compact(spark: SparkSession, client: DomainClient, table: AcidTable, statement: Compact) -> DataFrame:
    """ALTER TABLE ... COMPACT: queue it; the answer is its id and whether it is new. AND WAIT: how it ended.

    Raises: InvalidInputError for another kind of compaction; InvalidOperationError for a partition that does not name
    all keys, and when a compaction that is waited for does not succeed.
    """
    types = client.types
    request = types.CompactionRequest(
        dbname=table.name.db,
        tablename=table.name.table,
        partitionname=_partition(table, statement.partition),
        type=compaction_type(statement.kind),
        poolName=statement.pool,
        properties=statement.properties or None,
        numberOfBuckets=statement.buckets,
        orderByClause=statement.order,
    )
    answer = client.compact2(request)
    if not statement.wait or not answer.accepted:
        row = (answer.id, answer.state, str(answer.accepted).lower(), answer.errormessage)
        return spark.createDataFrame([row], _ANSWER)
    ended = wait_until_done(client, request, answer.id, Progress(_say).note)
    if failed := [
        f"{row.id} ended as {row.state}: {row.errorMessage or 'no reason was recorded'}"
        for row in ended
        if row.state not in DONE
    ]:
        raise InvalidOperationError(f"The compaction of {table.name} did not succeed: {'; '.join(failed)}")
    return texts(spark, ended, _SHOWN, {"type": types.CompactionType})


def show(spark: SparkSession, client: DomainClient, statement: ShowCompactions) -> DataFrame:
    """SHOW COMPACTIONS: every value as text, in the order asked for."""
    types, database, name, partition = client.types, statement.database, None, None
    if statement.table is not None:
        of = table_name(statement.table.db or spark.catalog.currentDatabase(), statement.table.table)
        database, name = of.db, of.table
        if statement.partition:
            partition = make_name(list(statement.partition), list(statement.partition.values()))
    shown = client.show_compact(
        types.ShowCompactRequest(
            id=statement.id,
            dbName=database,
            tbName=name,
            partName=partition,
            poolName=statement.pool,
            type=compaction_type(statement.kind) if statement.kind else None,
            state=statement.state,
            order=statement.order,
            limit=statement.limit or -1,
        )
    )
    return texts(spark, shown.compacts, _SHOWN, {"type": types.CompactionType})


def abort(spark: SparkSession, client: DomainClient, ids: Sequence[int]) -> DataFrame:
    """ABORT COMPACTIONS: what became of each."""
    outcomes = client.abort_Compactions(client.types.AbortCompactionRequest(compactionIds=list(ids))).abortedcompacts
    return texts(spark, [outcomes[number] for number in ids if number in outcomes], _ABORTED)


def _say(sentence: str) -> None:
    _log.warning("compaction_awaited", progress=sentence)


def _partition(table: AcidTable, values: Mapping[str, str]) -> str | None:
    if not values:
        return None
    if set(values) != set(table.partition_names):
        raise InvalidOperationError(
            f"PARTITION must name all keys of {table.name}: {', '.join(table.partition_names)}."
        )
    return make_name(table.partition_names, [values[name] for name in table.partition_names])
