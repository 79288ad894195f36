"""Which jar a Spark gets, and what is said where there is none."""

import pyspark
import pytest

from metastore.errors import InvalidOperationError
from metastore.spark.jvm import compiled, jars


@pytest.fixture
def no_compiler(tmp_path, monkeypatch):
    """Prepare a package without any jar, on a machine with a Java runtime alone; SPARK_HOME is a Spark of this PySpark's version."""
    monkeypatch.setattr(jars, "HERE", tmp_path)
    monkeypatch.setattr(jars.shutil, "which", lambda *_, **__: None)
    monkeypatch.setattr(jars, "sources", lambda _: [])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    (tmp_path / "connector" / "spark-4.0").mkdir(parents=True)
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / f"spark-core_2.13-{pyspark.__version__}.jar").touch()
    return tmp_path


def test_the_jar_of_the_wheel_needs_no_compiler_and_no_place_of_a_spark(no_compiler, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", str(no_compiler / "nowhere"))
    jar = no_compiler / jars.jar_name(pyspark.__version__)
    jar.touch()
    assert compiled.jar_of(pyspark.__version__) == jar


def test_where_there_is_neither_jar_nor_compiler_it_is_said_what_to_install(no_compiler):
    with pytest.raises(InvalidOperationError, match=r"no jar of our Java classes for Spark .*: there is no Java compiler \(javac\)\. .*a wheel.*or a JDK 17"):
        compiled.jar_of(pyspark.__version__)


def test_a_spark_before_4_gets_none():
    with pytest.raises(InvalidOperationError, match=r"for Spark 3\.5\.9: they need Spark 4\.0 or newer"):
        compiled.jar_of("3.5.9")
