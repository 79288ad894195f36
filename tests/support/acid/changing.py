"""Rows of an ACID table changed by their ROW__IDs in a transaction, whose files are written here: for tests without Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import orc

from metastore.acid.bucket import encode
from metastore.acid.events import DELETE_EVENT, EVENT_COLUMNS, INSERT_EVENT
from metastore.acid.names import VERSION_FILE, VERSION_TEXT
from metastore.client import MetastoreClient, TxnManager
from metastore.client.lock_plan import Kind, Output, Target, statement_locks
from metastore.streaming.table import connected

_TYPES = (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64())


def change(client: MetastoreClient, name: str, *, update: Sequence[Mapping[str, Any]] = (),
           delete: Sequence[Mapping[str, Any]] = ()) -> None:
    """Change rows of a table without partitions; each has ROW__ID, those to be updated all columns. All are of bucket 0."""
    db, table = name.split(".")
    with connected(name, None, client) as (own, described), TxnManager(own).transaction() as txn:
        txn.lock(statement_locks(outputs=[Output(Target(db, table), Kind.UPDATE)]))
        write_id, root = txn.write_id(db, table), Path(described.location.removeprefix("file:"))

        def write(prefix: str, events: list[tuple[Any, ...]]) -> None:
            directory = root / f"{prefix}_{write_id:07}_{write_id:07}_0000"
            directory.mkdir()
            (directory / VERSION_FILE).write_bytes(VERSION_TEXT)
            columns = [pa.array(values, kind) for values, kind in zip(zip(*events, strict=True), (*_TYPES, described.row_type), strict=True)]
            orc.write_table(pa.table(columns, names=[*EVENT_COLUMNS]), str(directory / "bucket_00000"))

        write("delete_delta", [(DELETE_EVENT, *row["ROW__ID"], write_id, None)
                               for row in sorted([*update, *delete], key=lambda row: row["ROW__ID"])])
        if update:
            write("delta", [(INSERT_EVENT, write_id, encode(0), number, write_id, dict(row)) for number, row in enumerate(update)])
    own.close()
