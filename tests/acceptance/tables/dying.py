"""A driver that kills itself with its JVM at a named point of the commit protocol: python -m ... URI TABLE POINT [SQL].

The product knows of no points: they are put around its functions here. The statement, where none is given, is one MERGE
that updates, deletes and inserts, the last into a partition that is new, so that each point is passed.
"""

import os
import signal
import sys
from functools import wraps
from typing import NamedTuple

from metastore.client import txn_manager
from metastore.spark import acid
from metastore.spark.txn import spark_txn as work
from metastore.spark.write import acid_writer


class Point(NamedTuple):
    """Before or after the ``passage``-th call of a function."""

    owner: object
    function: str
    when: str = "after"
    passage: int = 1


POINTS = {
    "transaction opened": Point(txn_manager.TxnManager, "open"),
    "locks held": Point(txn_manager.Transaction, "lock"),
    "write id allocated": Point(txn_manager.Transaction, "write_id"),
    "events staged by the tasks": Point(acid_writer._Writing, "run_tasks"),
    "files collected": Point(acid_writer._Writing, "collect_files"),
    "complete in staging": Point(acid_writer, "publish_all", "before"),
    "one of two partitions' deletes published": Point(acid_writer.Staged, "publish"),
    "deletes published": Point(acid_writer.Staged, "publish", passage=2),
    "one of three partitions' inserts published": Point(acid_writer.Staged, "publish", passage=3),
    "all published": Point(acid_writer, "publish_all"),
    "partition registered": Point(work.Work, "_add_partitions"),
    "partitions announced": Point(txn_manager.Transaction, "add_dynamic_partitions"),
    "about to commit": Point(txn_manager.Transaction, "commit", "before"),
    "committed": Point(txn_manager.Transaction, "commit"),
}

POINTS_IN_PLACE = {**POINTS, "about to complete": Point(acid_writer, "complete", "before")}
"""Where files are not renamed."""

MERGE = ["WHEN MATCHED AND s.id = 2 THEN DELETE", "WHEN MATCHED THEN UPDATE SET name = s.name",
         "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, s.name, s.p)"]
SOURCE = [(1, "new", "a"), (2, "new", "a"), (4, "new", "b"), (9, "new", "c")]


def die():
    os.killpg(os.getpgrp(), signal.SIGKILL)


def arm(point):
    """Put the point around its function."""
    function, passed = getattr(point.owner, point.function), 0

    @wraps(function)
    def passing(*arguments, **named):
        nonlocal passed
        passed += 1
        is_now = passed == point.passage
        if is_now and point.when == "before":
            die()
        result = function(*arguments, **named)
        if is_now:
            die()
        return result

    setattr(point.owner, point.function, passing)


def session(uri, master="local[2]", **conf):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    for key, value in {
            "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2",
            "spark.driver.memory": "512m", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
            "spark.hadoop.hive.metastore.uris": uri, **conf}.items():
        builder = builder.config(key, value)
    return builder.enableHiveSupport().getOrCreate()


def main():
    uri, table, point, *sql = sys.argv[1:]
    spark = session(uri)
    with acid(spark) as ours:
        source = spark.createDataFrame(SOURCE, "id INT, name STRING, p STRING")
        arm(POINTS_IN_PLACE[point])
        if sql:
            ours.sql(*sql)
        else:
            ours.merge(table, source, "t.id = s.id", MERGE)
    sys.exit("it was not killed")


if __name__ == "__main__":
    main()
