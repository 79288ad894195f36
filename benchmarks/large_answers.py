"""Answers with many partitions: how long they take, when their first byte is there, and what memory they leave behind.

    python -m benchmarks.large_answers [--partitions 10000] [--runs 5] [--no-peers]

Ours beside Hive's metastores 2.3.10 and 4.2.0 on one PostgreSQL, in turn within each row. A client sends the call and
takes the bytes without decoding them. ``x``: the faster peer's time by ours.
"""

import argparse
import socket
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import hive, peers
from benchmarks.load import Address, request, skipped_to_the_end
from benchmarks.transactions import own_postgres, settings
from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes

SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
BATCH = 1000
DAYS = 100
SD = ttypes.StorageDescriptor(
    cols=[ttypes.FieldSchema(f"column_{n}", "string", "") for n in range(20)],
    parameters={},
    inputFormat="org.apache.hadoop.mapred.TextInputFormat",
    outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    compressed=False,
    numBuckets=-1,
    bucketCols=[],
    sortCols=[],
    serdeInfo=ttypes.SerDeInfo("t", SERDE, {"serialization.format": "1"}),
)


class Server(NamedTuple):
    """A server of those that are compared."""

    address: Address
    pid: int

    def fill(self, count: int) -> float:
        """Make a table with so many partitions; seconds that adding them took."""

        def sd(location: str) -> ttypes.StorageDescriptor:
            fields = {name: getattr(SD, name) for name in SD.__slots__}
            return ttypes.StorageDescriptor(**{**fields, "location": location})

        with MetastoreClient(f"thrift://{self.address[0]}:{self.address[1]}") as client:
            client.create_database(ttypes.Database("bench"))
            place = client.get_database("bench").locationUri
            client.create_table(
                ttypes.Table(
                    "t",
                    "bench",
                    "ann",
                    sd=sd(f"{place}/t"),
                    parameters={"EXTERNAL": "TRUE"},
                    partitionKeys=[ttypes.FieldSchema("day", "string", ""), ttypes.FieldSchema("n", "string", "")],
                    tableType="EXTERNAL_TABLE",
                )
            )
            began = time.perf_counter()
            for start in range(0, count, BATCH):
                client.add_partitions(
                    [
                        ttypes.Partition(
                            [f"d{n % DAYS:02}", str(n)],
                            "bench",
                            "t",
                            1732333333,
                            0,
                            sd(f"{place}/t/{n}"),
                            {
                                "numFiles": "1",
                                "numRows": "100",
                                "rawDataSize": "123",
                                "totalSize": "12345",
                                "transient_lastDdlTime": "1732333333",
                            },
                        )
                        for n in range(start, min(count, start + BATCH))
                    ]
                )
            return time.perf_counter() - began

    @property
    def memory(self) -> int:
        """Resident, in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) >> 10


class Asker:
    """A client that sends one call again and again and takes the answers."""

    def __init__(self, server: Server, call: bytes, size: int = 0) -> None:
        """``size``: of the answer, in bytes; 0: unknown yet."""
        self._socket = socket.create_connection(server.address)
        self._call, self.size = call, size or self._sized(call)

    def _sized(self, call: bytes) -> int:
        self._socket.sendall(call)
        answer = b""
        while not answer or not skipped_to_the_end(answer):
            answer += self._socket.recv(1 << 24)
        return len(answer)

    def ask(self) -> tuple[float, float]:
        """Milliseconds until the first byte and until the last."""
        began = time.perf_counter()
        self._socket.sendall(self._call)
        buffer = bytearray(1 << 18)
        left, first = self.size, 0.0
        while left > 0:
            left -= self._socket.recv_into(buffer)
            first = first or time.perf_counter() - began
        return first * 1000, (time.perf_counter() - began) * 1000


def calls(count: int) -> dict[str, bytes]:
    """The rows: what is asked for."""
    names = [f"day=d{n % DAYS:02}/n={n}" for n in range(0, count, max(1, count // 1000))]
    return {
        f"get_partitions, {count}": request("get_partitions", "bench", "t", -1),
        f"get_partitions_by_names, {len(names)}": request("get_partitions_by_names", "bench", "t", names),
        f"get_partitions_by_filter, 1 % of {count}": request(
            "get_partitions_by_filter", "bench", "t", 'day = "d07"', -1
        ),
        f"get_partition_names, {count}": request("get_partition_names", "bench", "t", -1),
    }


def together(server: Server, call: bytes, size: int, clients: int) -> float:
    """Milliseconds per answer while so many clients ask twice each."""
    askers = [Asker(server, call, size) for _ in range(clients)]
    with ThreadPoolExecutor(clients) as threads:
        began = time.perf_counter()
        list(threads.map(lambda asker: [asker.ask() for _ in range(2)], askers))
        return (time.perf_counter() - began) * 1000 / (2 * clients)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="our server alone")
    options = parser.parse_args()
    with ExitStack() as running:
        work = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        work.chmod(0o711)  # PostgreSQL does not run as root
        url = own_postgres(work, running)
        servers = {"ours": Server(*running.enter_context(peers.ours(work / "ours", peers.database(url, "bench_ours"))))}
        for name, start in (("hive_2_3", hive.hive_2_3), ("hive_4_2", hive.hive_4_2)) if options.peers else ():
            try:
                servers[name] = Server(
                    *running.enter_context(start(work / name, peers.database(url, f"bench_{name}"), {}))
                )
            except hive.MissingError as missing:
                print(f"without {name}: {missing}")
        print(settings(url))
        added = {name: server.fill(options.partitions) for name, server in servers.items()}
        report("add_partitions, 1,000 at a time: s", added)
        before = {name: server.memory for name, server in servers.items()}
        for title, call in calls(options.partitions).items():
            compare(title, call, servers, options.runs)
        print(
            "| MB resident before, after |",
            " | ".join(f"{name} {before[name]}, {server.memory}" for name, server in servers.items()),
            "|",
        )


def compare(title: str, call: bytes, servers: dict[str, Server], runs: int) -> None:
    askers = {name: Asker(server, call) for name, server in servers.items()}
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    eight: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(runs):
        for name, server in servers.items():
            measured[name] += [askers[name].ask() for _ in range(3)]
            eight[name].append(together(server, call, askers[name].size, 8))
    report(f"{title}: ms, 1 client", {name: statistics.median(ms for _, ms in each) for name, each in measured.items()})
    report(
        f"{title}: ms to the first byte",
        {name: statistics.median(ms for ms, _ in each) for name, each in measured.items()},
    )
    report(f"{title}: ms per answer, 8 clients", {name: statistics.median(each) for name, each in eight.items()})


def report(title: str, figures: dict[str, Any]) -> None:
    others = [figure for name, figure in figures.items() if name != "ours"]
    ratio = f" | {min(others) / figures['ours']:.1f} x" if others else ""
    shown = " | ".join(f"{name} {figure:.1f}" for name, figure in figures.items())
    print(f"| {title} | {shown}{ratio} |", flush=True)


if __name__ == "__main__":
    main()
