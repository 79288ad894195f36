"""A driver that runs one statement: python -m ... URI TABLE [SQL]. Whoever started it kills it, at a named point.

The product knows of no points: they are calls of the planner, which is in the process of the tests. The statement, where
none is given, is one MERGE that updates, deletes and inserts, the last into a partition that is new.
"""

import sys
from typing import NamedTuple

from metastore.spark import acid


class Point(NamedTuple):
    """Before or after a call of the planner is answered; "after": the driver never hears the answer."""

    call: str
    when: str = "after"


POINTS = {
    "transaction opened": Point("begin"),
    "locks held": Point("lock"),
    "write id allocated": Point("write"),
    "complete in staging": Point("publish", "before"),
    "names given by the planner": Point("publish"),
    "all published": Point("announce", "before"),
    "partitions announced": Point("announce"),
    "about to commit": Point("commit", "before"),
    "committed": Point("commit"),
}

MERGE = ["WHEN MATCHED AND s.id = 2 THEN DELETE", "WHEN MATCHED THEN UPDATE SET name = s.name",
         "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, s.name, s.p)"]
SOURCE = [(1, "new", "a"), (2, "new", "a"), (4, "new", "b"), (9, "new", "c")]


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
    uri, table, *sql = sys.argv[1:]
    spark = session(uri)
    with acid(spark) as ours:
        if sql:
            ours.sql(*sql)
        else:
            ours.merge(table, spark.createDataFrame(SOURCE, "id INT, name STRING, p STRING"), "t.id = s.id", MERGE)
    sys.exit("it was not killed")


if __name__ == "__main__":
    main()
