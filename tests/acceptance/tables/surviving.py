"""A driver whose executors fail in one way or another while it writes: python -m ... URI TABLE WAY. It has to succeed.

A local cluster: executors are processes of their own, so they can be killed, tasks are retried, and speculation works.
"""

import os
import shutil
import signal
import sys
import time
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


WAYS = {"executor killed": kill_executor, "tasks retried": fail_once, "speculation": dawdle}


def main():
    uri, table, way = sys.argv[1:]
    spark = session(uri, "local-cluster[2,1,512]", **{
        "spark.executor.memory": "512m", "spark.task.maxFailures": "4", "spark.speculation": str(way == "speculation").lower(),
        "spark.speculation.quantile": "0.5", "spark.speculation.interval": "100ms", "spark.speculation.minTaskRuntime": "1s"})
    chaos = F.udf(WAYS[way], "bigint")
    rows = spark.range(0, ROWS, 1, 4).select(chaos("id").cast("int").alias("id"), F.lit("x").alias("name"))
    with acid(spark) as ours:
        assert ours.insert(table, rows) == ROWS
    leftovers = Path(_find_spark_home()) / "work" / spark.sparkContext.applicationId   # the workers' copies of jars, and logs
    spark.stop()
    shutil.rmtree(leftovers)


if __name__ == "__main__":
    main()
