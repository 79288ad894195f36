"""Our Java classes in a Spark session: a jar brings them to its driver and its tasks.

Rule: nothing has to be installed on a cluster. An installed package has a jar for each version of Spark that it was
built for; in a checkout, and for other versions, the jar is compiled at its first use. The session adds the jar, as a
user would, and Spark sends it to the executors. A Spark that was started with the jar has the classes everywhere.
"""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from metastore.errors import InvalidOperationError
from metastore.spark.jvm.jars import NoJarError, connector_jar, has_catalog, jar_for

PACKAGE = "transactionmetastore.spark"

_OBJECTS = "_acid_objects"
_making = Lock()


def jvm_of(spark: SparkSession) -> Any:
    """Return the driver's JVM, for calls that PySpark has no API for. It exists as long as the session."""
    return spark._jvm  # noqa: SLF001 - see above


def jar_of(version: str) -> Path:
    """Return the jar for the Spark that this process starts, which has this version.

    Raises: InvalidOperationError where there is none, and none can be made.
    """
    if not has_catalog(version):
        raise InvalidOperationError(
            f"There are none of our Java classes for Spark {version}: they need Spark 4.0 or newer. Install one: "
            "pip install 'transaction-metastore[spark]'."
        )
    if (installed := jar_for(version)).exists():
        return installed
    try:
        return connector_jar(Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent))
    except NoJarError as error:
        raise InvalidOperationError(
            f"There is no jar of our Java classes for Spark {version}, and building it failed: {error}. "
            "Install transaction-metastore from a wheel that was built for this Spark, or a JDK 17."
        ) from error


def java_object(spark: SparkSession, name: str) -> Any:
    """Return an object of our class ``name`` of files in the driver's JVM: always the same for a Spark.

    Raises: as ``jar_of``.
    """
    name = f"files.{name}"
    return _kept(spark, name, lambda: _new(spark, name, _present(spark, name) or _loaded(spark, jar_of(spark.version))))


def catalog_object(spark: SparkSession, name: str) -> Any:
    """Return an object of a class of the connector, as ``java_object``; None in a Spark that was started without it."""
    return _kept(spark, name, lambda: _new(spark, name, loader) if (loader := _present(spark, name)) else None)


def _kept(spark: SparkSession, name: str, make: Callable[[], Any]) -> Any:
    """Return the object made for a Spark under this name, or make it now."""
    context = spark.sparkContext
    with _making:
        if (objects := getattr(context, _OBJECTS, None)) is None:
            objects = {}
            setattr(context, _OBJECTS, objects)
        if name not in objects:
            objects[name] = make()
    return objects[name]


def _new(spark: SparkSession, name: str, loader: Any) -> Any:
    jvm = jvm_of(spark)
    no_types, nothing = _array(spark, jvm.java.lang.Class, 0), _array(spark, jvm.java.lang.Object, 0)
    return loader.loadClass(f"{PACKAGE}.{name}").getConstructor(no_types).newInstance(nothing)


def _present(spark: SparkSession, name: str) -> Any:
    """Return the class loader of a Spark that has the jar already: a second loader would make second classes."""
    loader = jvm_of(spark).org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return loader if loader.getResource(f"{PACKAGE}.{name}".replace(".", "/") + ".class") is not None else None


def _loaded(spark: SparkSession, jar: Path) -> Any:
    """Return a class loader of the jar, and send the jar to the session's tasks."""
    jvm = jvm_of(spark)
    urls = _array(spark, jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(jar)).toURI().toURL()
    send_jar(spark, jar)
    return jvm.java.net.URLClassLoader(urls, _sparks_loader(jvm))


def _array(spark: SparkSession, kind: Any, length: int) -> Any:
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    return gateway.new_array(kind, length)


def _sparks_loader(jvm: Any) -> Any:
    return jvm.org.apache.spark.sql.execution.datasources.orc.OrcFileFormat().getClass().getClassLoader()


def send_jar(spark: SparkSession, jar: Path) -> None:
    """Send a jar to the tasks. Tasks on this machine read the file itself, without a connection to the driver."""
    context = spark.sparkContext
    context._jsc.addJar(f"local:{jar}" if str(context.master).startswith("local") else str(jar))  # noqa: SLF001
