"""What a read costs however few rows it has, counted: openings of files, calls, rules that Spark runs, copies of settings."""

import gc
from collections import Counter

import pytest

from benchmarks.acid_counts import count
from metastore.files import Files

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


@pytest.fixture
def table(acid_session, spark, db) -> str:
    """Thirty rows and columns of many kinds, three of the rows deleted one after the other."""
    name = f"{db}.t"
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT, note STRING, price DECIMAL(9,2), day DATE, others ARRAY<INT>) {_ACID}")
    acid_session.insert(name, spark.range(0, 30, numPartitions=1).selectExpr(
        "id", "'n' AS note", "CAST(1 AS DECIMAL(9,2)) AS price", "DATE '2020-01-01' AS day", "array(1) AS others"))
    for gone in (3, 4, 5):
        acid_session.sql(f"DELETE FROM {name} WHERE id = {gone}")
    return name


def test_each_delete_file_is_opened_once_and_no_other_one(acid_session, table, monkeypatch) -> None:
    opened: Counter[str] = Counter()

    def counting(name):
        original = getattr(Files, name)

        def method(self, uri):
            opened[uri] += 1
            return original(self, uri)

        monkeypatch.setattr(Files, name, method)

    counting("open")
    counting("read")
    rows = acid_session.table(table)

    assert len(opened) == 3
    assert set(opened.values()) == {1}
    assert all("/delete_delta_" in one for one in opened)
    monkeypatch.undo()
    assert rows.count() == 27


def test_a_read_asks_the_metastore_five_times_and_the_jvm_four_times(acid_session, spark, table) -> None:
    acid_session.table(table)  # what is asked once only
    gc.collect()
    acid_session.client.get_all_databases()  # behind the end of what nobody needs any more
    kept = []

    found = count(spark, lambda: kept.append(acid_session.table(table)))

    assert (found["metastore"], found["jobs"], found["opened"]) == (5, 0, 3)
    assert found["jvm"] <= 4  # one of them whether the session has a block open
    assert kept[0].count() == 27


def test_a_frame_is_analysed_as_often_as_one_of_flat_files(acid_session, spark, table, tmp_path) -> None:
    flat = (tmp_path / "flat").as_uri()
    acid_session.table(table).write.orc(flat)
    plain = count(spark, lambda: spark.read.orc(flat))["rules"]

    beside_deletes = count(spark, lambda: acid_session.table(table))["rules"]
    clean = count(spark, lambda: acid_session.table(table, as_of_write_id=1))["rules"]

    assert 0 < clean <= plain
    assert 0 < beside_deletes <= plain


def test_settings_are_not_copied_for_each_file(acid_session, spark, db, tmp_path) -> None:
    """Spark's own source does so, which shows that they are counted, unless the garbage collection comes first."""
    name, files = f"{db}.many", 40
    acid_session.sql(f"CREATE TABLE {name} (id BIGINT) {_ACID}")
    acid_session.insert(name, spark.range(0, 400, numPartitions=files))
    flat = (tmp_path / "flat").as_uri()
    spark.range(0, 400, numPartitions=files).write.orc(flat)
    read = {"ours": acid_session.table(name).count, "plain": spark.read.orc(flat).count}

    assert any(count(spark, read["plain"])["copies"] >= files / 2 for _ in range(10))
    assert count(spark, read["ours"])["copies"] < files / 2
