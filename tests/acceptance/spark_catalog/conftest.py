"""A Spark session whose own SQL knows ACID tables, with a planner in this process."""

from collections.abc import Iterator

import pytest

from metastore.client import MetastoreClient
from metastore.config import PlannerSettings, TlsSettings
from metastore.planner.metastores import Metastores
from metastore.planner.server import PlannerServer
from metastore.spark.catalog import CATALOG
from tests.support.spark_sessions import connector


@pytest.fixture(scope="session")
def planner(lakehouse) -> Iterator[str]:
    """The address of a planner."""
    metastores = Metastores(lakehouse.uri)
    server = PlannerServer(metastores, PlannerSettings(), TlsSettings())
    host, port = server.start("127.0.0.1", 0)
    yield f"http://{host}:{port}"
    server.stop()
    metastores.close()


@pytest.fixture(scope="session")
def catalog(spark, planner):
    """The shared Spark with our catalog; the session ``spark`` has it not."""
    if not connector():
        pytest.skip("there is no Java compiler")
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", CATALOG)
    session.conf.set("spark.sql.catalog.spark_catalog.planner", planner)
    return session


@pytest.fixture
def open_transactions(catalog, lakehouse):
    """A function that lists transactions that the test has left open, once Spark's listeners know what has ended."""
    def look() -> list[int]:
        catalog.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        with MetastoreClient(lakehouse.uri) as client:
            states = client.get_open_txns_info().open_txns
            return [txn.id for txn in states if txn.state == client.types.TxnState.OPEN and txn.id not in before]

    before: list[int] = []
    before += look()
    yield look
    with MetastoreClient(lakehouse.uri) as client:
        client.abort_txns(client.types.AbortTxnsRequest(look()))
