"""Which properties may reach a compaction's job."""

import pytest

from metastore.compaction.queue.rules.properties import (
    job_properties,
    orc_settings,
    refused_for_others,
    refused_format,
    refused_output,
    refused_property,
    spark_settings,
)


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


def test_the_request_wins_over_the_table_and_that_over_the_database():
    memory, cores = "compactor.spark.executor.memory", "compactor.spark.executor.cores"
    merged = job_properties(
        {memory: "1g", cores: "1", "orc.compress": "NONE", "a": "b"},
        {memory: "2g", "orc.compress": "ZLIB", "orc.stripe.size": "1", "tblprops.orc.compress": "LZ4", "comment": "x"},
        {memory: "3g", "tblprops.orc.compress": "SNAPPY", "orc.stripe.size": "9", "tblprops.comment": "y"})

    assert merged == {memory: "3g", cores: "1", "orc.compress": "SNAPPY", "orc.stripe.size": "1"}
    assert orc_settings(merged) == {"orc.compress": "SNAPPY", "orc.stripe.size": "1"}


@pytest.mark.parametrize(("database", "table", "request_", "queue"), [
    ({}, {}, {}, None),
    ({"hive.compactor.job.queue": "d"}, {}, {}, "d"),
    ({"spark.yarn.queue": "d"}, {"mapreduce.job.queuename": "t"}, {}, "t"),
    ({}, {"hive.compactor.job.queue": "t"}, {"mapred.job.queue.name": "r"}, "r"),
    ({}, {}, {"mapred.job.queue.name": "3", "mapreduce.job.queuename": "2", "hive.compactor.job.queue": "1"}, "1"),
])
def test_the_queue_has_many_names(database, table, request_, queue):
    """COMP-W32."""
    levels = ({f"compactor.{key}": value for key, value in level.items()} for level in (database, table, request_))
    assert spark_settings(job_properties(*levels)) == ({"spark.yarn.queue": queue} if queue else {})


def test_an_output_that_would_not_change_is_refused():
    assert refused_output({"tblprops.orc.compress.size": "8192", "a": "b", "orc.compress": "x"}) is None
    for key, value in [("tblprops.comment", "x"), ("tblprops.orc.compress", "brotli"), ("TblProps.orc.key.provider", "x"),
                       ("tblprops.orc.stripe.size", "64 MB"), ("tblprops.orc.bloom.filter.columns", "a;b")]:
        assert repr(key) in refused_output({key: value})


def test_settings_of_orc_are_refused_where_nothing_is_orc():
    assert refused_for_others({"a": "b", "compactor.spark.executor.memory": "1g"}) is None
    assert "'TBLPROPS.orc.compress' would have no effect" in refused_for_others({"TBLPROPS.orc.compress": "ZLIB", "a": "b"})


def test_files_that_cannot_be_written_as_the_table_says():
    assert refused_format({"orc.compress": "zstd", "orc.anything": "x", "orc.bloom.filter.fpp": "0.05"}) is None
    assert "unencrypted" in refused_format({"orc.encrypt": "pii:a"})
    assert "'64 MB'" in refused_format({"orc.stripe.size": "64 MB"})
