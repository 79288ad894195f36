"""The settings with which Spark's own SQL reads and writes ACID tables: its session catalog is ours.

They can be set without Python: ``docs/how-to/acid-tables-in-spark-sql.md``.
"""

from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from metastore.errors import InvalidOperationError
from metastore.spark.jvm.jars import NoJarError, connector_jar, has_catalog

CATALOG = "transactionmetastore.spark.catalog.AcidCatalog"
EXTENSIONS = "transactionmetastore.spark.catalog.AcidExtensions"


def configured(builder: SparkSession.Builder, uri: str | None) -> SparkSession.Builder:
    """The builder with the catalog, the extension and the jar; with ``uri`` also the metastore's address.

    Raises: InvalidOperationError where there is no jar for this Spark.
    """
    if not has_catalog(pyspark.__version__):
        raise InvalidOperationError(
            f"There is no catalog for Spark {pyspark.__version__}: it needs Spark 4.0 or newer. Install one: "
            "pip install 'transaction-metastore[spark]'."
        )
    try:
        jar = connector_jar(Path(pyspark.__file__).parent)
    except NoJarError as error:
        raise InvalidOperationError(
            f"There is no jar of the catalog for Spark {pyspark.__version__}, and building it failed: {error}. "
            "Install transaction-metastore from a wheel that was built for this Spark, or a JDK 17."
        ) from error
    options: dict[str, str] = builder._options  # noqa: SLF001 - what was set before stays
    builder.config("spark.jars", _added(options.get("spark.jars"), str(jar)))
    builder.config("spark.sql.extensions", _added(options.get("spark.sql.extensions"), EXTENSIONS))
    builder.config("spark.sql.catalog.spark_catalog", CATALOG)
    if uri is not None:
        builder.config("spark.hadoop.hive.metastore.uris", uri)
    return builder.enableHiveSupport()


def _added(before: str | None, more: str) -> str:
    return ",".join([*(before.split(",") if before else []), more])
