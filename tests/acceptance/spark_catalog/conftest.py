"""What tests of the catalog look at besides its answers."""

import pytest

from metastore.client import DomainClient, MetastoreClient
from tests.support.spark_sessions import skip_without_acid


@pytest.fixture
def client(lakehouse):
    with DomainClient(lakehouse.uri) as connected:
        yield connected


@pytest.fixture
def open_transactions(catalog, lakehouse):
    """Yield a function that waits for Spark's listeners and lists transactions that the test has left open."""
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


@pytest.fixture
def session(catalog):
    """``acid(spark)`` in a session that has the catalog."""
    from metastore.spark import acid  # older Sparks have the catalog alone

    skip_without_acid(catalog)
    with acid(catalog) as opened:
        yield opened


@pytest.fixture
def days(catalog, db):
    """Create a table with a row in each of two partitions, and return its name."""
    catalog.sql(f"CREATE TABLE {db}.days (id INT) PARTITIONED BY (day INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    catalog.sql(f"INSERT INTO {db}.days VALUES (1, 1), (2, 2)")
    return f"{db}.days"
