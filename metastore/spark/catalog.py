"""The settings with which Spark's own SQL reads and writes ACID tables: they make our catalog the session catalog.

They can be set without Python: ``docs/how-to/acid-tables-in-spark-sql.md``.
"""

from functools import cached_property
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from metastore.errors import InvalidOperationError
from metastore.spark.jvm.compiled import catalog_object, jar_of, jvm_of, send_jar

CATALOG = "transactionmetastore.spark.catalog.AcidCatalog"
EXTENSIONS = "transactionmetastore.spark.catalog.AcidExtensions"
_SETTING = "spark.sql.catalog.spark_catalog"


def configured(builder: SparkSession.Builder, uri: str | None) -> SparkSession.Builder:
    """Return the builder with the catalog, the extension and the jar; with ``uri`` also the metastore's address.

    Raises: InvalidOperationError where there is no jar for this Spark.
    """
    jar = jar_of(pyspark.__version__)
    options: dict[str, str] = builder._options  # noqa: SLF001 - options that were set before stay
    builder.config("spark.jars", _added(options.get("spark.jars"), str(jar)))
    builder.config("spark.sql.extensions", _added(options.get("spark.sql.extensions"), EXTENSIONS))
    builder.config(_SETTING, CATALOG)
    if uri is not None:
        builder.config("spark.hadoop.hive.metastore.uris", uri)
    return builder.enableHiveSupport()


def with_catalog(spark: SparkSession, uri: str | None = None) -> SparkSession:
    """Return the session with SQL on ACID tables; with ``uri``: a new session on that metastore.

    A Spark that was started without the jar and the extension gets both: its session of the JVM is replaced by a clone.
    Raises: InvalidOperationError where there is no jar, or the Spark takes none any more.
    """
    _give_jar(spark)
    java: Any = catalog_object(spark, "catalog.AcidExtensions").inSession(spark._jsparkSession)  # noqa: SLF001 - PySpark shows no other way
    if uri is not None:
        spark = SparkSession(spark.sparkContext, java.cloneSession())
        spark.conf.set("hive.metastore.uris", uri)
    else:
        spark._jsparkSession = java  # noqa: SLF001 - as above
        for kept in [name for name, value in vars(SparkSession).items() if isinstance(value, cached_property)]:
            vars(spark).pop(kept, None)  # these caches (conf, catalog and others) belong to the replaced session
    if spark.conf.get(_SETTING, "builtin") != CATALOG:
        spark.conf.set(_SETTING, CATALOG)
    return spark


def _give_jar(spark: SparkSession) -> None:
    """Add the catalog's classes to the driver and the executors, in the class loader that has other jars."""
    jvm = jvm_of(spark)
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    if loader.getResource(EXTENSIONS.replace(".", "/") + ".class") is not None:
        return
    jar = jar_of(pyspark.__version__)
    try:
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    except Py4JError:
        raise InvalidOperationError(
            "This Spark has no catalog of ACID tables, and its class loader takes no further jar: start it with "
            "configure(SparkSession.builder) of metastore.spark."
        ) from None
    send_jar(spark, jar)


def _added(before: str | None, more: str) -> str:
    return ",".join([*(before.split(",") if before else []), more])
