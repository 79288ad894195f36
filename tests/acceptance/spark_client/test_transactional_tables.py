"""Spark's built-in Hive client cannot read transactional tables, and Spark would not say so: each way in is refused.

Out of reach of a metastore: ``spark.read.orc(path)`` and ``df.write.save(path)``, which ask nobody.
"""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from metastore.errors import InvalidOperationError

pytestmark = pytest.mark.spark

KINDS = {"full": "", "appended": ", 'transactional_properties' = 'insert_only'"}
REFUSED = r"is a transactional table \((full ACID|insert-only)\).*acid\(spark\).*spark\.sql\.catalog\.spark_catalog"

STATEMENTS = [
    "SELECT count(*) FROM {t}",
    "SELECT * FROM (SELECT 1 AS id) s WHERE id IN (SELECT id FROM {t})",
    "WITH c AS (SELECT * FROM {t}) SELECT * FROM c",
    "INSERT INTO {t} VALUES (7)",
    "INSERT OVERWRITE {t} VALUES (7)",
    "INSERT INTO {db}.plain SELECT id FROM {t}",
    "TRUNCATE TABLE {t}",
    "ALTER TABLE {t} SET TBLPROPERTIES ('transactional' = 'false')",
    "ALTER TABLE {t} SET LOCATION '/elsewhere'",
    "ALTER TABLE {t} ADD COLUMNS (b INT)",
    "ALTER TABLE {t} RENAME TO {t}_2",
    "ANALYZE TABLE {t} COMPUTE STATISTICS",
    "CACHE TABLE {t}",
    "LOAD DATA LOCAL INPATH '{file}' INTO TABLE {t}",
    "CREATE TABLE {t} STORED AS ORC AS SELECT 7 AS id",
    "CREATE TABLE IF NOT EXISTS {t} STORED AS ORC AS SELECT 7 AS id",
    "CREATE TABLE {db}.copied STORED AS ORC AS SELECT * FROM {t}",
    "CREATE TABLE {db}.liked LIKE {t}",
    "CREATE VIEW {db}.seen AS SELECT * FROM {t}",
    "MERGE INTO {t} USING (SELECT 7 AS id) s ON {t}.id = s.id WHEN NOT MATCHED THEN INSERT *",
    "UPDATE {t} SET id = 7",
    "DELETE FROM {t}",
    "DROP TABLE {t}",
]
WRITES = {
    "append": lambda rows, t: rows.write.mode("append").saveAsTable(t),
    "append as Hive": lambda rows, t: rows.write.format("hive").mode("append").saveAsTable(t),
    "overwrite": lambda rows, t: rows.write.mode("overwrite").saveAsTable(t),
    "overwrite as Hive": lambda rows, t: rows.write.format("hive").mode("overwrite").saveAsTable(t),
    "create": lambda rows, t: rows.write.saveAsTable(t),
    "insertInto": lambda rows, t: rows.write.insertInto(t),
    "insertInto, overwriting": lambda rows, t: rows.write.insertInto(t, overwrite=True),
    "writeTo": lambda rows, t: rows.writeTo(t).append(),
    "table": lambda rows, t: rows.sparkSession.table(t).collect(),
    "read.table": lambda rows, t: rows.sparkSession.read.table(t).collect(),
    "readStream": lambda rows, t: rows.sparkSession.readStream.table(t),
    "tableExists": lambda rows, t: rows.sparkSession.catalog.tableExists(t),
}


@pytest.fixture
def tables(acid_session, spark, db):
    """By kind a table with the ids 0, 1, 2, and a plain one; what is in them and around them."""
    spark.sql(f"CREATE TABLE {db}.plain (id INT) STORED AS ORC")
    names = {kind: f"{db}.{kind}" for kind in KINDS}
    for kind, name in names.items():
        acid_session.sql(f"CREATE TABLE {name} (id INT) STORED AS ORC TBLPROPERTIES ('transactional' = 'true'{KINDS[kind]})")
        acid_session.sql(f"INSERT INTO {name} VALUES (0), (1), (2)")
    return names


def state(session, name):
    """Return all that a refused write would have changed: the table, its rows, its files."""
    table = session.client.get_table(*name.split("."))
    place = Path(table.sd.location.removeprefix("file:"))
    return table, sorted(row.id for row in session.table(name).collect()), sorted(map(str, place.rglob("*")))


def test_every_way_in_is_refused_and_changes_nothing(spark, acid_session, db, tables, tmp_path):
    (tmp_path / "rows").write_text("7\n")
    before = {name: state(acid_session, name) for name in tables.values()}
    assert [rows for _, rows, _ in before.values()] == [[0, 1, 2]] * 2
    rows = spark.createDataFrame([(7,)], "id INT")  # by which the session is the active one, whose catalog Spark takes
    for kind, statements, writes in (("full", STATEMENTS, WRITES), ("appended", STATEMENTS[:1], {"insertInto": WRITES["insertInto"]})):
        name = tables[kind]
        for statement in statements:
            text = statement.format(t=name, db=db, file=tmp_path / "rows")
            with pytest.raises(PySparkException, match=rf"{name} {REFUSED}"):
                spark.sql(text).collect()
        for way, write in writes.items():
            with pytest.raises(PySparkException, match=rf"{name} {REFUSED}"):
                write(rows, name)
                pytest.fail(f"{way} of {name} is not refused")
    assert {name: state(acid_session, name) for name in tables.values()} == before
    assert sorted(acid_session.client.get_all_tables(db)) == sorted([*KINDS, "plain"])


def test_everybody_sees_that_there_are_such_tables(spark, db, tables):
    names = sorted([*tables, "plain"])
    assert sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN {db}").collect()) == names
    assert sorted(table.name for table in spark.catalog.listTables(db)) == names
    assert spark.sql(f"SELECT * FROM {db}.plain").collect() == []


def test_the_session_lets_spark_through_for_one_statement(spark, acid_session, db, tables):
    """DESCRIBE, ALTER, DROP are Spark's, which asks for the table; the check is on again after each."""
    name = tables["full"]
    assert acid_session.sql(f"DESCRIBE {name}").collect()[0].col_name == "id"
    acid_session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('x' = 'y')")
    with pytest.raises(PySparkException, match=REFUSED):
        spark.sql(f"DESCRIBE {name}")
    with pytest.raises(InvalidOperationError, match="already exists"):
        acid_session.sql(f"ALTER TABLE {name} RENAME TO {db}.plain")
    with pytest.raises(PySparkException, match=REFUSED):
        spark.sql(f"SELECT * FROM {name}")
    acid_session.sql(f"DROP TABLE {name}")
    assert sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN {db}").collect()) == ["appended", "plain"]
