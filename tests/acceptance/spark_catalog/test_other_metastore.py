"""A catalog under another name than Spark's own: the transactional tables of another metastore, beside those of the session's."""

import pytest
from pyspark.errors import PySparkException

from metastore.client import DomainClient
from metastore.errors import InvalidOperationError
from metastore.spark import acid
from metastore.spark.catalog import CATALOG
from tests.support.planned_server import planned_server
from tests.support.spark_sessions import is_before, skip_without_acid

pytestmark = pytest.mark.spark
_ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"


@pytest.fixture(scope="module")
def other(postgres, tmp_path_factory):
    """Yield the address of another metastore, which names a planner."""
    warehouse = tmp_path_factory.mktemp("other").as_uri()
    with postgres.cloned() as url, planned_server({
            "metastore.database.url": url, "hive.metastore.warehouse.dir": warehouse, "metastore.warehouse.roots": warehouse}) as (app, _):
        yield app.thrift_uri


@pytest.fixture
def lake(catalog, other):
    """Yield a session in which the other metastore is ``lake``, with a database ``far``."""
    session = catalog.newSession()
    for key in ("spark.sql.catalog.spark_catalog", "spark.sql.catalog.spark_catalog.planner"):
        session.conf.set(key, catalog.conf.get(key))
    session.conf.set("spark.sql.catalog.lake", CATALOG)
    session.conf.set("spark.sql.catalog.lake.uris", other)
    session.sql("CREATE DATABASE lake.far COMMENT 'away'")
    yield session
    session.sql("USE spark_catalog.default")
    session.sql("DROP DATABASE IF EXISTS lake.far CASCADE")


@pytest.fixture
def namesakes(lake, db):
    """Create ``db.t`` with row 1 here and with row 2 in the other metastore, and yield both names."""
    lake.sql(f"CREATE DATABASE lake.{db}")
    names = f"{db}.t", f"lake.{db}.t"
    for row, name in enumerate(names, 1):
        lake.sql(f"CREATE TABLE {name} (id INT) {_ACID}")
        lake.sql(f"INSERT INTO {name} VALUES ({row})")
    yield names
    lake.sql(f"DROP DATABASE lake.{db} CASCADE")


def shown(session, statement):
    return sorted(map(tuple, session.sql(statement).collect()))


def test_tables_of_two_metastores_are_read_and_written(lake, db, other) -> None:
    lake.sql(f"CREATE TABLE {db}.near (id INT, note STRING) {_ACID}")
    lake.sql(f"INSERT INTO {db}.near VALUES (1, 'a'), (2, 'b')")
    lake.sql(f"CREATE TABLE lake.far.t (id INT, note STRING) PARTITIONED BY (k INT) {_ACID}")
    lake.sql(f"INSERT INTO lake.far.t SELECT id, note, id FROM {db}.near")
    lake.sql("UPDATE lake.far.t SET note = 'c' WHERE k = 2")
    lake.sql(f"MERGE INTO lake.far.t t USING (SELECT id + 1 AS id FROM {db}.near) s ON t.id = s.id "
             "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, note, k) VALUES (s.id, 'new', 3)")
    lake.sql(f"INSERT INTO {db}.near SELECT id * 10, note FROM lake.far.t")
    lake.sql(f"CREATE TABLE lake.far.copy {_ACID} AS SELECT t.id, n.note FROM lake.far.t JOIN {db}.near n ON t.id * 10 = n.id")

    assert shown(lake, "SELECT * FROM lake.far.t") == [(1, "a", 1), (3, "new", 3)]
    assert shown(lake, f"SELECT * FROM {db}.near") == [(1, "a"), (2, "b"), (10, "a"), (30, "new")]
    assert shown(lake, "SELECT * FROM lake.far.copy") == [(1, "a"), (3, "new")]
    assert shown(lake, "SHOW PARTITIONS lake.far.t") == [("k=1",), ("k=2",), ("k=3",)]
    written = [row.write_id for row in lake.sql("CALL lake.system.history('far.t')").collect()]
    assert [one - written[-1] for one in written] == [2, 1, 0]  # other tests had a table of that name
    with DomainClient(other) as client:
        assert sorted(client.get_all_tables("far")) == ["copy", "t"]
        assert db not in client.get_all_databases()


def test_a_transaction_is_of_one_metastore(lake, db) -> None:
    lake.sql(f"CREATE TABLE {db}.near (id INT) {_ACID}")
    for name in "tu":
        lake.sql(f"CREATE TABLE lake.far.{name} (id INT) {_ACID}")

    with pytest.raises(PySparkException, match="tables of this statement are in two catalogs"):
        lake.sql(f"FROM (SELECT 1 AS id) s INSERT INTO lake.far.t SELECT id INSERT INTO {db}.near SELECT id")
    lake.sql("FROM (SELECT 1 AS id) s INSERT INTO lake.far.t SELECT id INSERT INTO lake.far.u SELECT id")
    lake.sql("CALL lake.system.begin()")
    lake.sql("INSERT INTO lake.far.t VALUES (2)")
    lake.sql(f"INSERT INTO {db}.near VALUES (3)")
    lake.sql("CALL lake.system.rollback()")

    assert (shown(lake, "SELECT * FROM lake.far.t"), shown(lake, "SELECT * FROM lake.far.u"), shown(lake, f"SELECT * FROM {db}.near")) == (
        [(1,)], [(1,)], [(3,)])


def test_frames_are_of_the_sessions_metastore(lake, namesakes) -> None:
    near, far = namesakes
    skip_without_acid(lake)
    with acid(lake) as session:
        assert session.sql(f"SELECT * FROM {near}").first().id == 1
        for query in (f"SELECT * FROM {far}", f"SELECT * FROM {near} CROSS JOIN {far} u"):
            with pytest.raises(InvalidOperationError, match=rf"{far} is of another metastore than this session's frames: read it by spark.sql"):
                session.sql(query)
        assert shown(lake, f"SELECT * FROM {near} CROSS JOIN {far} u") == [(1, 2)]


def test_two_catalogs_of_one_metastore_have_transactions_of_their_own(lake, catalog, db) -> None:
    lake.conf.set("spark.sql.catalog.twin", CATALOG)
    lake.conf.set("spark.sql.catalog.twin.planner", catalog.conf.get("spark.sql.catalog.spark_catalog.planner"))
    for name in "tu":
        lake.sql(f"CREATE TABLE {db}.{name} (id INT) {_ACID}")
    with pytest.raises(PySparkException, match="tables of this statement are in two catalogs"):
        lake.sql(f"FROM (SELECT 1 AS id) s INSERT INTO {db}.t SELECT id INSERT INTO twin.{db}.u SELECT id")
    lake.sql("CALL system.begin()")
    lake.sql(f"INSERT INTO {db}.t VALUES (2)")
    lake.sql(f"INSERT INTO twin.{db}.u SELECT * FROM {db}.t")
    lake.sql("CALL system.rollback()")

    assert (shown(lake, f"SELECT * FROM {db}.t"), shown(lake, f"SELECT * FROM {db}.u")) == ([], [(2,)])


def test_a_path_is_asked_about_before_anything_uses_the_catalog(lake, catalog, other) -> None:
    lake.sql(f"CREATE TABLE lake.far.t (id INT) {_ACID}")
    with DomainClient(other) as client:
        place = client.get_table("far", "t").sd.location
    session = catalog.newSession()
    session.conf.set("spark.sql.catalog.lake", CATALOG)
    session.conf.set("spark.sql.catalog.lake.uris", other)
    with pytest.raises(PySparkException, match=r"Nothing is written to .* transactional table far\.t"):
        session.sql("SELECT 1 AS id").write.mode("append").orc(place)


def test_databases_and_names_are_those_of_the_other(lake, db, other) -> None:
    lake.sql(f"CREATE TABLE lake.far.t (id INT) {_ACID}")
    lake.sql("CREATE DATABASE IF NOT EXISTS lake.far")
    with pytest.raises(PySparkException, match="SCHEMA_ALREADY_EXISTS"):
        lake.sql("CREATE DATABASE lake.far")
    assert shown(lake, "SHOW DATABASES IN lake") == [("default",), ("far",)]
    assert ("Comment", "away") in shown(lake, "DESCRIBE DATABASE lake.far")
    lake.sql("USE lake.far")
    assert [row.tableName for row in lake.sql("SHOW TABLES").collect()] == ["t"]
    lake.sql("INSERT INTO t VALUES (1)")
    lake.sql("ALTER TABLE t ADD COLUMNS (note STRING)")
    lake.sql("ALTER TABLE t RENAME TO far.u")
    assert lake.sql("ANALYZE TABLE u COMPUTE STATISTICS").first().rows == 1
    if not is_before(lake, "4.2"):
        lake.sql("CREATE TABLE v LIKE u")
    assert "SELECT" not in lake.sql("SHOW TABLE EXTENDED IN lake.far LIKE 'u'").first().information
    lake.sql("DROP TABLE u")
    lake.sql("DROP TABLE IF EXISTS u")
    lake.sql("USE spark_catalog.default")
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        lake.sql("SELECT * FROM lake.far.u")
    lake.sql("DROP DATABASE lake.far CASCADE")
    with pytest.raises(PySparkException, match="SCHEMA_NOT_FOUND"):
        lake.sql("SHOW TABLES IN lake.far")


def test_plain_tables_are_refused_in_a_sentence(lake, other) -> None:
    with DomainClient(other) as client:
        types = client.types
        client.create_table(types.Table(tableName="p", dbName="far", sd=types.StorageDescriptor(
            cols=[types.FieldSchema("id", "int")], serdeInfo=types.SerDeInfo())))
    for statement in ("SELECT * FROM lake.far.p", "INSERT INTO lake.far.p VALUES (1)", "DROP TABLE lake.far.p", "ALTER TABLE lake.far.p ADD COLUMNS (n INT)"):
        with pytest.raises(PySparkException, match=r"lake\.far\.p is no transactional table, and the catalog lake has those alone: use Spark's session catalog"):
            lake.sql(statement)
    with pytest.raises(PySparkException, match="is to be no transactional table"):
        lake.sql("CREATE TABLE lake.far.q (id INT) USING parquet")
    with pytest.raises(PySparkException, match="Databases are altered by Spark's session catalog"):
        lake.sql("ALTER DATABASE lake.far SET DBPROPERTIES ('a' = 'b')")
    assert shown(lake, "SHOW TABLES IN lake.far") == []
    with pytest.raises(PySparkException, match="Database far has tables and views that are not transactional: p"):
        lake.sql("DROP DATABASE lake.far CASCADE")
    with DomainClient(other) as client:
        client.drop_table("far", "p", True)


def test_the_sessions_catalog_has_one_metastore(catalog, other) -> None:
    session = catalog.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", CATALOG)
    session.conf.set("spark.sql.catalog.spark_catalog.uris", other)
    with pytest.raises(Exception, match=r"spark_catalog\.uris would be the metastore of transactional tables alone"):
        session.sql("SHOW TABLES").collect()
