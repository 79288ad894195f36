"""The commands ``metastore show transactions | locks | compactions | deadlocks``, with Hive's columns.

People see Hive's headings; programs (``-o json``, ``-o yaml``) get one field per fact, named in lower snake case.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from metastore.cli.connected import connected, instant, repeated, uri_option, watch_option
from metastore.cli.output import form_option, show_rows
from metastore.client.compactions import compaction_type
from metastore.client.shown import compaction_rows, lock_rows, transaction_rows
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
    "progress": "Meta info",
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
    """Show transactions, locks, compactions and deadlocks."""


@show.command(short_help="Open and aborted transactions.")
@click.option("--state", type=click.Choice(["open", "aborted"]), help="Only transactions in this state.")
@click.option("--user", help="Only transactions of this user.")
@uri_option
@form_option
@watch_option
def transactions(uri: str | None, form: str, state: str | None, user: str | None, every: float, *, watch: bool) -> None:
    """Show open transactions, and aborted transactions that have left something to clean up."""
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
    """Show locks that are held, and requests that wait, with their blockers."""
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
    """Show compactions that wait or run, and the last that ended."""
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
            type=compaction_type(kind) if kind else None,
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
    """Show circles of waits that were ended by aborting one of their transactions, latest first."""
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


def _print(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]], form: str) -> None:
    headings: Sequence[str] = list(columns.values() if form == "table" else columns)
    show_rows(headings, [[_shown(name, row[name]) for name in columns] for row in rows], form)


def _shown(name: str, value: Any) -> Any:
    return instant(value) if name.endswith("_at") else value
