"""The time that forwarding adds to get_table at one client: the same call directly and through us, in turn, in one run.

    python -m benchmarks.upstream [--calls 2000] [--runs 5] [--upstream thrift://HOST:PORT --table db.name]

Without an upstream of your own, a server that answers a table of 20 columns from memory takes its place: it is the
fastest possible upstream, so the added time shows best. Goal: at most 0.2 ms.
"""

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.thrift_server import TABLE
from metastore.client import MetastoreClient
from metastore.config import ServerSettings, UpstreamSettings
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.dispatch.call import Call, immediate
from metastore.thrift_server.dispatch.registry import handlers_of
from metastore.thrift_server.server import Server
from metastore.thrift_server.upstream.endpoint import Upstream

GOAL_MS = 0.2


class Catalog:
    """Handlers that answer without work."""

    @immediate
    def get_table(self, call: Call, db: str, name: str) -> ttypes.Table:
        """Return the same table for every name."""
        return TABLE

    @immediate
    def set_ugi(self, call: Call, user: str, groups: list[str]) -> list[str]:
        """Return the groups."""
        return groups or []


class Ours:
    """Handlers of the server in front."""

    @immediate
    def set_ugi(self, call: Call, user: str, groups: list[str]) -> list[str]:
        """Return the groups."""
        return groups or []


def serve(concept: object, upstream: str, ready: Any) -> None:
    """Serve the methods of ``concept``, in front of ``upstream`` if it is given."""
    settings = ServerSettings(port=0)
    server = Server(
        settings,
        handlers_of(concept),
        upstream=(Upstream(UpstreamSettings(uris=(upstream,)), settings) if upstream else None),
    )
    ready.send("thrift://{}:{}".format(*server.start()))
    ready.recv()


@contextmanager
def process(concept: object, upstream: str = "") -> Iterator[str]:
    """Serve in a process of its own within the block."""
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(target=serve, args=(concept, upstream, there), daemon=True)
    child.start()
    try:
        yield here.recv()
    finally:
        child.kill()
        child.join()


def measured(client: MetastoreClient, name: tuple[str, str], calls: int) -> list[float]:
    """Call get_table and return the times in milliseconds."""
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        client.get_table(*name)
        times.append((time.perf_counter() - began) * 1000)
    return times


def compare(upstream: str, name: tuple[str, str], calls: int, runs: int) -> float:
    """Return the added milliseconds, by the medians; both ways take turns, so that both see the same machine."""
    with process(Ours(), upstream) as front, MetastoreClient(upstream) as direct, MetastoreClient(front) as through:
        for client in (direct, through):
            measured(client, name, 200)
        times: dict[str, list[float]] = {"direct": [], "through us": []}
        for run in range(runs):
            pairs = [("direct", direct), ("through us", through)]
            for label, client in pairs if run % 2 else pairs[::-1]:
                times[label] += measured(client, name, calls)
    for label, measurements in times.items():
        p99 = statistics.quantiles(measurements, n=100)[98]
        print(f"{label:<11} median {statistics.median(measurements):.3f} ms   p99 {p99:.3f} ms")
    return statistics.median(times["through us"]) - statistics.median(times["direct"])


def main() -> None:
    """Measure both ways and print what forwarding adds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--upstream", default="")
    parser.add_argument("--table", default="sales.orders")
    options = parser.parse_args()
    db, _, table = options.table.partition(".")
    if options.upstream:
        added = compare(options.upstream, (db, table), options.calls, options.runs)
    else:
        with process(Catalog()) as upstream:
            added = compare(upstream, (db, table), options.calls, options.runs)
    print(f"added       {added:.3f} ms (goal: at most {GOAL_MS} ms)")


if __name__ == "__main__":
    main()
