"""Statements for Spark's built-in Hive client, and a look at what the metastore keeps of them."""

import pytest


@pytest.fixture(scope="module")
def spark(spark):
    """Return a session without our catalog; other tests give the catalog to the shared session."""
    return spark.newSession()


@pytest.fixture
def acid_session(spark):
    """``acid(spark)`` in another session."""
    from metastore.spark import acid
    from tests.support.spark_sessions import skip_without_acid

    skip_without_acid(spark)
    with acid(spark.newSession()) as session:
        yield session


@pytest.fixture(autouse=True)
def settings(spark):
    """Set the keys that these statements need, and restore them in the end: other tests share the session."""
    chosen = {"hive.exec.dynamic.partition": "true", "hive.exec.dynamic.partition.mode": "nonstrict"}
    before = {key: spark.conf.get(key, None) for key in chosen}
    for key, value in chosen.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


@pytest.fixture
def sql(spark):
    """``sql(statement)``: its rows as tuples."""
    return lambda statement: [tuple(row) for row in spark.sql(statement).collect()]


@pytest.fixture
def refused(spark):
    """``refused(statement)``: the error class that Spark makes of the answer."""
    from pyspark.errors import PySparkException

    def run(statement):
        with pytest.raises(PySparkException) as raised:
            spark.sql(statement).collect()
        return raised.value.getCondition()

    return run


@pytest.fixture
def hive(lakehouse):
    """Yield a client of ours, which shows the objects that Spark stored."""
    from metastore.client import MetastoreClient

    with MetastoreClient(lakehouse.uri) as client:
        yield client
