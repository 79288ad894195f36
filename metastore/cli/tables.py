"""The command ``metastore table``: a table as the transactions see it."""

from typing import Any

import click

from metastore.acid.table_kinds import table_kind
from metastore.cli.check import check
from metastore.cli.compactions import table_argument
from metastore.cli.connected import connected, uri_option
from metastore.cli.output import form_option, show_fields, show_rows
from metastore.client import MetastoreClient
from metastore.ids import TableName


@click.group()
def table() -> None:
    """Show tables as the transactions see them."""


table.add_command(check)


@table.command(short_help="What it is, and what keeps it busy.")
@click.argument("name", metavar="DB.TABLE", type=table_argument)
@uri_option
@form_option
def describe(name: tuple[str, str], uri: str | None, form: str) -> None:
    """Describe a table: its kind, its location, its locks, its transactions and its compactions."""
    with connected(uri) as client:
        fields = _described(client, *name)
    show_fields(fields, form)


@table.command(short_help="Of which tables a read costs most beside the base.")
@click.option("--most", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many to show.")
@uri_option
@form_option
def top(most: int, uri: str | None, form: str) -> None:
    """Show the tables and partitions whose deltas cost readers most, as the Initiator measured them last.

    The score is the number of files in deltas, plus their size divided by 4 MiB: opening a file takes as long as
    reading that much. After a major compaction the score is 0. "usual" is the mean of earlier scores; the last twelve
    hours count for half of it. A score above "usual" means that reads cost more than before.
    """
    with connected(uri) as client:
        costs = client.metastore_table_top(most)
    columns = [
        "table",
        "partition",
        "score",
        "usual",
        "trend",
        "files",
        "bytes",
        "deltas",
        "obsolete_deltas",
        "obsolete_bytes",
    ]
    rows = [
        (
            str(TableName(cost.catName, cost.dbname, cost.tablename)),
            cost.partitionname,
            round(cost.score, 1),
            None if cost.usualScore is None else round(cost.usualScore, 1),
            None if cost.usualScore is None else round(cost.score - cost.usualScore, 1),
            cost.files,
            cost.bytes,
            cost.deltas,
            cost.obsoleteDeltas,
            cost.obsoleteBytes,
        )
        for cost in costs
    ]
    show_rows(columns, rows, form)


def _described(client: MetastoreClient, db: str, table_name: str) -> dict[str, Any]:
    types = client.types
    described = client.get_table(db, table_name)
    parameters = {key.lower(): value for key, value in (described.parameters or {}).items()}
    locks = client.show_locks(types.ShowLocksRequest(dbname=db, tablename=table_name)).locks
    compactions = client.show_compact(types.ShowCompactRequest(dbName=db, tbName=table_name, limit=-1)).compacts
    written = client.get_max_allocated_table_write_id(
        types.MaxAllocatedTableWriteIdRequest(dbName=db, tableName=table_name)
    ).maxWriteId
    [valid] = client.get_valid_write_ids(
        types.GetValidWriteIdsRequest(fullTableNames=[f"{described.dbName}.{described.tableName}"])
    ).tblValidWriteIds
    return {
        "table": f"{described.dbName}.{described.tableName}",
        "owner": described.owner,
        "type": described.tableType,
        "kind": str(table_kind(parameters)),
        "location": described.sd.location if described.sd else None,
        "columns": ", ".join(
            f"{column.name} {column.type}" for column in (described.sd.cols if described.sd else ()) or ()
        ),
        "partitioned_by": ", ".join(f"{key.name} {key.type}" for key in described.partitionKeys or ()) or None,
        "last_write_id": written,
        "open_or_aborted_write_ids": len(valid.invalidWriteIds),
        "locks": len(locks),
        "waiting_for_locks": sum(row.state == types.LockState.WAITING for row in locks),
        "compactions_pending": sum(row.state in {"initiated", "working", "ready for cleaning"} for row in compactions),
        "automatic_compaction": parameters.get("no_auto_compaction", "false").lower() != "true",
    }
