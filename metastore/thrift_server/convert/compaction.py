"""Conversions between compaction requests and rows, and Thrift.

Rule: instants go out as milliseconds since 1970. Generations of clients are distinguished only by fields that a
generation sets or does not know, and only to keep from an old client what it cannot read.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from metastore.compaction.measuring.rules import Counted
from metastore.compaction.queue.rules.requests import Claim, Compaction, CompactionState, CompactionType, Entity
from metastore.compaction.queue.rules.turns import BY_PEOPLE, is_by_person
from metastore.compaction.queue.service import CompactResult
from metastore.compaction.queue.store.requests import SORTABLE, Filter, NewRequest
from metastore.config.compaction import stored_pool
from metastore.errors import InvalidRequestError
from metastore.ids import database_name, table_name
from metastore.partition_names import canonical
from metastore.thrift_gen.hive_metastore import ttypes

_ORDER_NAMES = {
    "compactionid": "id",
    "id": "id",
    "database": "db",
    "dbname": "db",
    "tabname": "table",
    "table": "table",
    "tablename": "table",
    "partname": "partition",
    "partition": "partition",
    "type": "type",
    "state": "state",
    "workerid": "worker_id",
    "worker_id": "worker_id",
    "worker": "worker_id",
    "enqueuetime": "enqueued_at",
    "enqueue_time": "enqueued_at",
    "starttime": "started_at",
    "start": "started_at",
    "endtime": "ended_at",
    "end": "ended_at",
    "hadoopjobid": "hadoop_job_id",
    "hadoop_job_id": "hadoop_job_id",
    "errormessage": "error_message",
    "error_message": "error_message",
    "initiatorid": "initiator_id",
    "initiator_id": "initiator_id",
    "initiator": "initiator_id",
    "poolname": "pool",
    "pool_name": "pool",
    "txnid": "txn_id",
    "txn_id": "txn_id",
    "nexttxnid": "next_txn_id",
    "next_txn_id": "next_txn_id",
    "committime": "committed_at",
    "commit_time": "committed_at",
    "highestwriteid": "highest_write_id",
    "highest_write_id": "highest_write_id",
}
"""Columns of SHOW COMPACTIONS … ORDER BY: Hive's headings, and its stored names without the ``CC_`` before them."""


def partition(name: str | None) -> str:
    """Return the stored form of a partition name."""
    return canonical(name) if name else ""


def entity(db: str, table: str, partition_name: str | None, catalog: str | None = None) -> Entity:
    """Return the entity of a request."""
    if not db or not table:
        raise InvalidRequestError("A compaction needs the names of a database and a table")
    return Entity(table_name(db, table, catalog), partition(partition_name))


_COUNTED = {
    ttypes.CompactionMetricsMetricType.NUM_DELTAS: Counted.DELTAS,
    ttypes.CompactionMetricsMetricType.NUM_SMALL_DELTAS: Counted.SMALL_DELTAS,
    ttypes.CompactionMetricsMetricType.NUM_OBSOLETE_DELTAS: Counted.OBSOLETE_DELTAS,
}


def counted(kind: int) -> Counted:
    """Return the figure that a metric of Hive's counts."""
    return _COUNTED[kind]


def new_request(rqst: ttypes.CompactionRequest, peer: str) -> NewRequest:
    """Decode a client's request; without an initiator it is a person's."""
    return NewRequest(
        entity=entity(rqst.dbname, rqst.tablename, rqst.partitionname),
        type=CompactionType.of_number(rqst.type),
        properties=dict(rqst.properties or {}),
        run_as=rqst.runas,
        initiator_id=rqst.initiatorId or f"{peer.rpartition(':')[0] or peer}-manual",
        initiator_version=rqst.initiatorVersion,
        pool=stored_pool(rqst.poolName) or None,
        number_of_buckets=rqst.numberOfBuckets,
        order_by=rqst.orderByClause,
        head_start=BY_PEOPLE if is_by_person(rqst.initiatorId) else timedelta(0),
    )


def claim(cr: ttypes.CompactionInfoStruct) -> Claim:
    """Decode a remote worker's claim, which has no attempts, only its own name. Raises: InvalidRequestError."""
    if (cr.id or 0) <= 0 or not cr.workerId:
        raise InvalidRequestError(
            f"Compaction {cr.id or 0} is not claimed by worker {cr.workerId or '(unnamed)'}: a claim has both"
        )
    return Claim(cr.id, cr.workerId)


def is_newer_client(rqst: ttypes.CompactionRequest) -> bool:
    """Return True if a field is set that clients before Hive 4 do not have."""
    return any(
        value is not None
        for value in (rqst.initiatorId, rqst.initiatorVersion, rqst.poolName, rqst.numberOfBuckets, rqst.orderByClause)
    )


def compaction_response(result: CompactResult, *, newer_client: bool) -> ttypes.CompactionResponse:
    """Encode the answer to a request.

    Clients before Hive 4 print the id and state of the existing request.
    """
    request_id, state = result.id, result.state
    if result.existing is not None and not newer_client:
        request_id, state = result.existing.id, result.existing.state.display
    return ttypes.CompactionResponse(id=request_id, state=state, accepted=result.accepted, errormessage=result.message)


def may_be_old_client(rqst: ttypes.ShowCompactRequest | None) -> bool:
    """Return True if no field is set.

    Hive 2.3 and 3.1 have none, and a type that they do not know breaks the whole answer.
    """
    return rqst is None or all(getattr(rqst, field[2]) is None for field in rqst.thrift_spec if field)


def show_filter(rqst: ttypes.ShowCompactRequest | None) -> Filter:
    """Decode the filters of SHOW COMPACTIONS.

    Raises: InvalidRequestError.
    """
    if rqst is None:
        return Filter()
    database = database_name(rqst.dbName) if rqst.dbName else None
    return Filter(
        id=rqst.id if rqst.id and rqst.id > 0 else None,
        catalog=database.catalog if database else None,
        db=database.db if database else None,
        table=rqst.tbName.lower() if rqst.tbName else None,
        partition=partition(rqst.partName) or None,
        pool=rqst.poolName or None,
        type=None if rqst.type is None else CompactionType.of_number(rqst.type),
        state=CompactionState.parse(rqst.state) if rqst.state else None,
        order=_order(rqst.order or ""),
        limit=rqst.limit,
    )


def info(compaction: Compaction) -> ttypes.CompactionInfoStruct:
    """Encode a request for a worker."""
    return ttypes.CompactionInfoStruct(
        id=compaction.id,
        dbname=compaction.entity.table.db,
        tablename=compaction.entity.table.table,
        partitionname=compaction.entity.partition or None,
        type=compaction.type.number,
        runas=compaction.run_as,
        properties=stringable_map(compaction.properties) if compaction.properties else None,
        toomanyaborts=False,
        hasoldabort=False,
        state=compaction.state.code,
        workerId=compaction.worker_id,
        start=_millis(compaction.started_at) or 0,
        highestWriteId=compaction.highest_write_id or 0,
        errorMessage=compaction.error_message,
        enqueueTime=_millis(compaction.enqueued_at),
        retryRetention=0,
        poolname=compaction.pool,
        numberOfBuckets=compaction.number_of_buckets,
        orderByClause=compaction.order_by,
    )


def stringable_map(values: dict[str, str]) -> str:
    """Encode Hive's StringableMap.

    ``entries:``, then ``length:text`` for each key and value, lengths as Java counts them.
    """
    return f"{len(values)}:" + "".join(
        f"{_java_length(key)}:{key}{_java_length(value)}:{value}" for key, value in values.items()
    )


def _java_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _order(text: str) -> tuple[tuple[str, bool], ...]:
    """Convert ``"CC_DATABASE" desc, state`` to pairs of our column and "ascending"."""
    chosen: list[tuple[str, bool]] = []
    for term in filter(None, (text_part.strip() for text_part in text.split(","))):
        name, *direction = term.replace('"', "").replace("`", "").split()
        column = _ORDER_NAMES.get(name.lower().removeprefix("cc_"))
        way = [word.lower() for word in direction]
        if column not in SORTABLE or way not in ([], ["asc"], ["desc"]):
            known = ", ".join(sorted(_ORDER_NAMES))
            raise InvalidRequestError(f"Cannot order compactions by {term!r}: use one of {known}")
        chosen.append((column, way != ["desc"]))
    return tuple(chosen)


def _millis(instant: datetime | None) -> Any:
    return None if instant is None else int(instant.timestamp() * 1000)
