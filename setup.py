"""All is in pyproject.toml but this: the migrations, beside the package in a checkout, are installed inside it.

And beside our Java classes goes a jar of them for each Spark in $SPARK_HOME (several with ":" between them), or for
that of PySpark, where there is a Java compiler. Nothing is fetched.
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
    """The package, and the jars beside the sources of its Java classes."""

    def run(self) -> None:
        """Do what setuptools does, then add the jars; a checkout that is installed in place has none."""
        super().run()
        jars = _jars()
        for spark in [] if self.editable_mode else _sparks():
            try:
                jars.write_jar(spark, Path(self.build_lib) / JVM, are_warnings_errors=False)
            except jars.NoJarError as error:
                self.warn(f"no jar of Java classes for {spark}: {error}")


def _jars() -> ModuleType:
    """The module by itself: the package is not installed yet, nor what it needs."""
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
