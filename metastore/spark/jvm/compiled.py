"""Java classes of ours in a Spark that knows nothing of them: compiled once for each Spark, and sent to its tasks.

Rule: nothing has to be installed on a cluster. Spark's compiler for queries (Janino) makes the classes in the driver,
and they go to the executors as a jar that the session adds, like any jar that a user adds.
"""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any
from zipfile import ZipFile

from pyspark.sql import SparkSession

_SOURCES = Path(__file__).parent / "java" / "transactionmetastore" / "spark"
_COMPILED = "_acid_compiled"
_compiling = Lock()


def jvm_of(spark: SparkSession) -> Any:
    """The driver's JVM, for what PySpark offers no other way to. It is there as long as the session is."""
    return spark._jvm  # noqa: SLF001 - see above


def compiled(spark: SparkSession, *names: str) -> Any:
    """An object of the last class, in the driver's JVM; the other classes are what it needs, in that order."""
    context = spark.sparkContext
    with _compiling:
        if (found := getattr(context, _COMPILED, None)) is None:
            found = {}
            setattr(context, _COMPILED, found)
        if names not in found:
            found[names] = _compiled(spark, names)
    return found[names]


def _compiled(spark: SparkSession, names: Sequence[str]) -> Any:
    context, jvm = spark.sparkContext, jvm_of(spark)
    loader = jvm.org.apache.spark.sql.execution.datasources.orc.OrcFileFormat().getClass().getClassLoader()
    jar = Path(context._temp_dir) / f"{names[-1]}.jar"  # noqa: SLF001 - gone when Spark is
    with ZipFile(jar, "w") as out:
        for name in names:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(loader)
            compiler.cook((_SOURCES / f"{name}.java").read_text("utf-8"))
            loader = compiler.getClassLoader()
            for entry, code in dict(compiler.getBytecodes()).items():
                out.writestr(f"{entry.replace('.', '/')}.class", bytes(code))
    # Where the tasks are in this process, or on this machine, they need no connection to the driver for it.
    context._jsc.addJar(f"local:{jar}" if str(context.master).startswith("local") else str(jar))  # noqa: SLF001
    gateway: Any = context._gateway  # noqa: SLF001
    new_array = gateway.new_array
    no_types, nothing = new_array(jvm.java.lang.Class, 0), new_array(jvm.java.lang.Object, 0)
    return loader.loadClass(names[-1]).getConstructor(no_types).newInstance(nothing)
