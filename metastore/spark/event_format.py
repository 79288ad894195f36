"""Spark's ORC source with a writer for events (``AcidOrcWriter.java``)."""

from typing import Any

from pyspark.sql import SparkSession

from metastore.spark.compiled import compiled


def event_format(spark: SparkSession) -> Any:
    """An ``AcidOrcWriter`` in the driver's JVM."""
    return compiled(spark, "AcidOrcWriter")
