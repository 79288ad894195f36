"""A read of a table with a quarter of its rows deleted, one delete event each, beside the rest as flat ORC files.

    python -m benchmarks.acid_deletes [--rows 20000000] [--runs 3]

It also prints the growth of the driver's heap over all runs (after a full garbage collection), and the size of
broadcasts.
"""

from pyspark.sql import DataFrame

from benchmarks.acid_matrix import QUERIES
from benchmarks.acid_session import HEAD, TABLE, Action, compared, options, with_store_sales
from metastore.spark.session import AcidSession

LIMIT = 2


def heap_mb(session: AcidSession) -> float:
    """Return the used heap of the driver, which in a local Spark is also the executor."""
    java = session.spark._jvm.java.lang  # noqa: SLF001
    for _ in range(3):
        java.System.gc()
    return java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed() / 2**20


def broadcast_mb(frame: DataFrame) -> float:
    """Return the size of a query's broadcasts, by Spark's own metric after the run."""
    counted = frame.groupBy().count()
    counted.collect()
    nodes, megabytes = [counted._jdf.queryExecution().executedPlan()], 0.0  # noqa: SLF001
    while nodes:
        node = nodes.pop()
        name = node.nodeName()
        if name == "BroadcastExchange":
            megabytes += node.metrics().apply("dataSize").value() / 2**20
        if name == "AdaptiveSparkPlan":
            nodes.append(node.executedPlan())
        if name.endswith("QueryStage"):
            nodes.append(node.plan())
        children = node.children()
        nodes += [children.apply(place) for place in range(children.size())]
    return megabytes


def main() -> None:
    """Measure the queries on the table with deletes and on the flat files, and print a line for each."""
    chosen = options(__doc__, 20_000_000, 3)
    with with_store_sales(chosen) as (session, work, rows):
        session.overwrite(TABLE, rows)
        gone = session.delete(TABLE, "pmod(hash(ss_ticket_number, ss_item_sk), 4) = 0")
        flat = work / "flat"
        session.table(TABLE).write.option("compression", "zlib").orc(str(flat))
        print(f"{gone} delete events\n\n{HEAD}")
        before = heap_mb(session)
        for title, (ask, times) in QUERIES.items():
            compared(
                title,
                Action(lambda ask=ask: ask(session.table(TABLE))),
                Action(lambda ask=ask: ask(session.spark.read.orc(str(flat)))),
                chosen.runs * times,
                LIMIT,
            )
        print(
            f"\nheap in use: {before:.0f} MB before, {heap_mb(session):.0f} MB after; broadcast: "
            f"{broadcast_mb(session.table(TABLE)):.1f} MB"
        )


if __name__ == "__main__":
    main()
