"""The command ``metastore spark``: files of this package for Spark."""

from importlib.util import find_spec
from pathlib import Path

import click

from metastore.cli.output import say
from metastore.errors import InvalidOperationError
from metastore.spark.jvm.jars import NoJarError, connector_jar, jar_for


@click.group()
def spark() -> None:
    """Help a Spark to read and write ACID tables."""


@spark.command()
@click.option(
    "--spark-home",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="SPARK_HOME",
    show_envvar=True,
    help="The Spark that it is for.  [default: PySpark's]",
)
@click.option(
    "--spark-version", metavar="X.Y", help="Of a Spark that is not on this machine: only what came with the wheel."
)
def jar(spark_home: Path | None, spark_version: str | None) -> None:
    """Print the path of the catalog's jar, for Spark's --jars.

    A jar is for one minor version of Spark. Where this package came without it, it is compiled now, which takes a
    Java compiler of a JDK 17, and kept for the next time.
    """
    if spark_version is not None:
        say(_of_wheel(spark_version))
        return
    home = spark_home or _beside_us()
    try:
        say(connector_jar(home))
    except NoJarError as error:
        raise InvalidOperationError(f"There is no jar for the Spark in {home}: {error}.") from None


def _of_wheel(version: str) -> Path:
    path = jar_for(version)
    if path.exists():
        return path
    there = ", ".join(sorted(one.name for one in path.parent.glob("spark-*.jar"))) or "none"
    raise InvalidOperationError(
        f"This package came without {path.name} (it has {there}): name the Spark's directory with --spark-home, and "
        "the jar is compiled for it; or build a wheel with all jars: make wheel."
    )


def _beside_us() -> Path:
    pyspark = find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise InvalidOperationError(
            "There is no PySpark beside this package: name a Spark's directory with --spark-home, or its version with "
            "--spark-version."
        )
    return Path(pyspark.origin).parent
