"""Statements over Spark Connect, one JSON text a line in, its rows as texts or its error out. Argument: the address."""

import json
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def main(address: str) -> None:
    """Until the input ends."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    for line in sys.stdin:
        try:
            answer = {"rows": [[shown(value) for value in row] for row in spark.sql(json.loads(line)).collect()]}
        except PySparkException as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def shown(value: object) -> str | None:
    """As JDBC shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


if __name__ == "__main__":
    main(sys.argv[1])
