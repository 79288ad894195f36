"""Spark's ORC source with a writer for events (``AcidOrcWriter.java``)."""

from typing import Any

from pyspark.sql import SparkSession

from metastore.spark.compiled import compiled


def event_format(spark: SparkSession) -> Any:
    """An ``AcidOrcWriter`` in the driver's JVM."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no data sources in Java
    new_array = spark.sparkContext._gateway.new_array  # noqa: SLF001
    no_types, nothing = new_array(jvm.java.lang.Class, 0), new_array(jvm.java.lang.Object, 0)
    return compiled(spark, "AcidOrcWriter").getConstructor(no_types).newInstance(nothing)
