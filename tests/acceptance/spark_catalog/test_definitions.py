"""Transactional tables made, changed and dropped in Spark's own SQL."""

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from metastore.client import DomainClient

pytestmark = pytest.mark.spark

_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


def _table(lakehouse, db: str, name: str):
    with DomainClient(lakehouse.uri) as client:
        return client.get_table(db, name)


def test_a_table_is_created_changed_and_dropped(catalog, lakehouse, db) -> None:
    catalog.sql(f"""CREATE TABLE {db}.t (id INT COMMENT 'which', n INT, day DATE) PARTITIONED BY (day)
                    CLUSTERED BY (id) INTO 4 BUCKETS STORED AS ORC COMMENT 'all of it' TBLPROPERTIES ('transactional'='true', 'mine'='yes')""")
    made = _table(lakehouse, db, "t")
    assert [(column.name, column.type, column.comment) for column in (*made.sd.cols, *made.partitionKeys)] == [
        ("id", "int", "which"), ("n", "int", None), ("day", "date", None)]
    assert (made.sd.numBuckets, made.sd.bucketCols, made.parameters["mine"], made.parameters["comment"]) == (4, ["id"], "yes", "all of it")
    assert "acid.format" not in made.parameters

    catalog.sql(f"ALTER TABLE {db}.t ADD COLUMNS (extra BIGINT COMMENT 'more')")
    catalog.sql(f"ALTER TABLE {db}.t ALTER COLUMN n TYPE BIGINT")
    catalog.sql(f"ALTER TABLE {db}.t SET TBLPROPERTIES ('mine'='no')")
    catalog.sql(f"ALTER TABLE {db}.t RENAME TO {db}.u")
    assert [(row.col_name, row.data_type) for row in catalog.sql(f"DESCRIBE {db}.u").collect()][:4] == [
        ("id", "int"), ("n", "bigint"), ("extra", "bigint"), ("day", "date")]
    assert _table(lakehouse, db, "u").parameters["mine"] == "no"
    assert [row.tableName for row in catalog.sql(f"SHOW TABLES IN {db}").collect()] == ["u"]

    catalog.sql(f"DROP TABLE {db}.u")
    catalog.sql(f"DROP TABLE IF EXISTS {db}.u")
    assert catalog.sql(f"SHOW TABLES IN {db}").collect() == []


def test_tables_of_sparks_own_stay_its_own(catalog, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.plain USING parquet AS SELECT 1 AS id")
    catalog.sql(f"INSERT INTO {db}.plain VALUES (2)")
    catalog.sql(f"CREATE VIEW {db}.seen AS SELECT max(id) AS last FROM {db}.plain")

    assert catalog.sql(f"SELECT last FROM {db}.seen").first() == (2,)
    catalog.sql(f"DROP VIEW {db}.seen")
    catalog.sql(f"DROP TABLE {db}.plain")


@pytest.mark.parametrize(("statement", "reason"), [
    (f"CREATE TABLE {{db}}.t (id INT NOT NULL) {_ACID}", "DEFAULT and NOT NULL"),
    (f"CREATE TABLE {{db}}.t (id INT, at TIMESTAMP) PARTITIONED BY (years(at)) {_ACID}", "partitioned by columns"),
    (f"CREATE TABLE {{db}}.there (id INT) {_ACID}", "already exists"),
    ("ALTER TABLE {db}.there DROP COLUMN nothing", "nothing"),
])
def test_what_cannot_be_defined_is_refused(catalog, db, statement, reason) -> None:
    catalog.sql(f"CREATE TABLE {db}.there (id INT) {_ACID}")

    with pytest.raises((PySparkException, Py4JJavaError), match=reason):
        catalog.sql(statement.format(db=db))
    assert [row.tableName for row in catalog.sql(f"SHOW TABLES IN {db}").collect()] == ["there"]
    catalog.sql(f"DROP TABLE {db}.there")


def test_an_insert_only_table_is_read_where_it_is_orc(catalog, acid_session, db) -> None:
    for stored_as in ("orc", "parquet"):
        acid_session.sql(f"""CREATE TABLE {db}.{stored_as} (id INT) PARTITIONED BY (k INT) STORED AS {stored_as}
                             TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')""")
        acid_session.sql(f"INSERT INTO {db}.{stored_as} VALUES (1, 1), (2, 2)")

    assert sorted(tuple(row) for row in catalog.sql(f"SELECT * FROM {db}.orc").collect()) == [(1, 1), (2, 2)]
    assert catalog.sql(f"SELECT count(*) FROM {db}.orc WHERE k = 2").first() == (1,)
    with pytest.raises(Py4JJavaError, match="stored as ORC"):
        catalog.sql(f"SELECT * FROM {db}.parquet").collect()
