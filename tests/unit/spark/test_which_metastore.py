"""Where ``acid(spark)`` finds its metastore when Spark's catalog names none."""

from types import SimpleNamespace

import pytest

from metastore.errors import InvalidOperationError
from metastore.spark.session import _configured_uri


def _spark(catalog, **settings):
    shared = SimpleNamespace(hadoopConf=lambda: settings, conf=lambda: {"spark.sql.catalogImplementation": catalog})
    return SimpleNamespace(_jsparkSession=SimpleNamespace(sharedState=lambda: shared))


def test_a_catalog_with_a_database_of_its_own_is_refused():
    with pytest.raises(InvalidOperationError, match=r"has no metastore server.*acid\(spark, uri\)"):
        _configured_uri(_spark("hive"))


def test_a_catalog_in_memory_leaves_it_to_the_environment():
    assert _configured_uri(_spark("in-memory")) is None
