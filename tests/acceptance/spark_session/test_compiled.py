"""Where Spark was started without our jar, and no wheel has brought one, Spark's own compiler makes the classes."""

import pytest

from metastore.spark.jvm import compiled

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", compiled.NEEDED)
def test_sparks_compiler_takes_each_class(spark, name) -> None:
    made = compiled._new(spark, f"files.{name}", compiled._compiled(spark, name))

    assert made.getClass().getName() == f"{compiled.PACKAGE}.files.{name}"
    assert str(made.getClass().getClassLoader().getClass()).endswith("ByteArrayClassLoader")
