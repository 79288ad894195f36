"""Statements of a Spark whose Hive client talks to the one address: plain ones, and those of ACID tables."""

import json
import sys

from metastore.spark import acid
from tests.support.spark_sessions import spark_on


def main(uri: str, warehouse: str) -> None:
    spark = spark_on(uri, warehouse)
    try:
        spark.sql("CREATE DATABASE s")
        spark.sql("CREATE TABLE s.plain (id INT, name STRING) PARTITIONED BY (day STRING) STORED AS ORC")
        spark.sql("INSERT INTO s.plain PARTITION (day = '1') VALUES (1, 'a'), (2, 'b')")
        spark.sql("ALTER TABLE s.plain ADD PARTITION (day = '2')")
        told = {"plain": spark.sql("SELECT count(*) FROM s.plain").collect()[0][0],
                "partitions": [row[0] for row in spark.sql("SHOW PARTITIONS s.plain").collect()]}
        session = acid(spark)
        session.sql("CREATE TABLE s.t (id INT, name STRING) CLUSTERED BY (id) INTO 2 BUCKETS STORED AS ORC"
                    " TBLPROPERTIES ('transactional' = 'true')")  # 2.3 wants buckets
        session.sql("INSERT INTO s.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        session.sql("UPDATE s.t SET name = 'x' WHERE id = 2")
        session.sql("DELETE FROM s.t WHERE id = 3")
        told["acid"] = sorted([row.id, row.name] for row in session.table("s.t").collect())
        session.sql("DROP TABLE s.t")
        spark.sql("DROP TABLE s.plain")
        told["left"] = spark.sql("SHOW TABLES IN s").collect()
    finally:
        spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
