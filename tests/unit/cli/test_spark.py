"""``metastore spark jar``: where the jar for a Spark is, or why there is none."""

import pytest
from click.testing import CliRunner

from metastore.cli import spark
from metastore.errors import InvalidOperationError


def printed(*arguments, **environment):
    answer = CliRunner().invoke(spark.spark, ["jar", *arguments], env={"SPARK_HOME": None, **environment})
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    assert answer.exit_code == 0, answer.output
    return answer.output.strip()


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """Create a package that was built for Spark 4.2 alone, and a Spark of each of two versions."""
    monkeypatch.setattr("metastore.spark.jvm.jars.HERE", tmp_path)
    (tmp_path / "spark-4.2.jar").touch()
    for version in ("4.2.1", "4.3.0"):
        (tmp_path / version / "jars").mkdir(parents=True)
        (tmp_path / version / "jars" / f"spark-core_2.13-{version}.jar").touch()
    return tmp_path


def test_the_jar_of_the_wheel_is_named_for_a_spark_and_for_a_version(wheel):
    expected = str(wheel / "spark-4.2.jar")
    assert printed("--spark-home", str(wheel / "4.2.1")) == expected
    assert printed(SPARK_HOME=str(wheel / "4.2.1")) == expected
    assert printed("--spark-version", "4.2") == printed("--spark-version", "4.2.7") == expected


def test_what_is_not_there_is_told_with_the_way_to_it(wheel, monkeypatch):
    with pytest.raises(InvalidOperationError, match=r"came without spark-4.0.jar \(it has spark-4.2.jar\): .* --spark-home"):
        printed("--spark-version", "4.0")
    with pytest.raises(InvalidOperationError, match=f"There is no jar for the Spark in {wheel}/none: there is no Spark in"):
        printed("--spark-home", str(wheel / "none"))
    monkeypatch.setattr(spark, "find_spec", lambda _: None)
    with pytest.raises(InvalidOperationError, match="There is no PySpark beside this package"):
        printed()


def test_pysparks_is_meant_where_none_is_named(wheel, monkeypatch):
    class Found:
        origin = str(wheel / "4.2.1" / "__init__.py")

    monkeypatch.setattr(spark, "find_spec", lambda _: Found)
    assert printed() == str(wheel / "spark-4.2.jar")
