"""Java classes of ours in a Spark that knows nothing of them: a jar brings them to its tasks.

Rule: nothing has to be installed on a cluster. An installed package has a jar for each version of Spark that it was
built for. For others, and in a checkout, Spark's compiler for queries (Janino) makes the classes in the driver. Either
way the session adds a jar, as a user would, and Spark sends it to the executors. A Spark that was started with the jar
of the catalog has the classes everywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any
from zipfile import ZipFile

from pyspark.sql import SparkSession

from metastore.spark.jvm.jars import jar_for

PACKAGE = "transactionmetastore.spark"
SOURCES = Path(__file__).parent / "java" / PACKAGE.replace(".", "/")
NEEDED: Mapping[str, Sequence[str]] = {
    "AcidOrcFormat": (
        "Messages",
        "SparkInternals",
        "SmallOrcFile",
        "DeletedBits",
        "OrcBatches",
        "AcidOrcReader",
        "ListedFiles",
        "OrcConditions",
    ),
    "AcidOrcWriter": ("Messages", "EventFile", "ColumnTallies"),
    "CopiedStripes": ("Messages",),
    "InPlaceUploads": ("Messages", "SparkInternals"),
    "LiveRows": ("Messages", "EventFile", "ColumnTallies", "AcidOrcWriter"),
    "MergedEvents": ("Messages", "SmallOrcFile", "OrcBatches", "MergedReader", "ListedFiles"),
    "SerdeFormat": ("SparkInternals", "JsonLines", "SerdeTable", "SerdeReader", "SerdeWriter", "ListedFiles"),
}
"""The classes that Python calls, and the others that each needs, in the order of their compilation."""

_OBJECTS = "_acid_objects"
_making = Lock()


def jvm_of(spark: SparkSession) -> Any:
    """The driver's JVM, for calls that PySpark has no API for. It exists as long as the session."""
    return spark._jvm  # noqa: SLF001 - see above


def java_object(spark: SparkSession, name: str) -> Any:
    """An object of our class ``name`` in the driver's JVM: always the same for a Spark."""
    return _kept(spark, name, lambda: _new(spark, name, _present(spark, name) or _loaded_or_compiled(spark, name)))


def catalog_object(spark: SparkSession, name: str) -> Any:
    """An object of a class of the catalog, as ``java_object``; None in a Spark that was started without the jar."""
    name = f"catalog.{name}"
    return _kept(spark, name, lambda: _new(spark, name, loader) if (loader := _present(spark, name)) else None)


def _kept(spark: SparkSession, name: str, make: Callable[[], Any]) -> Any:
    """What was made for a Spark under this name, or is made now."""
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
    """The class loader of a Spark that has the jar already, for the catalog: two loaders would make two classes."""
    loader = jvm_of(spark).org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return loader if loader.getResource(f"{PACKAGE}.{name}".replace(".", "/") + ".class") is not None else None


def _loaded_or_compiled(spark: SparkSession, name: str) -> Any:
    jar = jar_for(spark.version)
    return _loaded(spark, jar) if jar.exists() else _compiled(spark, name)


def _loaded(spark: SparkSession, jar: Path) -> Any:
    """A class loader of the jar, which goes to the session's tasks too."""
    jvm = jvm_of(spark)
    urls = _array(spark, jvm.java.net.URL, 1)
    urls[0] = jvm.java.io.File(str(jar)).toURI().toURL()
    send_jar(spark, jar)
    return jvm.java.net.URLClassLoader(urls, _sparks_loader(jvm))


def _compiled(spark: SparkSession, name: str) -> Any:
    """A class loader of a class and those that it needs, compiled here; the tasks get them too."""
    jvm = jvm_of(spark)
    loader = _sparks_loader(jvm)
    jar = Path(spark.sparkContext._temp_dir) / f"{name}.jar"  # noqa: SLF001 - gone when Spark is
    with ZipFile(jar, "w") as out:
        for needed in (*NEEDED[name], name):
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(loader)
            compiler.cook((SOURCES / f"{needed}.java").read_text("utf-8"))
            loader = compiler.getClassLoader()
            for entry, code in dict(compiler.getBytecodes()).items():
                out.writestr(f"{entry.replace('.', '/')}.class", bytes(code))
    send_jar(spark, jar)
    return loader


def _array(spark: SparkSession, kind: Any, length: int) -> Any:
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    return gateway.new_array(kind, length)


def _sparks_loader(jvm: Any) -> Any:
    return jvm.org.apache.spark.sql.execution.datasources.orc.OrcFileFormat().getClass().getClassLoader()


def send_jar(spark: SparkSession, jar: Path) -> None:
    """Send a jar to the tasks. Tasks on this machine read the file itself, without a connection to the driver."""
    context = spark.sparkContext
    context._jsc.addJar(f"local:{jar}" if str(context.master).startswith("local") else str(jar))  # noqa: SLF001
