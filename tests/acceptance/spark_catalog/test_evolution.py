"""Tables whose columns change: fields of structs, statements WITH SCHEMA EVOLUTION, CREATE OR REPLACE TABLE, constraints."""

import pytest
from pyspark.errors import PySparkException

from metastore.client import DomainClient
from metastore.client.constraints import enabled_constraints
from metastore.ids import table_name
from tests.support.spark_sessions import is_before

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_ADDS = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"


def columns(lakehouse, db, name):
    with DomainClient(lakehouse.uri) as client:
        return {column.name: column.type for column in client.get_table(db, name).sd.cols}


def rows(catalog, name):
    return sorted(map(tuple, catalog.table(name).collect()), key=repr)


@pytest.mark.parametrize("stored", [_ACID, f"STORED AS PARQUET {_ADDS}"])
def test_a_field_is_added_to_a_struct(catalog, lakehouse, db, stored) -> None:
    catalog.sql(f"CREATE TABLE {db}.t (id INT, place STRUCT<city: STRING>, tags ARRAY<STRUCT<a: INT>>) {stored}")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1, named_struct('city', 'x'), array(named_struct('a', 1))), (2, NULL, NULL)")

    catalog.sql(f"ALTER TABLE {db}.t ADD COLUMNS (place.street STRING, tags.element.b STRING)")

    assert columns(lakehouse, db, "t") == {
        "id": "int", "place": "struct<city:string,street:string>", "tags": "array<struct<a:int,b:string>>"}
    assert rows(catalog, f"{db}.t") == [(1, ("x", None), [(1, None)]), (2, None, None)]
    catalog.sql(f"INSERT INTO {db}.t VALUES (3, named_struct('city', 'y', 'street', 'z'), array())")
    assert catalog.sql(f"SELECT id, place.street FROM {db}.t WHERE place.street IS NOT NULL").collect() == [(3, "z")]
    for change in ("ADD COLUMN place.zip INT FIRST", "RENAME COLUMN place.city TO town", "DROP COLUMN place.city"):
        with pytest.raises(PySparkException, match="is a field of the column place"):
            catalog.sql(f"ALTER TABLE {db}.t {change}")


def test_a_merge_adds_the_columns_of_its_source(catalog, lakehouse, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.t (id INT, n INT, k STRING) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1, 1, 'x'), (2, 2, 'x')")
    merge = f"""MERGE WITH SCHEMA EVOLUTION INTO {db}.t t USING (SELECT 1 AS id, 5 AS n, 'x' AS k, 'new' AS extra UNION ALL SELECT 3, 6, 'y', 'more') s
                ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""

    if is_before(catalog, "4.1"):
        with pytest.raises(PySparkException, match="needs Spark 4.1"):
            catalog.sql(merge)
        return
    catalog.sql(merge)

    assert columns(lakehouse, db, "t") == {"id": "int", "n": "int", "k": "string", "extra": "string"}
    assert rows(catalog, f"{db}.t") == [(1, 5, "x", "new"), (2, 2, "x", None), (3, 6, "y", "more")]
    catalog.sql(f"CREATE TABLE {db}.parted (id INT, n INT) PARTITIONED BY (k STRING) {_ACID}")
    with pytest.raises(PySparkException, match="parted has partition keys, .* ADD COLUMNS first"):
        catalog.sql(merge.replace(f"INTO {db}.t t", f"INTO {db}.parted t"))


def test_an_insert_adds_the_columns_of_its_query(catalog, lakehouse, db) -> None:
    if is_before(catalog, "4.2"):
        pytest.skip("INSERT has no WITH SCHEMA EVOLUTION")
    catalog.sql(f"CREATE TABLE {db}.t (id INT, n SMALLINT) PARTITIONED BY (k STRING) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1, 1, 'x')")
    insert = f"INSERT WITH SCHEMA EVOLUTION INTO {db}.t"

    catalog.sql(f"{insert} BY NAME SELECT 2 AS id, 70000 AS n, 'x' AS k, 'new' AS extra")
    assert columns(lakehouse, db, "t") == {"id": "int", "n": "int", "extra": "string"}
    with pytest.raises(PySparkException, match="INTO .*t BY NAME"):
        catalog.sql(f"{insert} SELECT 3, 3, 'extra', 'x', 'more'")
    with pytest.raises(PySparkException):
        catalog.sql(f"{insert} BY NAME SELECT 4 AS id, 4 AS n, 'x' AS k, 'new' AS extra, CAST(raise_error('no') AS STRING) AS never")

    assert rows(catalog, f"{db}.t") == [(1, 1, None, None, "x"), (2, 70000, "new", None, "x")]


def test_a_table_is_replaced_with_its_rows(catalog, lakehouse, db, open_transactions) -> None:
    catalog.sql(f"CREATE TABLE {db}.t (id INT, n INT) {_ACID[:-1]}, 'mine'='yes')")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1, 1), (2, 2)")

    catalog.sql(f"CREATE OR REPLACE TABLE {db}.t COMMENT 'anew' AS SELECT CAST(id AS STRING) AS n, named_struct('x', n) AS other FROM {db}.t")

    assert columns(lakehouse, db, "t") == {"n": "string", "other": "struct<x:int>"}
    with DomainClient(lakehouse.uri) as client:
        parameters = client.get_table(db, "t").parameters
    assert (parameters["comment"], parameters["transactional"], parameters.get("mine")) == ("anew", "true", None)
    assert rows(catalog, f"{db}.t") == [("1", (1,)), ("2", (2,))]
    catalog.sql(f"UPDATE {db}.t SET n = 'one' WHERE n = '1'")
    with pytest.raises(PySparkException, match="no"):
        catalog.sql(f"CREATE OR REPLACE TABLE {db}.t AS SELECT raise_error('no') AS z")
    assert rows(catalog, f"{db}.t") == [("2", (2,)), ("one", (1,))]
    catalog.sql("SELECT 5 AS five").writeTo(f"{db}.t").createOrReplace()
    assert rows(catalog, f"{db}.t") == [(5,)]
    catalog.sql(f"REPLACE TABLE {db}.t (a INT, b STRING)")
    assert (rows(catalog, f"{db}.t"), columns(lakehouse, db, "t")) == ([], {"a": "int", "b": "string"})
    catalog.sql(f"INSERT INTO {db}.t VALUES (1, 'b')")
    assert rows(catalog, f"{db}.t") == [(1, "b")]
    assert open_transactions() == []


def test_the_partition_keys_of_a_query_are_found_by_name(catalog, db) -> None:
    """Spark writes by places, and a table has its keys last: the values would go into other columns."""
    catalog.sql(f"CREATE TABLE {db}.t PARTITIONED BY (K, j) {_ACID} AS SELECT 1 AS j, 'x' AS k, 'y' AS name, 'z' AS other")
    assert catalog.table(f"{db}.t").columns == ["name", "other", "k", "j"]
    assert rows(catalog, f"{db}.t") == [("y", "z", "x", 1)]

    catalog.sql(f"CREATE OR REPLACE TABLE {db}.t PARTITIONED BY (k, j) AS WITH w AS (SELECT 2 AS j, 'a' AS k) SELECT k, j, 'b' AS name FROM w")

    assert catalog.table(f"{db}.t").columns == ["name", "k", "j"]
    assert rows(catalog, f"{db}.t") == [("b", "a", 2)]
    frame = catalog.sql("SELECT 'p' AS k, 3 AS id")
    frame.writeTo(f"{db}.written").partitionedBy(frame.k).tableProperty("transactional", "true").create()
    assert rows(catalog, f"{db}.written") == [(3, "p")]


def test_all_partitions_are_replaced(catalog, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.t (id INT) PARTITIONED BY (k INT) STORED AS PARQUET {_ADDS}")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1, 1), (2, 2)")

    catalog.sql(f"CREATE OR REPLACE TABLE {db}.t PARTITIONED BY (k) AS SELECT 'x' AS name, 2 AS k")

    assert rows(catalog, f"{db}.t") == [("x", 2)]
    catalog.sql("CALL system.begin()")
    try:
        with pytest.raises(PySparkException, match="is created at once|replaced"):
            catalog.sql(f"CREATE OR REPLACE TABLE {db}.t PARTITIONED BY (k) AS SELECT 'y' AS name, 2 AS k")
    finally:
        catalog.sql("CALL system.rollback()")
    assert rows(catalog, f"{db}.t") == [("x", 2)]


def test_constraints_in_sparks_words_are_kept(catalog, lakehouse, db) -> None:
    if is_before(catalog, "4.1"):
        pytest.skip("Spark has no constraints")
    catalog.sql(f"CREATE TABLE {db}.p (id INT PRIMARY KEY) {_ACID}")
    catalog.sql(f"CREATE TABLE {db}.t (id INT, n INT, CONSTRAINT small CHECK (n < 100), UNIQUE (n), FOREIGN KEY (id) REFERENCES {db}.p (id)) {_ACID}")
    with DomainClient(lakehouse.uri) as client:
        request = client.types.AllTableConstraintsRequest(db, "t", "hive")
        found = client.get_all_table_constraints(request).allTableConstraints
    assert ([one.column_name for one in found.uniqueConstraints], [(one.fkcolumn_name, one.pktable_name) for one in found.foreignKeys]) == (
        ["n"], [("id", "p")])

    with pytest.raises(PySparkException, match="CHECK small .* by 1 row"):
        catalog.sql(f"INSERT INTO {db}.t VALUES (1, 100)")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1, 50)")
    with pytest.raises(PySparkException):
        catalog.sql(f"ALTER TABLE {db}.t ADD CONSTRAINT tiny CHECK (n < 10)")
    catalog.sql(f"ALTER TABLE {db}.t DROP CONSTRAINT small")
    catalog.sql(f"ALTER TABLE {db}.t DROP CONSTRAINT IF EXISTS small")
    catalog.sql(f"ALTER TABLE {db}.t ADD CONSTRAINT large CHECK (n > 10)")
    with DomainClient(lakehouse.uri) as client:
        assert enabled_constraints(client, table_name(db, "t")).checks == (("large", "n > 10"),)
    with pytest.raises(PySparkException, match="CHECK large"):
        catalog.sql(f"UPDATE {db}.t SET n = 1")
    with pytest.raises(PySparkException, match="DROP CONSTRAINT those that it has"):
        catalog.sql(f"REPLACE TABLE {db}.t (id INT)")
    assert rows(catalog, f"{db}.t") == [(1, 50)]


@pytest.mark.parametrize("stored", [_ACID, f"STORED AS PARQUET {_ADDS}"])
def test_a_column_with_a_default_comes_in_three_steps(catalog, db, stored) -> None:
    """Which the refusal tells: then old rows are as in Spark's own tables."""
    for name, kind in (("t", stored), ("own", "USING parquet")):
        catalog.sql(f"CREATE TABLE {db}.{name} (id INT) {kind}")
        catalog.sql(f"INSERT INTO {db}.{name} VALUES (1)")
    catalog.sql(f"ALTER TABLE {db}.own ADD COLUMN n INT DEFAULT 3 + 4")
    with pytest.raises(PySparkException, match="cannot be added with DEFAULT 3 [+] 4, which the rows that are there would not have") as refused:
        catalog.sql(f"ALTER TABLE {db}.t ADD COLUMN n INT DEFAULT 3 + 4")

    steps = str(refused.value).partition("Do it step by step: ")[2].rstrip(".").split("; ")
    assert len(steps) == 3
    for step in steps:
        catalog.sql(step)

    for name in ("t", "own"):
        catalog.sql(f"INSERT INTO {db}.{name} (id) VALUES (2)")
        assert sorted(catalog.table(f"{db}.{name}").collect()) == [(1, 7), (2, 7)]
