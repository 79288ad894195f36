"""Reads of an ACID table with more and more deltas, beside the same rows as flat ORC files in the same Spark.

    python -m benchmarks.acid_matrix [--rows 10000000] [--runs 5]

The states are those of Presto's benchmark of its reader: only a base; a delete delta above it; an insert delta as well;
five delete deltas; five of each. Every delta changes 1 % of the rows. The flat files hold the rows of that state. An
aggregate gets three times as many runs as a full scan, the selective predicate twenty times.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from benchmarks.acid_session import HEAD, TABLE, Action, compared, consume, options, with_store_sales
from metastore.spark.session import AcidSession


def scan(frame: DataFrame) -> None:
    """Read all rows."""
    consume(frame)


def aggregate(frame: DataFrame) -> list[Row]:
    """Return sums by store."""
    return frame.groupBy("ss_store_sk").agg(F.sum("ss_quantity"), F.sum("ss_net_paid")).sort("ss_store_sk").collect()


def selective(frame: DataFrame) -> list[Row]:
    """Return totals of a few tickets."""
    few = frame.where(F.col("ss_ticket_number").between(100_000, 100_100))
    return few.agg(F.count("*"), F.sum("ss_net_profit"), F.max("ss_sold_time_sk")).collect()


class Query(NamedTuple):
    """A query and its number of runs, as a multiple: runs of a short query differ most."""

    ask: Callable[[DataFrame], object]
    times: int


QUERIES = {
    "full scan": Query(scan, 1),
    "3-column aggregate": Query(aggregate, 3),
    "selective predicate": Query(selective, 20),
}


def delete(session: AcidSession, *rests: int) -> None:
    """Delete a hundredth of the rows for each of ``rests``."""
    for rest in rests:
        session.sql(f"DELETE FROM {TABLE} WHERE hash(ss_ticket_number, ss_item_sk) % 100 = {rest}")


def insert(session: AcidSession, rows: DataFrame, *rests: int) -> None:
    """Insert a hundredth of ``rows`` for each of ``rests``."""
    for rest in rests:
        session.insert(TABLE, rows.where(f"hash(ss_item_sk, ss_ticket_number) % 100 = {rest}").coalesce(2))


def compare(session: AcidSession, work: Path, runs: int, state: str, limit: float) -> None:
    """Measure each query on the ACID table and on the same rows as flat files, and print a line for each."""
    spark, flat = session.spark, work / "flat"
    shutil.rmtree(flat, ignore_errors=True)
    session.table(TABLE).write.option("compression", "zlib").orc(str(flat))
    for title, (ask, times) in QUERIES.items():

        def ours(ask=ask) -> object:
            return ask(session.table(TABLE))

        def theirs(ask=ask) -> object:
            return ask(spark.read.orc(str(flat)))

        if ours() != theirs():
            raise RuntimeError(f"{state}, {title}: the ACID table and the flat files do not say the same")
        compared(f"{state}: {title}", Action(ours), Action(theirs), runs * times, limit)


def main() -> None:
    """Measure the table state by state, with more and more deltas."""
    chosen = options(__doc__, 10_000_000, 5)
    with with_store_sales(chosen) as (session, work, rows):
        session.overwrite(TABLE, rows)
        print(HEAD)
        compare(session, work, chosen.runs, "only base", 1.05)
        delete(session, 1)
        compare(session, work, chosen.runs, "base + 1 delete", 1.1)
        insert(session, rows, 1)
        compare(session, work, chosen.runs, "base + 1 delete + 1 insert", 1.1)
        delete(session, 2, 3, 4, 5)
        compare(session, work, chosen.runs, "base + 5 deletes + 1 insert", 1.2)
        insert(session, rows, 2, 3, 4, 5)
        compare(session, work, chosen.runs, "base + 5 deletes + 5 inserts", 1.3)


if __name__ == "__main__":
    main()
