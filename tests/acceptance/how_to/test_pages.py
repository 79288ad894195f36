"""The how-tos of tables in Spark, block after block as they stand there, in the Spark that the tests share.

Places and points in time are those of the test. Tables that a page speaks of and does not make are made before.
"""

import re
from contextlib import ExitStack
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from metastore.spark import acid
from metastore.spark.catalog import CATALOG
from tests.support.compacting import Compacting, Working
from tests.support.how_to import follow, statements
from tests.support.planned_server import planned_server
from tests.support.spark_sessions import drop_database, is_before

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ACID = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
ORDERS = f"(id BIGINT, state STRING, amount DECIMAL(10,2)) PARTITIONED BY (day STRING) {ACID}"
ROWS = "VALUES (1, 'new', 9.50, '2024-05-01'), (2, 'paid', 20.00, '2024-05-02')"
OWN_SPARK = re.compile(r"^builder = .*\n|^spark = configure\(.*\n", re.MULTILINE)


@pytest.fixture
def session(catalog, lakehouse):
    """Yield a session of Spark that has the catalog, with the database ``sales``."""
    if is_before(catalog, "4.2"):
        pytest.skip("the pages show what Spark 4.2 has")
    session = catalog.newSession()
    for key in ("spark.sql.catalog.spark_catalog", "spark.sql.catalog.spark_catalog.planner"):
        session.conf.set(key, catalog.conf.get(key))
    session.sql("CREATE DATABASE sales")
    session._jvm.SparkSession.setActiveSession(session._jsparkSession)  # toTable asks the thread's session for the catalog, which a reader has only one of
    yield session
    session._jvm.SparkSession.setActiveSession(catalog._jsparkSession)
    for query in session.streams.active:
        query.processAllAvailable()
        query.stop()
    drop_database(lakehouse.uri, "sales")


@pytest.fixture
def worker(lakehouse, spark, nobody_reads):
    loops = Compacting(lakehouse.database_url, lakehouse.uri, spark)
    with Working(loops.worker):
        yield
    loops.close()


@pytest.fixture
def opened():
    """Yield a stack that closes in the end all that a page opens."""
    with ExitStack() as stack:
        yield stack


def runners(session, opened, /, **names):
    """Return functions that run blocks of SQL and of Python: the Spark of a page is the shared one, and its names stay from block to block."""
    def sql(text):
        for statement in statements(text):
            session.sql(statement).collect()

    def python(text):
        exec(OWN_SPARK.sub("", text), names)

    names |= {"spark": session, "acid": lambda *more, **options: opened.enter_context(acid(*more, **options))}
    opened.callback(lambda: names["session"].close() if "session" in names else None)
    return {"sql": sql, "python": python}


def now():
    return f"{datetime.now(tz=UTC):%Y-%m-%d %H:%M:%S.%f}"  # noqa: TID251 - a reader writes the time of their own clock


def view(session, name, rows):
    session.sql(rows).createOrReplaceTempView(name)


def made(session, *statements_):
    for statement in statements_:
        session.sql(statement)


def test_acid_tables_in_spark_sql(session, opened, worker, postgres, tmp_path):
    warehouse = (tmp_path / "other").as_uri()
    view(session, "incoming", "SELECT 3L AS id, 'new' AS state, CAST(1 AS DECIMAL(10,2)) AS amount, '2024-05-03' AS day")
    view(session, "changes", "SELECT 1L AS id, 'paid' AS state, CAST(9.5 AS DECIMAL(10,2)) AS amount, '2024-05-01' AS day")
    view(session, "updates", "SELECT 1L AS id, 'Ann' AS name, 'Paris' AS city")
    view(session, "lines", "SELECT 'a line' AS line, DATE '2024-05-01' AS day")
    made(session, f"CREATE TABLE sales.customers (id BIGINT, name STRING) {ACID}", f"CREATE TABLE sales.archive {ORDERS}", f"CREATE TABLE sales.incoming {ORDERS}",
         f"INSERT INTO sales.incoming {ROWS}", f"CREATE TABLE sales.daily (day STRING, orders INT) {ACID}")
    with postgres.cloned() as url, planned_server({
            "metastore.database.url": url, "hive.metastore.warehouse.dir": warehouse, "metastore.warehouse.roots": warehouse}) as (app, _):
        def bash(text):
            settings = dict(re.findall(r"--conf (\S+?)=(\S+)", text))
            assert settings.pop("spark.sql.extensions") == "transactionmetastore.spark.catalog.AcidExtensions"
            if "spark-sql" in text:
                assert "--jars $(metastore spark jar)" in text
                assert settings == {"spark.sql.catalog.spark_catalog": CATALOG, "spark.hadoop.hive.metastore.uris": "thrift://localhost:9083"}
            else:
                for key, value in settings.items():
                    session.conf.set(key, value)
                made(session, "CREATE DATABASE lake.sales", f"CREATE TABLE lake.sales.orders {ORDERS}")

        follow("acid-tables-in-spark-sql.md", {
            "orders.writeStream": "spark.readStream.table('sales.incoming').writeStream", "s3a://state/orders": tmp_path / "state", "thrift://other:9083": app.thrift_uri,
            "VERSION 41 TO VERSION 45": "VERSION 2 TO VERSION 3", "2026-05-01 12:00:00": now, '"startingVersion", 41': '"startingVersion", 2',
            "to_write_id => 41": "to_write_id => 2"}, bash=bash, **runners(session, opened))
        assert session.table("lake.sales.orders").count() == 2
    assert sorted(row.day for row in session.table("sales.daily").collect()) == ["2024-05-01", "2024-05-02"]


def test_acid_tables_from_pyspark(session, opened, lakehouse, tmp_path):
    view(session, "staged", "SELECT 1L")
    frame = session.sql("SELECT 1L AS id, 'new' AS state, CAST(1 AS DECIMAL(10,2)) AS amount, '2024-05-01' AS day")
    changes = session.sql("SELECT 17L AS id, 'void' AS state, CAST(1 AS DECIMAL(10,2)) AS amount, '2024-05-01' AS day")
    made(session, f"CREATE TABLE sales.inbox (id BIGINT) {ACID}", f"CREATE TABLE sales.items (id BIGINT, name STRING) {ACID}",
         f"CREATE TABLE sales.staged (id BIGINT, state STRING, amount DECIMAL(10,2), kind STRING, reason STRING) PARTITIONED BY (day STRING) {ACID}",
         f"CREATE TABLE sales.returns (id BIGINT, reason STRING) PARTITIONED BY (day STRING) {ACID}",
         "INSERT INTO sales.staged VALUES (5, 'new', 1, 'order', NULL, '2024-05-01'), (6, NULL, NULL, 'return', 'broken', '2024-05-01')",
         "CREATE TABLE sales.old (id INT) STORED AS ORC", "INSERT INTO sales.old VALUES (1)")
    lost = tmp_path / "lost"
    frame.drop("day").write.orc(lost.as_uri())
    follow("acid-tables-from-pyspark.md", {
        "file:///warehouse/sales.db/orders/day=2024-05-01/.quarantine/part-00000-3c1ff2ae-...-c000": lost.as_uri(), "as_of_write_id=41": "as_of_write_id=3",
        "AS OF 41": "AS OF 3", "after=41, up_to=45": "after=9, up_to=9", 'as_of_timestamp="2026-11-21 09:30:00")': "as_of_timestamp=now())"},
           **runners(session, opened, frame=frame, changes=changes, now=now))
    assert Decimal("1.00") in {row.amount for row in session.table("sales.orders").collect()}


def test_read_the_past(session, opened):
    made(session, f"CREATE TABLE sales.orders {ORDERS}", f"INSERT INTO sales.orders {ROWS}")
    [point] = session.sql("CALL system.history('sales.orders')").collect()
    made(session, "DELETE FROM sales.orders WHERE id = 1")
    at = point.committed_at.astimezone(UTC)
    follow("read-the-past.md", {
        "2026-11-21 09:30:00": f"{at:%Y-%m-%d %H:%M:%S.%f}", "VERSION AS OF 41": "VERSION AS OF 1", "as_of_write_id=41": "as_of_write_id=1", "to_write_id => 41": "to_write_id => 1",
        "datetime(2026, 11, 21, 9, 30, tzinfo=UTC)": f"datetime.fromisoformat('{at.isoformat()}')", "current_timestamp() - INTERVAL 1 HOUR": "current_timestamp() - INTERVAL 1 MILLISECOND",
    }, **runners(session, opened, session=acid(session)))
    assert session.table("sales.orders").count() == 2


def test_stream_without_spark(session, opened, lakehouse):
    made(session, "CREATE DATABASE web")
    opened.callback(drop_database, lakehouse.uri, "web")
    follow("stream-without-spark.md", {"thrift://localhost:9083": lakehouse.uri}, **runners(session, opened))
    assert session.table("web.clicks").count() == 3


def test_constraints(session, opened):
    told = []

    def text(said):
        made(session, "DELETE FROM orders WHERE true")
        with pytest.raises(Exception, match="nothing was written") as error:
            session.sql("INSERT INTO orders VALUES (NULL, 'a', 1, DATE '2024-05-02', DATE '2024-05-01'), (NULL, 'b', 1, NULL, NULL)")
        told.append((said.strip(), str(error.value)))

    made(session, "USE sales")
    follow("constraints.md", {}, text=text, **runners(session, opened))
    [(written, said)] = told
    shape = re.compile(r"shop|sales|\d+")
    assert shape.sub("N", written) in shape.sub("N", said)


def test_stream_into_tables(session, opened, tmp_path):
    source = tmp_path / "kafka"
    made(session, f"CREATE TABLE sales.orders {ORDERS}", f"CREATE TABLE sales.inbox (id BIGINT) {ACID}")
    session.sql("""SELECT CAST('{"id": 1, "state": "new", "amount": 9.5, "day": "2024-05-01"}' AS BINARY) AS value""").write.parquet(source.as_uri())
    follow("stream-into-tables.md", {
        'format("kafka").option("kafka.bootstrap.servers", "kafka:9092").option("subscribe", "orders").load()': f'schema("value BINARY").parquet("{source.as_uri()}")',
        "query.awaitTermination()": "query.processAllAvailable()", "s3a://state": tmp_path.as_uri(),
        'session.stream_into(orders.writeStream.trigger(processingTime="1 minute")': 'query.stop()\nsession.stream_into(orders.writeStream.trigger(processingTime="1 minute")',
        'query = session.stream_into(orders, "sales.orders"': 'query.stop()\nquery = session.stream_into(orders, "sales.orders"',
        'acid(spark, retries=3).stream_into(': 'for one in spark.streams.active: one.processAllAvailable(); one.stop()\nacid(spark, retries=3).stream_into('},
           **runners(session, opened, session=acid(session)))
    for query in session.streams.active:
        query.processAllAvailable()
    assert session.sql("SELECT * FROM sales.orders").count() == 1
