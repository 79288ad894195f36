"""What tests of the catalog look at besides its answers."""

import pytest

from metastore.client import DomainClient, MetastoreClient


@pytest.fixture
def client(lakehouse):
    with DomainClient(lakehouse.uri) as connected:
        yield connected


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
