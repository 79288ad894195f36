"""Which metastore ``acid(spark)`` asks."""

import pytest

from metastore.spark import acid

pytestmark = pytest.mark.spark


def test_it_is_that_of_sparks_catalog(spark, lakehouse, db, monkeypatch):
    monkeypatch.setenv("METASTORE_URI", "thrift://127.0.0.1:1")
    with acid(spark) as session:
        assert session.client.uri == lakehouse.uri
        assert db in session.client.get_all_databases()
        catalog = spark._jsparkSession.sharedState().externalCatalog().unwrapped()
        assert catalog.client().getConf("hive.metastore.uris", "") == session.client.uri
