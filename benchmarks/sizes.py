"""The memory and disk that a server and its PostgreSQL need for each connection, transaction, table and partition.

    python -m benchmarks.sizes [--scale 1.0]

Each row is measured by making many and dividing; bytes are those of tables with their indexes.
"""

import argparse
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from pathlib import Path

from benchmarks import peers
from benchmarks.startup import resident
from metastore.client import DomainClient
from metastore.client.client import parse_uris
from metastore.thrift_gen.hive_metastore import ttypes

KB = 1024
_BATCH = 1000


def stored(url: str) -> int:
    """Return the bytes of all tables and indexes."""
    peers.run_sql(url, "CHECKPOINT")
    [(size,)] = peers.run_sql(
        url,
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
    )
    return int(size)


@contextmanager
def measured(title: str, count: int, pid: int, url: str) -> Iterator[None]:
    """Print the need of each of the ``count`` objects made in the block."""
    before, memory, begin = stored(url), resident(pid), time.perf_counter()
    yield
    seconds = time.perf_counter() - begin
    size, grown = (stored(url) - before) / count, (resident(pid) - memory) * KB / count
    print(f"| {title} | {count:,} | {size:,.0f} bytes | {grown:.2f} KB | {count / seconds:,.0f} |", flush=True)


def table(name: str, keys: int = 0) -> ttypes.Table:
    """Return a table with twenty columns."""
    orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
    columns = [ttypes.FieldSchema(f"column_{number}", "string", "what it is") for number in range(20)]
    storage = ttypes.StorageDescriptor(
        cols=columns,
        inputFormat=f"{orc}InputFormat",
        outputFormat=f"{orc}OutputFormat",
        serdeInfo=ttypes.SerDeInfo(serializationLib=f"{orc}Serde", parameters={}),
        parameters={},
    )
    return ttypes.Table(
        tableName=name,
        dbName="sizes",
        sd=storage,
        partitionKeys=[ttypes.FieldSchema("day", "string")][:keys],
        tableType="MANAGED_TABLE",
        parameters={"transactional": "true"},
    )


def partitions(client: DomainClient, count: int) -> None:
    """Add partitions to one table, in batches; statistics as Hive writes them."""
    sd = client.get_table("sizes", "partitioned").sd
    for first in range(0, count, _BATCH):
        rows = []
        for number in range(first, min(first + _BATCH, count)):
            own = copy(sd)
            own.location = f"{sd.location}/day={number}"
            rows.append(
                ttypes.Partition(
                    values=[str(number)],
                    dbName="sizes",
                    tableName="partitioned",
                    sd=own,
                    parameters={"numFiles": "1", "totalSize": "1000000", "numRows": "10000"},
                )
            )
        client.add_partitions(rows)


def writes(client: DomainClient, count: int) -> None:
    """Run transactions that lock, write and commit."""
    for _ in range(count):
        [txn] = client.open_txns(ttypes.OpenTxnRequest(1, "ann", "here")).txn_ids
        client.allocate_table_write_ids(ttypes.AllocateTableWriteIdsRequest("sizes", "t0", txnIds=[txn]))
        component = ttypes.LockComponent(
            ttypes.LockType.SHARED_WRITE,
            ttypes.LockLevel.TABLE,
            "sizes",
            "t0",
            operationType=ttypes.DataOperationType.INSERT,
            isTransactional=True,
        )
        client.lock(ttypes.LockRequest([component], txn, "ann", "here"))
        client.commit_txn(ttypes.CommitTxnRequest(txn))


def repeated(call: Callable[[int], object], count: int) -> None:
    """Call ``call`` with each number below ``count``."""
    for number in range(count):
        call(number)


def main() -> None:
    """Measure what each kind of object takes and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="how many of each, beside 1,000 tables")
    scale = parser.parse_args().scale
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as held:
        process, said = peers.start_ours(Path(folder), "--no-loops", "--set", "hive.max.open.txns=1000000")
        held.callback(peers.end, process)
        pid, url = process.pid, said["database_url"]
        client = held.enter_context(DomainClient(said["thrift"], timeout_s=600))
        client.create_database(ttypes.Database(name="sizes"))
        client.create_table(table("partitioned", keys=1))
        print("| | how many | stored, each | memory of the server, each | a second |\n|---|--:|--:|--:|--:|")
        some = int(1000 * scale)
        [address] = parse_uris(said["thrift"])
        with measured("idle connection", some, pid, url):
            for _ in range(some):
                held.enter_context(socket.create_connection(address))
        with measured("table, 20 columns", some, pid, url):
            repeated(lambda number: client.create_table(table(f"t{number}")), some)
        with measured("partition of such a table", 20 * some, pid, url):
            partitions(client, 20 * some)
        with measured("open transaction", 50 * some, pid, url):
            repeated(lambda _: client.open_txns(ttypes.OpenTxnRequest(_BATCH, "ann", "here")), 50 * some // _BATCH)
        with measured("writing transaction, committed, not compacted yet", 2 * some, pid, url):
            writes(client, 2 * some)


if __name__ == "__main__":
    main()
