"""Which properties may reach a compaction's job."""

import pytest

from metastore.compaction.queue.rules.properties import refused_property, spark_settings


@pytest.mark.parametrize(("key", "value"), [
    ("compactor.spark.executor.memory", "3g"), ("compactor.spark.driver.memory", "512MB"),
    ("compactor.spark.executor.cores", "4"), ("compactor.spark.sql.shuffle.partitions", "200"),
    ("compactor.spark.yarn.queue", "root.low-prio"), ("compactor.mapreduce.map.memory.mb", "2048"),
    ("orc.compress", "ZLIB"), ("compactorthreshold.hive.compactor.delta.num.threshold", "3"), ("spark.jars", "unused.jar")])
def test_harmless(key, value):
    assert refused_property({key: value}) is None


@pytest.mark.parametrize(("key", "value"), [
    ("compactor.spark.jars", "/tmp/evil.jar"), ("compactor.spark.extraListeners", "evil.Listener"),
    ("compactor.spark.driver.extraJavaOptions", "-javaagent:/tmp/evil.jar"), ("compactor.spark.master", "spark://evil:7077"),
    ("compactor.spark.executor.memory", "3g --jars x"), ("compactor.spark.yarn.queue", "a b"), ("Compactor.Spark.jars", "x"),
    ("compactor.spark.executor.cores", "9999999"), ("compactor.anything", "1")])
def test_refused(key, value):
    assert repr(key) in refused_property({"a": "b", key: value})
    assert spark_settings({key: value}) == {}


def test_what_a_table_has_already_may_stay_in_it():
    known = {"compactor.spark.jars": "/old.jar"}

    assert refused_property(known, known) is None
    assert refused_property({"compactor.spark.jars": "/new.jar"}, known) is not None


def test_what_the_session_gets():
    assert spark_settings({"compactor.spark.executor.memory": "3g", "compactor.mapreduce.map.memory.mb": "1", "a": "b"}) == {
        "spark.executor.memory": "3g"}
