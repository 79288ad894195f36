"""Joins of tables that lie in the same buckets or partitions, without a shuffle: where Spark's own setting asks for it."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyarrow import orc

from tests.support.spark_sessions import is_before

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


@pytest.fixture
def settings(catalog):
    """Make Spark shuffle for joins, except where tables let it do without; yield the settings."""
    chosen = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.sources.v2.bucketing.enabled": "true",
              "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true", "spark.sql.requireAllClusterKeysForCoPartition": "false",
              "spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled": "false"}
    before = {name: catalog.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():
        catalog.conf.set(name, value)
    yield catalog.conf
    for name, value in before.items():
        catalog.conf.set(name, value) if value is not None else catalog.conf.unset(name)


@pytest.fixture
def make(catalog, db):
    """Return a function that makes a table in buckets, and changes and deletes some of its rows."""
    def of(name, count, kind):
        catalog.sql(f"CREATE TABLE {db}.{name} (id {kind}, name STRING) PARTITIONED BY (day INT) CLUSTERED BY (id) INTO {count} BUCKETS {_ACID}")
        catalog.sql(f"INSERT INTO {db}.{name} SELECT CAST(id AS {kind}), concat('{name}', id), id % 3 FROM range(40)")
        catalog.sql(f"INSERT INTO {db}.{name} VALUES (NULL, 'null', 1), (7, 'again', NULL)")
        catalog.sql(f"MERGE INTO {db}.{name} USING (SELECT 1) ON id % 5 = 0 OR id % 7 = 1 WHEN MATCHED AND id % 7 = 1 THEN DELETE "
                    "WHEN MATCHED THEN UPDATE SET name = 'new'")
    return of


def exchanges(frame):
    return frame._jdf.queryExecution().executedPlan().toString().count("Exchange ")


def test_equal_buckets_and_partitions_meet_without_a_shuffle(catalog, db, make, settings) -> None:
    tables = [("a", 4, "INT"), ("b", 4, "INT"), ("c", 8, "INT"), ("d", 4, "STRING")]
    for name, count, kind in tables:
        make(name, count, kind)
        catalog.sql(f"CREATE TABLE {db}.plain_{name} USING parquet AS SELECT * FROM {db}.{name}")

    def shuffles(query):
        frame = catalog.sql(query.format(db=f"{db}."))
        count, rows = exchanges(frame), sorted(map(tuple, frame.collect()), key=repr)
        assert rows
        assert rows == sorted(map(tuple, catalog.sql(query.format(db=f"{db}.plain_")).collect()), key=repr)
        settings.unset("spark.sql.sources.v2.bucketing.enabled")
        assert exchanges(catalog.sql(query.format(db=f"{db}."))) > 0, "an ordinary join, also in a Spark that has the setting on by itself"
        settings.set("spark.sql.sources.v2.bucketing.enabled", "true")
        return count

    assert shuffles("SELECT a.id, a.name, b.name other FROM {db}a a JOIN {db}b b ON a.id = b.id") == 0
    assert shuffles("SELECT * FROM {db}a a JOIN {db}b b ON a.id = b.id AND a.day = b.day") == 0
    assert shuffles("SELECT a.name, b.name other FROM {db}a a LEFT JOIN {db}b b ON a.id = b.id") == 0
    assert shuffles("SELECT day, count(*) FROM {db}a GROUP BY day") == 0
    assert shuffles("SELECT a.name, b.name other FROM {db}a a JOIN {db}c b ON a.id = b.id") > 0, "8 buckets are not 4"
    assert shuffles("SELECT a.name, b.name other FROM {db}a a JOIN {db}d b ON a.id = b.id") > 0, "Hive hashes a text in another way"
    assert shuffles("SELECT a.name, b.name other FROM {db}a a JOIN {db}b b ON a.name = b.name") > 0
    of_a_day = "SELECT a.id, a.day FROM {db}a a JOIN {db}b b ON a.id = b.id WHERE b.day = 1"
    assert shuffles(of_a_day) > 0, "the day is read too, and nothing of the join"
    if not is_before(catalog, "4.3"):
        settings.set("spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled", "true")
        assert shuffles(of_a_day) == 0


def test_a_delete_waits_for_no_scan_that_spark_has_dropped(catalog, db, make, settings) -> None:
    make("a", 4, "INT")
    catalog.sql(f"DELETE FROM {db}.a")
    assert catalog.table(f"{db}.a").count() == 0


def test_a_row_in_a_file_of_another_bucket_is_not_joined(catalog, client, db, make, settings) -> None:
    make("a", 4, "INT")
    make("b", 4, "INT")
    root = Path(urlsplit(client.get_table(db, "a").sd.location).path)
    one, other = sorted(root.glob("day=1/delta_*/bucket_*"))[:2]
    one.write_bytes(other.read_bytes())
    one.with_name(f".{one.name}.crc").unlink(missing_ok=True)
    assert orc.read_table(one).num_rows > 0
    query = f"SELECT * FROM {db}.a a JOIN {db}.b b ON a.id = b.id AND a.day = b.day"
    with pytest.raises(Exception, match=r"holds a row of bucket \d, which its name does not say.*bucketing.enabled to false"):
        catalog.sql(query).collect()
