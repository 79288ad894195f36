"""Full garbage collections of a driver that has an ACID table in its cache, counted by ``jstat -gc`` during use.

python -m benchmarks.cached_driver [--minutes 3] [--memory 4g] [--rows 1000000]

Spark asks for a full collection itself, every ``spark.cleaner.periodicGC.interval`` (30 minutes).
"""

import argparse
import subprocess
import time

from benchmarks.acid_session import TABLE, create_table, lakehouse
from benchmarks.store_sales import store_sales

PAUSE_S = 10


def full_collections(pid: int) -> tuple[int, float]:
    """Return the number of full collections that a JVM has had, and their seconds."""
    # The command is a constant one of the JDK, with a number.
    told = subprocess.run(["jstat", "-gc", str(pid)], capture_output=True, text=True, check=True)
    names, values = (line.split() for line in told.stdout.splitlines())
    columns = dict(zip(names, values, strict=True))
    return int(columns["FGC"]), float(columns["FGCT"])


def main() -> None:
    """Use a cached ACID table for minutes and print the collections that ``jstat`` counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--memory", default="4g", help="the driver's heap")
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with lakehouse({"spark.driver.memory": options.memory}) as (session, _):
        spark = session.spark
        spark.sql("CREATE DATABASE bench")
        create_table(session)
        session.insert(TABLE, store_sales(spark, options.rows))
        cached = spark.table(TABLE).cache()
        print(f"{cached.count()} rows in the cache, {options.memory} of heap, {options.minutes:g} minutes")
        pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001 - PySpark shows no other way
        before, ends_at = full_collections(pid), time.monotonic() + options.minutes * 60
        queries = 0
        while time.monotonic() < ends_at:
            cached.count()
            spark.table(TABLE).where("ss_quantity = 1").count()
            queries += 2
            time.sleep(PAUSE_S)
        after = full_collections(pid)
        print(f"{queries} queries; full collections: {after[0] - before[0]}, {after[1] - before[1]:.2f} s")


if __name__ == "__main__":
    main()
