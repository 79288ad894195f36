"""One ACID read and one major compaction of a million rows, beside a plain ORC read and a plain ORC rewrite in Spark.

    python -m benchmarks.acid_tables [--rows 1000000] [--runs 3]

The table: one large insert, then two updates of 1 % of the rows each and one delete of 1 %, so that a reader merges
three delete deltas. The plain files hold the remaining rows, in as many files, with the same compression (zlib).
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from benchmarks import peers
from metastore.acid_tables.table import AcidTable
from metastore.compaction.working.job_specification import CompactionJobResult, CompactionJobSpec
from metastore.ids import TableName
from metastore.spark import acid
from metastore.spark.compaction.job import run
from metastore.spark.session import AcidSession

CORES = os.cpu_count() or 1


def spark_on(uri: str, work: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a Spark session on the metastore at ``uri``, with its files below ``work``."""
    builder = (
        SparkSession.builder.master(f"local[{CORES}]")
        .appName("benchmark")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(CORES))
        .config("spark.driver.memory", "3g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.hadoop.hive.metastore.uris", uri)
        .config("spark.sql.warehouse.dir", (work / "spark").as_uri())
        .enableHiveSupport()
    )
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def fill(session: AcidSession, rows: int) -> None:
    """Create the ACID table and insert ``rows`` rows."""
    spark = session.spark
    spark.sql("CREATE DATABASE bench")
    session.sql(
        "CREATE TABLE bench.events (id BIGINT, day INT, amount DOUBLE, customer STRING, note STRING) "
        "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
    )
    session.insert(
        "bench.events",
        spark.range(0, rows, numPartitions=CORES).select(
            "id",
            (F.col("id") % 365).cast("int").alias("day"),
            (F.hash("id") / 100.0).alias("amount"),
            F.concat(F.lit("customer-"), F.col("id") % 5000).alias("customer"),
            F.sha1(F.col("id").cast("string")).alias("note"),
        ),
    )
    for rest in (1, 2):
        session.sql(f"UPDATE bench.events SET amount = amount + 1 WHERE id % 100 = {rest}")
    session.sql("DELETE FROM bench.events WHERE id % 100 = 3")


def totals(frame: DataFrame) -> list[tuple]:
    """Scan every column, and compute an aggregate."""
    aggregated = frame.groupBy("day").agg(
        F.count("*"), F.sum(F.length("note") + F.length("customer")), F.sum("id"), F.round(F.sum("amount"), 2)
    )
    return sorted(map(tuple, aggregated.collect()))


class Table:
    """The table bench.events, its compaction, and the plain files beside it."""

    def __init__(self, session: AcidSession, plain: Path) -> None:
        self.session, self.spark, self.plain = session, session.spark, plain
        name = TableName("hive", "bench", "events")
        sent = session.client.get_table("bench", "events")
        self.location = Path(sent.sd.location.removeprefix("file:"))
        self.columns = AcidTable.of(name, sent).columns
        types = session.client.types
        answer = session.client.get_valid_write_ids(types.GetValidWriteIdsRequest(["bench.events"], ""))
        [ids] = answer.tblValidWriteIds
        self.spec = CompactionJobSpec(
            compaction_id=1,
            attempt=1,
            kind="major",
            catalog="hive",
            database="bench",
            table="events",
            partition="",
            location=sent.sd.location,
            write_ids=f"bench.events:{ids.writeIdHighWaterMark}:{2**63 - 1}::",
            txns="",
            txn_id=1,
            highest_write_id=ids.writeIdHighWaterMark,
        )
        self.output = self.plain.with_name("rewritten")

    def acid_read(self) -> list[tuple]:
        """Return totals, read from the ACID table."""
        return totals(self.session.table("bench.events"))

    def plain_read(self) -> list[tuple]:
        """Return totals, read from the plain files."""
        return totals(self.spark.read.orc(str(self.plain)))

    def compact(self) -> CompactionJobResult:
        """Run a major compaction whose result no reader uses."""
        txn_id = 1_000_000  # never committed: no reader uses the result, and the next run removes it
        return run(self.spark, replace(self.spec, txn_id=txn_id), self.columns)

    def remove_compacted(self) -> None:
        """Remove the results of compactions."""
        for directory in self.location.glob("*_v*"):
            shutil.rmtree(directory)

    def plain_rewrite(self) -> None:
        """Read the plain files and write them again."""
        self.spark.read.orc(str(self.plain)).write.mode("overwrite").option("compression", "zlib").orc(str(self.output))


def seconds(action: Callable[[], object], runs: int, tidy: Callable[[], object] = lambda: None) -> list[float]:
    """Return each run's time. One more run comes first and does not count, since it compiles."""
    taken = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
        tidy()
    return taken[1:]


def main() -> None:
    """Start a server and a Spark, and compare both on them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        work.chmod(0o711)
        server, ready = peers.start_ours(work)
        try:
            spark = spark_on(ready["thrift"], work)
            try:
                with acid(spark) as session:
                    compare(session, work, options)
            finally:
                spark.stop()
        finally:
            peers.end(server)


def compare(session: AcidSession, work: Path, options: argparse.Namespace) -> None:
    """Measure reads and rewrites of both contestants and print a line for each."""
    print(
        f"{CORES} cores, load {os.getloadavg()[0]:.1f}, Spark {pyspark.__version__} local[{CORES}]; {options.rows} "
        f"rows; median of {options.runs} runs after one that does not count"
    )
    fill(session, options.rows)
    session.table("bench.events").repartition(CORES).write.option("compression", "zlib").orc(str(work / "plain"))
    table = Table(session, work / "plain")
    if table.acid_read() != table.plain_read():
        raise RuntimeError("the ACID table and the plain files do not say the same")
    read = [seconds(action, options.runs) for action in (table.acid_read, table.plain_read)]
    rewrite = [seconds(table.compact, options.runs, table.remove_compacted), seconds(table.plain_rewrite, options.runs)]
    print("| | ACID | plain ORC | ratio |\n|---|--:|--:|--:|")
    for title, (ours, plain) in (
        ("read: scan of all columns and aggregate", read),
        ("major compaction / rewrite", rewrite),
    ):
        mine, other = statistics.median(ours), statistics.median(plain)
        print(f"| {title} | {mine:.2f} s | {other:.2f} s | {mine / other:.2f} |")


if __name__ == "__main__":
    main()
