"""A driver whose executors fail in one way or another while it writes: python -m ... URI TABLE WAY. It has to succeed.

A local cluster: executors are processes of their own, so they can be killed, tasks are retried, and speculation works.
"""

import os
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from pyspark import TaskContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import functions as F

from metastore.spark import acid
from tests.acceptance.tables.dying import session

ROWS = 40_000
TASK = ROWS // 4
LATE = TASK - 100   # in each task: most of its rows are written by then


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill_executor(number):
    if number == 2 * TASK + LATE and TaskContext.get().attemptNumber() == 0:
        os.kill(parent(parent(os.getpid())), signal.SIGKILL)   # this process, its daemon, the executor
    return number


def fail_once(number):
    if number % TASK == LATE and TaskContext.get().attemptNumber() == 0:
        raise ValueError("the first attempt fails after it has written rows")
    return number


def dawdle(number):
    if number == 100 and TaskContext.get().attemptNumber() == 0:
        time.sleep(60)  # noqa: TID251 - until a second attempt has overtaken this one, which is then killed
    return number


def kill_where_files_grow(place, killed):
    """Kill an executor as soon as a task writes a file, with the rows that it has got ready for the tasks of others."""
    while not killed:
        with suppress(OSError):   # a directory or a process went away meanwhile
            if list(place.glob(".acid_stage*/tasks/**/*part-*")):
                killed += executors()[:1]
                os.kill(killed[0], signal.SIGKILL)
        time.sleep(0.01)  # noqa: TID251 - for as long as the driver runs


def executors():
    found = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if b"CoarseGrainedExecutorBackend" in path.read_bytes()]
    return [int(one.name) for one in found if parent(parent(one.name)) == os.getpid()]


WAYS = {"executor killed": kill_executor, "tasks retried": fail_once, "speculation": dawdle}
UPDATED = "executor killed during an update"


def main():
    uri, table, way = sys.argv[1:]
    spark = session(uri, "local-cluster[2,1,512]", **{
        "spark.executor.memory": "512m", "spark.task.maxFailures": "4", "spark.speculation": str(way == "speculation").lower(),
        "spark.speculation.quantile": "0.5", "spark.speculation.interval": "100ms", "spark.speculation.minTaskRuntime": "1s"})
    rows = spark.range(0, ROWS, 1, 4).select(F.col("id").cast("int").alias("id"), F.lit("x").alias("name"))
    with acid(spark) as ours:
        if way == UPDATED:
            assert ours.insert(table, rows) == ROWS
            place = Path(ours.client.get_table(*table.split(".")).sd.location.removeprefix("file:").replace("///", "/"))
            killed = []
            threading.Thread(target=kill_where_files_grow, args=(place, killed), daemon=True).start()
            assert ours.update(table, {"name": "'y'"}) == ROWS
            assert len(killed) == 1
        else:
            chaos = F.udf(WAYS[way], "bigint")
            assert ours.insert(table, rows.withColumn("id", chaos("id").cast("int"))) == ROWS
    leftovers = Path(_find_spark_home()) / "work" / spark.sparkContext.applicationId   # the workers' copies of jars, and logs
    spark.stop()
    shutil.rmtree(leftovers)


if __name__ == "__main__":
    main()
