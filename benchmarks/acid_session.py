"""What the benchmarks of ACID tables share: a server and a Spark session beside it, and runs that alternate."""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark
from pyspark.sql import DataFrame

from benchmarks import peers
from benchmarks.acid_tables import CORES, spark_on
from metastore.spark import acid
from metastore.spark.session import AcidSession


class Action(NamedTuple):
    """One contestant's work, and what has to be put right after it, which does not count."""

    run: Callable[[], object]
    tidy: Callable[[], object] = lambda: None


@contextmanager
def lakehouse(settings: Mapping[str, str] | None = None) -> Iterator[tuple[AcidSession, Path]]:
    """A session of our server in a Spark of its own, and a folder for plain files."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        work.chmod(0o711)
        server, ready = peers.start_ours(work)
        try:
            spark = spark_on(ready["thrift"], work, settings)
            try:
                with acid(spark) as session:
                    yield session, work
            finally:
                spark.stop()
        finally:
            peers.end(server)


def options(about: str | None, rows: int, runs: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--runs", type=int, default=runs)
    return parser.parse_args()


def circumstances(rows: int, runs: int) -> str:
    return (f"{CORES} cores, load {os.getloadavg()[0]:.1f}, Spark {pyspark.__version__} local[{CORES}]; {rows} rows of "
            f"TPC-DS store_sales; median of {runs} alternating runs after one that does not count")


def alternating(actions: Mapping[str, Action], runs: int) -> dict[str, float]:
    """The median of each contestant's times; they take turns, and the first turn does not count, since it compiles."""
    found: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(runs + 1):
        for name, action in actions.items():
            begin = time.perf_counter()
            action.run()
            found[name].append(time.perf_counter() - begin)
            action.tidy()
    return {name: statistics.median(times[1:]) for name, times in found.items()}


def consume(frame: DataFrame) -> None:
    """Make every column of every row."""
    frame.write.format("noop").mode("overwrite").save()


def row(title: str, ours: float, peer: float, limit: float) -> str:
    """A line of a table: both times, the ratio, and whether the limit is kept."""
    ratio = ours / peer
    return f"| {title} | {ours:.2f} s | {peer:.2f} s | {ratio:.2f} | {limit:g} | {'yes' if ratio <= limit else 'no'} |"


HEAD = "| | ACID | plain ORC | ratio | at most | kept |\n|---|--:|--:|--:|--:|---|"
