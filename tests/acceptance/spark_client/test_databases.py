"""Databases and functions as Spark sees them."""

import getpass
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


@pytest.fixture
def name(spark, db):
    """Yield the name of a database that does not exist yet."""
    yield f"{db}_x"
    spark.sql(f"DROP DATABASE IF EXISTS {db}_x CASCADE")


def described(sql, name):
    return dict(sql(f"DESCRIBE DATABASE EXTENDED {name}"))


def test_a_database_from_creation_to_drop(sql, refused, hive, lakehouse, name, tmp_path):
    sql(f"CREATE DATABASE {name.upper()} COMMENT 'für alles' WITH DBPROPERTIES ('Key' = 'Value', 'b' = '1')")
    stored = hive.get_database(name)
    assert stored.name == name
    assert stored.description == "für alles"
    assert stored.parameters == {"Key": "Value", "b": "1"}
    assert stored.ownerName == getpass.getuser()
    assert stored.locationUri == f"file:{lakehouse.warehouse}/{name}.db"
    assert (lakehouse.warehouse / f"{name}.db").is_dir()
    assert refused(f"CREATE DATABASE {name}") == "SCHEMA_ALREADY_EXISTS"
    sql(f"CREATE DATABASE IF NOT EXISTS {name} COMMENT 'another'")
    assert hive.get_database(name).description == "für alles"

    assert sql(f"SHOW DATABASES LIKE '{name[:-2].upper()}*'") == [(name[:-2],), (name,)]
    assert sql(f"SHOW DATABASES LIKE '{name}|nothing*'") == [(name,)]
    assert ("default",) in sql("SHOW DATABASES")

    sql(f"ALTER DATABASE {name} SET DBPROPERTIES ('b' = '2', 'c' = 'ü')")
    assert described(sql, name)["Properties"] == "((Key,Value), (b,2), (c,ü))"
    sql(f"ALTER DATABASE {name} SET LOCATION '{(tmp_path / 'elsewhere').as_uri()}'")
    assert described(sql, name)["Location"] == f"file:{tmp_path}/elsewhere"
    assert described(sql, name)["Comment"] == "für alles"
    sql(f"CREATE TABLE {name}.t (a INT) USING parquet")
    assert hive.get_table(name, "t").sd.location == f"file:{tmp_path}/elsewhere/t"

    assert refused(f"DROP DATABASE {name}") == "SCHEMA_NOT_EMPTY"
    assert sql(f"SHOW TABLES IN {name}") == [(name, "t", False)]
    sql(f"DROP TABLE {name}.t")
    sql(f"DROP DATABASE {name}")
    assert sql(f"SHOW DATABASES LIKE '{name}'") == []
    assert not Path(tmp_path / "elsewhere").exists()


def test_a_database_that_is_not_there(sql, refused):
    assert refused("DESCRIBE DATABASE nowhere") == "SCHEMA_NOT_FOUND"
    assert refused("DROP DATABASE nowhere") == "SCHEMA_NOT_FOUND"
    assert refused("ALTER DATABASE nowhere SET DBPROPERTIES ('a' = 'b')") == "SCHEMA_NOT_FOUND"
    assert refused("USE nowhere") == "SCHEMA_NOT_FOUND"
    assert refused("SHOW TABLES IN nowhere") == "SCHEMA_NOT_FOUND"
    assert refused("CREATE TABLE nowhere.t (a INT) USING parquet") == "SCHEMA_NOT_FOUND"
    assert refused("CREATE TABLE nowhere.t (a INT) STORED AS ORC") == "SCHEMA_NOT_FOUND"
    assert refused("SELECT * FROM nowhere.t") == "TABLE_OR_VIEW_NOT_FOUND"
    sql("DROP DATABASE IF EXISTS nowhere")


def test_drop_cascade_takes_everything(sql, hive, lakehouse, name, tmp_path):
    sql(f"CREATE DATABASE {name}")
    sql(f"CREATE TABLE {name}.t (a INT, p STRING) USING parquet PARTITIONED BY (p)")
    sql(f"INSERT INTO {name}.t VALUES (1, 'x'), (2, 'y')")
    sql(f"CREATE TABLE {name}.kept USING parquet LOCATION '{(tmp_path / 'kept').as_uri()}' AS SELECT 1 AS a")
    sql(f"CREATE VIEW {name}.v AS SELECT a FROM {name}.t")
    sql(f"CREATE FUNCTION {name}.f AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs'")
    sql(f"DROP DATABASE {name} CASCADE")
    assert not (lakehouse.warehouse / f"{name}.db").exists()
    assert list((tmp_path / "kept").glob("*.parquet"))      # the files of an external table are its owner's
    # nothing of it comes back with the name
    sql(f"CREATE DATABASE {name}")
    assert sql(f"SHOW TABLES IN {name}") == []
    assert hive.get_functions(name, "*") == []


def test_the_current_database(sql, spark, db):
    sql(f"USE {db}")
    try:
        assert sql("SELECT current_database()") == [(db,)]
        sql("CREATE TABLE here (a INT) USING parquet")
        assert sql("SHOW TABLES") == [(db, "here", False)]
        assert spark.catalog.tableExists("here")
        assert spark.catalog.databaseExists(db.upper())
    finally:
        sql("USE default")
    assert not spark.catalog.tableExists("here")


def test_functions(sql, refused, hive, db):
    sql(f"CREATE FUNCTION {db}.Absolute AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs'")
    stored = hive.get_function(db, "absolute")
    assert stored.className == "org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs"
    assert sql(f"SELECT {db}.absolute(-3)") == [(3,)]
    assert refused(f"CREATE FUNCTION {db}.absolute AS 'a.b.C'") == "ROUTINE_ALREADY_EXISTS"
    sql(f"CREATE FUNCTION IF NOT EXISTS {db}.absolute AS 'a.b.C'")
    assert sql(f"SELECT {db}.absolute(-4)") == [(4,)]

    sql(f"CREATE OR REPLACE FUNCTION {db}.absolute AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFFloor'")
    assert hive.get_function(db, "absolute").className.endswith("GenericUDFFloor")
    sql(f"CREATE FUNCTION {db}.other AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs'")
    assert sql(f"SHOW USER FUNCTIONS IN {db} LIKE 'abs*'") == [(f"spark_catalog.{db}.absolute",)]
    assert len(sql(f"SHOW USER FUNCTIONS IN {db}")) == 2
    assert ("Class: org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs",) in sql(f"DESCRIBE FUNCTION {db}.other")

    sql(f"DROP FUNCTION {db}.absolute")
    assert refused(f"DROP FUNCTION {db}.absolute") == "ROUTINE_NOT_FOUND"
    sql(f"DROP FUNCTION IF EXISTS {db}.absolute")
    assert refused(f"SELECT {db}.absolute(-3)") == "UNRESOLVED_ROUTINE"
