"""A writer that is not Spark and fails after its files have their names, as Hive's does: nobody may ever read them.

Its rows are those of another delta, so that it needs no Java: whoever reads them has them twice.
"""

import shutil
from contextlib import closing
from pathlib import Path
from random import Random

from metastore.acid.names import DeltaName, parse_directory
from metastore.acid_tables.table import AcidTable
from metastore.client import DomainClient, TxnManager
from metastore.client.lock_plan import Kind, Output, statement_locks, target_of
from metastore.files import local_path
from metastore.ids import table_name

TABLES = ("flat", "accounts")


def abandon(uris: str, random: Random) -> str:
    """Write a delta and abort, or vanish: what it did. Raises: MetastoreError, TException, OSError."""
    table = random.choice(TABLES)
    client = DomainClient(uris, user="soak-abandoner")
    with closing(client):
        described = client.get_table("soak", table)
        directory = Path(local_path(described.sd.location))
        txn = TxnManager(client).open(agent="soak abandoner")
        try:
            txn.lock(statement_locks((), [Output(target_of(AcidTable.of(table_name("soak", table), described), is_written=True), Kind.INSERT)]))
            write_id = txn.write_id("soak", table)
            deltas = [child for child in directory.iterdir()
                      if isinstance(name := parse_directory(child.name), DeltaName) and not name.is_delete]
            if not deltas:
                return "nothing to write again"
            shutil.copytree(random.choice(deltas), directory / str(DeltaName(write_id, write_id, 0)))
        finally:
            if random.random() < 0.7:
                txn.abort_quietly()
            else:
                txn._heartbeater.stop()  # as if its process were gone: it is aborted when its time is over
    return "writes that were aborted"
