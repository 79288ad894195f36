"""What the Spark side, the streams and the command line can do with tables, in Hive's words.

Rule: a request for a table that is to be read or written lists them; a metastore refuses transactional tables to
others.
"""

from typing import Any

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


def table_request(db: str, name: str) -> Any:
    """The request of get_table_req for a table, in whose ``db`` a catalog may stand as in all calls."""
    catalog, plain = split_catalog(db)
    return ttypes.GetTableRequest(
        dbName=plain,
        tblName=name,
        catName=None if catalog == DEFAULT_CATALOG else catalog,
        capabilities=ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES]),
        processorCapabilities=[*CAPABILITIES, _AS_IT_IS],
        processorIdentifier=IDENTIFIER,
    )
