"""The parts of the build that pyproject.toml cannot express: the migrations are installed inside the package.

A jar of our Java classes for each Spark in $SPARK_HOME (several with ":" between them), or for that of PySpark, goes
beside the classes if there is a Java compiler. Nothing is fetched.
"""

import os
import shutil
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

MIGRATIONS = {"metastore.migrations": "migrations", "metastore.migrations.versions": "migrations/versions"}
JVM = Path("metastore/spark/jvm")


class BuildWithJars(build_py):
    """The build of the package, with the jars beside the sources of its Java classes."""

    def run(self) -> None:
        """Build as setuptools does, then add the jars; a checkout that is installed in place has none."""
        super().run()
        jars = _jars()
        for spark in [] if self.editable_mode else _sparks():
            try:
                jars.write_jar(spark, Path(self.build_lib) / JVM, are_warnings_errors=False)
            except jars.NoJarError as error:
                self.warn(f"no jar of Java classes for {spark}: {error}")


def _jars() -> ModuleType:
    """Load the module by itself: neither the package nor its requirements are installed yet."""
    spec = spec_from_file_location("jars", JVM / "jars.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(JVM / "jars.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _sparks() -> list[Path]:
    pyspark = find_spec("pyspark")
    beside_us = str(Path(pyspark.origin).parent) if pyspark and pyspark.origin else ""
    places = os.environ.get("SPARK_HOME", beside_us).split(os.pathsep)
    return [Path(place) for place in places if place and shutil.which("javac")]


setup(
    packages=[*find_packages(include=["metastore", "metastore.*"]), *MIGRATIONS],
    package_dir=MIGRATIONS,
    cmdclass={"build_py": BuildWithJars},
)
