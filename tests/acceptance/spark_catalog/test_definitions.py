"""Transactional tables made, changed and dropped in Spark's own SQL."""

import pytest
from pyspark.errors import PySparkException

from metastore.client import DomainClient
from metastore.planner import server as planner_server
from metastore.planner.call import Method
from tests.support.spark_sessions import is_before, skip_where_inserts_give_all_columns

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


def test_partition_keys_are_found_in_any_case(catalog, db) -> None:
    """As other names: a key that is not found would be a column of a table without partitions."""
    def shown(name):
        catalog.sql(f"INSERT INTO {db}.{name} (Id, day, REGION, oTHER) VALUES (1, 'mon', 'eu', 4)")
        columns, [partition] = catalog.table(f"{db}.{name}").columns, catalog.sql(f"SHOW PARTITIONS {db}.{name}").collect()
        return columns, partition[0]

    catalog.sql(f"CREATE TABLE {db}.named (Id INT, Day STRING, Region STRING, Other INT) PARTITIONED BY (Region, Day) {_ACID}")
    catalog.sql(f"CREATE TABLE {db}.typed (Id INT, Other INT) PARTITIONED BY (Region STRING, Day STRING) {_ACID}")
    catalog.sql(f"CREATE TABLE {db}.made PARTITIONED BY (REGION, Day) {_ACID} AS SELECT 2 AS Id, 'mon' AS Day, 'eu' AS Region, 3 AS Other")
    frame = catalog.table(f"{db}.made").selectExpr("id AS Id", "day AS Day", "region AS Region", "other AS Other")
    frame.writeTo(f"{db}.written").partitionedBy(frame.Region, frame.Day).tableProperty("transactional", "true").create()
    for name in ("named", "typed", "made", "written"):
        assert shown(name) == (["id", "other", "region", "day"], "region=eu/day=mon"), name
    frame.writeTo(f"{db}.made").partitionedBy(frame.Region, frame.Day).createOrReplace()
    assert shown("made") == (["id", "other", "region", "day"], "region=eu/day=mon")


def test_names_that_have_to_be_quoted(catalog, db) -> None:
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (`a b` INT, `c.d` STRING) PARTITIONED BY (`load-day` STRING, `k.l` INT) {_ACID}")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'x', 'mon', 1), (2, 'y', 'tue', 2), (3, 'z', 'mon', 2)")
    catalog.sql(f"UPDATE {name} SET `a b` = `a b` + 10 WHERE `load-day` = 'mon' AND `c.d` <> 'x'")
    catalog.sql(f"""MERGE INTO {name} t USING (SELECT 2 AS id, 'new' AS n UNION ALL SELECT 4, 'more') s ON t.`a b` = s.id
                    WHEN MATCHED THEN UPDATE SET `c.d` = s.n WHEN NOT MATCHED THEN INSERT (`a b`, `c.d`, `load-day`, `k.l`) VALUES (s.id, s.n, 'wed', 3)""")
    catalog.sql(f"DELETE FROM {name} WHERE `k.l` = 1")
    assert sorted(map(tuple, catalog.table(name).collect())) == [(2, "new", "tue", 2), (4, "more", "wed", 3), (13, "z", "mon", 2)]
    joined = catalog.sql(f"SELECT t.`a b` FROM {name} t JOIN {name} u ON t.`k.l` = u.`k.l` AND t.`load-day` = u.`load-day` WHERE u.`c.d` = 'z'")
    assert joined.collect() == [(13,)]
    assert [row.partition for row in catalog.sql(f"SHOW PARTITIONS {name} PARTITION (`k.l` = 2)").collect()] == ["load-day=mon/k.l=2", "load-day=tue/k.l=2"]
    assert sorted(map(tuple, catalog.sql(f"SELECT `load-day`, count(*) FROM {name} GROUP BY `load-day`").collect())) == [("mon", 1), ("tue", 1), ("wed", 1)]
    catalog.sql(f"TRUNCATE TABLE {name} PARTITION (`load-day` = 'mon')")
    assert catalog.table(name).count() == 2


@pytest.mark.parametrize(("column", "why"), [
    ("s STRING COLLATE UTF8_LCASE", "cannot have a collation"), ("s ARRAY<STRING COLLATE UNICODE_CI>", "cannot have a collation"),
    ("s STRUCT<`a b`: INT>", "has a field whose name"), ("s MAP<STRING, STRUCT<`a:b`: INT>>", "has a field whose name")])
def test_what_hives_types_do_not_hold_is_refused(catalog, db, column, why) -> None:
    """A collation was forgotten, and with such a field there was a table that nobody could read or drop."""
    with pytest.raises(PySparkException, match=f"The column s {why}"):
        catalog.sql(f"CREATE TABLE {db}.t (id INT, {column}) {_ACID}")
    assert not catalog.catalog.tableExists(f"{db}.t")
    catalog.sql(f"CREATE TABLE {db}.t (id INT) {_ACID}")
    with pytest.raises(PySparkException, match=f"The column s {why}"):
        catalog.sql(f"ALTER TABLE {db}.t ADD COLUMN {column}")
    assert catalog.table(f"{db}.t").columns == ["id"]


@pytest.fixture
def altered(monkeypatch, client):
    """Return a function that alters a table's columns when the next statement asks for its locks."""
    def soon(altered: str, /, **columns: str) -> None:
        def lock(call):
            monkeypatch.setitem(planner_server.CALLS, "lock", Method(answer))
            table, types = client.get_table(*altered.split(".")), client.types
            table.sd.cols = [types.FieldSchema(column, kind, None) for column, kind in columns.items()]
            client.alter_table(table.dbName, table.tableName, table)
            return answer(call)

        monkeypatch.setitem(planner_server.CALLS, "lock", Method(lock))

    answer = planner_server.CALLS["lock"].answer
    return soon


def test_a_statement_that_began_with_another_definition_is_refused(catalog, db, altered, open_transactions) -> None:
    """It would write rows without the new columns, and read NULL in those that are gone: nobody would hear of it."""
    name = f"{db}.t"
    catalog.sql(f"CREATE TABLE {name} (id INT, name STRING) {_ACID}")
    catalog.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    source = "(SELECT 2 AS id, 'new' AS name) s"
    writes = [f"INSERT INTO {name} VALUES (3, 'c')", f"INSERT OVERWRITE {name} SELECT 3, 'c'", f"UPDATE {name} SET id = id + 10 WHERE id = 1",
              f"DELETE FROM {name} WHERE id = 1", f"MERGE INTO {name} t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"]
    for write in writes:
        altered(name, id="int", name="string", more="string")
        with pytest.raises(PySparkException, match=rf"{name} was altered or replaced .* \(id int, name string, more string\).*Run the statement again") as refused:
            catalog.sql(write)
        assert refused.value.getSqlState() == "40001"
        altered(name, id="int", name="string")
        catalog.sql(f"SELECT id FROM {name} WHERE id < 0").collect()
    altered(name, id="int")
    with pytest.raises(PySparkException, match=rf"{name} was altered or replaced"):
        catalog.sql(f"SELECT max(name) FROM {name}").collect()
    altered(name, id="int", name="string")
    assert sorted(map(tuple, catalog.sql(f"SELECT id FROM {name}").collect())) == [(1,), (2,)]
    assert sorted(map(tuple, catalog.table(name).collect())) == [(1, "a"), (2, "b")]
    assert open_transactions() == []


def test_tables_of_sparks_own_stay_its_own(catalog, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.plain USING parquet AS SELECT 1 AS id")
    catalog.sql(f"INSERT INTO {db}.plain VALUES (2)")
    catalog.sql(f"CREATE VIEW {db}.seen AS SELECT max(id) AS last FROM {db}.plain")

    assert catalog.sql(f"SELECT last FROM {db}.seen").first() == (2,)
    catalog.sql(f"DROP VIEW {db}.seen")
    catalog.sql(f"DROP TABLE {db}.plain")


@pytest.mark.parametrize(("statement", "reason"), [
    (f"CREATE TABLE {{db}}.t (id INT DEFAULT nothing) {_ACID}", "INVALID_DEFAULT_VALUE"),
    ("ALTER TABLE {db}.there ADD COLUMN n INT DEFAULT 1", "n of .*there cannot be added with DEFAULT 1, .* step by step"),
    ("ALTER TABLE {db}.there SET LOCATION 'file:/elsewhere'", "The location of .*there cannot be changed"),
    ("CREATE OR REPLACE TABLE {db}.there USING parquet AS SELECT 1 AS id", "replaced by a table with another format: .* DROP TABLE and CREATE TABLE"),
    ("REPLACE TABLE {db}.there (id INT, k INT) PARTITIONED BY (k)", "replaced by a table with other partition keys"),
    ("ALTER TABLE {db}.there ADD COLUMN id.part INT", "id"),
    ("CREATE TABLE {db}.t LIKE {db}.there USING parquet", "leave out USING"),
    ("CREATE TABLE {db}.there LIKE {db}.there", "already exists"),
    (f"CREATE TABLE {{db}}.t (id INT, at TIMESTAMP) PARTITIONED BY (years(at)) {_ACID}", "partitioned by columns"),
    (f"CREATE TABLE {{db}}.there (id INT) {_ACID}", "already exists"),
    ("ALTER TABLE {db}.there DROP COLUMN nothing", "nothing"),
])
def test_what_cannot_be_defined_is_refused(catalog, db, statement, reason) -> None:
    catalog.sql(f"CREATE TABLE {db}.there (id INT) {_ACID}")

    if " LIKE " in statement and is_before(catalog, "4.2"):
        reason = r"CREATE TABLE ... LIKE .*there needs Spark 4.2 or newer"
    with pytest.raises(PySparkException, match=reason):
        catalog.sql(statement.format(db=db))
    assert [row.tableName for row in catalog.sql(f"SHOW TABLES IN {db}").collect()] == ["there"]
    catalog.sql(f"DROP TABLE {db}.there")


def test_constraints_are_declared_with_their_table(catalog, lakehouse, db) -> None:
    skip_where_inserts_give_all_columns(catalog)
    catalog.sql(f"CREATE TABLE {db}.t (id INT NOT NULL, n INT DEFAULT 3 + 4) PARTITIONED BY (k STRING) {_ACID}")

    catalog.sql(f"INSERT INTO {db}.t (id, k) VALUES (1, 'a')")
    with pytest.raises(PySparkException, match=f"{db}.t: nothing was written, because rows break NOT NULL .* by 1 row"):
        catalog.sql(f"INSERT INTO {db}.t (n, k) VALUES (1, 'a')")
    assert catalog.table(f"{db}.t").collect() == [(1, 7, "a")]


def test_a_table_is_made_like_another(catalog, lakehouse, db) -> None:
    if is_before(catalog, "4.2"):
        pytest.skip("refused: Spark runs it by a command of its own")
    catalog.sql(f"CREATE TABLE {db}.t (id INT COMMENT 'which', n INT NOT NULL) PARTITIONED BY (k STRING) CLUSTERED BY (id) INTO 2 BUCKETS {_ACID}")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1, 1, 'a')")

    catalog.sql(f"CREATE TABLE {db}.u LIKE {db}.t TBLPROPERTIES ('mine'='yes')")
    catalog.sql(f"CREATE TABLE IF NOT EXISTS {db}.u LIKE {db}.t")

    old, new = (_table(lakehouse, db, name) for name in "tu")
    assert (new.sd.cols, new.partitionKeys, new.sd.bucketCols) == (old.sd.cols, old.partitionKeys, old.sd.bucketCols)
    assert (new.parameters["transactional"], new.parameters["mine"]) == ("true", "yes")
    catalog.sql(f"INSERT INTO {db}.u VALUES (2, NULL, 'b')")
    assert catalog.table(f"{db}.u").collect() == [(2, None, "b")]


def test_a_table_that_replaces_nothing_is_made(catalog, db) -> None:
    catalog.sql(f"CREATE OR REPLACE TABLE {db}.t {_ACID} AS SELECT 1 AS id")
    catalog.sql(f"UPDATE {db}.t SET id = 2")

    assert catalog.table(f"{db}.t").collect() == [(2,)]


def test_a_database_goes_with_its_tables(catalog, acid_session, lakehouse, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.t (id INT) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1)")
    acid_session.sql(f"CREATE TABLE {db}.adds (id INT) STORED AS PARQUET TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')")
    catalog.sql(f"CREATE TABLE {db}.plain USING parquet AS SELECT 1 AS id")
    catalog.sql(f"CREATE VIEW {db}.seen AS SELECT * FROM {db}.plain")

    with pytest.raises(PySparkException, match="SCHEMA_NOT_EMPTY"):
        catalog.sql(f"DROP DATABASE {db}")
    catalog.sql(f"DROP DATABASE {db} CASCADE")

    assert not catalog.catalog.databaseExists(db)
    assert not (lakehouse.warehouse / f"{db}.db").exists()
    catalog.sql(f"DROP DATABASE IF EXISTS {db} CASCADE")
    with pytest.raises(PySparkException, match="SCHEMA_NOT_FOUND"):
        catalog.sql(f"DROP DATABASE {db} CASCADE")
    catalog.sql(f"CREATE DATABASE {db}")


def test_save_as_table_touches_no_transactional_table(catalog, db) -> None:
    """Spark asks its own client for the table, before anything of ours: it is told what to use instead."""
    catalog.sql(f"CREATE TABLE {db}.t (id INT) {_ACID}")
    catalog.sql(f"INSERT INTO {db}.t VALUES (1)")

    for mode in ("append", "overwrite", "error", "ignore"):
        with pytest.raises(PySparkException, match=rf"is a transactional table .* this was df.write.saveAsTable.* in place of saveAsTable, as in df.writeTo\(\"{db}.t\"\).append\(\)"):
            catalog.sql("SELECT 2 AS id").write.mode(mode).saveAsTable(f"{db}.t")
    assert catalog.table(f"{db}.t").collect() == [(1,)]


def test_insert_into_appends_and_overwrites(catalog, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.t (id INT) PARTITIONED BY (k INT) {_ACID}")
    catalog.sql("SELECT 1 AS id, 1 AS k").write.insertInto(f"{db}.t")
    catalog.sql("SELECT 2 AS id, 2 AS k").write.insertInto(f"{db}.t")
    catalog.sql("SELECT 3 AS id, 2 AS k").write.insertInto(f"{db}.t", overwrite=True)

    assert sorted(catalog.table(f"{db}.t").collect()) == [(1, 1), (3, 2)]


def test_show_table_extended_shows_tables_of_every_kind(catalog, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.facts (id INT, name STRING) PARTITIONED BY (day DATE) {_ACID}")
    catalog.sql(f"CREATE TABLE {db}.plain (id INT) STORED AS ORC")
    catalog.sql(f"CREATE VIEW {db}.seen AS SELECT id FROM {db}.facts")
    catalog.sql("CREATE TEMPORARY VIEW facts_of_mine AS SELECT 1 AS id")
    try:
        shown = {row.tableName: row for row in catalog.sql(f"SHOW TABLE EXTENDED IN {db} LIKE '*'").collect()}
        some = [row.tableName for row in catalog.sql(f"SHOW TABLE EXTENDED IN {db} LIKE 'f*'").collect()]
    finally:
        catalog.catalog.dropTempView("facts_of_mine")

    assert {name: (row.namespace, row.isTemporary) for name, row in shown.items()} == {
        "facts": (db, False), "plain": (db, False), "seen": (db, False), "facts_of_mine": ("", True)}
    assert sorted(some) == ["facts", "facts_of_mine"]
    facts, plain, seen = (shown[name].information for name in ("facts", "plain", "seen"))
    assert "Type: VIEW\n" in seen
    for line in (f"Database: {db}\n", "Type: MANAGED\n", "Provider: hive\n", "Partition Provider: Catalog\n"):
        assert line in facts
        assert line in plain
    assert "Partition Columns: [`day`]\n" in facts
    assert "transactional=true" in facts
    assert facts.rstrip().endswith("root\n |-- id: integer (nullable = true)\n |-- name: string (nullable = true)\n |-- day: date (nullable = true)")
    assert plain.rstrip().endswith("root\n |-- id: integer (nullable = true)")

    catalog.sql(f"USE {db}")
    try:
        assert [row.tableName for row in catalog.sql("SHOW TABLE EXTENDED LIKE 'plain'").collect()] == ["plain"]
    finally:
        catalog.sql("USE default")


_INSERT_ONLY = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only'"
_OWN = ("transient_lastDdlTime", "COLUMN_STATS_ACCURATE", "numFiles", "numRows", "totalSize", "rawDataSize")


def _definition(client, db):
    """All that a statement can declare of table t, as the metastore has it."""
    table = client.get_table(db, "t")
    constraints = client.get_all_table_constraints(client.types.AllTableConstraintsRequest(db, "t", "hive")).allTableConstraints
    declared = [(kind, str(one)) for kind in ("primaryKeys", "uniqueConstraints", "foreignKeys", "checkConstraints")
                for one in getattr(constraints, kind) or ()]
    of_columns = [(one.column_name, getattr(one, "default_value", None)) for kind in ("notNullConstraints", "defaultConstraints")
                  for one in getattr(constraints, kind) or ()]
    sd = table.sd
    return ([(one.name, one.type, one.comment) for one in (*sd.cols, *table.partitionKeys)], len(table.partitionKeys), table.tableType,
            sd.location, sd.inputFormat, sd.outputFormat, sd.serdeInfo.serializationLib, sd.serdeInfo.parameters, sd.numBuckets, sd.bucketCols,
            [(one.col, one.order) for one in sd.sortCols], declared, sorted(of_columns, key=str),
            {key: value for key, value in table.parameters.items() if key not in _OWN})


@pytest.mark.parametrize(("since", "statement"), [
    ("4.0", "(id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')"),
    ("4.0", r"""(id INT COMMENT 'it\'s \\ one', `odd name` CHAR(3), s STRUCT<a: INT, b: ARRAY<MAP<STRING, DECIMAL(10,2)>>> COMMENT 'two\nlines',
               `select` TIMESTAMP, day DATE, region STRING COMMENT 'where') PARTITIONED BY (region, day) CLUSTERED BY (id, `select`)
               INTO 4 BUCKETS STORED AS ORC COMMENT 'a \'table\''
               TBLPROPERTIES ('transactional'='true', 'orc.compress'='ZLIB', 'it\'s'='a "quoted" \\ one')"""),
    ("4.1", r"""(id INT NOT NULL, n BIGINT DEFAULT 3 + 4 COMMENT 'sum', k STRING NOT NULL, CONSTRAINT positive CHECK (n > 0 AND k <> 'it\'s'),
               CONSTRAINT one PRIMARY KEY (id, k), CONSTRAINT two UNIQUE (n) RELY) PARTITIONED BY (k) STORED AS ORC TBLPROPERTIES ('transactional'='true')"""),
    ("4.0", f"(id INT, `odd name` INT, k STRING) PARTITIONED BY (k) CLUSTERED BY (id) SORTED BY (`odd name`, id) INTO 4 BUCKETS STORED AS PARQUET {_INSERT_ONLY})"),
    ("4.0", f"(id INT, n INT) CLUSTERED BY (id) SORTED BY (n, id) INTO 2 BUCKETS STORED AS ORC {_INSERT_ONLY}, 'acid.descending' = 'N')"),
    ("4.0", f"(id INT) STORED AS TEXTFILE {_INSERT_ONLY})"),
    ("4.0", rf"""(id INT, l ARRAY<STRING>) ROW FORMAT DELIMITED FIELDS TERMINATED BY '|' ESCAPED BY '\\' COLLECTION ITEMS TERMINATED BY '\u0003'
                NULL DEFINED AS '' STORED AS TEXTFILE {_INSERT_ONLY})"""),
    ("4.0", f"""(id STRING) ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' WITH SERDEPROPERTIES ('separatorChar'=';')
                STORED AS TEXTFILE {_INSERT_ONLY}, 'skip.header.line.count'='0')"""),
    ("4.0", f"(id INT) STORED AS JSONFILE {_INSERT_ONLY})"),
    ("4.0", f"(id INT) STORED AS SEQUENCEFILE {_INSERT_ONLY})"),
    ("4.0", f"(id INT) STORED AS RCFILE {_INSERT_ONLY})"),
    ("4.0", f"(id INT) STORED AS AVRO {_INSERT_ONLY})"),
    ("4.0", f"""(id INT) ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.JsonSerDe' STORED AS INPUTFORMAT 'org.apache.hadoop.mapred.TextInputFormat'
                OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat' {_INSERT_ONLY})"""),
    ("4.0", "(id INT) USING hive OPTIONS (fileFormat 'orc') TBLPROPERTIES ('transactional'='true')"),
    ("4.0", f"(id INT, n INT) USING hive OPTIONS (FILEFORMAT 'textfile', fieldDelim '|') {_INSERT_ONLY})"),
    ("4.0", "(id INT) USING orc LOCATION '{warehouse}/elsewhere' TBLPROPERTIES ('transactional'='true')"),
])
def test_show_create_table_makes_the_same_table(catalog, lakehouse, client, db, since, statement) -> None:
    if is_before(catalog, since):
        pytest.skip("Spark 4.0 declares no constraints")
    catalog.sql(f"CREATE TABLE {db}.t {statement.replace('{warehouse}', lakehouse.warehouse.as_uri())}")
    made = _definition(client, db)
    shown = catalog.sql(f"SHOW CREATE TABLE {db}.t").head()[0]
    catalog.sql(f"DROP TABLE {db}.t")
    assert ("LOCATION" in shown) == ("LOCATION" in statement)
    assert "transient_lastDdlTime" not in shown

    catalog.sql(shown)

    assert _definition(client, db) == made, shown
    assert catalog.sql(f"SHOW CREATE TABLE {db}.t").head()[0] == shown


def test_options_of_using_hive_are_no_properties(catalog, client, db) -> None:
    catalog.sql(f"CREATE TABLE {db}.t (id INT) USING hive OPTIONS (fileFormat 'orc') TBLPROPERTIES ('transactional'='true')")
    assert {"fileFormat", "fileformat"}.isdisjoint(client.get_table(db, "t").parameters)
    catalog.sql(f"INSERT INTO {db}.t VALUES (1)")
    catalog.sql(f"DELETE FROM {db}.t WHERE id = 1")
    catalog.sql(f"CREATE TABLE {db}.csv (id STRING) USING hive OPTIONS (fileFormat 'textfile', fieldDelim '|', separatorChar ';', "
                f"serde 'org.apache.hadoop.hive.serde2.OpenCSVSerde') {_INSERT_ONLY})")
    rows = client.get_table(db, "csv").sd.serdeInfo
    assert rows.serializationLib.endswith("OpenCSVSerde")
    assert rows.parameters == {"field.delim": "|", "separatorChar": ";"}
    with pytest.raises(PySparkException, match="such as ORC"):
        catalog.sql(f"CREATE TABLE {db}.u (id INT) USING hive TBLPROPERTIES ('transactional'='true')")
