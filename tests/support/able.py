"""The wire's client for tests that look at transactional tables."""

from typing import Any

from metastore.client import MetastoreClient
from metastore.client.domain_client import table_request


class AbleClient(MetastoreClient):
    """Thrift's methods and exceptions as they are; get_table alone asks as a client does that can handle every table.

    Not for tests of get_table itself, of which `tests/integration/catalog` has many.
    """

    def get_table(self, db: str, name: str) -> Any:
        """Return the table."""
        return self.get_table_req(table_request(db, name)).table
