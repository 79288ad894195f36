"""In which Sparks ``acid(spark)`` works, and where it finds its metastore when Spark's catalog names none."""

from types import SimpleNamespace

import pytest

from metastore.errors import InvalidOperationError
from metastore.spark import acid
from metastore.spark.jvm.versions import require_supported
from metastore.spark.session import _configured_uri


def _spark(catalog, **settings):
    shared = SimpleNamespace(hadoopConf=lambda: settings, conf=lambda: {"spark.sql.catalogImplementation": catalog})
    return SimpleNamespace(_jsparkSession=SimpleNamespace(sharedState=lambda: shared))


@pytest.mark.parametrize("version", ["3.5.7", "3.4.0-amzn-1", "4.0.5"])
def test_a_spark_that_is_too_old_is_refused_before_anything_is_asked(version):
    with pytest.raises(InvalidOperationError, match=rf"do not work in Spark {version}: they need Spark 4\.\d or newer"):
        acid(SimpleNamespace(version=version), "thrift://nowhere:1")


@pytest.mark.parametrize("version", ["4.1.0", "4.3.0", "4.10.0", "5.0.0-SNAPSHOT"])
def test_a_spark_that_is_newer_is_tried(version):
    require_supported(version)


def test_a_catalog_with_a_database_of_its_own_is_refused():
    with pytest.raises(InvalidOperationError, match=r"has no metastore server.*acid\(spark, uri\)"):
        _configured_uri(_spark("hive"))


def test_a_catalog_in_memory_leaves_it_to_the_environment():
    assert _configured_uri(_spark("in-memory")) is None
