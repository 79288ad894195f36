"""All is in pyproject.toml but this: the migrations, beside the package in a checkout, are installed inside it.

And beside our Java classes goes a jar of them for each Spark in $SPARK_HOME (several with ":" between them), or for
that of PySpark, where there is a Java compiler. Without one nothing is missing: the classes are compiled where they are
used. Nothing is fetched.
"""

import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

MIGRATIONS = {"metastore.migrations": "migrations", "metastore.migrations.versions": "migrations/versions"}
JVM = Path("metastore/spark/jvm")


class BuildWithJars(build_py):
    """The package, and the jars beside the sources of its Java classes."""

    def run(self) -> None:
        """Do what setuptools does, then add the jars; a checkout that is installed in place has none."""
        super().run()
        for spark in [] if self.editable_mode else _sparks():
            if reason := _write_jar(spark, Path(self.build_lib) / JVM):
                self.warn(f"no jar of Java classes for {spark}: {reason}")


def _sparks() -> list[Path]:
    pyspark = find_spec("pyspark")
    beside_us = str(Path(pyspark.origin).parent) if pyspark and pyspark.origin else ""
    places = os.environ.get("SPARK_HOME", beside_us).split(os.pathsep)
    return [Path(place) for place in places if place and shutil.which("javac")]


def _write_jar(spark: Path, directory: Path) -> str | None:
    """Returns why there is none."""
    core = next((spark / "jars").glob("spark-core_*.jar"), None)
    if core is None:
        return "there is no Spark"
    version = core.stem.rpartition("-")[2]
    with tempfile.TemporaryDirectory() as classes:
        done = subprocess.run(  # noqa: S603 - our own sources
            [
                shutil.which("javac") or "javac",
                "-proc:none",
                "-nowarn",
                "--release",
                "17",
                "-d",
                classes,
                "-cp",
                str(spark / "jars" / "*"),
                *map(str, sorted((JVM / "java").rglob("*.java"))),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return done.stderr.strip()
        with ZipFile(directory / f"spark-{'.'.join(version.split('.')[:2])}.jar", "w") as out:
            for path in sorted(Path(classes).rglob("*.class")):
                entry = ZipInfo(path.relative_to(classes).as_posix())  # without a time: the same each time
                out.writestr(entry, path.read_bytes(), ZIP_DEFLATED)
    return None


setup(
    packages=[*find_packages(include=["metastore", "metastore.*"]), *MIGRATIONS],
    package_dir=MIGRATIONS,
    cmdclass={"build_py": BuildWithJars},
)
