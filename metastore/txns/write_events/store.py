"""Rows of the files that transactions wrote, if the notification log is on: ``write_events``.

They belong to no event: a client that reads of a commit in the log asks for the files of its transaction. Written
before the commit, they need not wait for the disk: they reach the disk before the commit does.
"""

import json
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from metastore.db.arrays import columns
from metastore.db.engine import Database, PgTx
from metastore.db.statements import Statements
from metastore.ids import TableName

_SQL = Statements(__file__)

BATCH = 10_000

_UPSERT = _SQL.text("upsert")


class WriteEvent(NamedTuple):
    """A transaction's writes to a table or partition; the objects are as they were then, in Thrift's JSON."""

    txn_id: int
    name: TableName
    partition: str
    write_id: int
    files: tuple[str, ...]
    table_object: str
    partition_object: str | None = None


def upsert(pg: PgTx, events: Collection[WriteEvent]) -> None:
    """Add the files to those recorded of the transactions; each file only once."""
    keys = {(event.txn_id, event.name, event.partition) for event in events}
    if len(keys) < len(events):
        for event in events:
            upsert(pg, [event])
        return
    rows = [
        (
            event.txn_id,
            *event.name,
            event.partition,
            event.write_id,
            json.dumps(list(dict.fromkeys(event.files))),
            event.table_object,
            event.partition_object,
        )
        for event in sorted(events)
    ]
    pg.sql(_UPSERT, columns(rows, 9))


def select_of(db: Database, txn_id: int, database: str | None, table: str | None) -> list[WriteEvent]:
    """Return the writes of a transaction, by table and partition; None: any database, any table."""
    rows = db.once(
        """
        SELECT txn_id, catalog, db, "table", partition, write_id, files, table_object, partition_object
        FROM write_events WHERE txn_id = %(txn)s AND (%(db)s::text IS NULL OR db = %(db)s)
          AND (%(table)s::text IS NULL OR "table" = %(table)s)
        ORDER BY catalog, db, "table", partition""",
        {"txn": txn_id, "db": database, "table": table},
    )
    return [
        WriteEvent(txn, TableName(*name), partition, write_id, tuple(files), table_object, partition_object)
        for txn, *name, partition, write_id, files, table_object, partition_object in rows
    ]


def delete_before(pg: PgTx, before: datetime, limit: int = BATCH) -> int:
    """Forget the oldest writes from before an instant, up to a limit."""
    pg.sql(
        """
        DELETE FROM write_events WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM write_events WHERE at < %s ORDER BY at LIMIT %s FOR UPDATE SKIP LOCKED))""",
        (before, limit),
    )
    return pg.rowcount
