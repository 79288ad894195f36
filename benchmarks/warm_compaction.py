"""A small compaction, from the request to its commit: the first of a Worker, and those behind it.

    python -m benchmarks.warm_compaction [--tables 12] [--deltas 10] [--megabytes 1]

A server with one Worker, with default settings. Each table has rows of random words in as many deltas; the compactions
are major ones, requested one after the other. The same runs again with a new Spark for each compaction
(metastore.compactor.spark.idle=0). Processor seconds are those of server, PostgreSQL and a kept Spark together: they
are valid on a busy machine, too.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
import pyspark

from benchmarks import peers
from benchmarks.cpu import tree_seconds
from benchmarks.streaming import create, inputs
from metastore.client import MetastoreClient
from metastore.client.compactions import DONE, PENDING, compaction_type
from metastore.streaming import connect

_ROW_BYTES = 1000
_LOOK_S = 0.005


class Took(NamedTuple):
    """The seconds of a compaction."""

    whole: float
    """The seconds from the request to a table that readers find compacted."""
    waited: float
    """The part of these until a Worker took it."""
    cpu: float
    """The processor seconds."""


def prepared(client: MetastoreClient, tables: int, deltas: int, rows: int) -> list[str]:
    """Create tables of the database ``bench``, with their deltas; return their names."""
    blocks = inputs(deltas * rows, _ROW_BYTES)[0].blocks
    whole = blocks[0].__class__.from_batches([batch for block in blocks for batch in block.to_batches()])
    names = [f"events_{number}" for number in range(tables)]
    create(client, *names)
    for name in names:
        for number in range(deltas):
            with connect(f"bench.{name}", client=client, transactions_per_batch=1) as connection:
                connection.begin_transaction()
                connection.write(whole.slice(number * rows, rows))
                connection.commit_transaction()
    return names


def compacted(client: MetastoreClient, table: str, server: int) -> Took:
    """Request a compaction of ``table`` and wait for its end. Raises: SystemExit if it fails."""
    types, begin, spent = client.types, time.perf_counter(), tree_seconds(server)
    request = types.CompactionRequest(dbname="bench", tablename=table, type=compaction_type("major"))
    wanted = types.ShowCompactRequest(id=client.compact2(request).id)
    while (row := client.show_compact(wanted).compacts[0]).state in PENDING:
        time.sleep(_LOOK_S)
    if row.state not in DONE:
        raise SystemExit(f"The compaction of {table} ended as {row.state}: {row.errorMessage}")
    return Took(time.perf_counter() - begin, (row.start - row.enqueueTime) / 1000, tree_seconds(server) - spent)


def resident(pid: int) -> float:
    """Return the megabytes of the processes that a server has started to compact."""
    children = psutil.Process(pid).children(recursive=True)
    sparks = {child for child in children if any("metastore.spark.compaction" in word for word in child.cmdline())}
    sparks |= {below for spark in sparks for below in spark.children(recursive=True)}
    return sum(spark.memory_info().rss for spark in sparks) / 1e6


def row(title: str, took: Sequence[Took], *, is_kept: bool) -> str:
    """Return the line of some compactions."""
    whole = [each.whole for each in took]
    figures = f"{statistics.median(whole):.2f} | {min(whole):.2f} | {max(whole):.2f}"
    waited, cpu = (statistics.median(each) for each in ([one.waited for one in took], [one.cpu for one in took]))
    return f"| {title} | {len(took)} | {figures} | {waited:.3f} | {f'{cpu:.1f}' if is_kept else '-'} |"


def main() -> None:
    """Measure compactions one after the other, with and without a kept Spark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=12)
    parser.add_argument("--deltas", type=int, default=10)
    parser.add_argument("--megabytes", type=float, default=1.0)
    chosen = parser.parse_args()
    rows = max(1, int(chosen.megabytes * 1e6 / _ROW_BYTES / chosen.deltas))
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Spark {pyspark.__version__} local[2]; "
        f"{chosen.deltas} deltas of {rows} rows of {_ROW_BYTES} bytes each\n\n"
        "| | compactions | s | least | most | of these until taken | processor, s |\n|---|--:|--:|--:|--:|--:|--:|"
    )
    for title, settings in (("kept", ()), ("a Spark for each", ("--set", "metastore.compactor.spark.idle=0"))):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            work = Path(folder)
            work.chmod(0o711)
            server, ready = peers.start_ours(work, "--set", "hive.compactor.initiator.on=false", *settings)
            try:
                with MetastoreClient(ready["thrift"]) as client:
                    names = prepared(client, chosen.tables if not settings else 3, chosen.deltas, rows)
                    took = [compacted(client, name, server.pid) for name in names]
                print(row(f"{title}: the first", took[:1], is_kept=not settings))
                print(row(f"{title}: the second", took[1:2], is_kept=not settings))
                print(row(f"{title}: all behind it", took[2:], is_kept=not settings), flush=True)
                print(f"Memory of what compacts, {title}: {resident(server.pid):.0f} MB", flush=True)
            finally:
                peers.end(server)


if __name__ == "__main__":
    main()
