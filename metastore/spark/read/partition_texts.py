"""The values of partitions as Spark reads them from their texts."""

import json
from collections.abc import Sequence

from pyspark.sql import SparkSession

from metastore.acid_tables.pruning import Values
from metastore.acid_tables.table import AcidTable


def read_by(spark: SparkSession, table: AcidTable, texts: Sequence[Values]) -> list[Values]:
    """For each partition the values that Spark reads from its texts, as texts again; NULL for an unreadable text.

    Runs no Spark job.
    """
    cast = "try_cast" if spark.conf.get("spark.sql.ansi.enabled") == "true" else "CAST"
    values = ", ".join(
        f"CAST({cast}(texts[{place}] AS {key.sql_type}) AS STRING)" for place, key in enumerate(table.partition_keys)
    )
    query = f"SELECT transform(from_json(:texts, 'array<array<string>>'), texts -> array({values}))"
    [[read]] = SparkSession.sql(spark, query, {"texts": json.dumps(texts)}).collect()
    return [tuple(values) for values in read]
