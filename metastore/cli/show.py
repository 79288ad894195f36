"""``metastore show transactions | locks | compactions | deadlocks``: what is going on, with Hive's columns.

People see Hive's headings; programs (``-o json``, ``-o yaml``) get one field per fact, named in lower snake case.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from metastore.cli.connected import connected, instant, repeated, uri_option, watch_option
from metastore.cli.output import form_option, show_rows
from metastore.client import MetastoreClient
from metastore.partition_names import canonical

TRANSACTION_COLUMNS = {
    "txn_id": "Transaction ID",
    "state": "Transaction State",
    "started_at": "Started Time",
    "last_heartbeat_at": "Last Heartbeat Time",
    "user": "User",
    "host": "Hostname",
    "agent_info": "Agent Info",
}
LOCK_COLUMNS = {
    "lock_id": "Lock ID",
    "db": "Database",
    "table": "Table",
    "partition": "Partition",
    "state": "State",
    "blocked_by": "Blocked By",
    "type": "Type",
    "txn_id": "Transaction ID",
    "last_heartbeat_at": "Last Heartbeat",
    "acquired_at": "Acquired At",
    "user": "User",
    "host": "Hostname",
    "agent_info": "Agent Info",
}
COMPACTION_COLUMNS = {
    "compaction_id": "CompactionId",
    "db": "Database",
    "table": "Table",
    "partition": "Partition",
    "type": "Type",
    "state": "State",
    "worker_host": "Worker host",
    "worker": "Worker",
    "enqueued_at": "Enqueue Time",
    "started_at": "Start Time",
    "duration_ms": "Duration(ms)",
    "job_id": "HadoopJobId",
    "error": "Error message",
    "initiator_host": "Initiator host",
    "initiator": "Initiator",
    "pool": "Pool name",
    "txn_id": "TxnId",
    "next_txn_id": "Next TxnId",
    "committed_at": "Commit Time",
    "highest_write_id": "Highest WriteId",
}


@click.group()
def show() -> None:
    """Show what is going on: transactions, locks, compactions, deadlocks."""


@show.command(short_help="Open and aborted transactions.")
@click.option("--state", type=click.Choice(["open", "aborted"]), help="Only transactions in this state.")
@click.option("--user", help="Only transactions of this user.")
@uri_option
@form_option
@watch_option
def transactions(uri: str | None, form: str, state: str | None, user: str | None, every: float, *, watch: bool) -> None:
    """Open transactions, and aborted transactions that have left something to clean up."""
    with connected(uri) as client:

        def once() -> None:
            rows = transaction_rows(client)
            _print(
                TRANSACTION_COLUMNS,
                (row for row in rows if state in {None, row["state"].lower()} and user in {None, row["user"]}),
                form,
            )

        repeated(once, watch=watch, every=every)


@show.command(short_help="Locks and who waits for them.")
@click.option("--db", help="Only locks on this database and what is in it.")
@click.option("--table", help="Only locks on this table and its partitions.")
@click.option("--partition", metavar="KEY=VALUE/...", help="Only locks on this partition.")
@click.option("--txn", type=int, help="Only locks of this transaction; 0: of none.")
@click.option("--state", type=click.Choice(["acquired", "waiting"]), help="Only locks in this state.")
@uri_option
@form_option
@watch_option
def locks(
    uri: str | None,
    form: str,
    db: str | None,
    table: str | None,
    partition: str | None,
    txn: int | None,
    state: str | None,
    every: float,
    *,
    watch: bool,
) -> None:
    """Locks that are held and requests that wait, with what they wait for."""
    with connected(uri) as client:

        def once() -> None:
            rows = lock_rows(
                client,
                client.types.ShowLocksRequest(
                    dbname=db, tablename=table, partname=partition and canonical(partition), txnid=txn
                ),
            )
            _print(LOCK_COLUMNS, (row for row in rows if state in {None, row["state"].lower()}), form)

        repeated(once, watch=watch, every=every)


@show.command(short_help="The compaction queue and its history.")
@click.option("--id", "compaction_id", type=int, help="Only the compaction with this id.")
@click.option("--db", help="Only compactions in this database.")
@click.option("--table", help="Only compactions of this table.")
@click.option("--partition", metavar="KEY=VALUE/...", help="Only compactions of this partition.")
@click.option("--type", "kind", type=click.Choice(["minor", "major", "rebalance"]), help="Only this type.")
@click.option("--state", help="Only this state, for instance: initiated, working, failed.")
@click.option("--pool", help="Only compactions of this pool of workers.")
@click.option("--order-by", metavar="COLUMN [DESC], ...", help="By what; without it what happened last comes first.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@uri_option
@form_option
@watch_option
def compactions(
    uri: str | None,
    form: str,
    compaction_id: int | None,
    db: str | None,
    table: str | None,
    partition: str | None,
    kind: str | None,
    state: str | None,
    pool: str | None,
    order_by: str | None,
    limit: int | None,
    every: float,
    *,
    watch: bool,
) -> None:
    """Compactions that wait or run, and the last that ended."""
    with connected(uri) as client:
        types = client.types
        request = types.ShowCompactRequest(
            id=compaction_id,
            dbName=db,
            tbName=table,
            partName=partition,
            poolName=pool,
            state=state,
            order=order_by,
            limit=limit or -1,
            type=getattr(types.CompactionType, kind.upper()) if kind else None,
        )

        def once() -> None:
            _print(COMPACTION_COLUMNS, compaction_rows(client, request), form)

        repeated(once, watch=watch, every=every)


@show.command(short_help="Deadlocks that were ended.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@uri_option
@form_option
@watch_option
def deadlocks(uri: str | None, form: str, limit: int, every: float, *, watch: bool) -> None:
    """Circles of waits that were ended by aborting a transaction of theirs, latest first."""
    with connected(uri) as client:

        def once() -> None:
            show_rows(
                ["found_at", "victim_txn_id", "explanation"],
                [
                    (instant(deadlock.foundAt), deadlock.victim, deadlock.explanation)
                    for deadlock in client.metastore_show_deadlocks(limit)
                ],
                form,
            )

        repeated(once, watch=watch, every=every)


def transaction_rows(client: MetastoreClient) -> list[dict[str, Any]]:
    """Open and aborted transactions, by the names in TRANSACTION_COLUMNS."""
    state_names = names(client.types.TxnState)
    return [
        {
            "txn_id": info.id,
            "state": state_names.get(info.state, str(info.state)),
            "started_at": instant(info.startedTime),
            "last_heartbeat_at": instant(info.lastHeartbeatTime),
            "user": info.user,
            "host": info.hostname,
            "agent_info": info.agentInfo,
        }
        for info in client.get_open_txns_info().open_txns
    ]


def lock_rows(client: MetastoreClient, request: Any) -> list[dict[str, Any]]:
    """Locks, by the names in LOCK_COLUMNS."""
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
            "last_heartbeat_at": instant(row.lastheartbeat),
            "acquired_at": instant(row.acquiredat),
            "user": row.user,
            "host": row.hostname,
            "agent_info": row.agentInfo,
        }
        for row in client.show_locks(request).locks
    ]


def compaction_rows(client: MetastoreClient, request: Any) -> list[dict[str, Any]]:
    """Compactions, by the names in COMPACTION_COLUMNS."""
    kinds = names(client.types.CompactionType)
    return [_compaction(row, kinds) for row in client.show_compact(request).compacts]


def names(enum: Any) -> Mapping[int, str]:
    """Numbers and names of a Thrift enum."""
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
        "enqueued_at": instant(row.enqueueTime),
        "started_at": instant(row.start),
        "duration_ms": row.endTime - row.start if row.endTime and row.start else None,
        "job_id": None if row.hadoopJobId in {None, "None"} else row.hadoopJobId,
        "error": row.errorMessage,
        "initiator_host": initiator_host,
        "initiator": initiator,
        "pool": row.poolName,
        "txn_id": row.txnId or None,
        "next_txn_id": row.nextTxnId or None,
        "committed_at": instant(row.commitTime),
        "highest_write_id": row.hightestWriteId or None,
    }


def _host_and_thread(text: str | None) -> tuple[str | None, str | None]:
    """``host-thread`` split at its last dash, as Hive shows it."""
    host, dash, thread = (text or "").rpartition("-")
    return (host, thread) if dash else (text or None, None)


def _print(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]], form: str) -> None:
    headings: Sequence[str] = list(columns.values() if form == "table" else columns)
    show_rows(headings, [[row[name] for name in columns] for row in rows], form)
