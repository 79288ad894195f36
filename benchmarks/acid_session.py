"""Shared parts of the benchmarks of ACID tables: a server with a Spark session beside it, and alternating runs."""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark
from pyspark.sql import DataFrame

from benchmarks import peers
from benchmarks.acid_tables import CORES, spark_on
from benchmarks.cpu import tree_seconds
from benchmarks.store_sales import COLUMNS, store_sales
from metastore.spark import acid
from metastore.spark.session import AcidSession

TABLE = "bench.store_sales"


class Action(NamedTuple):
    """A contestant's work, and the clean-up after it, which is not measured."""

    run: Callable[[], object]
    tidy: Callable[[], object] = lambda: None


class Cost(NamedTuple):
    """The cost of a run."""

    seconds: float
    """Seconds by the clock."""
    cpu: float
    """Processor seconds of Spark, of Python, and of the metastore together with its PostgreSQL."""


@contextmanager
def lakehouse(
    settings: Mapping[str, str] | None = None, server_options: Sequence[str] = ()
) -> Iterator[tuple[AcidSession, Path]]:
    """Open a session of our server in a Spark of its own, and a folder for plain files and the server's ready file."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        work.chmod(0o711)
        server, ready = peers.start_ours(work, *server_options)
        try:
            spark = spark_on(ready["thrift"], work, settings)
            try:
                with acid(spark) as session:
                    yield session, work
            finally:
                spark.stop()
        finally:
            peers.end(server)


@contextmanager
def with_store_sales(
    chosen: argparse.Namespace, settings: Mapping[str, str] | None = None, server_options: Sequence[str] = ()
) -> Iterator[tuple[AcidSession, Path, DataFrame]]:
    """Open a lakehouse with the rows of store_sales and an empty ACID table for them; print the circumstances."""
    with lakehouse(settings, server_options) as (session, work):
        rows = store_sales(session.spark, chosen.rows)
        print(circumstances(rows.count(), chosen.runs))
        session.spark.sql("CREATE DATABASE bench")
        create_table(session)
        yield session, work, rows


def create_table(session: AcidSession) -> None:
    """Create the ACID table of the benchmarks."""
    session.sql(f"CREATE TABLE {TABLE} ({COLUMNS}) STORED AS ORC TBLPROPERTIES ('transactional'='true')")


def options(about: str | None, rows: int, runs: int, more: Mapping[str, str] | None = None) -> argparse.Namespace:
    """Parse the options. ``more``: further options, each with its description."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, what in (more or {}).items():
        parser.add_argument(name, help=what)
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--runs", type=int, default=runs)
    return parser.parse_args()


def circumstances(rows: int, runs: int) -> str:
    """Return the sentence that says how and with what was measured."""
    return (
        f"{CORES} cores, load {os.getloadavg()[0]:.1f}, Spark {pyspark.__version__} local[{CORES}]; {rows} rows of "
        f"TPC-DS store_sales; medians of {runs} alternating runs, and of the ratios of neighbours, after one that "
        "does not count"
    )


def taken(actions: Mapping[str, Action], runs: int) -> dict[str, list[Cost]]:
    """Return the costs of each contestant's runs. They take turns; the first turn compiles, and does not count."""
    by_action: dict[str, list[Cost]] = {name: [] for name in actions}
    for _ in range(runs + 1):
        for name, action in actions.items():
            begin, spent = time.perf_counter(), tree_seconds(os.getpid())
            action.run()
            by_action[name].append(Cost(time.perf_counter() - begin, tree_seconds(os.getpid()) - spent))
            action.tidy()
    return {name: costs[1:] for name, costs in by_action.items()}


def alternating(actions: Mapping[str, Action], runs: int) -> dict[str, Cost]:
    """Return the medians of each contestant's runs."""
    return {name: _median(costs) for name, costs in taken(actions, runs).items()}


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def compared(title: str, ours: Action, plain: Action, runs: int, limit: float) -> None:
    """Print a line of the table: both costs, their ratios, and ``yes`` if the limit is kept.

    The limit is for elapsed time. A ratio is the median of the ratios of neighbouring runs: a shared machine is slower
    for some seconds and then faster again, by more than the contestants differ, but for both alike.
    """
    ours_took, plain_took = taken({"acid": ours, "plain": plain}, runs).values()
    pairs = [*zip(ours_took, plain_took, strict=True), *zip(ours_took[1:], plain_took, strict=False)]
    ratios = Cost(*(statistics.median(base[at] / other[at] for base, other in pairs) for at in (0, 1)))
    mine, theirs = _median(ours_took), _median(plain_took)
    print(
        f"| {title} | {mine.seconds:.2f} s | {theirs.seconds:.2f} s | {ratios.seconds:.2f} | {mine.cpu:.2f} s "
        f"| {theirs.cpu:.2f} s | {ratios.cpu:.2f} | {limit:g} | {'yes' if ratios.seconds <= limit else 'no'} |",
        flush=True,
    )


def consume(frame: DataFrame) -> None:
    """Read every column of every row."""
    frame.write.format("noop").mode("overwrite").save()


HEAD = (
    "| | ACID | plain ORC | ratio | ACID, CPU | plain, CPU | ratio | at most | kept |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|---|"
)
