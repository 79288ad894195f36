"""A program that stops Spark inside a block of statements and goes on without it: python -m ... URI TABLE."""

import sys

from metastore.spark.catalog import CATALOG, EXTENSIONS
from tests.acceptance.tables.dying import session
from tests.support.spark_sessions import connector


def main():
    uri, table = sys.argv[1:]
    spark = session(uri, **{"spark.jars": connector(), "spark.sql.extensions": EXTENSIONS, "spark.sql.catalog.spark_catalog": CATALOG})
    spark.sql("CALL system.begin()")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a')")
    spark.stop()
    print("stopped", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
