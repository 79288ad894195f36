"""The same client for code that does not want to know Thrift: its methods raise ``metastore.errors``.

Rule: a program that works for a user (a Spark session, a stream, a compaction's job) has this, so that no answer of the
server reaches the user as anything but a sentence that says what happened and what to do.
"""

from typing import Any, Self

from metastore.client.abilities import table_request
from metastore.client.answers import domain_errors
from metastore.client.client import MetastoreClient


class DomainClient(MetastoreClient):
    """Every Thrift method, raising our errors: ``NoSuchObjectError``, ``MetaError``, ... and the client's own two."""

    @classmethod
    def like(cls, client: MetastoreClient) -> Self:
        """Return a client for the same servers and user as ``client``, with a connection of its own."""
        return client._like(cls)  # noqa: SLF001 - of its base class

    def get_table(self, db: str, name: str) -> Any:
        """Return the table, which a client gets that says what it can do. Raises: NoSuchObjectError, MetaError."""
        return self.get_table_req(table_request(db, name)).table

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with domain_errors():
            return super()._call(name, args, kwargs)
