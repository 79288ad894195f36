"""How Spark writes the values of partitions that it reads from their texts."""

import json
from collections.abc import Sequence

from pyspark.sql import SparkSession

from metastore.acid_tables.pruning import Values
from metastore.acid_tables.table import AcidTable


def read_by(spark: SparkSession, table: AcidTable, found: Sequence[Values]) -> list[Values]:
    """Values of partitions as Spark writes what it reads there; NULL where it reads nothing. Without a job."""
    cast = "try_cast" if spark.conf.get("spark.sql.ansi.enabled") == "true" else "CAST"
    values = ", ".join(
        f"CAST({cast}(one[{place}] AS {key.sql_type}) AS STRING)" for place, key in enumerate(table.partition_keys)
    )
    query = f"SELECT transform(from_json(:found, 'array<array<string>>'), one -> array({values}))"
    [[read]] = SparkSession.sql(spark, query, {"found": json.dumps(found)}).collect()
    return [tuple(one) for one in read]
