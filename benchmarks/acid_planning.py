"""The planning of a read, from the table's name to the tasks: of 10,000 deltas, and of a small table.

    python -m benchmarks.acid_planning [--rows 10000] [--runs 3]

``--rows`` is the number of deltas. As many plain ORC directories are read in the same Spark; files are listed, and the
goal is 2 seconds. The deltas are made by hand, each a copy of one small file. The small table has one delta; beside it
is a plain table of Spark, whose plan may take 30 ms less.
"""

import os
import shutil
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks.acid_session import Action, alternating, lakehouse, options
from metastore.spark.session import AcidSession

TABLE = "bench.many"
GOAL = 2
SMALL_GOAL_MS = 30
SMALL_RUNS = 30


def planned(frame: DataFrame) -> None:
    """Plan a frame up to its tasks, and so up to its files: a physical plan alone does not look for these."""
    frame._jdf.queryExecution().toRdd().getNumPartitions()  # noqa: SLF001


def jobs(frame: DataFrame) -> int:
    """Return the number of Spark jobs so far."""
    return int(frame.sparkSession.sparkContext._jsc.sc().dagScheduler().nextJobId())  # noqa: SLF001


def compare_small(session: AcidSession) -> None:
    """Measure the planning of a read of ten rows, beside a plain table."""
    spark = session.spark
    spark.sql("CREATE TABLE bench.small (id BIGINT, note STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    spark.sql("INSERT INTO bench.small SELECT id, 'note' FROM range(10)")
    spark.sql("CREATE TABLE bench.plain USING orc AS SELECT * FROM bench.small")
    runs = alternating(
        {name: Action(lambda name=name: planned(spark.table(f"bench.{name}"))) for name in ("small", "plain")},
        SMALL_RUNS,
    )
    ours, plain = (1000 * run.seconds for run in runs.values())
    print(
        f"median of {SMALL_RUNS} alternating runs\n\n| | ACID | plain table | more by | at most | kept |\n"
        "|---|--:|--:|--:|--:|---|\n"
        f"| planning of a small table | {ours:.0f} ms | {plain:.0f} ms | {ours - plain:.0f} ms | {SMALL_GOAL_MS} ms | "
        f"{'yes' if ours - plain <= SMALL_GOAL_MS else 'no'} |"
    )


def main() -> None:
    """Measure the planning of reads of many deltas and of a small table."""
    chosen = options(__doc__, 10_000, 3)
    with lakehouse() as (session, _):
        spark = session.spark
        spark.sql("CREATE DATABASE bench")
        session.sql(
            f"CREATE TABLE {TABLE} (id BIGINT, note STRING) STORED AS ORC TBLPROPERTIES ('transactional'='true')"
        )
        session.insert(TABLE, spark.range(10).selectExpr("id", "'note' AS note").coalesce(1))
        location = Path(session.client.get_table("bench", "many").sd.location.removeprefix("file:"))
        [first] = location.glob("delta_*")
        types = session.client.types
        while (left := chosen.rows - sum(1 for _ in location.glob("delta_*"))) > 0:
            txns = session.client.open_txns(types.OpenTxnRequest(min(left, 1000), "bench", "bench")).txn_ids
            ids = session.client.allocate_table_write_ids(
                types.AllocateTableWriteIdsRequest(dbName="bench", tableName="many", txnIds=txns)
            ).txnToWriteIds
            for allocated in ids:
                delta = location / f"delta_{allocated.writeId:07d}_{allocated.writeId:07d}_0000"
                shutil.copytree(first, delta, copy_function=os.link)
                session.client.commit_txn(types.CommitTxnRequest(allocated.txnId))
        plain = [str(delta) for delta in sorted(location.glob("delta_*"))]
        frame = session.table(TABLE)
        before = jobs(frame)
        planned(frame)
        used = jobs(frame) - before
        runs = alternating(
            {
                "acid": Action(lambda: planned(session.table(TABLE))),
                "plain": Action(lambda: planned(spark.read.schema(frame.schema).orc(plain))),
            },
            chosen.runs,
        )
        print(
            f"{len(plain)} deltas, load {os.getloadavg()[0]:.1f}; median of {chosen.runs} alternating runs after one "
            "that does not count\n\n| | ACID | plain ORC | goal | kept |\n|---|--:|--:|--:|---|"
        )
        print(
            f"| planning | {runs['acid'].seconds:.2f} s | {runs['plain'].seconds:.2f} s | {GOAL} s | "
            f"{'yes' if runs['acid'].seconds < GOAL else 'no'} |"
        )
        print(f"\nfor one plan: {used} Spark jobs\n")
        compare_small(session)


if __name__ == "__main__":
    main()
