"""Calls per second of the Thrift server itself, without a database, beside Thrift's own thread-pool server in Python.

python -m benchmarks.thrift_server [--seconds 3] [--runs 3]
"""

import argparse
import multiprocessing
import os
import statistics
import sys
from collections.abc import Generator
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory
from thrift.server.TServer import TThreadPoolServer
from thrift.transport.TSocket import TServerSocket
from thrift.transport.TTransport import TBufferedTransportFactory

from benchmarks.cpu import cpu_seconds
from benchmarks.load import Measured, Tally, measure, request
from metastore.config import ServerSettings
from metastore.telemetry.calls import CallStats
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call, coalesced
from metastore.thrift_server.dispatch.registry import handlers_of
from metastore.thrift_server.handlers.fb303 import Fb303Handlers
from metastore.thrift_server.server import Server
from tests.support.plain_thrift import Processor

LOCK = ttypes.LockRequest(
    [ttypes.LockComponent(3, 2, "sales", "orders", operationType=1, isTransactional=True)], 1, "ann", "node1", "query-1"
)
TABLE = ttypes.Table(
    "orders",
    "sales",
    "ann",
    1_700_000_000,
    parameters={f"key{i}": "value" for i in range(10)},
    sd=ttypes.StorageDescriptor(
        [ttypes.FieldSchema(f"column{i}", "string", "what it means") for i in range(20)],
        "file:/warehouse/orders",
        serdeInfo=ttypes.SerDeInfo("", "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {}),
        parameters={},
    ),
    partitionKeys=[ttypes.FieldSchema("dt", "string")],
)


class Handlers:
    """Handlers that answer without work."""

    def get_all_databases(self, call: Call) -> list[str]:
        """Return one name."""
        return ["default"]

    def get_table(self, call: Call, db: str, name: str) -> ttypes.Table:
        """Return the same table for every name."""
        return TABLE

    @coalesced("locks")
    def lock(self, calls: list[Call]) -> list[ttypes.LockResponse]:
        """Grant every lock."""
        return [ttypes.LockResponse(1, 1) for _ in calls]


class PlainHandlers:
    """The same handlers for the peer."""

    def getStatus(self) -> int:
        """Return ALIVE."""
        return 2

    def get_all_databases(self) -> list[str]:
        """Return one name."""
        return ["default"]

    def get_table(self, db: str, name: str) -> ttypes.Table:
        """Return the same table for every name."""
        return TABLE

    def lock(self, request: ttypes.LockRequest) -> ttypes.LockResponse:
        """Grant the lock."""
        return ttypes.LockResponse(1, 1)


def serve_ours(pipe: Any) -> None:
    """Serve with our server until ``pipe`` says stop."""
    stats = CallStats()
    server = Server(ServerSettings(host="127.0.0.1", port=0), handlers_of(Handlers(), Fb303Handlers(stats, 1)), stats)
    pipe.send(server.start())
    pipe.recv()
    server.drain(0.2)


def serve_peer(pipe: Any) -> None:
    """Serve with Thrift's own server."""
    listener = TServerSocket("127.0.0.1", 0)
    listener.listen()
    server = TThreadPoolServer(
        Processor(PlainHandlers()), listener, TBufferedTransportFactory(), TBinaryProtocolAcceleratedFactory()
    )
    server.setNumThreads(64)
    pipe.send(listener.handle.getsockname()[:2])
    server.daemon = True
    listener.listen = lambda: None
    server.serve()


def measured(process: Any, address: Any, scenario: Any, clients: int, seconds: float) -> tuple[Measured, float]:
    """Run a scenario; return the result and the server's processor time per call in microseconds."""
    before = cpu_seconds(process.pid)
    run = measure(address, scenario, connections=clients, seconds=seconds, warmup=0)
    return run, (cpu_seconds(process.pid) - before) / run.calls * 1e6


def repeat(message: bytes, tally: Tally) -> Generator[bytes, bytes, None]:
    """Send the same message again and again."""
    while True:
        yield message
        tally.done()


def get_status(index: int, tally: Tally) -> Generator[bytes, bytes, None]:
    """Call getStatus again and again."""
    return repeat(request("getStatus"), tally)


def get_all_databases(index: int, tally: Tally) -> Generator[bytes, bytes, None]:
    """Call get_all_databases again and again."""
    return repeat(request("get_all_databases"), tally)


def lock(index: int, tally: Tally) -> Generator[bytes, bytes, None]:
    """Call lock again and again."""
    return repeat(request("lock", LOCK), tally)


def get_table(index: int, tally: Tally) -> Generator[bytes, bytes, None]:
    """Call get_table again and again."""
    return repeat(request("get_table", "sales", "orders"), tally)


SCENARIOS = {
    "getStatus (on the loop)": get_status,
    "get_all_databases (thread pool)": get_all_databases,
    "get_table, 20 columns (thread pool)": get_table,
    "lock (coalesced lane)": lock,
}


def main() -> None:
    """Measure both servers with each number of clients."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32])
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    runs = f"median of {options.runs} runs of {options.seconds} s"
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {runs}; cpu: of the server, per call")
    print(f"{'call':36}{'clients':>8}{'per s':>8}{'p50 ms':>8}{'p99 ms':>8}{'cpu us':>8}{'peer/s':>8}{'peer cpu':>9}")
    servers = []
    for serve in (serve_ours, serve_peer):
        here, there = context.Pipe()
        process = context.Process(target=serve, args=(there,), daemon=True)
        process.start()
        servers.append((process, here, here.recv()))
    for title, scenario in SCENARIOS.items():
        for clients in options.connections:
            ours, peers = (
                [measured(process, address, scenario, clients, options.seconds) for _ in range(options.runs)]
                for process, _, address in servers
            )
            rate, peer = (statistics.median(run.calls_per_second for run, _ in runs) for runs in (ours, peers))
            cost, peer_cost = (statistics.median(cost for _, cost in runs) for runs in (ours, peers))
            p50, p99 = (statistics.median(run.latency_ms(p) for run, _ in ours) for p in (50, 99))
            line = f"{title:36}{clients:8}{rate:8.0f}{p50:8.3f}{p99:8.3f}{cost:8.0f}{peer:8.0f}{peer_cost:9.0f}"
            print(line, flush=True)
    for process, _, _ in servers:
        process.terminate()


if __name__ == "__main__":
    main()
