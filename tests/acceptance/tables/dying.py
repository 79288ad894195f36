"""A driver that runs one statement: python -m ... URI TABLE SETTINGS [SQL]. It is killed at a named point.

The product knows of no points: they are calls of the planner, which is in the process of the tests, and events of the driver's
file system, which is one that kills. The statement, where none is given, is one MERGE that updates, deletes and inserts, the
last into a partition that is new.
"""

import json
import sys
from typing import NamedTuple

from metastore.spark import acid


class Point(NamedTuple):
    """Before or after a call of the planner is answered; "after": the driver never hears the answer."""

    call: str
    when: str = "after"


class FilePoint(NamedTuple):
    """Before the n-th event of the driver's file system of a kind; see DyingFileSystem.java."""

    kind: str
    number: int


POINTS = {
    "transaction opened": Point("begin"),
    "locks held": Point("lock"),
    "write id allocated": Point("write"),
    "a task amid its files": FilePoint("created", 2),
    "complete in staging": Point("publish", "before"),
    "names given by the planner": Point("publish"),
    "directories half full": FilePoint("moved", 2),
    "no directory published": FilePoint("named", 1),
    "half of the deletes published": FilePoint("named", 2),
    "all deletes published": FilePoint("named", 3),
    "half of the inserts published": FilePoint("named", 4),
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
    spark = builder.enableHiveSupport().getOrCreate()
    assert spark.catalog.currentDatabase() == spark.conf.get("spark.sql.catalog.spark_catalog.defaultDatabase", "default")
    return spark   # without the catalog, and used already: PySpark keeps what it has said of the session, which acid(spark) replaces


def main():
    uri, table, settings, *sql = sys.argv[1:]
    spark = session(uri, **json.loads(settings))
    with acid(spark) as ours:
        if sql:
            ours.sql(*sql)
        else:
            ours.merge(table, spark.createDataFrame(SOURCE, "id INT, name STRING, p STRING"), "t.id = s.id", MERGE)
    sys.exit("it was not killed")


if __name__ == "__main__":
    main()
