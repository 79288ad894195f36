"""A client for code that does not know Thrift: its methods raise ``metastore.errors``.

Rule: a program that works for a user (a Spark session, a stream, a compaction's job) uses this, so that every error
reaches the user as a sentence with the cause and the remedy. A request for a table that is to be read or written lists
the client's abilities, in Hive's words: a metastore refuses transactional tables without them.
"""

from typing import Any, Self

from metastore.client.answers import domain_errors
from metastore.client.client import MetastoreClient
from metastore.ids import DEFAULT_CATALOG, split_catalog
from metastore.thrift_gen.hive_metastore import ttypes

CAPABILITIES = (
    "HIVEFULLACIDREAD",
    "HIVEFULLACIDWRITE",
    "HIVEMANAGEDINSERTREAD",
    "HIVEMANAGEDINSERTWRITE",
    "EXTREAD",
    "EXTWRITE",
)
_AS_IT_IS = "MANAGERAWMETADATA"
"""Others get tables in a form of their own from Hive 4, for example without buckets (CLIENT-12)."""
IDENTIFIER = "transaction-metastore"


class DomainClient(MetastoreClient):
    """Every Thrift method, raising our errors: ``NoSuchObjectError``, ``MetaError``, ... and the client's own two."""

    @classmethod
    def like(cls, client: MetastoreClient) -> Self:
        """Return a client for the same servers and user as ``client``, with a connection of its own."""
        return client._like(cls)  # noqa: SLF001 - of its base class

    def get_table(self, db: str, name: str) -> Any:
        """Return a table, with the client's abilities in the request. Raises: NoSuchObjectError, MetaError."""
        return self.get_table_req(table_request(db, name)).table

    def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with domain_errors():
            return super()._call(name, args, kwargs)


def table_request(db: str, name: str) -> Any:
    """Return the request of get_table_req for a table; ``db`` may contain a catalog as in all calls."""
    catalog, plain = split_catalog(db)
    return ttypes.GetTableRequest(
        dbName=plain,
        tblName=name,
        catName=None if catalog == DEFAULT_CATALOG else catalog,
        capabilities=ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES]),
        processorCapabilities=[*CAPABILITIES, _AS_IT_IS],
        processorIdentifier=IDENTIFIER,
    )
