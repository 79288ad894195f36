"""Tables again, in names that Trino 380 reads: it has Hive 3.1's code, which knows no transactions in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from metastore.acid.snapshots import ValidTxnList, ValidWriteIdList
from metastore.acid.state import acid_state
from metastore.client import MetastoreClient
from metastore.files import Files
from tests.interop.tables.readers import described
from tests.support.acid.old_names import copied


@contextmanager
def in_old_names(client: MetastoreClient, name: str, place: Path) -> Iterator[str]:
    """Copy a table and its partitions as they are now, and yield the copy's name."""
    db, table = name.split(".")
    known = described(client, name)
    files, write_ids, txns = Files(), ValidWriteIdList.parse(known.write_ids), ValidTxnList.parse(known.txns)

    def moved(one: Any, number: int) -> Any:
        source = Path(urlsplit(one.sd.location).path)  # the names of partitions have their percent signs on disk
        state = acid_state(files.listing(str(source)), write_ids, txns, lambda path: files.read(f"{source}/{path}"))
        copied(source, place / str(number), state)
        found = deepcopy(one)
        found.tableName, found.sd.location = f"{table}_old", (place / str(number)).as_uri()
        return found

    original = client.get_table(db, table)
    of_table = deepcopy(original)
    of_table.tableName, of_table.sd.location = f"{table}_old", (place / "table").as_uri()
    if not of_table.partitionKeys:
        of_table = moved(original, 0)
    partitions = [moved(one, number) for number, one in enumerate(client.get_partitions(db, table, -1), 1)] if original.partitionKeys else []
    with registered(client, of_table, known.write_ids) as copy:
        client.add_partitions(partitions)
        yield copy


@contextmanager
def registered(client: MetastoreClient, table: Any, write_ids: str) -> Iterator[str]:
    """Register a table over existing files, with the history of its write ids; drop it at the end, but not its files."""
    yield register(client, table, write_ids)
    client.drop_table(table.dbName, table.tableName, False)


def register(client: MetastoreClient, table: Any, write_ids: str) -> str:
    """Create a table over existing files with the history of its write ids, and return its name. Aborted ids request a compaction."""
    client.create_table(table)
    client.repl_tbl_writeid_state(client.types.ReplTblWriteIdStateRequest(
        validWriteIdlist=write_ids, user="ann", hostName="host", dbName=table.dbName, tableName=table.tableName))
    return f"{table.dbName}.{table.tableName}"
