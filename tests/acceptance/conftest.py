"""One lakehouse for all acceptance tests of a process: a whole server, and a Spark session whose Hive client talks to it."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from uuid import uuid4

import psycopg2
import pytest

from metastore.client import MetastoreClient
from tests.support.hive_oracle.oracle import HiveOracle
from tests.support.planned_server import planned_server
from tests.support.spark_sessions import drop_database, skip_without_acid, spark_on


@pytest.fixture(scope="session")
def external_warehouse() -> str | None:
    """Where the server keeps external tables; beside the managed ones if nothing is said."""
    return None


@pytest.fixture(scope="session")
def lakehouse(postgres, tmp_path_factory, external_warehouse) -> Iterator[SimpleNamespace]:
    """``app``, ``uri``, ``database_url``, ``warehouse`` and ``planner`` of a server without loops; it names the planner."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    with postgres.cloned() as url, planned_server({
            "metastore.database.url": url, "hive.metastore.warehouse.dir": warehouse.as_uri(),
            "metastore.warehouse.roots": warehouse.parent.as_uri()}) as (app, planner):
        yield SimpleNamespace(app=app, uri=app.thrift_uri, database_url=url, warehouse=warehouse, planner=planner)


@pytest.fixture(scope="session")
def spark(lakehouse, tmp_path_factory):
    """Spark with its built-in Hive client (2.3.10) on the lakehouse; ``acid(spark)`` gives it our catalog, for good."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = spark_on(lakehouse.uri, lakehouse.warehouse.as_uri())
    yield session
    session.stop()


@pytest.fixture(scope="session")
def planner(lakehouse) -> str:
    """Return the address of a planner in this process."""
    return lakehouse.planner


@pytest.fixture(scope="session")
def oracle(tmp_path_factory) -> Iterator[HiveOracle]:
    """One JVM with Hive's own reader."""
    with HiveOracle(tmp_path_factory.mktemp("oracle")) as hive:
        yield hive


@pytest.fixture(scope="session")
def catalog(spark, planner):
    """Return a session of the shared Spark with our catalog."""
    from metastore.spark.catalog import CATALOG
    from tests.support.spark_sessions import connector

    if not connector():
        pytest.skip("there is no Java compiler")
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", CATALOG)
    session.conf.set("spark.sql.catalog.spark_catalog.planner", planner)
    return session


@pytest.fixture(autouse=True)
def no_view_is_left(request):
    """Neither by a test nor by the session: tests share one Spark, in any order, and SHOW TABLES lists views as well."""
    from pyspark.sql import SparkSession

    fixtures = {name: request.getfixturevalue(name) for name in ("spark", "catalog") if name in request.fixturenames}
    sessions = {name: value for name, value in fixtures.items() if isinstance(value, SparkSession)}
    yield
    left = {}
    for name, session in sessions.items():
        views = session._jsparkSession.sessionState().catalog().listLocalTempViews("*")
        left[name] = [views.apply(i).table() for i in range(views.size())]
        for view in left[name]:
            session.catalog.dropTempView(view)
    assert left.get("spark", []) == []


@pytest.fixture(autouse=True)
def write_ids_begin_at_one(request):
    """Under a name they go on after DROP (ADR 37), and tests that share a server use names again, in any order."""
    lakehouse = request.getfixturevalue("lakehouse") if "lakehouse" in request.fixturenames else None
    yield
    if lakehouse is not None:
        with closing(psycopg2.connect(lakehouse.database_url)) as session, session, session.cursor() as cursor:
            cursor.execute("""DELETE FROM next_write_ids AS ids WHERE NOT EXISTS (SELECT 1 FROM tables AS t
                               WHERE (t.catalog, t.db, t.name) = (ids.catalog, ids.db, ids."table"))""")


@pytest.fixture
def acid_session(spark):
    """``acid(spark)``."""
    from metastore.spark import acid

    skip_without_acid(spark)
    with acid(spark) as session:
        yield session


@pytest.fixture
def no_capability_check(monkeypatch):
    """As with metastore.client.capability.check=false: Spark's own client gets transactional tables too."""
    from metastore.thrift_server.dispatch.table_access import TableAccess

    monkeypatch.setattr(TableAccess, "require", lambda *_: None)


@pytest.fixture
def nobody_reads(lakehouse):
    """No transaction is open: a Cleaner waits for those that drivers left open which earlier tests killed."""
    with MetastoreClient(lakehouse.uri) as client:
        found = client.get_open_txns_info().open_txns
        client.abort_txns(client.types.AbortTxnsRequest(
            [one.id for one in found if one.state == client.types.TxnState.OPEN]))


@pytest.fixture
def db(spark, lakehouse):
    """Yield a database of the test's own; drop it in the end, whatever killed drivers still hold."""
    name = f"db_{uuid4().hex[:10]}"
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    drop_database(lakehouse.uri, name)
