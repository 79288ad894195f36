"""What events of the catalog cost: the same calls of a server with events and of one without, in turns.

    python -m benchmarks.events [--rounds 3] [--seconds 2] [--only "create + drop"] [--listener DbNotificationListener]

Rows: create and drop of a table of ten columns; adding a thousand partitions; an Iceberg commit, which is lock,
get_table, alter_table and unlock; open and commit of a transaction; with one client and with eight. Both servers are on
one PostgreSQL. Goal: at least 0.85 of the rate without events. Beside the rate stands the processor time of server and
PostgreSQL for a call, which holds on a busy machine too.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.cpu import Meter
from benchmarks.peers import database, ours
from metastore.client import MetastoreClient
from metastore.db.embedded import EmbeddedPostgres
from metastore.thrift_gen.hive_metastore import ttypes

GOAL = 0.85
PARTITIONS = 1000
LISTENER = "hive.metastore.transactional.event.listeners"
COLUMNS = [ttypes.FieldSchema(f"column_{number}", "string", None) for number in range(10)]
Work = Callable[[MetastoreClient, str, int], None]


class Server(NamedTuple):
    """A server under measurement."""

    uri: str
    pid: int
    database_url: str


def descriptor(location: str | None = None) -> ttypes.StorageDescriptor:
    """Return a storage descriptor of text files."""
    return ttypes.StorageDescriptor(
        cols=COLUMNS,
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        serdeInfo=ttypes.SerDeInfo(None, "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {"serialization.format": "1"}),
    )


def table(name: str, *keys: str, **parameters: str) -> ttypes.Table:
    """Return a table with these partition keys."""
    return ttypes.Table(
        tableName=name,
        dbName="b",
        sd=descriptor(),
        tableType="EXTERNAL_TABLE",
        partitionKeys=[ttypes.FieldSchema(key, "string", None) for key in keys],
        parameters={"EXTERNAL": "TRUE", **parameters},
    )


def create_and_drop(client: MetastoreClient, mine: str, _number: int) -> None:
    """Create a table and drop it."""
    client.create_table(table(f"t{mine}"))
    client.drop_table("b", f"t{mine}", deleteData=False)


def add_partitions(client: MetastoreClient, mine: str, number: int) -> None:
    """Add partitions below a table that was made before the measurement."""
    client.add_partitions(
        [ttypes.Partition([f"{number}_{each}"], "b", f"p{mine}", sd=descriptor()) for each in range(PARTITIONS)]
    )


def iceberg_commit(client: MetastoreClient, mine: str, number: int) -> None:
    """Commit as Iceberg's HiveTableOperations does, with its parameters."""
    lock = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "b", f"i{mine}")
    held = client.lock(ttypes.LockRequest([lock], None, "u", "h"))
    old = client.get_table("b", f"i{mine}")
    old.parameters["previous_metadata_location"] = old.parameters.get("metadata_location", "")
    old.parameters["metadata_location"] = f"s3://bucket/warehouse/b/i{mine}/metadata/{number:05}-7d1c.metadata.json"
    client.alter_table("b", f"i{mine}", old)
    client.unlock(ttypes.UnlockRequest(held.lockid))


def open_and_commit(client: MetastoreClient, _mine: str, _number: int) -> None:
    """Open a transaction and commit it: no event is written by default."""
    client.commit_txn(ttypes.CommitTxnRequest(client.open_txns(ttypes.OpenTxnRequest(1, "u", "h")).txn_ids[0]))


ROWS: dict[str, Work] = {
    "create + drop": create_and_drop,
    f"add {PARTITIONS:,} partitions": add_partitions,
    "Iceberg commit": iceberg_commit,
    "open + commit": open_and_commit,
}


def measured(server: Server, work: Work, clients: int, seconds: float, first: int) -> tuple[float, float]:
    """Return calls per second of some clients, and milliseconds of processor time for a call.

    Each client is a thread, since it waits for the server most of the time.
    """
    done = [0] * clients
    meter = Meter(server.pid, server.database_url).start()
    ends_at = time.perf_counter() + seconds

    def run(index: int) -> None:
        with MetastoreClient(server.uri) as client:
            while time.perf_counter() < ends_at:
                work(client, str(index), first + done[index])
                done[index] += 1

    threads = [threading.Thread(target=run, args=(index,)) for index in range(clients)]
    began, before = time.perf_counter(), meter.read()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, spent = time.perf_counter() - began, meter.read().since(before)
    meter.cursor.connection.close()
    return sum(done) / took, (spent.server + spent.postgres) * 1000 / sum(done)


def main() -> int:
    """Measure each kind of call with and without events."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--only", default="", help="rows whose name has this text")
    parser.add_argument("--clients", default="1,8")
    parser.add_argument("--listener", default="CatalogEventListener", help="or DbNotificationListener")
    options = parser.parse_args()
    missed = 0
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory()))
        postgres = EmbeddedPostgres(work / "postgres", ends_with_us=True)
        postgres.start()
        running.callback(postgres.stop)
        servers = {}
        for name, listener in {"without": "", "with": options.listener}.items():
            (work / name).mkdir()
            url = database(postgres.tcp_url, f"events_{name}")
            address, pid = running.enter_context(ours(work / name, url, "--set", f"{LISTENER}={listener}"))
            servers[name] = Server(f"thrift://{address[0]}:{address[1]}", pid, url)
            with MetastoreClient(servers[name].uri) as client:
                client.create_database(ttypes.Database("b"))
                for index in range(8):
                    client.create_table(table(f"i{index}", table_type="ICEBERG"))
                    client.create_table(table(f"p{index}", "k"))
        print("| Calls | Clients | Without | With | Ratio | CPU without | CPU with | Ratio |\n" + "|---" * 8 + "|")
        first = 0
        for row, calls in ROWS.items():
            for clients in map(int, options.clients.split(",")):
                if options.only not in row:
                    continue
                figures: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
                for turn in range(options.rounds + 1):
                    for name in sorted(figures, reverse=bool(turn % 2)):
                        figure = measured(servers[name], calls, clients, options.seconds if turn else 0.5, first)
                        figures[name] += [figure] if turn else []  # the first turn warms up
                        first += 1_000_000
                (slow, dear), (fast, cheap) = (
                    map(statistics.median, zip(*figures[name], strict=True)) for name in ("with", "without")
                )
                missed += slow / fast < GOAL and cheap / dear < GOAL
                print(
                    f"| {row} | {clients} | {fast:,.1f}/s | {slow:,.1f}/s | {slow / fast:.2f} "
                    f"| {cheap:.2f} ms | {dear:.2f} ms | {cheap / dear:.2f} |",
                    flush=True,
                )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
