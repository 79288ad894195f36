"""Insert-only tables, and plain tables that become transactional: through the session, against plain lists."""

from pathlib import Path

import pyorc
import pytest
from pyarrow import parquet

from metastore.acid.hashes import bucket_of
from metastore.acid.types import parse_type
from metastore.errors import InvalidOperationError, MetastoreError
from metastore.ids import table_name
from metastore.spark.check.table_check import check_table

pytestmark = pytest.mark.spark

_INSERT_ONLY = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"


def rows(session, name):
    return sorted((tuple(row) for row in session.table(name).collect()), key=repr)


def location(session, name):
    return Path(session.client.get_table(*name.split(".")).sd.location.removeprefix("file:").replace("///", "/"))


def files(session, name):
    """Everything below a table that readers see."""
    root = location(session, name)
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if not any(part[0] in "._" for part in path.parts))


@pytest.mark.parametrize("file_format", ["ORC", pytest.param("PARQUET", marks=pytest.mark.slow)])
def test_insert_only_tables(acid_session, db, spark, file_format):
    name = f"{db}.only"
    acid_session.sql(f"CREATE TABLE {name} (id INT, at TIMESTAMP) PARTITIONED BY (p STRING) STORED AS {file_format} {_INSERT_ONLY}")
    acid_session.sql(f"INSERT INTO {name} SELECT id, TIMESTAMP'2020-01-01 12:00:00', concat('a/', id % 2) FROM range(4)")
    with pytest.raises(ZeroDivisionError), acid_session.transaction():
        acid_session.insert(name, spark.sql("SELECT 9 id, 'a/0' p"))
        assert acid_session.table(name).count() == 5
        raise ZeroDivisionError

    assert [(row[0], row[2]) for row in rows(acid_session, name)] == [(0, "a/0"), (1, "a/1"), (2, "a/0"), (3, "a/1")]
    assert {str(row[1]) for row in rows(acid_session, name)} == {"2020-01-01 12:00:00"}
    assert {path.partition("/000")[0] for path in files(acid_session, name)} == {
        "p=a%2F0/delta_0000001_0000001_0000", "p=a%2F1/delta_0000001_0000001_0000"}
    acid_session.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p='a/0') SELECT 7, NULL")
    acid_session.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p='a/1') SELECT 7, NULL WHERE false")
    assert rows(acid_session, name) == [(7, None, "a/0")]
    assert "p=a%2F1/base_0000004/000000_0" in files(acid_session, name), "object stores have no empty directories"
    assert acid_session.sql(f"TRUNCATE TABLE {name}").first()[0] == 1
    assert rows(acid_session, name) == []


def test_files_of_insert_only_tables_can_be_read_by_hive_before_4(acid_session, db):
    """Its ORC knows no zstd, which is what Spark writes if nothing is said: also for what an overwrite without rows leaves.

    Its Parquet may not either: it is of whatever Hadoop it runs in.
    """
    name = f"{db}.only"
    acid_session.sql(f"CREATE TABLE {name} (id INT) PARTITIONED BY (p STRING) STORED AS ORC {_INSERT_ONLY}")
    acid_session.sql(f"INSERT INTO {name} VALUES (1, 'x')")
    acid_session.sql(f"INSERT OVERWRITE TABLE {name} PARTITION (p = 'y') SELECT 1 WHERE false")

    written = [location(acid_session, name) / file for file in files(acid_session, name)]

    assert len(written) == 2
    for file in written:
        with file.open("rb") as source:
            assert pyorc.Reader(source).compression == pyorc.CompressionKind.ZLIB
    acid_session.sql(f"CREATE TABLE {db}.columns (id INT) STORED AS PARQUET {_INSERT_ONLY}")
    acid_session.sql(f"INSERT INTO {db}.columns VALUES (1)")
    [file] = files(acid_session, f"{db}.columns")
    assert parquet.ParquetFile(location(acid_session, f"{db}.columns") / file).metadata.row_group(0).column(0).compression == "SNAPPY"


def test_insert_only_tables_in_buckets_and_from_a_query(acid_session, db):
    name = f"{db}.only"
    acid_session.sql(f"CREATE TABLE {name} (k STRING, v BIGINT) CLUSTERED BY (k) INTO 3 BUCKETS STORED AS ORC {_INSERT_ONLY}")
    acid_session.sql(f"INSERT INTO {name} SELECT concat('ключ', id), id FROM range(20)")
    for file in files(acid_session, name):
        for [key] in acid_session.spark.read.orc(str(location(acid_session, name) / file)).select("k").collect():
            assert int(Path(file).name.partition("_")[0]) == bucket_of([key], [parse_type("string")], 3, 2)
    acid_session.sql(f"CREATE TABLE {db}.ctas STORED AS PARQUET {_INSERT_ONLY} AS SELECT v FROM {name} WHERE v < 3")
    assert rows(acid_session, f"{db}.ctas") == [(0,), (1,), (2,)]


@pytest.mark.parametrize("statement", ["DELETE FROM {name}", "UPDATE {name} SET id = 1",
                                       "MERGE INTO {name} t USING {name} s ON t.id = s.id WHEN MATCHED THEN DELETE"])
def test_rows_of_insert_only_tables_are_not_changed(acid_session, db, statement):
    name = f"{db}.only"
    acid_session.sql(f"CREATE TABLE {name} (id INT) STORED AS ORC {_INSERT_ONLY}")
    with pytest.raises(InvalidOperationError, match="needs a full ACID table, and .* is insert-only"):
        acid_session.sql(statement.format(name=name))


def test_nested_files_of_an_insert_only_table_are_read(acid_session, db):
    name = f"{db}.only"
    acid_session.sql(f"CREATE TABLE {name} (id INT) STORED AS ORC {_INSERT_ONLY}")
    acid_session.sql(f"INSERT INTO {name} VALUES (1)")
    delta = location(acid_session, name) / "delta_0000001_0000001_0000"
    (delta / "HIVE_UNION_SUBDIR_1").mkdir()
    (delta / "000000_0").rename(delta / "HIVE_UNION_SUBDIR_1" / "000000_0")
    assert rows(acid_session, name) == [(1,)]


def test_a_plain_table_becomes_transactional_and_keeps_its_files(acid_session, db, spark):
    name = f"{db}.old"
    spark.sql(f"CREATE TABLE {name} (id INT, name STRING) STORED AS ORC")
    spark.sql(f"INSERT INTO {name} SELECT /*+ REPARTITION(2) */ id, concat('n', id) FROM range(6)")
    spark.sql(f"INSERT INTO {name} VALUES (6, 'n6')")
    sizes = sorted(path.stat().st_size for path in location(acid_session, name).iterdir() if path.name[0] not in "._")

    acid_session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('transactional'='true')")

    assert files(acid_session, name) == ["000000_0", "000001_0", "000002_0"]
    assert sorted((location(acid_session, name) / file).stat().st_size for file in files(acid_session, name)) == sizes
    assert rows(acid_session, name) == [(one, f"n{one}") for one in range(7)]
    assert acid_session.update(name, {"name": "upper(name)"}, "id IN (1, 6)") == 2
    assert acid_session.delete(name, "id % 3 = 2") == 2
    acid_session.sql(f"MERGE INTO {name} t USING (SELECT 0 AS id UNION ALL SELECT 9) s ON t.id = s.id WHEN MATCHED THEN DELETE "
                     "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')")
    assert rows(acid_session, name) == [(1, "N1"), (3, "n3"), (4, "n4"), (6, "N6"), (9, "new")]
    assert acid_session.sql(f"SELECT count(*) FROM {name} WHERE name = 'n4'").first()[0] == 1
    with pytest.raises(MetastoreError, match="'transactional'"):
        acid_session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('transactional'='false')")


def test_partitions_that_become_transactional(acid_session, db, spark):
    name = f"{db}.old"
    spark.sql(f"CREATE TABLE {name} (id INT) PARTITIONED BY (p STRING) STORED AS ORC")
    spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    spark.sql(f"INSERT INTO {name} SELECT id, concat('x/', id % 2) FROM range(6)")

    acid_session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('transactional'='true')")
    acid_session.delete(name, "id IN (0, 3)")
    acid_session.sql(f"INSERT INTO {name} VALUES (7, 'new')")

    assert rows(acid_session, name) == [(1, "x/1"), (2, "x/0"), (4, "x/0"), (5, "x/1"), (7, "new")]
    assert acid_session.table(name).where("p = 'x/1'").count() == 2
    assert check_table(acid_session.client, acid_session.files, table_name(*name.split("."))) == []


@pytest.mark.parametrize(("table", "properties", "reason"), [
    ("(id INT) STORED AS PARQUET", "'transactional'='true'", "not stored as ORC"),
    ("(id INT) STORED AS ORC", "'transactional'='true', 'transactional_properties'='insert_only'", "full ACID only")])
def test_tables_that_cannot_be_converted(acid_session, db, spark, table, properties, reason):
    spark.sql(f"CREATE TABLE {db}.old {table}")
    with pytest.raises(InvalidOperationError, match=reason):
        acid_session.sql(f"ALTER TABLE {db}.old SET TBLPROPERTIES ({properties})")
    with pytest.raises(InvalidOperationError, match="at once, whatever becomes of a transaction"), acid_session.transaction():
        acid_session.sql(f"ALTER TABLE {db}.old SET TBLPROPERTIES ({properties})")
