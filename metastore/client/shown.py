"""Rows about open transactions, locks and compactions for people: one name for a fact, wherever it is shown.

Rule: an instant is in milliseconds; None is "never", or a missing value.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from metastore.client.client import MetastoreClient


def transaction_rows(client: MetastoreClient) -> list[dict[str, Any]]:
    """Return open transactions, and aborted ones with files or locks to clean up."""
    states = names(client.types.TxnState)
    return [
        {
            "txn_id": info.id,
            "state": states.get(info.state, str(info.state)),
            "started_at": info.startedTime or None,
            "last_heartbeat_at": info.lastHeartbeatTime or None,
            "user": info.user,
            "host": info.hostname,
            "agent_info": info.agentInfo,
        }
        for info in client.get_open_txns_info().open_txns
    ]


def lock_rows(client: MetastoreClient, request: Any) -> list[dict[str, Any]]:
    """Return locks that are held and requests that wait. ``request``: a ShowLocksRequest."""
    states, kinds = names(client.types.LockState), names(client.types.LockType)
    return [
        {
            "lock_id": f"{row.lockid}.{row.lockIdInternal}",
            "db": row.dbname,
            "table": row.tablename,
            "partition": row.partname,
            "state": states.get(row.state, str(row.state)),
            "blocked_by": f"{row.blockedByExtId}.{row.blockedByIntId}" if row.blockedByExtId else None,
            "type": kinds.get(row.type, str(row.type)),
            "txn_id": row.txnid or None,
            "last_heartbeat_at": row.lastheartbeat or None,
            "acquired_at": row.acquiredat or None,
            "user": row.user,
            "host": row.hostname,
            "agent_info": row.agentInfo,
        }
        for row in client.show_locks(request).locks
    ]


def compaction_rows(client: MetastoreClient, request: Any) -> list[dict[str, Any]]:
    """Return compactions that wait or run, and the last that ended. ``request``: a ShowCompactRequest."""
    return shown_compactions(client, client.show_compact(request).compacts)


def shown_compactions(client: MetastoreClient, compactions: Iterable[Any]) -> list[dict[str, Any]]:
    """Convert the answer of show_compact as ``compaction_rows`` does."""
    kinds = names(client.types.CompactionType)
    return [_compaction(row, kinds) for row in compactions]


def names(enum: Any) -> Mapping[int, str]:
    """Return numbers and names of a Thrift enum."""
    by_value: Mapping[int, str] = enum._VALUES_TO_NAMES  # noqa: SLF001 - generated code's own mapping
    return by_value


def _compaction(row: Any, kinds: Mapping[int, str]) -> dict[str, Any]:
    worker_host, worker = _host_and_thread(row.workerid)
    initiator_host, initiator = _host_and_thread(row.initiatorId)
    return {
        "compaction_id": row.id,
        "db": row.dbname,
        "table": row.tablename,
        "partition": row.partitionname or None,
        "type": kinds.get(row.type, str(row.type)),
        "state": row.state,
        "worker_host": worker_host,
        "worker": worker,
        "enqueued_at": row.enqueueTime or None,
        "started_at": row.start or None,
        "duration_ms": row.endTime - row.start if row.endTime and row.start else None,
        "job_id": None if row.hadoopJobId in {None, "None"} else row.hadoopJobId,
        "progress": row.metaInfo,
        "error": row.errorMessage,
        "initiator_host": initiator_host,
        "initiator": initiator,
        "pool": row.poolName,
        "txn_id": row.txnId or None,
        "next_txn_id": row.nextTxnId or None,
        "committed_at": row.commitTime or None,
        "highest_write_id": row.hightestWriteId or None,
    }


def _host_and_thread(text: str | None) -> tuple[str | None, str | None]:
    """Split ``host-thread`` at its last dash, as Hive shows it."""
    host, dash, thread = (text or "").rpartition("-")
    return (host, thread) if dash else (text or None, None)
