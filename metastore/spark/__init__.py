"""The PySpark side: it reads, writes and compacts Hive ACID tables.

It is a client of the service and never opens the database.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore.spark.session import AcidSession

__all__ = ["acid", "configure"]


def acid(spark: "SparkSession", uri: str | None = None, *, retries: int = 0) -> "AcidSession":
    """Return the ACID session of a Spark session. ``uri``: the metastore's; None: Spark's ``hive.metastore.uris``.

    ``retries``: how often a statement that lost a write conflict runs again, on a new snapshot.
    Raises: InvalidOperationError for a Spark version, or a catalog without a metastore, that it cannot work with.
    """
    from metastore.spark.session import AcidSession

    return AcidSession(spark, uri, retries=retries)


def configure(builder: "SparkSession.Builder", uri: str | None = None) -> "SparkSession.Builder":
    """Return the builder, set up for SQL on ACID tables: ``configure(SparkSession.builder).getOrCreate()``.

    ``uri``: the metastore's address; None: Spark's ``hive.metastore.uris`` is set elsewhere. Call it before this
    process has a Spark: a running Spark takes no further jar. Raises: InvalidOperationError where there is no jar.
    """
    from metastore.spark.catalog import configured

    return configured(builder, uri)
