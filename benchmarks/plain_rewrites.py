"""A Spark that reads plain ORC files and writes them again, over and over, until it is ended.

    python -m benchmarks.plain_rewrites SOURCE TARGET

Its effect on programs beside it is that of any Spark. A line on standard output reports the first complete rewrite.
"""

import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Rewrite the files of the first argument into the second until the process is ended."""
    source, target = sys.argv[1:]
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    while True:
        spark.read.orc(source).write.mode("overwrite").option("compression", "zlib").orc(target)
        print("written", flush=True)


if __name__ == "__main__":
    main()
