"""The PySpark side: read, write and compact Hive ACID tables. A client of the service; it never opens the database."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore.spark.session import AcidSession

__all__ = ["acid", "configure"]


def acid(spark: "SparkSession", uri: str | None = None, *, retries: int = 0) -> "AcidSession":
    """The ACID session of a Spark session; the metastore's address defaults to Spark's ``hive.metastore.uris``.

    ``retries``: how often a statement that lost a write conflict is run again, on a new snapshot.
    """
    from metastore.spark.session import AcidSession

    return AcidSession(spark, uri, retries=retries)


def configure(builder: "SparkSession.Builder", uri: str | None = None) -> "SparkSession.Builder":
    """A builder of sessions whose own SQL knows ACID tables: ``configure(SparkSession.builder).getOrCreate()``.

    ``uri``: the metastore's address, where Spark's ``hive.metastore.uris`` is not set otherwise. No Spark may be
    running yet in this process: a jar is added.
    """
    from metastore.spark.catalog import configured

    return configured(builder, uri)
